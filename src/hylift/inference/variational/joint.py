"""Mixtures whose components have one joint Gaussian for all reals.

A component is q_k = Π categorical · N(μ_k, J_k⁻¹) with J_k = Σ E_k[-2 A(s)], which given its states
is the best precision for it by itself. So its parameters are those of a product without variances:
where states and means are, the Gaussian follows, on the structure of the model.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from hylift.components import Layout
from hylift.components.categorical import draw_states
from hylift.inference.expectation.averaged import averaged, solved_given, tables_of
from hylift.inference.expectation.joint import Ids, Solved
from hylift.inference.expectation.kernels import averages as kernels
from hylift.inference.expectation.layout import Sites, with_powers
from hylift.inference.message.layout import Work
from hylift.inference.variational.problem import FitProblem, FloatArray, Mixtures
from hylift.inference.variational.slots import Slots
from hylift.numerics.segments import offsets


@dataclass(frozen=True, eq=False)
class JointGaussians:
    """The structure of the joint Gaussians of a ground problem, and its parameters among those of
    mixtures."""

    sites: Sites
    layout: Layout
    part: NDArray[np.int32]  # (variable,)
    num_parts: int

    @classmethod
    def of(cls, problem: FitProblem) -> JointGaussians:
        sites = Sites.of(with_powers(problem.graph))
        return cls(sites, problem.layout, problem.part, problem.num_parts)

    @cached_property
    def with_reals(self) -> Work:
        """The sites that reals are in."""
        some = np.flatnonzero(self.sites.dim > 0)
        return Work.of(some, self.sites.cost[some])

    @cached_property
    def mean_at(self) -> Ids:
        """(step,): the entry of its mean; its variance comes next."""
        return self.layout.first[self.sites.joint.real]

    @cached_property
    def step_part(self) -> NDArray[np.int32]:
        """(step,)"""
        return self.part[self.sites.joint.real]

    @cached_property
    def entry_part(self) -> NDArray[np.int32]:
        """(entry of the precision,)"""
        return np.concatenate([self.step_part, self.step_part[self.sites.joint.owner]])

    @cached_property
    def states(self) -> Ids:
        """(point,): the entry of each state."""
        return self.layout.entries_of(self.layout.discrete)

    @cached_property
    def tables(self) -> tuple[Work, Slots, Ids, NDArray[np.int32]]:
        """The sites with states and reals, their discrete slots, and where their tables begin."""
        sites, terms = self.sites, self.sites.terms
        some = np.flatnonzero((sites.dim > 0) & (terms.num_discrete > 0))
        some = some[np.argsort(sites.part[some], kind="stable")]
        small = terms.take(some)
        is_state = terms.num_states[small.slots] > 0
        slot_ptr = offsets(small.num_discrete)
        slots = Slots.of(self.layout, self.part, slot_ptr, small.slots[is_state])
        return Work.of(some, sites.cost[some]), slots, offsets(small.num_joint), small.num_discrete

    def at(self, q: Mixtures) -> AtMixture:
        """The Gaussians of one mixture."""
        return AtMixture(self, q, [self.given(q, k) for k in range(q.num_components)])

    def given(self, q: Mixtures, k: int) -> Solved:
        """The best Gaussian beside the states of a component, with its own mean."""
        probs = np.ascontiguousarray(q.entries[0, self.states, k])
        return solved_given(self.sites, averaged(self.sites, probs, self.with_reals))

    def settled(self, q: Mixtures, *, variances: bool = False) -> Mixtures:
        """The mixture with the best mean of each component by itself; or with the variances that
        follow from its states."""
        entries = q.entries.copy()
        for k in range(q.num_components):
            solved = self.given(q, k)
            if variances:
                entries[0, self.mean_at + 1, k] = solved.covariance[: len(self.mean_at)]
            else:
                entries[0, self.mean_at, k] = solved.mean
        return Mixtures(q.weights, entries)

    def by_part(self, of_component: FloatArray) -> FloatArray:
        """(part,): sums over components of the Gaussian."""
        return np.bincount(self.sites.of_component, of_component, self.num_parts).astype(np.float64)

    def draws(self, q: Mixtures, size: int, rng: np.random.Generator) -> FloatArray:
        """Draws (size, variable) of a mixture: states and reals."""
        layout, elimination = self.layout, self.sites.joint.elimination
        component = draw_states(q.weights[0], size, rng)[:, self.part]
        values = np.zeros((size, len(layout)))
        for k in range(q.num_components):
            drawn = np.zeros((size, len(layout)))
            for at, family in layout.batches(q.entries[0], layout.discrete):
                drawn[:, layout.discrete[at]] = family.draw(k, size, rng)
            noise = rng.standard_normal((size, len(self.mean_at)))
            factor, pivot = self.given(q, k).room[:2]
            kernels.spread_draws(elimination.ptr, elimination.later, factor, pivot, noise)
            drawn[:, self.sites.joint.real] = q.entries[0, self.mean_at, k] + noise
            values = np.where(component == k, drawn, values)
        return values


@dataclass(frozen=True, eq=False)
class AtMixture:
    """The Gaussians of a mixture, and what they add to its free energy and to the slopes of it."""

    joint: JointGaussians
    q: Mixtures
    solved: list[Solved]  # (component,)

    @property
    def at_means(self) -> Mixtures:
        """The mixture with variances of 0: their part of the energy is known."""
        entries = self.q.entries.copy()
        entries[0, self.joint.mean_at + 1] = 0.0
        return Mixtures(self.q.weights, entries)

    @property
    def of_states(self) -> Mixtures:
        """The mixture with the same standard normal for all reals, which share all of it."""
        entries = self.q.entries.copy()
        entries[0, self.joint.mean_at], entries[0, self.joint.mean_at + 1] = 0.0, 1.0
        return Mixtures(self.q.weights, entries)

    def add_values(self, value: FloatArray) -> None:
        """Add to value (1, part, component): the energy that covariances make, and the entropy of
        the Gaussian beyond that of standard normals."""
        joint = self.joint
        count = np.bincount(joint.step_part, minlength=joint.num_parts)
        for k, one in enumerate(self.solved):
            log_det = np.where(one.failed, np.inf, one.log_det)
            value[0, :, k] += 0.5 * (count + joint.by_part(log_det))

    @cached_property
    def pairs(self) -> dict[tuple[int, int], tuple[FloatArray, Solved]]:
        """For two components: the difference Δ of their means; and (J_k + J_j)⁻¹, with the mean
        (J_k + J_j)⁻¹ J_j Δ."""
        found = {}
        for k, j in combinations(range(len(self.solved)), 2):
            one, other = self.solved[k], self.solved[j]
            apart = self.q.entries[0, self.joint.mean_at, k]
            apart = apart - self.q.entries[0, self.joint.mean_at, j]
            both = Solved.start(self.joint.sites.joint)
            both.entries[:] = one.entries + other.entries
            both.total[:] = self.joint.sites.joint.times(other.entries, apart)
            both.solve(np.arange(self.joint.sites.joint.num_components))
            found[k, j] = apart, both
        return found

    def add_overlaps(self, overlaps: FloatArray) -> None:
        """Add the logarithms of Bhattacharyya coefficients to overlaps (1, part, k, j):
        -¼ Δᵀ J_k (J_k + J_j)⁻¹ J_j Δ + ¼ log |J_k| |J_j| - ½ log |(J_k + J_j) / 2|."""
        joint, gaussian = self.joint, self.joint.sites.joint
        count = np.bincount(joint.step_part, minlength=joint.num_parts)
        for (k, j), (apart, both) in self.pairs.items():
            one, other = self.solved[k], self.solved[j]
            pull = apart * gaussian.times(one.entries, both.mean)
            distance = np.bincount(joint.step_part, pull, joint.num_parts)
            volume = joint.by_part(one.log_det + other.log_det - 2.0 * both.log_det)
            found = 0.25 * (volume - distance) + 0.5 * np.log(2.0) * count
            overlaps[0, :, k, j] += found
            overlaps[0, :, j, k] += found

    def add_slopes(self, share: FloatArray, gradient: FloatArray) -> None:
        """Add what states and means are worth through the Gaussians to gradient (1, entry,
        component); share: (1, part, k, j), of j in Σ_j w_j B_kj."""
        joint, gaussian, weights = self.joint, self.joint.sites.joint, self.q.weights[0]
        slope = np.zeros((len(self.solved), len(joint.entry_part)))  # of the precision
        for (k, j), (apart, both) in self.pairs.items():
            # S_kj stands in the sums of k and of j.
            pull = weights[:, k] * share[0, :, k, j] + weights[:, j] * share[0, :, j, k]
            push = 0.5 * pull[joint.step_part] * gaussian.times(self.solved[k].entries, both.mean)
            gradient[0, joint.mean_at, k] -= push
            gradient[0, joint.mean_at, j] += push
            of_entry = pull[joint.entry_part]
            for number, vector in ((k, both.mean), (j, both.mean - apart)):
                own = self.solved[number].covariance - gaussian.square(vector)
                slope[number] += of_entry * (0.25 * own - 0.5 * both.covariance)
        gradient[0, joint.mean_at + 1] = 0.0
        for k, one in enumerate(self.solved):
            # d J = -2 E[dA]: the slope counts as covariance.
            weight = weights[joint.entry_part, k]
            self._add_tables(k, one.covariance + 2.0 * slope[k] / weight, gradient)

    def _add_tables(self, k: int, covariance: FloatArray, gradient: FloatArray) -> None:
        """Add the slopes of -Σ E[A] · covariance, of states."""
        joint, sites = self.joint, self.joint.sites
        work, slots, table_ptr, num_discrete = joint.tables
        size = len(table_ptr) - 1
        if not size:
            return
        nothing = np.zeros(len(joint.mean_at))
        table = tables_of(sites, work, nothing, covariance, table_ptr, is_whole=False)
        entries = np.ascontiguousarray(self.q.entries[:, :, [k]])
        weights = np.ascontiguousarray(self.q.weights[:, :, [k]])
        found, value = np.zeros(entries.shape), np.zeros(weights.shape)

        terms = num_discrete, table_ptr, np.ones(size), table
        slots.add_energies(terms, np.inf, joint.layout.first, entries, weights, found, value)
        gradient[0, :, k] += found[0, :, 0]
