"""What is impossible: a finite price while searching, certain zeros at the end."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hylift.components.family import LEAST_WEIGHT
from hylift.inference.variational.objective import Objective
from hylift.inference.variational.problem import FloatArray, Mixtures, Problem
from hylift.inference.variational.starts.mean_field import coordinate_ascent, is_closed_form
from hylift.inference.variational.starts.random import vertices

PRICE = 20.0
"""Energy of what is impossible, while searching, beyond the largest of what is possible."""
DECISIVE = 1e4
"""How many times that is the price where a component must come to satisfy every constraint."""
NUM_VERTICES = 16
"""Random states from which a product is looked for that satisfies every constraint."""
NEGLIGIBLE = 1e-8
"""Probabilities up to this may be set to zero."""


def price(problem: Problem) -> float:
    """Energy that stands for infinity while searching: more than any constraint could gain."""
    finite = problem.terms.theta[np.isfinite(problem.terms.theta)]
    if not problem.has_hard:
        return np.inf
    return PRICE + 2.0 * float(np.abs(finite).max(initial=0.0))


def with_certain_zeros(
    problem: Problem, q: Mixtures, objective: Objective, rng: np.random.Generator
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
    if not is_closed_form(problem):
        return None
    decisive = DECISIVE * price(problem)
    starts = [q.entries[:, :, [k]] for k in range(q.num_components)]
    products = _feasible(problem, starts, objective, decisive)
    if not products:
        found = vertices(problem, rng, decisive, NUM_VERTICES)
        starts = [entries[None, :, None] for entries in found]
        products = _feasible(problem, starts, objective, decisive)
    if not products:
        return None
    products.sort(key=lambda found: found[0])
    value = np.array([products[k % len(products)][0] for k in range(q.num_components)])
    entries = [products[k % len(products)][1] for k in range(q.num_components)]
    weights = np.maximum(np.exp(value.min() - value), LEAST_WEIGHT)
    mixed = Mixtures((weights / weights.sum())[None], np.concatenate(entries, axis=2))
    return mixed if np.isfinite(objective.evaluate(mixed).value[0]) else None


def _feasible(
    problem: Problem, starts: list[FloatArray], objective: Objective, decisive: float
) -> list[tuple[float, FloatArray]]:
    """Free energies and entries (1, entry, 1) of products near these that satisfy everything."""
    found = []
    for entries in starts:
        one = Mixtures(np.ones((1, 1)), np.ascontiguousarray(entries))
        one, _, _ = coordinate_ascent(problem, one, decisive)
        one = _rounded(problem, one)
        value = float(objective.evaluate(one).value[0])
        if np.isfinite(value):
            found.append((value, one.entries))
    return found


def _rounded(problem: Problem, q: Mixtures) -> Mixtures:
    """Negligible probabilities become zero, of variables to which something is impossible."""
    layout = problem.layout
    discrete = np.flatnonzero(layout.is_discrete & _constrained(problem))
    at = layout.entries_of(discrete)
    entries = q.entries.copy()
    entries[:, at] = np.where(entries[:, at] > NEGLIGIBLE, entries[:, at], 0.0)
    layout.normalize(entries, discrete)
    return Mixtures(q.weights, entries)


def _constrained(problem: Problem) -> NDArray[np.bool_]:
    """(variable,): whether it stands in a factor that may make something impossible."""
    terms, first = problem.terms, problem.layout.first
    found = np.zeros(len(problem.layout), dtype=bool)
    for group in problem.functions:
        found[group.scope.ravel()] = True
    # Parameters of a term end where those of the next row begin.
    rows, row = np.unique(terms.base, return_inverse=True)
    ends = np.append(rows[1:], len(terms.theta))
    count = np.concatenate([[0], np.cumsum(terms.theta == -np.inf)])
    is_hard = (count[ends] > count[rows])[row]
    arity = np.diff(terms.slot_ptr)
    found[terms.slots[np.repeat(is_hard, arity)]] = True
    return found & (np.diff(first) > 0)
