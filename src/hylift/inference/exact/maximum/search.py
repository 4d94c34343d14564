"""The most probable joint assignment."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np

from hylift.errors import IntractableError
from hylift.graph import Conditioned, Evidence
from hylift.inference.exact.elimination import Flags, FloatArray, Ids, scope_edges
from hylift.inference.exact.integral import check_closed, in_functions
from hylift.inference.exact.integrated import Integrated, integrate_reals
from hylift.inference.exact.maximum.branch_and_bound import best_states, negligible_gap
from hylift.inference.exact.maximum.dominated import without_dominated
from hylift.inference.exact.meter import Meter
from hylift.inference.exact.nodes.axes import Axes, is_closed, resolving_edges
from hylift.inference.exact.nodes.grids import improper_but_closed
from hylift.inference.exact.one_pass import PassResult, sum_states
from hylift.numerics.quadrature import halved
from hylift.numerics.sparse import connected
from hylift.posterior.answers import Kind
from hylift.progress import Progress
from hylift.rewrite.kinds import Kinds

BestStates = Callable[[Kinds, Integrated], PassResult]


def maximise(
    kinds: Kinds, *, max_entries: int, seconds: float, progress: Progress
) -> tuple[FloatArray, float, Kind]:
    """Values of all hidden variables, their energy, and whether they are certainly the best: where
    every bounded real has its unbounded optimum inside its interval. Otherwise bounded reals are
    searched on a grid, and polished given the best discrete states; so are, on lattices, reals that
    depend on too many states."""

    def by_tables(kinds: Kinds, reals: Integrated) -> PassResult:
        return sum_states(
            kinds, reals, max_entries, maximise=True, marginals=False,
            meter=Meter(progress, what="maximising"),
        )  # fmt: skip

    gridded, forgiven, on_lattice = in_functions(kinds), 0.0, False
    try:
        values = _search(kinds, gridded, max_entries, by_tables)
    except IntractableError as refusal:
        try:
            values, gridded, forgiven = _search_beyond(
                kinds, gridded, max_entries, by_tables, seconds, refusal
            )
        except IntractableError as second:
            values, on_lattice = _search_lattices(kinds, max_entries, by_tables, second), True
    energy = -kinds.graph.log_density(values)
    unsure = on_lattice or gridded.any() or forgiven > negligible_gap(energy)
    return values, energy, "estimate" if unsure else "exact"


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
) -> FloatArray:
    """The best assignment on lattices of reals that depend on too many states, then the best reals
    given its states; raises the refusal where lattices do not help."""
    none = np.zeros(kinds.graph.num_variables, dtype=bool)
    axes = Axes.of(kinds, none, resolving_edges(kinds, none))
    if in_functions(kinds).any():
        raise refusal
    try:
        reals = integrate_reals(kinds, axes, max_entries, maximise=True, promote=True)
        if reals.promoted is None:
            raise refusal
        fine = reals.promoted.refined(reals.promoted.collapsed.first_windows())
        values = _values(by_tables(kinds, reals.on(fine, max_entries)))
    except IntractableError:
        raise refusal from None
    states = np.flatnonzero(kinds.graph.variables.num_states > 0)
    known = Conditioned.of(kinds.graph.observe(Evidence.of(states, values[states])))
    rest = Kinds.of(known.graph)
    values[known.hidden] = _search(rest, in_functions(rest), max_entries, by_tables)
    return values


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
