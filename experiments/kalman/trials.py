"""All methods of the table on the trials of one variant."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

import hylift as hl
from experiments import measure
from experiments.instances import Instance, Variant, kalman
from experiments.kalman.printed import PRINTED, TENSORFLOW
from experiments.measure import Run
from experiments.report import Printed, Row, summary
from experiments.setting import Setting
from hylift.inference import Lift, Method
from hylift.progress import Progress

NUM_PARTICLES = 20
METHODS: tuple[tuple[Method, Lift], ...] = (
    (hl.GaBP(), "exact"),
    (hl.EPBP(NUM_PARTICLES), "exact"),
    (hl.BVI(1), "none"),
    (hl.BVI(1), "exact"),
    (hl.BVI(1), "coarse-to-fine"),
    (hl.NPVI(1), "none"),
    (hl.NPVI(1), "exact"),
    (hl.BVI(5), "exact"),
)
WITHOUT_REFERENCE = (
    "Gaussian belief propagation, from which the paper measures, converges in no trial: this is "
    "the distance from the exact answer"
)
LONG = 0.2
"""Seconds from which on a run is timed once: what disturbs a long one is a small part of it."""


@dataclass(frozen=True, slots=True, eq=False)
class Trial:
    """One choice of the constants, with the answers to it."""

    graph: hl.FactorGraph
    exact: Run
    runs: tuple[Run, ...]
    """In the order of `METHODS`."""

    @property
    def reference(self) -> hl.Posterior:
        """The answer of Gaussian belief propagation, with which the paper compares."""
        return self.runs[0].posterior

    @property
    def has_reference(self) -> bool:
        return self.reference.solution.result == "converged"


def trial(setting: Setting, shape: kalman.Shape, variant: Variant, number: int) -> Trial:
    """The answers of all methods to one trial."""
    graph = instance(setting, shape, variant, number).graph
    exact = timed(setting, graph, hl.Exact(), "none")
    runs = tuple(timed(setting, graph, method, lift) for method, lift in METHODS)
    return Trial(graph, exact, runs)


def instance(setting: Setting, shape: kalman.Shape, variant: Variant, number: int) -> Instance:
    """A trial with published levels, or with generated ones where there is no folder of data."""
    if setting.data is None:
        return kalman.generated(shape, number, variant)
    return kalman.published(setting.data, shape, number, variant)


def timed(setting: Setting, graph: hl.FactorGraph, method: Method, lift: Lift) -> Run:
    """A run, repeated for its time unless it takes long."""
    first = measure.run(graph, method, lift)
    if first.seconds > LONG:
        return first
    return measure.run(graph, method, lift, num_timed=setting.num_timed)


def all_trials(
    setting: Setting, shape: kalman.Shape, variant: Variant, progress: Progress
) -> list[Trial]:
    found = []
    for number in range(setting.num_seeds):
        progress(number / setting.num_seeds, f"trial {number + 1} of {setting.num_seeds}")
        found.append(trial(setting, shape, variant, number))
    return found


def name(run: Run) -> str:
    """As in the paper, which says EPBP and GaBP whether or not they are lifted."""
    lifted = measure.components(run.method) is not None
    return run.label if lifted else run.label.removeprefix("L-")


def rows(shape: kalman.Shape, variant: Variant, trials: Sequence[Trial]) -> list[Row]:
    """The table of one variant: means over trials, beside the paper's figures on its evidence."""
    found = []
    for place in (*range(1, len(METHODS)), 0):  # the reference comes last
        found += _rows_of(shape, variant, trials, place)
    seconds = [one.exact.seconds for one in trials]
    found.append(_row(f"{variant} variant", "Exact", None, "seconds", seconds))
    return found


def _rows_of(
    shape: kalman.Shape, variant: Variant, trials: Sequence[Trial], place: int
) -> list[Row]:
    """Of one method."""
    label, run = f"{variant} variant", trials[0].runs[place]
    method, num = name(run), measure.components(run.method)
    of_paper = PRINTED[shape] if variant == "paper" else {}
    measured = _measured(trials, place)
    found = [
        _row(label, method, num, what, values, of_paper.get((method, num, what)))
        for what, values in measured.items()
    ]
    left_out = of_paper.get((method, num, "l1"))
    if "l1" not in measured and left_out is not None:
        row = _row(label, method, num, "l1", measured["l1 exact"], left_out)
        found.insert(0, replace(row, why=WITHOUT_REFERENCE))
    if variant == "paper" and (method, num) in TENSORFLOW[shape]:
        paper = TENSORFLOW[shape][method, num]
        found.append(_row(label, method, num, "seconds (TensorFlow)", measured["seconds"], paper))
    return found


def _measured(trials: Sequence[Trial], place: int) -> dict[str, list[float]]:
    """The figures of a method in all trials to which there is an answer.

    What is about the reference, or of it, has the trials in which it has converged.
    """
    found: dict[str, list[float]] = {}
    for one in trials:
        for what, value in figures(one, one.runs[place]).items():
            is_of_reference = what == "l1" if place else what != "seconds"
            known = found.setdefault(what, [])
            if one.has_reference or not is_of_reference:
                known.append(value)
    if place == 0:
        del found["l1"]  # from itself
    return {what: values for what, values in found.items() if values}


def _row(
    label: str,
    method: str,
    num: int | None,
    what: str,
    values: Sequence[float],
    paper: Printed | None = None,
) -> Row:
    if not np.all(np.isfinite(values)):  # a method without mass where there is some: KL
        return Row(label, method, num, what, np.inf, None, paper)
    value, spread = summary(values)
    return Row(label, method, num, what, value, None if "seconds" in what else spread, paper)


def figures(trial: Trial, run: Run) -> dict[str, float]:
    """What is measured of an answer: of the levels of the last month, and its time."""
    exact = trial.exact.posterior
    mode, expected, true = (
        measure.modes(each, kalman.LAST_MONTH) for each in (run.posterior, trial.reference, exact)
    )
    return {
        "l1": float(np.abs(mode - expected).mean()),
        "l1 exact": float(np.abs(mode - true).mean()),
        "KL": exact.compare(run.posterior, kalman.LAST_MONTH).mean_kl,
        "seconds": run.seconds,
    }


def variances(posterior: hl.Posterior) -> NDArray[np.float64]:
    """(well,): of the levels of the last month."""
    return np.asarray(posterior.marginals(kalman.LAST_MONTH)["std"]) ** 2


def table(variant: Variant, trials: Sequence[Trial]) -> list[dict[str, Any]]:
    """The figures of each trial by itself."""
    return [
        {
            "variant": variant,
            "trial": number,
            "method": name(run),
            "components": measure.components(run.method),
            **figures(one, run),
            "reference": one.reference.solution.result,
            "classes": run.num_classes,
            "steps": run.posterior.solution.steps,
            "result": run.posterior.solution.result,
        }
        for number, one in enumerate(trials)
        for run in one.runs
    ]
