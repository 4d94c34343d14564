"""Messages about the points of all variables, and the steps that send them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray
from scipy import special

from hylift.errors import ImpossibleEvidenceError, IntractableError
from hylift.graph import FactorGroup
from hylift.inference.held import Held, State
from hylift.inference.message.kernels.particle import send, settle
from hylift.inference.message.layout import (
    Blocks,
    CutShortError,
    FloatArray,
    Points,
    Totals,
    in_blocks,
)
from hylift.inference.message.particle.factors import HybridTerms
from hylift.inference.message.particle.proposals import Particles, Proposals, first_proposals
from hylift.numerics.segments import counts_up, log_sums
from hylift.potentials.base import along_axis, on_grid

BLOCK = 1 << 20
"""Values of a function that are computed at a time."""
MIDDLE = 0.5
BESIDE = (0.25, 0.75)
"""Positions within a stratum at which particles are tried, to see how beliefs depend on them."""
GROWN = 1e9
"""Log-message, in size, that only oscillations reach."""


@dataclass(slots=True, eq=False)
class ParticleMessages:
    """Particles and the messages about them; both change with every step."""

    factors: HybridTerms
    points: Points
    blocks: Blocks
    states: FloatArray  # (point,): of discrete variables
    proposals: Proposals
    particles: Particles
    message: FloatArray  # (entry,): logarithms, the largest of each message 0
    height: FloatArray  # (slot,): the largest entry before that
    totals: Totals
    fewest: FloatArray  # (variable,): effective particles, the least of all steps so far
    go_on: Callable[[], bool] = field(default=lambda: True)
    """Return False to cut work short that has changed nothing yet."""

    @classmethod
    def start(cls, factors: HybridTerms, num_particles: int) -> ParticleMessages:
        """Before the first step: all messages are uniform."""
        num_states = factors.graph.variables.num_states.astype(np.int64)
        num_points = np.where(factors.is_real, num_particles, num_states)
        points = factors.points(num_points)
        factors.check(points)
        states = counts_up(num_points).astype(np.float64)
        first = first_proposals(factors.graph)
        proposals = Proposals.of(factors.graph.variables, *first, num_particles)
        particles = Particles.drawn(proposals, points, states, MIDDLE)
        return cls(
            factors,
            points,
            factors.blocks(points, points),
            states,
            proposals,
            particles,
            np.zeros(points.place[-1]),
            np.zeros(len(factors.terms.slots)),
            Totals.none(points),
            np.full(len(num_points), np.inf),
        )

    def arrays(self) -> State:
        """All that the next step depends on."""
        proposals, particles = self.proposals, self.particles
        is_real, of = self.factors.is_real[self.points.variable], self.points.variable
        low, high = (
            np.where(is_real, bound[of], self.states)
            for bound in (proposals.lower, proposals.upper)
        )
        return {
            "mean": proposals.mean,
            "sd": Held(proposals.sd, 0.0),
            "point": Held(particles.point, low, high),
            "log_base": particles.log_base,
            "total": self.totals.total,
            "zeros": self.totals.zeros,
            **{name: getattr(self, name) for name in ("message", "height", "fewest")},
        }

    def adapt(self, at: float, damping: float) -> float:
        """Adapt the proposals, send messages to new particles, and return the largest change of a
        proposal, in standard deviations; at: position within each stratum."""
        probs = self.probs()
        self.fewest = np.minimum(self.fewest, self.effective(probs))
        proposals, change = self.proposals.adapted(self.points, self.particles, probs, damping)
        self._move(proposals, at)
        return change

    def step(self, damping: float) -> float:
        """Send messages between the same particles, and return the largest change of a message or
        belief: a message may be largest where others leave no probability."""
        found = self._sent(self._cavities(), self.points, self.particles.point)
        return self._settle(found, damping, compare=True)

    def sensitivity(self, damping: float) -> FloatArray:
        """(variable,): total variation between its belief and the one after all particles were
        moved within their strata, and back.

        It would be 0 if sums over particles were integrals. Errors that messages amplify show here
        even where each sum by itself looks accurate.
        """
        probs, num_variables = self.probs(), len(self.fewest)
        farthest = np.zeros(num_variables)
        for at in BESIDE:
            trial = self._copy()
            try:
                trial._move(self.proposals, at)
                trial.step(damping)
                trial._move(self.proposals, MIDDLE)
            except (ImpossibleEvidenceError, IntractableError):  # no point is possible
                return np.ones(num_variables)
            moved = np.abs(trial.probs() - probs)
            half = 0.5 * np.bincount(self.points.variable, moved, num_variables)
            farthest = np.maximum(farthest, half)
        return farthest

    def _copy(self) -> ParticleMessages:
        """A copy of the messages, to try steps on."""
        message, height = self.message.copy(), self.height.copy()
        return replace(self, message=message, height=height, totals=self.totals.copy())

    def _move(self, proposals: Proposals, at: float) -> None:
        """Send messages from the particles to new ones."""
        cavity = self._cavities()
        new = Particles.drawn(proposals, self.points, self.states, at)
        found = self._sent(cavity, self.points, new.point)
        self.proposals, self.particles = proposals, new
        self._settle(found, 0.0)

    def forget_if_grown(self) -> None:
        """Make all messages uniform again, if one has oscillated to a size that damping would take
        very long to undo."""
        if (np.isfinite(self.message) & (self.message < -GROWN)).any():
            for array in (self.message, self.totals.total, self.totals.zeros):
                array[:] = 0.0

    def incoming(self, targets: Points, target: FloatArray) -> FloatArray:
        """(target point,): sum of all messages about points of reals, given as distances from the
        centres."""
        self._check_time()
        message = self._sent(self._cavities(), targets, target, reals_only=True)
        totals = Totals.none(targets)
        totals.gather(message, check=False)
        return totals.logs

    def log_total(self) -> float:
        """Bethe's log Z of these messages."""
        self._check_time()
        factors, terms, cavity = self.factors, self.factors.terms, self._cavities()
        found = self._sent(cavity, self.points, self.particles.point)
        of_factor = log_sums(cavity + found, self.points.place)[terms.slot_ptr[:-1]]
        return self.points.bethe_log_z(of_factor, self.log_sums()) + factors.log_constant

    def log_sums(self) -> FloatArray:
        """(variable,): logarithm of the integral of its belief."""
        return log_sums(self.log_beliefs(), self.points.first)

    def log_beliefs(self) -> FloatArray:
        """(point,): weights of the points, not normalised."""
        return self.totals.logs + self.particles.log_base

    def probs(self) -> FloatArray:
        """(point,): weights of the points, which sum to 1 for each variable."""
        return np.exp(self.log_beliefs() - self.log_sums()[self.points.variable])

    def effective(self, probs: FloatArray) -> FloatArray:
        """(variable,): effective number of points."""
        return 1.0 / np.bincount(self.points.variable, probs**2, len(self.fewest))

    def _check_time(self) -> None:
        if not self.go_on():
            raise CutShortError

    def _cavities(self) -> FloatArray:
        """(entry,): messages from variables to factors, times the weights of points."""
        return self.totals.cavities(self.message, self.particles.log_base, self.go_on)

    def _sent(
        self, cavity: FloatArray, targets: Points, target: FloatArray, *, reals_only: bool = False
    ) -> FloatArray:
        """(entry of the targets,): messages about target points, not normalised."""
        factors, terms, points = self.factors, self.factors.terms, self.points
        found = np.zeros(targets.place[-1])
        in_blocks(
            send, self.blocks if targets is points else factors.blocks(points, targets),
            terms.slot_ptr, terms.slots, terms.num_discrete, terms.base, terms.theta,
            self.proposals.centre, points.first, self.particles.point, points.place, cavity,
            targets.first, target, targets.place, reals_only, factors.room(points), found,
            go_on=self.go_on,
        )  # fmt: skip
        for begin, group in factors.functions:
            self._send_functions(begin, group, cavity, targets, target, found)
        return found

    def _send_functions(
        self, begin: int, group: FactorGroup, cavity: FloatArray, targets: Points,
        target: FloatArray, found: FloatArray,
    ) -> None:  # fmt: skip
        """Write the messages of functions, whose values are computed on grids of points.

        A slot has equally many targets in all factors of a group, or none.
        """
        sizes = np.diff(self.points.first)[group.scope[0]]
        received = np.diff(targets.first)[group.scope]
        for slot in range(group.arity):
            takers, count = np.flatnonzero(received[:, slot]), int(received[:, slot].max())
            joint = max(1, int(np.prod(sizes) // sizes[slot]) * count)
            step = max(1, BLOCK // joint)
            for start in range(0, len(takers), step):
                self._check_time()
                rows = takers[start : start + step]
                link = self.factors.terms.slot_ptr[begin + rows][:, None] + np.arange(group.arity)
                values = self._grid(group.take(rows), slot, targets, target)
                for other in range(group.arity):
                    if other != slot:
                        first = self.points.place[link[:, other]]
                        entries = first[:, None] + np.arange(sizes[other])
                        shape = along_axis(other, group.arity, len(rows))
                        values = values + cavity[entries].reshape(shape)
                last = np.moveaxis(values, slot + 1, 1).reshape(len(rows), count, -1)
                entries = targets.place[link[:, slot]][:, None] + np.arange(count)
                with np.errstate(divide="ignore"):
                    found[entries] = special.logsumexp(last, axis=2)

    def _grid(
        self, group: FactorGroup, slot: int, targets: Points, target: FloatArray
    ) -> FloatArray:
        """(factor, point of slot 0, …): log-values, one slot at its targets."""
        grid: list[NDArray[np.float64]] = []
        for place in range(group.arity):
            of, points = (targets, target) if place == slot else (self.points, self.particles.point)
            variable = group.scope[:, place]
            count = int(of.first[variable[0] + 1] - of.first[variable[0]])
            at = points[of.first[variable][:, None] + np.arange(count)]
            grid.append(at + self.proposals.centre[variable][:, None])
        return on_grid(group.potential, group.row, grid)

    def _settle(self, found: FloatArray, damping: float, *, compare: bool = False) -> float:
        """Adopt new messages, and return the largest change of a message; or, if it is to compare,
        of a belief, if that is larger."""
        change, points = np.zeros(len(self.height)), self.points
        state = (self.message, self.height, change)
        for slot in in_blocks(settle, points.slot_blocks, points.place, found, damping, *state):
            if slot >= 0:
                raise points.contradiction(int(points.terms.term[slot]))
        return max(
            float(change.max(initial=0.0)), self.totals.gather(self.message, compare=compare)
        )
