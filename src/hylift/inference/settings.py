"""Checks of settings that several methods have."""

from __future__ import annotations

import numbers
import operator
from typing import Any

from hylift.errors import UnsupportedError


def check_whole(name: str, value: Any, least: int = 1) -> None:
    """Raises unless a setting is a whole number of at least so much."""
    try:
        fits = operator.index(value) >= least and not isinstance(value, bool)
    except TypeError:
        fits = False
    if not fits:
        raise UnsupportedError(f"{name} is a whole number of at least {least}, not {value!r}")


def refuse_start(name: str, start: object) -> None:
    """Raises if a method that begins in its own way is given an earlier posterior."""
    if start is not None:
        raise UnsupportedError(
            f"{name} does not start from an earlier posterior: leave `start` out, or use BVI(), "
            "NPVI(), MeanField() or MaxWalkSAT()"
        )


def is_number(value: Any) -> bool:
    """Whether a setting is a real number."""
    return isinstance(value, numbers.Real) and not isinstance(value, bool)
