"""The way to a maximum of a mixture of products."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

from hylift.components import Layout
from hylift.components.family import FloatArray, IntArray
from hylift.posterior.distributions.base import log_sum_exp

BLOCK = 1 << 20
"""Numbers of the largest temporary."""
MAX_ASCENT_STEPS = 1000


@dataclass(frozen=True, slots=True, eq=False)
class Climb:
    """The ascent of a mixture, of each of its parts by itself; members of a class and part move
    together."""

    log_weights: FloatArray  # (part, component)
    layout: Layout
    entries: FloatArray  # (entry, component)
    classes: NDArray[np.int32]  # (place,)
    part: NDArray[np.int32]  # (place,)
    members: IntArray  # (place,)

    def from_values(self, values: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The fixed point of the ascent from values (place,), and log q there (part,)."""
        logs = self._log_at(values)
        height = log_sum_exp(logs)
        for _ in range(MAX_ASCENT_STEPS):
            higher = self.best(special.softmax(logs, axis=1))
            new = self._log_at(higher)
            now = log_sum_exp(new)
            rises = now > height
            gain = np.where(rises, now - height, 0.0)
            values = np.where(rises[self.part], higher, values)
            logs, height = np.where(rises[:, None], new, logs), np.where(rises, now, height)
            if (gain <= 1e-13 * np.maximum(1.0, np.abs(height))).all():
                break
        return values, height

    def best(self, shares: FloatArray) -> FloatArray:
        """(place,): the maximiser of Σ_k r_k log q_i^k; shares: (part, component)."""
        values = np.empty(len(self.classes))
        for at, family in self.layout.batches(self.entries, self.classes, width=BLOCK):
            values[at] = family.best(shares[self.part[at]])
        return values

    def _log_at(self, values: FloatArray) -> FloatArray:
        """(part, component): log w_k q^k where all members have the value of their place."""
        total = self.log_weights.copy()
        for at, family in self.layout.batches(self.entries, self.classes, width=BLOCK):
            logs = self.members[at][:, None] * family.finite_log_density(values[at])
            np.add.at(total, self.part[at], logs)
        return total
