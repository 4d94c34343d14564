"""The values that a variable can take."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import SupportsIndex

import numpy as np

from hylift.errors import EvidenceError, ModelError, did_you_mean

BOOLEAN_STATES = ("false", "true")

MAX_STATES = 1_000_000
"""Most states of a variable that are named by counting."""


MOST = 1e60
"""Largest bound, and inverse of the least width: fourth powers do not overflow."""


@dataclass(frozen=True, slots=True)
class Domain:
    """The values of a variable: named states, or the reals between two bounds."""

    states: tuple[str, ...] | None = None  # None: real
    lower: float = -np.inf
    upper: float = np.inf

    def __post_init__(self) -> None:
        if self.states is not None:
            if not self.states:
                raise ModelError("a categorical variable needs at least one state")
            if len(set(self.states)) < len(self.states):
                raise ModelError(f"states must differ from each other: {list(self.states)}")
        elif not self.lower < self.upper:
            raise ModelError(f"an interval needs lower < upper, not [{self.lower}, {self.upper}]")
        elif reason := self._is_extreme():
            raise ModelError(f"the interval [{self.lower:g}, {self.upper:g}] {reason}")

    def _is_extreme(self) -> str:
        """A reason why powers of numbers in an interval have no digits left, or nothing."""
        if self.upper - self.lower < 1 / MOST:
            return f"is narrower than {1 / MOST:g}: give it another unit"
        if any(np.isfinite(bound) and abs(bound) > MOST for bound in (self.lower, self.upper)):
            return f"has a bound beyond {MOST:g}: leave it out, or give it another unit"
        return ""

    @property
    def is_discrete(self) -> bool:
        return self.states is not None

    @property
    def num_states(self) -> int:
        """Number of states; 0 for a real."""
        return len(self.states) if self.states is not None else 0

    @property
    def states_text(self) -> str:
        """`its states are red, green`, for errors; a long list is cut."""
        states = self.states or ()
        return f"its states are {', '.join(states[:20])}{' …' if len(states) > 20 else ''}"

    def encode(self, value: object, name: str) -> float:
        """The number that stands for `value` (a state's index, or the real itself)."""
        if self.states is None:
            return self._encode_real(value, name)
        number = _whole(value)
        truth = isinstance(value, bool | np.bool_) or self.states == BOOLEAN_STATES
        label = str(value).lower() if truth else str(value)
        if number is not None and label not in self.states:
            label = str(number)
        if label in self.states:
            return float(self.states.index(label))
        # A number that is no label is a position, unless the labels are numbers themselves.
        positions = not any(state.lstrip("-").isdigit() for state in self.states)
        if number is not None and positions and 0 <= number < len(self.states):
            return float(number)
        label = str(value)
        raise EvidenceError(
            f"{name} cannot be {value!r}: {self.states_text}.{did_you_mean(label, self.states)}"
        )

    def _encode_real(self, value: object, name: str) -> float:
        number = as_float(value, name)
        if not self.lower <= number <= self.upper or not np.isfinite(number):
            raise EvidenceError(
                f"{name} cannot be {value!r}: its domain is [{self.lower:g}, {self.upper:g}]"
            )
        return number


boolean = Domain(BOOLEAN_STATES)
real = Domain()


def interval(lower: float, upper: float) -> Domain:
    """The reals from `lower` to `upper`."""
    return Domain(None, float(lower), float(upper))


def categorical(states: SupportsIndex | Sequence[str]) -> Domain:
    """Named states, or that many states named 0, 1, 2, …"""
    if isinstance(states, str):
        raise ModelError(f"states are a list of labels or their number, not the text {states!r}")
    if isinstance(states, SupportsIndex):
        count = operator.index(states)
        if not 1 <= count <= MAX_STATES:
            raise ModelError(f"a categorical variable has 1 to {MAX_STATES} states, not {count}")
        return Domain(tuple(str(state) for state in range(count)))
    return Domain(tuple(str(state) for state in states))


def as_float(value: object, name: str) -> float:
    """The value as a float, or an `EvidenceError` that names what it was meant for."""
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        raise EvidenceError(f"{name} is real and cannot be {value!r}") from None
    if isinstance(value, Integral) and int(value) != number:
        raise EvidenceError(
            f"{name} cannot be {value!r}, an integer with more digits than floating-point numbers "
            "hold: subtract an origin"
        )
    return number


def _whole(value: object) -> int | None:
    """A number without fraction as an integer, or None."""
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real) and float(value).is_integer():
        return int(float(value))
    return None
