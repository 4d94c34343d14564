"""Markov chains, and bursts of sweeps between checks of the clock."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hylift.archive import Arrays
from hylift.graph import FactorGraph
from hylift.inference.control import Control
from hylift.inference.held import Held, State, checked, count, fill, part_of, prefixed
from hylift.inference.local.terms import LocalTerms
from hylift.inference.loop import StepInfo, run_steps
from hylift.inference.sampling.functions import FunctionDraws
from hylift.inference.sampling.groups import Members, neighbours, state_groups
from hylift.inference.sampling.kernels.sweep import IN_GROUPS, LAST, advance
from hylift.inference.sampling.marginals import BATCHES, room_to_warm_up
from hylift.inference.sampling.state import Chain, RealBlocks, Record, StateGroups
from hylift.inference.sampling.structure import Ties, given_functions, real_blocks
from hylift.numerics.threads import in_order
from hylift.posterior import Result
from hylift.proper.improper import ImproperDirection
from hylift.rewrite.kinds import Kinds

FloatArray = NDArray[np.float64]
Seeds = Sequence[np.random.SeedSequence]

BURST = 1 << 23
"""Work between two looks at the clock: some hundredths of a second."""

LEAST_SCOUTED = 2
"""Sweeps of a scout, however late it is."""

PER_NUMBER, PER_SMOOTHED = 3e-7, 1.3e-4
"""Seconds to report on a stored number; and on a real of functions, whose density is smoothed."""

MOST_SWEEPS = 100
"""Of a burst."""


class Layout(NamedTuple):
    """A graph as the kernels of sweeps read it."""

    terms: LocalTerms
    blocks: RealBlocks
    groups: StateGroups
    functions: FunctionDraws | None
    is_connected: bool
    """True if draws are known to lead around all hard constraints."""
    tied: NDArray[np.int64]  # (variable,): its group of two or more, or -1
    together: Members
    """Groups of neighbours; none where there are too many."""

    @classmethod
    def of(cls, kinds: Kinds, num_chains: int, seed: np.random.SeedSequence) -> Layout:
        terms = given_functions(LocalTerms.of(kinds))
        blocks, ties = real_blocks(terms, num_chains), Ties.of(terms)
        together = neighbours(terms, blocks)
        groups = state_groups(terms, blocks, ties.group, together)
        functions = FunctionDraws.of(kinds, terms, blocks, seed) if kinds.functions else None
        return cls(terms, blocks, groups, functions, ties.is_connected, ties.group, together)


@dataclass(slots=True, eq=False)
class Chains:
    """The chains of one run: what they share, and the state of each."""

    graph: FactorGraph
    layout: Layout
    control: Control
    total: int
    """Draws that each chain is to make, warming up included."""
    thin: int
    members: list[Chain]
    done: int = 0
    """Draws that each chain has made, warming up included."""
    constant: float | None = None
    """The part of the log-density that is in no term; None before the first burst."""

    @classmethod
    def at(
        cls,
        starts: FloatArray,
        seeds: Seeds,
        graph: FactorGraph,
        layout: Layout,
        control: Control,
        total: int,
        thin: int = 1,
    ) -> Chains:
        """Chains at their starts (chain, variable)."""
        members = [
            Chain.at(start, layout.terms, layout.blocks, layout.groups, seed)
            for start, seed in zip(starts, seeds, strict=True)
        ]
        return cls(graph, layout, control, total, thin, members)

    def scout(self, sweeps: int, until: float = np.inf) -> NDArray[np.float64]:
        """(chain, sweep, variable): the course of a few sweeps, of fewer from a time on."""
        values = np.empty((len(self.members), sweeps, self.graph.num_variables))
        records = [
            room_to_warm_up(stored, self.layout.terms.num_scores, self.layout.blocks, len(values))
            for stored in values
        ]
        made = 0
        while made < sweeps and (made < LEAST_SCOUTED or self.control.elapsed < until):
            first, made = made, min(made + self.burst(), sweeps)
            self.run(records, first, made, 0)
        return values[:, :made]

    def warm_up(self, records: list[Record], draws: int, least: int) -> int:
        """Sweeps that each chain has made: so many, or fewer if time ran out, but the least.

        Of the time, warming up has the share that it has of all sweeps.
        """
        sweeps = _Sweeps(self, records, draws, draws, least, is_warm_up=True)
        run_steps(sweeps, self.control)
        return sweeps.made

    def regroup(self, groups: StateGroups) -> None:
        """Draw other groups from now on."""
        self.layout = self.layout._replace(groups=groups)
        self.members = [chain.with_groups(self.layout.terms, groups) for chain in self.members]

    def draw(
        self,
        records: list[Record],
        draws: int,
        most: int,
        least: int,
        go_on: Callable[[int, int, int], bool],
    ) -> tuple[int, int, int]:
        """Draws that each chain has made, of how many one is stored, and the length of a batch.

        go_on: whether to make as many more as there are, of which so many are stored, in batches
        of such a length, up to the most.
        """
        length = max(1, draws // BATCHES)
        sweeps = _Sweeps(self, records, draws, most, least, False, go_on, length)
        run_steps(sweeps, self.control)
        return sweeps.made, sweeps.every, sweeps.length

    @property
    def energy(self) -> float:
        """The mean energy of the chains where they are."""
        if self.constant is None:
            chain = self.members[0]
            self.constant = self.graph.log_density(chain.x) - float(chain.log_density[LAST])
        return -self.constant - float(np.mean([c.log_density[LAST] for c in self.members]))

    @property
    def best(self) -> NDArray[np.float64]:
        """(chain, variable): the most probable assignment of each chain."""
        return np.stack([chain.best for chain in self.members])

    def cut_components(self) -> NDArray[np.uint8]:
        """(component of reals,): whether a bound has mattered to it in some chain."""
        return np.max([chain.is_cut for chain in self.members], axis=0)

    @property
    def work(self) -> int:
        """About the work of a draw, in nanoseconds; it depends on the problem alone."""
        terms, blocks, groups, functions, *_ = self.layout
        fill_in = np.diff(blocks.ptr)
        work = 4 * len(terms.entry) + 10 * len(terms.variable) + int((fill_in**2).sum())
        num_terms = np.diff(groups.table_ptr) + np.diff(groups.quadratic_ptr)
        work += int((groups.num_joint * (1 + num_terms)).sum()) // IN_GROUPS
        if functions is not None:
            work += functions.work
        return work * self.thin + 1

    def has_to_report(self, made: int) -> bool:
        """True once the time that is left is needed for marginals and diagnostics of the draws."""
        seconds, record = self.control.request.seconds, self.layout.terms.variable
        if seconds is None:
            return False
        given = np.count_nonzero((record["num_states"] == 0) & (record["movable"] == 0))
        needed = PER_NUMBER * made * len(self.members) * len(record) + PER_SMOOTHED * int(given)
        return self.control.elapsed + needed > seconds

    def burst(self) -> int:
        """Draws of a burst."""
        return int(np.clip(BURST // self.work, 1, MOST_SWEEPS))

    def run(self, records: list[Record], first: int, stop: int, every: int) -> None:
        """A burst of all chains; `every` is 0 while warming up."""
        thin = self.thin if every else 1

        def run_from(begin: int, end: int) -> None:
            def run(chain: int, _: int) -> int:
                return int(
                    advance(
                        *self.layout[:3], self.members[chain], records[chain],
                        begin, end, thin, every,
                    )
                )  # fmt: skip

            for loose in in_order(run, [(c, c + 1) for c in range(len(self.members))]):
                self._check_held(loose)
                self.control.not_interrupted()  # which reports that work goes on

        functions = self.layout.functions
        if functions is None:
            run_from(first, stop)
        else:
            probs = [record.probs for record in records]
            for draw in range(first, stop):
                for _ in range(thin):
                    self._check_held(functions.sweep(self.members, probs, is_warm=every > 0))
                run_from(draw, draw + 1)
        self.done += stop - first

    def _check_held(self, *loose: int) -> None:
        """Raise if one of these is a variable that nothing holds; -1 is none."""
        for variable in loose:
            if variable >= 0:
                improper = ImproperDirection.of(self.graph.variables, {variable: 1.0})
                raise improper.error(" given some values of the other variables")


@dataclass(slots=True, eq=False)
class _Sweeps:
    """Warming up, or the draws after it, in bursts."""

    chains: Chains
    records: list[Record]
    draws: int
    most: int
    least: int
    """Draws of the first burst, at least."""
    is_warm_up: bool
    go_on: Callable[[int, int, int], bool] | None = None
    length: int = 0
    """Draws of a batch; 0 while warming up."""
    made: int = 0
    every: int = 1
    """One in so many draws is stored."""

    def step(self) -> StepInfo:
        chains, records = self.chains, self.records
        burst = chains.burst() if chains.control.ended is None else 0
        stop, half = min(max(self.made + burst, self.least), self.draws), self.draws // 2
        functions = chains.layout.functions if self.is_warm_up else None
        if functions is not None and self.made < half < stop:
            stop = half
        if self.length:
            stop = min(stop, (self.made // self.length + 1) * self.length)
        # Where there is no room for more draws, every other one of those stored is dropped.
        while not self.is_warm_up and stop > len(records[0].values) * self.every:
            for record in records:
                kept = record.values[::2].copy()
                record.values[: len(kept)] = kept
            self.every *= 2
        chains.run(records, self.made, stop, 0 if self.is_warm_up else self.every)
        self.made = stop
        if self.length and stop % self.length == 0 and stop // self.length <= len(records[0].marks):
            for record in records:
                sums = (record.probs, record.moments.ravel())
                record.marks[stop // self.length - 1] = np.concatenate(sums)
        if functions is not None and stop == half:
            stored = np.arange(half // 2, half) % len(records[0].values)
            functions.learn(np.concatenate([record.values[stored] for record in records]))
        has_time = self.go_on and stop == self.draws and chains.control.should_continue()
        if has_time and self.go_on and self.go_on(-(-stop // self.every), stop, self.length):
            self.draws, chains.total, self.length = 2 * stop, chains.total + stop, 2 * self.length
            for record in records:  # every other mark
                kept = record.marks[1::2].copy()
                record.marks[: len(kept)] = kept
        result: Result | None = "max_steps" if stop == self.draws else None
        if result is None and not self.is_warm_up and chains.has_to_report(stop):
            chains.control.end("out_of_time")
        if result is None and self.is_warm_up and self._has_used_its_time():
            result = "out_of_time"
        what = "warming up" if self.is_warm_up else "sampling"
        return StepInfo(chains.energy, what, chains.done / chains.total, result)

    def _has_used_its_time(self) -> bool:
        chains, seconds = self.chains, self.chains.control.request.seconds
        share = self.draws / (self.draws + chains.thin * (chains.total - self.draws))
        return seconds is not None and chains.control.elapsed > share * seconds

    def _place(self) -> State:
        """How far the chains are."""
        chains, least = self.chains, min(self.length, 1)
        constant = np.array(np.nan if chains.constant is None else chains.constant)
        return {
            "made": count(self.made, self.most),
            "every": count(self.every, self.most, least=1),
            "done": count(chains.done),
            "total": count(chains.total, least=1),
            "draws": count(self.draws, self.most, least=1),
            "length": count(self.length, self.most * least, least=least),
            "constant": Held(constant, may_be_nan=True),
        }

    def arrays(self) -> State:
        chains = self.chains
        found = self._place()
        if chains.layout.functions is not None:
            found = {**found, **prefixed("functions", chains.layout.functions.arrays())}
        stored = max(1, -(-self.made // self.every))  # there may be room for many more
        for number, (chain, record) in enumerate(zip(chains.members, self.records, strict=True)):
            values = chains.layout.terms.held(record.values[:stored], keeps_bounds=False)
            own = {**record.arrays(), "values": values}
            found = {**found, **prefixed(f"chain {number}", chain.arrays(chains.layout.terms))}
            found = {**found, **prefixed(f"record {number}", own)}
        return found

    def restore(self, arrays: Arrays) -> None:
        chains, place = self.chains, checked(self._place(), arrays)
        constant = float(place.pop("constant"))
        whole = {name: int(number) for name, number in place.items()}
        self.made, self.every, self.draws = whole["made"], whole["every"], whole["draws"]
        self.length, chains.done, chains.total = whole["length"], whole["done"], whole["total"]
        if self.made > self.draws or -(-self.made // self.every) > len(self.records[0].values):
            raise ValueError("more draws than there are")
        if chains.layout.functions is not None:
            chains.layout.functions.restore(part_of("functions", arrays))
        fill(self.arrays(), arrays)
        for chain in chains.members:
            chain.joint[:] = chains.layout.terms.joint_states(chain.x)
        chains.constant = None if np.isnan(constant) else constant
