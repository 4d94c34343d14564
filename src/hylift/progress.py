"""Reports of long work: its progress, and once that kernels are being compiled."""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from hylift.errors import UnsupportedError
from hylift.words import printable

Progress = Callable[[float, str], None]
"""Called with the share of the work that is done, from 0 to 1, and what is being done."""

MAX_LABEL = 36
"""Letters of the text of a progress bar."""


def silent(share: float, what: str) -> None:
    """Ignore progress."""


class Forward:
    """Progress that never goes back, whatever share it is called with."""

    def __init__(self, progress: Progress) -> None:
        self._progress, self._share = progress, 0.0

    def __call__(self, share: float, what: str) -> None:
        self._share = max(self._share, min(float(share), 1.0))
        self._progress(self._share, what)


def part_of(progress: Progress, name: str, number: int, total: int) -> Progress:
    """The progress of one of several pieces of work, from number 0 on, as a part of all."""
    return lambda share, what: progress(
        (number + min(share, 1.0)) / total, f"{name}: {what}" if what else name
    )


@contextmanager
def progress_bar() -> Iterator[Progress]:
    """A bar on the error stream, or in a notebook, which is gone when the work is done."""
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bar
    from rich.table import Column

    label = Column(max_width=MAX_LABEL, no_wrap=True, overflow="ellipsis")
    text = TextColumn("{task.description}", markup=False, table_column=label)
    columns = text, BarColumn(), TimeElapsedColumn()
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        row = bar.add_task("reading", total=1.0)
        yield lambda share, what: bar.update(
            row, completed=share, description=printable(what, one_line=True)
        )


@contextmanager
def reported(progress: Progress | bool | None) -> Iterator[Progress]:
    """The progress that a user asks for, which never goes back: a function, or True for a bar."""
    if callable(progress):
        yield Forward(progress)
    elif progress is True:
        with progress_bar() as bar:
            yield Forward(bar)
    elif progress is None or progress is False:
        yield silent
    else:
        raise UnsupportedError(
            f"progress must be True, or a function of a share and a text, not {progress!r}"
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
