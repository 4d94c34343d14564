"""What a filter says."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hylift.graph import Variables
from hylift.words import counted

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Filtered:
    """Each hidden real given all factors and evidence up to its own time; all of it is exact.

    Reals without a time, of time -1, belong to the first time; they are predicted there, and
    filtered to the end.
    """

    variables: Variables
    ids: IntArray
    """(hidden real,): its id, increasing."""
    time: IntArray  # (hidden real,)
    mean: FloatArray  # (hidden real,)
    var: FloatArray  # (hidden real,)
    predicted_mean: FloatArray
    """(hidden real,): without the evidence of its time, but for observed variables that its own
    density depends on. A real that nothing else holds begins with the evidence of its time."""
    predicted_var: FloatArray  # (hidden real,)
    measured: IntArray
    """(measurement,): ids of reals that are observed, in a factor that is their density given
    others, and in no other one; and of reals with soft evidence. Increasing."""
    measured_time: IntArray  # (measurement,)
    measured_value: FloatArray  # (measurement,)
    measured_mean: FloatArray
    """(measurement,): one step ahead, without all evidence of its time."""
    measured_var: FloatArray
    """(measurement,): with the error of measurement."""
    times: IntArray  # (time,): increasing
    log_likelihood: FloatArray
    """(time,): what each adds to log Z. In a model of conditional densities, such as rules
    `normal(x | …)`, it is the log-density of the evidence of a time given all before it."""
    width: int
    """Most reals that had to be held at once; memory grows with its square."""

    @property
    def log_partition(self) -> FloatArray:
        """(time,): log Z of the model up to each time; the last is that of the whole."""
        return np.cumsum(self.log_likelihood)

    @property
    def log_density(self) -> FloatArray:
        """(measurement,): of what was measured, one step ahead."""
        error = self.measured_value - self.measured_mean
        return -0.5 * (np.log(2 * np.pi * self.measured_var) + error**2 / self.measured_var)

    def table(self) -> pa.Table:
        """Columns atom, time, mean, sd, predicted_mean, predicted_sd: a row per hidden real."""
        return pa.table(
            {
                "atom": self.variables.names.render(self.ids),
                "time": _times(self.time),
                "mean": self.mean,
                "sd": np.sqrt(self.var),
                "predicted_mean": self.predicted_mean,
                "predicted_sd": np.sqrt(self.predicted_var),
            }
        )

    def predictions(self) -> pa.Table:
        """Columns atom, time, value, mean, sd, log_density: a row per measurement."""
        return pa.table(
            {
                "atom": self.variables.names.render(self.measured),
                "time": _times(self.measured_time),
                "value": self.measured_value,
                "mean": self.measured_mean,
                "sd": np.sqrt(self.measured_var),
                "log_density": self.log_density,
            }
        )

    def __repr__(self) -> str:
        return (
            f"Filtered({counted(len(self.ids), 'real')} over {counted(len(self.times), 'time')}, "
            f"{counted(len(self.measured), 'measurement')}, "
            f"log Z {self.log_likelihood.sum():.6g})"
        )


def _times(time: IntArray) -> pa.Array:
    """Times, null where there is none."""
    return pa.array(time, mask=time < 0)
