"""Slow and obviously right: the objectives of variational inference, term by term.

All of it holds for graphs with multiplicities: a class that stands in two slots of a factor is
two independent variables with one belief.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special, stats

from hylift.graph import FactorGraph
from hylift.potentials import SlotBelief
from hylift.potentials.base import along_axis, weighted_sum

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Mixture:
    """Σ_k w_k Π_i q_i^k: a Gaussian for each real, probabilities for each discrete variable."""

    weights: Array  # (component,)
    mean: Array  # (component, variable)
    var: Array  # (component, variable)
    probs: Array  # (component, variable, state), 0 beyond the last state
    num_states: NDArray[np.integer]  # (variable,), 0 for a real

    @classmethod
    def random(
        cls, graph: FactorGraph, num_components: int, rng: np.random.Generator, *, zeros: bool
    ) -> Mixture:
        """`zeros`: some states are impossible."""
        num_states, shape = graph.variables.num_states, (num_components, graph.num_variables)
        probs = rng.uniform(0.1, 1.0, (*shape, max(num_states, default=0)))
        probs *= np.arange(probs.shape[2]) < num_states[:, None]
        if zeros:
            probs[..., 1:] *= rng.random(probs[..., 1:].shape) < 0.7
        probs /= np.where(num_states[:, None] > 0, probs.sum(axis=2, keepdims=True), 1.0)
        weights = rng.dirichlet(np.ones(num_components))
        return cls(weights, rng.normal(size=shape), rng.uniform(0.2, 2.0, shape), probs, num_states)

    def spread(self, variable_to_class: NDArray[np.integer]) -> Mixture:
        """The beliefs about classes as beliefs about their members."""
        at = variable_to_class
        return Mixture(
            self.weights, self.mean[:, at], self.var[:, at], self.probs[:, at], self.num_states[at]
        )

    def beliefs(self, component: int, scope: NDArray[np.integer]) -> list[SlotBelief]:
        """One component's belief about each slot of factors; scope: (factor, slot)."""
        num_reals = np.count_nonzero(self.num_states[scope[0]] == 0)
        num_nodes = 10 if num_reals <= 2 else 6
        beliefs = []
        for variable in scope.T:
            mean, var = self.mean[component, variable], self.var[component, variable]
            size = self.num_states[variable].max()
            beliefs.append(
                SlotBelief.discrete(self.probs[component, variable, :size])
                if size
                else SlotBelief.gaussian(mean, var, num_nodes)
            )
        return beliefs

    def log_density(self, component: int, variable: NDArray[np.integer], points: Array) -> Array:
        """(factor, point): log q_i^k of the variable (factor,) in one slot, at its points."""
        if self.num_states[variable].max() == 0:
            mean, var = self.mean[component, variable], self.var[component, variable]
            return stats.norm.logpdf(points, mean[:, None], np.sqrt(var)[:, None])
        with np.errstate(divide="ignore"):
            return np.log(self.probs[component, variable, : points.shape[1]])


def bethe(graph: FactorGraph, q: Mixture) -> float:
    """Σ_c n_c E[log q_c - log ψ_c] + Σ_i n_i (1 - N_i) E[log q_i], N_i factors at each variable."""
    total = expected_energy(graph, q)
    counting = graph.variables.multiplicity.copy()
    for group in graph.groups:
        if len(group):
            total += float(group.multiplicity @ negative_entropy(q, group.scope))
        for slot in range(group.arity):
            np.subtract.at(counting, group.scope[:, slot], group.multiplicity)
    for variable, number in enumerate(counting):
        total += number * float(negative_entropy(q, np.array([[variable]]))[0])
    return total


def jensen(graph: FactorGraph, q: Mixture) -> float:
    """-Σ_c n_c E[log ψ_c] + Σ_k w_k log Σ_j w_j exp(Σ_i n_i log ∫ q_i^k q_i^j)."""
    total = expected_energy(graph, q)
    for k, weight in enumerate(q.weights):
        overlaps = [log_overlap(graph, q, k, j) for j in range(len(q.weights))]
        total += weight * float(special.logsumexp(overlaps, b=q.weights))
    return total


def log_overlap(graph: FactorGraph, q: Mixture, k: int, j: int) -> float:
    """Σ_i n_i log ∫ q_i^k q_i^j."""
    total = 0.0
    for i, multiplicity in enumerate(graph.variables.multiplicity):
        if graph.variables.num_states[i]:
            with np.errstate(divide="ignore"):
                overlap = np.log(q.probs[k, i] @ q.probs[j, i])
        else:
            sd = np.sqrt(q.var[k, i] + q.var[j, i])
            overlap = stats.norm.logpdf(q.mean[k, i], q.mean[j, i], sd)
        total += multiplicity * float(overlap)
    return total


def expected_energy(graph: FactorGraph, q: Mixture) -> float:
    """-E[log ψ] of all factors, and the constant."""
    total = -graph.log_constant
    for group in graph.groups:
        if not len(group):
            continue
        for k, weight in enumerate(q.weights):
            beliefs = q.beliefs(k, group.scope)
            values = group.potential.expectation(group.row, beliefs)
            total -= weight * float((group.multiplicity * values).sum())
    return total


def negative_entropy(q: Mixture, scope: NDArray[np.integer]) -> Array:
    """(factor,): E[log q_c], on the product of the nodes and states of each component.

    scope: (factor, slot); the slots of a factor are independent given the component.
    """
    num_factors, arity = scope.shape
    total = np.zeros(num_factors)
    for k, weight in enumerate(q.weights):
        beliefs = q.beliefs(k, scope)
        terms = []
        for j, other in enumerate(q.weights):
            log_q = np.full((num_factors,) + (1,) * arity, np.log(other))
            for slot, belief in enumerate(beliefs):
                at_points = q.log_density(j, scope[:, slot], belief.points)
                log_q = log_q + at_points.reshape(along_axis(slot, arity, num_factors))
            terms.append(log_q)
        log_density = special.logsumexp(np.stack(terms), axis=0)
        total += weight * weighted_sum(log_density, [belief.weights for belief in beliefs])
    return total


def energy(graph: FactorGraph, values: Array) -> float:
    """-log ψ of all factors at an assignment (variable,), and the constant."""
    total = -graph.log_constant
    for group in graph.groups:
        for scope, row, multiplicity in zip(
            group.scope, group.row, group.multiplicity, strict=True
        ):
            points = [values[[variable]] for variable in scope]
            total -= multiplicity * float(group.potential.log_value(np.array([row]), points)[0])
    return total
