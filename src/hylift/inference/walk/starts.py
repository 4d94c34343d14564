"""Assignments at which a walk begins."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from hylift.errors import UnsupportedError
from hylift.graph import Variables
from hylift.inference.earlier import places_among
from hylift.posterior import Posterior

FloatArray = NDArray[np.float64]


def assignments(
    variables: Variables, earlier: Posterior | None, rng: np.random.Generator
) -> Iterator[FloatArray]:
    """First what is known or plain, then random assignments without end.

    variables: those that are hidden.
    """
    first = _plain(variables)
    yield first if earlier is None else _of_posterior(variables, earlier, first)
    while True:
        yield scattered(variables, rng)


def scattered(variables: Variables, rng: np.random.Generator) -> FloatArray:
    """Random states, and random reals within their bounds."""
    num_states, lower, upper = variables.num_states, variables.lower, variables.upper
    states = rng.integers(0, np.maximum(num_states, 1))
    closed = np.isfinite(lower) & np.isfinite(upper)
    share = rng.random(len(variables))
    with np.errstate(invalid="ignore"):
        between = lower + share * (upper - lower)
    near = np.clip(rng.normal(size=len(variables)), lower, upper)
    return np.where(num_states > 0, states, np.where(closed, between, near))


def _plain(variables: Variables) -> FloatArray:
    """The first state of each discrete variable, and reals as near 0 as their bounds allow."""
    real = np.clip(0.0, variables.lower, variables.upper)
    return np.where(variables.num_states > 0, 0.0, real)


def _of_posterior(variables: Variables, posterior: Posterior, otherwise: FloatArray) -> FloatArray:
    """The best assignment of an earlier run, for the variables of the same names."""
    known = posterior.variables
    if posterior.assignment is not None:
        values = posterior.assignment.values
    elif posterior.all_marginals is not None:
        values = posterior.all_marginals.modes(np.arange(len(known)))
        if posterior.mixture is not None:
            values[posterior.mixture.hidden] = posterior.mixture.mode()[0]
    else:
        raise UnsupportedError(
            "a walk starts from a posterior with marginals or a MAP assignment, and this one has "
            "neither: infer it with 'marginals' or 'map' among the tasks"
        )
    at = places_among(known, variables)
    found = np.append(values, np.nan)[at]
    is_real = variables.num_states == 0
    clipped = np.clip(found, variables.lower, variables.upper)
    return np.where(at >= 0, np.where(is_real, clipped, found), otherwise)
