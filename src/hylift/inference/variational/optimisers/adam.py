"""Adam, as in the paper."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hylift.errors import UnsupportedError
from hylift.inference.variational.kernels.update import moved
from hylift.inference.variational.objective import Objective
from hylift.inference.variational.optimisers.base import Memory, State, calmer
from hylift.inference.variational.optimisers.newton import tangent
from hylift.inference.variational.problem import Mixtures


@dataclass(frozen=True, slots=True)
class Adam:
    """Steps of a length that does not depend on the size of the gradient (Kingma and Ba 2015).

    The coordinates are those of the paper: means, and logarithms of everything else. It is here
    for comparison: the default is faster and ends nearer to the optimum.
    """

    learning_rate: float = 0.2
    decay: float = 0.9
    """Of the mean of the gradients."""
    square_decay: float = 0.999
    """Of the mean of their squares."""

    def __post_init__(self) -> None:
        if not self.learning_rate > 0:
            raise UnsupportedError(f"a learning rate is positive, not {self.learning_rate!r}")
        for name in ("decay", "square_decay"):
            if not 0 <= getattr(self, name) < 1:
                raise UnsupportedError(
                    f"{name} is at least 0 and below 1, not {getattr(self, name)!r}"
                )

    @property
    def name(self) -> str:
        return f"Adam({self.learning_rate:g})"

    def begin(self, objective: Objective, q: Mixtures) -> State:
        return State.of(objective, q, self.learning_rate)

    def step(self, objective: Objective, state: State) -> State:
        problem, q = objective.problem, state.q
        shape = (q.num_starts, 1 + q.entries.shape[1], q.num_components)
        memory = state.memory or Memory(np.zeros(shape), np.zeros(shape), 0, 0)
        layout, limits = problem.layout, problem.limits
        slope, _ = tangent(objective, q, state.at)
        # Of one member of a class, so that lifted and ground graphs take the same steps.
        slope[:, 1:] /= np.repeat(problem.multiplicity, np.diff(layout.first))[:, None]
        count = memory.count + 1
        mean = self.decay * memory.steps + (1 - self.decay) * slope
        square = self.square_decay * memory.changes + (1 - self.square_decay) * slope**2
        unbiased = mean / (1 - self.decay**count)
        size = np.sqrt(square / (1 - self.square_decay**count))
        direction = -unbiased / (size + 1e-8)
        new = Mixtures(np.empty_like(q.weights), np.empty_like(q.entries))
        moved(
            layout.family, layout.first, layout.lower, layout.upper, limits.least, limits.most,
            q.weights, q.entries, direction, state.rho, new.weights, new.entries,
        )  # fmt: skip
        there = objective.evaluate(new)
        everywhere = np.ones(q.num_starts, dtype=bool)
        calm = calmer(problem, state, everywhere, new, there)
        return State(new, there, state.step + 1, state.rho, calm, Memory(mean, square, count, 0))
