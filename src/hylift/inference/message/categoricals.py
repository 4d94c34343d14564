"""Distributions of discrete variables from probabilities in one flat array."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hylift.graph import Variables
from hylift.posterior import Categorical
from hylift.posterior.distributions import BatchedDistribution


def categoricals(
    variables: Variables, start: NDArray[np.int64], probs: NDArray[np.float64]
) -> list[tuple[NDArray[Any], BatchedDistribution]]:
    """Discrete variables by domain, with their distributions; probs: from each one's start on."""
    found: list[tuple[NDArray[Any], BatchedDistribution]] = []
    for number, domain in enumerate(variables.domains):
        ids = np.flatnonzero(variables.domain_id == number)
        if len(ids) and domain.states is not None:
            own = probs[start[ids][:, None] + np.arange(domain.num_states)]
            found.append((ids, Categorical(own / own.sum(axis=1, keepdims=True), domain.states)))
    return found
