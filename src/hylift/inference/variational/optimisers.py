"""Ways down a free energy: frozen settings, and steps from one state to the next."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from hylift.archive import Arrays
from hylift.components.kernels.steps import moved, natural_step, quasi_newton, slopes
from hylift.errors import UnsupportedError
from hylift.inference.variational.objective import Evaluation, Objective
from hylift.inference.variational.problem import FloatArray, Mixtures

STILL_MOVE = 1e-2
"""Largest move of a mean, in standard deviations, or of a probability, that counts as none."""
WARM_UP = 5
"""Steps before the Bethe weights may move: components must first find their places."""
SHORTEST = 1e-6
"""A step that fails and can hardly be shortened any more is as calm as one that changes nothing."""
MEMORY = 10
SUFFICIENT = 1e-4
"""Share of the predicted fall that a step must bring (Armijo)."""
MOST_TRIES = 4
GIVE_UP = 2
"""Calm steps that a step counts for which failed in both ways."""
LONGEST = 3.0
"""Longest first step, in units of the Fisher information, without a memory of steps."""


class Memory(Protocol):
    """The memory that an optimiser has of its steps."""

    def spread(self, source: NDArray[np.int64], share: FloatArray) -> Memory:
        """The same over finer classes; source, share: (entry,), where each entry comes from, and
        its part in the slope."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class State:
    """The progress of an optimiser with each of its starts."""

    q: Mixtures
    at: Evaluation
    """The objective at q."""
    step: int
    """Steps taken."""
    rho: FloatArray
    """(start,): length of the next step."""
    calm: NDArray[np.int64]
    """(start,): accepted steps in a row that changed next to nothing."""
    memory: Memory | None = None

    @classmethod
    def of(cls, objective: Objective, q: Mixtures, rho: float) -> State:
        """The state in which all starts begin."""
        size = len(q.weights)
        return cls(q, objective.evaluate(q), 0, np.full(size, rho), np.zeros(size, dtype=np.int64))

    def take(self, starts: list[int]) -> State:
        """Some of the starts, without memory of steps."""
        q, at = self.q.take(starts), self.at.take(starts)
        return State(q, at, self.step, self.rho[starts], self.calm[starts])

    def arrays(self) -> Arrays:
        """Everything that the next step depends on, for a checkpoint."""
        arrays = {
            "weights": self.q.weights,
            "entries": self.q.entries,
            "value": self.at.value,
            "of_weights": self.at.of_weights,
            "of_entries": self.at.of_entries,
            "step": np.array(self.step),
            "rho": self.rho,
            "calm": self.calm,
        }
        match self.memory:
            case Curvature() as memory:
                place = np.array([memory.count, memory.newest])
                arrays |= {"steps": memory.steps, "changes": memory.changes, "place": place}
            case Averages() as memory:
                count = np.array(memory.count)
                arrays |= {"mean": memory.mean, "square": memory.square, "count": count}
            case None:
                pass
            case other:
                name = type(other).__name__
                raise UnsupportedError(
                    f"checkpoints can store the memory of hylift's own optimisers, not '{name}'"
                )
        return arrays

    @classmethod
    def restored(cls, arrays: Arrays) -> State:
        """The state that has these arrays."""
        memory: Memory | None = None
        if "steps" in arrays:
            count, newest = arrays["place"].tolist()
            memory = Curvature(arrays["steps"], arrays["changes"], count, newest)
        elif "mean" in arrays:
            memory = Averages(arrays["mean"], arrays["square"], int(arrays["count"]))
        q = Mixtures(arrays["weights"], arrays["entries"])
        at = Evaluation(arrays["value"], arrays["of_weights"], arrays["of_entries"])
        return cls(q, at, int(arrays["step"]), arrays["rho"], arrays["calm"], memory)


class Optimiser(Protocol):
    """Takes all starts of a state a step further."""

    @property
    def name(self) -> str: ...

    def begin(self, objective: Objective, q: Mixtures) -> State: ...

    def step(self, objective: Objective, state: State) -> State: ...


def calmer(
    objective: Objective,
    state: State,
    accepted: NDArray[np.bool_],
    there: Evaluation,
    moves: FloatArray,
) -> NDArray[np.int64]:
    """(start,): accepted steps in a row that changed next to nothing.

    Steps that were not accepted do not count. moves: (start,), the largest one of each.
    """
    small = objective.tolerance * objective.problem.num_ground + 1e-12 * np.abs(there.value)
    still = (np.abs(there.value - state.at.value) <= small) & (moves < STILL_MOVE)
    return np.where(accepted, np.where(still, state.calm + 1, 0), state.calm)


