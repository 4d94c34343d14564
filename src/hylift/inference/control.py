"""What watches a run: its clock, its history, and the user's callback."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

import numpy as np

from hylift.inference.method import Callback, Step
from hylift.posterior import History, Result
from hylift.posterior.answers import Measure
from hylift.progress import Progress


@dataclass(slots=True)
class Control:
    """The state of a run that is no part of its mathematics."""

    seconds: float | None
    callback: Callback | None
    progress: Progress
    measure: Measure = "free energy"
    begin: float = field(default_factory=time.perf_counter)
    rows: list[tuple[float, float, int, int]] = field(default_factory=list)
    ended: Result | None = None
    """Why the run must end now, if it must."""
    num_classes: int = 0
    level: int = 0

    @property
    def elapsed(self) -> float:
        return time.perf_counter() - self.begin

    def look(self) -> bool:
        """Whether there is time to go on."""
        if self.ended is None and self.seconds is not None and self.elapsed >= self.seconds:
            self.ended = "out_of_time"
        return self.ended is None

    def record(self, objective: float, what: str, share: float) -> bool:
        """Notes a step, and returns whether to go on."""
        self.rows.append((self.elapsed, objective, self.num_classes, self.level))
        self.progress(share, f"{what}: {self.measure} {objective:.6g}")
        if self.callback is not None and self.ended is None:
            report = Step(len(self.rows), self.rows[-1][0], objective, self.num_classes, self.level)
            answer = self.callback(report)
            if isinstance(answer, bool | np.bool_) and answer:
                self.ended = self.ended or "stopped"
        return self.look()

    def history(self) -> History:
        columns = np.array(self.rows, dtype=np.float64).reshape(-1, 4).T
        return History(
            columns[0].copy(),
            columns[1].copy(),
            columns[2].astype(np.int64),
            columns[3].astype(np.int32),
            self.measure,
        )
