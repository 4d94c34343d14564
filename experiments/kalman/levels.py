"""Levels of wells over the months: what is known of them, and what methods say."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

import hylift as hl
from experiments import measure
from experiments.instances import Variant, kalman
from experiments.kalman.trials import Trial

Grid = NDArray[np.float64]  # (well, month)

NUM_SHOWN = 3


@dataclass(frozen=True, slots=True, eq=False)
class Band:
    """What a method says of levels: the mean, and the quantiles that 90 % lie between."""

    label: str
    mean: Grid
    low: Grid
    high: Grid


@dataclass(frozen=True, slots=True, eq=False)
class Levels:
    """The wells of one variant."""

    variant: Variant
    measured: Grid
    """NaN where there is no measurement."""
    fillers: Grid
    """What stands in for measurements that are missing; NaN elsewhere."""
    bands: tuple[Band, ...]
    """Of the exact answer first."""

    def shown(self) -> list[int]:
        """Wells for a picture: those with most measurements, and one without any."""
        count = np.count_nonzero(~np.isnan(self.measured), axis=1)
        most = np.argsort(-count, kind="stable")[: NUM_SHOWN - 1]
        return [*most.tolist(), int(np.argmin(count))]

    def table(self) -> list[dict[str, Any]]:
        """A row per month of the wells that are shown."""
        return [
            {
                "variant": self.variant,
                "well": well,
                "month": month,
                "measured": _number(self.measured[well, month]),
                "filler": _number(self.fillers[well, month]),
                **{
                    f"{band.label} {what}": float(grid[well, month])
                    for band in self.bands
                    for what, grid in (("mean", band.mean), ("q05", band.low), ("q95", band.high))
                },
            }
            for well in self.shown()
            for month in range(self.measured.shape[1])
        ]


def levels_of(variant: Variant, trial: Trial, measured: Grid) -> Levels:
    """The levels of a trial; `measured`: without what stands in for missing measurements."""
    fillers = np.where(np.isnan(measured), known_levels(trial.exact.posterior), np.nan)
    lifted = [run for run in trial.runs if run.label == "L-BVI"]
    bands = [_band("exact", trial.exact.posterior)]
    bands += [
        _band(f"L-BVI, K = {measure.components(run.method)}", run.posterior) for run in lifted
    ]
    return Levels(variant, measured, fillers, tuple(bands))


def known_levels(posterior: hl.Posterior) -> Grid:
    """All that is observed: the levels of the first month, and measurements of others."""
    x, o = (posterior.table(name, observed=True) for name in ("x", "o"))
    given = np.where(_grid(x, "std") == 0, _grid(x, "mean"), np.nan)
    measured = _grid(o, "mean", len(given))
    return np.where(np.isnan(given), measured, given)


def _band(label: str, posterior: hl.Posterior) -> Band:
    levels = posterior.table("x", observed=True)
    return Band(label, *(_grid(levels, column) for column in ("mean", "q05", "q95")))


def _grid(table: pa.Table, column: str, num_wells: int | None = None) -> Grid:
    """A column by well and month; NaN where the table has no row."""
    well, month = (table[name].cast(pa.int64()).to_numpy() for name in ("well", "month"))
    found = np.full((num_wells or int(well.max()) + 1, kalman.NUM_MONTHS), np.nan)
    found[well, month] = table[column].to_numpy()
    return found


def _number(value: float) -> float | None:
    return None if np.isnan(value) else float(value)
