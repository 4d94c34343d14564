"""Grids of nodes that are placed where the probability is, and refined until answers stay."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, replace

import numpy as np

from hylift.errors import IntractableError
from hylift.inference.exact.elimination import Flags, FloatArray, Ids
from hylift.inference.exact.integrated import Integrated, integrate_reals
from hylift.inference.exact.meter import Meter
from hylift.inference.exact.nodes.axes import DEGREE, Axes, is_closed, resolving_edges
from hylift.inference.exact.nodes.far_ends import is_one_sided
from hylift.inference.exact.nodes.placement import (
    Scale,
    Scan,
    Windows,
    find_windows,
    most_coupled,
    nodes_within,
)
from hylift.inference.exact.one_pass import PassResult, sum_resolved
from hylift.inference.search.landmarks import Landmarks
from hylift.numerics.quadrature import halved
from hylift.progress import silent
from hylift.rewrite.kinds import Kinds

EPS = float(np.finfo(np.float64).eps)

SCANNED, MOST_SCANNED = 2_000, 48
"""Joint nodes of coupled reals while windows are sought, and most of one."""
FIRST_NODES, MOST_FIRST = 8_000, 48
"""The same when integration begins."""
POWERS = (1.0, 1e-2, 1e-4, 1e-6)
"""Of the joint density, to see far nodes where the first underflows."""
RESOLVED_POWERS = tuple(10.0**-k for k in range(9))
"""Of the joint density, of which the largest is used that nodes of reals beside resolve."""
MOVED, UNRESOLVED = 0.3, 1.0
"""Share of a panel by which its edge is moved to have other nodes, and the change of a log-density
from which on nodes do not resolve it."""
CAREFUL, MANY_COUPLED = 1e-3, 3
"""Share of the tolerance for what lies beyond windows of fewer coupled reals than this."""
FINER = 1.3
"""Factor from one number of nodes to the next."""
WIDEST_DEGREE = 64
"""Most nodes of one panel."""
MOST_NODES = 2**18
"""Joint nodes of coupled reals up to which a grid is refined to settle further digits."""
MOST_BESIDE = 2**24
"""The same where reals beside are on panels of their intervals."""
CLOSE = 1e-3
"""Error with which such a grid counts as settled."""
MOST_CLOSED = 2**25
"""Numbers of closed forms up to which lattices are not tried, or serve where these are refused: a
second of work."""
LANDMARKS = (8, 3)
"""Peaks of functions of a real about which the first grid is finer: of one that is not, and that is
coupled to others."""


def first_edges(kinds: Kinds, gridded: Flags) -> FloatArray:
    """(gridded, panel + 1): panels that resolve quadratics, and narrow peaks of functions."""
    edges, reals = resolving_edges(kinds, gridded), np.flatnonzero(gridded)
    most = LANDMARKS[most_coupled(kinds, reals) > 1]
    return Landmarks.of(kinds).resolved(edges, reals, most)


@dataclass(frozen=True, slots=True, eq=False)
class Grid:
    """Panels of the reals on nodes, and how many nodes each panel has."""

    gridded: Flags
    edges: FloatArray  # (gridded, panel + 1), along the scale
    scale: Scale
    degree: int
    grows: bool
    """True if panels get more nodes before they are cut in two."""
    beyond: float
    """Estimated probability outside of the panels."""

    @classmethod
    def of(cls, kinds: Kinds, gridded: Flags, windows: Windows, num_nodes: int) -> Grid:
        """About so many nodes in each window; where other reals need panels, on as many panels."""
        others = gridded.copy()
        others[windows.real] = False
        num_gridded, degree = int(np.count_nonzero(gridded)), DEGREE
        scale, row = Scale.linear(num_gridded), np.cumsum(gridded) - 1
        if others.any():
            panels = resolving_edges(kinds, others)
            edges = np.zeros((num_gridded, panels.shape[1]))
            edges[row[others]] = panels
        else:
            num_panels = -(-num_nodes // WIDEST_DEGREE)
            edges, degree = np.zeros((num_gridded, num_panels + 1)), num_nodes // num_panels
        at, inner = row[windows.real], windows.inner()
        scale.centre[at], scale.unit[at] = inner.centre, inner.unit
        scale.middle[at], scale.half[at], scale.bend[at] = inner.middle, inner.half, inner.bend
        edges[at] = np.linspace(-1.0, 1.0, edges.shape[1])
        return cls(gridded, edges, scale, degree, not others.any(), windows.beyond)

    @property
    def num_nodes(self) -> int:
        return (self.edges.shape[1] - 1) * self.degree

    def axes(self, kinds: Kinds) -> Axes:
        return Axes.of(kinds, self.gridded, self.edges, self.scale, self.degree)

    def moved(self, reals: Flags) -> Grid:
        """Other nodes of the same number for some reals (variable,): inner edges are moved."""
        edges = self.edges.copy()
        step = np.diff(edges, axis=1)
        edges[reals[self.gridded], 1:-1] += MOVED * step[reals[self.gridded], 1:]
        return replace(self, edges=edges)

    def finer(self) -> Grid:
        more = int(np.ceil(FINER * self.degree))
        if self.grows and more <= WIDEST_DEGREE:
            return replace(self, degree=more)
        return replace(self, edges=halved(self.edges))


@dataclass(frozen=True, slots=True, eq=False)
class SettledGrid:
    """A grid, and what another one changes."""

    grid: Grid
    compared: int
    """Nodes of each real on the other grid."""
    error: float
    settled: bool


def beside_free(kinds: Kinds, gridded: Flags) -> Flags:
    """(variable,): reals on nodes in functions that have free reals besides."""
    found = np.zeros(len(gridded), dtype=bool)
    for group in kinds.functions:
        found[group.reals[~gridded[group.reals].all(axis=1)]] = True
    return found & gridded


def improper_but_closed(kinds: Kinds, reals: Integrated) -> Ids:
    """Reals bounded on both sides, in components without a finite integral."""
    return reals.improper[is_closed(kinds.graph.variables)[reals.improper]]


def improper_but_bounded(kinds: Kinds, reals: Integrated) -> Ids:
    """The same; if there are none, reals with a bound on one side."""
    closed = improper_but_closed(kinds, reals)
    return (
        closed
        if len(closed)
        else reals.improper[is_one_sided(kinds.graph.variables)[reals.improper]]
    )


def settled_grid(
    kinds: Kinds,
    gridded: Flags,
    placed: Flags,
    max_entries: int,
    tolerance: float,
    meter: Meter,
) -> SettledGrid | Integrated:
    """The coarsest grid that a finer one confirms, with nodes of some reals where their probability
    is; or the reals, where the integral is infinite."""
    reals = np.flatnonzero(placed)
    coupled = most_coupled(kinds, reals)
    num_joint, most = coupled, MOST_NODES
    if (gridded & ~placed).any():
        num_joint, most = most_coupled(kinds, np.flatnonzero(gridded)), MOST_BESIDE
    windows = _windows(kinds, gridded, reals, coupled, max_entries, tolerance, meter)
    if isinstance(windows, Integrated):
        return windows
    grid = Grid.of(kinds, gridded, windows, nodes_within(FIRST_NODES, coupled, MOST_FIRST))
    before: PassResult | None = None
    error, settled, coarser = np.inf, False, grid
    while True:
        meter.progress(0.0, f"choosing nodes: {grid.num_nodes} each")
        try:
            found = _integrated(kinds, grid.axes(kinds), max_entries, meter)
            if len(improper_but_bounded(kinds, found)):
                return found
            outcome = _sums(kinds, found, max_entries, meter)
        except IntractableError:
            if not np.isfinite(error):
                raise
            return SettledGrid(coarser, grid.num_nodes, error, settled)
        if before is not None:
            error, settled = difference(before, outcome, tolerance)
            if settled or float(grid.finer().num_nodes) ** num_joint > most:
                chosen = coarser if settled else grid
                other = grid if settled else coarser
                is_close = most == MOST_BESIDE and error <= CLOSE
                return SettledGrid(chosen, other.num_nodes, error, settled or is_close)
        before, coarser, grid = outcome, grid, grid.finer()


def _windows(
    kinds: Kinds,
    gridded: Flags,
    reals: Ids,
    coupled: int,
    max_entries: int,
    tolerance: float,
    meter: Meter,
) -> Windows | Integrated:
    """Windows of some reals on nodes; or the reals, where the integral is infinite everywhere."""
    num_nodes = nodes_within(SCANNED, coupled, MOST_SCANNED)
    infinite: list[Integrated] = []

    others = gridded.copy()
    others[reals] = False

    def joint(grid: Grid) -> Integrated | None:
        found = _integrated(kinds, grid.axes(kinds), max_entries, meter)
        if found.is_infinite and len(improper_but_bounded(kinds, found)):
            infinite.append(found)
            return None
        return found.without_failed()

    def scan(windows: Windows) -> Scan | None:
        grid = Grid.of(kinds, gridded, windows, num_nodes)
        what = f"seeking the probability of {len(reals)} reals on {num_nodes} nodes"
        meter.progress(0.0, what)
        found = joint(grid)
        if found is None:
            return None
        at = found.axes.row[windows.real]
        u = windows.scale.place(found.axes.nodes[at])
        log_weights = np.log(found.axes.weights[at] / windows.scale.slope(u))
        if others.any() and found.promoted is None:
            other = joint(grid.moved(others))
            if other is None:
                return None
            log_density = _resolved(
                kinds, (found, other), at, log_weights, max_entries, tolerance, meter
            )
            return Scan(u, log_density, log_density)
        log_probs: list[FloatArray] = []
        for power in POWERS if found.promoted is None else POWERS[:1]:
            log_probs.append(_log_probs(kinds, found, power, max_entries, meter)[at])
            if np.isfinite(log_probs[-1]).all():
                break
        return Scan(u, log_probs[0] - log_weights, log_probs[-1] - log_weights)

    floor = tolerance * (CAREFUL if coupled < MANY_COUPLED else 1.0)
    return find_windows(kinds, reals, floor, scan) or infinite[0]


def _integrated(kinds: Kinds, axes: Axes, max_entries: int, meter: Meter) -> Integrated:
    """The free reals in closed form; on coarse lattices where that would be too much."""
    with contextlib.suppress(IntractableError):
        few = min(max_entries, MOST_CLOSED)
        return integrate_reals(kinds, axes, few, maximise=False, moments=False)
    return integrate_reals(
        kinds, axes, max_entries, maximise=False, moments=False, promote=True, meter=meter
    )


def _resolved(
    kinds: Kinds,
    pair: tuple[Integrated, Integrated],
    at: Ids,
    log_weights: FloatArray,
    max_entries: int,
    tolerance: float,
    meter: Meter,
) -> FloatArray:
    """(real, node): log-densities of the highest power of the joint density that other nodes of the
    reals beside confirm.

    Of a ridge that is narrower than the distance of nodes only points would be seen, and windows
    around them would lose the rest of it. A power is wider.
    """
    cut = -float(np.log(tolerance * CAREFUL))
    for power in RESOLVED_POWERS:
        one, two = (
            power * (_log_probs(kinds, each, power, max_entries, meter)[at] - log_weights)
            for each in pair
        )
        log_density = np.maximum(one, two)
        top = log_density.max(axis=1, keepdims=True)
        gap = np.abs(np.maximum(one, top - cut) - np.maximum(two, top - cut))
        if gap.max() <= UNRESOLVED:
            break
    return log_density


def _log_probs(
    kinds: Kinds, reals: Integrated, power: float, max_entries: int, meter: Meter
) -> FloatArray:
    """(gridded, node): logarithms of the probabilities of nodes, or, of a power of the joint
    density, so many times smaller: far nodes then do not underflow. For one real, both agree."""
    outcome = _sums(kinds, reals.to_the_power(power), max_entries, meter)
    assert outcome.marginals is not None
    with np.errstate(divide="ignore"):
        return np.log(outcome.reals.axes.on_nodes(outcome.marginals)) / power


def _sums(kinds: Kinds, reals: Integrated, max_entries: int, meter: Meter) -> PassResult:
    """Sums with marginals of the axes, without reports of progress."""
    quiet = replace(meter, progress=silent)
    outcome = sum_resolved(kinds, reals, max_entries, marginals=True, meter=quiet)
    meter.seconds = quiet.seconds
    return outcome


def difference(before: PassResult, after: PassResult, tolerance: float) -> tuple[float, bool]:
    """The largest difference of two grids, and whether it is within the tolerance: in log Z, in
    probabilities of states, and in means relative to the interval's width."""
    change = abs(before.log_total - after.log_total)
    settled = change <= tolerance + 8 * EPS * abs(after.log_total)
    states, means = [], []
    for outcome in (before, after):
        axes = outcome.reals.axes
        assert outcome.marginals is not None
        states.append(outcome.marginals[np.repeat(outcome.reals.is_state, axes.num_states)])
        on_nodes = axes.on_nodes(outcome.marginals)
        means.append((on_nodes * axes.nodes).sum(axis=1) / axes.width)
    largest = max(float(np.abs(pair[0] - pair[1]).max(initial=0.0)) for pair in (states, means))
    return max(change, largest), settled and largest <= tolerance
