"""What a fit is asked for, where it stands, and what it comes to."""

from __future__ import annotations

from dataclasses import dataclass

from hylift.inference.prepared import View
from hylift.inference.variational.objective import Entropy
from hylift.inference.variational.optimisers import NaturalNewton, Optimiser, State
from hylift.inference.variational.problem import Mixtures, Problem
from hylift.inference.variational.problem.families import Reals


@dataclass(frozen=True, slots=True)
class Settings:
    """What BVI, NPVI and mean field have in common."""

    entropy: Entropy
    components: int
    optimiser: Optimiser
    restarts: int
    max_steps: int
    reals: Reals
    tolerance: float

    @property
    def by_coordinates(self) -> bool:
        """Whether exact updates of one variable after the other are the optimiser."""
        single = self.components == 1 and self.entropy == "bethe"
        return single and isinstance(self.optimiser, NaturalNewton)


@dataclass(frozen=True, slots=True, eq=False)
class Fit:
    """The mixture that was found, in the last view."""

    view: View
    problem: Problem
    q: Mixtures  # one
    value: float
    """Its free energy."""
    error: float
    """How far that may be off, by the difference to a finer quadrature."""
    converged: bool
    is_feasible: bool
    """Whether nothing impossible has a probability."""
    is_closed_form: bool
    """Whether it needed no steps, as the best product of a Gaussian is known."""


@dataclass(frozen=True, slots=True, eq=False)
class Stand:
    """A problem, and where the search in it stands: a state per candidate, the best first."""

    problem: Problem
    hard: float
    candidates: tuple[State, ...]
    is_gaussian: bool
    """Whether the best product is known in closed form, and with it the mean."""
    converged: bool = False
    judged: tuple[float, float] | None = None
    """Free energy of the best, and how far it may be off, where that is known."""

    @property
    def q(self) -> Mixtures:
        return self.candidates[0].q
