"""All methods of the table on the trials of one variant."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
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
    return run.label if components(run) is not None else run.label.removeprefix("L-")


def components(run: Run) -> int | None:
    return run.method.components if isinstance(run.method, hl.BVI | hl.NPVI) else None


def rows(shape: kalman.Shape, variant: Variant, trials: Sequence[Trial]) -> list[Row]:
    """The table of one variant: means over trials, beside the paper's figures on its evidence."""
    label = f"{variant} variant"
    found = []
    for place in (*range(1, len(METHODS)), 0):  # the reference comes last
        first = trials[0].runs[place]
        method, num = name(first), components(first)
        measured = [figures(one, one.runs[place]) for one in trials]
        for what in measured[0]:
            if _is_void(what, place, has_reference=not num_diverged(trials)):
                continue
            paper = PRINTED[shape].get((method, num, what)) if variant == "paper" else None
            found.append(_row(label, method, num, what, [one[what] for one in measured], paper))
        if variant == "paper" and (method, num) in TENSORFLOW[shape]:
            seconds = [one["seconds"] for one in measured]
            paper = TENSORFLOW[shape][method, num]
            found.append(_row(label, method, num, "seconds (TensorFlow)", seconds, paper))
    found.append(_row(label, "Exact", None, "seconds", [one.exact.seconds for one in trials]))
    return found


def _is_void(what: str, place: int, *, has_reference: bool) -> bool:
    """Whether a figure says nothing: it is about, or of, a reference that has diverged."""
    if place == 0:
        return what == "l1" or (what != "seconds" and not has_reference)
    return what == "l1" and not has_reference


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
    mode = modes(run.posterior)
    exact = trial.exact.posterior
    return {
        "l1": float(np.abs(mode - modes(trial.reference)).mean()),
        "l1 exact": float(np.abs(mode - modes(exact)).mean()),
        "KL": exact.compare(run.posterior, kalman.LAST_MONTH).mean_kl,
        "seconds": run.seconds,
    }


def modes(posterior: hl.Posterior) -> NDArray[np.float64]:
    """(well,): the most probable levels of the last month."""
    return _last_month(posterior, "mode")


def variances(posterior: hl.Posterior) -> NDArray[np.float64]:
    """(well,): of the levels of the last month."""
    return _last_month(posterior, "var")


def _last_month(posterior: hl.Posterior, column: str) -> NDArray[np.float64]:
    return np.asarray(posterior.marginals(kalman.LAST_MONTH)[column])


def num_diverged(trials: Sequence[Trial]) -> int:
    """Trials in which Gaussian belief propagation, the paper's reference, has no answer."""
    return sum(one.reference.solution.result != "converged" for one in trials)


def table(variant: Variant, trials: Sequence[Trial]) -> list[dict[str, Any]]:
    """The figures of each trial by itself."""
    return [
        {
            "variant": variant,
            "trial": number,
            "method": name(run),
            "components": components(run),
            **figures(one, run),
            "classes": run.num_classes,
            "steps": run.posterior.solution.steps,
            "result": run.posterior.solution.result,
        }
        for number, one in enumerate(trials)
        for run in one.runs
    ]
