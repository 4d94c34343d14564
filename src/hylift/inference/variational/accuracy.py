"""The objectives of a fit, each laid out once: their accuracy, and the error of a value."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from hylift.inference.variational.objective import Entropy, Objective
from hylift.inference.variational.problem import FitProblem, Mixtures
from hylift.inference.variational.products import Ascent
from hylift.numerics.quadrature import Accuracy

MOST_POINTS = 2e8
"""Grid points, over all components, up to which an evaluation takes a few seconds."""
OF_LARGE: dict[Accuracy, Accuracy] = {"search": "search", "final": "search", "check": "final"}
"""Accuracies of a large problem, which is content with less."""


class Objectives:
    """Makes the objectives that are asked for, and keeps those of the present problem."""

    def __init__(self, entropy: Entropy, num_components: int, tolerance: float) -> None:
        self.entropy, self.num_components, self.tolerance = entropy, num_components, tolerance
        self._known: dict[tuple[Accuracy, float], Objective] = {}
        self._ascent: Ascent | None = None

    def at(self, problem: FitProblem, accuracy: Accuracy, hard: float) -> Objective:
        """For a search, for its last steps and result, or to check that result.

        hard: the energy of what is impossible.
        """
        known = self._known.get((accuracy, hard))
        if known is None or known.problem is not problem:
            actual = OF_LARGE[accuracy] if self._is_large(problem) else accuracy
            known = Objective(problem, self.entropy, actual, hard, self.tolerance)
            self._known[accuracy, hard] = known
        return known

    def _is_large(self, problem: FitProblem) -> bool:
        if problem.scopes is None or self.num_components == 1:
            return False
        points = float(problem.scopes.points(problem.graph, "final").sum())
        return points * self.num_components > MOST_POINTS

    def ascent(self, problem: FitProblem, hard: float) -> Ascent:
        """Coordinate ascent of single products, in the problem without its Betas."""
        known = self._ascent
        # Betas make no difference, limits do.
        is_known = known is not None and known.objective.problem.limits is problem.limits
        if known is None or not is_known or known.objective.hard != hard:
            if self.entropy == "bethe" and not len(problem.betas):
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
        has_grids = self.entropy == "bethe" and self.num_components > 1
        if not has_grids and not problem.functions:
            return value, 0.0
        check, grids, points = self.at(problem, "check", hard), problem.scopes, 0.0
        if has_grids and grids is not None:
            points = float(grids.points(problem.graph, check.accuracy).sum()) * self.num_components
        if grids is None or points <= most_points:
            fine = float(check.evaluate(q).value[0])
            return fine, abs(fine - value)
        every = int(np.ceil(points / most_points))
        some = replace(problem, scopes=grids.take(np.arange(0, len(grids.coefficient), every)))
        coarse, fine = (
            float(Objective(some, self.entropy, at.accuracy, hard).evaluate(q).value[0])
            for at in (final, check)
        )
        return value, every * abs(fine - coarse)
