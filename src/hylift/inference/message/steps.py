"""The one loop of all message passing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from hylift.archive import Arrays
from hylift.inference.checkpoint import Loop, put_back
from hylift.inference.control import Control
from hylift.posterior import Result


@dataclass(slots=True, eq=False)
class Steps:
    """The numbers of the steps that are left to take, from 0, and how they end."""

    control: Control
    loop: Loop
    arrays: Callable[[], Arrays]
    """What the next step depends on; as it is, not a copy."""
    most: int
    taken: int = 0
    result: Result = "max_steps"

    @classmethod
    def of(cls, control: Control, arrays: Callable[[], Arrays], most: int) -> Steps:
        """All steps; or those that an earlier run has left, and arrays as they were then."""
        steps = cls(control, control.loop(), arrays, most)
        if (earlier := steps.loop.earlier) is not None:
            put_back(arrays(), earlier)
            steps.taken = int(earlier.arrays["taken"])
            if earlier.arrays["converged"]:
                steps.result = "converged"
        return steps

    def __iter__(self) -> Iterator[int]:
        while self.taken < self.most and self.result == "max_steps":
            yield self.taken

    def end_step(self, change: float, *, is_converged: bool) -> None:
        """Notes a step, and whether it was the last."""
        self.taken += 1
        going = self.control.record(change, "passing messages", self.taken / self.most)
        if is_converged:
            self.result = "converged"
        if is_converged or self.taken == self.most:
            self.loop.finish(self._kept)
        elif not going:
            assert self.control.ended is not None
            self.result = self.control.ended
            self.loop.leave(self._kept)
        else:
            self.loop.keep(self._kept)

    def _kept(self) -> Arrays:
        converged = self.result == "converged"
        return self.arrays() | {"taken": np.array(self.taken), "converged": np.array(converged)}
