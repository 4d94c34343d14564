"""The state of a stepper: its arrays, and the stored ones that may take their place."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hylift.archive import Arrays

Bound = float | NDArray[Any]

WIDEST = float(np.finfo(np.float64).max)
"""The largest number that is finite."""

MOST_STEPS = 2**53
"""Upper bound of counts that nothing else limits."""


@dataclass(frozen=True, slots=True, eq=False)
class Held:
    """An array and the range of its numbers, which compiled code relies on."""

    array: NDArray[Any]
    low: Bound = -np.inf  # broadcasts to the array, as does `high`
    high: Bound = np.inf
    is_whole: bool | NDArray[np.bool_] = False
    """Floats that are states, and have no fraction."""
    may_be_nan: bool = False
    is_order: bool = False
    """A stored array has the same numbers in any order."""
    free_axis: int | None = None
    """An axis along which a stored array may be longer or shorter."""

    def checked(self, name: str, value: NDArray[Any]) -> NDArray[Any]:
        """A stored array, laid out as compiled code expects it; raises if it cannot be this one."""
        if value.dtype != self.array.dtype or not self._has_shape(value.shape):
            raise ValueError(
                f"'{name}' has the type {value.dtype} and the shape {value.shape}, not "
                f"{self.array.dtype} and {self.array.shape}"
            )
        value = np.array(value, order="C")
        if value.dtype.kind not in "iuf":
            if value.dtype == np.bool_ and (value.view(np.uint8) > 1).any():
                raise ValueError(f"'{name}' has a truth value that is none")
            return value
        if value.dtype.kind == "f" and not self.may_be_nan and np.isnan(value).any():
            raise ValueError(f"'{name}' has a number that is NaN")
        if ((value < self.low) | (value > self.high)).any():
            raise ValueError(f"'{name}' has a number out of range")
        if self.is_order and not np.array_equal(np.sort(value), np.sort(self.array)):
            raise ValueError(f"'{name}' is not an order of the same numbers")
        if np.any(self.is_whole) and (self.is_whole & (value != np.floor(value))).any():
            raise ValueError(f"'{name}' has a state that is no whole number")
        return value

    def _has_shape(self, shape: tuple[int, ...]) -> bool:
        wanted = list(self.array.shape)
        if self.free_axis is not None and len(shape) == len(wanted):
            wanted[self.free_axis] = shape[self.free_axis]
        return list(shape) == wanted


State = Mapping[str, NDArray[Any] | Held]
"""By name, the arrays that the next step depends on, not copied; those that compiled code uses as
positions, sizes or codes are `Held`, with their range."""


def held(values: Mapping[str, NDArray[Any]], low: Bound, high: Bound) -> State:
    """Arrays of one range."""
    return {name: Held(array, low, high) for name, array in values.items()}


def count(value: int, most: float = MOST_STEPS, *, least: int = 0) -> Held:
    """A whole number within limits."""
    return Held(np.array(value), least, most)


def arrays_of(state: State) -> Arrays:
    """The arrays of a state, not copied."""
    return {name: one.array if isinstance(one, Held) else one for name, one in state.items()}


def prefixed(name: str, state: State) -> State:
    """The state of a part, by names that begin with its own."""
    return {f"{name} {key}": one for key, one in state.items()}


def part_of(name: str, stored: Arrays) -> Arrays:
    """The stored arrays of a part."""
    own = f"{name} "
    return {key.removeprefix(own): a for key, a in stored.items() if key.startswith(own)}


def checked(state: State, stored: Arrays) -> Arrays:
    """The stored arrays of a state; raises a `ValueError` unless they may take the place of its
    own."""
    found = {}
    for name, one in state.items():
        if name not in stored:
            raise ValueError(f"'{name}' is missing")
        found[name] = (one if isinstance(one, Held) else Held(one)).checked(name, stored[name])
    return found


def fill(state: State, stored: Arrays) -> None:
    """Copy stored numbers into the arrays of a state; raises a `ValueError` where they cannot be
    its own."""
    values, own = checked(state, stored), arrays_of(state)
    for name, array in own.items():
        array[...] = values[name]


def arrays_in(value: Any, name: str) -> Arrays:
    """The arrays of a mapping or named tuple, and of those within it, by name and not copied; a
    structured one by its fields."""
    return dict(_arrays_in(value, name))


def _arrays_in(value: Any, name: str) -> Iterator[tuple[str, NDArray[Any]]]:
    if isinstance(value, np.ndarray):
        if value.dtype.names is None:
            yield name, value
            return
        parts = {field: value[field] for field in value.dtype.names}
    else:
        parts = value if isinstance(value, dict) else value._asdict()
    for field, part in parts.items():
        yield from _arrays_in(part, f"{name} {field}")


def generator_state(rng: np.random.Generator) -> NDArray[np.uint64]:
    """(6,): the position of a generator in its sequence."""
    found: Any = rng.bit_generator.state
    numbers = [found["state"]["state"], found["state"]["inc"]]
    halves = [part for number in numbers for part in divmod(number, 2**64)]
    return np.array([*halves, found["has_uint32"], found["uinteger"]], dtype=np.uint64)


def restore_generator(rng: np.random.Generator, state: NDArray[np.uint64]) -> None:
    """Set a generator to a stored position."""
    Held(generator_state(rng), 0, np.array([*4 * [2.0**64], 1, 2.0**32])).checked("rng", state)
    high, low, inc_high, inc_low, has_uint32, uinteger = (int(part) for part in state)
    found: Any = rng.bit_generator.state
    found["state"] = {"state": (high << 64) | low, "inc": (inc_high << 64) | inc_low}
    found["has_uint32"], found["uinteger"] = has_uint32, uinteger
    rng.bit_generator.state = found
