"""What watches a run: its clock, its history, and the user's callback."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

import numpy as np

from hylift.inference.checkpoint import Checkpoint, Loop, Rows
from hylift.inference.interrupt import Interrupt
from hylift.inference.method import Callback, Request, Step
from hylift.posterior import History, Result
from hylift.posterior.answers import Measure
from hylift.progress import Progress

LEAST_SECONDS = 0.1
"""For what comes after the steps, where they have used up the time."""


@dataclass(slots=True)
class Control:
    """The state of a run that is no part of its mathematics."""

    seconds: float | None
    callback: Callback | None
    progress: Progress
    measure: Measure = "free energy"
    begin: float = field(default_factory=time.perf_counter)
    rows: Rows = field(default_factory=list)
    ended: Result | None = None
    """Why the run must end now, if it must."""
    num_classes: int = 0
    level: int = 0
    interrupt: Interrupt = field(default_factory=Interrupt)
    checkpoint: Checkpoint | None = None
    num_loops: int = 0
    before: float = 0.0
    """Seconds of earlier calls that have left a checkpoint."""

    @classmethod
    def of(cls, request: Request, measure: Measure = "free energy") -> Control:
        """What watches the run that is asked for."""
        control = cls(request.seconds, request.callback, request.progress, measure)
        control.interrupt, control.checkpoint = request.interrupt, request.checkpoint
        if request.checkpoint is not None:
            control.before = request.checkpoint.elapsed
        return control

    def inner(self, seconds: float | None) -> Control:
        """What watches a run within this one, which has its own clock and steps."""
        return Control(seconds, None, self.progress, self.measure, interrupt=self.interrupt)

    @property
    def elapsed(self) -> float:
        """Seconds of this call."""
        return time.perf_counter() - self.begin

    @property
    def total(self) -> float:
        """Seconds of all calls."""
        return self.before + self.elapsed

    def look(self) -> bool:
        """Whether there is time to go on."""
        is_late = self.seconds is not None and self.elapsed >= self.seconds
        if not self._is_interrupted() and self.ended is None and is_late:
            self.ended = "out_of_time"
        return self.ended is None

    def has_patience(self) -> bool:
        """Whether the user still waits for what comes after the steps: not once Ctrl-C came."""
        return not self._is_interrupted()

    def _is_interrupted(self) -> bool:
        """Whether Ctrl-C ends a run that nothing else has ended."""
        if self.ended is None and self.interrupt.requested:
            self.ended = "interrupted"
        return self.ended == "interrupted"

    def left(self) -> float | None:
        """Seconds for what comes after the steps; None where time does not matter."""
        if self.ended == "interrupted":
            return LEAST_SECONDS
        return self.seconds and max(self.seconds - self.elapsed, LEAST_SECONDS)

    def loop(self) -> Loop:
        """The next loop of the run; where an earlier run has come to it, with what that left.

        Once a run must end, its loops begin at what was put together in haste: none is kept.
        """
        number, self.num_loops = self.num_loops, self.num_loops + 1
        checkpoint, earlier = self.checkpoint if self.look() else None, None
        if checkpoint is not None and number < len(checkpoint.loops):
            earlier = checkpoint.loops[number]
            self.rows[:] = checkpoint.rows[: earlier.num_rows]
        return Loop(checkpoint, number, self.rows, lambda: self.total, earlier)

    def record(self, objective: float, what: str, share: float) -> bool:
        """Notes a step, and returns whether to go on."""
        self.interrupt.is_heard = True
        self.rows.append((self.total, objective, self.num_classes, self.level))
        self.progress(share, f"{what}: {self.measure} {objective:.6g}")
        if self.callback is not None and self.ended is None:
            report = Step(len(self.rows), self.rows[-1][0], objective, self.num_classes, self.level)
            answer = self.callback(report)
            if isinstance(answer, bool | np.bool_) and answer:
                self.ended = "stopped"
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
