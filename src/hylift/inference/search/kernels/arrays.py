"""Arrays that the kernels of local search read and change.

Records keep the arrays few: Numba compiles each call for every array that it hands on.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

MOST_REALS = 8
"""Reals that one move takes along."""

LONGEST = 16
"""Flips that one chain takes together."""

FLAT = 2e-15
"""A curvature of at most this, relative to the sum of the sizes of what is added up in it, is none:
rounding may have made it. Whatever asks whether reals are held asks so."""

TERM = np.dtype(
    [
        ("first", np.int64),  # of its entries: discrete slots first,
        ("middle", np.int64),  # then reals,
        ("last", np.int64),
        ("num_joint", np.int64),  # joint states
        ("base", np.int64),  # where its parameters start in `theta`
        ("multiplicity", np.float64),
        ("pair", np.int64),  # first of its pairs of reals, in the order of `triu_indices`
    ]
)
ENTRY = np.dtype([("variable", np.int32), ("stride", np.int32)])
INCIDENCE = np.dtype([("term", np.int32), ("stride", np.int32)])
LINK = np.dtype([("other", np.int32), ("pair", np.int32)])
VARIABLE = np.dtype(
    [
        ("num_states", np.int64),  # 0 for a real
        ("lower", np.float64),
        ("upper", np.float64),
        ("movable", np.int64),
        ("first", np.int64),  # of its incidences: those with tables,
        ("split", np.int64),  # then those with quadratics
        ("last", np.int64),
        ("links", np.int64),  # first of its links to other reals, in their order
        ("links_end", np.int64),
        ("scores", np.int64),  # first of its scores, one per state
        ("flat", np.float64),  # a curvature along a real of at most this size is none
        ("unit", np.float64),  # of lengths along a real: about the least deviation it may have
    ]
)


class Layout(NamedTuple):
    """Tables, then quadratics, over distinct variables.

    The parameters of a table are its log-values; those of a quadratic A of all joint states,
    then b, then c, which is 0 except for those that were left whole.
    """

    num_tables: int
    term: NDArray[np.void]  # (term,): TERM
    entry: NDArray[np.void]  # (entry,): ENTRY; the stride is that of its states, 0 for a real
    theta: NDArray[np.float64]
    variable: NDArray[np.void]  # (variable,): VARIABLE
    incidence: NDArray[np.void]  # INCIDENCE
    pair_of: NDArray[np.int64]  # pairs of reals of all terms: the number of that pair
    link: NDArray[np.void]  # LINK
    least: float
    """A smaller gain is no gain: rounding may have made it."""


VALUE = np.dtype(
    [
        ("x", np.float64),  # state or real
        ("curve", np.float64),  # the density along a real is curve x² + slope x
        ("slope", np.float64),
        ("stamp", np.int64),
        ("queued", np.uint8),
        ("stale", np.uint8),  # whether its chains are to be looked at
        ("moved", np.uint8),  # a real that moved since its neighbours looked: 1 little, 2 much
    ],
    align=True,
)
SCORE = np.dtype([("value", np.float64), ("broken", np.float64)])
NEAR = np.dtype(
    [("real", np.int64), ("curve", np.float64), ("slope", np.float64), ("shift", np.float64)]
)


class Search(NamedTuple):
    """An assignment, and what makes the worth of a move cheap to tell."""

    value: NDArray[np.void]  # (variable,): VALUE
    joint: NDArray[np.int64]  # (term,): its joint state
    score: NDArray[np.void]
    """(variable and state): SCORE, the finite values of its tables there, and the multiplicity
    of those that are -inf."""
    coupling: NDArray[np.float64]  # (pair,): second derivative
    lists: NDArray[np.int32]
    """(2, variable): a ring of discrete variables to look at; those beside a chain."""
    counts: NDArray[np.int64]  # first and size of the ring, stamp, random
    chain: NDArray[np.int64]  # (flip, 2): variable and state
    near: NDArray[np.void]  # (real,): NEAR, of the reals that the move at hand takes along
    cross: NDArray[np.float64]  # (real, real): their couplings
    root: NDArray[np.float64]  # (real, real): room for a matrix

    @classmethod
    def empty(cls, terms: Layout) -> Search:
        """Room for a search; `load` fills it."""
        num_variables = len(terms.variable)
        num_scores = int(terms.variable["num_states"].sum())
        return cls(
            np.zeros(num_variables, dtype=VALUE),
            np.zeros(len(terms.term), dtype=np.int64),
            np.zeros(num_scores, dtype=SCORE),
            np.zeros(len(terms.link) // 2),
            np.zeros((2, num_variables), dtype=np.int32),
            np.zeros(5, dtype=np.int64),
            np.zeros((LONGEST, 2), dtype=np.int64),
            np.zeros(MOST_REALS, dtype=NEAR),
            np.zeros((MOST_REALS, MOST_REALS)),
            np.zeros((MOST_REALS, MOST_REALS)),
        )


SATISFIED, UNSATISFIED, BROKEN = 0, 1, 2
"""What a factor is: at its best, below it, or impossible."""

CHANGED, WORK, MOVES = 2, 3, 4
"""Places in `sizes`, after those of the two lists."""

NOW, BEST = 0, 1
"""Rows of `worth`."""


class JointSolve(NamedTuple):
    """A sparse linear system for all reals that kernels move, in rows with the diagonal first."""

    reals: NDArray[np.int64]  # (real,): variables
    indptr: NDArray[np.int32]  # (real + 1,)
    indices: NDArray[np.int32]  # (entry,)
    pair: NDArray[np.int64]  # (entry,): its pair of reals, or -1 on the diagonal
    data: NDArray[np.float64]  # (entry,)
    ones: NDArray[np.float64]  # (real,): the diagonal
    scale: NDArray[np.float64]  # (real,): unit in which the diagonal is 1; 0 for a fixed real
    gradient: NDArray[np.float64]  # (real,)
    flat: NDArray[np.float64]  # (real,): a curvature of at most this is none
    direction: NDArray[np.float64]  # (real,): the last one of the last solve

    @classmethod
    def of(cls, terms: Layout) -> JointSolve:
        record = terms.variable
        reals = np.flatnonzero((record["num_states"] == 0) & (record["movable"] > 0))
        number = np.full(len(record), -1)
        number[reals] = np.arange(len(reals))
        source = np.repeat(np.arange(len(record)), record["links_end"] - record["links"])
        row, column = number[source], number[terms.link["other"]]
        kept = (row >= 0) & (column >= 0)
        row = np.append(number[reals], row[kept])
        order = np.argsort(row, kind="stable")
        indices = np.append(number[reals], column[kept])[order].astype(np.int32)
        pair = np.append(np.full(len(reals), -1), terms.link["pair"][kept])[order]
        indptr = np.append(0, np.cumsum(np.bincount(row, minlength=len(reals)))).astype(np.int32)
        room = np.ones((5, len(reals)))
        return cls(reals, indptr, indices, pair, np.zeros(len(pair)), *room)


class Factors(NamedTuple):
    """The factors of a graph as its author wrote them, and when they are satisfied."""

    whole: Layout
    enough: NDArray[np.float64]  # (factor,): log-value from which on it is satisfied
    first: NDArray[np.int64]  # (factor + 1,): its first entry in `member`
    member: NDArray[np.int32]  # variables that may move

    @classmethod
    def of(cls, whole: Layout, enough: NDArray[np.float64]) -> Factors:
        slots, record = whole.entry["variable"], whole.variable
        moves = ((record["movable"] > 0) & (record["num_states"] != 1))[slots]
        count = np.concatenate([[0], np.cumsum(moves)])
        return cls(whole, enough, count[np.append(whole.term["first"], len(slots))], slots[moves])


class Walk(NamedTuple):
    """Where a walk is among the factors, and the best assignment it came by."""

    status: NDArray[np.uint8]  # (factor,)
    place: NDArray[np.int32]  # (factor,): in the list of its status
    lists: NDArray[np.int32]  # (2, factor): unsatisfied factors, broken ones
    sizes: NDArray[np.int64]  # of these lists and of `changed`; work and moves done
    best: NDArray[np.float64]  # (variable,)
    changed: NDArray[np.int32]  # variables that moved since then
    is_changed: NDArray[np.uint8]  # (variable,)
    worth: NDArray[np.float64]  # (now or best, 2): multiplicity of what is broken, sum of the rest
    random: NDArray[np.uint64]  # (1,): state of the generator

    @classmethod
    def empty(cls, factors: Factors, seed: np.uint64) -> Walk:
        """Room for a walk; `set_out` fills it."""
        num_factors, num_variables = len(factors.enough), len(factors.whole.variable)
        return cls(
            np.zeros(num_factors, dtype=np.uint8),
            np.zeros(num_factors, dtype=np.int32),
            np.zeros((2, num_factors), dtype=np.int32),
            np.zeros(5, dtype=np.int64),
            np.zeros(num_variables),
            np.zeros(num_variables, dtype=np.int32),
            np.zeros(num_variables, dtype=np.uint8),
            np.zeros((2, 2)),
            np.full(1, seed, dtype=np.uint64),
        )
