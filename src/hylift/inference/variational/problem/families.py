"""The choice between Gaussian and Beta components for each real."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from hylift.components import Betas, Gaussians, Layout
from hylift.errors import UnsupportedError
from hylift.inference.bounds import LEAK, mass_beyond
from hylift.inference.variational.problem.problem import FloatArray, Mixtures, Problem
from hylift.posterior.mixture import Mixture

Reals = Literal["auto", "gaussian", "beta"]


def betas(problem: Problem, product: Mixtures, reals: Reals) -> NDArray[np.bool_]:
    """(variable,): whether its components are Betas.

    'auto' picks bounded reals with more than `LEAK` of the mass of the best Gaussian product
    outside their bounds, and those in functions, which may be undefined there.
    """
    variables = problem.graph.variables
    lower, upper = variables.lower, variables.upper
    check_one_sided(problem, product)
    closed = (variables.num_states == 0) & np.isfinite(lower) & np.isfinite(upper)
    if reals == "gaussian" or not closed.any():
        return np.zeros(len(variables), dtype=bool)
    if reals == "beta":
        return closed
    chosen = np.zeros(len(variables), dtype=bool)
    for group in problem.functions:
        chosen[group.scope.ravel()] = True
    return (chosen | (_outside(problem, product) > LEAK)) & closed


def mass_outside(layout: Layout, weights: FloatArray, entries: FloatArray) -> FloatArray:
    """(variable,): the mass that Gaussian components have beyond the bounds; 0 for others."""
    found = np.zeros(len(layout))
    for at, batch in layout.batches(entries, np.arange(len(layout))):
        if isinstance(batch, Gaussians):
            bounds = layout.lower[at][:, None], layout.upper[at][:, None]
            beyond = mass_beyond(*bounds, batch.mean, np.sqrt(batch.var))
            found[at] = (weights * beyond).sum(axis=1)
    return found


def check_one_sided(problem: Problem, product: Mixtures) -> None:
    """Raise an error if a real has one bound only, and that bound matters."""
    variables = problem.graph.variables
    one_sided = np.isfinite(variables.lower) != np.isfinite(variables.upper)
    if not one_sided.any():
        return
    wrong = one_sided & (_outside(problem, product) > LEAK)
    if wrong.any():
        at = int(np.argmax(wrong))
        name, domain = variables.names[at], variables.domain(at)
        raise UnsupportedError(
            f"'{name}' is bounded on one side only, [{domain.lower:g}, {domain.upper:g}], and this "
            "bound matters: variational inference needs two bounds, for Betas between them. Give "
            f"'{name}' a second one, as far away as it can ever be"
        )


def _outside(problem: Problem, product: Mixtures) -> FloatArray:
    return mass_outside(problem.layout, product.weights[0], product.entries[0])


def as_betas(problem: Problem, q: Mixtures) -> Mixtures:
    """Mixtures of Gaussians with Betas of nearly the same moments where the problem wants them."""
    layout, reals = problem.layout, problem.betas
    if not len(reals):
        return q
    at = layout.first[reals]
    entries = q.entries.copy()
    for one in entries:
        gaussians = Gaussians(one[at], one[at + 1])
        found = Betas.matching(gaussians, layout.lower[reals], layout.upper[reals])
        one[at], one[at + 1] = found.alpha, found.beta
    return Mixtures(q.weights, entries)


def better_families(mixture: Mixture) -> NDArray[np.bool_] | None:
    """(hidden variable,): which reals should have Betas, by what was found; None if these do.

    Gaussians that reach beyond bounds should become Betas. Betas that are as narrow as they can
    be, away from the ends of their intervals, should become Gaussians.
    """
    layout = mixture.layout
    is_beta = layout.has(Betas)
    closed = np.isfinite(layout.upper - layout.lower)
    wanted = closed & (mass_outside(layout, mixture.weights, mixture.entries) > LEAK)
    for at, batch in layout.batches(mixture.entries, np.arange(len(layout))):
        if isinstance(batch, Betas):
            wanted[at] = ~batch.is_too_narrow().any(axis=1)
    return None if (wanted == is_beta).all() else wanted[mixture.variable_to_class]
