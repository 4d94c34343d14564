"""Ways down a free energy: frozen settings, and steps from one state to the next."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from hylift.components.kernels.steps import moved, natural_step, slopes
from hylift.errors import UnsupportedError
from hylift.inference.curvature import Curvature
from hylift.inference.variational.objective import Evaluation, Objective
from hylift.inference.variational.problem import FitProblem, FloatArray, Mixtures
from hylift.inference.variational.state import Averages, State

STILL_MOVE = 1e-2
"""Largest move of a mean, in standard deviations, or of a probability, that counts as none."""
WARM_UP = 5
"""Steps before the Bethe weights may move: components must first find their places."""
SHORTEST = 1e-6
"""A step that fails and can hardly be shortened any more is as calm as one that changes nothing."""
SUFFICIENT = 1e-4
"""Share of the predicted fall that a step must bring (Armijo)."""
MOST_TRIES = 4
MANY_PARTS = 32
"""Parts of a graph from which on they do not wait for those whose steps fail, and those that are
still moving are set apart when they are few."""
GIVE_UP = 2
"""Calm steps that a step counts for which failed in both ways."""
LONGEST = 3.0
"""Longest first step, in units of the Fisher information, without a memory of steps."""


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
    """(start, part): accepted steps in a row that changed next to nothing.

    Steps that were not accepted do not count. moves: (start, part), the largest one of each.
    """
    size, value = objective.problem.part_size, there.by_part
    small = objective.tolerance * size + 1e-12 * np.abs(value)
    still = (np.abs(value - state.at.by_part) <= small) & (moves < STILL_MOVE)
    return np.where(accepted, np.where(still, state.calm + 1, 0), state.calm)


def chosen_parts(
    problem: FitProblem,
    chosen: NDArray[np.bool_],
    new: tuple[Mixtures, Evaluation],
    old: tuple[Mixtures, Evaluation],
) -> tuple[Mixtures, Evaluation]:
    """The new candidates where they are chosen (start, part), with their evaluation."""
    if chosen.all():
        return new
    if not chosen.any():
        return old
    (q, at), (before, was) = new, old
    rows, blocks = chosen[:, :, None], chosen[:, problem.entry_part][:, :, None]
    return Mixtures(
        np.where(rows, q.weights, before.weights), np.where(blocks, q.entries, before.entries)
    ), Evaluation(
        np.where(chosen, at.by_part, was.by_part),
        np.where(rows, at.of_weights, was.of_weights),
        np.where(blocks, at.of_entries, was.of_entries),
    )


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

    def step(
        self, objective: Objective, state: State, only: NDArray[np.bool_] | None = None
    ) -> State:
        """only: (start, part), those to move."""
        problem, q, at = objective.problem, state.q, state.at
        layout, limits, bethe = problem.layout, problem.limits, _is_bethe(objective, q)
        new = Mixtures(np.empty_like(q.weights), np.empty_like(q.entries))
        moves = np.empty(q.weights.shape[:2])
        natural_step(
            layout.family, layout.first, layout.lower, layout.upper, limits.least, limits.most,
            problem.multiplicity, problem.part, problem.copies, q.weights, q.entries, at.of_weights,
            at.of_entries, state.rho, state.step >= WARM_UP or not bethe,
            np.empty(q.weights.shape[2]), new.weights, new.entries, moves,
        )  # fmt: skip
        there = objective.evaluate(new)
        accepted = there.by_part <= at.by_part + 1e-12 * np.abs(at.by_part)
        most = self.most or (0.5 if bethe else 1.0)
        rho = np.where(accepted, np.minimum(1.25 * state.rho, most), 0.5 * state.rho)
        calm = calmer(objective, state, accepted, there, moves)
        calm = np.where(~accepted & (rho < SHORTEST), calm + 1, calm)
        if only is not None:
            accepted &= only
            rho, calm = np.where(only, rho, state.rho), np.where(only, calm, state.calm)
        new, there = chosen_parts(problem, accepted, (new, there), (q, at))
        return State(new, there, state.step + 1, rho, calm, state.memory)


def _is_bethe(objective: Objective, q: Mixtures) -> bool:
    return objective.entropy == "bethe" and q.weights.shape[2] > 1


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
    """A quasi-Newton step of each part; a natural one of those where it fails."""
    problem, q, at = objective.problem, state.q, state.at
    slope, inverse = _tangent(objective, q, at)
    row_part = np.concatenate([np.arange(problem.num_parts), problem.entry_part])
    memory = state.memory
    if not isinstance(memory, Curvature):
        memory = Curvature.none(slope[0], problem.num_parts)
    direction = memory.direction(slope[0], inverse[0], row_part)[None]
    fall = np.bincount(row_part, (slope * direction)[0].sum(axis=1), problem.num_parts)
    falls = fall < 0
    first = np.minimum(LONGEST / np.maximum(np.sqrt(np.where(falls, -fall, 0.0)), 1e-300), 1.0)
    first = np.minimum(first, 2 * state.rho[0])
    length = np.where(falls, np.where(memory.count == 0, first, 1.0), 0.0)
    for _ in range(_tries(problem)):
        new, taken, moves = _moved(objective, q, direction, length[None])
        there = objective.evaluate(new)
        good = falls & (there.by_part[0] <= at.by_part[0] + SUFFICIENT * length * fall)
        if (good | ~falls).all():
            break
        length = np.where(good, length, 0.4 * length)
    if not good.any():
        return _natural_instead(objective, replace(state, memory=None), ~good)
    new, there = chosen_parts(problem, good[None], (new, there), (q, at))
    new_slope, _ = _tangent(objective, new, there)
    change = np.where(good[row_part][:, None], new_slope[0] - slope[0], 0.0)
    memory = memory.remember(np.where(good[row_part][:, None], taken[0], 0.0), change, row_part)
    calm = np.where(good, calmer(objective, state, good[None], there, moves), state.calm)
    found = State(new, there, state.step + 1, state.rho, calm, memory)
    if good.all():
        return found
    forgotten = replace(memory, count=np.where(good, memory.count, 0))
    found = _natural_instead(objective, replace(found, memory=forgotten), ~good)
    return replace(found, step=state.step + 1)


def _tries(problem: FitProblem) -> int:
    """Evaluations of a step. Of many parts some always fail, while the others wait: these shorten
    their steps, and try again at the next one."""
    return MOST_TRIES if problem.num_parts < MANY_PARTS else 1


def _tangent(objective: Objective, q: Mixtures, at: Evaluation) -> tuple[FloatArray, FloatArray]:
    """Slope, and inverse Fisher information (start, weight or entry, component)."""
    problem, (starts, entries, size) = objective.problem, q.entries.shape
    slope, inverse = np.empty((2, starts, problem.num_parts + entries, size))
    slopes(
        problem.layout.family, problem.layout.first, problem.multiplicity, problem.part,
        problem.copies, q.weights, q.entries, at.of_weights, at.of_entries, slope, inverse,
    )  # fmt: skip
    return slope, inverse


def _moved(
    objective: Objective, q: Mixtures, direction: FloatArray, length: FloatArray
) -> tuple[Mixtures, FloatArray, FloatArray]:
    """Mixtures after a step of length (start, part) along a direction in unconstrained coordinates;
    the step that limits have left of it; and the largest move (start, part)."""
    layout, limits = objective.problem.layout, objective.problem.limits
    new = Mixtures(np.empty_like(q.weights), np.empty_like(q.entries))
    taken, moves = np.empty_like(direction), np.empty(length.shape)
    moved(
        layout.family, layout.first, layout.lower, layout.upper, limits.least, limits.most,
        objective.problem.part, q.weights, q.entries, direction, length,
        np.empty(q.weights.shape[2]), new.weights, new.entries, taken, moves,
    )  # fmt: skip
    return new, taken, moves


def _natural_instead(objective: Objective, state: State, failed: NDArray[np.bool_]) -> State:
    """A natural step of the parts (part,) whose own failed.

    If even the shortest fail, nothing but the errors of the quadrature is left.
    """
    new, left = state, failed[None]
    for _ in range(_tries(objective.problem)):
        before = new.rho
        new = NaturalGradient().step(objective, new, left)
        left = left & (new.rho < before)
        if not left.any():
            break
    calm = np.where(left & (new.rho < SHORTEST), new.calm + GIVE_UP, new.calm)
    return replace(new, step=state.step + 1, calm=calm)


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
        members = np.repeat(problem.multiplicity, problem.layout.size)
        slope /= np.concatenate([problem.copies, members])[:, None]
        memory = state.memory if isinstance(state.memory, Averages) else Averages.none(slope)
        count = memory.count + 1
        mean = self.decay * memory.mean + (1 - self.decay) * slope
        square = self.square_decay * memory.square + (1 - self.square_decay) * slope**2
        unbiased = mean / (1 - self.decay**count)
        size = np.sqrt(square / (1 - self.square_decay**count))
        new, _, moves = _moved(objective, q, -unbiased / (size + 1e-8), state.rho)
        there = objective.evaluate(new)
        calm = calmer(objective, state, np.ones(moves.shape, dtype=bool), there, moves)
        return State(new, there, state.step + 1, state.rho, calm, Averages(mean, square, count))
