"""The most probable joint assignment."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np

from hylift.errors import IntractableError
from hylift.inference.exact.bounds import grid_check, improper_but_closed, in_functions
from hylift.inference.exact.elimination import Flags, FloatArray, Ids, Ids32, connected, scope_edges
from hylift.inference.exact.grid import halved, make_grid, resolving_edges
from hylift.inference.exact.integrate import Outcome, Reals, integrate_reals, sum_states
from hylift.inference.exact.maximum.branch_and_bound import best_states, negligible_gap
from hylift.inference.exact.maximum.dominated import without_dominated
from hylift.inference.exact.parts import Parts, take_apart
from hylift.posterior.answers import Kind
from hylift.progress import Progress

BestStates = Callable[[Parts, Reals], Outcome]


def maximise(
    parts: Parts, *, max_entries: int, seconds: float, progress: Progress
) -> tuple[FloatArray, float, Kind]:
    """Values of all hidden variables, their energy, and whether they are certainly the best: where
    every bounded real has its unbounded optimum inside its interval. Otherwise bounded reals are
    searched on a grid, and polished given the best discrete states."""

    def by_tables(parts: Parts, reals: Reals) -> Outcome:
        return sum_states(
            parts, reals, max_entries, maximise=True, marginals=False,
            advance=lambda share: progress(share, "maximising"),
        )  # fmt: skip

    gridded, forgiven = in_functions(parts), 0.0
    try:
        values = _search(parts, gridded, max_entries, by_tables)
    except IntractableError as refusal:
        values, gridded, forgiven = _search_beyond(
            parts, gridded, max_entries, by_tables, seconds, refusal
        )
    energy = -parts.graph.log_density(values)
    unsure = gridded.any() or forgiven > negligible_gap(energy)
    return values, energy, "estimate" if unsure else "exact"


def _search(parts: Parts, gridded: Flags, max_entries: int, best: BestStates) -> FloatArray:
    """The best assignment; adds to `gridded` (real,) the reals that have to be searched on a grid.

    `best` finds the best joint state once the other reals have been maximised over.
    """
    while True:
        grid_check(parts, gridded)
        grid = make_grid(parts, gridded, halved(resolving_edges(parts, gridded)))
        reals = integrate_reals(parts, grid, max_entries, maximise=True)
        outside = improper_but_closed(parts, reals)
        if not len(outside):
            values = _values(parts, best(parts, reals))
            x = values[parts.real]
            outside = np.flatnonzero((x < parts.lower) | (x > parts.upper))
            if not len(outside):
                break
        gridded[outside] = True
    if gridded.any():
        component = real_components(parts)
        values = _polish(parts, values, np.flatnonzero(np.isin(component, component[gridded])))
    return values


def _search_beyond(
    whole: Parts,
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
    parts = whole
    if reduced.num_dropped:
        parts = take_apart(reduced.graph)
        gridded = in_functions(parts)

    def best(parts: Parts, reals: Reals) -> Outcome:
        if reduced.num_dropped:
            try:
                return by_tables(parts, reals)
            except IntractableError:
                pass
        return best_states(parts, reals, seconds)

    try:
        values = _search(parts, gridded, max_entries, best)
    except IntractableError as second:
        more = "" if str(second) == str(refusal) else f" {second}"
        raise IntractableError(
            f"{refusal} For the most probable assignment, dropping dominated states fixed "
            f"{reduced.num_fixed} of {len(whole.discrete)} discrete variables.{more}"
        ) from None
    if reduced.num_dropped:
        values = reduced.spread(values)
    return values, gridded, reduced.forgiven


def _values(parts: Parts, outcome: Outcome) -> FloatArray:
    """The assignment (variable,) that a maximising pass has found."""
    assert outcome.state is not None
    values = np.empty(parts.graph.num_variables)
    states = outcome.state[: len(parts.discrete)]
    values[parts.discrete] = states
    grid = outcome.reals.grid
    nodes = outcome.state[len(parts.discrete) :]
    values[parts.real[grid.real]] = grid.nodes[np.arange(len(grid.real)), nodes]
    components, gaussian = outcome.reals.components, outcome.reals.gaussian
    joint = components.joint_states(outcome.state, grid.num_states)
    at = gaussian.real_ptr[:-1] + joint[components.of_step]
    values[parts.real[outcome.reals.of_step]] = gaussian.mean[at]
    return values


def real_components(parts: Parts) -> Ids32:
    """(real,): the component of each real, where factors couple all their reals."""
    num_reals = len(parts.real)
    edges = scope_edges([f.real for f in (*parts.quadratics, *parts.functions)], num_reals)
    return connected(num_reals, edges)


SWEEPS = 100
"""Most rounds over all reals in which each is moved to the top of a parabola."""


def _polish(parts: Parts, values: FloatArray, reals: Ids) -> FloatArray:
    """Climbs the true log-density over some reals, everything else fixed.

    First along gradients, then real by real to the top of the parabola through three points,
    which is exact where factors are quadratic. Lengths are measured in widths of the intervals.
    """
    from scipy.optimize import minimize  # slow to import, and rarely needed

    ids = parts.real[reals]
    lower, upper = parts.lower[reals], parts.upper[reals]
    closed = parts.is_closed[reals]
    scale = np.where(closed, upper - lower, 1.0 + np.abs(values[ids]))
    box = list(zip((lower - values[ids]) / scale, (upper - values[ids]) / scale, strict=True))

    def energy(moved: FloatArray) -> float:
        trial = values.copy()
        trial[ids] = np.clip(values[ids] + scale * moved, lower, upper)
        return -parts.graph.log_density(trial)

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
    """Where one coordinate may do better: the lowest point of a parabola, or an end."""
    step = np.zeros(len(at))
    step[i] = 1e-3
    left, right = energy(at - step), energy(at + step)
    ends = [end for end in (low, high) if np.isfinite(end)]
    bend = left - 2 * here + right
    if not np.isfinite(bend) or bend <= 0:
        return ends
    return [float(np.clip(at[i] + 1e-3 * 0.5 * (left - right) / bend, low, high)), *ends]
