"""What a method of inference is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, Protocol

from hylift.inference.capabilities import Lift as Lift
from hylift.inference.capabilities import Task as Task
from hylift.inference.interrupt import Interrupt
from hylift.inference.prepared import Prepared
from hylift.posterior import Posterior
from hylift.progress import Progress

if TYPE_CHECKING:
    from hylift.inference.checkpoint import Checkpoint


class Step(NamedTuple):
    """A step as the history and callbacks have it."""

    step: int
    """From 1."""
    seconds: float
    """Since the start of inference."""
    objective: float
    """The free energy of the best candidate so far; of message passing the largest change of a
    message, of a walk the least energy so far."""
    num_classes: int
    """Classes of variables; with coarse-to-fine lifting their number grows."""
    level: int
    """Of coarse-to-fine lifting, from 0."""


Callback = Callable[[Step], object]
"""Called after each step; if it returns True, inference stops and returns the best so far."""


@dataclass(frozen=True, slots=True)
class Request:
    """What is asked of a method beside the graph."""

    tasks: frozenset[Task]
    seed: int
    progress: Progress
    lift: Lift = "exact"
    """Whether look-alikes are solved once; exact inference does not do so."""
    seconds: float | None = None
    """Time after which the best so far is returned."""
    start: Posterior | None = None
    """An earlier answer to begin from."""
    callback: Callback | None = None
    interrupt: Interrupt = field(default_factory=Interrupt)
    """Tells that the user wants the best so far."""
    checkpoint: Checkpoint | None = None
    """Where the run is kept."""


class Method(Protocol):
    """Frozen settings, and a way from a prepared graph to a posterior.

    It may have an attribute `info` (a `MethodInfo`), which says what it can do.
    """

    @property
    def name(self) -> str: ...

    def solve(self, prepared: Prepared, request: Request) -> Posterior: ...
