"""The most probable joint assignment."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from hylift.errors import IntractableError
from hylift.graph import Conditioned, Evidence
from hylift.inference.exact.elimination import Flags, FloatArray, Ids, scope_edges
from hylift.inference.exact.integral import check_closed, in_functions
from hylift.inference.exact.integrated import (
    Integrated,
    OnLattice,
    integrate_reals,
    put_on_lattice,
)
from hylift.inference.exact.kernels.rows import LOST
from hylift.inference.exact.maximum.branch_and_bound import best_states, negligible_gap
from hylift.inference.exact.maximum.dominated import without_dominated
from hylift.inference.exact.meter import Meter
from hylift.inference.exact.nodes.axes import Axes, is_closed, resolving_edges
from hylift.inference.exact.nodes.grids import improper_but_closed
from hylift.inference.exact.one_pass import PassResult, sum_states
from hylift.inference.search.polish import polish
from hylift.numerics.quadrature import halved
from hylift.numerics.segments import counts_up, ranges
from hylift.numerics.sparse import connected
from hylift.posterior.answers import Kind
from hylift.progress import Progress, silent
from hylift.rewrite.kinds import Kinds

BestStates = Callable[[Kinds, Integrated], PassResult]


def maximise(
    kinds: Kinds, *, max_entries: int, seconds: float, progress: Progress
) -> tuple[FloatArray, float, Kind, float]:
    """Values of all hidden variables, their energy, whether they are certainly the best, and how
    much better others may be.

    They are the best where every bounded real has its unbounded optimum inside its interval.
    Otherwise bounded reals are searched on a grid, and polished given the best discrete states; so
    are, on lattices, reals that depend on too many states, with a bound on what others can have.
    """

    def by_tables(kinds: Kinds, reals: Integrated) -> PassResult:
        return sum_states(
            kinds, reals, max_entries, maximise=True, marginals=False,
            meter=Meter(progress, what="maximising"),
        )  # fmt: skip

    gridded, forgiven, gap = in_functions(kinds), 0.0, 0.0
    try:
        values = _search(kinds, gridded, max_entries, by_tables)
    except IntractableError as refusal:
        try:
            values, gridded, forgiven = _search_beyond(
                kinds, gridded, max_entries, by_tables, seconds, refusal
            )
        except IntractableError as second:
            values, gap = _search_lattices(kinds, max_entries, by_tables, second)
    if kinds.functions:  # which may have peaks between all nodes
        values = polish(kinds.graph, values[None], seconds=seconds).values
    energy = -kinds.graph.log_density(values)
    unsure = gridded.any() or forgiven > negligible_gap(energy)
    kind: Kind = "estimate" if unsure or gap > 0 else "exact"
    return values, energy, kind, np.inf if unsure else gap


def _search(kinds: Kinds, gridded: Flags, max_entries: int, best: BestStates) -> FloatArray:
    """The best assignment; adds to `gridded` (variable,) the reals that must be put on nodes.

    `best` finds the best joint state once the other reals have been maximised over.
    """
    variables = kinds.graph.variables
    while True:
        check_closed(kinds, gridded)
        axes = Axes.of(kinds, gridded, halved(resolving_edges(kinds, gridded)))
        reals = integrate_reals(kinds, axes, max_entries, maximise=True)
        outside = improper_but_closed(kinds, reals)
        if not len(outside):
            values = _values(best(kinds, reals))
            outside = np.flatnonzero((values < variables.lower) | (values > variables.upper))
            if not len(outside):
                break
        gridded[outside] = True
    if gridded.any():
        values = _polish(kinds, values, _coupled(kinds, gridded))
    return values


def _search_beyond(
    whole: Kinds,
    gridded: Flags,
    max_entries: int,
    by_tables: BestStates,
    seconds: float,
    refusal: IntractableError,
) -> tuple[FloatArray, Flags, float]:
    """The best assignment of a model too large for tables, the reals on a grid, and how much worse
    than the best rounding may have made it.

    Drops dominated states; where the rest is still too large, branch and bound finds the best.
    """
    reduced = without_dominated(whole.graph)
    kinds = whole
    if reduced.num_dropped:
        kinds = Kinds.of(reduced.graph)
        gridded = in_functions(kinds)

    def best(kinds: Kinds, reals: Integrated) -> PassResult:
        if reduced.num_dropped:
            try:
                return by_tables(kinds, reals)
            except IntractableError:
                pass
        return best_states(kinds, reals, seconds)

    try:
        values = _search(kinds, gridded, max_entries, best)
    except IntractableError as second:
        num_discrete = np.count_nonzero(whole.graph.variables.num_states)
        more = "" if str(second) == str(refusal) else f" {second}"
        raise IntractableError(
            f"{refusal} For the most probable assignment, dropping dominated states fixed "
            f"{reduced.num_fixed} of {num_discrete} discrete variables.{more}"
        ) from None
    if reduced.num_dropped:
        values = reduced.spread(values)
    return values, gridded, reduced.forgiven


def _search_lattices(
    kinds: Kinds, max_entries: int, by_tables: BestStates, refusal: IntractableError
) -> tuple[FloatArray, float]:
    """The best assignment on lattices of reals that depend on too many states, then the best reals
    given its states, and how much better others may be; raises the refusal where lattices do not
    help."""
    none = np.zeros(kinds.graph.num_variables, dtype=bool)
    axes = Axes.of(kinds, none, resolving_edges(kinds, none))
    if in_functions(kinds).any():
        raise refusal
    try:
        reals = integrate_reals(kinds, axes, max_entries, maximise=True, promote=True)
        if reals.promoted is None:
            raise refusal
        windows = reals.promoted.collapsed.first_windows()
        found = by_tables(kinds, reals.on(reals.promoted.refined(windows), max_entries))
    except IntractableError:
        raise refusal from None
    values = _values(found)
    states = np.flatnonzero(kinds.graph.variables.num_states > 0)
    known = Conditioned.of(kinds.graph.observe(Evidence.of(states, values[states])))
    rest = Kinds.of(known.graph)
    values[known.hidden] = _search(rest, in_functions(rest), max_entries, by_tables)
    least = kinds.graph.log_density(values)
    is_bounded = np.isfinite(kinds.graph.variables.lower) | np.isfinite(kinds.graph.variables.upper)
    promoted = found.reals.promoted
    assert promoted is not None
    if is_bounded.any() or not promoted.is_proven:
        return values, np.inf
    gap = found.log_total + _between(promoted) - least
    if gap > 0 and _is_proven(kinds, reals, windows, values, least, min(max_entries, PROOF)):
        gap = 0.0
    return values, max(gap, 0.0)


PROOF = 2**25
"""Entries of tables up to which the best states are proven to be the best."""
APART, POWER = 0.02, 300.0
"""Log-density that lattices of a proof may miss between their nodes, and the power of densities in
it. Where a state that is not the best has the probability p, its best joint state is worse by
-log p / POWER; sums lose what is below e^`LOST`."""


def _between(promoted: OnLattice) -> float:
    """A bound on how far log-densities between the nodes of a lattice exceed those at nodes.

    The nearest node is half a spacing away: ½ δᵀ J δ, of the largest precision.
    """
    collapsed, spacing = promoted.collapsed, promoted.lattice.spacing
    return float((collapsed.eigenvalues * (spacing / collapsed.unit) ** 2).sum() / 8)


def _is_proven(
    kinds: Kinds,
    reals: Integrated,
    windows: FloatArray,
    values: FloatArray,
    least: float,
    max_entries: int,
) -> bool:
    """True if no other discrete states have so large a density: sums of densities to a high power
    bound their maxima."""
    promoted = reals.promoted
    assert promoted is not None
    total = promoted.collapsed.eigenvalues.sum()
    fine = promoted.refined(windows, most=float(np.sqrt(8 * APART / total)))
    high = replace(fine, collapsed=promoted.collapsed.to_the_power(POWER))
    groups = [replace(g, multiplicity=POWER * g.multiplicity) for g in reals.tables]
    try:
        powers = put_on_lattice(reals.bare_axes, groups, high, max_entries)
        found = sum_states(
            kinds, powers, max_entries, maximise=False, marginals=True, meter=Meter(silent)
        )
    except IntractableError:
        return False
    assert found.marginals is not None
    constant = kinds.log_constant + powers.component_tables[1]
    ids = np.flatnonzero(reals.is_state)
    count = reals.axes.num_states[ids].astype(np.int64)
    probs = found.marginals[ranges(found.reals.axes.first[ids], count)]
    others = probs[counts_up(count) != np.repeat(values[ids], count)].max(initial=0.0)
    others += np.exp(LOST) * powers.axes.num_states.sum()
    most = (found.log_total - constant + np.log(others)) / POWER
    return bool(most + constant + _between(fine) < least - negligible_gap(least))


def _values(outcome: PassResult) -> FloatArray:
    """The assignment (variable,) that a maximising pass has found."""
    assert outcome.state is not None
    axes, components = outcome.reals.axes, outcome.reals.components
    values = outcome.state.astype(np.float64)
    values[axes.real] = axes.nodes[np.arange(len(axes.real)), outcome.state[axes.real]]
    if (promoted := outcome.reals.promoted) is not None:
        lattice = promoted.lattice
        at = lattice.ptr[:-1] + outcome.state[lattice.real]
        values[lattice.real] = 0.5 * (lattice.low + lattice.high)[at]
    joint = components.joint_states(outcome.state)
    gaussian = outcome.reals.gaussian
    values[components.real] = gaussian.mean[gaussian.real_ptr[:-1] + joint[components.of_step]]
    return values


def _coupled(kinds: Kinds, some: Flags) -> Ids:
    """Reals that factors couple to some reals (variable,), and these."""
    num_variables = kinds.graph.num_variables
    edges = scope_edges([g.reals for g in (*kinds.quadratics, *kinds.functions)], num_variables)
    component = connected(num_variables, edges)
    return np.flatnonzero(np.isin(component, component[some]))


SWEEPS = 100
"""Most rounds over all reals in which each is moved to the top of a parabola."""


def _polish(kinds: Kinds, values: FloatArray, ids: Ids) -> FloatArray:
    """Climbs the true log-density over some reals, everything else fixed.

    First along gradients, then real by real to the top of the parabola through three points,
    which is exact where factors are quadratic. Lengths are measured in widths of the intervals.
    """
    from scipy.optimize import minimize  # slow to import, and rarely needed

    variables = kinds.graph.variables
    lower, upper, closed = variables.lower[ids], variables.upper[ids], is_closed(variables)[ids]
    scale = np.where(closed, upper - lower, 1.0 + np.abs(values[ids]))
    box = list(zip((lower - values[ids]) / scale, (upper - values[ids]) / scale, strict=True))

    def energy(moved: FloatArray) -> float:
        trial = values.copy()
        trial[ids] = np.clip(values[ids] + scale * moved, lower, upper)
        return -kinds.graph.log_density(trial)

    start = np.zeros(len(ids))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # differences of infinite energies
        found = minimize(energy, start, method="L-BFGS-B", bounds=box, options={"ftol": 1e-15})
    moved, best = (found.x, found.fun) if found.fun < energy(start) else (start, energy(start))
    for _ in range(SWEEPS):
        before = best
        for i, (low, high) in enumerate(box):
            for target in _parabola_top(energy, moved, best, i, low, high):
                trial = moved.copy()
                trial[i] = target
                if energy(trial) < best:
                    moved, best = trial, energy(trial)
        if not best < before - 1e-14 * abs(before):
            break
    better = values.copy()
    better[ids] = np.clip(values[ids] + scale * moved, lower, upper)
    return better


def _parabola_top(
    energy: Callable[[FloatArray], float],
    at: FloatArray,
    here: float,
    i: int,
    low: float,
    high: float,
) -> list[float]:
    """Values of one coordinate to try: the lowest point of a parabola, and the ends."""
    step = np.zeros(len(at))
    step[i] = 1e-3
    left, right = energy(at - step), energy(at + step)
    ends = [end for end in (low, high) if np.isfinite(end)]
    bend = left - 2 * here + right
    if not np.isfinite(bend) or bend <= 0:
        return ends
    return [float(np.clip(at[i] + 1e-3 * 0.5 * (left - right) / bend, low, high)), *ends]
