"""Categorical components: a probability for each state."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from hylift.components.family import CATEGORICAL, Family, FloatArray, IntArray, Nodes
from hylift.errors import ModelError, UnsupportedError


@final
@dataclass(frozen=True, slots=True, eq=False)
class Categoricals(Family):
    code: ClassVar[int] = CATEGORICAL
    is_discrete: ClassVar[bool] = True

    probs: FloatArray  # (variable, state, component)

    @classmethod
    def of(cls, entries: FloatArray, lower: FloatArray, upper: FloatArray) -> Categoricals:
        return cls(entries)

    @classmethod
    def neutral(cls, size: IntArray, lower: FloatArray, upper: FloatArray) -> FloatArray:
        return np.repeat(1.0 / size, size)

    def check(self) -> None:
        if not ((self.probs >= 0) & (self.probs <= 1 + 1e-9)).all():
            raise ModelError("a probability must lie between 0 and 1")
        if (np.abs(self.probs.sum(axis=1) - 1.0) > 1e-9).any():
            raise ModelError("the probabilities of a discrete variable must sum to 1")

    def log_density(self, values: FloatArray) -> FloatArray:
        state = np.rint(values).astype(np.int64)
        known = (state >= 0) & (state < self.probs.shape[1]) & (state == values)
        variable = np.arange(len(self.probs))
        with np.errstate(divide="ignore"):
            logs = np.log(self.probs[variable, np.where(known, state, 0)])
        return np.where(known[..., None], logs, -np.inf)

    def finite_log_density(self, values: FloatArray) -> FloatArray:
        return self.log_density(values)

    def modes(self) -> FloatArray:
        return np.argmax(self.probs, axis=1).astype(np.float64)

    def best(self, share: FloatArray) -> FloatArray:
        # A component without a share must not matter, even where its probability is 0.
        share = share[..., None, :]
        with np.errstate(divide="ignore", invalid="ignore"):
            logs = np.where(share > 0, share * np.log(self.probs), 0.0)
        return np.argmax(logs.sum(axis=2), axis=1).astype(np.float64)

    def draw(self, component: int, size: int, rng: np.random.Generator) -> FloatArray:
        return draw_states(self.probs[:, :, component], size, rng).astype(np.float64)

    def nodes(self, num_nodes: int) -> Nodes:
        weights = np.swapaxes(self.probs, 1, 2)
        states = np.arange(self.probs.shape[1], dtype=np.float64)
        return Nodes(np.broadcast_to(states, weights.shape), weights, None)

    def moments(self) -> tuple[FloatArray, FloatArray]:
        raise UnsupportedError("states have no mean")


def draw_states(weights: FloatArray, size: int, rng: np.random.Generator) -> IntArray:
    """Indices drawn in proportion to weights (row, state), shape (size, row)."""
    cumulative = np.cumsum(weights, axis=-1)
    num_rows, num_states = cumulative.shape
    rows = np.arange(num_rows)
    draws = rng.random((size, num_rows)) * cumulative[:, -1]
    low = np.zeros((size, num_rows), dtype=np.int64)
    high = np.full((size, num_rows), num_states - 1)
    for _ in range((num_states - 1).bit_length()):  # binary search for the first sum > draw
        middle = (low + high) // 2
        above = cumulative[rows, middle] > draws
        high = np.where(above, middle, high)
        low = np.where(above, low, np.minimum(middle + 1, high))
    return low
