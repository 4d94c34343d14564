"""How much Gaussian messages are damped: not at all, until they swing."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hylift.archive import Arrays
from hylift.inference.message.links import FloatArray

DAMPING = 0.5
"""Of messages that swing, where nothing else is said."""
PATIENCE = 20
"""Steps in which the largest change falls, where messages converge."""
FALLEN = 0.9
"""Share of the least change so far, below which it has fallen."""


@dataclass(slots=True, eq=False)
class Damping:
    """The share of its old self that a message keeps: a given one, or one that begins with swings.

    On forests messages end by themselves, and damping would only delay that. On graphs with loops
    it mends swings, but halves the speed of whatever converges without it.
    """

    is_given: bool
    state: FloatArray
    """The share, the least change so far, and the number of steps since it fell."""

    @classmethod
    def of(cls, given: float | None, *, on_forest: bool) -> Damping:
        share = 0.0 if given is None else float(given)
        return cls(given is not None or on_forest, np.array([share, np.inf, 0.0]))

    @property
    def share(self) -> float:
        return float(self.state[0])

    def arrays(self) -> Arrays:
        """All that the next step depends on."""
        return {"damping": self.state}

    def follow(self, change: float) -> None:
        """Takes note of the largest change of a step."""
        _, least, steps = self.state
        if self.is_given:
            return
        if change < FALLEN * least:
            self.state[1:] = change, 0.0
        elif steps + 1 < PATIENCE:
            self.state[2] += 1
        else:
            self.state[0] = DAMPING
