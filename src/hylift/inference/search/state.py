"""Arrays that the kernels of local search read and change."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hylift.inference.held import MOST_STEPS, Held, State, arrays_in, held, prefixed
from hylift.inference.local.terms import LocalTerms
from hylift.numerics.segments import inverse, offsets

FloatArray = NDArray[np.float64]
Ids = NDArray[np.int64]

MOST_REALS = 8
"""Reals that one move takes along."""

LONGEST = 16
"""Flips that one chain takes together."""

MARK = np.dtype(
    [
        ("stamp", np.int64),
        ("queued", np.uint8),
        ("stale", np.uint8),  # whether its chains are to be looked at
        ("moved", np.uint8),  # a real that moved since its neighbours looked: 1 little, 2 much
    ],
    align=True,
)
SCORE = np.dtype([("value", np.float64), ("broken", np.float64)])
NEAR = np.dtype([("real", np.int64), ("curve", np.float64), ("slope", np.float64)])


class SearchState(NamedTuple):
    """An assignment, with scores from which the worth of a move is cheap to compute."""

    x: FloatArray  # (variable,): states and reals
    joint: Ids  # (term,): its joint state
    curve: FloatArray  # (variable,): the density along a real is curve x² + slope x
    slope: FloatArray  # (variable,)
    coupling: FloatArray  # (pair of reals,): second derivative
    score: NDArray[np.void]
    """(variable and state): SCORE, the finite values of its tables there, and the multiplicity
    of those that are -inf."""
    mark: NDArray[np.void]  # (variable,): MARK
    lists: NDArray[np.int32]
    """(2, variable): a ring of discrete variables to look at; those beside a chain."""
    counts: Ids  # first and size of the ring, stamp
    chain: Ids  # (flip, 2): variable and state
    near: NDArray[np.void]  # (real,): NEAR, of the reals that the move at hand takes along
    shift: FloatArray  # (real,): their steps
    least: FloatArray  # (real,): their least pivots
    cross: FloatArray  # (real, real): their couplings
    root: FloatArray  # (real, real): room for a factor

    @classmethod
    def empty(cls, terms: LocalTerms) -> SearchState:
        """Room for a search; `load` fills it."""
        num_variables = len(terms.variable)
        return cls(
            np.zeros(num_variables),
            np.zeros(len(terms.term), dtype=np.int64),
            np.zeros(num_variables),
            np.zeros(num_variables),
            np.zeros(len(terms.link) // 2),
            np.zeros(terms.num_scores, dtype=SCORE),
            np.zeros(num_variables, dtype=MARK),
            np.zeros((2, num_variables), dtype=np.int32),
            np.zeros(3, dtype=np.int64),
            np.zeros((LONGEST, 2), dtype=np.int64),
            np.zeros(MOST_REALS, dtype=NEAR),
            np.zeros(MOST_REALS),
            np.zeros(MOST_REALS),
            np.zeros((MOST_REALS, MOST_REALS)),
            np.zeros((MOST_REALS, MOST_REALS)),
        )

    def arrays(self, terms: LocalTerms) -> State:
        """All that moves depend on; the joint states follow from the assignment, and the rest is
        room."""
        names = ("curve", "slope", "coupling", "score")
        numbers = {name: getattr(self, name) for name in names}
        marks, last = arrays_in(self.mark, "mark"), max(len(self.x) - 1, 0)
        return prefixed(
            "search",
            {
                "x": terms.held(self.x),
                **arrays_in(numbers, "number"),
                **held(marks, 0, MOST_STEPS),
                "ring": Held(self.lists, 0, last),
                "counts": Held(self.counts, 0, np.array([last, len(self.x), MOST_STEPS])),
            },
        )


SATISFIED, UNSATISFIED, BROKEN = 0, 1, 2
"""Status of a factor: at its best, below it, or impossible."""

CHANGED, WORK, MOVES = 2, 3, 4
"""Places in `sizes`, after those of the two lists."""

NOW, BEST = 0, 1
"""Rows of `worth`."""


class JointSolve(NamedTuple):
    """A sparse linear system for all reals that kernels move, in rows with the diagonal first."""

    reals: Ids  # (real,): variables
    indptr: NDArray[np.int32]  # (real + 1,)
    indices: NDArray[np.int32]  # (entry,)
    pair: Ids  # (entry,): its pair of reals, or -1 on the diagonal
    data: FloatArray  # (entry,)
    ones: FloatArray  # (real,): the diagonal
    scale: FloatArray  # (real,): unit in which the diagonal is 1; 0 for a fixed real
    gradient: FloatArray  # (real,)
    flat: FloatArray  # (real,): a curvature of at most this is none
    direction: FloatArray  # (real,): the last one of the last solve

    @classmethod
    def of(cls, terms: LocalTerms) -> JointSolve:
        record = terms.variable
        reals = np.flatnonzero((record["num_states"] == 0) & (record["movable"] > 0))
        number = inverse(reals, len(record))
        row, column = number[terms.link_source()], number[terms.link["other"]]
        kept = (row >= 0) & (column >= 0)
        row = np.append(number[reals], row[kept])
        order = np.argsort(row, kind="stable")
        indices = np.append(number[reals], column[kept])[order].astype(np.int32)
        pair = np.append(np.full(len(reals), -1), terms.link["pair"][kept])[order]
        indptr = offsets(np.bincount(row, minlength=len(reals))).astype(np.int32)
        room = np.ones((5, len(reals)))
        return cls(reals, indptr, indices, pair, np.zeros(len(pair)), *room)


class Goals(NamedTuple):
    """The factors of a graph as its author wrote them, and when they are satisfied."""

    whole: LocalTerms
    enough: FloatArray  # (factor,): log-value from which on it is satisfied
    first: Ids  # (factor + 1,): its first entry in `member`
    member: NDArray[np.int32]  # variables that may move

    @classmethod
    def of(cls, whole: LocalTerms, enough: FloatArray) -> Goals:
        slots, record = whole.entry["variable"], whole.variable
        moves = ((record["movable"] > 0) & (record["num_states"] != 1))[slots]
        count = offsets(moves)
        return cls(whole, enough, count[np.append(whole.term["first"], len(slots))], slots[moves])


class WalkState(NamedTuple):
    """The status of all factors in a walk, and the best assignment it came by."""

    status: NDArray[np.uint8]  # (factor,)
    place: NDArray[np.int32]  # (factor,): in the list of its status
    lists: NDArray[np.int32]  # (2, factor): unsatisfied factors, broken ones
    sizes: Ids  # of these lists and of `changed`; work and moves done
    best: FloatArray  # (variable,)
    changed: NDArray[np.int32]  # variables that moved since then
    is_changed: NDArray[np.uint8]  # (variable,)
    worth: FloatArray  # (now or best, 2): multiplicity of what is broken, sum of the rest
    random: NDArray[np.uint64]  # (1,): state of the generator

    @classmethod
    def empty(cls, goals: Goals, seed: np.uint64) -> WalkState:
        """Room for a walk; `set_out` fills it."""
        num_factors, num_variables = len(goals.enough), len(goals.whole.variable)
        return cls(
            np.zeros(num_factors, dtype=np.uint8),
            np.zeros(num_factors, dtype=np.int32),
            np.zeros((2, num_factors), dtype=np.int32),
            np.zeros(5, dtype=np.int64),
            np.zeros(num_variables),
            np.zeros(num_variables, dtype=np.int32),
            np.zeros(num_variables, dtype=np.uint8),
            np.array([[0.0, 0.0], [np.inf, -np.inf]]),
            np.full(1, seed, dtype=np.uint64),
        )

    def arrays(self, terms: LocalTerms) -> State:
        """All that the walk depends on."""
        num_factors, num_variables = len(self.status), len(self.best)
        factors, variables = max(num_factors - 1, 0), max(num_variables - 1, 0)
        most = np.array([num_factors, num_factors, num_variables, MOST_STEPS, MOST_STEPS])
        return prefixed(
            "walk",
            {
                "status": Held(self.status, SATISFIED, BROKEN),
                "place": Held(self.place, 0, factors),
                "lists": Held(self.lists, 0, factors),
                "sizes": Held(self.sizes, 0, most),
                "best": terms.held(self.best, keeps_bounds=False),
                "changed": Held(self.changed, 0, variables),
                "is changed": Held(self.is_changed, 0, 1),
                "worth": self.worth,
                "random": self.random,
            },
        )

    def check(self, goals: Goals) -> None:
        """Raise unless the lists have what the status of factors and variables says."""
        moves = goals.first[:-1] < goals.first[1:]
        for row, status in enumerate((UNSATISFIED, BROKEN)):
            listed = self.lists[row, : self.sizes[row]]
            own = np.flatnonzero(moves & (self.status == status))
            is_placed = np.array_equal(self.place[listed], np.arange(len(listed)))
            if not is_placed or not np.array_equal(np.sort(listed), own):
                raise ValueError("a list of factors has other factors than their status says")
        changed = np.sort(self.changed[: self.sizes[CHANGED]])
        if not np.array_equal(changed, np.flatnonzero(self.is_changed)):
            raise ValueError("a list of variables has other variables than are changed")
