"""All groups of particles, and their steps from the start to the distribution."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hylift.archive import Arrays
from hylift.errors import ImpossibleEvidenceError
from hylift.graph import FactorGraph
from hylift.inference.held import MOST_STEPS as MOST
from hylift.inference.held import Held, State, checked, count, fill, prefixed
from hylift.inference.local.terms import LocalTerms
from hylift.inference.loop import StepInfo
from hylift.inference.sampling.kernels.records import gather
from hylift.inference.sampling.marginals import mixtures_of
from hylift.inference.sampling.state import GaussianSums
from hylift.inference.smc.answers import LEAST_WEIGHT, GroupAnswers
from hylift.inference.smc.cliques import Cliques
from hylift.inference.smc.kernels.temper import DONE, FAILED, FINAL, advance
from hylift.numerics.segments import offsets
from hylift.numerics.threads import cut, in_order
from hylift.posterior import Result
from hylift.posterior.marginals import Batches, categoricals
from hylift.proper.improper import ImproperDirection
from hylift.words import method_call, worded

FloatArray = NDArray[np.float64]
Ids = NDArray[np.int64]

BURST = 1 << 23
"""Work between two looks at the clock: some hundredths of a second."""

LONGEST = 1 << 26
"""The same where a sweep of all parts and groups takes longer than that."""

SECONDS_PER_WORK = 4e-9

MOST_STEPS = 100
"""Of a burst."""

PILOT = 64
"""Particles that find the temperatures, at most."""


class Cells(NamedTuple):
    """The progress of each group in each part of the graph."""

    states: NDArray[np.int32]  # (group, particle, discrete variable by part)
    value: FloatArray  # (group, part, particle): log-density, reals integrated out
    log_z: FloatArray  # (group, part)
    beta: FloatArray  # (group, part): inverse temperature; the penalty while tables are broken
    phase: Ids  # (group, part)
    rung: Ids  # (group, part): changes of temperature or penalty
    made: Ids  # (group, part): recorded sweeps
    random: NDArray[np.uint64]  # (group, part): states of generators
    num_final: int

    @classmethod
    def of(
        cls, cliques: Cliques, groups: int, particles: int, sweeps: int, seed: int | list[int]
    ) -> Cells:
        num_parts = len(cliques.part)
        shape = (groups, num_parts)
        seeds = np.random.SeedSequence(seed).generate_state(groups * num_parts, np.uint64)
        return cls(
            np.zeros((groups, particles, cliques.num_discrete), dtype=np.int32),
            np.zeros((*shape, particles)),
            np.zeros(shape),
            np.zeros(shape),
            np.zeros(shape, dtype=np.int64),
            np.zeros(shape, dtype=np.int64),
            np.zeros(shape, dtype=np.int64),
            seeds.astype(np.uint64).reshape(shape),
            sweeps,
        )

    def arrays(self, most_states: NDArray[np.int64]) -> State:
        """All of it; most_states: (discrete variable by part,), the last state of each."""
        numbers = {name: getattr(self, name) for name in ("value", "log_z", "beta", "random")}
        return {
            **numbers,
            "states": Held(self.states, 0, most_states),
            "phase": Held(self.phase, 0, DONE),
            "rung": Held(self.rung, 0, MOST),
            "made": Held(self.made, 0, self.num_final),
        }


class Work(NamedTuple):
    """Room to compute, of one thread: few arrays, since Numba compiles each call for all of them,
    and the places where things start in them."""

    x: FloatArray  # (variable,)
    weight: FloatArray  # (state,)
    random: NDArray[np.uint64]  # (1,)
    floats: FloatArray
    ints: Ids
    own: int  # precisions of the terms of each clique,
    root: int  # of all below it, factorised,
    down: int  # and of all beyond its parent
    own_linear: int  # linear parts of the same
    half: int
    down_linear: int
    own_constant: int  # (clique,)
    constant: int
    matrix: int  # (member, member): of the clique at hand
    cov: int
    change: int
    inner: int
    columns: int
    moved: int
    vector: int  # (member,)
    mean: int
    scale: int
    column: int
    slope: int
    tilt: int
    largest: int
    smallest: int
    energy: int  # (particle,)
    shares: int
    joint: int  # (term,)
    is_stale: int  # (clique,): its terms have changed
    has_changed: int  # (clique,): terms below it have
    depth: int  # (clique,): on the way from the root to the clique at hand, or -1
    next: int  # (clique,): the child that comes next
    stack: int
    order: int  # (member,)
    copies: int  # (particle,)

    @classmethod
    def room(cls, terms: LocalTerms, cliques: Cliques, particles: int) -> Work:
        clique, size = cliques.clique, cliques.most_members
        num_cliques, num_members = len(clique), len(cliques.member)
        area = int(clique["square"][-1]) + size * size if num_cliques else 0
        most_states = int(terms.variable["num_states"].max(initial=1))
        floats = offsets(
            np.array(
                3 * [area] + 3 * [num_members] + 2 * [num_cliques] + 6 * [size * size] + 8 * [size]
                + 2 * [particles]
            )
        )  # fmt: skip
        ints = offsets(np.array([len(terms.term), *(5 * [num_cliques]), size, particles]))
        return cls(
            np.empty(len(terms.variable)),
            np.empty(max(most_states, 1)),
            np.zeros(1, dtype=np.uint64),
            np.empty(floats[-1]),
            np.empty(ints[-1], dtype=np.int64),
            *floats[:-1].tolist(),
            *ints[:-1].tolist(),
        )


@dataclass(slots=True, eq=False)
class Population:
    """The stepper: bursts of changes of temperature, each with a sweep, then of recorded sweeps.

    A pilot, which is no part of the answer, goes ahead and finds the temperatures for all groups:
    so the mean of Z is right, whatever the number of particles.
    """

    graph: FactorGraph
    terms: LocalTerms
    part: NDArray[np.int32]  # (variable,)
    cliques: Cliques
    base: FloatArray  # (variable and state,): log-probabilities of the start
    cells: Cells
    pilot: Cells  # of one group
    ladder: FloatArray  # (part, rung): penalties, 0, and inverse temperatures
    probs: FloatArray  # (group, variable and state): sums of conditional probabilities
    mixtures: list[GaussianSums]  # by group, of the reals
    values: FloatArray  # (group, stored particle, stored sweep, variable)
    steps: int = 0
    next: int = 0
    """The block from which the next step goes on."""

    def step(self) -> StepInfo:
        """Some temperatures of all parts and groups, or one of as many as there is time for."""
        groups, particles, _ = self.cells.states.shape
        cost = offsets(self.cliques.work())
        blocks = cut(cost, particles)
        work = np.tile(np.diff(cost[[0, *(last for _, last in blocks)]]) * particles, groups + 1)
        most = int(np.clip(BURST // (int(work.sum()) + 1), 1, MOST_STEPS))
        room = int(self.pilot.rung.max(initial=0)) + most - self.ladder.shape[1]
        self.ladder = np.pad(self.ladder, ((0, 0), (0, max(room, 0))))
        rest = np.cumsum(work[self.next :])
        stop = self.next + max(int(np.searchsorted(rest, LONGEST)), 1)
        self._advance(blocks, range(self.next, min(stop, len(work))), most)
        self.next = 0 if stop >= len(work) else stop
        return self._info()

    def hurry(self, keep_on: Callable[[], None]) -> None:
        """Go to the end at once: by weights alone, then one recorded sweep; keep_on: called between
        blocks."""
        blocks = cut(offsets(self.cliques.work()), self.cells.states.shape[1])
        while not self.is_done:
            every = range(len(blocks), len(blocks) * (len(self.probs) + 1))
            self._advance(blocks, every, MOST_STEPS, keep_on)
        self._check_possible()

    def _advance(
        self,
        blocks: list[tuple[int, int]],
        numbers: range,
        most: int,
        keep_on: Callable[[], None] | None = None,
    ) -> None:
        """So many steps of some blocks of parts, counted for the pilot and then one group after the
        other; with `keep_on`, to the end at once."""
        particles, hurries = self.cells.states.shape[1], keep_on is not None

        def run(number: int, _: int) -> int:
            g, (first, last) = number // len(blocks) - 1, blocks[number % len(blocks)]
            cells, leads, g = (self.pilot, True, 0) if g < 0 else (self.cells, False, g)
            if (cells.phase[g, first:last] >= (FINAL if leads else DONE)).all():
                return -1
            work = Work.room(self.terms, self.cliques, particles)
            return int(
                advance(
                    self.terms, self.cliques, work, self.base, cells, self.probs[g],
                    self.mixtures[g], self.values, self.ladder, g, first, last, most, leads,
                    hurries,
                )
            )  # fmt: skip

        middle = int(np.clip(len(blocks), numbers.start, numbers.stop))
        for some in (range(numbers.start, middle), range(middle, numbers.stop)):
            for failed in in_order(run, [(number, number + 1) for number in some]):
                if keep_on is not None:
                    keep_on()
                if failed >= 0:
                    improper = ImproperDirection.of(self.graph.variables, {failed: 1.0})
                    raise improper.error(" given some values of the other variables")
        self.steps += most

    def _info(self) -> StepInfo:
        cells = self.cells
        self._check_possible()
        result: Result | None = "max_steps" if (cells.phase >= DONE).all() else None
        is_final = cells.phase >= FINAL
        what = "sampling" if is_final.all() else "tempering"
        way = np.where(is_final, 1.0, np.clip(cells.beta, 0.0, 1.0))
        way = 0.8 * way + 0.2 * is_final * cells.made / cells.num_final
        share = float(way.sum()) / max(way.size, 1)
        return StepInfo(-float(cells.log_z.mean(axis=0).sum()), what, share, result)

    def _check_possible(self) -> None:
        if (self.cells.phase == FAILED).any() or (self.pilot.phase == FAILED).any():
            raise ImpossibleEvidenceError(
                "SMC found no states that break no hard constraint: the evidence may contradict "
                "the hard constraints, or they are too hard for it.",
                worded(method_call("Exact"), " decides where it is feasible."),
            )

    @property
    def is_at_end(self) -> bool:
        """True if nothing but recorded sweeps is left, or parts that are enumerated."""
        return bool(((self.cells.phase >= FINAL) | (self.cliques.part["num_joint"] > 0)).all())

    @property
    def is_done(self) -> bool:
        return bool((self.cells.phase >= DONE).all())

    @property
    def num_wide(self) -> int:
        """Variables whose reals are not in one clique."""
        return int((self.cliques.part["wide_end"] - self.cliques.part["wide"]).sum())

    def answers(self) -> GroupAnswers:
        """The findings of each group."""
        cells, variables, part = self.cells, self.graph.variables, self.part
        num_stored = int(cells.made.min(initial=self.values.shape[2]))
        groups, kept, _, count = self.values.shape
        found = [one.moments() for one in self.mixtures]
        mean, var = (np.stack(rows) for rows in zip(*found, strict=True))
        total = cells.value[:, :, :kept]
        at = np.where(np.isfinite(total), total, -np.inf).argmax(axis=2)  # (group, part)
        group = np.arange(groups)[:, None]

        def batches(weights: FloatArray) -> Batches:
            sums = self.probs / _totals(self.probs, variables.num_states)
            of_state = np.repeat(part, variables.num_states)
            probs = (weights[:, of_state] * sums).sum(axis=0)
            start = offsets(variables.num_states)[:-1]
            reals = np.flatnonzero(variables.num_states == 0)
            whole = _gathered(self.mixtures, weights[:, part[reals]])
            return [*categoricals(variables, start, probs), *mixtures_of(whole, reals)]

        return GroupAnswers(
            cells.states.shape[1],
            variables,
            part,
            cells.log_z,
            self.probs,
            mean,
            var,
            self.values[:, :, :num_stored].reshape(groups, kept * num_stored, count),
            self.values[group, at[:, part], num_stored - 1, np.arange(count)],
            batches,
            self.cliques.part["num_joint"] > 0,
        )

    def _cells(self) -> State:
        """The progress of the groups and of the pilot."""
        lists, first = self.cliques.lists, self.cliques.discrete
        variable = lists[first : first + self.cells.states.shape[2]]
        last = self.terms.variable["num_states"][variable] - 1
        parts = {"cells": self.cells, "pilot": self.pilot}
        found: State = {"steps": count(self.steps), "next": count(self.next)}
        for name, cells in parts.items():
            found = {**found, **prefixed(name, cells.arrays(last))}
        return found

    def arrays(self) -> State:
        found = {**self._cells(), "ladder": Held(self.ladder, 0.0, free_axis=1)}
        if not (self.cells.phase >= FINAL).any():  # nothing is recorded yet
            return found
        most = int(self.cells.made.max())
        found |= {"probs": Held(self.probs, 0.0), "values": self.values[:, :, :most]}
        for group, mixtures in enumerate(self.mixtures):
            found |= prefixed(f"group {group}", mixtures.arrays())
        return found

    def restore(self, arrays: Arrays) -> None:
        fill(self._cells(), arrays)
        self.ladder = checked(self.arrays(), arrays)["ladder"]
        self._check_ladder()
        fill(self.arrays(), arrays)
        self.steps, self.next = int(arrays["steps"]), int(arrays["next"])

    def _check_ladder(self) -> None:
        """Raise unless the pilot is ahead of all groups, and the ladder leads to the end."""
        cells, pilot, is_sum = self.cells, self.pilot, self.cliques.part["num_joint"] > 0
        rungs = pilot.rung[0]
        if (cells.rung > rungs).any() or rungs.max(initial=0) > self.ladder.shape[1]:
            raise ValueError("a group is ahead of the pilot")
        own = np.flatnonzero((pilot.phase[0] >= FINAL) & ~is_sum)
        if (rungs[own] < 1).any() or (self.ladder[own, rungs[own] - 1] != 1.0).any():
            raise ValueError("'ladder' does not lead to the end")
        is_short = (cells.phase < FINAL) & (cells.rung >= rungs) & (pilot.phase >= FINAL) & ~is_sum
        if is_short.any() or ((cells.phase == DONE) & (cells.made < cells.num_final)).any():
            raise ValueError("a group is not where its temperatures are")


def _totals(sums: FloatArray, num_states: NDArray[np.int32]) -> FloatArray:
    """(group, variable and state): the sum over the states of its variable."""
    sizes = num_states[num_states > 0]
    if not len(sizes):
        return np.ones_like(sums)
    return np.repeat(np.add.reduceat(sums, offsets(sizes)[:-1], axis=1), sizes, axis=1)


def _gathered(mixtures: list[GaussianSums], weights: FloatArray) -> GaussianSums:
    """The mixtures of all groups as one, by the weights (group, real) of groups."""
    size, room = mixtures[0].weight.shape
    whole = GaussianSums.empty(size, room)
    for one, own in zip(mixtures, weights, strict=True):
        share = own / one.shares().sum(axis=1)
        weight = np.maximum(one.weight * share[:, None], LEAST_WEIGHT)
        gather(whole, one._replace(weight=weight), max(room // 2, 1))
    return whole
