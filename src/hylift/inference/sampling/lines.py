"""Blocks of variables of functions that move at once: along lines, or by a change of sign."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hylift.archive import Arrays
from hylift.graph import FactorGroup
from hylift.inference.held import WIDEST, Held, State, checked
from hylift.inference.local.functions import Part
from hylift.inference.local.terms import LocalTerms
from hylift.numerics.sparse import connected

FloatArray = NDArray[np.float64]
Ids = NDArray[np.int64]

MOST_LINES, MOST_CORRELATED, LEAST_EXCESS = 8, 256, 1.5
"""Directions of a block in which reals move together, reals of such a block, and variance along a
direction, relative to that of independent reals, from which it is worth a move."""

SEED = 0
"""Of the marks by which variables of the same functions are found."""


@dataclass(frozen=True, slots=True, eq=False)
class Lines:
    """Directions in which reals move by a slice, one in each of several blocks; blocks share no
    factor."""

    variables: Ids
    direction: FloatArray  # (variable,)
    block: Ids  # (variable,)
    parts: list[Part]
    width: FloatArray  # (block,)
    bounds: FloatArray  # (2, variable)

    def arrays(self) -> State:
        """All but what follows from it."""
        return _state(self.variables, self.direction, self.block, self.width)

    def reach(self, origin: FloatArray) -> tuple[FloatArray, FloatArray]:
        """(chain, block): how far each may go from here, down and up, within bounds; origin:
        (chain, variable)."""
        shape = len(origin), len(self.width)
        low, high = np.full(shape, -np.inf), np.full(shape, np.inf)
        still = self.direction == 0.0
        ends = (self.bounds[:, None] - origin) / np.where(still, 1.0, self.direction)
        ends = np.where(still, np.array([-np.inf, np.inf])[:, None, None], ends)
        chain = np.arange(len(origin))[:, None]
        np.maximum.at(low, (chain, self.block), np.minimum(ends.min(axis=0), 0.0))
        np.minimum.at(high, (chain, self.block), np.maximum(ends.max(axis=0), 0.0))
        return low, high


def _state(variables: Ids, direction: FloatArray, block: Ids, width: FloatArray) -> State:
    return {
        "variables": Held(variables, 0, free_axis=0),
        "direction": Held(direction, -WIDEST, WIDEST, free_axis=0),
        "block": Held(block, 0, free_axis=0),
        "width": Held(width, 0.0, WIDEST, free_axis=0),
    }


def stored_lines(stored: Arrays, reals: Ids, label: Ids) -> tuple[Ids, FloatArray, Ids, FloatArray]:
    """Reals, directions, blocks and widths of lines that were stored; raises unless each block has
    reals of one label of its own. reals: increasing; label: (real,)."""
    ids, numbers = np.zeros(0, dtype=np.int64), np.zeros(0)
    own = checked(_state(ids, numbers, ids, numbers), stored)
    some, along, block, width = own.values()
    sizes = {len(some), len(along), len(block)}
    is_real = np.isin(some, reals).all() and len(np.unique(some)) == len(some) > 0
    if len(sizes) > 1 or not is_real:
        raise ValueError("a line has reals that do not exist")
    pairs = np.unique(np.stack([block, label[np.searchsorted(reals, some)]]), axis=1)
    blocks, labels = pairs
    are_apart = len(np.unique(labels)) == len(labels)
    if not np.array_equal(blocks, np.arange(len(width))) or not are_apart:
        raise ValueError("a line has reals that do not move together")
    return some, along, block, width


@dataclass(frozen=True, slots=True, eq=False)
class Mirrors:
    """Blocks of reals that change their signs at once; blocks share no factor.

    Of products of hidden reals, such as slope · (ability - difficulty), functions see no signs, and
    no real alone can leave a mode in which they are wrong.
    """

    variables: Ids
    block: Ids  # (variable,)
    parts: list[Part]

    @classmethod
    def of(cls, functions: Sequence[FactorGroup], variables: Ids, block: Ids, size: int) -> Mirrors:
        """block: (variable of `variables`,)."""
        number = np.full(size, -1)
        number[variables] = np.unique(block, return_inverse=True)[1]
        return cls(variables, number[variables], Part.each(functions, number))


def of_same_functions(functions: Sequence[FactorGroup], variables: Ids, size: int) -> Ids:
    """(variable,): the least of those of `variables` that stand in the same functions; itself for
    others."""
    rng, mark = np.random.default_rng(SEED), np.zeros(size, dtype=np.uint64)
    for group in functions:
        own = rng.integers(2**63, size=len(group)).astype(np.uint64)
        for slot in range(group.arity):
            np.add.at(mark, group.scope[:, slot], own)
    _, first, which = np.unique(mark[variables], return_index=True, return_inverse=True)
    least = np.arange(size)
    least[variables] = variables[first[which.reshape(-1)]]
    return least


def components(
    functions: Sequence[FactorGroup], terms: LocalTerms, given: NDArray[np.bool_]
) -> Ids:
    """(real that is given,): its component, by functions and quadratics."""
    place = np.where(given, np.cumsum(given) - 1, -1)
    pairs = []
    scopes: list[NDArray[np.integer]] = [group.scope for group in functions]
    scopes += [terms.reals(rows) for rows in terms.rows() if rows.num_reals > 1]
    for scope in scopes:
        inside = place[scope]
        first = inside.max(axis=1)
        for slot in range(scope.shape[1]):
            both = np.stack([first, inside[:, slot]], axis=1)
            pairs.append(both[(both >= 0).all(axis=1)])
    return connected(int(given.sum()), np.concatenate(pairs).astype(np.int32)).astype(np.int64)


def correlated_lines(
    values: FloatArray, reals: Ids, label: Ids
) -> Iterator[tuple[Ids, FloatArray, Ids]]:
    """Reals, directions in which they vary together, and their blocks: the first direction of each
    block, the second, … values: (draw, variable); label: (real,), of its block."""
    order = np.argsort(label, kind="stable")
    _, which, counts = np.unique(label, return_inverse=True, return_counts=True)
    sizes = counts[which.reshape(-1)][order]
    found: list[list[tuple[Ids, FloatArray]]] = [[] for _ in range(MOST_LINES)]
    for count in np.unique(sizes[(sizes > 1) & (sizes <= MOST_CORRELATED)]).tolist():
        members = reals[order[sizes == count]].reshape(-1, count)
        for number, directions in enumerate(_correlated(values, members)):
            found[number].append(directions)
    for some in found:
        counts = np.concatenate([np.zeros(0, int), *(np.full(*m.shape) for m, _ in some)])
        block = np.repeat(np.arange(len(counts)), counts.astype(np.int64))
        if len(block):
            members = np.concatenate([members.ravel() for members, _ in some])
            yield members, np.concatenate([along.ravel() for _, along in some]), block


def _correlated(values: FloatArray, members: Ids) -> Iterator[tuple[Ids, FloatArray]]:
    """Reals and directions in which they vary together more than they would alone: the first of
    each component, the second, … members: (component, real)."""
    apart = values[:, members] - values[:, members].mean(axis=0)  # (draw, component, real)
    sd = np.sqrt(np.mean(apart**2, axis=0))
    sd = np.where(sd > 0, sd, 1.0)
    apart = np.moveaxis(apart / sd, 0, 2)
    excess, vectors = np.linalg.eigh(apart @ np.moveaxis(apart, 1, 2) / len(values))
    for number in range(1, min(MOST_LINES, members.shape[1]) + 1):
        some = np.flatnonzero(excess[:, -number] > LEAST_EXCESS)
        along = vectors[some, :, -number] * sd[some]
        yield members[some], along * np.sqrt(excess[some, -number])[:, None]
