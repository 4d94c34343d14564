"""Products of potentials of any class, as one potential."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hylift.potentials.base import FloatArray, IntArray, Potential, checked_flat


@dataclass(frozen=True, slots=True, eq=False)
class Product(Potential):
    """Potentials of slots of one scope, each to a power."""

    factors: tuple[Potential, ...]
    """With a row for each row of this one."""
    slots: tuple[tuple[int, ...], ...]
    """Of each factor: its slots among those of this one."""
    states: tuple[int, ...]
    power: FloatArray  # (row, factor)

    @property
    def slot_states(self) -> tuple[int, ...]:
        return self.states

    @property
    def signature(self) -> tuple[Any, ...]:
        kinds = tuple(factor.signature for factor in self.factors)
        return ("product", kinds, self.slots, self.states)

    @property
    def flat(self) -> FloatArray:
        return np.concatenate([*(factor.flat for factor in self.factors), self.power], axis=1)

    def with_flat(self, flat: FloatArray) -> Product:
        ends = np.cumsum([factor.flat.shape[1] for factor in self.factors])
        *parts, power = np.split(checked_flat(flat, ends[-1] + len(ends)), ends, axis=1)
        factors = (f.with_flat(part) for f, part in zip(self.factors, parts, strict=True))
        return Product(tuple(factors), self.slots, self.states, power)

    def log_value(self, row: IntArray, slots: Sequence[NDArray[Any]]) -> FloatArray:
        total = np.zeros(np.broadcast_shapes(np.shape(row), *(np.shape(slot) for slot in slots)))
        for number, (factor, own) in enumerate(zip(self.factors, self.slots, strict=True)):
            values = factor.log_value(row, [slots[slot] for slot in own])
            power = self.power[row, number]
            total += np.where(np.isneginf(values), values, values * power)
        return total
