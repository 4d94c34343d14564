"""Assignments improved on the true log-density."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from hylift.errors import ModelError
from hylift.graph import FactorGraph
from hylift.inference.local.terms import LocalTerms
from hylift.inference.search.functions import FunctionMoves
from hylift.inference.search.kernels.moves import ascend
from hylift.inference.search.kernels.reals import settle_reals
from hylift.inference.search.kernels.scores import load
from hylift.inference.search.kernels.walk import set_out, walk_on
from hylift.inference.search.state import LONGEST, Goals, JointSolve, SearchState, WalkState
from hylift.numerics.segments import ranges
from hylift.progress import Progress, silent
from hylift.rewrite.kinds import Kinds

FloatArray = NDArray[np.float64]

MOST_LOOKED = 20_000
"""Variables that are looked at before the clock is."""

MOST_STEPS = 1000
"""Steps of conjugate gradients in one solve."""

MOST_ROUNDS = 100
"""Rounds of moves and solves."""

MOST_LOOKS = 500
"""Looks per variable. Few are needed, unless the density has no maximum."""

RANDOM, AT_ONCE = 0.125, 20_000
"""Probability of a random move while hard tables are broken; moves between checks of the clock."""

MOST_PEAKS = 4
"""Further starts, with reals at the peaks of functions."""

MOST_KICKS = 4
"""States into which a block is put."""


@dataclass(frozen=True, slots=True, eq=False)
class Polished:
    """The best assignment that was found."""

    values: FloatArray  # (variable,): states and reals
    log_density: float
    start: int
    """The start from which it was reached."""
    finished: bool
    """True if no move improves it; False if time ran out first."""


def polish(
    graph: FactorGraph,
    starts: FloatArray,
    *,
    seconds: float | None = None,
    go_on: Callable[[], bool] | None = None,
    progress: Progress = silent,
) -> Polished:
    """The best of some assignments, each improved until no move of a few variables gains.

    starts: (start, variable), states and reals. The graph has no evidence; where it is lifted, a
    class moves as one. A move flips a discrete variable, or a chain of them that share factors,
    and takes the reals near them to their new optimum; between moves all reals are solved for
    jointly. The best is tried again with large neighbourhoods put into one state each. Fewer
    broken hard factors count first, then the log-density. The answer is the same on every call,
    unless time runs out or `go_on()` says no, and never worse than a start within its bounds.
    """
    began = time.monotonic()
    climber = _Climber.of(graph)
    starts = climber.checked(np.asarray(starts, dtype=np.float64))
    landmarks = climber.functions.landmarks
    if landmarks.is_joint:
        peaks = climber.checked(landmarks.starts(starts[0], MOST_PEAKS))
        starts = np.concatenate([starts, peaks])

    def is_late() -> bool:
        if go_on is not None and not go_on():
            return True
        return seconds is not None and time.monotonic() - began > seconds

    best: Polished | None = None
    for number, start in enumerate(starts):
        values, finished = climber.climb(start, is_late)
        best = climber.better_of(best, start, number, False)
        best = climber.better_of(best, values, number, finished)
        progress((number + 1) / (len(starts) + 1), "polishing")
        if is_late():
            return replace(best, finished=False)
    assert best is not None
    for kicked in climber.kicked(best.values):
        values, finished = climber.climb(kicked, is_late)
        best = climber.better_of(best, values, best.start, finished)
        if is_late():
            return replace(best, finished=False)
    progress(1.0, "polishing")
    return best


def repair(
    terms: LocalTerms,
    start: FloatArray,
    flips: int,
    *,
    random: float,
    seed: int = 0,
    is_late: Callable[[], bool],
) -> FloatArray | None:
    """An assignment that breaks no hard table, found by a random walk; None if none is found.

    The walk moves a variable of a broken table: any one with probability `random`, otherwise one
    that breaks least and of these gains most.
    """
    goals = Goals.of(terms, np.full(len(terms.term), -np.inf))
    search, walk = SearchState.empty(terms), WalkState.empty(goals, np.uint64(seed))
    load(terms, search, start)
    set_out(search, goals, walk, 0.0, 0.0)
    while flips > 0 and not is_late():
        picked = walk_on(terms, search, goals, walk, min(flips, AT_ONCE), random, 0.0)
        if terms.num_broken(search.joint) == 0:
            return search.x.copy()
        if picked == 0:  # no variable of a broken table may move
            break
        flips -= picked
    return None


@dataclass(frozen=True, slots=True, eq=False)
class _Climber:
    """The layout of a graph, and room for one search in it."""

    graph: FactorGraph
    terms: LocalTerms
    search: SearchState
    functions: FunctionMoves
    solve: JointSolve

    @classmethod
    def of(cls, graph: FactorGraph) -> _Climber:
        if len(graph.evidence):
            raise ModelError(
                "assignments are polished on a graph without evidence: give graph.condition()"
            )
        kinds = Kinds.of(graph)
        terms = LocalTerms.of(kinds)
        functions = FunctionMoves.of(kinds, terms)
        return cls(graph, terms, SearchState.empty(terms), functions, JointSolve.of(terms))

    def checked(self, starts: FloatArray) -> FloatArray:
        """The starts, each real within its bounds."""
        num_variables = self.graph.num_variables
        if starts.ndim != 2 or starts.shape[1] != num_variables or not len(starts):
            raise ModelError(
                f"starts of {num_variables} variables are an array (start, {num_variables}) with "
                f"at least one row, not one of shape {starts.shape}"
            )
        num_states = self.terms.variable["num_states"]
        wrong = ~np.isfinite(starts) | (
            (num_states > 0)
            & ((starts != np.floor(starts)) | (starts < 0) | (starts >= num_states))
        )
        if wrong.any():
            row, at = np.argwhere(wrong)[0]
            name = self.graph.variables.names[int(at)]
            kind = f"a state from 0 to {num_states[at] - 1}" if num_states[at] else "a number"
            raise ModelError(f"start {row}: '{name}' takes {kind}, not {starts[row, at]:g}")
        record = self.terms.variable
        clipped = np.clip(starts, record["lower"], record["upper"])
        return np.where(num_states > 0, starts, clipped)

    def better_of(
        self, best: Polished | None, values: FloatArray, start: int, finished: bool
    ) -> Polished:
        """The best so far, or these values if they are better, or as good and finished."""
        log_density = self.graph.log_density(values)
        if best is not None:
            if log_density < best.log_density:
                return best
            if log_density == -np.inf and self.broken(values) > self.broken(best.values):
                return best
            if log_density == best.log_density > -np.inf and best.finished:
                return best
        return Polished(values.copy(), log_density, start, finished)

    def kicked(self, values: FloatArray) -> Iterator[FloatArray]:
        """The assignment with each large block put into one state, for each state of it."""
        num_states = self.terms.variable["num_states"]
        for block in large_blocks(self.terms):
            for state in range(min(int(num_states[block].max()), MOST_KICKS)):
                moved = values.copy()
                moved[block] = np.minimum(state, num_states[block] - 1)
                yield moved

    def broken(self, values: FloatArray) -> float:
        """Multiplicity of the hard tables that an assignment breaks, functions aside."""
        joint = self.terms.joint_states(values)
        return self.terms.num_broken(joint) + self.functions.broken(values)

    def climb(self, start: FloatArray, is_late: Callable[[], bool]) -> tuple[FloatArray, bool]:
        """An assignment that no move improves, and whether it was reached before the time."""
        load(self.terms, self.search, start)
        finished = self._ascend(is_late)
        if not is_late() and self.terms.num_broken(self.search.joint) > 0:
            before = self._values()
            flips = 1000 + 50 * int(np.count_nonzero(self.terms.variable["num_states"]))
            found = repair(self.terms, before, flips, random=RANDOM, is_late=is_late)
            load(self.terms, self.search, before if found is None else found)
            if found is not None:
                finished = self._ascend(is_late)
        return self._values(), finished

    def _ascend(self, is_late: Callable[[], bool]) -> bool:
        """Moves and solves by turns until neither gains; false if time ran out."""
        looks = MOST_LOOKS * (20 + len(self.terms.variable))
        for _ in range(MOST_ROUNDS):
            settle_reals(self.terms, self.search, self.solve, MOST_STEPS)
            place, any_taken = 0, False
            while place < len(self.terms.variable):
                place, looked, taken = ascend(self.terms, self.search, place, MOST_LOOKED)
                any_taken |= taken > 0
                looks -= looked
                if is_late() or looks < 0:
                    return False
            if any_taken:
                continue
            values = self._values()
            if not self.functions.ascend(values, lambda: not is_late()):
                return True
            load(self.terms, self.search, values)
        return False

    def _values(self) -> FloatArray:
        return self.search.x.copy()


MOST_BLOCKS = 2

MOST_VARIABLES = 20_000
"""A larger graph has no blocks: climbing again from each would cost too much."""


def large_blocks(terms: LocalTerms) -> list[NDArray[np.int64]]:
    """Discrete variables that share terms with one of them, for a few that share many.

    Each block begins with the variable of most terms that no block before it has.
    """
    record = terms.variable
    free = (record["num_states"] > 1) & (record["movable"] > 0)
    if not free.any() or len(record) > MOST_VARIABLES:
        return []
    degree = np.where(free, record["last"] - record["first"], -1)
    blocks: list[NDArray[np.int64]] = []
    while len(blocks) < MOST_BLOCKS:
        hub = record[int(np.argmax(degree))]
        inside = terms.term[terms.incidence["term"][hub["first"] : hub["last"]]]
        entries = ranges(inside["first"], inside["last"] - inside["first"])
        block = np.unique(terms.entry["variable"][entries]).astype(np.int64)
        block = block[free[block]]
        if len(block) <= LONGEST or degree.max() < 0:
            break
        blocks.append(block)
        degree[block] = -1
    return blocks
