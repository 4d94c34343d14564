"""Methods run and timed."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import hylift as hl
from experiments.report import Speed, Timing
from hylift.inference import Lift, Method, Task
from hylift.inference.method import Callback
from hylift.posterior import History

FloatArray = NDArray[np.float64]

LIFTS: tuple[Lift, ...] = ("none", "exact", "coarse-to-fine")
LABELS: dict[Lift, str] = {"none": "{}", "exact": "L-{}", "coarse-to-fine": "C2F-{}"}
"""What the paper calls a method with each kind of lifting."""

TASKS: tuple[Task, ...] = ("marginals", "logz")

ADAM = hl.Adam(learning_rate=0.2)
"""The optimiser of the paper."""

LONG = 1.0
"""Seconds of runs after which they are not repeated."""

NEAR = 1e-3
NEARNESS = (
    "the objective stays within a thousandth of the way from the highest start, above the end of "
    "whichever of the runs ends highest."
)


@dataclass(frozen=True, slots=True, eq=False)
class Run:
    """A method's answer, and the median time of several runs to it."""

    method: Method
    lift: Lift
    posterior: hl.Posterior
    seconds: float

    @property
    def label(self) -> str:
        """As in the paper: 'BVI', 'L-BVI', 'C2F-BVI'."""
        return LABELS[self.lift].format(self.method.name.partition("(")[0])

    @property
    def history(self) -> History | None:
        return self.posterior.solution.history

    @property
    def num_classes(self) -> int:
        """Of variables that were solved at the end."""
        history, mixture = self.history, self.posterior.mixture
        if history is not None and len(history):
            return int(history.num_classes[-1])
        if mixture is not None:
            return len(mixture.layout)
        return int(np.count_nonzero(~self.posterior.observed))

    def timing(self, near: float | None = None) -> Timing:
        """What a table of speeds says of it; `near`: seconds until it was near the best."""
        history = self.history
        near, first = self.seconds if near is None else near, None
        if self.lift == "coarse-to-fine" and history is not None and len(history):
            first = int(history.num_classes[0])
        return Timing(
            self.seconds, near, self.num_classes, first, self.posterior.solution.objective
        )


def components(method: Method) -> int | None:
    """Products in the mixture of a method that has some."""
    return method.components if isinstance(method, hl.BVI | hl.NPVI) else None


def modes(posterior: hl.Posterior, atoms: str | Sequence[str] | None = None) -> FloatArray:
    """(variable,): the modes of marginals, by default of all that is hidden."""
    return np.asarray(posterior.marginals(atoms)["mode"], dtype=np.float64)


def run(
    graph: hl.FactorGraph,
    method: Method,
    lift: Lift = "exact",
    *,
    seed: int = 0,
    num_timed: int = 1,
    tasks: Sequence[Task] = TASKS,
    callback: Callback | None = None,
    start: hl.Posterior | None = None,
) -> Run:
    """The answer of a method, by that of so many runs which took the median time.

    `start`: an answer that it begins from.
    """
    found = []
    for _ in range(num_timed):
        begin = time.perf_counter()
        posterior = hl.infer(
            graph, method, lift=lift, seed=seed, tasks=tasks, callback=callback, start=start,
            check=False,
        )  # fmt: skip
        if posterior.solution.result == "interrupted":
            raise KeyboardInterrupt
        found.append(Run(method, lift, posterior, time.perf_counter() - begin))
    return _typical(found)


def in_turn(
    graph: hl.FactorGraph,
    method: Method,
    lifts: Sequence[Lift] = LIFTS,
    *,
    num_timed: int,
    tasks: Sequence[Task] = TASKS,
    start: hl.Posterior | None = None,
) -> dict[Lift, Run]:
    """A method with each kind of lifting; of each the run that took the median time.

    They take turns, so that what slows the machine down for a while slows them all. What takes
    long is not repeated.
    """
    found: dict[Lift, list[Run]] = {lift: [] for lift in lifts}
    for _ in range(num_timed):
        for lift, runs in found.items():
            if sum(one.seconds for one in runs) < LONG:
                runs.append(run(graph, method, lift, tasks=tasks, start=start))
    return {lift: _typical(runs) for lift, runs in found.items()}


def speed(instance: str, name: str, runs: Mapping[Lift, Run]) -> Speed:
    """What lifting does to the time of a method whose steps lower an objective.

    Where a closed form takes no steps, coarse to fine has nothing to save, and is left out.
    """
    histories = [one.history for one in runs.values() if one.history is not None]
    level = near_level(histories)
    timing = {lift: one.timing(_seconds_near(one, level)) for lift, one in runs.items()}
    takes_steps = any(len(history) > 1 for history in histories)
    coarse = timing.get("coarse-to-fine") if takes_steps else None
    nearness = NEARNESS if takes_steps else ""
    return Speed(instance, name, timing["none"], timing["exact"], coarse, nearness)


def curves(instance: str, name: str, runs: Mapping[Lift, Run]) -> list[dict[str, Any]]:
    """A row per step of each run: where it was, and when."""
    return [
        {"instance": instance, "method": name, "lifting": one.label} | step
        for one in runs.values()
        if one.history is not None
        for step in one.history.to_arrow().to_pylist()
    ]


def near_level(histories: Collection[History], least: float = 0.0) -> float:
    """An objective that all runs reach: a thousandth of the way from the highest start, or `least`
    if that is more, above the end that is highest."""
    start = max(float(history.objective[0]) for history in histories)
    end = max(float(history.objective[-1]) for history in histories)
    return end + max(NEAR * (start - end), least)


def _seconds_near(run: Run, level: float) -> float:
    """Seconds until a run stays at a level; where it takes no steps, all its time."""
    history = run.history
    return run.seconds if history is None or len(history) < 2 else seconds_until(history, level)


def _typical(runs: Sequence[Run]) -> Run:
    """The run that took the median time, of two the shorter one."""
    return sorted(runs, key=lambda one: one.seconds)[(len(runs) - 1) // 2]


def seconds_until(history: History, level: float) -> float:
    """Seconds until the objective stays at a level or below it; infinite if it never does."""
    above = np.flatnonzero(history.objective > level)
    first = int(above[-1]) + 1 if len(above) else 0
    return float(history.seconds[first]) if first < len(history) else np.inf
