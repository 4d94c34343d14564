"""How finely an objective is integrated, and how far its value is off by that."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from hylift.inference.variational.objective.objective import Entropy, Objective
from hylift.inference.variational.problem import Mixtures, Problem
from hylift.numerics.quadrature import Accuracy

MOST_POINTS = 2e8
"""Grid points, over all components, up to which an evaluation takes a few seconds."""


@dataclass(frozen=True, slots=True)
class Ladder:
    """Accuracies for a search, for its last steps and result, and to judge that result."""

    search: Accuracy = "search"
    final: Accuracy = "final"
    check: Accuracy = "check"

    @classmethod
    def of(cls, problem: Problem, num_components: int) -> Ladder:
        """A large problem is content with less."""
        if problem.scopes is None or num_components == 1:
            return cls()
        points = problem.scopes.num_points(problem.graph, "final") * num_components
        return cls() if points <= MOST_POINTS else cls("search", "search", "final")


def with_error(
    problem: Problem,
    entropy: Entropy,
    q: Mixtures,
    ladder: Ladder,
    hard: float,
    most_points: float = MOST_POINTS,
) -> tuple[float, float]:
    """The free energy of one candidate, and how far it may be off: what a finer grid changes.

    Of a large problem only some scopes are looked at on the finer grid.
    """

    def value(some: Problem, accuracy: Accuracy) -> float:
        return float(Objective(some, entropy, accuracy, hard).evaluate(q).value[0])

    grids = problem.scopes if entropy == "bethe" and q.num_components > 1 else None
    if grids is None and not problem.functions:
        return value(problem, ladder.final), 0.0
    points = 0.0
    if grids is not None:
        points = grids.num_points(problem.graph, ladder.check) * q.num_components
    if grids is None or points <= most_points:
        coarse, fine = value(problem, ladder.final), value(problem, ladder.check)
        return fine, abs(fine - coarse)
    every = int(np.ceil(points / most_points))
    some = replace(problem, scopes=grids.take(np.arange(0, len(grids), every)))
    change = value(some, ladder.check) - value(some, ladder.final)
    return value(problem, ladder.final), every * abs(change)
