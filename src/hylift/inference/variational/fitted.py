"""Settings of a fit, the objectives that it needs, and the mixture that was found."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from hylift.inference.prepared import View
from hylift.inference.variational.joint import JointGaussians
from hylift.inference.variational.objective import Entropy, Objective
from hylift.inference.variational.optimisers import NaturalNewton, Optimiser
from hylift.inference.variational.problem import FitProblem, Mixtures, Reals
from hylift.inference.variational.products import Ascent
from hylift.numerics.quadrature import Accuracy

MOST_POINTS = 2e8
"""Grid points, over all components, up to which an evaluation takes a few seconds."""
OF_LARGE: dict[Accuracy, Accuracy] = {"search": "search", "final": "search", "check": "final"}
"""Accuracies of a large problem, which is content with less."""


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings that BVI, NPVI and mean field share."""

    entropy: Entropy
    components: int
    optimiser: Optimiser
    restarts: int
    max_steps: int
    reals: Reals
    tolerance: float

    @property
    def by_coordinates(self) -> bool:
        """True if exact updates of one variable after the other are the optimiser."""
        single = self.components == 1 and self.entropy == "bethe"
        return single and isinstance(self.optimiser, NaturalNewton)

    @property
    def needs_grids(self) -> bool:
        """True if the entropy is integrated on grids."""
        return self.entropy == "bethe" and self.components > 1


@dataclass(frozen=True, slots=True, eq=False)
class Fit:
    """The mixture that was found, in the last view."""

    view: View
    problem: FitProblem
    q: Mixtures  # one
    value: float
    """Its free energy."""
    error: float
    """Its numerical error, estimated by a finer quadrature."""
    converged: bool
    is_feasible: bool
    """True if nothing impossible has a probability."""
    is_closed_form: bool
    """True if it needed no steps, as the best product of a Gaussian is known."""
    single: Fit | None = None
    """The best single product, where that was fitted first."""
    joint: JointGaussians | None = None
    """Of its components, which then are no products: `q` has the variances of each real."""

    def copied(self, count: int) -> Fit:
        """The fit of a single product as a mixture of so many copies of it."""
        entries = np.repeat(self.q.entries, count, axis=2)
        return replace(self, q=Mixtures.even(entries, self.problem.num_parts))


class Objectives:
    """Makes the objectives that are asked for, and keeps those of the present problem."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._known: dict[tuple[Accuracy, float], Objective] = {}
        self._ascent: Ascent | None = None

    def at(self, problem: FitProblem, accuracy: Accuracy, hard: float) -> Objective:
        """For a search, for its last steps and result, or to check that result.

        hard: the energy of what is impossible.
        """
        known = self._known.get((accuracy, hard))
        if known is None or known.problem is not problem:
            actual = OF_LARGE[accuracy] if self._is_large(problem) else accuracy
            entropy, tolerance = self.settings.entropy, self.settings.tolerance
            known = Objective(problem, entropy, actual, hard, tolerance)
            self._known[accuracy, hard] = known
        return known

    def _is_large(self, problem: FitProblem) -> bool:
        return self._points(problem, "final") > MOST_POINTS

    def _points(self, problem: FitProblem, accuracy: Accuracy) -> float:
        """Grid points of all components together."""
        if problem.scopes is None:
            return 0.0
        return float(problem.scopes.points(accuracy).sum()) * self.settings.components

    def ascent(self, problem: FitProblem, hard: float) -> Ascent:
        """Coordinate ascent of single products, in the problem without its Betas."""
        known = self._ascent
        # Betas make no difference, limits do.
        is_known = known is not None and known.objective.problem.limits is problem.limits
        if known is None or not is_known or known.objective.hard != hard:
            if self.settings.entropy == "bethe" and not len(problem.betas):
                known = Ascent.on(self.at(problem, "search", hard))
            else:
                known = Ascent.of(problem, hard)
            self._ascent = known
        return known

    def value_and_error(
        self, problem: FitProblem, q: Mixtures, hard: float, most_points: float = MOST_POINTS
    ) -> tuple[float, float]:
        """The free energy of one candidate, and its error: the change on a finer grid.

        Of a large problem only some scopes are evaluated on the finer grid.
        """
        final = self.at(problem, "final", hard)
        value = float(final.evaluate(q).value[0])
        grids = problem.scopes
        if grids is None and not problem.functions:
            return value, 0.0
        check = self.at(problem, "check", hard)
        points = self._points(problem, check.accuracy)
        if grids is None or points <= most_points:
            fine = float(check.evaluate(q).value[0])
            return fine, abs(fine - value)
        every = int(np.ceil(points / most_points))
        some = replace(problem, scopes=grids.take(np.arange(0, len(grids.coefficient), every)))
        coarse, fine = (
            float(Objective(some, final.entropy, at.accuracy, hard).evaluate(q).value[0])
            for at in (final, check)
        )
        return value, every * abs(fine - coarse)
