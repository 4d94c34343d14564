"""Relational Kalman filters of groundwater levels: 20 months of 76 wells, or of 6 that share water;
and of all wells, which the paper does not try.

Most months of most wells are missing. In the variant `paper` a missing first month is 0 and any
other 1, as if it had been measured. In `clean` it is no observation: only months that were measured
have a measurement in the graph, and a first level that is not known has a normal prior.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

import hylift as hl
from experiments.instances import sources
from experiments.instances.instance import Instance, Variant
from hylift.errors import UnknownNameError
from hylift.language.statements import Rule
from hylift.language.syntax import Atom, Normal

Shape = Literal["tree", "cycle", "forest"]
"""`forest`: the model of `tree` with all wells."""

Levels = NDArray[np.float64]  # (well, month): the first as it is, others as measured; NaN: missing

NUM_PUBLISHED = 5
NUM_MONTHS = 20
LAST_MONTH = "x(*,19)"
"""The levels that the paper asks for."""

ALL_LEVELS = (3420, 852)
"""Wells and months of the published levels."""
FIRST_MONTH = 199
MISSING = 5000
"""What the published levels say where there is none."""
CLUSTER, NUM_CLUSTERS = 1, 50
"""That of the wells of the tree."""
CYCLE_WELLS = np.array([16, 105, 2411, 1599, 1831, 2214])

NUM_WELLS = {"tree": 76, "cycle": 6, "forest": ALL_LEVELS[0]}
NUM_MEASURED = {"tree": (9, 7), "cycle": (9, 9, 9), "forest": (8,) * 213 + (7,) * 90}
"""The months of the wells that have any: 16 of 1,520, 27 of 120 and 2,334 of 68,400, as in the
published levels, where those of a forest are spread less evenly."""
SHARED = {"tree": 0.0, "cycle": 0.01, "forest": 0.0}
"""How much of a level goes to every well."""

PRIOR_MEAN, PRIOR_VAR = 0.0, 25.0
"""Of a first level. All published levels together have the mean -0.04 and the variance 24.1."""

GAPS = f"""
    x(well, month): real
    Measured(well, month)
    normal(x(w, 0) | {PRIOR_MEAN}, {PRIOR_VAR})
"""


def published(data: Path, shape: Shape, trial: int, variant: Variant) -> Instance:
    """With the published levels, and the constants of one of the paper's trials."""
    if trial not in range(NUM_PUBLISHED):
        raise UnknownNameError(f"there is no trial {trial}: trials are 0 to {NUM_PUBLISHED - 1}")
    folder = data / "groundwater"
    path = folder / f"LRKF_{_model_of(shape)}.mat"
    param = sources.read_matrix(path, "param", (3, NUM_PUBLISHED))
    levels = sources.read_matrix(folder / "well_t.mat", "well_t", ALL_LEVELS)
    levels = levels[_wells(folder, shape), FIRST_MONTH : FIRST_MONTH + NUM_MONTHS]
    levels[levels == MISSING] = np.nan
    q, r, a = param[:, trial].tolist()
    return Instance(_ground(shape, q, r, a, levels, variant), f"trial {trial}")


def generated(shape: Shape, trial_seed: int, variant: Variant) -> Instance:
    """With constants drawn from the ranges of the published ones, and levels that the model gives.

    As many months as in the published levels are measured. (The paper's text has the ranges of the
    variances the other way round.)
    """
    rng = np.random.default_rng(trial_seed)
    a, q, r = rng.uniform(0.5, 1), rng.uniform(1, 5), rng.uniform(5, 10)
    levels = _simulated(shape, q, r, a, rng)
    levels[~_measured(shape, rng)] = np.nan
    return Instance.generated(_ground(shape, q, r, a, levels, variant), trial_seed)


def _model_of(shape: Shape) -> str:
    return "cycle" if shape == "cycle" else "tree"


def _wells(folder: Path, shape: Shape) -> NDArray[np.int64]:
    if shape == "cycle":
        return CYCLE_WELLS
    if shape == "forest":
        return np.arange(ALL_LEVELS[0])
    path = folder / "cluster_NcutDiscrete.mat"
    membership = sources.read_matrix(path, "NcutDiscrete", (ALL_LEVELS[0], NUM_CLUSTERS))
    return np.flatnonzero(membership[:, CLUSTER])


def _simulated(shape: Shape, q: float, r: float, a: float, rng: np.random.Generator) -> Levels:
    num_wells = NUM_WELLS[shape]
    x = rng.normal(0, np.sqrt(q), (NUM_MONTHS, num_wells))  # changes, to which the rest is added
    x[0] = rng.normal(PRIOR_MEAN, np.sqrt(PRIOR_VAR), num_wells)
    for month in range(1, NUM_MONTHS):
        x[month] += a * x[month - 1] + SHARED[shape] * x[month - 1].sum()
    x[1:] += rng.normal(0, np.sqrt(r), (NUM_MONTHS - 1, num_wells))
    return x.T


def _measured(shape: Shape, rng: np.random.Generator) -> NDArray[np.bool_]:
    """(well, month): whether there is a level."""
    count = np.zeros((NUM_WELLS[shape], 1), dtype=np.int64)
    count[: len(NUM_MEASURED[shape]), 0] = NUM_MEASURED[shape]
    month = np.broadcast_to(np.arange(NUM_MONTHS), (len(count), NUM_MONTHS))
    return rng.permuted(month, axis=1) < rng.permutation(count)


def _ground(
    shape: Shape, q: float, r: float, a: float, levels: Levels, variant: Variant
) -> hl.FactorGraph:
    model = sources.with_constants(
        sources.model(f"kalman-{_model_of(shape)}"), {"q": q, "r": r, "a": a}
    )
    if variant == "paper":
        return hl.ground(model, _evidence(_filled(levels)))
    evidence = _evidence(levels)
    measured = {"Measured": evidence["o"].drop_columns("value")}
    return hl.ground(_with_gaps(model), evidence | measured, closed=["Measured"])


def _filled(levels: Levels) -> Levels:
    """Without gaps: 0 for a first month, 1 for any other."""
    filler = np.where(np.arange(NUM_MONTHS) == 0, 0.0, 1.0)
    return np.where(np.isnan(levels), filler, levels)


def _evidence(levels: Levels) -> dict[str, Any]:
    """The wells, the levels of the first month, and the measurements of all others."""
    well, month = np.nonzero(~np.isnan(levels))
    table = pa.table({"well": well, "month": month, "value": levels[well, month]})
    return {
        "well": list(range(len(levels))),
        "x": table.filter(pa.array(month == 0)),
        "o": table.filter(pa.array(month > 0)),
    }


def _with_gaps(model: hl.Model) -> hl.Model:
    """The model in which only what is `Measured` has a measurement, and first levels a prior."""
    added = hl.parse(GAPS)
    rules = (*map(_guarded, model.rules), *added.rules)
    predicates = (*model.predicates, added.predicate_by_name["Measured"])
    return replace(model, predicates=predicates, rules=rules)


def _guarded(rule: Rule) -> Rule:
    formula = rule.formula
    if not (isinstance(formula, Normal) and isinstance(formula.value, Atom)):
        return rule
    if formula.value.predicate != "o":
        return rule
    measured = Atom("Measured", formula.value.arguments)
    return replace(rule, where=(*rule.where, measured))
