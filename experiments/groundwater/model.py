"""The relational model of the wells of a cluster."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

import hylift as hl
from experiments.instances.sources import with_constants

MODEL = Path(__file__).with_name("groundwater.mln")
MONTHS_OF_YEAR = 12

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Parameters:
    """Of each well, and of what the wells of a cluster share, by their names in the model."""

    a: FloatArray  # (well,)
    q: FloatArray  # (well,)
    r: FloatArray  # (well,)
    b: float
    s: float
    v: float

    @classmethod
    def equal(
        cls, num_wells: int, a: float, q: float, r: float, b: float, s: float, v: float
    ) -> Self:
        """The same for all wells."""
        return cls(*(np.full(num_wells, value) for value in (a, q, r)), b, s, v)


def ground(
    levels: FloatArray, parameters: Parameters, shown: IntArray | None = None
) -> hl.FactorGraph:
    """The graph of a cluster.

    levels: (well, month), NaN where nothing was measured. shown: wells, counted within the cluster,
    of which there is a reading of every month.
    """
    num_wells, num_months = levels.shape
    well, month = np.nonzero(~np.isnan(levels))
    measured = pa.table({"well": well, "month": month})
    every, each = np.arange(num_months), np.arange(num_wells)
    evidence: dict[str, Any] = {
        "well": each.tolist(),
        "month": every.tolist(),
        "Measured": measured,
        "Shown": pa.table({"well": np.zeros(0, np.int64) if shown is None else shown}),
        "OfYear": pa.table({"month": every, "year": every % MONTHS_OF_YEAR + 1}),
        "o": measured.append_column("value", pa.array(levels[well, month])),
    }
    for name in ("a", "q", "r"):
        evidence[name] = pa.table({"well": each, "value": getattr(parameters, name)})
    constants = {name: getattr(parameters, name) for name in ("b", "s", "v")}
    model = with_constants(_model(), constants)
    return hl.ground(model, evidence, closed=["Measured", "Shown", "OfYear"])


@cache
def _model() -> hl.Model:
    return hl.read_model(MODEL)
