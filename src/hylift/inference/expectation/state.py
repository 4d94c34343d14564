"""The steps of expectation propagation."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from hylift.archive import Arrays
from hylift.inference.expectation.joint import FloatArray, Ids, Solved
from hylift.inference.expectation.kernels import joint as joint_kernels
from hylift.inference.expectation.kernels import sites as kernels
from hylift.inference.expectation.kernels.sites import Parameters, Tilted
from hylift.inference.expectation.layout import Sites
from hylift.inference.expectation.numeric import Current
from hylift.inference.held import MOST_STEPS, Held, State, count, fill
from hylift.inference.loop import StepInfo
from hylift.inference.message.layout import Totals, Work, in_blocks
from hylift.numerics.segments import log_sums
from hylift.posterior import Result

SHARE, MOST_SHARE = 0.5, 0.9
"""Of the way to new parameters that a step goes, where sites influence each other: at first, and
while changes shrink."""
FASTER, SLOWER = 1.1, 0.7
"""Factors of that share after a change that was smaller, or larger, than the one before."""
PATIENCE, LEAST_SHARE = 25, 1 / 40
"""Steps after which a part whose changes have not halved goes half as fast; and the largest share
of the way below which it begins anew, or is given up."""
SLOW = 60
"""Steps to 1e-9, above which half of the wrong answers on 144 random models were, and no right one
(area under the curve of the number of steps: .92; of negative precisions of sites: .74)."""
MOST_COPIES = 8
"""A part that does not converge begins anew with each factor as 2, 4 and 8 copies of a root of it
(power EP): cavities then keep most of what a site says, and are proper."""
SMALL = 1e-4
"""Change at which a part that does not converge is left as it is."""
PULL, HASTE = 0.5, 8
"""Of the way back to the start that sites go where a tilted distribution is improper; and the steps
that such a step counts for in the patience with its part."""
HALVINGS = 20
"""Shorter steps that are tried where the precision matrix is not positive definite."""


@dataclass(frozen=True, slots=True, eq=False)
class Active:
    """The parts of the graph that have not converged, and what is in them."""

    parts: NDArray[np.bool_]  # (part,)
    work: Work
    """Its sites."""
    components: Ids
    variables: Work

    @classmethod
    def of(cls, sites: Sites, parts: NDArray[np.bool_]) -> Active:
        discrete = sites.points.graph.variables.num_states > 0
        variables = np.flatnonzero(parts[sites.part_of_variable] & discrete)
        held = np.diff(sites.points.first)[variables]
        ptr = sites.terms.incidence.ptr
        some = np.flatnonzero(parts[sites.part])
        return cls(
            parts,
            Work.of(some, sites.cost[some]),
            np.flatnonzero(parts[sites.of_component]),
            Work.of(variables, 2 * held * (ptr[variables + 1] - ptr[variables])),
        )

    @property
    def sites(self) -> Ids:
        return self.work.ids


@dataclass(eq=False)
class Propagation:
    """Sites, the joint Gaussian and the messages about states; they change with every step."""

    sites: Sites
    tolerance: float
    max_steps: int
    share_first: float | None
    """Of the way that each step goes, where the user says so."""
    taken: int = 0
    precision: FloatArray = field(init=False)  # (site's matrix entry,)
    linear: FloatArray = field(init=False)  # (site's coordinate,)
    message: FloatArray = field(init=False)  # (entry,)
    copies: FloatArray = field(init=False)  # (part,)
    share: FloatArray = field(init=False)  # (part,)
    most: FloatArray = field(init=False)  # (part,): largest share
    change: FloatArray = field(init=False)  # (part,): at its last step
    lowest: FloatArray = field(init=False)  # (part,): change since which it is to halve
    since: Ids = field(init=False)  # (part,): steps since then
    is_done: NDArray[np.bool_] = field(init=False)  # (part,)
    steps: Ids = field(init=False)  # (part,): until it was done
    was_proper: NDArray[np.bool_] = field(init=False)  # (part,): all tilted distributions, once
    tied: Ids = field(init=False)  # (site,): the site whose tilted distribution it has
    other: Ids = field(init=False)  # (site,): the first that was tied to it and differed, or -1

    def __post_init__(self) -> None:
        sites = self.sites
        self.copies, self.single = np.ones(sites.num_parts), sites.terms.multiplicity
        self.precision, self.linear = sites.averages(np.zeros(len(sites), dtype=bool))
        self.message = np.zeros(sites.points.place[-1])
        sizes = np.bincount(sites.part, np.diff(sites.terms.slot_ptr) > 1, sites.num_parts)
        self.share = np.where(sizes > 1, SHARE, 1.0)
        self.most = np.where(sizes > 1, MOST_SHARE, 1.0)
        if self.share_first is not None:
            self.share[:] = self.most[:] = self.share_first
        self.change = np.full(sites.num_parts, np.inf)
        self.lowest = np.full(sites.num_parts, np.inf)
        self.since, self.steps = np.zeros((2, sites.num_parts), dtype=np.int64)
        self.is_done = np.zeros(sites.num_parts, dtype=bool)
        self.was_proper, self.is_pulled = self.is_done.copy(), self.is_done.copy()
        self.tied, self.other = sites.tied.copy(), np.full(len(sites), -1, dtype=np.int64)
        self.settle()
        if self.solved.failed.any():
            is_open = np.zeros(sites.num_parts, dtype=bool)
            is_open[sites.of_component[self.solved.failed]] = True
            self.precision, self.linear = sites.averages(is_open[sites.part])
            self.settle()
        self.start = self.precision.copy(), self.linear.copy()

    @property
    def copies_of_site(self) -> FloatArray:
        """(site,)"""
        return self.copies[self.sites.part]

    @cached_property
    def solved(self) -> Solved:
        return Solved.start(self.sites.joint)

    @cached_property
    def tilted(self) -> Tilted:
        return self.sites.tilted()

    @property
    def now(self) -> Parameters:
        return Parameters(self.precision, self.linear, self.message, self.copies_of_site)

    def tilt_all(self) -> None:
        """The tilted distributions of all sites, each by itself."""
        self.tied = np.arange(len(self.sites))
        self.tilt(Work.of(np.arange(len(self.sites)), self.sites.cost))

    def settle(self) -> None:
        """Compute what follows from sites, their copies and messages, of all parts."""
        terms = replace(self.sites.terms, multiplicity=self.single * self.copies_of_site)
        self.sites = replace(self.sites, points=replace(self.sites.points, terms=terms))
        self.totals = Totals.none(self.sites.points)
        active = Active.of(self.sites, np.ones(self.sites.num_parts, dtype=bool))
        self.active = active
        self._solve(active.sites, active.components)
        self.totals.gather(self.message, active.variables)

    def arrays(self) -> State:
        names = (
            "precision", "linear", "message", "share", "most", "change", "lowest", "is_done",
            "was_proper",
        )  # fmt: skip
        return {
            **{name: getattr(self, name) for name in names},
            "copies": Held(self.copies, 1.0, MOST_COPIES, is_whole=True),
            "since": Held(self.since, 0, MOST_STEPS),
            "steps": Held(self.steps, 0, self.max_steps),
            "tied": Held(self.tied, 0, len(self.sites) - 1),
            "other": Held(self.other, -1, len(self.sites) - 1),
            "taken": count(self.taken, self.max_steps),
        }

    def restore(self, arrays: Arrays) -> None:
        fill(self.arrays(), arrays)
        first = self.sites.tied
        for tie, some in ((self.tied, self.tied >= 0), (self.other, self.other >= 0)):
            if not np.array_equal(first[tie[some]], first[some]):
                raise ValueError("sites are tied to sites of another kind")
        self.taken = int(arrays["taken"])
        self.settle()
        self._follow()

    def step(self) -> StepInfo:
        """Move all sites of the active parts, in parallel."""
        self.taken += 1
        self.steps[~self.is_done] += 1
        sites, active = self.sites, self.active
        self.tilt(active.work)
        before = self.change.copy()
        self.change[active.parts] = 0.0
        np.maximum.at(self.change, sites.part[active.sites], self.tilted.change[active.sites])
        self._pull()
        self._judge(before)
        if not self.is_done.all():
            self._follow()
            self._move()
        result: Result | None = None
        if self.is_done.all():
            result = "converged" if self.converged.all() else "max_steps"
        elif self.taken >= self.max_steps:
            result = "max_steps"
        change = float(self.change.max(initial=0.0))
        return StepInfo(change, "moving sites", self.taken / self.max_steps, result)

    @property
    def converged(self) -> NDArray[np.bool_]:
        """(part,)"""
        return self.change <= self.tolerance

    @property
    def is_slow(self) -> NDArray[np.bool_]:
        """(part,): True if it has states and reals and converged slowly without damping by the
        user: sites that depend on each other so much are often wrong about it."""
        sites = self.sites
        has_states, has_reals = np.zeros((2, sites.num_parts), dtype=bool)
        discrete = sites.points.graph.variables.num_states > 0
        has_states[sites.part_of_variable[discrete]] = True
        has_reals[sites.part_of_variable[~discrete]] = True
        digits = np.log(min(self.tolerance, 0.1)) / np.log(1e-9)
        is_slow = self.converged & has_states & has_reals & (self.steps > SLOW * digits)
        return is_slow & (self.share_first is None)

    def _pull(self) -> None:
        """Let the sites of parts go back towards the start, where a tilted distribution is improper
        and none was before."""
        sites, found = self.sites, self.tilted
        is_bad = np.zeros(sites.num_parts, dtype=bool)
        is_bad[sites.part[self.active.sites[found.status[self.active.sites] != kernels.FINE]]] = (
            True
        )
        self.is_pulled = is_bad & self.was_proper & ~self.is_done
        self.was_proper |= self.active.parts & ~is_bad
        if not self.is_pulled.any():
            return
        self.since[self.is_pulled] += HASTE
        own = self.is_pulled[sites.part]
        found.status[own] = kernels.FINE
        for step, values, first, sizes in zip(
            (found.precision_step, found.linear_step), (self.precision, self.linear), self.start,
            (sites.dim**2, sites.dim), strict=True,
        ):  # fmt: skip
            some = np.repeat(own, sizes)
            step[some] = (first / np.repeat(self.copies_of_site, sizes) - values)[some]
        some = np.repeat(own, np.diff(sites.points.place[sites.terms.slot_ptr]))
        found.candidate[some] = self.message[some]

    def _judge(self, before: FloatArray) -> None:
        """Decide which parts are done, and how far each goes from now on."""
        self.is_done |= self.converged
        is_lower = self.change < 0.5 * self.lowest
        self.lowest[is_lower] = self.change[is_lower]
        self.since[is_lower] = 0
        self.since[~is_lower] += 1
        is_late = self.since >= PATIENCE
        self.most[is_late] *= 0.5
        self.since[is_late] = 0
        self.lowest[is_late] = self.change[is_late]
        if self.share_first is None:
            is_stuck = (self.most < LEAST_SHARE) & ~self.is_done
            self.is_done |= is_stuck & ((self.copies >= MOST_COPIES) | (self.change < SMALL))
            if (is_stuck & ~self.is_done).any():
                self._begin_anew(is_stuck & ~self.is_done)
            pace = np.where(self.change < before, FASTER, SLOWER)
            pace[np.isinf(before)] = 1.0
            self.share = np.clip(self.share * pace, SLOWER * SHARE * self.most, self.most)

    def _begin_anew(self, parts: NDArray[np.bool_]) -> None:
        """Restart some parts with twice as many copies of each site."""
        sites = self.sites
        self.copies[parts] *= 2
        some = parts[sites.part]
        for values, first, sizes in zip(
            (self.precision, self.linear), self.start, (sites.dim**2, sites.dim), strict=True
        ):
            own = np.repeat(some, sizes)
            values[own] = first[own] / np.repeat(self.copies_of_site, sizes)[own]
        held = np.diff(sites.points.place[sites.terms.slot_ptr])
        self.message[np.repeat(some, held)] = 0.0
        self.share[parts], self.most[parts] = SHARE, MOST_SHARE
        self.change[parts], self.lowest[parts], self.since[parts] = 1.0, np.inf, 0
        differ = self.copies_of_site != self.copies_of_site[self.tied]
        self.tied[differ] = np.flatnonzero(differ)
        self.settle()

    def _follow(self) -> None:
        """Leave alone what is done, once that is a good part of what is active."""
        count = int(np.count_nonzero(~self.is_done))
        if count <= 0.8 * np.count_nonzero(self.active.parts):
            self.active = Active.of(self.sites, ~self.is_done)

    def tilt(self, work: Work) -> None:
        """The tilted distributions of some sites, from the current Gaussian and messages."""
        sites, found, points = self.sites, self.tilted, self.sites.points
        layout, some = sites.layout, work.ids
        in_blocks(
            joint_kernels.project, work.blocks, some, layout, self.solved.mean,
            self.solved.covariance, found.mean, found.covariance,
        )  # fmt: skip
        found.cavity[:] = self.totals.cavities(self.message, np.zeros(points.first[-1]))
        is_some = np.zeros(len(sites), dtype=bool)
        is_some[some] = True
        kernels.untie(some, is_some, self.tied, self.other, layout, found)
        own, now = self._firsts(work), self.now
        self._integrate(own.ids)

        def run(begin: int, end: int) -> None:
            kernels.tilt(begin, end, own.ids, sites.room(), layout, now, found)

        in_blocks(run, own.blocks)
        kernels.spread(some, self.tied, layout, found)
        impossible = np.flatnonzero(found.status[some] == kernels.IMPOSSIBLE)
        if len(impossible):
            raise points.contradiction(int(some[impossible[0]]))

    def _firsts(self, work: Work) -> Work:
        """The sites that are tied to themselves."""
        is_first = self.tied[work.ids] == work.ids
        if is_first.all():
            return work
        some = work.ids[is_first]
        return Work.of(some, self.sites.cost[some])

    def _integrate(self, some: Ids) -> None:
        """Log-weights, means and covariances of the states of sites without closed form."""
        sites, found = self.sites, self.tilted
        is_some = np.zeros(len(sites), dtype=bool)
        is_some[some] = True
        for number, piece in enumerate(sites.pieces):
            own = np.flatnonzero(is_some[sites.first[number] : sites.first[number + 1]])
            if piece.numeric is None or not len(own):
                continue
            states = piece.numeric.tilted(own, self.current(number, own))
            site = sites.first[number] + own
            for ptr, given, part in zip(sites.given_ptr, found.given, states, strict=True):
                flat = part.reshape(len(site), -1)
                given[ptr[site][:, None] + np.arange(flat.shape[1])] = flat

    def current(self, number: int, own: Ids) -> Current:
        """The Gaussian and the parameters of some sites of a piece."""
        sites, found, piece = self.sites, self.tilted, self.sites.pieces[number]
        r, site = piece.dim, sites.first[number] + own
        at = sites.dim_ptr[site][:, None] + np.arange(r)
        matrix = (sites.matrix_ptr[site][:, None] + np.arange(r * r)).reshape(-1, r, r)
        reals = sites.step[sites.real_ptr[site][:, None] + np.arange(piece.num_reals)]
        return Current(
            found.mean[at], found.covariance[matrix], self.precision[matrix], self.linear[at],
            self.solved.mean[reals], self.copies[sites.part[site]],
        )  # fmt: skip

    def _move(self) -> None:
        """Go a share of the way, and less where the precision would not be positive definite."""
        sites, active = self.sites, self.active
        before = Parameters(*(part.copy() for part in self.now))
        share, some, components = self.share.copy(), active.sites, active.components
        share[self.is_done | np.isinf(self.lowest)] = 0.0  # done, or about to begin anew
        share[self.is_pulled] = PULL
        for halving in range(HALVINGS + 1):
            if halving == HALVINGS:
                share[sites.of_component[components]] = 0.0
            self._advance(some, share, before)
            self._solve(some, components)
            components = components[self.solved.failed[components]]
            if not len(components):
                break
            parts = np.zeros(sites.num_parts, dtype=bool)
            parts[sites.of_component[components]] = True
            share[parts] *= 0.5
            some = np.flatnonzero(parts[sites.part])
            components = np.flatnonzero(parts[sites.of_component])
        self.totals.gather(self.message, active.variables)

    def _advance(self, some: Ids, share: FloatArray, before: Parameters) -> None:
        sites = self.sites
        alone = np.diff(sites.terms.slot_ptr) == 1
        own = np.where(alone & (sites.dim == 0), 1.0, share[sites.part])
        kernels.advance_sites(some, own, sites.layout, self.tilted, before, self.now)

    def _solve(self, some: Ids, components: Ids) -> None:
        """The Gaussian of some components, of the sites in them."""
        parameters = self.copies_of_site, self.precision, self.linear
        self.sites.solve(self.solved, some, components, *parameters)

    def probs(self) -> FloatArray:
        """(point,): probabilities of states."""
        points, logs = self.sites.points, self.totals.logs
        top, total = np.full((2, len(points.first) - 1), [[-np.inf], [0.0]])
        np.maximum.at(top, points.variable, logs)
        found = np.exp(logs - top[points.variable])
        np.add.at(total, points.variable, found)
        return np.asarray(found / total[points.variable])

    def log_total(self) -> float:
        """log Z at a fixed point, with the tilted distributions of the current state."""
        points, joint, solved = self.sites.points, self.sites.joint, self.solved
        has_states = np.diff(points.first) > 0
        of_variable = np.zeros(len(has_states))
        first = np.append(points.first[:-1][has_states], points.first[-1])
        of_variable[has_states] = log_sums(self.totals.logs, first)
        bethe = points.bethe_log_z(self.tilted.log_norm, of_variable)
        volume = 0.5 * (len(joint.real) * np.log(2 * np.pi) - solved.log_det.sum())
        return float(bethe + joint.value(solved.mean) + volume + points.graph.log_constant)
