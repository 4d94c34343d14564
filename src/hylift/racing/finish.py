"""The results of single methods in a race."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from hylift.errors import HyliftError, MethodError
from hylift.inference import Lift
from hylift.posterior import Comparison, Posterior

LONGEST_REASON = 66
"""Letters of a short reason."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Finish:
    """The result of a method."""

    label: str
    lift: Lift
    seconds: float
    """Of all tasks together, without compilation; of short runs without the time to load code."""
    memory: int | None
    """Bytes by which the resident memory grew at its peak, in the run in which it grew most; None
    where the system does not report it."""
    posterior: Posterior
    comparison: Comparison | None = None
    """Distance of its marginals from those of the yardstick; None for the yardstick itself."""
    refused: str | None = None
    """The reason why it has only a MAP assignment, where it refused the rest."""

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

    @property
    def is_search(self) -> bool:
        """True if it searched for an assignment only."""
        posterior = self.posterior
        return (
            self.refused is None
            and posterior.all_marginals is None
            and posterior.log_partition is None
            and posterior.assignment is not None
        )

    def __repr__(self) -> str:
        return f"Finish({self.label}, {self.seconds:.3g} s, {self.posterior.solution.result})"


@dataclass(frozen=True, slots=True)
class Skipped:
    """A method without an answer, and why: it refused the graph, or failed."""

    label: str
    error: Exception

    @property
    def has_failed(self) -> bool:
        """True if the method failed, rather than refused the graph."""
        is_refusal = isinstance(self.error, (HyliftError, MemoryError))
        return not is_refusal or isinstance(self.error, MethodError)

    @property
    def result(self) -> Literal["failed", "skipped"]:
        return "failed" if self.has_failed else "skipped"

    @property
    def reason(self) -> str:
        """The whole sentence."""
        words = self.error.text if isinstance(self.error, HyliftError) else str(self.error)
        if self.has_failed:
            return f"failed: {type(self.error).__name__}" + (f": {words}" if words else "")
        if not words and isinstance(self.error, MemoryError):
            return "there is not enough memory"
        return words or type(self.error).__name__


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
