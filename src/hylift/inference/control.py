"""The clock, history, callback and interruption of one run."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace

import numpy as np

from hylift.errors import IntractableError
from hylift.inference.checkpoint import Section
from hylift.inference.method import Request, Step
from hylift.posterior import History, Result
from hylift.posterior.answers import Measure
from hylift.progress import silent
from hylift.words import duration

LEAST_SECONDS = 0.1
"""For work after the last step, where the steps have used up the time."""
BEAT = 0.5
"""Seconds without a report of progress after which one says that work goes on."""
MOMENT = 0.5
"""Seconds for which it is not worth to refuse work."""
GRACE, GRACE_SHARE = 0.5, 0.1
"""Seconds, and share of the time limit, in which what an answer needs is ended once time is up."""


def always() -> bool:
    """Go on, whatever the clock says."""
    return True


@dataclass(slots=True, eq=False)
class Control:
    """The state of a run apart from its mathematics. Only its own methods change it."""

    request: Request
    measure: Measure = "free energy"
    steps: list[Step] = field(default_factory=list, init=False)
    """Steps recorded so far."""
    ended: Result | None = field(default=None, init=False)
    """The reason to end the run now, if there is one."""
    is_hurried: bool = field(default=False, init=False)
    """True if the next loop begins elsewhere than with more time: then it is not stored."""
    num_classes: int = field(default=0, init=False)
    level: int = field(default=0, init=False)
    _late_since: float = field(default=np.inf, init=False)
    _earlier_seconds: float = field(default=0.0, init=False)
    _num_sections: int = field(default=0, init=False)
    _reported: float = field(default=-np.inf, init=False)
    """When progress was last reported."""
    _what: str = field(default="preparing", init=False)

    def __post_init__(self) -> None:
        if self.request.checkpoint is not None:
            self._earlier_seconds = self.request.checkpoint.elapsed

    def inner(self, seconds: float | None) -> Control:
        """The control of a run within this one, with its own clock and steps."""
        request = replace(self.request, callback=None, checkpoint=None)
        return Control(request.within(seconds), self.measure)

    @property
    def elapsed(self) -> float:
        """Seconds of this call, from when its time began to count."""
        return time.perf_counter() - self.request.began

    @property
    def total_seconds(self) -> float:
        """Seconds of this call and of earlier calls that it resumes."""
        return self._earlier_seconds + self.elapsed

    def enter_level(self, num_classes: int, level: int = 0) -> None:
        """Set the size of the graph that the next steps work on."""
        self.num_classes, self.level = num_classes, level

    def hurry(self) -> None:
        """Note that time was too short for what the next loop begins with."""
        self.is_hurried = True

    def end(self, result: Result) -> None:
        """End the run, unless it has ended for another reason."""
        if self.ended is None:
            self.ended = result

    def should_continue(self) -> bool:
        """Return False once the run is to end: time is up, or Ctrl-C or the callback ended it."""
        seconds = self.request.seconds
        if self.not_interrupted() and seconds is not None and self.elapsed >= seconds:
            self.end("out_of_time")
        return self.ended is None

    def _beat(self) -> None:
        """Report that work goes on, where the last report is some time ago."""
        now = time.perf_counter()
        if self.request.progress is not silent and now - self._reported > BEAT:
            self._reported = now
            self.request.progress(0.0, self._what)

    def not_interrupted(self) -> bool:
        """Return False once Ctrl-C has ended the run; running out of time does not count."""
        self._beat()
        if self.request.interrupt.requested:
            self.end("interrupted")
        return self.ended != "interrupted"

    def has_grace(self) -> bool:
        """Return False some time after the limit, or after Ctrl-C: for what an answer needs."""
        self._beat()
        seconds = self.request.seconds
        if seconds is not None:
            self._late_since = min(self._late_since, seconds)
        if self.request.interrupt.requested:
            began = self.request.began
            self._late_since = min(self._late_since, self.request.interrupt.since - began)
        return self.elapsed < self._late_since + GRACE + GRACE_SHARE * (seconds or 0.0)

    def keep_on(self) -> None:
        """Report that work goes on without which there is no answer; end it some time after Ctrl-C,
        with a `KeyboardInterrupt`."""
        if not self.has_grace() and self.request.interrupt.requested:
            raise KeyboardInterrupt

    def check_fits(self, seconds: float, what: str) -> None:
        """Raise unless there is time for work that should take so long, and cannot be interrupted.

        What takes less than a moment is done in any case.
        """
        limit = self.request.seconds
        if limit is not None and seconds > max(limit - self.elapsed, 0.0) + MOMENT:
            raise IntractableError(
                f"{what} should take about {duration(seconds)} here, and there is a limit of "
                f"{duration(limit)}."
            )

    def remaining_seconds(self) -> float | None:
        """Seconds for work after the last step; None for no limit."""
        if self.ended == "interrupted":
            return LEAST_SECONDS
        seconds = self.request.seconds
        return seconds and max(seconds - self.elapsed, LEAST_SECONDS)

    def record(self, objective: float, what: str, share: float) -> bool:
        """Record a step in the history, report it, and return `should_continue()`."""
        request = self.request
        request.interrupt.is_heard = True
        number = len(self.steps) + 1
        step = Step(number, self.total_seconds, objective, self.num_classes, self.level)
        self.steps.append(step)
        if request.progress is not silent:
            self._reported, self._what = time.perf_counter(), what
            request.progress(share, f"{what}: {self.measure} {objective:.6g}")
        if request.callback is not None and self.ended is None:
            answer = request.callback(step)
            if isinstance(answer, bool | np.bool_) and answer:
                self.end("stopped")
        return self.should_continue()

    def next_section(self) -> Section | None:
        """The next section of the checkpoint, with the history up to where it was stored.

        None without a checkpoint, and once the run is to end: what follows is cut short.
        """
        number, self._num_sections = self._num_sections, self._num_sections + 1
        checkpoint = self.request.checkpoint
        if checkpoint is None or not self.should_continue():
            return None
        section = Section(checkpoint, number)
        if section.stored is None and self.is_hurried:
            return None
        if section.stored is not None:
            self.steps[:] = checkpoint.steps[: section.stored.num_steps]
        return section

    def history(self) -> History:
        columns = np.array(self.steps, dtype=np.float64).reshape(-1, len(Step._fields)).T
        _, seconds, objective, num_classes, level = columns
        return History(
            seconds.copy(),
            objective.copy(),
            num_classes.astype(np.int64),
            level.astype(np.int32),
            self.measure,
        )
