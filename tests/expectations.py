"""Expected log-values of factors under independent beliefs, by sums over points."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hylift.numerics.quadrature import hermite_rule
from hylift.potentials import REAL, Potential
from hylift.potentials.base import FloatArray, IntArray, along_axis


@dataclass(frozen=True, slots=True)
class SlotBelief:
    """Independent beliefs about the variables in one slot, one per factor, as weighted points.

    A discrete slot has its states as points and their probabilities as weights. A real slot has
    the nodes and weights of a Gauss rule of at least two nodes, which carries mean and variance
    exactly.
    """

    points: FloatArray  # (factor, point)
    weights: FloatArray  # (factor, point), each row sums to 1

    @classmethod
    def discrete(cls, probs: FloatArray) -> SlotBelief:
        """Beliefs over states; probs: (factor, state)."""
        probs = np.asarray(probs, dtype=np.float64)
        states = np.arange(probs.shape[1], dtype=np.float64)
        return cls(np.broadcast_to(states, probs.shape), probs)

    @classmethod
    def gaussian(cls, mean: FloatArray, var: FloatArray, num_nodes: int = 12) -> SlotBelief:
        """Gaussian beliefs on Gauss-Hermite nodes; mean, var: (factor,)."""
        nodes, weights = hermite_rule(num_nodes)
        points = np.asarray(mean)[:, None] + np.sqrt(np.asarray(var))[:, None] * nodes
        return cls(points, np.broadcast_to(weights, points.shape))

    @property
    def mean(self) -> FloatArray:
        return np.einsum("ft,ft->f", self.points, self.weights)

    @property
    def var(self) -> FloatArray:
        centred = self.points - self.mean[:, None]
        return np.einsum("ft,ft,ft->f", centred, centred, self.weights)


def expectation(potential: Potential, row: IntArray, beliefs: Sequence[SlotBelief]) -> FloatArray:
    """Expected log-potential by summing over the product of the beliefs' points."""
    arity = len(beliefs)
    grid: list[NDArray[Any]] = []
    for axis, belief in enumerate(beliefs):
        points = belief.points.reshape(along_axis(axis, arity, len(row)))
        is_real = potential.slot_states[axis] == REAL
        grid.append(points if is_real else points.astype(np.int64))
    values = potential.log_value(row.reshape((-1,) + (1,) * arity), grid)
    return weighted_sum(values, [belief.weights for belief in beliefs])


def weighted_sum(values: FloatArray, weights: Sequence[FloatArray]) -> FloatArray:
    """(factor,): values (factor, point of slot 0, ...) weighted by each slot's (factor, point).

    A point of weight zero does not count, even where the value is -inf.
    """
    joint = np.ones((len(values),) + (1,) * len(weights))
    for axis, weight in enumerate(weights):
        joint = joint * weight.reshape(along_axis(axis, len(weights), len(values)))
    terms = joint * np.where(joint > 0, values, 0.0)
    return np.asarray(terms.reshape(len(values), -1).sum(axis=1))
