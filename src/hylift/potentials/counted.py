"""Potentials of how many of their slots are in certain states."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hylift.errors import ModelError
from hylift.potentials.base import (
    ExpectedLogValue,
    FloatArray,
    IntArray,
    Potential,
    checked_flat,
    frozen_floats,
)
from hylift.potentials.table import Table


@dataclass(frozen=True, slots=True, eq=False)
class Counted(Potential):
    """A table of a count, and of further discrete slots: for many more slots than a table has."""

    log_table: FloatArray  # (row, count, states of the other slots, …)
    states: tuple[int, ...]
    """Per slot."""
    counted: tuple[int, ...]
    """The slots that are counted, increasing; the others are the last axes of the table."""
    truth: tuple[tuple[bool, ...], ...]
    """Per counted slot and state: whether it counts."""

    def __post_init__(self) -> None:
        table = frozen_floats(self.log_table, "a table of counts", allow_minus_inf=True)
        wanted = (len(self.counted) + 1, *(self.states[slot] for slot in self.others))
        if table.shape[1:] != wanted:
            raise ModelError(f"a table of counts has the shape {table.shape[1:]}, not {wanted}")
        object.__setattr__(self, "log_table", table)

    @property
    def others(self) -> tuple[int, ...]:
        counted = frozenset(self.counted)
        return tuple(slot for slot in range(len(self.states)) if slot not in counted)

    @property
    def slot_states(self) -> tuple[int, ...]:
        return self.states

    @property
    def signature(self) -> tuple[Any, ...]:
        return ("counted", self.states, self.counted, self.truth)

    @property
    def flat(self) -> FloatArray:
        return self.log_table.reshape(len(self.log_table), -1)

    @property
    def num_rows(self) -> int:
        return len(self.log_table)

    def with_flat(self, flat: FloatArray) -> Counted:
        shape = self.log_table.shape[1:]
        flat = checked_flat(flat, int(np.prod(shape)))
        return replace(self, log_table=flat.reshape(len(flat), *shape))

    @property
    def constants(self) -> slice | None:
        return slice(None)

    def exchange(self, first: int, second: int) -> NDArray[np.intp] | None:
        truth = dict(zip(self.counted, self.truth, strict=True))
        if first != second and (first not in truth or truth[first] != truth.get(second)):
            return None
        return np.arange(self.flat.shape[1])

    def log_value(self, row: IntArray, slots: Sequence[NDArray[Any]]) -> FloatArray:
        total: NDArray[np.int64] = np.zeros((), dtype=np.int64)
        for slot, truth in zip(self.counted, self.truth, strict=True):
            total = total + np.asarray(truth)[np.asarray(slots[slot], dtype=np.int64)]
        others = (np.asarray(slots[slot], dtype=np.int64) for slot in self.others)
        return np.asarray(self.log_table[(row, total, *others)])

    def expected(self, row: IntArray, slots: Sequence[FloatArray]) -> ExpectedLogValue | None:
        """By the distribution of the count, from one slot to the next."""
        if np.isneginf(self.log_table).any():
            return None
        table = self.log_table[row]
        gradients: dict[int, FloatArray] = {}
        share = [np.asarray(slots[slot]) for slot in self.counted]
        true = [p @ np.asarray(t, float) for p, t in zip(share, self.truth, strict=True)]
        before = [np.eye(len(true) + 1)[np.zeros(len(row), dtype=np.int64)]]
        for p in true:  # (factor, count): of the slots so far
            last = before[-1]
            up = np.concatenate([np.zeros_like(last[:, :1]), last[:, :-1]], axis=1)
            before.append(last * (1 - p)[:, None] + up * p[:, None])
        letters = "abcdefghijklmnopqrstuvwxyz"[2 : 2 + len(self.others)]
        for place, slot in enumerate(self.others):
            rest = [o for at, o in enumerate(self.others) if at != place]
            names = [name for at, name in enumerate(letters) if at != place]
            terms = ",".join(["a" + name for name in names])
            spec = f"ab{letters},ab{',' * bool(terms)}{terms}->a{letters[place]}"
            gradients[slot] = np.einsum(spec, table, before[-1], *(slots[o] for o in rest))
        spec = ",".join(["ab" + letters, *("a" + name for name in letters)]) + "->ab"
        after = np.einsum(spec, table, *(slots[slot] for slot in self.others))
        value = (after * before[-1]).sum(axis=1)
        for place in reversed(range(len(true))):  # after: (factor, count), of those up to a slot
            up = np.concatenate([after[:, 1:], after[:, -1:]], axis=1)
            one, none = (before[place] * up).sum(axis=1), (before[place] * after).sum(axis=1)
            truth = np.asarray(self.truth[place])
            gradients[self.counted[place]] = np.where(truth, one[:, None], none[:, None])
            after = after * (1 - true[place])[:, None] + up * true[place][:, None]
        return ExpectedLogValue(value, [gradients[slot] for slot in range(len(self.states))])

    def reduce(
        self, row: IntArray, slots: tuple[int, ...], values: FloatArray
    ) -> tuple[Potential, IntArray]:
        """The counted potential of the other slots: known ones shift its counts."""
        known = values.astype(np.int64)
        truth = dict(zip(self.counted, map(np.asarray, self.truth), strict=True))
        shift = np.zeros(len(row), dtype=np.int64)
        fixed: dict[int, NDArray[np.int64]] = {}
        for place, slot in enumerate(slots):
            if slot in truth:
                shift += truth[slot][known[:, place]]
            else:
                fixed[self.others.index(slot)] = known[:, place]
        free = [slot for slot in self.counted if slot not in slots]
        keys = np.stack([np.asarray(row), shift, *fixed.values()], axis=1)
        distinct, which = np.unique(keys, axis=0, return_inverse=True)
        table = np.moveaxis(self.log_table, [2 + at for at in fixed], range(2, 2 + len(fixed)))
        counts = distinct[:, 1:2] + np.arange(len(free) + 1)
        found = table[(distinct[:, :1], counts, *(column[:, None] for column in distinct.T[2:]))]
        new_row = which.reshape(-1).astype(np.int32)
        if not free:
            return Table(found[:, 0]), new_row
        left = [slot for slot in range(len(self.states)) if slot not in slots]
        return Counted(
            found,
            tuple(self.states[slot] for slot in left),
            tuple(left.index(slot) for slot in free),
            tuple(of for slot, of in zip(self.counted, self.truth, strict=True) if slot in free),
        ), new_row
