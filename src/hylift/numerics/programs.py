"""Expressions that compiled code evaluates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hylift.numerics.kernels.programs import COLUMN, LOG_SIGMOID, NORMAL, NUMBER, SLOT

Source = tuple[int, int]
"""SLOT or COLUMN, and which."""


@dataclass(frozen=True, slots=True, eq=False)
class Program:
    """Steps on a stack, of which one value is left: see `numerics.kernels.programs`."""

    steps: NDArray[np.int64]  # (step, 2): the operation, and a slot, column or number
    numbers: NDArray[np.float64]

    @classmethod
    def of(cls, steps: list[tuple[int, float]]) -> Program:
        """Operations, each with its slot, column or number, or 0."""
        ops = np.array([op for op, _ in steps], dtype=np.int64)
        given = np.array([value for _, value in steps], dtype=np.float64)
        place = np.where(ops <= COLUMN, given, np.arange(len(ops))).astype(np.int64)
        return cls(np.stack([ops, place], axis=1), given)

    def with_sources(self, sources: Mapping[Source, Source]) -> Program:
        """The program with values from other slots and columns."""
        steps = [sources.get((op, k), (op, k)) for op, k in self.steps.tolist()]
        return Program(np.array(steps, dtype=np.int64).reshape(-1, 2), self.numbers)

    @property
    def depth(self) -> int:
        """Rows of the stack."""
        ops = self.steps[:, 0]
        change = np.where(ops <= NUMBER, 1, np.where(ops <= LOG_SIGMOID, 0, -1))
        change[ops == NORMAL] = -2
        return int(np.cumsum(change).max(initial=0))


__all__ = ["COLUMN", "SLOT", "Program", "Source"]
