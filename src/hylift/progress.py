"""Progress reports of long work."""

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