@dataclass(frozen=True, slots=True)
class NaturalGradient:
    """Steps along the natural gradient, as long as the objective falls; else shorter ones.

    Settings that are None depend on the objective: 0.2 and at most 0.5 for Bethe, 0.3 and at most
    1 for Jensen.
    """

    rho: float | None = None
    """Length of the first step; 1 would be the exact update of one variable alone."""
    most: float | None = None

    def __post_init__(self) -> None:
        for name in ("rho", "most"):
            value = getattr(self, name)
            if value is not None and not (isinstance(value, int | float) and 0 < value <= 1):
                raise UnsupportedError(f"{name} is above 0 and at most 1, not {value!r}")

    @property
    def name(self) -> str:
        return "natural gradient"

    def begin(self, objective: Objective, q: Mixtures) -> State:
        return State.of(objective, q, self.rho or (0.2 if _is_bethe(objective, q) else 0.3))

    def step(self, objective: Objective, state: State) -> State:
        problem, q, at = objective.problem, state.q, state.at
        layout, limits, bethe = problem.layout, problem.limits, _is_bethe(objective, q)
        new = Mixtures(np.empty_like(q.weights), np.empty_like(q.entries))
        moves = np.empty(len(q.weights))
        natural_step(
            layout.family, layout.first, layout.lower, layout.upper, limits.least, limits.most,
            problem.multiplicity, q.weights, q.entries, at.of_weights, at.of_entries, state.rho,
            state.step >= WARM_UP or not bethe, np.empty(q.weights.shape[1]), new.weights,
            new.entries, moves,
        )  # fmt: skip
        there = objective.evaluate(new)
        accepted = there.value <= at.value + 1e-12 * np.abs(at.value)
        most = self.most or (0.5 if bethe else 1.0)
        rho = np.where(accepted, np.minimum(1.25 * state.rho, most), 0.5 * state.rho)
        calm = calmer(objective, state, accepted, there, moves)
        calm = np.where(~accepted & (rho < SHORTEST), calm + 1, calm)
        if not accepted.any():
            new, there = q, at
        elif not accepted.all():
            rows, blocks = accepted[:, None], accepted[:, None, None]
            new = Mixtures(
                np.where(rows, new.weights, q.weights), np.where(blocks, new.entries, q.entries)
            )
            there = Evaluation(
                np.where(accepted, there.value, at.value),
                np.where(rows, there.of_weights, at.of_weights),
                np.where(blocks, there.of_entries, at.of_entries),
            )
        return State(new, there, state.step + 1, rho, calm, state.memory)


def _is_bethe(objective: Objective, q: Mixtures) -> bool:
    return objective.entropy == "bethe" and q.weights.shape[1] > 1


@dataclass(frozen=True, slots=True, eq=False)
class Curvature:
    """The last steps of one start in unconstrained coordinates, and what they did to the slope."""

    steps: FloatArray  # (place, weight or entry, component)
    changes: FloatArray  # (place, weight or entry, component)
    count: int
    newest: int

    @classmethod
    def none(cls, slope: FloatArray) -> Curvature:
        shape = (MEMORY, *slope.shape[1:])
        return cls(np.zeros(shape), np.zeros(shape), 0, -1)

    def spread(self, source: NDArray[np.int64], share: FloatArray) -> Curvature:
        rows = np.concatenate([[0], 1 + source])
        parts = np.concatenate([[1.0], share])[:, None]
        # In the order in which kernels expect them: another one would be compiled for anew.
        steps = np.ascontiguousarray(self.steps[:, rows])
        changes = np.ascontiguousarray(self.changes[:, rows] * parts)
        return Curvature(steps, changes, self.count, self.newest)

    def remember(self, step: FloatArray, change: FloatArray) -> Curvature:
        """The memory with one more step, if the slope has risen along it."""
        along = float((step * change).sum())
        if not along > 1e-12 * np.sqrt(float((step**2).sum()) * float((change**2).sum())):
            return self
        newest = (self.newest + 1) % MEMORY
        steps, changes = self.steps.copy(), self.changes.copy()
        steps[newest], changes[newest] = step, change
        return Curvature(steps, changes, min(self.count + 1, MEMORY), newest)


@dataclass(frozen=True, slots=True)
class NaturalNewton:
    """Natural gradient steps at first, then quasi-Newton steps, which finish faster.

    The inverse Fisher information is the matrix that L-BFGS starts from. Where a quasi-Newton
    step fails, the next one is natural again.
    """

    natural_steps: int = 20

    def __post_init__(self) -> None:
        if not isinstance(self.natural_steps, int) or self.natural_steps < 0:
            raise UnsupportedError(
                f"natural_steps must be a non-negative integer, not {self.natural_steps!r}"
            )

    @property
    def name(self) -> str:
        return "natural gradient, then L-BFGS"

    def begin(self, objective: Objective, q: Mixtures) -> State:
        return NaturalGradient().begin(objective, q)

    def step(self, objective: Objective, state: State) -> State:
        if state.step < self.natural_steps or len(state.q.weights) > 1:
            return NaturalGradient().step(objective, state)
        return _newton_step(objective, state)


