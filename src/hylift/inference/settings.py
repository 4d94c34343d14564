"""Checks of settings that several methods have."""

from __future__ import annotations

import numbers
import operator
from typing import Any

from hylift.errors import UnsupportedError
from hylift.inference.capabilities import METHODS
from hylift.words import Wording, either, option, worded


def check_whole(name: str, value: Any, least: int = 1) -> None:
    """Raises unless a setting is an integer of at least so much."""
    try:
        fits = operator.index(value) >= least and not isinstance(value, bool)
    except TypeError:
        fits = False
    if not fits:
        raise UnsupportedError(
            worded(option(name), f" must be an integer of at least {least}, not {value!r}")
        )


def refuse_start(name: str, start: object) -> None:
    """Raises if a method that begins in its own way is given an earlier posterior."""
    if start is not None:
        able = [info for info in METHODS if info.can_start]
        raise UnsupportedError(
            f"{name} cannot start from an earlier posterior",
            Wording(
                f"leave start out, or use {either([f'{one.class_name}()' for one in able])}",
                f"leave --start out, or use --method {either([one.key for one in able])}",
            ),
        )


def is_number(value: Any) -> bool:
    """Whether a setting is a real number."""
    return isinstance(value, numbers.Real) and not isinstance(value, bool)
