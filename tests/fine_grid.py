"""Slow and obviously right for models that are too large for `oracle.solve`.

`enumerated` has dense Gaussian algebra for all joint states at once. `on_grid` puts every real on
evenly spaced points, fine and wide enough, and eliminates the tables in NumPy.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from hylift.graph import FactorGraph
from hylift.potentials import ConditionalQuadratic, Potential, Table
from tests.oracle import Answer, Vector, hidden_variables

MAX_STATES = 2**16
SPACING = 0.5
"""In units of 1 / √J, J the largest precision that the factors of a real can add up to. Sums over
such points are within 4 e^(-2π² / λ) of integrals, relatively: 1e-16 for one real (λ = 1/4) and
1e-12 for chains and grids of reals (λ at most 3/4)."""


def enumerated(graph: FactorGraph) -> Answer:
    """The posterior of conditional Gaussians, by dense algebra in every joint state."""
    num_states, hidden = graph.variables.num_states, hidden_variables(graph)
    discrete = [v for v in hidden if num_states[v] > 0]
    reals = [v for v in hidden if num_states[v] == 0]
    sizes = num_states[discrete].tolist()
    assert np.prod(sizes, dtype=float) <= MAX_STATES
    state = np.zeros((int(np.prod(sizes)), graph.num_variables), dtype=np.int64)
    for v, states in zip(discrete, np.indices([*sizes, 1])[:-1], strict=True):
        state[:, v] = states.ravel()
    place = np.full(graph.num_variables, -1)
    place[reals] = np.arange(len(reals))
    value = _observed_values(graph)
    state[:, ~np.isnan(value)] = np.nan_to_num(value[~np.isnan(value)]).astype(np.int64)
    J = np.zeros((len(state), len(reals), len(reals)))
    h, c = np.zeros((len(state), len(reals))), np.full(len(state), graph.log_constant)
    for potential, row, scope, n in _factors(graph):
        its_states = [s for s, size in zip(scope, potential.slot_states, strict=True) if size != 0]
        its_reals = [s for s, size in zip(scope, potential.slot_states, strict=True) if size == 0]
        at = (row, *(state[:, s] for s in its_states))
        if isinstance(potential, Table):
            c += n * potential.log_table[at]
            continue
        assert isinstance(potential, ConditionalQuadratic)
        c = c + n * potential.c[at]
        A, b = n * potential.A[at], n * potential.b[at]
        known = [v for v in range(len(its_reals)) if place[its_reals[v]] < 0]
        free = [v for v in range(len(its_reals)) if v not in known]
        x = value[[its_reals[i] for i in known]]
        at = np.array([place[its_reals[i]] for i in free], dtype=int)
        c = c + b[..., known] @ x + ((A[..., known, :][..., known] @ x) * x).sum(axis=-1)
        h[:, at] += b[..., free] + 2 * A[..., free, :][..., known] @ x
        J[:, at[:, None], at] -= 2 * A[..., free, :][..., free]
    possible = c > -np.inf
    J, h, c, state = J[possible], h[possible], c[possible], state[possible]
    cov = np.linalg.inv(J)
    mean = np.einsum("sij,sj->si", cov, h)
    log_weight = c + 0.5 * (np.einsum("si,si->s", h, mean) - np.linalg.slogdet(J / (2 * np.pi))[1])
    log_z = _logsumexp(log_weight, (0,)).item()
    weight = np.exp(log_weight - log_z)
    probs = {v: np.bincount(state[:, v], weight, int(num_states[v])) for v in discrete}
    first = weight @ mean
    second = weight @ (np.diagonal(cov, axis1=1, axis2=2) + (mean - first) ** 2)
    return Answer(
        log_z,
        probs,
        dict(zip(reals, first, strict=True)),
        dict(zip(reals, second, strict=True)),
        np.nan,
    )


def on_grid(graph: FactorGraph, low: Vector, high: Vector, refine: float = 1.0) -> Answer:
    """The posterior with each real on points from `low` to `high` (variable,).

    The window must be wide enough: the density at its ends is checked. `refine` makes the spacing
    that many times smaller.
    """
    num_states, hidden = graph.variables.num_states, hidden_variables(graph)
    spacing = SPACING / refine / np.sqrt(_largest_precision(graph))
    nodes: dict[int, Vector] = {}
    for v in hidden:
        count = (
            np.ceil((high[v] - low[v]) / spacing[v]) if num_states[v] == 0 else num_states[v] - 1
        )
        nodes[v] = np.linspace(low[v], high[v], int(count) + 1)
        if num_states[v] > 0:
            nodes[v] = np.arange(num_states[v], dtype=float)
    value = _observed_values(graph)
    buckets = [_on_nodes(p, row, scope, n, nodes, value) for p, row, scope, n in _factors(graph)]
    constant = graph.log_constant + sum(float(b.log_value) for b in buckets if not b.scope)
    tree = Elimination.of([b for b in buckets if b.scope], {v: len(x) for v, x in nodes.items()})
    log_z = constant + tree.log_total
    probs, mean, var = {}, {}, {}
    for v, p in tree.marginals().items():
        if num_states[v] > 0:
            probs[v] = p
            continue
        log_z += np.log(nodes[v][1] - nodes[v][0])
        assert max(p[0], p[-1]) < 1e-13 * p.max(), f"the window of variable {v} is too narrow: {p}"
        mean[v] = float(p @ nodes[v])
        var[v] = float(p @ (nodes[v] - mean[v]) ** 2)
    return Answer(log_z, probs, mean, var, np.nan)


@dataclass(frozen=True, slots=True)
class Bucket:
    """A log-table over variables, by increasing id."""

    scope: tuple[int, ...]
    log_value: Vector

    def over(self, scope: Sequence[int]) -> Vector:
        """The table with an axis for each of these variables, of size one where it has none."""
        sizes = dict(zip(self.scope, self.log_value.shape, strict=True))
        return self.log_value.reshape([sizes.get(v, 1) for v in scope])

    def without(self, variables: Sequence[int]) -> Bucket:
        axes = tuple(self.scope.index(v) for v in variables)
        kept = tuple(v for v in self.scope if v not in variables)
        return Bucket(kept, _logsumexp(self.log_value, axes))


@dataclass(slots=True)
class Elimination:
    """Variables summed out one by one, by least size, and beliefs on the way back."""

    order: list[int] = field(default_factory=list)
    cliques: dict[int, Bucket] = field(default_factory=dict)
    messages: dict[int, Bucket] = field(default_factory=dict)
    log_total: float = 0.0

    @classmethod
    def of(cls, buckets: list[Bucket], sizes: dict[int, int]) -> Elimination:
        found = cls()
        waiting: dict[int, Bucket] = dict(enumerate(buckets))
        at: dict[int, set[int]] = {v: set() for v in sizes}
        for key, bucket in waiting.items():
            for v in bucket.scope:
                at[v].add(key)
        cost = {v: found._cost(v, at, waiting, sizes) for v in sizes}
        while cost:
            v = min(cost, key=lambda u: (cost[u], u))
            own = [waiting.pop(key) for key in sorted(at[v])]
            scope = tuple(sorted({v}.union(*(b.scope for b in own))))
            log_value = np.zeros([sizes[u] for u in scope])
            for bucket in own:
                log_value += bucket.over(scope)
            found.cliques[v] = Bucket(scope, log_value)
            message = found.messages[v] = found.cliques[v].without([v])
            found.order.append(v)
            key = len(buckets) + len(found.order)
            gone = at.pop(v)
            del cost[v]
            if not message.scope:
                found.log_total += float(message.log_value)
                continue
            waiting[key] = message
            for u in message.scope:
                at[u] = (at[u] - gone) | {key}
                cost[u] = found._cost(u, at, waiting, sizes)
        return found

    @staticmethod
    def _cost(
        v: int, at: dict[int, set[int]], waiting: dict[int, Bucket], sizes: dict[int, int]
    ) -> float:
        scope = {v}.union(*(waiting[key].scope for key in at[v]))
        return float(np.prod([sizes[u] for u in scope], dtype=float))

    def marginals(self) -> dict[int, Vector]:
        """Probabilities of each variable's states or points."""
        beliefs: dict[int, Bucket] = {}
        found = {}
        for v in reversed(self.order):
            clique, message = self.cliques[v], self.messages[v]
            log_value = clique.log_value
            if message.scope:
                parent = beliefs[min(message.scope, key=self.order.index)]
                outer = parent.without([u for u in parent.scope if u not in message.scope])
                with np.errstate(invalid="ignore"):
                    correction = outer.log_value - message.log_value
                correction = np.where(message.log_value == -np.inf, -np.inf, correction)
                log_value = log_value + Bucket(message.scope, correction).over(clique.scope)
            beliefs[v] = Bucket(clique.scope, log_value)
            own = beliefs[v].without([u for u in clique.scope if u != v]).log_value
            found[v] = np.exp(own - own.max())
            found[v] /= found[v].sum()
        return found


