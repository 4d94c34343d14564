"""Reals with one open end towards which log p falls straight: held by exponential densities."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hylift.graph import Variables
from hylift.inference.boundedness.terms import Terms
from hylift.inference.boundedness.violations.possible import Possible
from hylift.inference.boundedness.violations.violation import (
    Scores,
    Violation,
    deciding,
    least_states,
)
from hylift.potentials import REAL
from hylift.potentials.base import FloatArray

ROUNDING = 1e-12
"""Slopes this small, relative to what is added up, are zero."""


@dataclass(frozen=True, slots=True, eq=False)
class Straight:
    """What there is of such reals, and the terms without them."""

    others: list[Terms]
    terms: list[Terms]
    rate: FloatArray  # (variable,): how fast log p falls outwards at least; NaN for others
    log_bound: float
    """Of the terms divided by the exponential densities, where all rates are positive."""

    @property
    def failing(self) -> NDArray[np.int64]:
        return np.flatnonzero(self.rate <= 0)


def straight_reals(terms: Sequence[Terms], variables: Variables) -> Straight:
    """Takes apart the reals with one bound that no square and no product has in it."""
    lower, upper = variables.lower, variables.upper
    one_sided = (variables.num_states == REAL) & (np.isfinite(lower) != np.isfinite(upper))
    straight = one_sided.copy()
    for term in terms:
        curved = (term.precision != 0).any(axis=(1, 3))  # (row, real slot)
        for slot in range(term.num_open):
            straight[term.real[curved[term.row, slot], slot]] = False
    rate, size = np.where(straight, 0.0, np.nan), np.zeros(len(variables))
    others, own, total = [], [], 0.0
    outwards = np.where(np.isfinite(lower), 1.0, -1.0)
    end = np.where(np.isfinite(lower), lower, upper)
    for term in terms:
        # A real without couplings is a term of its own.
        flag = straight[term.real[:, 0]] & (term.num_open == 1)
        if not flag.any():
            others.append(term)
            continue
        others.append(term.take(np.flatnonzero(~flag)))
        some = term.take(np.flatnonzero(flag))
        own.append(some)
        ids, h = some.real[:, 0], some.linear[some.row, :, 0]
        steepest = (outwards[ids][:, None] * h).max(axis=1)
        rate -= np.bincount(ids, some.multiplicity * steepest, minlength=len(rate))
        size += np.bincount(ids, some.multiplicity * np.abs(steepest), minlength=len(rate))
        at_end = some.constant[some.row] + h * end[ids][:, None]
        total += float(some.multiplicity @ at_end.max(axis=1))
    rate = np.where(np.abs(rate) <= ROUNDING * size, 0.0, rate) / variables.multiplicity
    positive = rate > 0
    total -= float(variables.multiplicity[positive] @ np.log(rate[positive]))
    return Straight([term for term in others if len(term)], own, rate, total)


def straight_violation(
    found: Straight, real: int, variables: Variables, possible: Possible
) -> Violation | str:
    """States in which log p does not fall towards the open end of a real; or a doubt."""
    sign = 1.0 if np.isfinite(variables.lower[real]) else -1.0
    scores = []
    for term in found.terms:
        some = term.take(np.flatnonzero(term.real[:, 0] == real))
        if not len(some):
            continue
        value = -sign * some.multiplicity[:, None] * some.linear[some.row, :, 0]
        scores.append(Scores(value, some.sizes, some.discrete))
    states = least_states(scores, variables.num_states)
    falls = sum(float(score.at(states).sum()) for score in scores)
    fixed = deciding(scores, states)
    violation = Violation.of(variables, {real: sign}, fixed, 0.0)
    if falls <= 0 and possible.allows(fixed):
        return violation
    return f"'{variables.names[real]}' may not be held towards its open end"
