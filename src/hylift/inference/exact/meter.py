"""The time that exact inference should take, and may take."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hylift.errors import IntractableError
from hylift.progress import Progress

SECONDS_PER_PASS, SECONDS_PER_VARIABLE = 2e-3, 5e-6
"""Rough times for a pass, and for each variable in it."""
SECONDS_PER_ENTRY, SECONDS_PER_NUMBER = 5e-9, 4e-8
"""For an entry of a table that is summed once, and for a number of a Gaussian."""
SECONDS_PER_POINT = (0.0, 6e-9, 6e-9, 8e-8)
"""For an entry of a table on lattices, by the number of its reals; the last for three or more."""
SECONDS_PER_LATTICE = 4e-3
SECONDS_PER_TRY = 3e-6
"""For a variable in each order of elimination that is tried, where tables are large."""

LONG = 2.0
"""Seconds from which on a pass is announced with the time that it will take."""


@dataclass(slots=True)
class Meter:
    """Progress of exact inference, the time that it should take, and the time that it may take."""

    progress: Progress
    limit: float = np.inf
    """Seconds; a pass that would take longer is refused before it begins."""
    what: str = "eliminating variables"
    seconds: float = 0.0
    """Predicted for all passes so far."""
    done: float = 0.0
    """The share of this pass."""

    def begin(self, seconds: float, num_variables: int) -> None:
        """A pass over so many variables, whose numbers should take so many seconds."""
        total = self.seconds + seconds + SECONDS_PER_PASS + num_variables * SECONDS_PER_VARIABLE
        if total > self.limit:
            raise IntractableError(
                f"exact inference would take about {total:.2g} seconds here, more than "
                f"{self.limit:.3g}."
            )
        self.seconds, self.done = total, 0.0
        if seconds > LONG:
            self.progress(0.0, f"{self.what}: about {seconds:.0f} s")

    def advance(self, share: float) -> None:
        """A further share of the pass is done."""
        self.done += share
        self.progress(min(self.done, 1.0), self.what)
