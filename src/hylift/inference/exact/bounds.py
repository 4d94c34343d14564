"""Reals on intervals: left to the Gaussians where the bounds make no difference, and otherwise
integrated numerically, on ever finer grids, until the answer stands still."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from hylift.errors import IntractableError, UnsupportedError
from hylift.inference.exact.grid import DEGREE, Grid, make_grid
from hylift.inference.exact.integrate import Outcome, Reals, integrate_reals, sum_states
from hylift.inference.exact.parts import Parts
from hylift.inference.method import Progress
from hylift.posterior.answers import Kind
from hylift.potentials import ConditionalQuadratic

FIRST_PANELS = 4
MAX_PANELS = 4096

MAX_REFINED = 2**22
"""Largest table of a function of the user's own that is refined only to settle further digits."""

PANEL_SDS = 8.0
"""Widest panel, in standard deviations of the narrowest Gaussian that a real can have."""


@dataclass(frozen=True, slots=True, eq=False)
class Integral:
    """The last pass, with a bound on its error and what is worth knowing about it."""

    outcome: Outcome
    kind: Kind
    error: float
    notes: tuple[str, ...]


def integrate(
    parts: Parts, *, max_entries: int, tolerance: float, marginals: bool, progress: Progress
) -> Integral:
    """The exact integral over all hidden variables, and their marginals where asked for.

    First without bounds. Then reals that have probability beyond their bounds, or no finite
    integral without them, are put on a grid, and the others are Gaussian given its nodes.
    """
    bounded = bool(parts.has_bounds.any())
    gridded = in_functions(parts)
    while True:
        grid_check(parts, gridded)
        integral = _refine(parts, gridded, max_entries, tolerance, marginals or bounded, progress)
        if isinstance(integral, Reals):
            more = improper_but_closed(parts, integral)
        else:
            leak = _leaks(parts, integral.outcome) if bounded else np.zeros(len(parts.real))
            total = float(leak.sum())
            if total <= tolerance:
                return replace(integral, error=integral.error + total)
            more = np.flatnonzero(leak > tolerance / (2 * len(leak)))
        gridded[more] = True


def in_functions(parts: Parts) -> NDArray[np.bool_]:
    """(real,): whether it is in a factor that is not quadratic."""
    touched = np.zeros(len(parts.real), dtype=bool)
    for factors in parts.functions:
        touched[factors.real] = True
    return touched


def grid_check(parts: Parts, gridded: NDArray[np.bool_]) -> None:
    """Raises if a real that must be integrated numerically is not bounded on both sides."""
    endless = gridded & ~parts.is_closed
    if endless.any():
        name = parts.real_name(int(np.argmax(endless)))
        raise UnsupportedError(
            f"exact inference cannot integrate over '{name}': it is not bounded on both sides, "
            "and is in a factor that is not quadratic, or has probability beyond its one bound. "
            "Give it an interval."
        )


def _refine(
    parts: Parts,
    gridded: NDArray[np.bool_],
    max_entries: int,
    tolerance: float,
    marginals: bool,
    progress: Progress,
) -> Integral | Reals:
    """The integral on grids doubled until it converges, or the reals that have no finite one."""
    kind: Kind = "estimate" if in_functions(parts).any() else "exact"
    panels = resolving_panels(parts, gridded)
    best: Integral | None = None
    while True:
        grid = make_grid(parts, gridded, panels)
        enough = best is not None and best.kind == "estimate" and np.isfinite(best.error)
        limit = min(max_entries, MAX_REFINED) if enough else max_entries
        try:
            reals = integrate_reals(parts, grid, limit, maximise=False)
            if len(improper_but_closed(parts, reals)):
                return reals
            outcome = sum_states(
                parts, reals, limit, maximise=False, marginals=marginals,
                advance=_advance(progress, grid),
            )  # fmt: skip
        except IntractableError:
            if best is None or not enough:
                raise
            return replace(best, notes=(*best.notes, "A finer grid would cost too much."))
        if not gridded.any():
            return Integral(outcome, "exact", 0.0, ())
        error = np.inf if best is None else _difference(best.outcome, outcome)
        note = (
            f"{len(grid.real)} bounded reals were integrated numerically on {grid.nodes.shape[1]} "
            f"nodes each; half of them change log Z, or a mean in widths, by {error:.1e}."
        )
        best = Integral(outcome, kind, error, (note,))
        if error <= tolerance * max(1.0, abs(outcome.log_total)):
            return best
        if panels >= MAX_PANELS:
            raise IntractableError(
                f"numerical integration over {len(grid.real)} bounded reals does not settle on "
                f"{grid.nodes.shape[1]} nodes each: the density has features narrower than that"
            )
        panels *= 2


