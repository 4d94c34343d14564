"""Particles that have values of their reals, for parts with bounds or functions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from hylift.archive import Arrays
from hylift.errors import ImpossibleEvidenceError
from hylift.graph import FactorGraph
from hylift.inference.held import (
    Held,
    State,
    checked,
    count,
    fill,
    generator_state,
    part_of,
    prefixed,
    restore_generator,
)
from hylift.inference.local.terms import LocalTerms
from hylift.inference.loop import StepInfo
from hylift.inference.sampling.chains import Layout
from hylift.inference.sampling.functions import WIDE
from hylift.inference.sampling.marginals import Recorded, room_to_warm_up
from hylift.inference.sampling.smoothed import smoothed
from hylift.inference.sampling.state import Chain, Record
from hylift.inference.smc.answers import LEAST_WEIGHT, GroupAnswers
from hylift.inference.smc.base import Base
from hylift.inference.smc.kernels.particles import (
    PLACES,
    UNNOTED,
    WHOLE,
    add_values,
    sweep_particles,
)
from hylift.inference.smc.kernels.temper import FEW, KEPT, MOST_PENALTY, PENALTY
from hylift.inference.smc.weights import ancestors, next_step
from hylift.numerics.segments import inverse
from hylift.numerics.threads import in_order
from hylift.posterior import Result
from hylift.posterior.marginals import Batches
from hylift.posterior.mixing import by_weight
from hylift.proper.improper import ImproperDirection
from hylift.rewrite.kinds import Kinds
from hylift.words import method_call, worded

FloatArray = NDArray[np.float64]
Ids = NDArray[np.int64]

BREAKING, TEMPERING, FINAL, DONE = 0, 1, 2, 3
"""Phases: particles break hard constraints, are on the way, at the end, or all is recorded."""

LEAST_GROWTH = 1e-3
"""Of inverse temperatures: where energies are nothing but rounding, they would stay as they are."""
RATE, LEARN, MOST_LINES = 0.4, 4, 2
"""Change of the widths of slices from one temperature to the next; temperatures after which
directions are learned anew in which reals move together; and moves along these in a sweep."""

IN_GROUPS = 3
"""One in so many sweeps draws states together, and with reals."""


@dataclass(slots=True, eq=False)
class Tempered:
    """The stepper: changes of temperature, each with a sweep, then recorded sweeps.

    A particle is an assignment. The distribution is raised to a power between 0 and 1, the base to
    what is left to 1; all groups have the same powers, each connected part of the graph its own.
    """

    graph: FactorGraph
    base: Base
    layout: Layout
    part: NDArray[np.int32]  # (variable,)
    of_term: Ids  # (term,): its part
    share: FloatArray  # (term,): its multiplicity; -1 for those of the base
    hard: LocalTerms  # -1 where terms are -inf, and else 0; those of the base as they are
    warm: list[Record]  # by group: shows where reals with bounds are
    chains: list[Chain]  # by group: room to sweep a particle, and its generator
    rng: np.random.Generator
    x: FloatArray  # (group, particle, variable)
    values: FloatArray  # (group, stored particle, stored sweep, variable)
    num_final: int
    log_z: FloatArray  # (group, part)
    power: FloatArray  # (part,): of the distribution; the penalty while constraints are broken
    recorded: Recorded | None = None
    phase: int = BREAKING
    made: int = 0
    """Recorded sweeps."""
    steps: int = 0

    @classmethod
    def of(
        cls,
        kinds: Kinds,
        base: Base,
        part: NDArray[np.int32],
        size: tuple[int, int, int],
        stored: tuple[int, int],
        seed: np.random.SeedSequence,
    ) -> Tempered:
        """size: groups, particles and recorded sweeps; stored: particles and sweeps that are."""
        groups, particles, sweeps = size
        *seeds, own, other = seed.spawn(groups + 2)
        tables, quadratics = base.tables(), base.quadratics()
        whole = replace(
            kinds,
            tables=[*kinds.tables, *tables],
            quadratics=[*kinds.quadratics, *quadratics],
        )
        layout = Layout.of(whole, groups, own)
        terms, blocks = layout.terms, layout.blocks
        share = terms.term["multiplicity"].copy()
        share[terms.num_tables - sum(map(len, tables)) : terms.num_tables] = -1.0
        share[len(share) - sum(map(len, quadratics)) :] = -1.0
        rng, variables = np.random.default_rng(other), kinds.graph.variables
        x = base.draw(rng, (groups, particles))
        num_parts = int(part.max(initial=-1)) + 1
        population = cls(
            kinds.graph,
            base,
            layout,
            part,
            part[terms.entry["variable"][terms.term["first"]]].astype(np.int64),
            share,
            _hard(terms, share),
            [room_to_warm_up(one, terms.num_scores, blocks, groups) for one in x],
            [Chain.at(x[g, 0], terms, blocks, layout.groups, seeds[g]) for g in range(groups)],
            rng,
            x,
            np.zeros((groups, *stored, len(variables))),
            sweeps,
            np.zeros((groups, num_parts)),
            np.zeros(num_parts),
        )
        population._set_widths()
        return population

    def _set_widths(self) -> None:
        """Intervals of slices as wide as the start is."""
        for _, lines in self.layout.functions.singles if self.layout.functions else ():
            if lines is not None:
                std = self.base.std[lines.variables]
                closed = np.subtract(*lines.bounds[::-1])
                lines.width[:] = np.where(np.isfinite(std), WIDE * std, closed)

    @property
    def is_at_end(self) -> bool:
        """True if nothing but recorded sweeps is left."""
        return self.phase >= FINAL

    @property
    def is_done(self) -> bool:
        return self.phase == DONE

    def step(self) -> StepInfo:
        self._advance(hurries=False)
        self.steps += 1
        result: Result | None = "max_steps" if self.is_done else None
        is_final = self.phase >= FINAL
        way = 1.0 if is_final else float(np.clip(self.power, 0.0, 1.0).mean())
        way = 0.8 * way + 0.2 * is_final * self.made / self.num_final
        what = "sampling" if is_final else "tempering"
        return StepInfo(-float(self.log_z.mean(axis=0).sum()), what, way, result)

    def hurry(self, keep_on: Callable[[], None]) -> None:
        """Go to the end at once: by weights alone, then one recorded sweep."""
        while not self.is_done:
            keep_on()
            self._advance(hurries=True)

    def _advance(self, *, hurries: bool) -> None:
        if self.phase == BREAKING:
            self._stop_breaking(hurries)
        elif self.phase == TEMPERING:
            self._temper(hurries)
        else:
            self._record(hurries)

    @property
    def _flat(self) -> FloatArray:
        """(particle of all groups, variable): a view."""
        return self.x.reshape(-1, self.x.shape[2])

    def _energy(self, *, counts_broken: bool) -> FloatArray:
        """(group, particle, part): log-density of the distribution over that of the base; or minus
        the number of broken factors."""
        terms, functions = self.layout.terms, self.layout.functions
        x, share, start = self._flat, self.share, -self.base.log_constants()
        total: FloatArray = np.zeros((len(x), len(self.power)))
        total += np.bincount(self.part, start, len(self.power))
        if counts_broken:
            total[:], share = 0.0, (self.share > 0.0).astype(np.float64)
            terms = self.hard
        add_values(terms, x, terms.joint_states(x), share, self.of_term, total)
        if functions is not None:
            functions.counts_broken = counts_broken
            total += functions.totals_by(x, self.part.astype(np.int64))
        return total.reshape(*self.x.shape[:2], -1)

    def _stop_breaking(self, hurries: bool) -> None:
        """One step towards particles that break no hard constraint."""
        energy = self._energy(counts_broken=True)
        unbroken = energy == 0.0
        share = unbroken.mean(axis=1)
        if share.min(initial=1.0) >= KEPT or (hurries and share.min(initial=1.0) > 0.0):
            self.log_z += np.log(share)
            self._resample(unbroken / unbroken.sum(axis=1, keepdims=True), share < 1.0)
            self.phase, self.power[:] = TEMPERING, 0.0
            return
        step = next_step(energy, np.full(len(self.power), PENALTY))
        if hurries or (self.power + step).max() >= MOST_PENALTY:
            raise ImpossibleEvidenceError(
                "SMC found no states that break no hard constraint: the evidence may contradict "
                "the hard constraints, or they are too hard for it.",
                worded(method_call("Exact"), " decides where it is feasible."),
            )
        self._reweigh(energy, step)
        self._sweep(self.warm, counts_broken=True)

    def _temper(self, hurries: bool) -> None:
        """One change of temperature and one sweep."""
        energy, most = self._energy(counts_broken=False), 1.0 - self.power
        step = most if hurries else next_step(energy, most)
        step = np.maximum(step, np.minimum(most, LEAST_GROWTH * self.power))
        is_last = step == most
        self._reweigh(energy, step)
        self.power[is_last] = 1.0
        functions = self.layout.functions
        if functions is not None and self.steps % LEARN == 0:
            functions.learn(self._flat)
            for lines in functions.together:
                lines.width[:] = WIDE
        if not hurries:
            self._sweep(self.warm)
        if is_last.all():
            self.phase = FINAL

    def _reweigh(self, energy: FloatArray, step: FloatArray) -> None:
        """Weigh particles by exp(step · energy), and resample them; step: (part,)."""
        logs = np.where(step > 0.0, step * np.where(step > 0.0, energy, 0.0), 0.0)
        total = special.logsumexp(logs, axis=1, keepdims=True)
        self.log_z += total[:, 0] - np.log(energy.shape[1])
        self._resample(np.exp(logs - total), np.broadcast_to(step > 0.0, total[:, 0].shape))
        self.power += step

    def _resample(self, weights: FloatArray, is_due: NDArray[np.bool_]) -> None:
        """Resample each group in each part where that is due: (group, part)."""
        mark = self.rng.random((len(weights), 1, weights.shape[2]))
        source = ancestors(weights, is_due, mark)
        self.x[:] = np.take_along_axis(self.x, source[:, :, self.part], axis=1)

    def _sweep(
        self, records: list[Record], *, noted: int = UNNOTED, counts_broken: bool = False
    ) -> None:
        """Draw all variables of all particles once."""
        terms, blocks, groups, functions, *_ = self.layout
        power = self.power[self.of_term]
        left = np.ones(len(power)) if counts_broken else 1.0 - power
        own = power if counts_broken else power * self.share
        terms.term["multiplicity"] = np.where(self.share < 0.0, left, own)
        terms = self.hard if counts_broken else terms
        if functions is not None:
            functions.terms, functions.counts_broken = terms, counts_broken
            functions.power[:] = self.power[self.part]
            probs = [record.probs for record in records for _ in range(self.x.shape[1])]
            x = self._flat
            functions.draw(
                x,
                terms.joint_states(x),
                probs if noted == WHOLE else None,
                widens=False,
                rate=RATE,
                most_lines=MOST_LINES,
            )

        def run(group: int, _: int) -> int:
            return int(
                sweep_particles(
                    terms, blocks, groups, self.chains[group], records[group], self.x[group],
                    self.steps % IN_GROUPS == 0, noted,
                )
            )  # fmt: skip

        for loose in in_order(run, [(g, g + 1) for g in range(len(self.x))]):
            if loose >= 0:
                improper = ImproperDirection.of(self.graph.variables, {loose: 1.0})
                raise improper.error(" given some values of the other variables")

    def _record(self, hurries: bool) -> None:
        """A sweep at the end; before the first, one that shows where reals with bounds are.

        Hurrying, of a few particles only.
        """
        if hurries and self.made == 0:
            self.x = self.x[:, :FEW].copy()
        if self.recorded is None:
            self._sweep(self.warm, noted=PLACES)
            is_cut = np.max([chain.is_cut for chain in self.chains], axis=0)
            terms, blocks = self.layout.terms, self.layout.blocks
            self.recorded = Recorded.room(
                self.graph.variables, terms, blocks, is_cut, self.warm, self.x
            )
        self._sweep(self.recorded.records, noted=WHOLE)
        kept, stored = self.values.shape[1:3]
        if self.made < stored:
            self.values[:, :, self.made] = self.x[:, np.arange(kept) % self.x.shape[1]]
        self.made += 1
        if hurries or self.made == self.num_final:
            self.phase = DONE

    def answers(self) -> GroupAnswers:
        """The findings of each group."""
        assert self.recorded is not None
        groups, _, _, count = self.values.shape
        values = self.values[:, :, : self.made].reshape(groups, -1, count)
        reals = np.flatnonzero(self.graph.variables.num_states == 0)
        mean, var = values[..., reals].mean(axis=1), values[..., reals].var(axis=1)
        place = inverse(reals, count)
        own = place[self.layout.blocks.variable]
        for group, record in enumerate(self.recorded.records):
            # Where bounds do not matter, distributions given all else are better than draws.
            whole = record.mixtures.shares().sum(axis=1) >= self.made * self.x.shape[1] - 0.5
            middle, spread = record.mixtures.moments()
            mean[group, own[whole]], var[group, own[whole]] = middle[whole], spread[whole]
        best = self._energy(counts_broken=False).argmax(axis=1)  # (group, part)
        every = np.arange(groups)[:, None]
        return GroupAnswers(
            self.x.shape[1],
            self.graph.variables,
            self.part,
            self.log_z,
            np.stack([record.probs for record in self.recorded.records]),
            mean,
            var,
            values,
            self.x[every, best[:, self.part], np.arange(count)],
            self._batches,
            np.zeros(len(self.power), dtype=bool),
        )

    def _batches(self, weights: FloatArray) -> Batches:
        """Distributions of all variables, with groups weighted by (group, part)."""
        assert self.recorded is not None
        recorded, variables = self.recorded, self.graph.variables
        of_step = self.part[recorded.blocks.variable]
        of_score = np.repeat(self.part, variables.num_states)
        records = []
        for record, own in zip(recorded.records, weights, strict=True):
            of_grid = own[of_step[recorded.grid_step]]
            mixtures = record.mixtures
            weight = np.maximum(mixtures.weight * own[of_step][:, None], LEAST_WEIGHT)
            records.append(
                record._replace(
                    probs=record.probs * own[of_score],
                    mixtures=mixtures._replace(
                        weight=weight, num_components=mixtures.num_components.copy()
                    ),
                    density=record.density * of_grid[:, None],
                    added=record.added * of_grid,
                    coarse=record.coarse * of_grid,
                )
            )
        given = np.flatnonzero(
            (variables.num_states == 0) & (recorded.terms.variable["movable"] == 0)
        )
        groups, _, _, count = self.values.shape
        values = self.values[:, :, : self.made].reshape(groups, -1, count)[..., given]
        pooled = np.concatenate(list(by_weight(values, weights[:, self.part[given]])))
        found = replace(recorded, records=records).batches()
        return [*found, *smoothed(variables, given, pooled)]

    def _place(self) -> State:
        return {
            "phase": count(self.phase, DONE),
            "made": count(self.made, self.num_final),
            "steps": count(self.steps),
        }

    def arrays(self) -> State:
        terms, functions = self.layout.terms, self.layout.functions
        found: dict[str, NDArray[Any] | Held] = {
            **self._place(),
            "x": terms.held(self.x),
            "log_z": self.log_z,
            "power": Held(self.power, 0.0),
            "values": terms.held(self.values[:, :, : self.made], keeps_bounds=False),
            "rng": generator_state(self.rng),
        }
        for group, (chain, record) in enumerate(zip(self.chains, self.warm, strict=True)):
            own: State = {
                "random": chain.random,
                "cut": Held(chain.is_cut, 0, 1),
                "order": Held(chain.order, is_order=True),
                "group order": Held(chain.group_order, is_order=True),
            }
            found |= prefixed(f"group {group}", {**own, **record.mixtures.arrays()})
        if functions is not None:
            found |= prefixed("functions", functions.arrays())
        if self.recorded is not None:
            found |= self.recorded.arrays()
        return found

    def restore(self, arrays: Arrays) -> None:
        own = checked(self._place(), arrays)
        self.phase, self.made, self.steps = (int(own[n]) for n in ("phase", "made", "steps"))
        if (
            (self.made > 0) != ("edges" in arrays)
            or (self.phase == DONE) != (self.made == self.num_final)
            or (self.made > 0 and self.phase < FINAL)
        ):
            raise ValueError("its phase is not that of its recorded sweeps")
        terms, blocks, _, functions, *_ = self.layout
        if functions is not None:
            functions.restore(part_of("functions", arrays))
        if "edges" in arrays:
            grids = Recorded.stored_grids(arrays, len(blocks.variable))
            self.recorded = Recorded.on_grids(self.graph.variables, terms, blocks, *grids, self.x)
        fill(self.arrays(), arrays)
        restore_generator(self.rng, arrays["rng"])


def _hard(terms: LocalTerms, share: FloatArray) -> LocalTerms:
    """The terms with -1 where they are -inf, and else 0; those of the base as they are."""
    theta = np.where(np.isneginf(terms.theta), -1.0, 0.0)
    for rows in terms.rows():
        of_base = rows.terms[share[rows.terms] < 0.0]
        size = rows.A[0].size + rows.b[0].size + rows.c[0].size
        at = terms.term["base"][of_base][:, None] + np.arange(size)
        theta[at] = terms.theta[at]
    return terms._replace(theta=theta)
