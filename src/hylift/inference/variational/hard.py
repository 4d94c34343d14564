"""Mixtures in which nothing impossible has a probability."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hylift.components.family import LEAST_WEIGHT
from hylift.inference.variational.objective import Objective
from hylift.inference.variational.problem import FitProblem, Mixtures
from hylift.inference.variational.products import Ascent
from hylift.numerics.segments import offsets

DECISIVE = 1e4
"""Multiple of the usual penalty that makes a component satisfy every constraint."""
NUM_VERTICES = 16
"""Random states from which a product is looked for that satisfies every constraint."""
NEGLIGIBLE = 1e-8
"""Probabilities up to this may be set to zero."""


def with_certain_zeros(
    problem: FitProblem, q: Mixtures, objective: Objective, rng: np.random.Generator
) -> Mixtures | None:
    """A mixture in which nothing impossible has a probability; None if none was found.

    objective: counts what is impossible as infinite. Where the mixture itself cannot be rounded
    to such a one, each of its components is first led to satisfy every constraint.
    """
    if np.isfinite(objective.evaluate(q).value[0]):
        return q
    certain = _rounded(problem, q)
    if np.isfinite(objective.evaluate(certain).value[0]):
        return certain
    if not problem.has_exact_updates:
        return None
    ascent = Ascent.of(problem, DECISIVE * problem.hard_penalty)
    products, value = _feasible(ascent, objective, np.moveaxis(q.entries, 2, 0)[:, 0, :, None])
    if not len(value):
        products, value = _feasible(ascent, objective, ascent.vertices(rng, NUM_VERTICES))
    if not len(value):
        return None
    order = np.argsort(value, kind="stable")[np.arange(q.num_components) % len(value)]
    weights = np.maximum(np.exp(value.min() - value[order]), LEAST_WEIGHT)
    weights = np.tile(weights / weights.sum(), (1, problem.num_parts, 1))
    entries = np.ascontiguousarray(products.entries[order, :, 0].T)[None]
    mixed = Mixtures(weights, entries)
    return mixed if np.isfinite(objective.evaluate(mixed).value[0]) else None


def _feasible(
    ascent: Ascent, objective: Objective, starts: NDArray[np.float64]
) -> tuple[Mixtures, NDArray[np.float64]]:
    """Products near these (start, entry, 1) that satisfy everything, and their free energies."""
    q = objective.problem.products(np.ascontiguousarray(starts))
    q = _rounded(objective.problem, ascent.follow(q).q)
    value = objective.evaluate(q).value
    found = np.flatnonzero(np.isfinite(value))
    return q.take(found), value[found]


def _rounded(problem: FitProblem, q: Mixtures) -> Mixtures:
    """Negligible probabilities become zero, of variables to which something is impossible."""
    layout = problem.layout
    discrete = np.flatnonzero(layout.is_discrete & _constrained(problem))
    at = layout.entries_of(discrete)
    entries = q.entries.copy()
    entries[:, at] = np.where(entries[:, at] > NEGLIGIBLE, entries[:, at], 0.0)
    layout.normalize(entries, discrete)
    return Mixtures(q.weights, entries)


def _constrained(problem: FitProblem) -> NDArray[np.bool_]:
    """(variable,): whether it is in a factor that may make something impossible."""
    terms = problem.terms
    found = np.zeros(len(problem.multiplicity), dtype=bool)
    for group in problem.functions:
        found[group.scope.ravel()] = True
    # Parameters of a term end where those of the next row begin.
    rows, row = np.unique(terms.base, return_inverse=True)
    ends = np.append(rows[1:], len(terms.theta))
    count = offsets(terms.theta == -np.inf)
    is_hard = (count[ends] > count[rows])[row]
    found[terms.slots[np.repeat(is_hard, np.diff(terms.slot_ptr))]] = True
    return found
