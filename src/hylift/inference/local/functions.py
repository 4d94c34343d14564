"""The functions of a graph as single variables or blocks of them see them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hylift.graph import FactorGroup
from hylift.inference.local.terms import LocalTerms
from hylift.numerics.kernels.programs import BATCH, add_by_block
from hylift.numerics.programs import Program
from hylift.numerics.segments import offsets
from hylift.numerics.threads import cut, in_order

FloatArray = NDArray[np.float64]
Ids = NDArray[np.int64]

PER_STEP = 4
"""Work of a step of a program, about in nanoseconds."""


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """Functions of blocks, no factor with variables of two of them, in the order of the blocks."""

    group: FactorGroup
    owner: Ids  # (factor,): its block
    ptr: Ids  # (block + 1,)
    program: Program | None
    parameters: FloatArray

    @classmethod
    def each(cls, functions: Sequence[FactorGroup], block: Ids) -> list[Part]:
        """The functions that have a variable in a block; block: (variable,), or -1."""
        found, edges = [], np.arange(int(block.max(initial=-1)) + 2)
        for group in functions:
            owner = block[group.scope].max(axis=1)
            some = np.flatnonzero(owner >= 0)
            some = some[np.argsort(owner[some], kind="stable")]
            if len(some):
                ptr = np.searchsorted(owner[some], edges)
                potential = group.potential
                program, flat = potential.program(), np.ascontiguousarray(potential.flat)
                found.append(cls(group.take(some), owner[some], ptr, program, flat))
        return found

    def sums(self, x: FloatArray, active: NDArray[np.bool_], *, breaks: bool) -> FloatArray:
        """(chain, block): sums of the functions of those blocks that are active, and else 0; x:
        (chain, variable). If `breaks`, a function counts as -1 where it is -inf, and else as 0."""
        total, program, group = np.zeros(active.shape), self.program, self.group
        if program is not None:
            arrays = group.scope, group.row, group.multiplicity, self.parameters

            def run(first: int, last: int) -> bool:
                stack, batch = np.empty((program.depth, BATCH)), np.empty((2, BATCH), np.int64)
                return bool(
                    add_by_block(
                        (program.steps, program.numbers), stack, batch, arrays, x, active,
                        self.ptr, first, last, breaks, total,
                    )
                )  # fmt: skip

            count = active @ np.diff(self.ptr)
            work = PER_STEP * len(program.steps)
            if all(list(in_order(run, cut(offsets(count), work)))):
                return total
            total[:] = 0.0
        chain, factor = np.nonzero(active[:, self.owner])
        slots = [x[chain, group.scope[factor, slot]] for slot in range(group.arity)]
        values = self.values(factor, slots, breaks=breaks)
        np.add.at(total, (chain, self.owner[factor]), values)
        return total

    def values(self, factor: Ids, slots: list[NDArray[Any]], *, breaks: bool) -> FloatArray:
        """Log-values of some factors, as they count."""
        values = self.group.potential.log_value(self.group.row[factor], slots)
        if breaks:
            return np.where(np.isneginf(values), -1.0, 0.0)
        return values * self.group.multiplicity[factor]


def colors(
    groups: list[FactorGroup], terms: LocalTerms, block: NDArray[np.int64] | None = None
) -> NDArray[np.int64]:
    """(variable,): which set of variables it moves with; -1 if it stands in no function.

    Each set is as large as can be, without two variables that share a function or a term, unless
    they are of one block: (variable,), the least of its block.
    """
    is_left = terms.variable["movable"] == 0
    block = np.arange(len(is_left)) if block is None else block
    term = terms.entry_term()
    slots, scope, count = [terms.entry["variable"]], [term], len(terms.term)
    for group in groups:
        slots.append(group.scope.ravel())
        scope.append(count + np.repeat(np.arange(len(group)), group.arity))
        count += len(group)
    variable, of_scope = np.concatenate(slots), np.concatenate(scope)
    inside = is_left[variable]
    variable, of_scope = block[variable[inside]], of_scope[inside]
    is_left &= block == np.arange(len(block))
    # Scattered, so that few rounds are enough where neighbours have successive numbers.
    rank = 2**32 - np.arange(len(is_left)) * 0x9E3779B1 % 2**32
    color, number = np.full(len(is_left), -1), 0
    while is_left.any():
        is_open = is_left.copy()
        while is_open.any():  # those that come first in all their scopes, in parallel
            order, first = np.where(is_open, rank, 0), np.zeros(count, dtype=np.int64)
            np.maximum.at(first, of_scope, order[variable])
            chosen = is_open.copy()
            chosen[variable[order[variable] < first[of_scope]]] = False
            color[chosen] = number
            is_taken = np.zeros(count, dtype=bool)
            is_taken[of_scope[chosen[variable]]] = True
            is_open[variable[is_taken[of_scope]]] = False
        is_left &= color < 0
        number += 1
    return color[block]
