"""Methods tried one after the other, in a common time, with notes on those without an answer."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from hylift.errors import (
    HyliftError,
    ImpossibleEvidenceError,
    IntractableError,
    UnsupportedError,
)
from hylift.inference.capabilities import info_of
from hylift.inference.exact.elimination import DenselyCoupledError
from hylift.inference.method import Method, Request
from hylift.inference.prepared import Prepared
from hylift.inference.solve import solve
from hylift.posterior import Posterior
from hylift.words import worded

LEAST_SECONDS = 0.1
"""For a method that is called when no time is left, because no other has an answer."""

CHECK_SECONDS = 10.0
"""Predicted time that checks may take in all, where the user has set no limit."""

REFUSALS = (IntractableError, UnsupportedError, MemoryError, ArithmeticError, np.linalg.LinAlgError)
"""Errors after which another method may have an answer."""


@dataclass(slots=True)
class Clock:
    """The time that the user allows for all methods together."""

    seconds: float | None
    began: float
    predicted: float = 0.0
    """Of the checks so far, which count where there is no limit: so that answers do not depend on
    the speed of the machine."""

    @property
    def elapsed(self) -> float:
        return time.perf_counter() - self.began

    def left(self, share: float = 1.0) -> float | None:
        """A share of what is left; None for no limit."""
        if self.seconds is None:
            return None
        return max(share * (self.seconds - self.elapsed), LEAST_SECONDS)

    @property
    def for_checks(self) -> float:
        """Seconds that are left for checks."""
        if self.seconds is None:
            return CHECK_SECONDS - self.predicted
        return self.seconds - self.elapsed

    def affords(self, predicted: float) -> bool:
        """True if there is time for a check that should take so long, which is then counted."""
        if predicted > self.for_checks:
            return False
        self.predicted += predicted
        return True


@dataclass(slots=True)
class Attempts:
    """The model and the request that methods are tried on."""

    prepared: Prepared
    request: Request
    rewrites: tuple[str, ...] | None
    clock: Clock
    notes: list[str] = field(default_factory=list)
    error: Exception | None = None
    """Of the last method without an answer."""
    is_dense: bool = False
    """True if a joint Gaussian of the reals is known to be too costly."""

    def attempt(self, method: Method, share: float = 1.0, **changes: Any) -> Posterior | None:
        """The answer of a method in a share of the time; None where it has none."""
        request = replace(self.request, **changes).within(self.clock.left(share))
        request = replace(request, tasks=request.tasks & {*info_of(method).answers})
        try:
            return solve(method, self.prepared, request, self.rewrites)
        except (*REFUSALS, ImpossibleEvidenceError) as error:
            is_impossible = isinstance(error, ImpossibleEvidenceError)
            if is_impossible and info_of(method).proves_impossible:
                raise
            text = error.text if isinstance(error, HyliftError) else str(error)
            self.notes.append(worded(f"{method.name} has no answer here: ", text))
            self.error = error
            self.is_dense |= isinstance(error, DenselyCoupledError)
            return None
