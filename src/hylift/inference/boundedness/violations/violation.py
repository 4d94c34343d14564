"""States in which nothing holds some reals, found and told."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hylift.graph import Variables
from hylift.inference.boundedness.terms import Terms
from hylift.potentials.base import FloatArray
from hylift.words import listed

MAX_NAMED = 6
"""Reals and states that are named in a sentence."""


@dataclass(frozen=True, slots=True)
class Violation:
    """A direction in which log p does not fall like a square in some states."""

    reals: tuple[tuple[str, float], ...]
    """Names, and how far each moves."""
    states: tuple[tuple[str, str], ...]
    """Names of discrete variables, and their states; whatever else there is plays no part."""
    curvature: float
    """The coefficient of -½ t² along the direction: zero, or less where log p grows."""

    @classmethod
    def of(
        cls,
        variables: Variables,
        direction: Mapping[int, float],
        states: Mapping[int, int],
        curvature: float,
    ) -> Violation:
        """From ids of variables to how far they move, and to states."""
        names = variables.names.render(np.array([*direction, *states], dtype=np.int64)).to_pylist()
        labels = (_label(variables.domain(i).states, state) for i, state in states.items())
        return cls(
            tuple(zip(names[: len(direction)], direction.values(), strict=True)),
            tuple(zip(names[len(direction) :], labels, strict=True)),
            curvature,
        )

    @property
    def what(self) -> str:
        """The reals in words."""
        names = [name for name, _ in self.reals]
        return _some(names) + (" together" if len(names) > 1 else "")

    @property
    def where(self) -> str:
        """The states in words; empty if there are none."""
        return _some([f"{name} is {state}" for name, state in self.states])

    def __str__(self) -> str:
        held = f"nothing holds {self.what}"
        text = held if self.curvature == 0 else f"the rules push {self.what} outwards"
        return f"{text} where {self.where}" if self.states else text

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "direction": dict(self.reals),
            "states": dict(self.states),
            "curvature": self.curvature,
        }


def _label(states: tuple[str, ...] | None, state: int) -> str:
    assert states is not None  # of a discrete variable
    return states[state]


def _some(words: Sequence[str]) -> str:
    if len(words) <= MAX_NAMED:
        return listed(words) if words else ""
    return f"{', '.join(words[:MAX_NAMED])} and {len(words) - MAX_NAMED} more"


@dataclass(frozen=True, slots=True, eq=False)
class Scores:
    """Numbers for each joint state of some factors' discrete slots, to be made small in sum."""

    value: FloatArray  # (factor, state)
    sizes: tuple[int, ...]
    discrete: NDArray[np.int64]  # (factor, discrete slot): variable ids

    def at(self, states: NDArray[np.int64]) -> FloatArray:
        """(factor,): the numbers where variables have these states, (variable,)."""
        return self.value[np.arange(len(self.value)), joint_state(self, states)]


def joint_state(factors: Scores | Terms, states: NDArray[np.int64]) -> NDArray[np.int64]:
    """(factor,): the joint state that each factor is in; states: (variable,)."""
    joint = np.zeros(len(factors.discrete), dtype=np.int64)
    for slot, size in enumerate(factors.sizes):
        joint = joint * size + states[factors.discrete[:, slot]]
    return joint


def least_states(
    scores: Sequence[Scores], num_states: NDArray[np.int32], max_sweeps: int = 4
) -> NDArray[np.int64]:
    """(variable,): states with a small sum of scores, each variable the best given the others.

    They start where each factor by itself would have them.
    """
    involved = np.unique([i for s in scores for i in np.unique(s.discrete)]).astype(np.int64)
    states = np.zeros(len(num_states), dtype=np.int64)
    if not len(involved):
        return states
    local = np.zeros(len(num_states), dtype=np.int64)
    local[involved] = np.arange(len(involved))
    wishes = np.full((len(involved), int(num_states[involved].max())), np.inf)
    wishes[np.arange(wishes.shape[1]) < num_states[involved][:, None]] = 0.0
    for score in scores:
        grid = score.value.reshape(len(score.value), *score.sizes)
        for slot in range(len(score.sizes)):
            others = tuple(axis + 1 for axis in range(len(score.sizes)) if axis != slot)
            best = grid.min(axis=others)
            np.add.at(wishes[:, : best.shape[1]], local[score.discrete[:, slot]], best)
    states[involved] = np.argmin(wishes, axis=1)
    if len(involved) <= MAX_SWEPT:
        for _ in range(max_sweeps):
            before = states.copy()
            for variable in involved.tolist():
                _improve(scores, states, variable, int(num_states[variable]))
            if np.array_equal(before, states):
                break
    return states


MAX_SWEPT = 300
"""Variables whose states are improved one by one."""


def _improve(
    scores: Sequence[Scores], states: NDArray[np.int64], variable: int, num_states: int
) -> None:
    """Gives a variable the state with the least sum of scores."""
    near = [Scores(s.value[at], s.sizes, s.discrete[at]) for s in scores
            if (at := (s.discrete == variable).any(axis=1)).any()]  # fmt: skip
    sums = []
    now = int(states[variable])
    for state in range(num_states):
        states[variable] = state
        sums.append(sum(float(s.at(states).sum()) for s in near))
    best = int(np.argmin(sums))
    states[variable] = best if sums[best] < sums[now] else now


def deciding(scores: Sequence[Scores], states: NDArray[np.int64]) -> dict[int, int]:
    """The discrete variables that make a difference to the scores, with their states."""
    found: dict[int, int] = {}
    for score in scores:
        grid = score.value.reshape(len(score.value), *score.sizes)
        for slot in range(len(score.sizes)):
            along = np.moveaxis(grid, 1 + slot, 1)
            varies = (along != along[:, :1]).reshape(len(grid), -1).any(axis=1)
            ids = score.discrete[varies, slot]
            found.update(zip(ids.tolist(), states[ids].tolist(), strict=True))
    return dict(sorted(found.items()))
