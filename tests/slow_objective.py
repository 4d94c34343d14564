"""Slow and obviously right: the objectives of variational inference, term by term.

All of it holds for graphs with multiplicities: a class that stands in two slots of a factor is
two independent variables with one belief.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special, stats

from expectations import SlotBelief, expectation, weighted_sum
from hylift.components import Layout
from hylift.components.family import BETA, CATEGORICAL
from hylift.graph import FactorGraph
from hylift.potentials.base import along_axis

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Betas:
    """Reals of a mixture that are Beta on their intervals; what it says of others is not read."""

    is_beta: NDArray[np.bool_]  # (variable,)
    alpha: Array  # (component, variable)
    beta: Array  # (component, variable)
    lower: Array  # (variable,)
    upper: Array  # (variable,)

    @classmethod
    def none(cls, num_components: int, num_variables: int) -> Betas:
        shape = (num_components, num_variables)
        is_beta = np.zeros(num_variables, dtype=bool)
        zeros, ones = np.zeros(num_variables), np.ones(num_variables)
        return cls(is_beta, np.ones(shape), np.ones(shape), zeros, ones)

    def take(self, at: NDArray[np.integer]) -> Betas:
        """Those of these variables."""
        return Betas(
            self.is_beta[at], self.alpha[:, at], self.beta[:, at], self.lower[at], self.upper[at]
        )

    def rule(self, component: int, variable: int, num_nodes: int) -> tuple[Array, Array]:
        """Nodes and weights (node,) of one variable, in its own units."""
        alpha, beta = self.alpha[component, variable], self.beta[component, variable]
        nodes, weights = special.roots_jacobi(num_nodes, beta - 1.0, alpha - 1.0)
        lower, upper = self.lower[variable], self.upper[variable]
        return lower + (upper - lower) * (1.0 + nodes) / 2.0, weights / weights.sum()

    def log_density(self, component: int, variable: int, points: Array) -> Array:
        """(point,): log q_i^k of one variable."""
        alpha, beta = self.alpha[component, variable], self.beta[component, variable]
        lower, upper = self.lower[variable], self.upper[variable]
        return stats.beta.logpdf(points, alpha, beta, loc=lower, scale=upper - lower)

    def log_overlap(self, k: int, j: int, variable: int) -> float:
        """log ∫ q_i^k q_i^j, which is infinite where both densities have a pole at one end."""
        alpha = self.alpha[k, variable] + self.alpha[j, variable] - 1.0
        beta = self.beta[k, variable] + self.beta[j, variable] - 1.0
        if min(alpha, beta) <= 0.0:
            return np.inf
        own = special.betaln(self.alpha[:, variable], self.beta[:, variable])
        width = self.upper[variable] - self.lower[variable]
        return float(special.betaln(alpha, beta) - own[k] - own[j] - np.log(width))


@dataclass(frozen=True, slots=True)
class Mixture:
    """Σ_k w_k Π_i q_i^k: Gaussian or Beta for each real, probabilities for each discrete variable.

    The mean and variance of a real that is Beta are those of its Beta.
    """

    weights: Array  # (component,)
    mean: Array  # (component, variable)
    var: Array  # (component, variable)
    probs: Array  # (component, variable, state), 0 beyond the last state
    num_states: NDArray[np.integer]  # (variable,), 0 for a real
    betas: Betas

    @classmethod
    def random(
        cls,
        graph: FactorGraph,
        num_components: int,
        rng: np.random.Generator,
        *,
        zeros: bool,
        betas: bool = False,
    ) -> Mixture:
        """`zeros`: some states are impossible. `betas`: reals bounded on both sides are Beta."""
        variables, shape = graph.variables, (num_components, graph.num_variables)
        num_states = variables.num_states
        probs = rng.uniform(0.1, 1.0, (*shape, max(num_states, default=0)))
        probs *= np.arange(probs.shape[2]) < num_states[:, None]
        if zeros:
            probs[..., 1:] *= rng.random(probs[..., 1:].shape) < 0.7
        probs /= np.where(num_states[:, None] > 0, probs.sum(axis=2, keepdims=True), 1.0)
        weights = rng.dirichlet(np.ones(num_components))
        mean, var = rng.normal(size=shape), rng.uniform(0.2, 2.0, shape)
        if not betas:
            return cls(weights, mean, var, probs, num_states, Betas.none(*shape))
        is_beta = np.isfinite(variables.upper - variables.lower) & (num_states == 0)
        alpha, beta = rng.uniform(1.5, 6.0, (2, *shape))
        drawn = Betas(is_beta, alpha, beta, variables.lower, variables.upper)
        return cls.of(weights, mean, var, probs, num_states, drawn)

    @classmethod
    def from_entries(
        cls, graph: FactorGraph, layout: Layout, weights: Array, entries: Array
    ) -> Mixture:
        """The mixture of these parameters; weights: (component,), entries: (entry, component)."""
        num_states, shape = graph.variables.num_states, (len(weights), graph.num_variables)
        probs = np.zeros((*shape, max(num_states, default=0)))
        first, second = np.ones(shape), np.ones(shape)
        for i, family in enumerate(layout.family):
            own = entries[layout.first[i] : layout.first[i + 1]]
            if family == CATEGORICAL:
                probs[:, i, : len(own)] = own.T
            else:
                first[:, i], second[:, i] = own
        betas = Betas(layout.family == BETA, first, second, layout.lower, layout.upper)
        return cls.of(np.asarray(weights), first, second, probs, num_states, betas)

    @classmethod
    def of(
        cls,
        weights: Array,
        mean: Array,
        var: Array,
        probs: Array,
        num_states: NDArray[np.integer],
        betas: Betas,
    ) -> Mixture:
        """The mixture whose mean and variance, where a real is Beta, are still to be filled in."""
        at = betas.is_beta
        alpha, beta, lower = betas.alpha[:, at], betas.beta[:, at], betas.lower[at]
        mean, var, width = mean.copy(), var.copy(), betas.upper[at] - lower
        mean[:, at] = stats.beta.mean(alpha, beta, loc=lower, scale=width)
        var[:, at] = stats.beta.var(alpha, beta, loc=lower, scale=width)
        return cls(weights, mean, var, probs, num_states, betas)

    def spread(self, variable_to_class: NDArray[np.integer]) -> Mixture:
        """The beliefs about classes as beliefs about their members."""
        at = variable_to_class
        mean, var, probs = self.mean[:, at], self.var[:, at], self.probs[:, at]
        return Mixture(self.weights, mean, var, probs, self.num_states[at], self.betas.take(at))

    def beliefs(
        self, component: int, scope: NDArray[np.integer], num_nodes: int | None = None
    ) -> list[SlotBelief]:
        """One component's belief about each slot of factors; scope: (factor, slot).

        `num_nodes` for each real slot; few unless said.
        """
        num_reals = np.count_nonzero(self.num_states[scope[0]] == 0)
        num_nodes = num_nodes or (10 if num_reals <= 2 else 6)
        beliefs = []
        for variable in scope.T:
            size = self.num_states[variable].max()
            beliefs.append(
                SlotBelief.discrete(self.probs[component, variable, :size])
                if size
                else self._real_belief(component, variable, num_nodes)
            )
        return beliefs

    def _real_belief(
        self, component: int, variable: NDArray[np.integer], num_nodes: int
    ) -> SlotBelief:
        mean, var = self.mean[component, variable], self.var[component, variable]
        gaussian = SlotBelief.gaussian(mean, var, num_nodes)
        points, weights = gaussian.points.copy(), gaussian.weights.copy()
        for factor in np.flatnonzero(self.betas.is_beta[variable]):
            rule = self.betas.rule(component, variable[factor], num_nodes)
            points[factor], weights[factor] = rule
        return SlotBelief(points, weights)

    def log_density(self, component: int, variable: NDArray[np.integer], points: Array) -> Array:
        """(factor, point): log q_i^k of the variable (factor,) in one slot, at its points."""
        if self.num_states[variable].max() == 0:
            mean, var = self.mean[component, variable], self.var[component, variable]
            log_q = stats.norm.logpdf(points, mean[:, None], np.sqrt(var)[:, None])
            for factor in np.flatnonzero(self.betas.is_beta[variable]):
                log_q[factor] = self.betas.log_density(component, variable[factor], points[factor])
            return log_q
        with np.errstate(divide="ignore"):
            return np.log(self.probs[component, variable, : points.shape[1]])


def bethe(graph: FactorGraph, q: Mixture, num_nodes: int | None = None) -> float:
    """Σ_c n_c E[log q_c - log ψ_c] + Σ_i n_i (1 - N_i) E[log q_i], N_i factors at each variable."""
    total = expected_energy(graph, q, num_nodes)
    counting = graph.variables.multiplicity.copy()
    for group in graph.groups:
        if len(group):
            total += float(group.multiplicity @ negative_entropy(q, group.scope, num_nodes))
        for slot in range(group.arity):
            np.subtract.at(counting, group.scope[:, slot], group.multiplicity)
    for variable, number in enumerate(counting):
        total += number * float(negative_entropy(q, np.array([[variable]]), num_nodes)[0])
    return total


def jensen(graph: FactorGraph, q: Mixture, num_nodes: int | None = None) -> float:
    """-Σ_c n_c E[log ψ_c] + Σ_k w_k log Σ_j w_j exp(Σ_i n_i log ∫ q_i^k q_i^j)."""
    total = expected_energy(graph, q, num_nodes)
    for k, weight in enumerate(q.weights):
        overlaps = [log_overlap(graph, q, k, j) for j in range(len(q.weights))]
        total += weight * float(special.logsumexp(overlaps, b=q.weights))
    return total


def tracey(graph: FactorGraph, q: Mixture, num_nodes: int | None = None) -> float:
    """-Σ_c n_c E[log ψ_c] - Σ_k w_k H_k + Σ_k w_k log Σ_j w_j B_kj, B by quadrature."""
    total = expected_energy(graph, q, num_nodes)
    everyone = np.arange(graph.num_variables)
    for k, weight in enumerate(q.weights):
        entropies = np.array([entropy(q, k, i) for i in everyone])
        total -= weight * float(graph.variables.multiplicity @ entropies)
        logs = [
            float(graph.variables.multiplicity @ [log_bhattacharyya(q, k, j, i) for i in everyone])
            for j in range(len(q.weights))
        ]
        total += weight * float(special.logsumexp(logs, b=q.weights))
    return total


def entropy(q: Mixture, k: int, i: int) -> float:
    """-E[log q_i^k]."""
    if q.num_states[i]:
        return float(stats.entropy(q.probs[k, i]))
    if q.betas.is_beta[i]:
        width = q.betas.upper[i] - q.betas.lower[i]
        return float(stats.beta.entropy(q.betas.alpha[k, i], q.betas.beta[k, i], scale=width))
    return float(stats.norm.entropy(scale=np.sqrt(q.var[k, i])))


def log_bhattacharyya(q: Mixture, k: int, j: int, i: int) -> float:
    """log ∫ √(q_i^k q_i^j)."""
    if q.num_states[i]:
        with np.errstate(divide="ignore"):
            return float(np.log(np.sqrt(q.probs[k, i] * q.probs[j, i]).sum()))
    if q.betas.is_beta[i]:
        t, step = np.linspace(-2.9, 2.9, 401, retstep=True)  # double exponential nodes
        s, width = np.pi / 2 * np.sinh(t), q.betas.upper[i] - q.betas.lower[i]
        points = q.betas.lower[i] + width * special.expit(2 * s)
        w = width * step * np.pi / 4 * np.cosh(t) / np.cosh(s) ** 2
        logs = [q.betas.log_density(one, i, points) for one in (k, j)]
    else:
        reach = 12 * np.sqrt(q.var[[k, j], i].max())
        points = np.linspace(q.mean[[k, j], i].min() - reach, q.mean[[k, j], i].max() + reach, 4001)
        w = np.full(len(points), points[1] - points[0])
        sd = np.sqrt(q.var[:, i])
        logs = [stats.norm.logpdf(points, q.mean[one, i], sd[one]) for one in (k, j)]
    return float(np.log(w @ np.exp(0.5 * (logs[0] + logs[1]))))


def log_overlap(graph: FactorGraph, q: Mixture, k: int, j: int) -> float:
    """Σ_i n_i log ∫ q_i^k q_i^j."""
    total = 0.0
    for i, multiplicity in enumerate(graph.variables.multiplicity):
        if graph.variables.num_states[i]:
            with np.errstate(divide="ignore"):
                overlap = np.log(q.probs[k, i] @ q.probs[j, i])
        elif q.betas.is_beta[i]:
            overlap = q.betas.log_overlap(k, j, i)
        else:
            sd = np.sqrt(q.var[k, i] + q.var[j, i])
            overlap = stats.norm.logpdf(q.mean[k, i], q.mean[j, i], sd)
        total += multiplicity * float(overlap)
    return total


def expected_energy(graph: FactorGraph, q: Mixture, num_nodes: int | None = None) -> float:
    """-E[log ψ] of all factors, and the constant."""
    total = -graph.log_constant
    for group in graph.groups:
        if not len(group):
            continue
        for k, weight in enumerate(q.weights):
            beliefs = q.beliefs(k, group.scope, num_nodes)
            values = expectation(group.potential, group.row, beliefs)
            total -= weight * float((group.multiplicity * values).sum())
    return total


def negative_entropy(q: Mixture, scope: NDArray[np.integer], num_nodes: int | None = None) -> Array:
    """(factor,): E[log q_c], on the product of the nodes and states of each component.

    scope: (factor, slot); the slots of a factor are independent given the component.
    """
    num_factors, arity = scope.shape
    total = np.zeros(num_factors)
    for k, weight in enumerate(q.weights):
        beliefs = q.beliefs(k, scope, num_nodes)
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
