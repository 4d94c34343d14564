"""How long work tells how far it is."""

from collections.abc import Callable

Progress = Callable[[float, str], None]
"""Told how much of the work is done, from 0 to 1, and what is being done."""


def silent(share: float, what: str) -> None:
    """For those who do not want to know."""
