"""Integrals over reals on intervals, with estimates of their errors.

Where bounds make no difference, reals are left to the Gaussians; elsewhere they are integrated
numerically, on ever finer grids, until the answer converges.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import ndtr

from hylift.errors import IntractableError, UnsupportedError
from hylift.graph import FactorGraph, FactorGroup
from hylift.inference.exact.elimination import DenselyCoupledError, Flags, FloatArray
from hylift.inference.exact.integrated import Integrated, integrate_reals
from hylift.inference.exact.lattices.lattice import LatticeError
from hylift.inference.exact.meter import Meter
from hylift.inference.exact.nodes.axes import MAX_PANELS, Axes, is_closed
from hylift.inference.exact.nodes.conditional import known_reals
from hylift.inference.exact.nodes.far_ends import FarEnds, LogTilted, is_one_sided
from hylift.inference.exact.nodes.grids import (
    EPS,
    MOST_CLOSED,
    beside_free,
    difference,
    first_edges,
    improper_but_bounded,
    settled_grid,
)
from hylift.inference.exact.one_pass import PassResult, sum_resolved
from hylift.numerics.quadrature import halved
from hylift.posterior.answers import Kind, is_exact, rounding_note
from hylift.potentials import ConditionalQuadratic
from hylift.proper.check import check_proper
from hylift.rewrite.centred import Beliefs, ByOrigin, Lost
from hylift.rewrite.kinds import Kinds
from hylift.rewrite.parts import parts_of
from hylift.words import counted

PROBABLE = 1e-12
"""Probability of a state from which on its rounding errors matter."""
MAX_REFINED = 2**22
"""Largest table of a user's own function that is refined only to settle further digits."""


@dataclass(frozen=True, slots=True, eq=False)
class Integral:
    """The outcome of the last pass, its error, and notes for the user."""

    outcome: PassResult
    kind: Kind
    error: float
    """Of log Z."""
    settled: bool
    notes: tuple[str, ...]
    marginal_error: float = 0.0
    """Of any probability."""


def integrate(
    kinds: Kinds,
    *,
    max_entries: int,
    tolerance: float,
    marginals: bool,
    meter: Meter,
) -> Integral:
    """The integral over all hidden variables, and their marginals where asked for.

    First without bounds. Then reals that have probability beyond their bounds, or no finite
    integral without them, are put on a grid, and the others are Gaussian given its nodes.
    kinds: of a graph without evidence.
    """
    whole, variables = kinds, kinds.graph.variables
    bounded = bool((np.isfinite(variables.lower) | np.isfinite(variables.upper)).any())
    gridded, one_sided = known_reals(kinds), is_one_sided(variables)
    placed = gridded & (~is_closed(variables) | beside_free(kinds, gridded))
    ends: list[FarEnds] = []
    while True:
        check_closed(kinds, gridded & ~placed)
        refine = _on_windows if placed.any() else _refine
        integral = refine(
            kinds, gridded, placed, max_entries, tolerance, marginals or bounded, meter
        )
        if isinstance(integral, Integrated):
            more = improper_but_bounded(kinds, integral)
            placed[more] = one_sided[more]
        else:
            leak = _leaks(kinds, integral.outcome) if bounded else np.zeros(len(variables))
            total = float(leak.sum())
            if total <= tolerance:
                beyond = sum(each.share_beyond(integral.outcome.log_total) for each in ends)
                if beyond <= tolerance:
                    lost = rounding(kinds.graph, integral.outcome)
                    error = integral.error + total + beyond
                    return _with_rounding(replace(integral, error=error), lost, tolerance)
                log_total, share = integral.outcome.log_total, 0.5 * tolerance / len(ends)
                ends = [
                    each.farther(_log_tilted(each, max_entries, meter), log_total, share)
                    for each in ends
                ]
                more = np.zeros(0, dtype=np.int64)
            else:
                num_reals = np.count_nonzero(variables.num_states == 0)
                more = np.flatnonzero(leak > tolerance / (2 * num_reals))
                half = more[one_sided[more] & ~is_closed(kinds.graph.variables)[more]]
                if len(half) and placed.any():
                    placed[half] = True
                elif len(half):
                    ends.append(FarEnds.of(kinds, integral.outcome, half))
            kinds = functools.reduce(lambda some, each: each.closed(some), ends, whole)
        gridded[more] = True