def _advance(progress: Progress, grid: Grid) -> Callable[[float], None]:
    """Adds up shares of one pass, and reports them."""
    done = 0.0
    nodes = f" on {grid.nodes.shape[1]} nodes" if len(grid.real) else ""

    def advance(share: float) -> None:
        nonlocal done
        done += share
        progress(min(done, 1.0), f"eliminating variables{nodes}")

    return advance


def improper_but_closed(parts: Parts, reals: Reals) -> NDArray[np.int64]:
    """Reals bounded on both sides, in components without a finite integral: for the grid."""
    improper = reals.improper
    return improper[parts.is_closed[improper]]


def resolving_panels(parts: Parts, gridded: NDArray[np.bool_]) -> int:
    """Panels on which no Gaussian of a quadratic factor can fall between the nodes.

    A real's precision given all others is at most the sum over its factors of the largest in any
    state; panels are a few of the corresponding standard deviations wide.
    """
    if not gridded.any():
        return FIRST_PANELS
    precision = np.zeros(len(gridded))
    for q in parts.quadratics:
        assert isinstance(q.potential, ConditionalQuadratic)
        for slot in range(q.real.shape[1]):
            own = -2 * q.potential.A[..., slot, slot].reshape(q.potential.num_rows, -1)
            largest = np.maximum(own.max(axis=1), 0.0)[q.row] * q.multiplicity
            np.add.at(precision, q.real[:, slot], largest)
    width = parts.upper - parts.lower
    needed = np.where(gridded, width, 0.0) * np.sqrt(precision) / PANEL_SDS
    worst = int(np.argmax(needed))
    if needed[worst] > MAX_PANELS:
        raise IntractableError(
            f"'{parts.real_name(worst)}' may be held to within {1 / np.sqrt(precision[worst]):.2g} "
            f"on an interval of width {width[worst]:.3g}: numerical integration would need more "
            f"than {DEGREE * MAX_PANELS} nodes. Narrow its interval, or leave it unbounded."
        )
    return max(FIRST_PANELS, 1 << int(np.ceil(np.log2(max(needed[worst], 1.0)))))


def _difference(before: Outcome, after: Outcome) -> float:
    """How far two grids disagree: in log Z, or in a mean relative to the interval's width."""
    change = abs(before.log_total - after.log_total)
    means = []
    for outcome in (before, after):
        grid = outcome.reals.grid
        assert outcome.marginals is not None
        on_grid = outcome.marginals[len(outcome.marginals) - grid.nodes.size :]
        means.append((on_grid.reshape(grid.nodes.shape) * grid.nodes).sum(axis=1))
    width = after.reals.grid.edges[:, -1] - after.reals.grid.edges[:, 0]
    return max(change, float((np.abs(means[0] - means[1]) / width).max()))


def _leaks(parts: Parts, outcome: Outcome) -> NDArray[np.float64]:
    """(real,): probability that the Gaussians, left unbounded, put beyond its bounds.

    The sum bounds the change of any probability, and of log Z, that the bounds could make.
    """
    gaussian, components = outcome.reals.gaussian, outcome.reals.components
    assert outcome.weights is not None
    count = np.diff(gaussian.state_ptr)[components.of_step]
    step = np.repeat(np.arange(len(count)), count)
    within = np.arange(len(step)) - gaussian.real_ptr[step]
    weight = outcome.weights[gaussian.state_ptr[components.of_step[step]] + within]
    number = outcome.reals.of_step
    std = np.sqrt(gaussian.var)
    outside = ndtr((parts.lower[number][step] - gaussian.mean) / std)
    outside += ndtr((gaussian.mean - parts.upper[number][step]) / std)
    leak = np.zeros(len(parts.real))
    np.add.at(leak, number[step], weight * outside)
    return leak
