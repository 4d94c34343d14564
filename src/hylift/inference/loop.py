"""The one loop that takes the steps of every method, with checkpoints."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from hylift.archive import Arrays
from hylift.errors import UnsupportedError
from hylift.inference.control import Control
from hylift.posterior import Result


class StepInfo(NamedTuple):
    """The report of one step."""

    objective: float | None
    """None for a step that was undone, and is not recorded."""
    what: str
    """Shown to the user as progress."""
    share: float
    """Of all steps that there can be, those taken."""
    result: Result | None = None
    """Set by the last step: 'converged', 'max_steps' or 'diverged'; or 'out_of_time', for a loop
    that had a share of the time, and that a resumed run takes further."""


class Stepper(Protocol):
    """Work that advances in steps, and can be stored between two of them.

    A step that looks at the clock is not stored where it was cut short, unless it undoes what it
    has done, and returns no objective.
    """

    def step(self) -> StepInfo: ...

    def arrays(self) -> Arrays:
        """By name, everything that the next step depends on, not copied."""
        ...

    def restore(self, arrays: Arrays) -> None:
        """Go to where `arrays()` was stored."""
        ...


def run_steps(stepper: Stepper, control: Control) -> Result:
    """Take steps until the last one, or until the run is to end, and return why they ended.

    There is at least one step. A run with a checkpoint resumes from what an earlier one stored.
    """
    section = control.next_section()
    if section is not None and section.stored is not None:
        stepper.restore(section.stored.arrays)
        if section.stored.result is not None:
            return section.stored.result
    while True:
        info = stepper.step()
        is_whole = control.ended is None or info.objective is None
        if info.objective is None:
            goes_on = control.should_continue()
        else:
            goes_on = control.record(info.objective, info.what, info.share)
        if info.result == "diverged":
            control.end("diverged")
            return "diverged"
        if section is not None and is_whole:
            is_last = info.result is not None or not goes_on
            is_due = section.is_due
            if is_last or is_due:
                result = None if info.result == "out_of_time" else info.result
                section.store(stepper.arrays(), result, control.steps, control.total_seconds)
            if is_due and not is_last:
                section.checkpoint.try_to_write()
        if info.result is not None:
            return info.result
        if not goes_on:
            assert control.ended is not None
            return control.ended


def fill(arrays: Arrays, stored: Arrays) -> None:
    """Copy stored values into arrays of the same names; raise if a shape differs."""
    for name, array in arrays.items():
        value = stored[name]
        if value.shape != array.shape or value.dtype != array.dtype:
            raise UnsupportedError(
                f"the checkpoint has '{name}' in the shape {value.shape}, and this run needs "
                f"{array.shape}: it was written by another version"
            )
        array[...] = value


def arrays_in(value: Any, name: str) -> Arrays:
    """The arrays of a mapping or named tuple, and of those within it, by name and not copied."""
    if isinstance(value, np.ndarray):
        return {name: value}
    fields = value if isinstance(value, dict) else value._asdict()
    found: Arrays = {}
    for field_name, part in fields.items():
        found |= arrays_in(part, f"{name} {field_name}")
    return found


def generator_state(rng: np.random.Generator) -> NDArray[np.uint64]:
    """(6,): the position of a generator in its sequence."""
    found: Any = rng.bit_generator.state
    numbers = [found["state"]["state"], found["state"]["inc"]]
    halves = [part for number in numbers for part in divmod(number, 2**64)]
    return np.array([*halves, found["has_uint32"], found["uinteger"]], dtype=np.uint64)


def restore_generator(rng: np.random.Generator, state: NDArray[np.uint64]) -> None:
    """Set a generator to a stored position."""
    high, low, inc_high, inc_low, has_uint32, uinteger = (int(part) for part in state)
    found: Any = rng.bit_generator.state
    found["state"] = {"state": (high << 64) | low, "inc": (inc_high << 64) | inc_low}
    found["has_uint32"], found["uinteger"] = has_uint32, uinteger
    rng.bit_generator.state = found