def _log_tilted(ends: FarEnds, max_entries: int, meter: Meter) -> LogTilted:
    """Log-integrals of tilted densities, in a pass such as the one that found these ends."""

    def log_tilted(real: int, slope: float, at: float) -> float:
        A, b, c = np.zeros((1, 1, 1)), np.full((1, 1), slope), np.full(1, -slope * at)
        tilt = FactorGroup(ConditionalQuadratic(A, b, c), np.array([[real]], dtype=np.int32))
        kinds = replace(ends.kinds, quadratics=[*ends.kinds.quadratics, tilt])
        try:
            found = _summed(kinds, ends.axes, max_entries, marginals=False, meter=meter)
        except IntractableError:
            return np.inf
        if isinstance(found, Integrated):
            return np.inf
        promoted = found.reals.promoted
        return found.log_total if promoted is None or promoted.is_proven else np.inf

    return log_tilted


def in_functions(kinds: Kinds) -> Flags:
    """(variable,): whether it is a real in a factor that is not quadratic."""
    touched = np.zeros(kinds.graph.num_variables, dtype=bool)
    for group in kinds.functions:
        touched[group.reals] = True
    return touched


def check_closed(kinds: Kinds, gridded: Flags) -> None:
    """Raise if a real that must be integrated numerically is not bounded on both sides."""
    endless = gridded & ~is_closed(kinds.graph.variables)
    if endless.any():
        name = kinds.graph.variables.names[int(np.argmax(endless))]
        raise UnsupportedError(
            f"exact inference cannot integrate over '{name}': it is not bounded on both sides, "
            "and is in a factor that is not quadratic, or has probability beyond its one bound. "
            "Give it an interval."
        )


def _refine(
    kinds: Kinds,
    gridded: Flags,
    _: Flags,
    max_entries: int,
    tolerance: float,
    marginals: bool,
    meter: Meter,
) -> Integral | Integrated:
    """The integral on ever finer panels until it converges; or the reals, where it is infinite."""
    kind: Kind = "estimate" if in_functions(kinds).any() else "exact"
    edges = first_edges(kinds, gridded)
    best: Integral | None = None
    while True:
        axes = Axes.of(kinds, gridded, edges)
        enough = best is not None and best.kind == "estimate" and np.isfinite(best.error)
        limit = min(max_entries, MAX_REFINED) if enough else max_entries
        try:
            if best is not None and edges.shape[1] > MAX_PANELS:
                raise IntractableError(
                    f"numerical integration over {_number(axes, 'bounded real')} does not settle "
                    f"on {best.outcome.reals.axes.nodes.shape[1]} nodes each"
                )
            outcome = _summed(kinds, axes, limit, marginals, meter)
            if isinstance(outcome, Integrated):
                return outcome
        except IntractableError:
            if best is None or not enough:
                raise
            return replace(best, notes=(*best.notes, "A finer grid would cost too much."))
        if not gridded.any():
            return _certified(kinds, Integral(outcome, "exact", 0.0, True, ()))
        error, settled = np.inf, False
        if best is not None:
            error, settled = difference(best.outcome, outcome, tolerance)
        note = (
            f"The integral over {_number(axes, 'bounded real')} is a sum over "
            f"{axes.nodes.shape[1]} nodes for each; half of them change log Z, a probability, or a "
            f"mean in widths, by {error:.1e}."
        )
        best = _certified(kinds, Integral(outcome, kind, error, settled, (note,)))
        if settled:
            return best
        edges = halved(edges)


