"""Calibration of stated errors by split conformal prediction, from records of random models."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from benchmarks.families.practice import PRACTICE
from benchmarks.families.records import collect, read
from benchmarks.setting import Setting
from hylift.numerics.segments import maxima
from hylift.posterior.trust import MOST_MEAN, MOST_PROB, MOST_STD

Vector = NDArray[np.float64]

LEVEL = 0.95
SHARES = {"smc": 1, "gibbs": 7}
"""Checks, and that all or one in seven of the models are for them."""
FLOORS = {"prob": 0.005, "mean": 0.02, "std": 0.03}
"""Least scores of errors of a probability, of a mean in deviations, and of the logarithm of a
deviation: standard errors may be 0 by chance."""
LIMITS = {"prob": MOST_PROB, "mean": MOST_MEAN, "std": float(np.log(MOST_STD))}


@dataclass(frozen=True, slots=True, eq=False)
class Scores:
    """Errors of an answer and what they are stated from; each is (variable,)."""

    model: NDArray[np.int64]
    error: Vector
    gap: Vector
    """|answer - flat|, which is 0 where flat is the answer."""
    score: Vector
    """The larger of two standard errors of flat and the floor."""

    def by_model(self, values: Vector) -> Vector:
        """(model,): the largest of the values of its variables."""
        first = np.unique(self.model, return_index=True)[1]
        return maxima(values, np.append(first, len(values)))

    def ratio(self) -> Vector:
        """(model,): the multiplier with which the errors of all its variables are covered."""
        return self.by_model(np.maximum(self.error - self.gap, 0.0) / self.score)

    def covered(self, multiplier: float) -> tuple[float, float]:
        """The share of variables, of a random model, whose error is covered; that of models all
        of whose variables are."""
        _, number, count = np.unique(self.model, return_inverse=True, return_counts=True)
        holds = self.error <= self.gap + multiplier * self.score
        held = np.bincount(number, holds) / count
        return float(held.mean()), float((held == 1.0).mean())


def scores(records: pa.Table, answer: str) -> dict[str, Scores]:
    """The scores of an answer to all models, by kind of error.

    An error is infinite where the answer is NaN, or the flat run has none.
    """
    if answer != "flat":
        records = records.filter(pc.is_valid(records[f"{answer}_result"]))
    columns = {name: records[name].to_numpy() for name in records.column_names}
    is_real, model = columns["is_real"].astype(bool), columns["seed"].astype(np.int64)
    own, std = columns[answer], columns[f"{answer}_std"]
    exact, exact_std = columns["exact"], columns["exact_std"]
    flat, flat_std, error = columns["flat"], columns["flat_std"], columns["flat_error"]
    logs = np.log([std / exact_std, std / flat_std])
    parts = {
        "prob": (own - exact, own - flat, error),
        "mean": (
            (own - exact) / exact_std, (own - flat) / np.minimum(std, flat_std), error / flat_std
        ),
        "std": (*logs, columns["flat_std_error"]),
    }  # fmt: skip
    found: dict[str, Scores] = {}
    for kind, (off, gap, error) in parts.items():
        some = np.flatnonzero(is_real != (kind == "prob"))
        variable = model[some] * 10_000 + columns["variable"][some].astype(np.int64)
        first = np.unique(variable, return_index=True)[1]
        bounds = np.append(first, len(some))
        score = np.fmax(2.0 * error[some], FLOORS[kind])
        off, gap = np.abs(off[some]), np.abs(gap[some])
        values = np.where(np.isnan(off), np.inf, off), np.where(np.isnan(gap), 0.0, gap), score
        if len(some):
            largest = [maxima(value, bounds) for value in values]
            found[kind] = Scores(model[some][first], *largest)
    return found


def multiplier(found: list[Scores]) -> float:
    """The multiple of scores that covers the errors of all variables in 95 % of new models.

    Models are exchangeable, their variables are not: so it is the quantile of the worst variable
    of each model, corrected for the number of models.
    """
    worst = np.sort(np.concatenate([np.zeros(0), *(one.ratio() for one in found)]))
    place = int(np.ceil(LEVEL * (len(worst) + 1)))
    return float(worst[place - 1]) if place <= len(worst) else np.inf


@dataclass(frozen=True, slots=True, eq=False)
class Calibration:
    """Scores of the flat answer, and of EP, by family and kind of error."""

    flat: Mapping[str, Mapping[str, Scores]]
    joint: Mapping[str, Mapping[str, Scores]]

    @classmethod
    def of(cls, records: Mapping[str, pa.Table]) -> Calibration:
        """From runs that do not doubt themselves, or failed: others are doubtful whatever is
        stated."""
        usable = {
            family: table.filter(pc.fill_null(pc.equal(table["flat_result"], "converged"), True))
            for family, table in records.items()
            if "flat_result" in table.column_names
        }
        flat = {family: scores(table, "flat") for family, table in usable.items()}
        return cls(flat, {family: scores(table, "ep") for family, table in usable.items()})

    def multipliers(self, without: str | None = None) -> dict[str, float]:
        """By kind of error, from all families but one."""
        return {
            kind: multiplier(
                [own[kind] for name, own in self.flat.items() if name != without and kind in own]
            )
            for kind in FLOORS
        }

    def num_models(self, family: str) -> int:
        return max(len(one.ratio()) for one in self.flat[family].values())

    def coverage(self) -> Iterator[str]:
        """A line per family: the share of variables that multipliers from all others cover."""
        yield f"{'held out':12} models  " + "  ".join(
            f"{kind + ' ' + what:>9}" for kind in FLOORS for what in ("flat", "all", "EP")
        )
        for family, own in self.flat.items():
            others, cells = self.multipliers(family), []
            for kind in FLOORS:
                if kind in own:
                    found = own[kind].covered(others[kind])
                    joint = self.joint[family][kind].covered(others[kind])
                    cells += [*found, joint[0]]
                else:
                    cells += [np.nan] * 3
            yield f"{family:12} {self.num_models(family):6}  " + "  ".join(
                f"{100 * cell:9.1f}" for cell in cells
            )

    def verdicts(self) -> str:
        """The share of models that flat has wrong, wrong and not flagged, right and flagged; and of
        those with all errors as stated or less, by multipliers from other families."""
        wrong, flagged, held = [], [], []
        for family, own in self.flat.items():
            limits = self.multipliers(family)
            models = np.unique(np.concatenate([one.model for one in own.values()]))
            off, stated, ratio = np.zeros((3, len(models)))
            for kind, one in own.items():
                at = np.searchsorted(models, np.unique(one.model))
                off[at] = np.maximum(off[at], one.by_model(one.error) / LIMITS[kind])
                large = limits[kind] * one.by_model(one.score)
                stated[at] = np.maximum(stated[at], large / LIMITS[kind])
                ratio[at] = np.maximum(ratio[at], one.ratio() / limits[kind])
            held.append(ratio <= 1.0)
            wrong.append(off > 1.0)
            flagged.append(stated > 1.0)
        is_wrong, is_flagged = np.concatenate(wrong), np.concatenate(flagged)
        counts = is_wrong, is_wrong & ~is_flagged, ~is_wrong & is_flagged, np.concatenate(held)
        return " / ".join(f"{100 * part.mean():.2f}" for part in counts) + " %"


def run(setting: Setting) -> None:
    """stated errors against true ones on random models, by family; writes calibration.json"""
    with TemporaryDirectory() as temporary:
        folder = setting.records or Path(temporary)
        families = setting.families or tuple(PRACTICE)
        content: dict[str, Any] = {"level": LEVEL, "floor": FLOORS, "multiplier": {}, "models": {}}
        content["version"] = metadata.version("hylift")
        for check, share in SHARES.items():
            collect(folder, setting.models // (len(families) * share), families, check)
            found = Calibration.of(read(folder, check))
            content["multiplier"][check] = {
                kind: round(value, 3) for kind, value in found.multipliers().items()
            }
            content["models"][check] = {name: found.num_models(name) for name in found.flat}
            print(
                f"\n{check}: multipliers {content['multiplier'][check]}",
                *found.coverage(),
                sep="\n",
            )
            what = "wrong / wrong and not flagged / right but flagged / all errors as stated"
            print(f"{what}: {found.verdicts()}")
        if setting.records is not None:
            path = folder / "calibration.json"
            path.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
            print(f"\nwritten: {path}")
