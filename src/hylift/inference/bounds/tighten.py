"""Bounds made tighter: costs moved between replicas of a variable, and the weights of replicas.

The bound is convex in both. Its slope in a cost is the probability of that state in that replica
(of a real, its mean or square), so that at the optimum all replicas of a variable agree; its slope
in a weight is the entropy of the replica given its later neighbours (Liu and Ihler, 2011).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hylift.archive import Arrays
from hylift.inference.bounds.buckets import Buckets, split_tables
from hylift.inference.bounds.reals import RealBuckets
from hylift.inference.curvature import Curvature
from hylift.inference.exact.elimination import FloatArray, Ids, Ids32
from hylift.inference.held import State, checked, count
from hylift.inference.loop import StepInfo
from hylift.inference.terms import Terms
from hylift.inference.variational.optimisers import SUFFICIENT
from hylift.posterior import Result

MOST_TRIES = 20
LEAST_PROBABILITY = 1e-9
"""Probabilities below it count as this in the first step."""
LEAST_WEIGHT = 1e-6
"""Smallest weight of a replica against the largest."""
CALM = 5
"""Steps that must bring next to nothing before the search ends."""
NEXT_TO_NOTHING = 1e-5
"""Fall of the bound per step, relative to its size, that is not worth another one."""


class Point(NamedTuple):
    """Costs and logarithms of weights (up to a constant per variable), with the bound there."""

    place: FloatArray
    bound: float
    slope: FloatArray


class Parts(NamedTuple):
    """A place, part by part; all but the first and the last are by replica."""

    costs: FloatArray  # (cost,): of states
    logs: FloatArray  # of weights
    curvatures: FloatArray  # costs -½ c x² of reals, in units of their scale
    slopes: FloatArray  # costs s x of reals, in units of its root
    real_logs: FloatArray  # of weights of reals
    boxes: FloatArray  # logs of the factors of bounds


@dataclass(slots=True, eq=False)
class Relaxation:
    """The bound of mini-buckets as a function of costs and weights."""

    buckets: Buckets
    reals: RealBuckets | None
    num_fixed: int = 0
    """Tables of the model: the others are integrals over reals."""
    rounding: float = 0.0
    """Rough bound on the rounding error of the latest bound that comes from reals."""
    gains: FloatArray = field(default_factory=lambda: np.zeros(0))

    @classmethod
    def of(
        cls, num_states: Ids32, tables: Terms, reals: RealBuckets | None, max_entries: int
    ) -> Relaxation:
        """Mini-buckets of tables, and of the integrals over reals."""
        terms = [tables]
        if reals is not None:
            terms.append(reals.table)
            none = np.zeros(np.count_nonzero(reals.split))
            at = Parts(none, none, none, none, none, reals.boxes.start)
            reals.table.theta[:] = reals.tables(*_of_reals(reals, at)[0])[0]
        return cls(split_tables(num_states, terms, max_entries), reals, len(tables))

    @property
    def is_exact(self) -> bool:
        """True if nothing had to be split."""
        reals = self.reals
        return not len(self.buckets.split) and (
            reals is None or not (reals.split.any() or len(reals.boxes))
        )

    def start(self) -> FloatArray:
        """No costs, and equal weights."""
        place = np.zeros(int(np.sum(self._sizes())))
        if self.reals is not None:
            place[len(place) - len(self.reals.boxes) :] = self.reals.boxes.start
        return place

    def _sizes(self) -> list[int]:
        own = [int(self.buckets.cost_ptr[-1]), len(self.buckets.split)]
        if self.reals is None:
            return [*own, 0, 0, 0, 0]
        return [*own, *[int(np.count_nonzero(self.reals.split))] * 3, len(self.reals.boxes)]

    def _parts(self, place: FloatArray) -> Parts:
        return Parts(*np.split(place, np.cumsum(self._sizes())[:-1]))

    def bound(self, place: FloatArray) -> tuple[float, FloatArray]:
        """The bound, and its messages."""
        at = self._parts(place)
        self.buckets.costs[:] = _without_mean(at.costs, self.buckets.mean)
        constant = 0.0
        if self.reals is not None:
            costs, of_boxes = _of_reals(self.reals, at)
            entries, constant, self.gains, self.rounding = self.reals.tables(*costs)
            constant += of_boxes
            values = self.buckets.plan.layout.values
            end = len(values) - len(at.costs)
            values[end - len(entries) : end] = entries
        messages, bound = self.buckets.bound(self._weights(at))
        return bound + constant, messages

    def slope(self, place: FloatArray, messages: FloatArray) -> FloatArray:
        """The slope at the place that `bound` was last computed for, with its messages."""
        at = self._parts(place)
        of_tables = np.arange(self.num_fixed, self.buckets.num_factors)
        beliefs, entropy, joints = self.buckets.beliefs(self._weights(at), messages, of_tables)
        of_logs = _of_logs(at.logs, self.buckets.owner, entropy[self.buckets.split])
        found = [_without_mean(beliefs, self.buckets.mean), of_logs]
        if self.reals is not None:
            (_, _, weight), _ = _of_reals(self.reals, at)
            found += _slopes_of_reals(self.reals, at, weight, self.gains, joints)
        return np.concatenate(found)

    def matching(self, place: FloatArray) -> FloatArray:
        """A direction that brings the replicas of a variable closer to each other.

        Towards the geometric mean g of their beliefs b_r: w_r (log g - log b_r). The bound falls
        along it at a rate of Σ_r w_r KL(b_r | g).
        """
        _, messages = self.bound(place)
        at, none = self._parts(place), np.zeros(0, dtype=np.int64)
        beliefs, _, _ = self.buckets.beliefs(self._weights(at), messages, none)
        logs = np.log(np.maximum(beliefs, LEAST_PROBABILITY))
        weights = _weights(at.logs, self.buckets.owner)
        weights = np.repeat(weights, np.diff(self.buckets.cost_ptr))
        mean = np.bincount(self.buckets.mean, weights * logs)[self.buckets.mean]
        direction = np.zeros_like(place)
        direction[: len(logs)] = weights * (mean - logs)
        return direction

    def _weights(self, at: Parts) -> FloatArray:
        """(mini-bucket,): weights."""
        found = np.ones(len(self.buckets.plan.layout.clique))
        found[self.buckets.split] = _weights(at.logs, self.buckets.owner)
        return found


def _of_reals(
    reals: RealBuckets, at: Parts
) -> tuple[tuple[FloatArray, FloatArray, FloatArray], float]:
    """(mini-bucket,): curvatures and slopes to add, and weights; and a constant."""
    some, owner, scale = reals.split, reals.owner, reals.scale[reals.split]
    size = int(reals.variable.max()) + 1
    boxes = reals.boxes.costs(at.boxes, size)
    curvature, slope = (part[reals.variable] / reals.count for part in boxes[:2])
    curvature[some] += scale * _without_mean(at.curvatures, owner)
    slope[some] += np.sqrt(scale) * _without_mean(at.slopes, owner)
    weight = np.ones(len(some))
    weight[some] = _weights(at.real_logs, owner)
    return (curvature, slope, weight), boxes[2]


def _slopes_of_reals(
    reals: RealBuckets, at: Parts, weight: FloatArray, gains: FloatArray, joints: FloatArray
) -> list[FloatArray]:
    """The slopes in the parts that concern reals; joints: probabilities of their tables."""
    some, owner, scale = reals.split, reals.owner, reals.scale[reals.split]
    curvature, slope, entropy = reals.slopes(weight, gains, joints)
    by_real = np.zeros((2, int(reals.variable.max()) + 1))
    for total, part in zip(by_real, (curvature, slope), strict=True):
        np.add.at(total, reals.variable, part / reals.count)
    return [
        _without_mean(scale * curvature[some], owner),
        _without_mean(np.sqrt(scale) * slope[some], owner),
        _of_logs(at.real_logs, owner, entropy[some]),
        reals.boxes.slopes(at.boxes, by_real),
    ]


def _weights(logs: FloatArray, owner: Ids) -> FloatArray:
    """(replica,): positive, with sum 1 for each owner; logs: (replica,), up to a constant."""
    top = np.full(int(owner.max(initial=-1)) + 1, -np.inf)
    np.maximum.at(top, owner, logs)
    raw = np.maximum(np.exp(logs - top[owner]), LEAST_WEIGHT)
    return np.asarray(raw / np.bincount(owner, raw)[owner])


def _of_logs(logs: FloatArray, owner: Ids, entropy: FloatArray) -> FloatArray:
    """(replica,): slopes in logs of weights, given those in weights."""
    weights = _weights(logs, owner)
    return np.asarray(weights * (entropy - np.bincount(owner, weights * entropy)[owner]))


def _without_mean(values: FloatArray, owner: Ids) -> FloatArray:
    """Values less their mean over all with the same owner."""
    return np.asarray(values - (np.bincount(owner, values) / np.bincount(owner))[owner])


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
    whole: NDArray[np.int64] = field(init=False)
    """(place,): all are in one part."""

    def __post_init__(self) -> None:
        self.point = self._at(self.relaxation.start())
        self.memory = Curvature.none(self.point.slope[:, None])
        self.whole = np.zeros(len(self.point.slope), dtype=np.int64)

    @property
    def bound(self) -> float:
        """On log Z, the lowest so far."""
        return self.point.bound + self.constant

    def step(self) -> StepInfo:
        before = self.point
        if not self.max_steps or not len(before.place):
            return StepInfo(-self.bound, "bounding", 1.0, "converged")
        first = None if self.taken else self.relaxation.matching(before.place)
        after = self._searched(self._direction() if first is None else first)
        if after is None and (self.memory.count[0] or first is not None):
            self.memory = Curvature.none(before.slope[:, None])
            after = self._searched(self._direction())
        if after is not None:
            step, change = after.place - before.place, after.slope - before.slope
            self.memory = self.memory.remember(step[:, None], change[:, None], self.whole)
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
        slope = self.point.slope[:, None]
        return self.memory.direction(slope, np.ones_like(slope), self.whole)[:, 0]

    def _searched(self, direction: FloatArray) -> Point | None:
        """The point after a step along a direction, shorter until the bound falls enough."""
        fall = float(self.point.slope @ direction)
        if not fall < 0:
            return None
        length = 1.0 if self.memory.count[0] else min(1.0, 1 / float(np.abs(direction).max()))
        for _ in range(MOST_TRIES):
            place = self.point.place + length * direction
            bound, messages = self.relaxation.bound(place)
            if bound <= self.point.bound + SUFFICIENT * length * fall:
                return self._at(place, (bound, messages))
            length *= 0.4
        return None

    def arrays(self) -> State:
        return {
            "place": self.point.place,
            "taken": count(self.taken, self.max_steps),
            "calm": count(self.calm),
            **self.memory.arrays(),
        }

    def restore(self, arrays: Arrays) -> None:
        own = checked(self.arrays(), arrays)
        self.taken, self.calm = int(own["taken"]), int(own["calm"])
        self.point, self.memory = self._at(own["place"]), self.memory.restored(own)
