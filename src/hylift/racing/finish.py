"""How methods end a race."""

from __future__ import annotations

from dataclasses import dataclass

from hylift.errors import HyliftError
from hylift.inference import Lift
from hylift.posterior import Comparison, Posterior

LONGEST_REASON = 66
"""Letters of a short reason."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Finish:
    """What a method has to show."""

    label: str
    lift: Lift
    seconds: float
    """Of all tasks together; of short runs without the time to load code."""
    memory: int | None
    """Bytes by which the resident memory grew at its peak; None where the system does not tell."""
    posterior: Posterior
    comparison: Comparison | None = None
    """How far its marginals are from those of the yardstick; None of the yardstick itself."""
    refused: str | None = None
    """Why it has only a MAP assignment, where it refused the rest."""

    @property
    def mean_kl(self) -> float | None:
        """Mean of KL(yardstick || this) over the hidden variables."""
        return None if self.comparison is None else self.comparison.mean_kl

    @property
    def mean_l1(self) -> float | None:
        return None if self.comparison is None else self.comparison.mean_l1

    @property
    def energy(self) -> float | None:
        """Of the best assignment that was found; lower is better."""
        assignment = self.posterior.assignment
        return None if assignment is None else assignment.energy

    @property
    def notes(self) -> tuple[str, ...]:
        return self.posterior.solution.notes

    def __repr__(self) -> str:
        return f"Finish({self.label}, {self.seconds:.3g} s, {self.posterior.solution.result})"


@dataclass(frozen=True, slots=True)
class Skipped:
    """A method that took no part, and why."""

    label: str
    error: HyliftError | MemoryError

    @property
    def reason(self) -> str:
        """The whole sentence."""
        return str(self.error) or "there is not enough memory"

    @property
    def short_reason(self) -> str:
        """As much of the reason as fits into a line."""
        return shortened(self.reason)


def shortened(reason: str) -> str:
    """The first clause of a sentence, cut where that is too long for a line."""
    first = reason.splitlines()[0]
    for end in (": ", "; ", ". "):
        head = first.partition(end)[0]
        if len(head) >= LONGEST_REASON // 3:
            first = head
    if len(first) <= LONGEST_REASON:
        return first.rstrip(".")
    return first[: LONGEST_REASON - 1].rpartition(" ")[0].rstrip(",:;") + " …"