def _newton_step(objective: Objective, state: State) -> State:
    q, at = state.q, state.at
    slope, inverse = _tangent(objective, q, at)
    memory = state.memory if isinstance(state.memory, Curvature) else Curvature.none(slope)
    direction = np.empty_like(slope)
    size = slope.size
    quasi_newton(
        memory.steps.reshape(MEMORY, size), memory.changes.reshape(MEMORY, size), memory.count,
        memory.newest, slope.reshape(size), inverse.reshape(size), np.empty(MEMORY),
        direction.reshape(size),
    )  # fmt: skip
    fall = float((slope * direction).sum())
    if not fall < 0:
        return _natural_instead(objective, state)
    length = 1.0
    if memory.count == 0:
        natural = np.sqrt(-fall)
        length = min(1.0, LONGEST / max(natural, 1e-300), float(state.rho[0]) * 2)
    for _ in range(MOST_TRIES):
        new, taken, moves = _moved(objective, q, direction, np.array([length]))
        there = objective.evaluate(new)
        if there.value[0] <= at.value[0] + SUFFICIENT * length * fall:
            break
        length *= 0.4
    else:
        return _natural_instead(objective, state)
    new_slope, _ = _tangent(objective, new, there)
    memory = memory.remember(taken[0], new_slope[0] - slope[0])
    calm = calmer(objective, state, np.ones(1, dtype=bool), there, moves)
    return State(new, there, state.step + 1, state.rho, calm, memory)


def _tangent(objective: Objective, q: Mixtures, at: Evaluation) -> tuple[FloatArray, FloatArray]:
    """Slope, and inverse Fisher information (start, weight or entry, component)."""
    problem, (starts, entries, size) = objective.problem, q.entries.shape
    slope, inverse = np.empty((2, starts, 1 + entries, size))
    slopes(
        problem.layout.family, problem.layout.first, problem.multiplicity, q.weights, q.entries,
        at.of_weights, at.of_entries, slope, inverse,
    )  # fmt: skip
    return slope, inverse


def _moved(
    objective: Objective, q: Mixtures, direction: FloatArray, length: FloatArray
) -> tuple[Mixtures, FloatArray, FloatArray]:
    """Mixtures after a step of length (start,) along a direction in unconstrained coordinates; the
    step that limits have left of it; and the largest move (start,)."""
    layout, limits = objective.problem.layout, objective.problem.limits
    new = Mixtures(np.empty_like(q.weights), np.empty_like(q.entries))
    taken, moves = np.empty_like(direction), np.empty(len(length))
    moved(
        layout.family, layout.first, layout.lower, layout.upper, limits.least, limits.most,
        q.weights, q.entries, direction, length, np.empty(q.weights.shape[1]), new.weights,
        new.entries, taken, moves,
    )  # fmt: skip
    return new, taken, moves


def _natural_instead(objective: Objective, state: State) -> State:
    """A natural step in place of one that failed, without memory of those before.

    If even the shortest fail, nothing but the errors of the quadrature is left.
    """
    new = replace(state, memory=None)
    for _ in range(MOST_TRIES):
        new = NaturalGradient().step(objective, new)
        if new.q is not state.q:
            return replace(new, step=state.step + 1)
    calm = np.where(new.rho < SHORTEST, new.calm + GIVE_UP, new.calm)
    return replace(new, step=state.step + 1, calm=calm)


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
                raise UnsupportedError(f"{name} is at least 0 and below 1, not {value!r}")

    @property
    def name(self) -> str:
        return f"Adam({self.learning_rate:g})"

    def begin(self, objective: Objective, q: Mixtures) -> State:
        return State.of(objective, q, self.learning_rate)

    def step(self, objective: Objective, state: State) -> State:
        problem, q = objective.problem, state.q
        slope, _ = _tangent(objective, q, state.at)
        # Of one member of a class, so that lifted and ground graphs take the same steps.
        slope[:, 1:] /= np.repeat(problem.multiplicity, np.diff(problem.layout.first))[:, None]
        memory = state.memory if isinstance(state.memory, Averages) else Averages.none(slope)
        count = memory.count + 1
        mean = self.decay * memory.mean + (1 - self.decay) * slope
        square = self.square_decay * memory.square + (1 - self.square_decay) * slope**2
        unbiased = mean / (1 - self.decay**count)
        size = np.sqrt(square / (1 - self.square_decay**count))
        new, _, moves = _moved(objective, q, -unbiased / (size + 1e-8), state.rho)
        there = objective.evaluate(new)
        calm = calmer(objective, state, np.ones(len(moves), dtype=bool), there, moves)
        return State(new, there, state.step + 1, state.rho, calm, Averages(mean, square, count))
