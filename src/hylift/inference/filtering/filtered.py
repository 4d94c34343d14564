"""The result of a filter."""

from __future__ import annotations

import json
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from hylift.graph import Variables
from hylift.inference.filtering.forms import FloatArray, IntArray
from hylift.words import counted

FOR_PANDAS = {
    "pandas": json.dumps(
        {
            "index_columns": [],
            "column_indexes": [],
            "columns": [
                {
                    "name": "time",
                    "field_name": "time",
                    "pandas_type": "int64",
                    "numpy_type": "Int64",
                    "metadata": None,
                }
            ],
        }
    )
}
"""Tells pandas to keep times whole numbers, which it makes floats where one is missing."""


@dataclass(frozen=True, slots=True, eq=False)
class Filtered:
    """Each hidden real given all factors and evidence up to its own time; exact up to rounding.

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
    """(hidden real,): without the factors that speak of evidence of its time, but for those through
    which it, or a real that it depends on, comes to life: a density may depend on observed
    variables of its time, and a real that nothing else holds begins with its measurements."""
    predicted_var: FloatArray  # (hidden real,)
    measured: IntArray
    """(measurement,): ids of observed reals in a factor that is their density given others of their
    time or before, and in no other factor; and of reals with soft evidence. Those through which a
    real came to life are not among them. Increasing."""
    measured_time: IntArray  # (measurement,)
    measured_value: FloatArray  # (measurement,)
    measured_mean: FloatArray
    """(measurement,): one step ahead, from what it depends on as that is predicted: so without
    evidence of its time, but for what the predictions of reals know of it."""
    measured_var: FloatArray
    """(measurement,): with the error of measurement."""
    times: IntArray  # (time,): increasing
    log_likelihood: FloatArray
    """(time,): what each adds to log Z. Where the factors are densities, one of each variable given
    others of its time or before and no cycle among them, such as rules `normal(x | …)`, it is the
    log-density of the evidence of a time given all before it."""
    error: FloatArray
    """(time,): rough size of what rounding does to log_likelihood; no bound."""
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

    def table(self, predicate: str | None = None) -> pa.Table:
        """Columns atom, time, mean, sd, predicted_mean, predicted_sd: a row per hidden real.

        Of one predicate: its reals, with a column per argument in the place of `atom`. Time is null
        where there is none.
        """
        columns = {
            "mean": self.mean,
            "sd": np.sqrt(self.var),
            "predicted_mean": self.predicted_mean,
            "predicted_sd": np.sqrt(self.predicted_var),
        }
        return self._table(predicate, self.ids, self.time, columns)

    def predictions(self, predicate: str | None = None) -> pa.Table:
        """Columns atom, time, value, mean, sd, log_density: a row per measurement.

        Of one predicate: those of its reals, with a column per argument in the place of `atom`.
        """
        columns = {
            "value": self.measured_value,
            "mean": self.measured_mean,
            "sd": np.sqrt(self.measured_var),
            "log_density": self.log_density,
        }
        return self._table(predicate, self.measured, self.measured_time, columns)

    def _table(
        self, predicate: str | None, ids: IntArray, time: IntArray, columns: dict[str, FloatArray]
    ) -> pa.Table:
        """The columns for these reals, or for those of a predicate among them."""
        names = self.variables.names
        if predicate is None:
            of_whom, rows = {"atom": names.render(ids)}, np.arange(len(ids))
        else:
            own, atoms = names.predicate(predicate)
            rows = np.flatnonzero((ids >= own[0]) & (ids <= own[-1]))
            of_whom = atoms.take(ids[rows] - own[0]).argument_columns()
        # An argument that is itself called time says more than its number does.
        when = {} if "time" in of_whom else {"time": _times(time[rows])}
        values = {name: column[rows] for name, column in columns.items()}
        return pa.table({**of_whom, **when, **values}, metadata=FOR_PANDAS if when else None)

    def __repr__(self) -> str:
        total, error = self.log_likelihood.sum(), self.error.sum()
        rounding = f" ± {error:.1g}" if error > 1e-6 * max(1.0, abs(total)) else ""
        return (
            f"Filtered({counted(len(self.ids), 'real')} over {counted(len(self.times), 'time')}, "
            f"{counted(len(self.measured), 'measurement')}, "
            f"log Z {total:.6g}{rounding})"
        )


def _times(time: IntArray) -> pa.Array:
    """Times, null where there is none."""
    return pa.array(time, mask=time < 0)
