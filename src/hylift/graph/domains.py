"""What values a variable may take."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hylift.errors import EvidenceError, ModelError, did_you_mean


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

    @property
    def is_discrete(self) -> bool:
        return self.states is not None

    @property
    def num_states(self) -> int:
        """Number of states; 0 for a real."""
        return len(self.states) if self.states is not None else 0

    @property
    def is_bounded(self) -> bool:
        """Whether it is a real with at least one finite bound."""
        return not self.is_discrete and (np.isfinite(self.lower) or np.isfinite(self.upper))

    def encode(self, value: object, name: str) -> float:
        """The number that stands for `value` (a state's index, or the real itself)."""
        if self.states is None:
            return self._encode_real(value, name)
        label = str(value)
        if isinstance(value, (bool, np.bool_)):
            label = label.lower()
        if label in self.states:
            return float(self.states.index(label))
        if isinstance(value, int | float | np.integer | np.floating):
            index = float(value)
            if index.is_integer() and 0 <= index < len(self.states):
                return index
        raise EvidenceError(
            f"{name} cannot be {value!r}: its states are {', '.join(self.states[:20])}"
            f"{' …' if len(self.states) > 20 else ''}.{did_you_mean(label, self.states)}"
        )

    def _encode_real(self, value: object, name: str) -> float:
        try:
            number = float(value)  # type: ignore[arg-type]
        except (TypeError, ValueError):
            raise EvidenceError(f"{name} is real and cannot be {value!r}") from None
        if not self.lower <= number <= self.upper or not np.isfinite(number):
            raise EvidenceError(
                f"{name} cannot be {value!r}: its domain is [{self.lower:g}, {self.upper:g}]"
            )
        return number


boolean = Domain(("false", "true"))
real = Domain()


def interval(lower: float, upper: float) -> Domain:
    """The reals from `lower` to `upper`."""
    return Domain(None, float(lower), float(upper))


def categorical(states: int | Sequence[str]) -> Domain:
    """Named states, or that many states named 0, 1, 2, …"""
    if isinstance(states, int):
        if states < 1:
            raise ModelError(f"a categorical variable needs at least one state, not {states}")
        return Domain(tuple(str(state) for state in range(states)))
    return Domain(tuple(str(state) for state in states))