def _on_windows(
    kinds: Kinds,
    gridded: Flags,
    placed: Flags,
    max_entries: int,
    tolerance: float,
    marginals: bool,
    meter: Meter,
) -> Integral | Integrated:
    """The integral with nodes of some reals where their probability is; or the reals, where it is
    infinite."""
    found = settled_grid(kinds, gridded, placed, max_entries, tolerance, meter)
    if isinstance(found, Integrated):
        return found
    axes = found.grid.axes(kinds)
    outcome = _summed(kinds, axes, max_entries, marginals, meter)
    if isinstance(outcome, Integrated):
        return outcome
    note = (
        f"The integral over {_number(axes, 'real')} is a sum over {axes.nodes.shape[1]} nodes for "
        f"each, placed where the probability is; {found.compared} nodes change log Z, a "
        f"probability, or a mean in widths, by {found.error:.1e}. Beyond them lies a "
        f"probability of about {found.grid.beyond:.0e}."
    )
    error = found.error + found.grid.beyond
    return _certified(kinds, Integral(outcome, "estimate", error, found.settled, (note,)))


def _number(axes: Axes, one: str) -> str:
    return counted(len(axes.real), one)


def _summed(
    kinds: Kinds, axes: Axes, max_entries: int, marginals: bool, meter: Meter
) -> PassResult | Integrated:
    """The sum over the axes, on lattices that resolve the reals on them; in closed form where
    lattices are refused; or the reals, where it is infinite."""
    try:
        return _summed_once(kinds, axes, max_entries, marginals, meter, promote=True)
    except DenselyCoupledError:
        raise
    except IntractableError as refusal:
        try:
            some = min(max_entries, MOST_CLOSED)
            return _summed_once(kinds, axes, some, marginals, meter, promote=False)
        except IntractableError:
            if isinstance(refusal, LatticeError):
                refusal = refusal.named(kinds.graph.variables)
            raise refusal from None


def _summed_once(
    kinds: Kinds,
    axes: Axes,
    max_entries: int,
    marginals: bool,
    meter: Meter,
    *,
    promote: bool,
) -> PassResult | Integrated:
    reals = integrate_reals(kinds, axes, max_entries, maximise=False, promote=promote, meter=meter)
    if len(improper_but_bounded(kinds, reals)):
        return reals
    return sum_resolved(kinds, reals, max_entries, marginals=marginals, meter=meter)


def _certified(kinds: Kinds, integral: Integral) -> Integral:
    """The integral with the error of lattices, which is bounded, where there are some."""
    outcome = integral.outcome
    promoted = outcome.reals.promoted
    if promoted is None:
        return integral
    lattice = promoted.lattice
    error = 2 * promoted.epsilon + 2 * outcome.beyond
    note = (
        f"The integral over {counted(len(lattice.real), 'real')} is a sum over lattices of up to "
        f"{lattice.num_nodes.max():,} nodes, which changes log Z, or any probability, by "
        f"{error:.1e} at most."
    )
    found = replace(integral, error=integral.error + error, notes=(note, *integral.notes))
    if promoted.is_proven:
        return found
    check_proper(kinds.graph)
    doubt = (
        "It is not proven that nothing lies farther than a million standard deviations away: in "
        "some joint state of the discrete variables the reals may have no finite width."
    )
    return replace(found, kind="estimate", notes=(*found.notes, doubt))


def _with_rounding(integral: Integral, lost: Lost, tolerance: float) -> Integral:
    """The integral with rounding added to its errors; no longer exact where they are large."""
    value = integral.outcome.log_total
    found = replace(
        integral,
        error=integral.error + lost.total + 64 * EPS * abs(value),
        marginal_error=integral.error + lost.marginal,
    )
    if found.kind != "exact" or is_exact(value, found.error, found.marginal_error, tolerance):
        return found
    note = rounding_note(found.error, found.marginal_error)
    return replace(found, kind="estimate", notes=(*found.notes, note))


