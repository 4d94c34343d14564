"""Random small graphs: where they come from, in other units, in pieces, and as text."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import hypothesis
import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

import hylift as hl
from benchmarks.bounds import hybrid_model
from benchmarks.families.practice import PRACTICE, written
from hylift.graph import FactorGraph, FactorGroup, Variables
from hylift.potentials.about import QuadraticAbout
from tests.hard_models import hard_model
from tests.hybrid_models import random_hybrid
from tests.random_models import forests, graphs, symmetric_graphs
from tests.zoo import ZOO

Rng = np.random.Generator
FloatArray = NDArray[np.float64]


def drawn(strategy: st.SearchStrategy[FactorGraph], rng: Rng) -> FactorGraph:
    """An example of a strategy; the same for the same state of the generator."""
    found: list[FactorGraph] = []

    @hypothesis.seed(int(rng.integers(2**32)))
    @hypothesis.settings(
        max_examples=4, database=None, deadline=None, phases=[hypothesis.Phase.generate],
        suppress_health_check=list(hypothesis.HealthCheck),
    )  # fmt: skip
    @hypothesis.given(strategy)
    def keep(graph: FactorGraph) -> None:
        found.append(graph)

    keep()
    return found[-1]


def of_family(rng: Rng) -> FactorGraph:
    return written(str(rng.choice(list(PRACTICE))), int(rng.integers(100, 10**6))).graph()


def of_zoo(rng: Rng) -> FactorGraph:
    return ZOO[int(rng.integers(len(ZOO)))].graph()


def coupled(rng: Rng) -> FactorGraph:
    size = int(rng.integers(3, 9))
    return random_hybrid(int(rng.integers(2**31)), float(rng.choice([0.5, 1, 3, 6])), size)


ANY = graphs(max_bounded=2, functions="of bounded reals")
PLAIN = graphs(max_bounded=1, soft=False)
ALIKE = symmetric_graphs(multiplicities=False)
SOURCES: tuple[Callable[[Rng], FactorGraph], ...] = (
    of_family, of_family, of_zoo, coupled, hard_model, hybrid_model,
    lambda rng: drawn(ANY, rng),
    lambda rng: drawn(ALIKE, rng),
    lambda rng: drawn(forests("hybrid", max_variables=10, bounded=True, hard=True), rng),
)  # fmt: skip
QUADRATIC: tuple[Callable[[Rng], FactorGraph], ...] = (
    coupled, hard_model, hybrid_model,
    lambda rng: drawn(PLAIN, rng),
    lambda rng: drawn(forests("hybrid", max_variables=8, bounded=True, hard=True), rng),
    lambda rng: drawn(forests("gaussian", max_variables=8), rng),
)  # fmt: skip
"""Sources of graphs without functions."""


def some_graph(rng: Rng, sources: tuple[Callable[[Rng], FactorGraph], ...]) -> FactorGraph:
    return sources[int(rng.integers(len(sources)))](rng)


def units(rng: Rng, graph: FactorGraph) -> tuple[FloatArray, FloatArray]:
    """(variable,): an offset and a scale for each real, alike in most graphs."""
    size = graph.num_variables
    widest = float(rng.choice([0.0, 2.0, 6.0, 150.0], p=[0.4, 0.3, 0.25, 0.05]))
    scale = 10.0 ** np.full(size, rng.uniform(-widest, widest))
    offset = rng.choice([0.0, 1e4, 1.7e9, 1e12]) * np.full(size, rng.choice([-1.0, 1.0]))
    if rng.random() < 0.3:
        scale = 10.0 ** rng.uniform(-min(widest, 6.0), min(widest, 6.0), size)
        offset = offset * (rng.random(size) < 0.5)
    if rng.random() < 0.7:  # digits of the reals remain
        offset = np.clip(offset, -1e12 * scale, 1e12 * scale)
    discrete = graph.variables.num_states > 0
    return np.where(discrete, 0.0, offset), np.where(discrete, 1.0, scale)


def rescaled(graph: FactorGraph, offset: FloatArray, scale: FloatArray) -> FactorGraph:
    """The graph of the reals times their scales plus their offsets, of quadratics alone."""
    groups = [part for g in graph.groups for part in _rescaled(g, offset, scale)]
    before = graph.variables
    domains = [before.domain(v) for v in range(len(before))]
    moved = [
        d
        if d.is_discrete or not np.isfinite([d.lower, d.upper]).any()
        else hl.interval(d.lower * scale[v] + offset[v], d.upper * scale[v] + offset[v])
        for v, d in enumerate(domains)
    ]
    evidence = graph.evidence
    at = evidence.variable
    measured = replace(
        evidence, value=evidence.value * scale[at] + offset[at], var=evidence.var * scale[at] ** 2
    )
    variables = Variables.of(moved, before.names)
    return FactorGraph(variables, tuple(groups), measured, graph.log_constant)


def rounded(graph: FactorGraph, offset: FloatArray, scale: FloatArray) -> FactorGraph:
    """The graph with the digits of its observations and bounds that are left in other units."""

    def there_and_back(value: FloatArray, at: NDArray[np.int32] | int) -> FloatArray:
        return (value * scale[at] + offset[at] - offset[at]) / scale[at]

    evidence = graph.evidence
    value = there_and_back(evidence.value, evidence.variable)
    domains = [
        d if d.is_discrete else hl.interval(*there_and_back(np.array([d.lower, d.upper]), v))
        for v, d in enumerate(map(graph.variables.domain, range(graph.num_variables)))
    ]
    variables = Variables.of(domains, graph.variables.names)
    return replace(graph, variables=variables, evidence=replace(evidence, value=value))


def _rescaled(group: FactorGroup, offset: FloatArray, scale: FloatArray) -> Iterator[FactorGroup]:
    """A row for each factor, since its reals have units of their own."""
    form = group.potential.quadratic()
    if form is None or form.num_reals == 0 or not len(group):
        yield group
        return
    reals = group.reals
    s, o = scale[reals], offset[reals]
    sizes = [n for n in group.potential.slot_states if n > 0]
    shape = (len(group), *sizes)
    ones = (slice(None), *[None] * len(sizes))
    A = form.A[group.row].reshape(*shape, form.num_reals, form.num_reals)
    b = form.b[group.row].reshape(*shape, form.num_reals)
    c = form.c[group.row].reshape(shape)
    s, o = s[ones], np.broadcast_to(o[ones], b.shape)
    with np.errstate(over="ignore", under="ignore"):
        moved = QuadraticAbout(o, A / s[..., :, None] / s[..., None, :], b / s, c)
    yield FactorGroup(moved, group.scope, multiplicity=group.multiplicity)


def smaller_graphs(graph: FactorGraph) -> Iterator[FactorGraph]:
    """The graph without some of its variables, factors or evidence."""
    for size in (graph.num_variables // 2, graph.num_variables // 4, 1):
        for first in range(0, graph.num_variables if size else 0, max(size, 1)):
            yield without_variables(graph, np.arange(first, first + size))
    for at, group in enumerate(graph.groups):
        yield replace(graph, groups=graph.groups[:at] + graph.groups[at + 1 :], rules=None)
        for size in {len(group) // 2, 1} if len(group) > 1 else ():
            for first in range(0, len(group), size):
                kept = group.take(np.delete(np.arange(len(group)), slice(first, first + size)))
                yield replace(
                    graph, groups=(*graph.groups[:at], kept, *graph.groups[at + 1 :]), rules=None
                )
    for at in range(len(graph.evidence)):
        e = graph.evidence
        kept_evidence = hl.Evidence(*(np.delete(a, at) for a in (e.variable, e.value, e.var)))
        yield replace(graph, evidence=kept_evidence)
    if graph.log_constant:
        yield replace(graph, log_constant=0.0)


def without_variables(graph: FactorGraph, gone: NDArray[np.int64]) -> FactorGraph:
    """The graph without some variables, and without all factors that they are in."""
    kept = np.delete(np.arange(graph.num_variables), gone[gone < graph.num_variables])
    new = np.full(graph.num_variables, -1)
    new[kept] = np.arange(len(kept))
    groups = []
    for group in graph.groups:
        own = group.take(np.flatnonzero((new[group.scope] >= 0).all(axis=1)))
        if len(own):
            groups.append(replace(own, scope=new[own.scope].astype(np.int32)))
    e = graph.evidence
    stays = new[e.variable] >= 0
    evidence = hl.Evidence(new[e.variable][stays].astype(np.int32), e.value[stays], e.var[stays])
    domains = [graph.variables.domain(int(v)) for v in kept]
    names = hl.Names.listed(graph.variables.names.render(kept).to_pylist())
    variables = Variables.of(domains, names)
    return FactorGraph(variables, tuple(groups), evidence, graph.log_constant)


def described(graph: FactorGraph) -> str:
    """Everything in a graph, as text."""
    domains = [graph.variables.domain(v) for v in range(graph.num_variables)]
    names = graph.variables.names.render().to_pylist()
    lines = [repr(graph), *(f"{n}: {_domain(d)}" for n, d in zip(names, domains, strict=True))]
    for group in graph.groups:
        scopes = [[names[v] for v in scope] for scope in group.scope.tolist()]
        lines.append(f"{type(group.potential).__name__} {scopes} row {group.row.tolist()}")
        if (group.multiplicity != 1).any():
            lines.append(f"  multiplicity {group.multiplicity.tolist()}")
        lines.append(f"  {group.potential.flat[np.unique(group.row)].tolist()}"[:1500])
    e = graph.evidence
    for v, value, var in zip(e.variable.tolist(), e.value.tolist(), e.var.tolist(), strict=True):
        lines.append(f"{names[v]} = {value!r}" + (f" with variance {var!r}" if var else ""))
    return "\n".join(lines)


def _domain(domain: hl.Domain) -> str:
    return (
        f"{domain.num_states} states"
        if domain.is_discrete
        else f"[{domain.lower!r}, {domain.upper!r}]"
    )