def _factors(graph: FactorGraph) -> Iterator[tuple[Potential, int, tuple[int, ...], float]]:
    """Every factor, and the measurements with an error."""
    for group in graph.groups:
        columns = group.row.tolist(), group.scope.tolist(), group.multiplicity.tolist()
        for row, scope, n in zip(*columns, strict=True):
            yield group.potential, row, tuple(scope), n
    evidence = graph.evidence
    for v, value, var in zip(evidence.variable, evidence.value, evidence.var, strict=True):
        if var > 0:
            yield ConditionalQuadratic.gaussian([value], [[var]]), 0, (int(v),), 1.0


def _observed_values(graph: FactorGraph) -> Vector:
    """(variable,): NaN where it is hidden."""
    value = np.full(graph.num_variables, np.nan)
    hard = graph.evidence.var == 0
    value[graph.evidence.variable[hard]] = graph.evidence.value[hard]
    return value


def _on_nodes(
    potential: Potential, row: int, scope: tuple[int, ...], n: float,
    nodes: dict[int, Vector], value: Vector,
) -> Bucket:  # fmt: skip
    """A factor at all joint points of its hidden variables."""
    hidden = tuple(sorted({v for v in scope if v in nodes}))
    axes = dict(zip(hidden, np.meshgrid(*(nodes[v] for v in hidden), indexing="ij"), strict=True))
    shape = tuple(len(nodes[v]) for v in hidden)
    values = [
        (axes[v] if v in axes else np.full(shape, value[v])).astype(float if size == 0 else int)
        for v, size in zip(scope, potential.slot_states, strict=True)
    ]
    return Bucket(hidden, n * np.asarray(potential.log_value(np.full(shape, row), values)))


def _largest_precision(graph: FactorGraph) -> Vector:
    """(variable,): of a real, the sum over its factors of the largest curvature in any state."""
    total = np.zeros(graph.num_variables)
    for potential, row, scope, n in _factors(graph):
        if isinstance(potential, ConditionalQuadratic):
            reals = [v for v, size in zip(scope, potential.slot_states, strict=True) if size == 0]
            curvature = -2 * np.diagonal(potential.A[row], axis1=-2, axis2=-1)
            total[reals] += n * curvature.reshape(-1, len(reals)).max(axis=0)
    return np.where(total > 0, total, 1.0)


def _logsumexp(x: NDArray[np.float64], axes: tuple[int, ...]) -> Vector:
    top = x.max(axis=axes, keepdims=True)
    top = np.where(np.isfinite(top), top, 0.0)
    with np.errstate(divide="ignore"):
        return np.log(np.exp(x - top).sum(axis=axes)) + np.squeeze(top, axis=axes)
