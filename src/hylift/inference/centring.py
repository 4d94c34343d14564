"""Origins of reals, where numbers are large."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from hylift.errors import IntractableError
from hylift.inference.prepared import Prepared
from hylift.numerics.segments import offsets
from hylift.posterior import Categorical, LogPartition, Marginals, Posterior
from hylift.posterior.answers import EXACT, is_exact, rounding_note
from hylift.posterior.distributions import RealDistribution
from hylift.rewrite.centred import (
    Beliefs,
    Lost,
    far_origin,
    fixed_reals,
    lost_in_tables,
    typical_origin,
)
from hylift.rewrite.parts import parts_of

FEW_DIGITS = 1e-10
"""Rounding errors that are not worth another origin."""

ENOUGH_DIGITS = 1e-8
"""The same for approximations, which take parameters for equal that differ by 1e-12 of their size:
what is not worth an origin is still small if it is some thousands of times as large."""

WORTH_A_NOTE = 1e-4
"""Rounding errors of log Z and of log-odds that matter beside those of an approximation."""

MOST_ORIGINS = 3
"""Origins that are tried one after the other."""


def solve_centred(solve: Callable[[Prepared], Posterior], prepared: Prepared) -> Posterior:
    """The posterior that `solve` finds, with reals measured from where few digits are lost, and
    with rounding in its errors.

    First from typical means of factors; where that is not enough, from the means that are found.
    """
    nowhere = np.zeros(prepared.source.num_variables)
    lost = prepared.by_origin.lost(nowhere)
    if lost.total <= FEW_DIGITS or fixed_reals(prepared.ground).all():
        return _with_errors(solve(prepared), lost)
    part, best, origin = _parts(prepared), None, nowhere.copy()
    origin[prepared.hidden] = typical_origin(prepared.ground)
    for _ in range(MOST_ORIGINS):
        try:
            found = solve(prepared.centred(origin))
        except IntractableError:  # a common origin keeps symmetries that others do not
            if best is None:
                raise
            return best
        if found.all_marginals is None:
            return _with_errors(found, prepared.by_origin.lost(origin))
        beliefs, mean = _beliefs(found.all_marginals, prepared, origin)
        lost = prepared.by_origin.lost(origin, beliefs, part)
        best = _with_errors(found, lost)
        error = best.solution.marginal_error
        if error is None or error <= EXACT:
            return best
        origin = mean
    assert best is not None
    return best


def near_origin(prepared: Prepared) -> Prepared:
    """The same graph, with reals measured from typical means of factors where digits would be lost
    otherwise."""
    lost = prepared.lost
    if lost <= ENOUGH_DIGITS:
        return prepared
    origin = far_origin(prepared.ground, prepared.hidden, prepared.by_origin)
    moved = prepared.centred(origin)
    return moved if 10 * moved.lost < lost else prepared


def with_rounding(posterior: Posterior, prepared: Prepared) -> Posterior:
    """The posterior of an approximation, with rounding in its errors: nothing is called exact, or a
    bound, where rounding may break it, and a note says so."""
    origin, marginals = prepared.origin, posterior.all_marginals
    if origin is None:
        origin = np.zeros(prepared.source.num_variables)
    known = None if marginals is None else _beliefs(marginals, prepared, origin)[0]
    part = _parts(prepared)
    lost = lost_in_tables(prepared.ground, prepared.hidden, known, part)
    more = prepared.by_origin.lost(origin, known, part)
    lost = Lost(lost.total + more.total, lost.marginal + more.marginal)
    posterior, log_z = _with_certificate(posterior, lost), posterior.log_partition
    if log_z is not None and not is_exact(log_z.value, lost.total, 0.0):
        error = lost.total + log_z.error
        kind, at_least = log_z.kind, log_z.at_least
        if kind == "exact" or lost.total > WORTH_A_NOTE:
            kind, at_least = "estimate", None
        elif at_least is not None:
            at_least -= lost.total
        posterior = replace(
            posterior, log_partition=LogPartition(log_z.value, kind, error, at_least)
        )
    if lost.total <= WORTH_A_NOTE and lost.marginal <= WORTH_A_NOTE:
        return posterior
    return posterior.with_note(rounding_note(lost.total, lost.marginal))


def _parts(prepared: Prepared) -> NDArray[np.int32]:
    """(variable,): the connected part of a hidden one, -1 of others."""
    part = np.full(prepared.source.num_variables, -1, dtype=np.int32)
    part[prepared.hidden] = parts_of(prepared.ground)[0]
    return part


def _beliefs(
    marginals: Marginals, prepared: Prepared, origin: NDArray[np.float64]
) -> tuple[Beliefs, NDArray[np.float64]]:
    """Beliefs about all variables, and (variable,) the means of reals that may have an origin."""
    variables = prepared.source.variables
    first = offsets(variables.num_states)
    probs, size, mean = np.zeros(first[-1]), np.zeros(len(variables)), np.zeros(len(variables))
    for number, batch in enumerate(marginals.batches):
        ids = np.flatnonzero(marginals.batch == number)
        rows = marginals.row[ids]
        if isinstance(batch, Categorical):
            at = first[ids][:, None] + np.arange(batch.num_states)
            probs[at] = batch.probs[rows]
        elif isinstance(batch, RealDistribution):
            mean[ids], std = np.asarray(batch.mean)[rows], np.asarray(batch.std)[rows]
            size[ids] = np.hypot(mean[ids] - origin[ids], std)
    size[prepared.observed] = 0.0
    free = np.zeros(len(variables), dtype=bool)
    free[prepared.hidden] = ~fixed_reals(prepared.ground)
    return Beliefs(probs, first[:-1], size), np.where(free, mean, 0.0)


def _with_errors(posterior: Posterior, lost: Lost) -> Posterior:
    """The posterior with rounding in its errors; no longer exact where they are large."""
    log_z, solution = posterior.log_partition, posterior.solution
    if solution.marginal_error is None:
        return posterior
    error = solution.marginal_error + lost.marginal
    found = replace(posterior, solution=replace(solution, marginal_error=error))
    found = _with_certificate(found, lost)
    if log_z is None:
        return found
    log_z = replace(log_z, error=log_z.error + lost.total)
    if log_z.kind == "exact" and not is_exact(log_z.value, log_z.error, error):
        log_z = replace(log_z, kind="estimate")
        found = found.with_note(rounding_note(log_z.error, error))
    return replace(found, log_partition=log_z)


def _with_certificate(posterior: Posterior, lost: Lost) -> Posterior:
    """The posterior, which is certified no longer where rounding matters."""
    is_certified = posterior.solution.is_certified and lost.marginal <= EXACT
    return replace(posterior, solution=replace(posterior.solution, is_certified=is_certified))
