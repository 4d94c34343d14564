"""The protocol of methods of inference, and Ctrl-C as a request to stop with the best answer."""

from __future__ import annotations

import importlib
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from types import FrameType
from typing import Any, Protocol

import numpy as np

from hylift.errors import check_word
from hylift.inference.capabilities import METHOD_BY_KEY
from hylift.inference.capabilities import Lift as Lift
from hylift.inference.capabilities import Task as Task
from hylift.inference.checkpoint import Checkpoint
from hylift.inference.checkpoint import Step as Step
from hylift.inference.prepared import Prepared
from hylift.posterior import Posterior
from hylift.progress import Progress


@dataclass(slots=True)
class Interrupt:
    """A request to stop. A second Ctrl-C, or one that no loop listens to, ends all at once."""

    requested: bool = False
    is_heard: bool = False
    """True once a loop has an answer and checks for requests."""
    has_raised: bool = False
    since: float = np.inf
    """The time of the request."""

    def press(self, number: int = signal.SIGINT, frame: FrameType | None = None) -> None:
        if self.requested or not self.is_heard:
            self.has_raised = True
            raise KeyboardInterrupt
        self.requested, self.since = True, time.perf_counter()


@contextmanager
def interruptible() -> Iterator[Interrupt]:
    """Within it Ctrl-C is a request to stop, unless the program has its own handler."""
    interrupt = Interrupt()
    is_main = threading.current_thread() is threading.main_thread()
    before = signal.getsignal(signal.SIGINT) if is_main else None
    outer = getattr(before, "__self__", None)
    if isinstance(outer, Interrupt):  # a run within a run: both are to end
        yield outer
        return
    if before is not signal.default_int_handler:
        yield interrupt
        return
    signal.signal(signal.SIGINT, interrupt.press)
    try:
        yield interrupt
    except SystemError as error:  # Numba makes it of Ctrl-C where it loads a kernel
        if interrupt.has_raised:
            raise KeyboardInterrupt from error
        raise
    finally:
        interrupt.requested = False  # what is asked of the answer later has time again
        if signal.getsignal(signal.SIGINT) == interrupt.press:
            signal.signal(signal.SIGINT, before)


Callback = Callable[[Step], object]
"""Called after each step; if it returns True, inference stops and returns the best so far."""


@dataclass(frozen=True, slots=True)
class Request:
    """The arguments of a method beside the graph."""

    tasks: frozenset[Task]
    seed: int
    progress: Progress
    lift: Lift = "exact"
    """The way to solve look-alikes once; exact inference ignores it."""
    seconds: float | None = None
    """Time limit, after which the best so far is returned."""
    start: Posterior | None = None
    """An earlier answer to start from."""
    callback: Callback | None = None
    interrupt: Interrupt = field(default_factory=Interrupt)
    """Set when the user wants the best so far."""
    checkpoint: Checkpoint | None = None
    """The file that the run is stored in."""
    began: float = field(default_factory=lambda: time.perf_counter())
    """The time from which the limit counts."""

    def within(self, seconds: float | None) -> Request:
        """The same request with so much time from now on."""
        return replace(self, seconds=seconds, began=time.perf_counter())


class Method(Protocol):
    """Frozen settings, and a way from a prepared graph to a posterior.

    It may have an attribute `info` (a `MethodInfo`), which says what it can do.
    """

    @property
    def name(self) -> str: ...

    def solve(self, prepared: Prepared, request: Request) -> Posterior: ...


def method_by_key(key: str, **settings: Any) -> Method:
    """The method with these settings; only what it needs is imported."""
    info = METHOD_BY_KEY[key]
    module = importlib.import_module(f"hylift.inference.{info.module}")
    found: Method = getattr(module, info.class_name)(**settings)
    return found


def named_method(method: Method | str | None) -> Method | None:
    """The method of this name, with its default settings; None, and 'auto', name none."""
    if not isinstance(method, str):
        return method
    check_word("method", method, ("auto", *METHOD_BY_KEY))
    return None if method == "auto" else method_by_key(method)
