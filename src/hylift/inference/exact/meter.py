"""The time and the tables that exact inference should take, and may take."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from hylift.errors import IntractableError
from hylift.progress import Progress
from hylift.words import Wording, duration

FloatArray = NDArray[np.float64]
Ids32 = NDArray[np.int32]

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

FEW_VARIABLES = 64
"""Graphs up to this size are not bounded first: trying orders is fast enough."""

MARGIN = 1e-6
"""Log excess at which a table is certainly beyond the limit."""

MAX_ROUNDS = 32
"""Rounds of dropping variables whose tables fit, before a bound is given up."""


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


def check_bound(log_states: FloatArray, edges: Ids32, log_limit: float) -> None:
    """Raise if every order certainly makes a table beyond the limit."""
    if len(log_states) <= FEW_VARIABLES or not np.isfinite(log_limit):
        return
    width, log_size = 0, log_limit
    while found := _core(log_states, edges, log_size):
        edges, width, least = found
        log_size = max(least, 2 * log_size)
    if width:
        raise IntractableError(
            f"exact elimination of these {len(log_states)} variables has width at least {width} "
            f"in any order: its largest table would have 2^{least / np.log(2):.1f} entries or "
            f"more. {limit_of(np.exp(log_limit))}",
            OBSERVE_MORE,
        )


def _core(
    log_states: FloatArray, edges: Ids32, log_limit: float
) -> tuple[Ids32, int, float] | None:
    """The edges of a subgraph in which every variable has a table beyond the limit, with its
    neighbours; the fewest neighbours there, and the least log of entries.

    Whichever of these variables is eliminated first meets all its neighbours there, so no order
    does better. Variables whose tables fit are dropped until none is left that does.
    """
    for _ in range(MAX_ROUNDS):
        degree = np.bincount(edges.reshape(-1), minlength=len(log_states))
        size = log_states.copy()
        for this, other in ((0, 1), (1, 0)):
            size += np.bincount(edges[:, this], log_states[edges[:, other]], len(log_states))
        large = size > log_limit + MARGIN
        inside = large[edges[:, 0]] & large[edges[:, 1]]
        if not inside.any():
            return None
        if inside.all():
            ends = degree > 0
            return edges, int(degree[ends].min()), float(size[ends].min())
        edges = edges[inside]
    return None


def limit_of(max_entries: float) -> str:
    """A sentence on the limit that stands against exact elimination."""
    return f"The limit is {max_entries:.3g} entries of eight bytes."


OBSERVE_MORE = Wording(
    "Observe some of the variables, or raise Exact(max_entries=…).",
    "Observe some of the variables.",
)
