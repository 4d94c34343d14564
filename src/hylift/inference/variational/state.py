"""The progress of an optimiser, and its memory."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from hylift.archive import Arrays
from hylift.errors import UnsupportedError
from hylift.inference import held
from hylift.inference.curvature import Curvature, Ids
from hylift.inference.held import MOST_STEPS, Held, checked, count
from hylift.inference.variational.objective import Evaluation, Objective
from hylift.inference.variational.problem import FloatArray, Mixtures
from hylift.posterior.distributions.base import normalized


class Memory(Protocol):
    """The memory that an optimiser has of its steps."""

    def spread(
        self, rows: NDArray[np.int64], share: FloatArray, parts: NDArray[np.int64]
    ) -> Memory:
        """The same over finer classes; rows, share: (weight or entry,), where each comes from, and
        its share in the slope; parts: (part,), where it comes from."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class Averages:
    """Means of the slopes of single members of classes, and of their squares."""

    mean: FloatArray  # (start, weight or entry, component)
    square: FloatArray  # (start, weight or entry, component)
    count: int

    @classmethod
    def none(cls, slope: FloatArray) -> Averages:
        return cls(np.zeros_like(slope), np.zeros_like(slope), 0)

    def spread(
        self, rows: NDArray[np.int64], share: FloatArray, parts: NDArray[np.int64]
    ) -> Averages:
        mean, square = self.mean[:, rows], self.square[:, rows]
        return Averages(np.ascontiguousarray(mean), np.ascontiguousarray(square), self.count)


@dataclass(frozen=True, slots=True, eq=False)
class State:
    """The progress of an optimiser with each of its starts."""

    q: Mixtures
    at: Evaluation
    """The objective at q."""
    step: int
    """Steps taken."""
    rho: FloatArray
    """(start, part): length of the next step."""
    calm: NDArray[np.int64]
    """(start, part): accepted steps in a row that changed next to nothing."""
    memory: Memory | None = None

    @classmethod
    def of(cls, objective: Objective, q: Mixtures, rho: float) -> State:
        """The state in which all starts begin."""
        size = q.weights.shape[:2]
        return cls(q, objective.evaluate(q), 0, np.full(size, rho), np.zeros(size, dtype=np.int64))

    def take(self, starts: list[int]) -> State:
        """Some of the starts, without memory of steps."""
        q, at = self.q.take(starts), self.at.take(starts)
        return State(q, at, self.step, self.rho[starts], self.calm[starts])

    @classmethod
    def ranked(
        cls, states: list[State], order: NDArray[np.int64], entry_part: NDArray[np.int32]
    ) -> tuple[State, ...]:
        """States of one start each, put together anew: the first has of each part the state
        order[0] (part,), and so on."""
        if order.shape[1] == 1:
            return tuple(states[at] for at in order[:, 0])
        parts, entries = np.arange(order.shape[1]), np.arange(len(entry_part))

        def pick(
            arrays: list[NDArray[Any]], rank: Ids, *, of_entries: bool = False
        ) -> NDArray[Any]:
            at = (rank[entry_part], entries) if of_entries else (rank, parts)
            return np.stack(arrays)[:, 0][at][None]

        found = []
        for rank in order:
            q = Mixtures(
                pick([one.q.weights for one in states], rank),
                pick([one.q.entries for one in states], rank, of_entries=True),
            )
            at = Evaluation(
                pick([one.at.by_part for one in states], rank),
                pick([one.at.of_weights for one in states], rank),
                pick([one.at.of_entries for one in states], rank, of_entries=True),
            )
            rho, calm = (
                pick([getattr(one, name) for one in states], rank) for name in ("rho", "calm")
            )
            found.append(cls(q, at, states[0].step, rho, calm))
        return tuple(found)

    def arrays(self) -> held.State:
        """Everything that the next step depends on, for a checkpoint; what follows from the
        parameters is computed anew."""
        arrays: held.State = {
            "weights": Held(self.q.weights, 0.0, 1.0),
            "entries": self.q.entries,
            "step": count(self.step),
            "rho": Held(self.rho, 0.0),
            "calm": Held(self.calm, 0, MOST_STEPS),
        }
        match self.memory:
            case Curvature() as memory:
                return {**arrays, **memory.arrays()}
            case Averages() as memory:
                averages = {"mean": memory.mean, "square": memory.square}
                return {**arrays, **averages, "count": count(memory.count)}
            case None:
                return arrays
            case other:
                name = type(other).__name__
                raise UnsupportedError(
                    f"checkpoints can store the memory of hylift's own optimisers, not '{name}'"
                )

    def restored(self, objective: Objective, arrays: Arrays) -> State:
        """The state of the same starts that has these arrays."""
        slope = np.concatenate([self.q.weights, self.q.entries], axis=1)
        memory: Memory | None = None
        if "steps" in arrays:
            memory = Curvature.none(slope[0], slope.shape[1] - self.q.entries.shape[1])
        elif "mean" in arrays:
            memory = Averages.none(slope)
        own = checked(replace(self, memory=memory).arrays(), arrays)
        match memory:
            case Curvature():
                memory = memory.restored(own)
            case Averages():
                memory = Averages(own["mean"], own["square"], int(own["count"]))
        q = Mixtures(own["weights"], own["entries"])
        normalized("weights", q.weights)
        for entries in q.entries:
            objective.problem.layout.check(entries, q.num_components)
        at = objective.evaluate(q)
        return State(q, at, int(own["step"]), own["rho"], own["calm"], memory)
