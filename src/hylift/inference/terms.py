"""The factors of a graph laid out flat, as kernels read them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hylift.graph import FactorGraph, FactorGroup
from hylift.numerics.kernels.grouping import group_pairs
from hylift.potentials import REAL, Table

FloatArray = NDArray[np.float64]

MOST_STATES = 2**12
"""Joint states of a function's discrete slots up to which it is made a table."""


@dataclass(frozen=True, slots=True, eq=False)
class Terms:
    """Tables and conditional quadratics in one layout.

    A table is a quadratic without reals. Term t has the slots slot_ptr[t] to slot_ptr[t + 1], the
    discrete ones first; its parameters start at theta[base[t]]: A of all joint states, then b,
    then c.
    """

    slot_ptr: NDArray[np.int64]  # (term + 1,)
    slots: NDArray[np.int32]  # (slot,): variables
    num_discrete: NDArray[np.int32]  # (term,)
    base: NDArray[np.int64]  # (term,)
    multiplicity: FloatArray  # (term,)
    theta: FloatArray  # (parameter,); -inf marks what is impossible

    @classmethod
    def of(cls, groups: Sequence[FactorGroup]) -> Terms:
        arity = np.repeat([g.arity for g in groups], [len(g) for g in groups])
        discrete = [sum(states != REAL for states in g.potential.slot_states) for g in groups]
        start, base, theta = 0, [], []
        for group in groups:
            flat = group.potential.flat
            base.append(start + group.row.astype(np.int64) * flat.shape[1])
            theta.append(flat.ravel())
            start += flat.size
        return cls(
            np.concatenate([[0], np.cumsum(arity, dtype=np.int64)]),
            _joined((g.scope.ravel() for g in groups), np.int32),
            np.repeat(np.array(discrete, dtype=np.int32), [len(g) for g in groups]),
            _joined(base, np.int64),
            _joined((g.multiplicity for g in groups), np.float64),
            _joined(theta, np.float64),
        )

    def __len__(self) -> int:
        return len(self.base)

    @property
    def has_hard(self) -> bool:
        """Whether something is impossible."""
        return bool(np.isneginf(self.theta).any())


def tabulated(group: FactorGroup, num_states: NDArray[np.int32]) -> list[FactorGroup]:
    """Functions of discrete slots as tables, a group for each number of states; others as they
    are, where there are reals or too many states."""
    if not group.arity or REAL in group.potential.slot_states:
        return [group]
    sizes, which = np.unique(num_states[group.scope], axis=0, return_inverse=True)
    if np.prod(sizes, axis=1, dtype=np.float64).max() > MOST_STATES:
        return [group]
    found = []
    for number, states in enumerate(sizes):
        some = group.take(np.flatnonzero(which.reshape(-1) == number))
        rows, row = np.unique(some.row, return_inverse=True)
        grid = np.ix_(rows, *(np.arange(size) for size in states))
        table = Table(group.potential.log_value(grid[0], list(grid[1:])))
        found.append(
            FactorGroup.unchecked(
                table, some.scope, row.astype(np.int32), some.multiplicity, some.label
            )
        )
    return found


def same_slots(scope: NDArray[np.int32]) -> tuple[NDArray[np.int32], int]:
    """(factor,): dense numbers, equal for equal rows of a scope (factor, slot); and their count."""
    alike, count = np.zeros(len(scope), dtype=np.int32), min(len(scope), 1)
    for column in scope.T:
        alike, count = group_pairs(alike, column.astype(np.uint64))
    return alike, count


def has_repeats(graph: FactorGraph) -> bool:
    """Whether several factors have the same variables, two or more of them."""
    if any(group.arity > 1 and (group.multiplicity > 1).any() for group in graph.groups):
        return True
    by_arity: dict[int, list[NDArray[np.int32]]] = {}
    for group in graph.groups:
        if group.arity > 1:
            by_arity.setdefault(group.arity, []).append(np.sort(group.scope, axis=1))
    scopes = (np.concatenate(parts) for parts in by_arity.values())
    return any(same_slots(scope)[1] < len(scope) for scope in scopes)


def _joined(parts: Iterable[NDArray[Any]], dtype: Any) -> NDArray[Any]:
    """The parts one behind the other; of no parts an empty array."""
    return np.concatenate([np.zeros(0, dtype=dtype), *parts])
