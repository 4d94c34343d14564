"""Methods run and timed."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

import hylift as hl
from experiments.report import Timing
from hylift.inference import Lift, Method, Task
from hylift.inference.method import Callback
from hylift.posterior import History

LABELS: dict[Lift, str] = {"none": "{}", "exact": "L-{}", "coarse-to-fine": "C2F-{}"}
"""What the paper calls a method with each kind of lifting."""


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
        first = None
        if self.lift == "coarse-to-fine" and history is not None and len(history):
            first = int(history.num_classes[0])
        return Timing(self.seconds, near or self.seconds, self.num_classes, first)


def run(
    graph: hl.FactorGraph,
    method: Method,
    lift: Lift = "exact",
    *,
    seed: int = 0,
    num_timed: int = 1,
    tasks: Sequence[Task] = ("marginals", "logz"),
    limit: float | None = None,
    callback: Callback | None = None,
) -> Run:
    """The answer of a method, and the median time of so many runs, each from the start.

    `limit`: seconds that a run may take.
    """
    found, seconds = [], []
    for _ in range(num_timed):
        start = time.perf_counter()
        posterior = hl.infer(
            graph, method, lift=lift, seed=seed, tasks=tasks, seconds=limit, callback=callback
        )
        found.append(posterior)
        seconds.append(time.perf_counter() - start)
    return Run(method, lift, found[0], float(np.median(seconds)))


def seconds_until(history: History, level: float) -> float:
    """Seconds until the objective stays at a level or below it; infinite if it never does."""
    above = np.flatnonzero(history.objective > level)
    first = int(above[-1]) + 1 if len(above) else 0
    return float(history.seconds[first]) if first < len(history) else np.inf
