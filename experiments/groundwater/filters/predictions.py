"""Predictions of measurements a month ahead, and how good they are."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from experiments.groundwater.model import FloatArray, IntArray

FIRST_HELD_OUT = 732
"""Parameters are fitted to the months before it: 61 years of 71."""

WITHIN_90 = 1.6448536269514722
"""Standard deviations on either side of the mean, between which a normal is with 90 %."""


@dataclass(frozen=True, slots=True, eq=False)
class Measurements:
    """What was measured in the wells of a cluster: well by well, and by month in each."""

    well: IntArray  # (measurement,)
    month: IntArray  # (measurement,)
    value: FloatArray  # (measurement,)
    num_wells: int
    num_months: int

    @classmethod
    def of(cls, levels: FloatArray) -> Measurements:
        """levels: (well, month), NaN where nothing was measured."""
        well, month = np.nonzero(~np.isnan(levels))
        return cls(well, month, levels[well, month], *levels.shape)

    def __len__(self) -> int:
        return len(self.value)

    @property
    def is_held_out(self) -> NDArray[np.bool_]:
        return self.month >= FIRST_HELD_OUT

    def take(self, chosen: NDArray[np.bool_]) -> Measurements:
        return replace(
            self, well=self.well[chosen], month=self.month[chosen], value=self.value[chosen]
        )


@dataclass(frozen=True, slots=True, eq=False)
class Predictions:
    """Measurements, and what they were predicted to be from those of earlier months."""

    measurements: Measurements
    mean: FloatArray  # (measurement,)
    var: FloatArray  # (measurement,)
    by_month: FloatArray
    """(month,): log-density of all measurements of a month together, given earlier months; the sum
    is that of all measurements."""

    @classmethod
    def of(
        cls, measurements: Measurements, mean: FloatArray, var: FloatArray, joint: FloatArray
    ) -> Predictions:
        """joint: (measurement,), log-density given earlier months and others of its own."""
        by_month: FloatArray = np.bincount(measurements.month, joint, measurements.num_months)
        return cls(measurements, mean, var, by_month)

    @property
    def error(self) -> FloatArray:
        return self.measurements.value - self.mean

    @property
    def joint(self) -> float:
        """Log-density of all measurements."""
        return float(self.by_month.sum())

    @property
    def log_density(self) -> FloatArray:
        """(measurement,): given earlier months only."""
        return density_of(self.error, self.var)

    @property
    def is_inside(self) -> NDArray[np.bool_]:
        """(measurement,): whether it is within the interval that it should be in with 90 %."""
        return np.abs(self.error) <= WITHIN_90 * np.sqrt(self.var)

    def difference(self, other: Predictions) -> float:
        """The largest between means, variances and log-densities of months, each as a part of the
        largest of its kind."""
        pairs = (
            (self.mean, other.mean), (self.var, other.var), (self.by_month, other.by_month)
        )  # fmt: skip
        return max(
            float(np.abs(one - two).max(initial=0.0) / max(np.abs(two).max(initial=0.0), 1.0))
            for one, two in pairs
        )

    def held_out(self) -> Predictions:
        """Those of months that no parameter was fitted to."""
        chosen = self.measurements.is_held_out
        by_month = self.by_month.copy()
        by_month[:FIRST_HELD_OUT] = 0.0
        return Predictions(
            self.measurements.take(chosen), self.mean[chosen], self.var[chosen], by_month
        )


def density_of(error: FloatArray, var: FloatArray) -> FloatArray:
    """Log-densities of normals."""
    return -0.5 * (np.log(2 * np.pi * var) + error**2 / var)
