"""What is impossible: a finite price while searching, certain zeros at the end."""

from __future__ import annotations

import numpy as np

from hylift.inference.variational.objective import Objective
from hylift.inference.variational.problem import Mixtures, Problem
from hylift.inference.variational.starts.mean_field import coordinate_ascent, is_closed_form
from hylift.posterior.mixture.layout import CATEGORICAL

PRICE = 20.0
"""Energy of what is impossible, while searching, beyond the largest of what is possible."""
DECISIVE = 1e6
"""The same, where a component must come to satisfy every constraint."""
NEGLIGIBLE = 1e-6
"""Probabilities up to this may be set to zero."""


def price(problem: Problem) -> float:
    """Energy that stands for infinity while searching: more than any constraint could gain."""
    finite = problem.terms.theta[np.isfinite(problem.terms.theta)]
    if not problem.has_hard:
        return np.inf
    return PRICE + 2.0 * min(float(np.abs(finite).max(initial=0.0)), 1e3)


def with_certain_zeros(
    problem: Problem, q: Mixtures, objective: Objective
) -> tuple[Mixtures, bool]:
    """A mixture in which nothing impossible has a probability, and whether there is one.

    objective: counts what is impossible as infinite.
    """
    certain = _rounded(problem, q)
    if np.isfinite(objective.evaluate(certain).value[0]):
        return certain, True
    if is_closed_form(problem):
        entries = np.empty_like(q.entries)
        for k in range(q.num_components):
            one = Mixtures(np.ones((1, 1)), np.ascontiguousarray(q.entries[:, :, k : k + 1]))
            one, _, _ = coordinate_ascent(problem, one, DECISIVE)
            entries[:, :, k] = one.entries[:, :, 0]
        certain = _rounded(problem, Mixtures(q.weights, entries))
        if np.isfinite(objective.evaluate(certain).value[0]):
            return certain, True
    return q, False


def _rounded(problem: Problem, q: Mixtures) -> Mixtures:
    """Negligible probabilities become zero."""
    layout = problem.layout
    width = np.diff(layout.first)
    inside = np.repeat(layout.family == CATEGORICAL, width)
    if not inside.any():
        return q
    entries = q.entries.copy()
    probs = np.where(entries[:, inside] > NEGLIGIBLE, entries[:, inside], 0.0)
    sizes = width[layout.family == CATEGORICAL]
    ends = np.concatenate([[0], np.cumsum(sizes)])[:-1]
    total = np.add.reduceat(probs, ends, axis=1)
    entries[:, inside] = probs / np.repeat(total, sizes, axis=1)
    return Mixtures(q.weights, entries)
