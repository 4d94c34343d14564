"""The progress of an optimiser, and its memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from hylift.archive import Arrays
from hylift.errors import UnsupportedError
from hylift.inference.curvature import Curvature, Ids
from hylift.inference.variational.objective import Evaluation, Objective
from hylift.inference.variational.problem import FitProblem, FloatArray, Mixtures


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

    def arrays(self) -> Arrays:
        """Everything that the next step depends on, for a checkpoint."""
        arrays = {
            "weights": self.q.weights,
            "entries": self.q.entries,
            "value": self.at.by_part,
            "of_weights": self.at.of_weights,
            "of_entries": self.at.of_entries,
            "step": np.array(self.step),
            "rho": self.rho,
            "calm": self.calm,
        }
        match self.memory:
            case Curvature() as memory:
                place = np.stack([memory.count, memory.newest])
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
            memory = Curvature(arrays["steps"], arrays["changes"], *arrays["place"])
        elif "mean" in arrays:
            memory = Averages(arrays["mean"], arrays["square"], int(arrays["count"]))
        q = Mixtures(arrays["weights"], arrays["entries"])
        at = Evaluation(arrays["value"], arrays["of_weights"], arrays["of_entries"])
        return cls(q, at, int(arrays["step"]), arrays["rho"], arrays["calm"], memory)


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
