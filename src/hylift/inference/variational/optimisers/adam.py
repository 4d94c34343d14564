"""Adam, as in the paper."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hylift.components.kernels.steps import moved
from hylift.errors import UnsupportedError
from hylift.inference.variational.objective import Objective
from hylift.inference.variational.optimisers.base import State, calmer
from hylift.inference.variational.optimisers.newton import tangent
from hylift.inference.variational.problem import FloatArray, Mixtures


@dataclass(frozen=True, slots=True, eq=False)
class Averages:
    """Means of the slopes of single members of classes, and of their squares."""

    mean: FloatArray  # (start, weight or entry, component)
    square: FloatArray  # (start, weight or entry, component)
    count: int

    @classmethod
    def none(cls, slope: FloatArray) -> Averages:
        return cls(np.zeros_like(slope), np.zeros_like(slope), 0)

    def spread(self, source: NDArray[np.int64], share: FloatArray) -> Averages:
        rows = np.concatenate([[0], 1 + source])
        mean, square = self.mean[:, rows], self.square[:, rows]
        return Averages(np.ascontiguousarray(mean), np.ascontiguousarray(square), self.count)


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
        rate = self.learning_rate
        if not isinstance(rate, int | float) or not 0 < rate < np.inf:
            raise UnsupportedError(f"a learning rate is positive, not {rate!r}")
        for name in ("decay", "square_decay"):
            value = getattr(self, name)
            if not isinstance(value, int | float) or not 0 <= value < 1:
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
        layout, limits = problem.layout, problem.limits
        slope, _ = tangent(objective, q, state.at)
        # Of one member of a class, so that lifted and ground graphs take the same steps.
        slope[:, 1:] /= np.repeat(problem.multiplicity, np.diff(layout.first))[:, None]
        memory = state.memory if isinstance(state.memory, Averages) else Averages.none(slope)
        count = memory.count + 1
        mean = self.decay * memory.mean + (1 - self.decay) * slope
        square = self.square_decay * memory.square + (1 - self.square_decay) * slope**2
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
        calm = calmer(objective, state, everywhere, new, there)
        return State(new, there, state.step + 1, state.rho, calm, Averages(mean, square, count))
