"""Which reals have Gaussian components, and which Betas."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from hylift.errors import UnsupportedError
from hylift.inference.variational.problem.problem import FloatArray, Mixtures, Problem
from hylift.posterior.mixture.layout import GAUSSIAN

Reals = Literal["auto", "gaussian", "beta"]

LEAK = 1e-3
"""Mass of a Gaussian beyond the bounds, from which on they matter."""


def betas(problem: Problem, product: Mixtures, reals: Reals) -> NDArray[np.bool_]:
    """(variable,): whether its components are Betas.

    'auto': those bounded reals whose bounds matter, by the mass that the best product of Gaussians
    has beyond them, and those in functions, which need not be defined there.
    """
    variables = problem.graph.variables
    lower, upper = variables.lower, variables.upper
    _check_one_sided(problem, product)
    closed = (variables.num_states == 0) & np.isfinite(lower) & np.isfinite(upper)
    if reals == "gaussian" or not closed.any():
        return np.zeros(len(variables), dtype=bool)
    if reals == "beta":
        return closed
    chosen = np.zeros(len(variables), dtype=bool)
    for group in problem.functions:
        chosen[group.scope.ravel()] = True
    return (chosen | (_leaks(problem, product) > LEAK)) & closed


def _leaks(problem: Problem, product: Mixtures) -> FloatArray:
    """(variable,): the mass that a product of Gaussians has beyond its bounds."""
    layout = problem.layout
    gaussian = np.flatnonzero(layout.family == GAUSSIAN)
    at = layout.first[gaussian]
    mean, sd = product.entries[0, at, 0], np.sqrt(product.entries[0, at + 1, 0])
    found = np.zeros(len(layout))
    found[gaussian] = mass_beyond(layout.lower[gaussian], layout.upper[gaussian], mean, sd)
    return found


def _check_one_sided(problem: Problem, product: Mixtures) -> None:
    """Raises where a real has one bound only, and that matters."""
    variables = problem.graph.variables
    one_sided = np.isfinite(variables.lower) != np.isfinite(variables.upper)
    if not one_sided.any():
        return
    wrong = one_sided & (_leaks(problem, product) > LEAK)
    if wrong.any():
        at = int(np.argmax(wrong))
        name, domain = variables.names[at], variables.domain(at)
        raise UnsupportedError(
            f"'{name}' is bounded on one side only, [{domain.lower:g}, {domain.upper:g}], and this "
            "bound matters: variational inference needs two bounds, for Betas between them. Give "
            f"'{name}' a second one, as far away as it can ever be"
        )


def mass_beyond(
    lower: FloatArray, upper: FloatArray, mean: FloatArray, sd: FloatArray
) -> FloatArray:
    """The mass that Gaussians have beyond bounds; all arguments broadcast."""
    return np.asarray(ndtr((lower - mean) / sd) + ndtr((mean - upper) / sd))


def as_betas(problem: Problem, product: Mixtures) -> Mixtures:
    """A product of Gaussians with Betas of the same moments, as far as there are such, where the
    problem wants them."""
    layout = problem.layout
    reals = problem.betas
    at = layout.first[reals]
    entries = product.entries.copy()
    width = (layout.upper - layout.lower)[reals][:, None]
    mean = np.clip((entries[:, at] - layout.lower[reals][:, None]) / width, 0.02, 0.98)
    var = np.minimum(entries[:, at + 1] / width**2, 0.5 * mean * (1 - mean))
    size = np.maximum(mean * (1 - mean) / var - 1, 1.0)
    entries[:, at] = np.maximum(mean * size, 1.0)
    entries[:, at + 1] = np.maximum((1 - mean) * size, 1.0)
    return Mixtures(product.weights, entries)
