"""Reports of long work: its progress, and once that kernels are being compiled."""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable

Progress = Callable[[float, str], None]
"""Called with the share of the work that is done, from 0 to 1, and what is being done."""


def silent(share: float, what: str) -> None:
    """Ignore progress."""


def part_of(progress: Progress, name: str, number: int, total: int) -> Progress:
    """The progress of one of several pieces of work, from number 0 on, as a part of all."""
    return lambda share, what: progress(
        (number + min(share, 1.0)) / total, f"{name}: {what}" if what else name
    )


logger = logging.getLogger("hylift")


@functools.cache
def announce_compilation() -> None:
    """From now on, announce once per process that hylift's kernels are being compiled."""
    from numba.core import event

    class Announcement(event.Listener):  # type: ignore[misc]
        def on_start(self, event: event.Event) -> None:
            dispatcher = (event.data or {}).get("dispatcher")
            if dispatcher and dispatcher.py_func.__module__.startswith("hylift."):
                _announce()

        def on_end(self, event: event.Event) -> None:
            pass

    event.register("numba:compile", Announcement())


@functools.cache
def _announce() -> None:
    logger.warning(
        "hylift compiles each kernel on its first use after installation: this takes some minutes "
        "in all, more on a busy machine, and a limit of time does not stop it."
    )
