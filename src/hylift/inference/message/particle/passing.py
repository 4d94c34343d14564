"""The messages about points, and the steps in which they are sent."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy import special

from hylift.archive import Arrays
from hylift.errors import HyliftError
from hylift.graph import FactorGroup
from hylift.inference.message.kernels.discrete import OTHERS, gather
from hylift.inference.message.kernels.particle import send, settle, tell
from hylift.inference.message.links import FloatArray
from hylift.inference.message.particle.factors import (
    Factors,
    Ids,
    Places,
    blocks_of,
    check_points,
    impossible,
    state_points,
)
from hylift.inference.message.particle.proposals import Particles, Proposals
from hylift.inference.message.particle.start import first_proposals
from hylift.numerics.segments import largest, largest_change, log_sums
from hylift.numerics.threads import in_order
from hylift.potentials.base import along_axis

BLOCK = 1 << 20
"""Values of a function that are computed at a time."""
MIDDLE = 0.5
BESIDE = (0.25, 0.75)
"""Places in a stratum to which particles are moved to see what depends on where they are."""
GROWN = 1e9
"""Size of the logarithm of a message at which swings have made it."""


@dataclass(slots=True, eq=False)
class Passing:
    """Particles, and the messages about them; both change with every step."""

    factors: Factors
    places: Places
    blocks: list[tuple[int, int]]
    states: FloatArray  # (point,): of discrete variables
    proposals: Proposals
    particles: Particles
    message: FloatArray  # (entry,): logarithms, the largest of each message 0
    height: FloatArray  # (link,): what was the largest entry before
    total: FloatArray  # (point,): what all messages say
    zeros: FloatArray  # (point,): how many of them say that it is impossible
    fewest: FloatArray  # (variable,): effective particles, the least of all steps so far

    @classmethod
    def start(cls, factors: Factors, num_particles: int) -> Passing:
        """Before the first step: every message says that all points are alike."""
        num_states = factors.graph.variables.num_states.astype(np.int64)
        num_points = np.where(factors.is_real, num_particles, num_states)
        places = Places.of(factors, num_points)
        check_points(factors, places)
        states = state_points(num_points)
        proposals = Proposals.of(factors, *first_proposals(factors.graph), num_particles)
        particles = Particles.drawn(proposals, factors, places, states, MIDDLE)
        total, zeros = np.zeros((2, places.first[-1]))
        return cls(
            factors,
            places,
            blocks_of(factors, places, places),
            states,
            proposals,
            particles,
            np.zeros(places.place[-1]),
            np.zeros(len(factors.links)),
            total,
            zeros,
            np.full(len(num_points), np.inf),
        )

    def arrays(self) -> Arrays:
        """All that the next step depends on."""
        return {
            "mean": self.proposals.mean,
            "sd": self.proposals.sd,
            "point": self.particles.point,
            "log_base": self.particles.log_base,
            "message": self.message,
            "height": self.height,
            "total": self.total,
            "zeros": self.zeros,
            "fewest": self.fewest,
        }

    def adapt(self, at: float, damping: float) -> float:
        """Sends messages from the particles to new ones, drawn at so much of each stratum; returns
        the largest change of a proposal, in standard deviations."""
        probs = self.probs()
        self.fewest = np.minimum(self.fewest, self.effective(probs))
        proposals, change = self.proposals.adapted(self.places, self.particles, probs, damping)
        self._move(proposals, at)
        return change

    def step(self, damping: float) -> float:
        """Sends messages between the same particles; returns the largest change of one, or of what
        they say together: a message may be largest where other messages leave nothing."""
        found = self._sent(self._cavities(), self.places, self.particles.point)
        before = self._relative_beliefs()
        change = self._settle(found, damping)
        after = self._relative_beliefs()
        return max(change, largest_change(before, after))

    def sensitivity(self, damping: float) -> FloatArray:
        """(variable,): total variation between its belief and that after the particles of all reals
        were moved within their strata, and back.

        Beliefs would not change if sums over particles were integrals. Errors that messages pass on
        and amplify show here, even where each sum by itself looks accurate.
        """
        probs, num_variables = self.probs(), len(self.fewest)
        farthest = np.zeros(num_variables)
        for at in BESIDE:
            trial = self._copy()
            try:
                trial._move(self.proposals, at)
                trial.step(damping)
                trial._move(self.proposals, MIDDLE)
            except HyliftError:  # nothing is possible at the places that were tried
                return np.ones(num_variables)
            moved = np.abs(trial.probs() - probs)
            half = 0.5 * np.bincount(self.places.variable, moved, num_variables)
            farthest = np.maximum(farthest, half)
        return farthest

    def _copy(self) -> Passing:
        """The same messages, which then change without these."""
        own = ("message", "height", "total", "zeros")
        return replace(self, **{name: getattr(self, name).copy() for name in own})

    def _move(self, proposals: Proposals, at: float) -> None:
        """Sends messages from the particles to new ones, drawn at so much of each stratum."""
        cavity = self._cavities()
        new = Particles.drawn(proposals, self.factors, self.places, self.states, at)
        found = self._sent(cavity, self.places, new.point)
        self.proposals, self.particles = proposals, new
        self._settle(found, 0.0)

    def forget_if_grown(self) -> None:
        """Lets every message say again that all points are alike, if swings have made one so large
        that damping would take very long to undo it."""
        if (np.isfinite(self.message) & (self.message < -GROWN)).any():
            for array in (self.message, self.total, self.zeros):
                array[:] = 0.0

    def incoming(self, targets: Places, target: FloatArray) -> FloatArray:
        """(target point,): what all messages say about points of reals, told by their distances
        from the centres."""
        message = self._sent(self._cavities(), targets, target, reals_only=True)
        total, zeros = np.zeros((2, targets.first[-1]))
        self._gather(targets, message, total, zeros)
        return np.where(zeros > OTHERS, -np.inf, total)

    def log_total(self) -> float:
        """Bethe's log Z of these messages.

        Σ n_v log Z_v + Σ n_c (log Z_c - Σ log Z_v of its slots): right at a fixed point, and near
        one up to the square of what is missing.
        """
        factors, links, terms = self.factors, self.factors.links, self.factors.terms
        cavity = self._cavities()
        found = self._sent(cavity, self.places, self.particles.point)
        first = terms.slot_ptr[:-1]
        of_factor = np.zeros(0)
        if len(first):
            of_factor = log_sums(cavity + found, self.places.place)[first]
        of_variable = self.log_sums()
        told = np.bincount(links.factor, of_variable[links.variable], len(terms))
        own = float(factors.graph.variables.multiplicity @ of_variable)
        return own + float(terms.multiplicity @ (of_factor - told)) + factors.log_constant

    def log_sums(self) -> FloatArray:
        """(variable,): logarithm of the integral of its belief."""
        return log_sums(self.log_beliefs(), self.places.first)

    def log_beliefs(self) -> FloatArray:
        """(point,): weights of the points, not normalised."""
        return np.where(self.zeros > OTHERS, -np.inf, self.total) + self.particles.log_base

    def _relative_beliefs(self) -> FloatArray:
        """(point,): logarithms of the beliefs, the largest of each variable 0."""
        logs, first = self.log_beliefs() - self.particles.log_base, self.places.first
        return logs - largest(logs, first)[self.places.variable]

    def probs(self) -> FloatArray:
        """(point,): weights of the points, of each variable together 1."""
        return np.exp(self.log_beliefs() - self.log_sums()[self.places.variable])

    def effective(self, probs: FloatArray) -> FloatArray:
        """(variable,): how many points its weights are worth."""
        return 1.0 / np.bincount(self.places.variable, probs**2, len(self.fewest))

    def _cavities(self) -> FloatArray:
        """(entry,): what variables tell factors, with the weights of their points."""
        cavity, places = np.empty_like(self.message), self.places

        def run(begin: int, end: int) -> None:
            tell(
                begin, end, self.factors.links.variable, places.first, self.particles.log_base,
                places.place, self.message, self.total, self.zeros, cavity,
            )  # fmt: skip

        for _ in in_order(run, places.link_blocks):
            pass
        return cavity

    def _sent(
        self, cavity: FloatArray, targets: Places, target: FloatArray, *, reals_only: bool = False
    ) -> FloatArray:
        """(entry of the targets,): messages about target points, not normalised."""
        factors, terms, places = self.factors, self.factors.terms, self.places
        found = np.zeros(targets.place[-1])
        room = _room(factors, places)
        centre = self.proposals.centre

        def run(begin: int, end: int) -> None:
            send(
                begin, end, terms.slot_ptr, terms.slots, terms.num_discrete, terms.base,
                terms.theta, centre, places.first, self.particles.point, places.place, cavity,
                targets.first, target, targets.place, reals_only, room, found,
            )  # fmt: skip

        blocks = self.blocks if targets is places else blocks_of(factors, places, targets)
        for _ in in_order(run, blocks):
            pass
        for begin, group in factors.functions:
            self._send_functions(begin, group, cavity, targets, target, found)
        return found

    def _send_functions(
        self, begin: int, group: FactorGroup, cavity: FloatArray, targets: Places,
        target: FloatArray, found: FloatArray,
    ) -> None:  # fmt: skip
        """Writes the messages of functions, whose values are computed on grids of points.

        A slot has equally many targets in all factors of a group, or none.
        """
        sizes = np.diff(self.places.first)[group.scope[0]]
        received = np.diff(targets.first)[group.scope]
        for slot in range(group.arity):
            takers, count = np.flatnonzero(received[:, slot]), int(received[:, slot].max())
            joint = max(1, int(np.prod(sizes) // sizes[slot]) * count)
            for some in _stretches(len(takers), max(1, BLOCK // joint)):
                rows = takers[some]
                link = self.factors.terms.slot_ptr[begin + rows][:, None] + np.arange(group.arity)
                values = self._grid(group.take(rows), slot, targets, target)
                for other in range(group.arity):
                    if other != slot:
                        entries = self.places.place[link[:, other]][:, None] + np.arange(
                            sizes[other]
                        )
                        shape = along_axis(other, group.arity, len(rows))
                        values = values + cavity[entries].reshape(shape)
                last = np.moveaxis(values, slot + 1, 1).reshape(len(rows), count, -1)
                entries = targets.place[link[:, slot]][:, None] + np.arange(count)
                with np.errstate(divide="ignore"):
                    found[entries] = special.logsumexp(last, axis=2)

    def _grid(
        self, group: FactorGroup, slot: int, targets: Places, target: FloatArray
    ) -> FloatArray:
        """(factor, point of slot 0, …): log-values, one slot at its targets."""
        grid: list[NDArray[np.float64]] = []
        for place in range(group.arity):
            of, points = (targets, target) if place == slot else (self.places, self.particles.point)
            variable = group.scope[:, place]
            count = int(of.first[variable[0] + 1] - of.first[variable[0]])
            at = points[of.first[variable][:, None] + np.arange(count)]
            at = at + self.proposals.centre[variable][:, None]
            grid.append(at.reshape(along_axis(place, group.arity, len(group))))
        return group.potential.log_value(group.row.reshape((-1,) + (1,) * group.arity), grid)

    def _settle(self, found: FloatArray, damping: float) -> float:
        """Takes over new messages; returns the largest change of one."""
        change, places = np.zeros(len(self.height)), self.places

        def run(begin: int, end: int) -> int:
            return settle(
                begin, end, places.place, found, damping, self.message, self.height, change
            )

        for link in in_order(run, places.link_blocks):
            if link >= 0:
                raise impossible(
                    self.factors, self.factors.slots(int(self.factors.links.factor[link]))
                )
        lost = self._gather(places, self.message, self.total, self.zeros)
        if lost >= 0:
            raise impossible(self.factors, np.array([lost]))
        return float(change.max(initial=0.0))

    def _gather(
        self, places: Places, message: FloatArray, total: FloatArray, zeros: FloatArray
    ) -> int:
        """Adds up what is said about points; returns a variable that is left none, or -1."""
        links = self.factors.links
        everyone = np.arange(len(places.first) - 1)

        def run(begin: int, end: int) -> int:
            return gather(
                begin, end, everyone, links.variable_ptr, links.order, links.count, places.place,
                places.first, message, total, zeros,
            )  # fmt: skip

        return max(in_order(run, places.variable_blocks(links)), default=-1)


def _room(factors: Factors, places: Places) -> Ids:
    """Sizes of what the kernel needs to work: the largest arity, points of a slot, joint states,
    and joint states times reals."""
    terms = factors.terms
    arity = np.diff(terms.slot_ptr)
    states = factors.graph.variables.num_states[terms.slots].astype(np.int64)
    joint = np.ones(len(terms), dtype=np.int64)
    if len(terms):
        joint = np.multiply.reduceat(np.maximum(states, 1), terms.slot_ptr[:-1])
    joint = joint[: factors.num_plain]
    reals = (arity - terms.num_discrete)[: factors.num_plain]
    sizes = (arity, np.diff(places.first), joint, joint * reals)
    return np.array([size.max(initial=1) for size in sizes], dtype=np.int64)


def _stretches(count: int, step: int) -> Iterator[Ids]:
    for begin in range(0, count, step):
        yield np.arange(begin, min(count, begin + step))
