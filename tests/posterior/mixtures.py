"""Small mixtures of every family, with a slow evaluation that is obviously right."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
from scipy import stats

from hylift.components import Layout
from hylift.graph import (
    Evidence,
    FactorGraph,
    Names,
    Variables,
    boolean,
    categorical,
    interval,
    real,
)
from hylift.posterior import Assignment, Mixture, Posterior, Solution, Target, with_observed
from hylift.potentials import ConditionalQuadratic, Table

SOLUTION = Solution("test", 0, "converged", 1, 0.0, None)
DOMAINS = {
    "wet": boolean,
    "x": real,
    "color": categorical(["red", "green", "blue"]),
    "share": interval(-1, 3),
    "y": real,
    "dry": boolean,
}
NAMES = tuple(DOMAINS)


def variables() -> Variables:
    return Variables.named(DOMAINS)


def random_entries(layout: Layout, num_components: int, seed: int = 0) -> np.ndarray:
    """Parameters of all classes; alpha and beta above 1 where a density must be finite."""
    rng = np.random.default_rng(seed)
    entries = np.empty((layout.num_entries, num_components))
    for family, first, last in zip(layout.family, layout.first, layout.first[1:], strict=False):
        shape = (last - first, num_components)
        if family == 0:
            entries[first:last] = [
                rng.normal(0, 2, num_components),
                rng.gamma(2, 0.5, num_components),
            ]
        elif family == 1:
            entries[first:last] = 1.0 + rng.gamma(2, 2, shape)
        else:
            entries[first:last] = rng.dirichlet(np.ones(shape[0]), num_components).T
    return entries


def mixture(num_components: int = 3, seed: int = 0) -> Mixture:
    """Over all of `DOMAINS`, each variable a class of its own."""
    layout = Layout.of(variables(), np.array([name == "share" for name in DOMAINS]))
    weights = np.random.default_rng(seed + 1).dirichlet(np.full(num_components, 2.0))
    entries = random_entries(layout, num_components, seed)
    count = len(DOMAINS)
    return Mixture(weights, layout, entries, np.arange(count, dtype=np.int32), np.arange(count))


def lifted(num_variables: int = 40, seed: int = 0) -> tuple[Mixture, Mixture, Variables]:
    """A mixture whose classes have several members, the same spread out, and its variables."""
    rng = np.random.default_rng(seed)
    small = mixture(seed=seed)
    classes = rng.integers(0, len(DOMAINS), num_variables).astype(np.int32)
    hidden = np.sort(rng.choice(2 * num_variables, num_variables, replace=False))
    domain_id = np.zeros(2 * num_variables, dtype=np.int32)
    domain_id[hidden] = variables().domain_id[classes]
    names = Names.numbered(2 * num_variables)
    everyone = Variables(variables().domains, domain_id, names, np.ones(2 * num_variables))
    first = small.layout.first
    entries = np.concatenate([small.entries[first[c] : first[c + 1]] for c in classes])
    size = np.diff(first)[classes]
    layout = Layout(
        small.layout.family[classes],
        np.concatenate([[0], np.cumsum(size)]),
        small.layout.lower[classes],
        small.layout.upper[classes],
    )
    one_each = np.arange(num_variables, dtype=np.int32)
    return (
        Mixture(small.weights, small.layout, small.entries, classes, hidden),
        Mixture(small.weights, layout, entries, one_each, hidden),
        everyone,
    )


def density(q: Mixture, ids: list[int], values: list[float]) -> float:
    """Σ_k w_k Π_i q_i^k, a factor at a time."""
    return sum(
        weight * float(np.prod([factor(q, i, k, v) for i, v in zip(ids, values, strict=True)]))
        for k, weight in enumerate(q.weights)
    )


def factor(q: Mixture, variable: int, component: int, value: float) -> float:
    """q_i^k of a mixture without classes."""
    layout = q.layout
    at = q.variable_to_class[np.searchsorted(q.hidden, variable)]
    own = q.entries[layout.first[at] : layout.first[at + 1], component]
    if layout.family[at] == 0:
        return float(stats.norm(own[0], np.sqrt(own[1])).pdf(value))
    if layout.family[at] == 1:
        width = layout.upper[at] - layout.lower[at]
        return float(stats.beta(own[0], own[1], layout.lower[at], width).pdf(value))
    return float(own[int(value)])


def joint_states(names: list[str]) -> list[tuple[int, ...]]:
    return list(itertools.product(*(range(DOMAINS[name].num_states) for name in names)))


def graph() -> FactorGraph:
    """A model over the same variables, for energies."""
    return FactorGraph.build(
        DOMAINS,
        [
            (Table.from_values([[0.1, 0.2, 0.3], [0.2, 0.1, 0.1]]), ["wet", "color"]),
            (ConditionalQuadratic.gaussian([[0.0], [4.0]], [[[1.0]], [[2.0]]]), ["wet", "x"]),
            (ConditionalQuadratic.linear_gaussian([1.0], 3.0), ["y", "x"]),
            (ConditionalQuadratic.square(-0.5), ["share"]),
            (Table.from_values([[0.9, 0.1], [0.2, 0.8]]), ["dry", "wet"]),
        ],
    )


class GraphTarget(Target):
    """Energies of a graph; its best assignment is given by hand."""

    def __init__(self, whole: FactorGraph, find: Callable[[Mixture | None], Assignment]) -> None:
        self.whole, self.find = whole, find

    @property
    def graph(self) -> FactorGraph:
        return self.whole

    @property
    def evidence(self) -> Evidence:
        return self.whole.evidence

    def energy(self, values: np.ndarray) -> float:
        hidden = np.ones(self.whole.num_variables, dtype=bool)
        hidden[self.whole.evidence.variable[self.whole.evidence.is_hard]] = False
        return -self.whole.condition().log_density(values[hidden])

    def map(self, mixture: Mixture | None) -> Assignment:
        return self.find(mixture)


def posterior(seen: dict[str, object] | None = None, seed: int = 0) -> Posterior:
    """The mixture as an answer, with some variables observed."""
    model = graph().observe(seen or {})
    whole = mixture(seed=seed)
    observed = np.isin(NAMES, list(seen or {}))
    q = whole.of(np.flatnonzero(~observed))
    marginals = with_observed(model, q.hidden, q.marginals(model.variables))
    target = GraphTarget(
        model,
        lambda found: Assignment(model.variables, np.zeros(len(NAMES)), observed, -7.0, "estimate"),
    )
    return Posterior(model.variables, observed, SOLUTION, None, marginals, None, q, target)
