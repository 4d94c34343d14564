"""Bounds made tighter: costs moved between replicas of a variable, and the weights of replicas.

The bound is convex in both. Its slope in a cost is the probability of that state in that replica,
so that at the optimum all replicas of a variable agree; its slope in a weight is the entropy of
the replica given its later neighbours (Liu and Ihler, 2011).
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from hylift.archive import Arrays
from hylift.components.kernels.steps import quasi_newton
from hylift.inference.bounds.buckets import Buckets
from hylift.inference.exact.elimination import FloatArray
from hylift.inference.loop import StepInfo, fill
from hylift.inference.variational.optimisers import MEMORY, SUFFICIENT, Curvature
from hylift.posterior import Result

MOST_TRIES = 8
LEAST_PROBABILITY = 1e-9
"""Probabilities below it count as this in the first step."""
CALM = 5
"""Steps that must bring next to nothing before the search ends."""
NEXT_TO_NOTHING = 1e-5
"""Fall of the bound per step, relative to its size, that is not worth another one."""


@dataclass(frozen=True, slots=True, eq=False)
class Point:
    """Costs and logarithms of weights (up to a constant per variable), with the bound there."""

    place: FloatArray  # (cost, then replica)
    bound: float
    slope: FloatArray  # (cost, then replica)


@dataclass(frozen=True, slots=True, eq=False)
class Relaxation:
    """The bound of mini-buckets as a function of costs and weights."""

    buckets: Buckets

    @property
    def num_costs(self) -> int:
        return int(self.buckets.cost_ptr[-1])

    def start(self) -> FloatArray:
        """No costs, and equal weights."""
        return np.zeros(self.num_costs + len(self.buckets.split))

    def weights(self, place: FloatArray) -> FloatArray:
        """(replica,): positive, with sum 1 for each variable."""
        logs, ptr = place[self.num_costs :], self.buckets.replica_ptr[:-1]
        if not len(logs):
            return logs
        raw = np.exp(logs - np.maximum.reduceat(logs, ptr)[self.buckets.owner])
        raw = np.maximum(raw, 1e-6)
        return np.asarray(raw / np.add.reduceat(raw, ptr)[self.buckets.owner])

    def bound(self, place: FloatArray) -> tuple[float, FloatArray]:
        """The bound, and its messages."""
        self.buckets.costs[:] = self._centred(place[: self.num_costs])
        messages, bound = self.buckets.bound(self._spread(place))
        return bound, messages

    def slope(self, place: FloatArray, messages: FloatArray) -> FloatArray:
        """The slope at the place that `messages` were computed for."""
        none = np.zeros(0, dtype=np.int64)
        beliefs, entropy, _ = self.buckets.beliefs(self._spread(place), messages, none)
        weights, entropy = self.weights(place), entropy[self.buckets.split]
        of_logs = weights * (entropy - self._mean_by_replica(weights * entropy))
        return np.concatenate([self._centred(beliefs), of_logs])

    def matching(self, point: Point) -> FloatArray:
        """A direction that brings the replicas of a variable closer to each other.

        Towards the geometric mean g of their beliefs b_r: w_r (log g - log b_r). The bound falls
        along it at a rate of Σ_r w_r KL(b_r | g).
        """
        _, messages = self.bound(point.place)
        none = np.zeros(0, dtype=np.int64)
        beliefs, _, _ = self.buckets.beliefs(self._spread(point.place), messages, none)
        logs = np.log(np.maximum(beliefs, LEAST_PROBABILITY))
        weights = np.repeat(self.weights(point.place), np.diff(self.buckets.cost_ptr))
        mean = np.bincount(self.buckets.mean, weights * logs)[self.buckets.mean]
        return np.concatenate([weights * (mean - logs), np.zeros(len(self.buckets.split))])

    def _spread(self, place: FloatArray) -> FloatArray:
        """(mini-bucket,): weights."""
        found = np.ones(len(self.buckets.plan.clique))
        found[self.buckets.split] = self.weights(place)
        return found

    def _centred(self, costs: FloatArray) -> FloatArray:
        """Costs (cost,) less their mean over the replicas of a variable."""
        at = self.buckets.mean
        if not len(at):
            return costs
        return costs - (np.bincount(at, costs) / np.bincount(at))[at]

    def _mean_by_replica(self, values: FloatArray) -> FloatArray:
        """(replica,): sums of values (replica,) over the replicas of the same variable."""
        if not len(values):
            return values
        sums = np.add.reduceat(values, self.buckets.replica_ptr[:-1])
        return np.asarray(sums[self.buckets.owner])


@dataclass(slots=True, eq=False)
class Tightening:
    """Steps down a bound, by L-BFGS. No step raises it."""

    relaxation: Relaxation
    max_steps: int
    constant: float = 0.0
    """Of log Z beside the tables."""
    taken: int = 0
    calm: int = 0
    point: Point = field(init=False)
    memory: Curvature = field(init=False)

    def __post_init__(self) -> None:
        self.point = self._at(self.relaxation.start())
        self.memory = Curvature.none(self.point.slope[None])

    @property
    def bound(self) -> float:
        """On log Z, the lowest so far."""
        return self.point.bound + self.constant

    def step(self) -> StepInfo:
        before = self.point
        if not self.max_steps or not len(before.place):
            return StepInfo(-self.bound, "bounding", 1.0, "converged")
        direction = self.relaxation.matching(before) if not self.taken else self._direction()
        after = self._searched(direction)
        if after is None and self.memory.count:
            self.memory = Curvature.none(before.slope[None])
            after = self._searched(self._direction())
        if after is not None:
            self.memory = self.memory.remember(
                after.place - before.place, after.slope - before.slope
            )
            self.point = after
        small = NEXT_TO_NOTHING * (1 + abs(self.point.bound))
        self.calm = self.calm + 1 if before.bound - self.point.bound <= small else 0
        self.taken += 1
        result: Result | None = None
        if self.calm >= CALM or after is None:
            result = "converged"
        elif self.taken >= self.max_steps:
            result = "max_steps"
        share = self.taken / self.max_steps
        return StepInfo(-self.bound, "tightening the bound", share, result)

    def _at(self, place: FloatArray, found: tuple[float, FloatArray] | None = None) -> Point:
        bound, messages = found or self.relaxation.bound(place)
        return Point(place, bound, self.relaxation.slope(place, messages))

    def _direction(self) -> FloatArray:
        """The quasi-Newton direction; without a memory, down the slope."""
        direction = np.empty_like(self.point.slope)
        memory = self.memory
        quasi_newton(
            memory.steps, memory.changes, memory.count, memory.newest, self.point.slope,
            np.ones_like(direction), np.empty(MEMORY), direction,
        )  # fmt: skip
        return direction

    def _searched(self, direction: FloatArray) -> Point | None:
        """The point after a step along a direction, shorter until the bound falls enough."""
        fall = float(self.point.slope @ direction)
        if not fall < 0:
            return None
        length = 1.0
        for _ in range(MOST_TRIES):
            place = self.point.place + length * direction
            bound, messages = self.relaxation.bound(place)
            if bound <= self.point.bound + SUFFICIENT * length * fall:
                return self._at(place, (bound, messages))
            length *= 0.4
        return None

    def arrays(self) -> Arrays:
        return {
            "place": self.point.place,
            "slope": self.point.slope,
            "steps": self.memory.steps,
            "changes": self.memory.changes,
            "numbers": np.array(
                [self.point.bound, self.taken, self.calm, self.memory.count, self.memory.newest]
            ),
        }

    def restore(self, arrays: Arrays) -> None:
        own = self.arrays()
        fill(own, arrays)
        bound, *counts = own["numbers"].tolist()
        self.taken, self.calm, count, newest = (int(number) for number in counts)
        self.point = Point(own["place"], bound, own["slope"])
        self.memory = Curvature(own["steps"], own["changes"], count, newest)
