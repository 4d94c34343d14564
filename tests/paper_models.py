"""The models of the paper, grounded with their published evidence."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import scipy.io
from numpy.typing import NDArray

from hylift.grounding import Grounding, World, ground_world
from hylift.language import read_model

MODELS = Path(__file__).parents[1] / "examples" / "models"

CYCLE_WELLS = [16, 105, 2411, 1599, 1831, 2214]


def grounded(name: str, evidence: Any = None, **options: Any) -> Grounding:
    """A model of the examples with evidence."""
    return ground_world(World.of(read_model(MODELS / f"{name}.mln"), evidence, **options))


def kalman_tree(data_dir: Path) -> Grounding:
    """The relational Kalman filter of the 76 wells of one cluster."""
    folder = data_dir / "groundwater"
    members = scipy.io.loadmat(folder / "cluster_NcutDiscrete.mat")
    membership = next(value for key, value in members.items() if not key.startswith("_"))
    membership = membership.toarray() if hasattr(membership, "toarray") else membership
    table = wells(folder, np.flatnonzero(membership[:, 1]))
    return grounded("kalman-tree", kalman_evidence(table))


def kalman_cycle(data_dir: Path) -> Grounding:
    """The relational Kalman filter of six wells that share water."""
    table = wells(data_dir / "groundwater", CYCLE_WELLS)
    return grounded("kalman-cycle", kalman_evidence(table))


def wells(folder: Path, columns: list[int] | NDArray[np.int64]) -> pa.Table:
    """Levels of the first 20 months, with the fillers of the paper for what is missing."""
    levels = scipy.io.loadmat(folder / "well_t.mat")["well_t"][columns, 199:219].astype(float)
    missing = levels == 5000
    levels[missing] = 1.0
    levels[missing[:, 0], 0] = 0.0
    well, month = (axis.ravel() for axis in np.indices(levels.shape))
    return pa.table({"well": well, "month": month, "value": levels.ravel()})


def kalman_evidence(table: pa.Table) -> dict[str, pa.Table]:
    """The levels of the first month, and the measurements of all others."""
    first = np.asarray(table["month"]) == 0
    return {"x": table.filter(pa.array(first)), "o": table.filter(pa.array(~first))}
