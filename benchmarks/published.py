"""The models of the paper, with their published evidence."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import scipy.io
from numpy.typing import NDArray

import hylift as hl
from hylift.language.syntax import Number

MODELS = Path(__file__).parents[1] / "examples" / "models"
CYCLE_WELLS = [16, 105, 2411, 1599, 1831, 2214]
MISSING = 5000


def toy() -> hl.FactorGraph:
    return hl.ground(hl.read_model(MODELS / "toy.mln"))


def rgm(data: Path, number: int) -> hl.FactorGraph:
    return hl.ground(hl.read_model(MODELS / "rgm.mln"), data / "rgm" / f"evidence_{number}.csv")


def papers(data: Path) -> hl.FactorGraph:
    evidence = data / "papers" / "evidence_0.csv"
    return hl.ground(hl.read_model(MODELS / "papers.mln"), evidence, unmatched="ignore")


def robot(data: Path) -> hl.FactorGraph:
    evidence = data / "robot" / "robot-map.db"
    model = hl.read_model(MODELS / "robot.mln")
    return hl.ground(model, evidence, closed=["Aligned"], unmatched="ignore")


def kalman(data: Path, name: str, trial: int) -> hl.FactorGraph:
    """The filter of the wells of a 'tree' or a 'cycle', with the parameters of one trial.

    Missing months are observed as 1, the first as 0, as in the paper.
    """
    folder = data / "groundwater"
    param = scipy.io.loadmat(folder / f"LRKF_{name}.mat")["param"][:, trial]
    new = dict(zip("qra", map(float, param), strict=True))
    model = hl.read_model(MODELS / f"kalman-{name}.mln")
    parameters = tuple(
        replace(each, value=Number(new[each.name])) if each.name in new else each
        for each in model.parameters
    )
    wells = CYCLE_WELLS if name == "cycle" else _tree_wells(folder)
    levels = scipy.io.loadmat(folder / "well_t.mat")["well_t"][wells, 199:219].astype(float)
    missing = levels == MISSING
    levels[missing] = 1.0
    levels[missing[:, 0], 0] = 0.0
    well, month = (axis.ravel() for axis in np.indices(levels.shape))
    table = pa.table({"well": well, "month": month, "value": levels.ravel()})
    first = pa.array(month == 0)
    evidence = {"x": table.filter(first), "o": table.filter(pa.array(month > 0))}
    return hl.ground(replace(model, parameters=parameters), evidence)


def _tree_wells(folder: Path) -> NDArray[np.int64]:
    found = scipy.io.loadmat(folder / "cluster_NcutDiscrete.mat")
    (membership,) = (value for key, value in found.items() if not key.startswith("_"))
    return np.flatnonzero(membership[:, 1])
