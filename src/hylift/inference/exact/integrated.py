"""Reals integrated out (or maximised over): in closed form, or as tables over lattices."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, replace

import numpy as np

from hylift.errors import IntractableError
from hylift.graph import FactorGroup
from hylift.inference.exact.elimination import Elimination, Flags, FloatArray, Ids
from hylift.inference.exact.gaussian import (
    Components,
    GaussianStates,
    find_components,
    solve_states,
)
from hylift.inference.exact.lattices.collapsed import DIVERGES, RESOLUTION, Collapsed
from hylift.inference.exact.lattices.lattice import Cells, Lattice
from hylift.inference.exact.lattices.promotion import to_promote
from hylift.inference.exact.meter import OBSERVE_MORE, Meter
from hylift.inference.exact.nodes.axes import Axes, put_on_axes
from hylift.inference.terms import Terms
from hylift.numerics.segments import ranges
from hylift.proper.check import check_proper
from hylift.rewrite.kinds import Kinds

COARSE = 2.5
"""Spacing of the first lattice, in standard deviations: good enough to see where a real can be."""
MOST_COARSE, NUM_WIDE = 1000, 64
"""Nodes of a first lattice; in a wider window, cells on each side of its middle."""
UNPROVEN = 1e6
"""Standard deviations that cells reach where nothing proves how far they must."""


@dataclass(frozen=True, slots=True, eq=False)
class OnLattice:
    """Reals that are summed over a lattice, and their factors."""

    collapsed: Collapsed
    lattice: Lattice
    epsilon: float = np.inf
    """The relative error of the sum over the whole lattice, at most; inf of a coarse one."""
    is_proven: bool = False
    """True if next to nothing lies beyond the last cells, in any joint state."""
    order: Elimination | None = None
    """In which axes are eliminated, if that is known."""

    @classmethod
    def coarse(
        cls, collapsed: Collapsed, windows: FloatArray, order: Elimination | None = None
    ) -> OnLattice:
        """A lattice that shows where reals can be in these windows (promoted, 2): over nodes, or
        over cells where a window is wide."""
        spacing = COARSE * collapsed.unit
        points = np.ptp(windows, axis=1) / spacing
        is_wide = points > MOST_COARSE
        cells = Cells.equal(np.where(is_wide, NUM_WIDE, 0), points + 2)
        middle = windows.mean(axis=1)
        nowhere = np.stack([middle, middle - 2 * spacing], axis=1)
        nodes = np.where(is_wide[:, None], nowhere, windows)
        widths = collapsed.widths() if is_wide.any() else None
        lattice = Lattice.of(collapsed.real, collapsed.row, spacing, nodes, cells, widths)
        return cls(collapsed, lattice, order=order)

    def refined(
        self, windows: FloatArray, order: Elimination | None = None, most: float = np.inf
    ) -> OnLattice:
        """The same reals on a lattice that resolves them, in these windows (promoted, 2); most:
        the largest spacing in units."""
        collapsed, before = self.collapsed, self.lattice
        scale, epsilon = collapsed.resolution()
        scale = min(scale, most)
        reach = collapsed.reach(windows.mean(axis=1))
        far = collapsed.unit * UNPROVEN if reach is None else reach
        spacing, widths = scale * collapsed.unit, collapsed.widths()
        cells = Cells.reaching(far / spacing)
        lattice = Lattice.of(before.real, before.row, spacing, windows, cells, widths)
        return OnLattice(collapsed, lattice, epsilon, reach is not None, order)

    def wider(self, excess: FloatArray, order: Elimination | None) -> OnLattice:
        """The same with other windows and cells, where those of an excess (state,) are too large
        to bound what is in them."""
        before = self.lattice
        windows, cells = before.refined(excess)
        lattice = Lattice.of(before.real, before.row, before.spacing, windows, cells, before.widths)
        return replace(self, lattice=lattice, order=order)


@dataclass(frozen=True, slots=True, eq=False)
class Integrated:
    """The free reals integrated out, or maximised over, in every state of the axes."""

    axes: Axes
    tables: list[FactorGroup]  # of the axes
    components: Components  # of the free reals
    gaussian: GaussianStates
    promoted: OnLattice | None = None

    @property
    def bare_axes(self) -> Axes:
        """The axes without the lattice."""
        if self.promoted is None:
            return self.axes
        num_states = self.axes.num_states.copy()
        num_states[self.promoted.lattice.real] = 0
        return replace(self.axes, num_states=num_states)

    def on(self, promoted: OnLattice, max_entries: int, meter: Meter | None = None) -> Integrated:
        """The same reals on another lattice."""
        return put_on_lattice(self.bare_axes, self.tables, promoted, max_entries, meter)

    @property
    def is_state(self) -> Flags:
        """(variable,): True for a discrete variable."""
        return (self.bare_axes.num_states > 0) & (self.axes.row < 0)

    @property
    def improper(self) -> Ids:
        """Reals in components whose integral diverges in some state."""
        states = np.diff(self.gaussian.state_ptr)
        owner = np.repeat(np.arange(len(states)), states)
        bad = np.unique(owner[self.gaussian.failed >= 0])
        return self.components.real[np.isin(self.components.of_step, bad)]

    @property
    def is_infinite(self) -> bool:
        """True if some component has no finite integral in any state."""
        gaussian = self.gaussian
        if not len(gaussian.failed):
            return False
        finite = np.add.reduceat(gaussian.failed < 0, gaussian.state_ptr[:-1])
        return bool((finite == 0).any())

    def without_failed(self) -> Integrated:
        """The same, with probability 0 where the integral diverges, unless that is everywhere."""
        gaussian = self.gaussian
        if self.is_infinite or not (gaussian.failed >= 0).any():
            return self
        log_total = np.where(gaussian.failed >= 0, -np.inf, gaussian.log_total)
        failed = np.full_like(gaussian.failed, -1)
        return replace(self, gaussian=replace(gaussian, log_total=log_total, failed=failed))

    def to_the_power(self, power: float) -> Integrated:
        """The same with the joint density of the axes to a power."""
        if power == 1.0:
            return self
        tables = [replace(table, multiplicity=power * table.multiplicity) for table in self.tables]
        gaussian = replace(self.gaussian, log_total=power * self.gaussian.log_total)
        return replace(self, tables=tables, gaussian=gaussian)

    @property
    def component_tables(self) -> tuple[Terms, float]:
        """The log-totals of components that depend on axes, and the sum of the others."""
        gaussian, components = self.gaussian, self.components
        if self.promoted is not None:
            found = self.promoted.collapsed.of_components
        else:
            values = np.where(gaussian.failed >= 0, DIVERGES, gaussian.log_total)
            found = Terms(
                self.axes.num_states,
                components.discrete_ptr,
                components.discrete,
                np.diff(components.discrete_ptr).astype(np.int32),
                gaussian.state_ptr[:-1],
                np.ones(components.num_components),
                values,
            )
        on_axes = np.diff(found.slot_ptr) > 0
        constant = float(found.theta[found.base[~on_axes]].sum())
        return (found if on_axes.all() else found.take(np.flatnonzero(on_axes))), constant

    def weights(self, joints: FloatArray) -> FloatArray:
        """(state of a component,): its probability; joints: of all that depend on axes."""
        count, ptr = np.diff(self.gaussian.state_ptr), self.gaussian.state_ptr
        some = np.diff(self.components.discrete_ptr) > 0
        found = np.ones(ptr[-1])
        found[ranges(ptr[:-1][some], count[some])] = joints
        return found


def integrate_reals(
    kinds: Kinds,
    axes: Axes,
    max_entries: int,
    *,
    maximise: bool,
    moments: bool = True,
    promote: bool = False,
    meter: Meter | None = None,
) -> Integrated:
    """All free reals, component by component, in every state and node; not always with their
    moments where these are not asked for.

    promote: put reals on a coarse lattice where closed forms would have too many states
    """
    groups, quadratics = put_on_axes(kinds, axes, max_entries, maximise=maximise)
    terms = Terms.of(quadratics, axes.num_states)
    components = find_components(terms, axes.free)
    choices: list[Ids] = []
    if promote:
        choices = to_promote(terms, components, [g.scope for g in groups], max_entries)
    if not choices:
        _check_components(kinds, components, max_entries)
        if meter is not None:
            meter.begin(components.seconds(), len(axes.free))
        gaussian = solve_states(components, terms, maximise=maximise, moments=moments)
        return Integrated(axes, groups, components, gaussian)
    found: list[OnLattice] = []
    for promoted in choices:
        with contextlib.suppress(IntractableError) if found else contextlib.nullcontext():
            found.append(_coarse(kinds, axes, quadratics, promoted, maximise=maximise))
    cheapest = min(found, key=lambda on: on.collapsed.num_entries(on.lattice, COARSE / RESOLUTION))
    return put_on_lattice(axes, groups, cheapest, max_entries, meter)


def _coarse(
    kinds: Kinds, axes: Axes, quadratics: list[FactorGroup], promoted: Ids, *, maximise: bool
) -> OnLattice:
    """A coarse lattice of these reals in the windows where they are likely to be."""
    collapsed = Collapsed.of(quadratics, axes.num_states, axes.free, promoted, maximise=maximise)
    unit, windows = collapsed.unit, collapsed.first_windows()
    loose = np.isnan(unit) | ~np.isfinite(windows).all(axis=1)
    if loose.any():
        check_proper(kinds.graph)
        name = kinds.graph.variables.names[int(promoted[np.argmax(loose)])]
        raise IntractableError(f"a lattice of '{name}' would have no ends: nothing bounds it.")
    return OnLattice.coarse(collapsed, windows)


def put_on_lattice(
    axes: Axes,
    groups: list[FactorGroup],
    promoted: OnLattice,
    max_entries: int,
    meter: Meter | None = None,
) -> Integrated:
    """Everything as tables over the axes and a lattice."""
    collapsed, lattice = promoted.collapsed, promoted.lattice
    if meter is not None:
        meter.begin(collapsed.seconds(lattice), len(lattice.real))
    components, gaussian = collapsed.on(lattice, max_entries)
    axes = replace(axes, num_states=lattice.with_states(axes.num_states))
    return Integrated(axes, groups, components, gaussian, promoted)


def _check_components(kinds: Kinds, components: Components, max_entries: int) -> None:
    log_work = components.log_work()
    if not len(log_work) or np.logaddexp.reduce(log_work) <= np.log(max_entries):
        return
    worst = int(np.argmax(log_work))
    real = components.real[components.steps[components.ptr[worst]]]
    name = kinds.graph.variables.names[int(real)]
    num_reals = int(components.ptr[worst + 1] - components.ptr[worst])
    num_discrete = int(components.discrete_ptr[worst + 1] - components.discrete_ptr[worst])
    alone, among = f"'{name}' depends", f"{num_reals} coupled reals ('{name}' among them) depend"
    raise IntractableError(
        f"{among if num_reals > 1 else alone} on {num_discrete} discrete "
        f"variables or nodes with 2^{components.log_num_states[worst] / np.log(2):.1f} joint "
        "states: an exact answer has a Gaussian for each. "
        f"The limit is {max_entries:.3g} numbers.",
        OBSERVE_MORE,
    )
