"""The factors of a graph laid out flat, as kernels read them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hylift.graph import FactorGraph, FactorGroup
from hylift.numerics.grouping import group_rows
from hylift.numerics.segments import offsets, ranges, strides

FloatArray = NDArray[np.float64]
Ids = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Terms:
    """Factors with their parameters in one flat layout, which all kernels read.

    A table is a quadratic without reals. Term t has the slots slot_ptr[t] to slot_ptr[t + 1], the
    discrete ones first; its parameters start at theta[base[t]]: A of all joint states, then b,
    then c. Functions have their rows there, which only they can read.
    """

    num_states: NDArray[np.int32]  # (variable,): 0 for a real
    slot_ptr: Ids  # (term + 1,)
    slots: NDArray[np.int32]  # (slot,): variables
    num_discrete: NDArray[np.int32]  # (term,)
    base: Ids  # (term,)
    multiplicity: FloatArray  # (term,)
    theta: FloatArray  # (parameter,); -inf marks what is impossible

    @classmethod
    def of(cls, groups: Sequence[FactorGroup], num_states: NDArray[np.int32]) -> Terms:
        """The factors of these groups, in their order."""
        sizes = [len(group) for group in groups]
        arity = np.repeat([group.scope.shape[1] for group in groups], sizes)
        num_discrete = [group.potential.num_discrete_slots for group in groups]
        start, base, theta = 0, [], []
        for group in groups:
            flat = group.potential.flat
            base.append(start + group.row.astype(np.int64) * flat.shape[1])
            theta.append(flat.ravel())
            start += flat.size
        return cls(
            num_states,
            offsets(arity),
            _joined((group.scope.ravel() for group in groups), np.int32),
            np.repeat(np.array(num_discrete, dtype=np.int32), sizes),
            _joined(base, np.int64),
            _joined((group.multiplicity for group in groups), np.float64),
            _joined(theta, np.float64),
        )

    def __len__(self) -> int:
        return len(self.base)

    def take(self, terms: Ids) -> Terms:
        """Some of the terms, with the same parameters."""
        arity = np.diff(self.slot_ptr)[terms]
        slots = self.slots[ranges(self.slot_ptr[terms], arity)]
        chosen = (self.num_discrete[terms], self.base[terms], self.multiplicity[terms])
        return Terms(self.num_states, offsets(arity), slots, *chosen, self.theta)

    @property
    def arrays(self) -> tuple[NDArray[Any], ...]:
        """Slots, then parameters, as kernels take them."""
        slots = (self.slot_ptr, self.slots, self.num_discrete, self.num_joint)
        return *slots, self.base, self.multiplicity, self.theta

    @property
    def num_reals(self) -> Ids:
        """(term,): real slots."""
        return self.slot_ptr[1:] - self.slot_ptr[:-1] - self.num_discrete

    @property
    def has_hard(self) -> bool:
        """True if something is impossible."""
        return bool(np.isneginf(self.theta).any())

    @cached_property
    def term(self) -> NDArray[np.int32]:
        """(slot,): its term."""
        return np.repeat(np.arange(len(self), dtype=np.int32), np.diff(self.slot_ptr))

    @cached_property
    def stride(self) -> Ids:
        """(slot,): distance between two states of a slot among the joint states; 0 for a real."""
        states = self.num_states[self.slots]
        stride = strides(np.maximum(states, 1), self.slot_ptr)
        return np.where(states > 0, stride, 0)

    @cached_property
    def num_joint(self) -> Ids:
        """(term,): joint states of its discrete slots."""
        num_joint = np.ones(len(self), dtype=np.int64)
        some = np.flatnonzero(self.num_discrete)
        first = self.slot_ptr[some]
        num_joint[some] = self.stride[first] * self.num_states[self.slots[first]]
        return num_joint

    @cached_property
    def incidence(self) -> Incidence:
        """The slots of each variable."""
        counts = np.bincount(self.slots, minlength=len(self.num_states))
        return Incidence(offsets(counts), np.argsort(self.slots, kind="stable"))


def joined(*parts: Terms) -> Terms:
    """The terms of all parts, which have the same variables, in order."""
    start = offsets([len(each.theta) for each in parts])
    return Terms(
        parts[0].num_states,
        offsets(np.concatenate([np.diff(each.slot_ptr) for each in parts])),
        np.concatenate([each.slots for each in parts]),
        np.concatenate([each.num_discrete for each in parts]),
        np.concatenate([e.base + at for e, at in zip(parts, start, strict=False)]),
        np.concatenate([each.multiplicity for each in parts]),
        np.concatenate([each.theta for each in parts]),
    )


class Incidence(NamedTuple):
    """Variable v stands in slot[ptr[v]] to slot[ptr[v + 1]], which increase."""

    ptr: Ids  # (variable + 1,)
    slot: Ids


def has_repeats(graph: FactorGraph) -> bool:
    """Return True if several factors have the same variables, two or more of them."""
    if any(group.arity > 1 and (group.multiplicity > 1).any() for group in graph.groups):
        return True
    by_arity: dict[int, list[NDArray[np.int32]]] = {}
    for group in graph.groups:
        if group.arity > 1:
            by_arity.setdefault(group.arity, []).append(np.sort(group.scope, axis=1))
    scopes = (np.concatenate(parts) for parts in by_arity.values())
    return any(group_rows(scope)[1] < len(scope) for scope in scopes)


def _joined(parts: Iterable[NDArray[Any]], dtype: Any) -> NDArray[Any]:
    """The parts one behind the other; of no parts an empty array."""
    return np.concatenate([np.zeros(0, dtype=dtype), *parts])
