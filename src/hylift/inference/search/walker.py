"""The course of a walk: bursts of moves, joint solves of all reals, starts, and the best of all."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hylift.archive import Arrays
from hylift.graph import FactorGraph, Variables
from hylift.inference.control import Control
from hylift.inference.held import State, count, fill, generator_state, restore_generator
from hylift.inference.local.terms import LocalTerms, as_written
from hylift.inference.loop import StepInfo, run_steps
from hylift.inference.search.functions import FunctionMoves
from hylift.inference.search.kernels.moves import UNBROKEN
from hylift.inference.search.kernels.reals import settle_reals
from hylift.inference.search.kernels.scores import load
from hylift.inference.search.kernels.walk import set_out, walk_on
from hylift.inference.search.limits import goals_of, loose_real, shortfall
from hylift.inference.search.state import (
    BEST,
    MOVES,
    NOW,
    Goals,
    JointSolve,
    SearchState,
    WalkState,
)
from hylift.posterior import Result
from hylift.rewrite.kinds import Kinds

FloatArray = NDArray[np.float64]

BURST = 20_000
"""Factors that are picked before the clock is looked at."""

FRESH = 200_000
"""Factors that are picked before all scores are computed anew; as many as there are, if more."""

MOST_STEPS = 1000
"""Steps of conjugate gradients in one solve, of a few reals;"""

SOLVE = 2_500_000
"""of many, so many divided by reals and their links."""

MOST_SWEEPS = 20
"""Sweeps over the variables of functions from one start."""

KICKED = 0.1
"""Share of the variables of functions that are put anywhere before a sweep."""

LEAST_KICKS = 10
"""Sweeps from such places from one start, at least; a long walk has one after each burst."""

AFTER_KICK = 500
"""Factors that are picked after each, without random moves."""

NEGLIGIBLE = 1e-6
"""An assignment this little below an upper bound is proved to be the best."""


@dataclass(slots=True, eq=False)
class Walker:
    """A walk on a graph without evidence."""

    written: Kinds
    """Its factors as their author wrote them."""
    flips: int
    """From each start."""
    random: float
    """Probability of a random move."""
    noise: float
    """Of a random move of a real, in standard deviations."""
    control: Control
    rng: np.random.Generator
    terms: LocalTerms
    search: SearchState
    goals: Goals
    walk: WalkState
    functions: FunctionMoves
    solve: JointSolve
    picks: int = 0
    """Steps so far: factors that were picked, and moves of variables of functions."""
    loose: int | None = None
    """A real that nothing holds, if one was found."""

    @classmethod
    def of(
        cls,
        graph: FactorGraph,
        control: Control,
        rng: np.random.Generator,
        *,
        flips: int,
        random: float,
        noise: float,
    ) -> Walker:
        written, terms = Kinds.of(graph, as_written), LocalTerms.of(Kinds.of(graph))
        goals = goals_of(written, terms)
        walk = WalkState.empty(goals, np.uint64(rng.integers(2**63)))
        functions = FunctionMoves.of(written, terms)
        return cls(
            written, flips, random, noise, control, rng,
            terms, SearchState.empty(terms), goals, walk, functions, JointSolve.of(terms),
        )  # fmt: skip

    @property
    def energy(self) -> float:
        """Of the best assignment so far."""
        broken, value = self.walk.worth[BEST]
        return np.inf if broken > UNBROKEN else -float(value)

    @property
    def moves(self) -> int:
        """Factors that were picked and had a variable moved."""
        return int(self.walk.sizes[MOVES])

    def run(self, starts: Iterator[FloatArray], num_starts: int) -> bool:
        """Walk from each start; return True if the best is proved to be the best of all."""
        for number in range(num_starts):
            done = number / num_starts
            self.go_to(next(starts))
            self._sweep_functions()
            if self._walk(done, 1 / num_starts):
                return True
            if len(self.solve.reals) or self.functions.sets:
                self.go_to(self.walk.best.copy())
                self._sweep_functions()
                if self.control.ended not in ("stopped", "interrupted"):
                    self.control.record(self.energy, "walking", done + 1 / num_starts)
            if self.control.ended is not None:
                break
        return False

    def go_to(self, values: FloatArray) -> None:
        """Goes on from an assignment, with its reals at their joint optimum."""
        broken, value = self._fixed(values)
        is_loose = False
        load(self.terms, self.search, values)
        if len(self.solve.reals):
            size = len(self.solve.reals) + len(self.terms.link)
            most = max(5, min(MOST_STEPS, SOLVE // size))
            is_loose = settle_reals(self.terms, self.search, self.solve, most)
            load(self.terms, self.search, self.values())
        set_out(self.search, self.goals, self.walk, broken, value)
        may_be_loose = len(self.solve.reals) and self.loose is None
        if may_be_loose and self.walk.worth[NOW, 0] <= UNBROKEN:
            aim = self.solve.direction if is_loose else None
            self.loose = loose_real(self.terms, self.search, self.solve.reals, aim)

    def values(self) -> FloatArray:
        """The assignment at hand."""
        return self.search.x.copy()

    def _walk(self, done: float, share: float) -> bool:
        """Take bursts from one start; return True if they end where nothing can be better."""
        if self.loose is not None:
            self.control.end("diverged")
            return False
        return run_steps(_Bursts(self, done, share, self.flips), self.control) == "converged"

    def take_burst(self, most: int) -> int:
        """Pick so many factors, or fewer; returns how many. Move the variables of functions."""
        picked = self._burst(most, self.random)
        if self.functions.sets:
            kicks = max(1, LEAST_KICKS * BURST // self.flips)
            self._kick_functions(min(kicks, LEAST_KICKS))
        return picked

    def _burst(self, most: int, random: float) -> int:
        """Picks so many factors, or fewer; returns how many."""
        picked = walk_on(self.terms, self.search, self.goals, self.walk, most, random, self.noise)
        self.picks += picked
        return picked

    def is_best_of_all(self) -> bool:
        """Return True if all factors are at their best, each by itself."""
        if self.functions.sets or self.walk.sizes[:2].any() or self.walk.status.any():
            return False
        if self.walk.worth[NOW, 0] > UNBROKEN:
            return False
        return shortfall(self.goals.whole, self.values()) <= NEGLIGIBLE

    def _fixed(self, values: FloatArray) -> tuple[float, float]:
        """Of functions, the multiplicity of those at -inf, and the sum of the others."""
        broken, value = 0.0, self.written.log_constant
        for group in self.written.functions:
            log_values = group.log_values(values)
            impossible = np.isneginf(log_values)
            broken += float(group.multiplicity[impossible].sum())
            value += float((group.multiplicity * np.where(impossible, 0, log_values)).sum())
        return broken, value

    def _sweep_functions(self) -> None:
        """Moves the variables of functions until none gains."""
        for _ in range(MOST_SWEEPS):
            values = self.values()
            go_on = self.control.should_continue
            if not self.functions.sets or not self.functions.ascend(values, go_on):
                return
            self.picks += sum(len(some.variables) for some in self.functions.sets)
            self.go_to(values)
            if not self.control.should_continue():
                return

    def _kick_functions(self, times: int) -> None:
        """Puts some variables of functions anywhere, and goes on from there if that is better."""
        self.go_to(self.values())
        inside = np.concatenate([some.variables for some in self.functions.sets])
        for _ in range(times):
            before, worth = self.values(), self.walk.worth[NOW].copy()
            is_chosen = self.rng.random(len(inside)) < KICKED
            is_chosen[self.rng.integers(len(inside))] = True
            chosen = inside[is_chosen]
            kicked = before.copy()
            kicked[chosen] = scattered(self.written.graph.variables, self.rng)[chosen]
            self.go_to(kicked)
            self._sweep_functions()
            moves = self.moves
            self._burst(AFTER_KICK, 0.0)  # all others follow
            if self.moves > moves:
                self._sweep_functions()
            now = self.walk.worth[NOW]
            if now[0] > worth[0] or (now[0] == worth[0] and now[1] < worth[1]):
                self.go_to(before)
            if self.loose is not None or not self.control.should_continue():
                return


@dataclass(slots=True, eq=False)
class _Bursts:
    """A walk from one start."""

    walker: Walker
    done: float
    """Share of all starts before this one."""
    share: float
    """Share of this one."""
    left: int
    """Flips that are left."""
    since: int = 0
    """Flips since all scores were computed anew."""

    def step(self) -> StepInfo:
        walker = self.walker
        if self.since >= max(FRESH, len(walker.terms.term)):
            walker.go_to(walker.values())
            self.since = 0
        most = min(BURST, self.left)
        picked = walker.take_burst(most)
        self.left -= picked or most
        self.since += picked
        result: Result | None = None
        share = self.done + self.share * (1 - self.left / walker.flips)
        if walker.is_best_of_all():
            result, share = "converged", 1.0
        elif self.left <= 0 or (picked == 0 and not walker.functions.sets):
            result = "max_steps"
        elif walker.loose is not None:
            result = "diverged"
        return StepInfo(walker.energy, "walking", share, result)

    def arrays(self) -> State:
        walker = self.walker
        loose = -1 if walker.loose is None else walker.loose
        return {
            **walker.walk.arrays(walker.terms),
            **walker.search.arrays(walker.terms),
            "rng": generator_state(walker.rng),
            "left": count(self.left, walker.flips),
            "since": count(self.since),
            "picks": count(walker.picks),
            "loose": count(loose, len(walker.terms.variable) - 1, least=-1),
        }

    def restore(self, arrays: Arrays) -> None:
        walker = self.walker
        fill(self.arrays(), arrays)
        walker.walk.check(walker.goals)
        walker.search.joint[:] = walker.terms.joint_states(walker.search.x)
        restore_generator(walker.rng, arrays["rng"])
        self.left, self.since = int(arrays["left"]), int(arrays["since"])
        walker.picks, loose = int(arrays["picks"]), int(arrays["loose"])
        walker.loose = None if loose < 0 else loose


def scattered(variables: Variables, rng: np.random.Generator) -> FloatArray:
    """Random states, and random reals within their bounds."""
    num_states, lower, upper = variables.num_states, variables.lower, variables.upper
    states = rng.integers(0, np.maximum(num_states, 1))
    closed = np.isfinite(lower) & np.isfinite(upper)
    share = rng.random(len(variables))
    with np.errstate(invalid="ignore"):
        between = lower + share * (upper - lower)
    near = np.clip(rng.normal(size=len(variables)), lower, upper)
    return np.where(num_states > 0, states, np.where(closed, between, near))
