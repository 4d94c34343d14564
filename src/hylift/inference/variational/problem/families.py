"""Which reals have Gaussian components, and which Betas."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from hylift.errors import UnsupportedError
from hylift.inference.bounds import LEAK, mass_beyond
from hylift.inference.variational.kernels.update import MOST_BETA
from hylift.inference.variational.problem.problem import FloatArray, Mixtures, Problem
from hylift.posterior.mixture import Mixture
from hylift.posterior.mixture.layout import BETA, CATEGORICAL, GAUSSIAN

Reals = Literal["auto", "gaussian", "beta"]

NEAREST = 1e-7
"""Of the interval: how near to a bound the mean of a first Beta may be."""
NARROW = 0.5 * MOST_BETA
"""Sum of alpha and beta, from which on a Beta cannot become as narrow as it might want to."""
INNER = 1e4
"""Alpha and beta, from which on a Beta is not at an end of its interval."""


def betas(problem: Problem, product: Mixtures, reals: Reals) -> NDArray[np.bool_]:
    """(variable,): whether its components are Betas.

    'auto': those bounded reals whose bounds matter, by the mass that the best product of Gaussians
    has beyond them, and those in functions, which need not be defined there.
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
    return (chosen | (_leaks(problem, product) > LEAK)) & closed


def _leaks(problem: Problem, product: Mixtures) -> FloatArray:
    """(variable,): the mass that a mixture of Gaussians has beyond its bounds."""
    layout = problem.layout
    gaussian = np.flatnonzero(layout.family == GAUSSIAN)
    at = layout.first[gaussian]
    mean, sd = product.entries[0, at], np.sqrt(product.entries[0, at + 1])
    bounds = layout.lower[gaussian][:, None], layout.upper[gaussian][:, None]
    found = np.zeros(len(layout))
    found[gaussian] = (product.weights[0] * mass_beyond(*bounds, mean, sd)).sum(axis=1)
    return found


def check_one_sided(problem: Problem, product: Mixtures) -> None:
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


def as_betas(problem: Problem, q: Mixtures) -> Mixtures:
    """Mixtures of Gaussians with Betas of the same moments, as far as there are such, where the
    problem wants them."""
    layout, reals = problem.layout, problem.betas
    if not len(reals):
        return q
    at = layout.first[reals]
    entries = q.entries.copy()
    width = (layout.upper - layout.lower)[reals][:, None]
    mean, var = _within(
        (entries[:, at] - layout.lower[reals][:, None]) / width, entries[:, at + 1] / width**2
    )
    mean = np.clip(mean, NEAREST, 1 - NEAREST)
    var = np.minimum(var, 0.5 * mean * (1 - mean))
    size = np.maximum(mean * (1 - mean) / var - 1, 1.0)
    entries[:, at] = np.clip(mean * size, 1.0, MOST_BETA)
    entries[:, at + 1] = np.clip((1 - mean) * size, 1.0, MOST_BETA)
    return Mixtures(q.weights, entries)


def _within(mean: FloatArray, var: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Mean and variance of Gaussians cut off at 0 and 1; as they are where nothing is left."""
    sd = np.sqrt(var)
    low, high = -mean / sd, (1 - mean) / sd
    left = ndtr(high) - ndtr(low)
    some = np.maximum(left, 1e-3)
    at_low, at_high = (np.exp(-0.5 * z**2) / np.sqrt(2 * np.pi) for z in (low, high))
    shift = (at_low - at_high) / some
    shrunk = 1 + (low * at_low - high * at_high) / some - shift**2
    is_cut = (left > 1e-3) & (shrunk > 0)
    return (
        np.where(is_cut, mean + sd * shift, mean),
        np.where(is_cut, var * np.where(is_cut, shrunk, 1.0), var),
    )


def better_families(mixture: Mixture) -> NDArray[np.bool_] | None:
    """(hidden variable,): which reals should have had Betas, by what was found; None if these did.

    Gaussians that reach beyond bounds should. Betas that are as narrow as can be, away from the
    ends of their intervals, should not.
    """
    layout = mixture.layout
    closed = np.isfinite(layout.upper - layout.lower)
    reals = np.flatnonzero(closed & (layout.family != CATEGORICAL))
    at = layout.first[reals]
    first, second = mixture.entries[at], mixture.entries[at + 1]
    is_beta = layout.family[reals] == BETA
    sd = np.sqrt(np.where(is_beta[:, None], 1.0, second))
    bounds = layout.lower[reals][:, None], layout.upper[reals][:, None]
    beyond = (mixture.weights * mass_beyond(*bounds, first, sd)).sum(axis=1)
    narrow = (first + second >= NARROW) & (np.minimum(first, second) >= INNER)
    wanted = np.where(is_beta, ~narrow.any(axis=1), beyond > LEAK)
    if (wanted == is_beta).all():
        return None
    chosen = np.zeros(len(layout), dtype=bool)
    chosen[reals] = wanted
    return chosen[mixture.variable_to_class]