def _leaks(kinds: Kinds, outcome: PassResult) -> FloatArray:
    """(variable,): what the unbounded Gaussians put beyond its bounds: probability, or second
    moment about the middle in widths squared if that is more.

    The sum bounds what the bounds change in log Z, any probability, and any mean in widths.
    """
    gaussian, variables = outcome.reals.gaussian, kinds.graph.variables
    bounded = np.isfinite(variables.lower) | np.isfinite(variables.upper)
    some = bounded[outcome.reals.components.real]
    real, weight, at = outcome.real_states(some)
    lower, upper = variables.lower[real], variables.upper[real]
    mean, var = gaussian.mean[at], gaussian.var[at]
    std = np.sqrt(var)
    closed = np.isfinite(lower) & np.isfinite(upper)
    with np.errstate(invalid="ignore"):
        middle = np.where(closed, 0.5 * (lower + upper), 0.0)
        width = np.where(closed, upper - lower, np.inf)
    leak, moment = np.zeros((2, len(variables)))
    for sign, bound in ((1.0, lower), (-1.0, upper)):
        # Beyond a bound at z standard deviations: Φ(z), and the second moment about the middle m,
        # ((μ-m)² + σ²) Φ(z) - σ ((μ-m) + (bound-m)) φ(z), with signs turned for the upper bound.
        finite = np.isfinite(bound)
        edge = np.where(finite, bound, 0.0)
        z = np.where(finite, sign * (edge - mean) / std, -np.inf)
        off = mean - middle
        density = np.exp(-0.5 * z**2) / np.sqrt(2 * np.pi)
        second = (off**2 + var) * ndtr(z) - sign * std * (off + edge - middle) * density
        np.add.at(leak, real, weight * ndtr(z))
        np.add.at(moment, real, weight * np.maximum(second, 0.0) / width**2)
    if (promoted := outcome.reals.promoted) is not None:
        lattice = promoted.lattice
        real = np.repeat(lattice.real, lattice.num_states)
        # From one node within a bound on: the density may fall between two of them.
        lower, upper = variables.lower[real], variables.upper[real]
        step = np.repeat(lattice.spacing, lattice.num_states)
        outside = (lattice.low < lower + step) | (lattice.high > upper - step)
        lost = np.where(outside, outcome.on_lattice, 0.0)
        np.add.at(leak, real, lost)
        closed = np.isfinite(lower) & np.isfinite(upper)
        lower, upper = lower[closed], upper[closed]
        middle, width = 0.5 * (lower + upper), upper - lower
        ends = np.abs(lattice.low[closed] - middle), np.abs(lattice.high[closed] - middle)
        np.add.at(moment, real[closed], lost[closed] * (np.maximum(*ends) / width) ** 2)
    return np.maximum(leak, moment)


def rounding(graph: FactorGraph, outcome: PassResult) -> Lost:
    """Rough rounding errors of a pass over a graph without evidence."""
    axes = outcome.reals.axes
    if not len(axes.real) and not len(outcome.reals.bare_axes.free):
        return Lost(0.0, 0.0)
    probs = np.ones(axes.num_states.sum()) if outcome.marginals is None else outcome.marginals
    beliefs = Beliefs(probs, axes.first, _sizes(outcome))
    nowhere = np.zeros(graph.num_variables)
    found = ByOrigin.of(graph).lost(nowhere, beliefs, parts_of(graph)[0])
    has_states = (graph.variables.num_states > 0).any()
    of_odds = outcome.rounding if has_states else 0.0  # volumes change no means
    return Lost(found.total + outcome.rounding, found.marginal + of_odds)


def _sizes(outcome: PassResult) -> FloatArray:
    """(variable,): how far a real is from 0, in the probable state in which it is farthest."""
    axes = outcome.reals.axes
    found = np.zeros(len(axes.num_states))
    gaussian, components = outcome.reals.gaussian, outcome.reals.components
    if len(components.real):
        _, weight, _ = outcome.real_states()
        size = np.where(weight > PROBABLE, np.abs(gaussian.mean), 0.0)
        found[components.real] = np.maximum.reduceat(size, gaussian.real_ptr[:-1])
    if (promoted := outcome.reals.promoted) is not None:
        lattice = promoted.lattice
        # A cell counts with its nearer end: farther points are improbable to the same degree.
        nearer = np.minimum(np.abs(lattice.low), np.abs(lattice.high))
        squares = np.add.reduceat(outcome.on_lattice * nearer**2, lattice.ptr[:-1])
        found[lattice.real] = np.sqrt(squares)
    if len(axes.real) and outcome.marginals is not None:
        probs = axes.on_nodes(outcome.marginals)
        found[axes.real] = np.sqrt((probs * axes.nodes**2).sum(axis=1))
    return found
