"""Ctrl-C as a request to stop with the best answer so far."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType


@dataclass(slots=True)
class Interrupt:
    """A request to stop. A second Ctrl-C, or one that no loop listens to, ends all at once."""

    requested: bool = False
    is_heard: bool = False
    """True once a loop has an answer and checks for requests."""

    def press(self, number: int = signal.SIGINT, frame: FrameType | None = None) -> None:
        if self.requested or not self.is_heard:
            raise KeyboardInterrupt
        self.requested = True


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
    finally:
        interrupt.requested = False  # what is asked of the answer later has time again
        if signal.getsignal(signal.SIGINT) == interrupt.press:
            signal.signal(signal.SIGINT, before)
