"""Ctrl-C as the wish to end soon, with the best answer so far."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType


@dataclass(slots=True)
class Interrupt:
    """Whether Ctrl-C was pressed; the second time, or while nobody listens, it ends all at once."""

    requested: bool = False
    is_heard: bool = False
    """Whether there is an answer so far, and somebody who looks here from time to time."""

    def press(self, number: int = signal.SIGINT, frame: FrameType | None = None) -> None:
        if self.requested or not self.is_heard:
            raise KeyboardInterrupt
        self.requested = True


@contextmanager
def interruptible() -> Iterator[Interrupt]:
    """Within it Ctrl-C is kept for whoever listens, unless the program has other plans with it."""
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
