"""How much the parameters of wells may differ, tuned on the last ten years of the training."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from experiments.groundwater.filters import fit
from experiments.groundwater.filters.predictions import FIRST_HELD_OUT, Measurements
from experiments.groundwater.model import FloatArray

FIRST_VALIDATED = FIRST_HELD_OUT - 120
STRENGTHS = (256.0, 64.0, 16.0, 4.0, 1.0, 0.25)
"""Each is fitted from the one before on."""
FLOORS = (0.0, 0.01, 0.03, 0.1, 0.3, 1.0)


@dataclass(frozen=True, slots=True)
class Shrinkage:
    """How parameters of wells are kept near those of their cluster."""

    strength: float
    """Of the penalty on what they differ by."""
    floor: float
    """The least that a variance may be, as a part of the cluster's. A well that was never seen to
    move is not sure never to."""

    def fit(self, training: Measurements, shared: FloatArray) -> FloatArray:
        """(well, 3): free parameters of each well."""
        return fit.floored(fit.fit_own(training, shared, self.strength), shared, self.floor)


@dataclass(frozen=True, slots=True, eq=False)
class Tuning:
    """What each shrinkage is worth."""

    log_density: FloatArray
    """(strength, floor): of measurements a month ahead, in sum."""
    count: int

    @classmethod
    def of(cls, measurements: Measurements) -> Tuning:
        """Of a cluster; held-out months are not looked at."""
        m = measurements.take(~measurements.is_held_out)
        is_validated = m.month >= FIRST_VALIDATED
        training = m.take(~is_validated)
        shared = fit.fit_shared(training)
        wells, found = None, np.empty((len(STRENGTHS), len(FLOORS)))
        for row, strength in enumerate(STRENGTHS):
            wells = fit.fit_own(training, shared, strength, wells)
            for column, floor in enumerate(FLOORS):
                predictions = fit.alone(m, fit.floored(wells, shared, floor))
                found[row, column] = predictions.log_density[is_validated].sum()
        return cls(found, int(is_validated.sum()))

    @classmethod
    def joined(cls, parts: Sequence[Tuning]) -> Tuning:
        """Of all clusters."""
        return cls(sum((each.log_density for each in parts), np.zeros(())),
                   sum(each.count for each in parts))  # fmt: skip

    @property
    def best(self) -> Shrinkage:
        row, column = np.unravel_index(np.argmax(self.log_density), self.log_density.shape)
        return Shrinkage(STRENGTHS[row], FLOORS[column])

    def table(self) -> list[dict[str, Any]]:
        """A line per shrinkage."""
        return [
            {"strength": strength, "floor": floor, "log_density": float(one) / max(self.count, 1)}
            for strength, line in zip(STRENGTHS, self.log_density, strict=True)
            for floor, one in zip(FLOORS, line, strict=True)
        ]
