"""The distribution that a posterior is about, where it can still be asked."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hylift.errors import UnsupportedError
from hylift.graph import Evidence
from hylift.posterior.answers import Assignment
from hylift.posterior.mixture import Mixture


class Target(ABC):
    """True energies, and the best assignment by them. Not saved with a posterior."""

    __slots__ = ()

    @property
    @abstractmethod
    def evidence(self) -> Evidence:
        """What was observed."""

    @abstractmethod
    def energy(self, values: NDArray[np.float64]) -> float:
        """-log ψ of values (variable,), where the observed ones have the values that were seen."""

    @abstractmethod
    def map(self, mixture: Mixture | None) -> Assignment:
        """The best assignment that can be found, starting from a mixture where there is one."""


@dataclass(frozen=True, slots=True, eq=False)
class Conditioned(Target):
    """A target of which more values are known than when inference looked at it."""

    whole: Target
    given: Evidence

    @property
    def evidence(self) -> Evidence:
        return self.whole.evidence.joined(self.given)

    def energy(self, values: NDArray[np.float64]) -> float:
        return self.whole.energy(values)

    def map(self, mixture: Mixture | None) -> Assignment:
        raise UnsupportedError(
            "after given(…) there is no polished MAP assignment: map(polish=False) is the mode of "
            "the conditional mixture; for a better one observe the values and infer again"
        )
