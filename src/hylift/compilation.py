"""Announcement of compilation: Numba compiles kernels on first use and keeps them on disk."""

from __future__ import annotations

import functools
import logging

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
        "hylift compiles its kernels on the first use after installation: "
        "this takes up to a minute or two, once."
    )
