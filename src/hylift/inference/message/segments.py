"""Numbers of all states or points, one variable's behind another's."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hylift.graph import Variables
from hylift.posterior import Categorical
from hylift.posterior.distributions import BatchedDistribution

FloatArray = NDArray[np.float64]
Ids = NDArray[np.int64]


def largest(logs: FloatArray, start: Ids) -> FloatArray:
    """(segment,): the largest number from each start to the next; no segment is empty."""
    return np.maximum.reduceat(logs, start[:-1]) if len(start) > 1 else np.zeros(0)


def log_sums(logs: FloatArray, start: Ids) -> FloatArray:
    """(segment,): logarithms of the sums of exponentials, from each start to the next."""
    if len(start) <= 1:
        return np.zeros(0)
    top = largest(logs, start)
    safe = np.where(np.isneginf(top), 0.0, top)
    with np.errstate(divide="ignore"):
        return np.asarray(
            safe
            + np.log(np.add.reduceat(np.exp(logs - np.repeat(safe, np.diff(start))), start[:-1]))
        )


def largest_change(before: FloatArray, after: FloatArray) -> float:
    """The largest change of logarithms, weighed as those of probabilities; -inf to -inf is none."""
    with np.errstate(invalid="ignore"):
        moved = np.minimum(np.abs(after - before), 1.0) * np.exp(np.maximum(after, before))
    return float(np.nanmax(moved, initial=0.0))


def place_of_largest(logs: FloatArray, start: Ids) -> Ids:
    """(segment,): how far from its start the first of the largest numbers stands."""
    if len(start) <= 1:
        return np.zeros(0, dtype=np.int64)
    width = np.diff(start)
    is_largest = logs == np.repeat(largest(logs, start), width)
    place = np.arange(len(logs)) - np.repeat(start[:-1], width)
    return np.minimum.reduceat(np.where(is_largest, place, len(logs)), start[:-1])


def categoricals(
    variables: Variables, start: Ids, probs: FloatArray
) -> list[tuple[NDArray[Any], BatchedDistribution]]:
    """Discrete variables by domain, with their distributions; probs: from each one's start on."""
    found: list[tuple[NDArray[Any], BatchedDistribution]] = []
    for number, domain in enumerate(variables.domains):
        ids = np.flatnonzero(variables.domain_id == number)
        if len(ids) and domain.states is not None:
            own = probs[start[ids][:, None] + np.arange(domain.num_states)]
            found.append((ids, Categorical(own / own.sum(axis=1, keepdims=True), domain.states)))
    return found
