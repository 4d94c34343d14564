"""The time that exact inference should take, and may take."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

import numpy as np

from hylift.errors import IntractableError
from hylift.progress import Progress
from hylift.words import duration

SECONDS_PER_FACTOR = 5e-8
"""Rough time to prepare a factor of the user's graph."""
SECONDS_PER_PASS, SECONDS_PER_VARIABLE = 2e-3, 3e-6
"""For a pass, and for each variable in it."""
SECONDS_PER_ENTRY, SECONDS_PER_NODE = 1e-8, 5.5e-9
"""For an entry of the table of a clique; for one where a variable of many states is summed over."""
SECONDS_PER_VALUE, SECONDS_PER_BOX = 1.5e-9, 2.5e-8
"""For an entry of a factor; for one of a quadratic of three or more reals on lattices."""
SECONDS_PER_NUMBER, SECONDS_PER_MIXED = 1.7e-8, 2.3e-7
"""For a number of a Gaussian in closed form; for one of a free real at nodes beside it."""
SECONDS_PER_TRY = 5e-6
"""For a variable in each order of elimination that is tried, where tables are large."""

LONG = 2.0
"""Seconds from which on a pass is announced with the time that it will take."""


@dataclass(slots=True)
class Meter:
    """Progress of exact inference, the time that it should take, and the time that it may take."""

    progress: Progress
    limit: float = np.inf
    """Seconds; a pass that would take longer is refused before it begins."""
    began: float = field(default_factory=lambda: time.perf_counter())
    """The time from which the limit counts."""
    what: str = "eliminating variables"
    seconds: float = 0.0
    """Predicted for all passes so far."""
    done: float = 0.0
    """The share of this pass."""

    def look(self) -> None:
        """Report while an order of elimination is searched for, and end that when time is up."""
        if time.perf_counter() - self.began > self.limit:
            raise IntractableError(
                f"exact inference found no order of elimination in {duration(self.limit)}."
            )
        self.progress(0.0, "finding an order")

    def begin(self, seconds: float, num_variables: int) -> None:
        """A pass over so many variables, whose numbers should take so many seconds."""
        total = self.seconds + seconds + SECONDS_PER_PASS + num_variables * SECONDS_PER_VARIABLE
        if total > self.limit:
            raise IntractableError(
                f"exact inference would take about {duration(total)} here, more than "
                f"{duration(self.limit)}."
            )
        self.seconds, self.done = total, 0.0
        if seconds > LONG:
            self.progress(0.0, f"{self.what}: about {seconds:.0f} s")

    def advance(self, share: float) -> None:
        """A further share of the pass is done."""
        self.done += share
        self.progress(min(self.done, 1.0), self.what)
