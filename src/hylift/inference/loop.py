"""The one loop that takes the steps of every method, with checkpoints."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from hylift.archive import Arrays
from hylift.inference.checkpoint import FILE, Section
from hylift.inference.control import Control
from hylift.inference.held import State, arrays_of
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

    def arrays(self) -> State:
        """Everything that the next step depends on."""
        ...

    def restore(self, arrays: Arrays) -> None:
        """Go to where `arrays()` was stored, after a check of all: they come from a file."""
        ...


def run_steps(stepper: Stepper, control: Control) -> Result:
    """Take steps until the last one, or until the run is to end, and return why they ended.

    There is at least one step. A run with a checkpoint resumes from what an earlier one stored.
    """
    section = control.next_section()
    if section is not None and section.stored is not None:
        _restore(stepper, section)
        if section.stored.result is not None and _ends_again(stepper, section):
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
                section.store(
                    arrays_of(stepper.arrays()), result, control.steps, control.total_seconds
                )
            if is_due and not is_last:
                section.checkpoint.try_to_write()
        if info.result is not None:
            return info.result
        if not goes_on:
            assert control.ended is not None
            return control.ended


def _restore(stepper: Stepper, section: Section) -> None:
    """Go to where a stepper was stored; raises a `FormatError` if it cannot have been there."""
    assert section.stored is not None
    arrays = section.stored.arrays
    try:
        stepper.restore(arrays)
        if set(stepper.arrays()) != set(arrays):
            raise ValueError("it has arrays that belong elsewhere")
    except (ArithmeticError, LookupError, TypeError, ValueError) as error:
        raise FILE.damaged(section.checkpoint.path, str(error)) from None


def _ends_again(stepper: Stepper, section: Section) -> bool:
    """Return whether a stored loop is at its end: if it had converged, one more step says so again.

    Else the run goes on from there.
    """
    assert section.stored is not None
    is_at_end = section.stored.result != "converged" or stepper.step().result == "converged"
    if section.stored.result == "converged":
        _restore(stepper, section)
    return is_at_end
