"""Random small graphs with every kind of potential, as Hypothesis strategies."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Literal

import numpy as np
from hypothesis import strategies as st

from hylift.errors import ImpossibleEvidenceError
from hylift.graph import (
    Domain,
    Evidence,
    FactorGraph,
    FactorGroup,
    Names,
    Variables,
    boolean,
    categorical,
    interval,
    real,
)
from hylift.potentials import ConditionalQuadratic, Function, Potential, Table

DISCRETE = [boolean, categorical(3), categorical(1), categorical(["a", "b", "c", "d"])]


def bumps(*arguments: np.ndarray) -> np.ndarray:
    """A smooth function of any number of slots and at least two parameters."""
    *slots, height, shift = arguments
    total = sum((place + 1) * np.asarray(slot) for place, slot in enumerate(slots))
    return height * np.cos(total + shift)


@st.composite
def graphs(
    draw: st.DrawFn,
    *,
    max_discrete: int = 3,
    max_reals: int = 3,
    max_bounded: int = 0,
    functions: Literal["nowhere", "of bounded reals", "anywhere"] = "nowhere",
    hard: bool = True,
    soft: bool = True,
) -> FactorGraph:
    """A proper model with evidence: every real has a square of its own, or bounds."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1), label="seed of the parameters"))
    num_discrete = draw(st.integers(0, max_discrete), label="discrete variables")
    num_reals = draw(st.integers(0, max_reals), label="reals")
    num_bounded = draw(st.integers(0, min(max_bounded, num_reals)), label="reals with bounds")
    domains = [draw(st.sampled_from(DISCRETE)) for _ in range(num_discrete)]
    domains += [interval(-1.5, 2.0)] * num_bounded + [real] * (num_reals - num_bounded)
    order = draw(st.permutations(range(len(domains))), label="order of the variables")
    variables = Variables.of([domains[i] for i in order], Names.numbered(len(domains)))
    num_states = variables.num_states
    discrete, reals = np.flatnonzero(num_states > 0), np.flatnonzero(num_states == 0)

    in_functions = np.isfinite(variables.lower) | (num_states > 0) | (functions == "anywhere")

    bounds_hold = np.isfinite(variables.lower) & (rng.random(len(variables)) < 0.3)
    groups = [_square(rng, v) for v in reals if not bounds_hold[v]]
    for _ in range(draw(st.integers(0, 4), label="groups")):
        kinds = ["table", "quadratic"] + ["function"] * (functions != "nowhere")
        kind = draw(st.sampled_from(kinds))
        if kind == "table":
            scope = _some(rng, discrete, rng.integers(0, 4))
            groups.append(_group(rng, _table(rng, num_states[scope], hard), scope))
        elif kind == "quadratic" and len(reals):
            inside = _some(rng, discrete, rng.integers(0, 3))
            scope = np.concatenate([inside, _some(rng, reals, rng.integers(1, 4))])
            potential = _quadratic(rng, num_states[inside], len(scope) - len(inside), hard)
            groups.append(_group(rng, potential, scope))
        elif kind == "function" and in_functions.any():
            chosen = _some(rng, np.flatnonzero(in_functions), rng.integers(1, 4))
            scope = np.concatenate([np.intersect1d(chosen, d) for d in (discrete, reals)])
            num_discrete = np.count_nonzero(num_states[scope])
            counts = num_discrete, len(scope) - num_discrete
            groups.append(_group(rng, Function(bumps, *counts, rng.normal(size=(2, 2))), scope))
    graph = FactorGraph(variables, tuple(groups), log_constant=float(rng.normal()))
    return graph.observe(_evidence(rng, variables, soft))


@st.composite
def forests(
    draw: st.DrawFn,
    kind: Literal["discrete", "gaussian", "hybrid"],
    *,
    max_variables: int = 6,
    bounded: bool = False,
    hard: bool = False,
) -> FactorGraph:
    """A proper model with evidence in which no chain of factors leads back to where it began.

    `bounded`: some reals have bounds.
    """
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1), label="seed of the parameters"))
    num_variables = draw(st.integers(1, max_variables), label="variables")
    reals = [real, interval(-1.5, 2.0)] if bounded else [real]
    choices = {"discrete": DISCRETE, "gaussian": reals, "hybrid": [*DISCRETE, *reals, *reals]}
    domains = [draw(st.sampled_from(choices[kind])) for _ in range(num_variables)]
    variables = Variables.of(domains, Names.numbered(num_variables))
    num_states, order = variables.num_states, rng.permutation(num_variables)
    groups = [_square(rng, v) for v in np.flatnonzero(num_states == 0)]
    placed = 0
    while placed < num_variables:
        # A factor joins new variables to at most one that already stands in a tree.
        end = min(num_variables, placed + int(rng.integers(1, 4)))
        scope = order[placed:end]
        if placed and rng.random() < 0.8:
            scope = np.append(scope[:2], rng.choice(order[:placed]))
        placed += len(np.intersect1d(scope, order[placed:]))
        scope = scope[np.argsort(num_states[scope] == 0, kind="stable")].astype(np.int32)
        sizes = num_states[scope]
        inside, num_reals = sizes[sizes > 0], int(np.count_nonzero(sizes == 0))
        potential = (
            _quadratic(rng, inside, num_reals, hard) if num_reals else _table(rng, inside, hard)
        )
        groups.append(FactorGroup(potential, scope[None], rng.integers(0, 2, 1)))
    graph = FactorGraph(variables, tuple(groups), log_constant=float(rng.normal()))
    return graph.observe(_evidence(rng, variables, soft=True)) if rng.random() < 0.5 else graph


def _some(rng: np.random.Generator, ids: np.ndarray, count: int) -> np.ndarray:
    return rng.permutation(ids)[:count].astype(np.int32)


def _group(rng: np.random.Generator, potential: Potential, scope: np.ndarray) -> FactorGroup:
    """A few factors over one scope, with shared rows and multiplicities."""
    count = int(rng.integers(1, 4))
    return FactorGroup(
        potential,
        np.repeat(scope[None].astype(np.int32), count, axis=0),
        rng.integers(0, potential.num_rows, count),
        rng.choice([1.0, 1.0, 2.0, 0.5], count),
    )


def _table(rng: np.random.Generator, num_states: np.ndarray, hard: bool) -> Table:
    log_table = rng.normal(size=(2, *num_states))
    if hard and log_table.size > 4:
        log_table[rng.random(log_table.shape) < 0.2] = -np.inf
    return Table(log_table)


def _quadratic(
    rng: np.random.Generator, num_states: np.ndarray, num_reals: int, hard: bool
) -> ConditionalQuadratic:
    root = rng.normal(size=(2, *num_states, num_reals, num_reals)) / 2
    # Half of the couplings are zero, so that some reals fall apart.
    root *= rng.random((num_reals, num_reals)) < 0.5
    A = -root @ np.swapaxes(root, -1, -2)
    c = rng.normal(size=(2, *num_states))
    if hard and c.size > 4:
        c[rng.random(c.shape) < 0.1] = -np.inf
    return ConditionalQuadratic(A, rng.normal(size=A.shape[:-1]), c)


def _square(rng: np.random.Generator, variable: int) -> FactorGroup:
    potential = ConditionalQuadratic.squared_distance(rng.uniform(0.3, 1.0), [1.0], rng.normal())
    return FactorGroup(potential, np.array([[variable]], dtype=np.int32))


def _evidence(rng: np.random.Generator, variables: Variables, soft: bool) -> Evidence:
    """Each variable is observed with a chance of one in four."""
    ids = np.flatnonzero(rng.random(len(variables)) < 0.25)
    num_states = variables.num_states[ids]
    value = np.where(
        num_states > 0, rng.integers(0, np.maximum(num_states, 1)), rng.uniform(-1, 1, len(ids))
    )
    with_error = soft & (num_states == 0) & (rng.random(len(ids)) < 0.5)
    return Evidence.of(ids.astype(np.int32), value, np.where(with_error, 0.7, 0.0))


VALUES = np.array([-1.0, 0.5, 1.0, 2.0])
"""Sums and products of these are exact, so that parameters are equal or clearly different."""

DOMAINS = [boolean, boolean, categorical(3), categorical(["a", "b", "c"]), real, interval(-1.5, 2)]

RELATIONS = ["copies", "cycle", "complete", "pairs", "bipartite", "anything"]


def sums(*arguments: np.ndarray) -> np.ndarray:
    """A smooth function of any number of slots, in any order, and two parameters."""
    *slots, height, shift = arguments
    return height * np.cos(sum(np.asarray(slot) for slot in slots) + shift)


def all_different(*arguments: np.ndarray) -> np.ndarray:
    """Discrete slots that must not all agree, in any order, and two parameters."""
    *slots, height, shift = arguments
    spread = functools.reduce(np.maximum, slots) - functools.reduce(np.minimum, slots)
    return np.where((spread == 0) & (len(slots) > 1), -np.inf, height * sum(slots) + shift)


@st.composite
def symmetric_graphs(
    draw: st.DrawFn,
    *,
    max_copies: int = 5,
    max_relations: int = 5,
    evidence: bool = True,
    multiplicities: bool = True,
    domains: Sequence[Domain] = DOMAINS,
) -> FactorGraph:
    """Copies of a piece, related to each other and to hubs, with few distinct parameters.

    Reals need not be held in place: the densities of some of these graphs have no integral.
    """
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1), label="seed of the details"))
    num_copies = draw(st.integers(1, max_copies), label="copies")
    piece = draw(st.lists(st.sampled_from(domains), min_size=1, max_size=3), label="piece")
    hubs = draw(st.lists(st.sampled_from(domains), max_size=2), label="hubs")
    lonely = draw(st.lists(st.sampled_from(domains), max_size=2), label="without factors")
    relations = draw(st.lists(st.sampled_from(RELATIONS), max_size=max_relations))
    everyone = np.array([*hubs, *lonely, *piece * num_copies], dtype=object)
    first = len(hubs) + len(lonely)
    copies = first + np.arange(num_copies * len(piece)).reshape(num_copies, len(piece))
    order = rng.permutation(len(everyone))  # from a place in `everyone` to the variable's id
    shuffled = np.empty_like(everyone)
    shuffled[order] = everyone
    multiplicity = np.ones(len(everyone))
    if multiplicities and rng.random() < 0.4:
        multiplicity[order[copies]] = rng.choice([1.0, 1.0, 3.0], len(piece))
        multiplicity[rng.integers(len(everyone))] = 3.0
    plain = Variables.of(list(shuffled), Names.numbered(len(everyone)))
    variables = Variables(plain.domains, plain.domain_id, plain.names, multiplicity)
    groups: list[FactorGroup] = []
    for relation in relations:
        scope = order[_related(rng, relation, copies, np.arange(len(hubs)))]
        groups.append(_relation(rng, variables, scope, multiplicities))
        if rng.random() < 0.3:  # another relation of the same potential
            groups.append(_with_other_rows(rng, groups[-1]))
    if rng.random() < 0.2:
        nobody = FactorGroup(Table.shared(1.0), np.zeros((2, 0), dtype=np.int32))
        groups.append(nobody if not groups or rng.random() < 0.5 else groups[0].take(np.arange(0)))
    graph = FactorGraph(variables, tuple(groups), log_constant=0.25)
    if not evidence or rng.random() < 0.3:
        return graph
    observed = graph.observe(_few_values(rng, variables, order[copies], order[: len(hubs)]))
    try:
        observed.condition()
    except ImpossibleEvidenceError:
        return graph
    return observed


def _related(
    rng: np.random.Generator, relation: str, copies: np.ndarray, hubs: np.ndarray
) -> np.ndarray:
    """(factor, slot): who stands in one factor, as ids; no factor has anyone twice."""
    num_copies, size = copies.shape
    with_hubs = rng.permutation(hubs)[: rng.integers(0, len(hubs) + 1)]
    if relation == "anything":
        everyone = rng.permutation(np.concatenate([hubs, copies.ravel()]))
        return everyone[None, : rng.integers(1, 6)]
    if relation == "copies":
        own = copies[:, rng.permutation(size)[: rng.integers(1, size + 1)]]
    else:
        pairs = {
            "cycle": [(i, (i + 1) % num_copies) for i in range(num_copies)],
            "complete": [(i, j) for i in range(num_copies) for j in range(num_copies)],
            "pairs": [(i, j) for i in range(num_copies) for j in range(i)],
            "bipartite": [(i, j) for i in range(0, num_copies, 2) for j in range(1, num_copies, 2)],
        }[relation]
        pairs = np.array([p for p in pairs if p[0] != p[1]], dtype=int).reshape(-1, 2)
        left, right = rng.integers(size), rng.integers(size)
        left = right if rng.random() < 0.5 else left
        own = np.stack([copies[pairs[:, 0], left], copies[pairs[:, 1], right]], axis=1)
    return np.concatenate([own, np.repeat(with_hubs[None], len(own), axis=0)], axis=1)


def _relation(
    rng: np.random.Generator, variables: Variables, scope: np.ndarray, multiplicities: bool
) -> FactorGroup:
    """Factors over these scopes that share a potential, and most often their parameters."""
    num_states = variables.num_states[scope]
    if not len(scope):
        return FactorGroup(Table.shared([1.0, 2.0]), np.zeros((0, 1), dtype=np.int32))
    slots = np.argsort(num_states[0] == 0, kind="stable")  # discrete ones first
    scope, sizes = scope[:, slots].astype(np.int32), num_states[0, slots]
    twice = np.flatnonzero((variables.multiplicity[scope] > 1).all(axis=0))
    if len(twice) and rng.random() < 0.3:  # only a class of several stands in a factor again
        at = rng.choice(twice)
        scope, sizes = (np.insert(a, at, np.take(a, at, -1), -1) for a in (scope, sizes))
    potential = _few_parameters(rng, sizes)
    count = len(scope)
    row = np.full(count, rng.integers(potential.num_rows))
    if rng.random() < 0.3:
        row = rng.integers(0, potential.num_rows, count)
    multiplicity = np.full(count, rng.choice([1.0, 1.0, 2.0, 0.5]) if multiplicities else 1.0)
    if multiplicities and rng.random() < 0.2:
        multiplicity = rng.choice([1.0, 2.0, 0.5], count)
    return FactorGroup(potential, scope, row, multiplicity)


def _with_other_rows(rng: np.random.Generator, group: FactorGroup) -> FactorGroup:
    """Some of the factors again, all with one row."""
    some = np.flatnonzero(rng.random(len(group)) < rng.choice([0.5, 1.0]))
    row = np.full(len(some), rng.integers(group.potential.num_rows))
    return FactorGroup(group.potential, group.scope[some], row, group.multiplicity[some])


def _few_parameters(rng: np.random.Generator, num_states: np.ndarray) -> Potential:
    """Two rows of a potential for these slots, symmetric in some of them or not."""
    sizes, num_reals = num_states[num_states > 0], np.count_nonzero(num_states == 0)
    counts = len(sizes), int(num_reals)
    if rng.random() < 0.3 or num_reals > 3:
        function = [bumps, sums, sums, all_different][rng.integers(3 if num_reals else 4)]
        groups = range(counts[0]), range(counts[0], sum(counts))
        say = function is not bumps and rng.random() < 0.7
        symmetric = tuple(tuple(group) for group in groups if say and len(group) > 1)
        return Function(function, *counts, rng.choice(VALUES, (2, 2)), symmetric=symmetric)
    at = (slice(None), *_any_order(rng, sizes))
    c = rng.choice(VALUES, (2, *sizes))
    if rng.random() < 0.2:
        c[rng.random(c.shape) < 0.2] = -np.inf
    c = c[at]
    if rng.random() < 0.1:  # only what is impossible tells the slots apart
        c[rng.random(c.shape) < 0.2] = -np.inf
    if not num_reals:
        return Table(c)
    A = rng.choice(VALUES, (2, *sizes, num_reals, num_reals))
    b = rng.choice(VALUES, (2, *sizes, num_reals))
    A, b = A[at], b[at]
    if rng.random() < 0.7:  # the reals may be exchanged, too
        own, shared = A[..., :1, :1], rng.choice(VALUES)
        A, b = np.where(np.eye(num_reals, dtype=bool), own, shared), b[..., :1] + 0 * b
    possible = np.isfinite(c)[..., None]  # where it is not, A and b mean nothing
    return ConditionalQuadratic(np.where(possible[..., None], A, 0), np.where(possible, b, 0), c)


def _any_order(rng: np.random.Generator, sizes: np.ndarray) -> list[np.ndarray]:
    """Indices into an array of states that make it symmetric in some slots, or in none."""
    states = list(np.indices(sizes))
    size = rng.choice(sizes) if len(sizes) else 0
    some = [slot for slot in np.flatnonzero(sizes == size) if rng.random() < 0.8]
    if rng.random() < 0.7 and len(some) > 1:
        for slot, column in zip(
            some, np.sort([states[slot] for slot in some], axis=0), strict=True
        ):
            states[slot] = column
    return states


def _few_values(
    rng: np.random.Generator, variables: Variables, copies: np.ndarray, hubs: np.ndarray
) -> Evidence:
    """Observations of some variables of the piece in some copies, and of some hubs."""
    some = copies[np.ix_(rng.random(len(copies)) < 0.5, rng.random(copies.shape[1]) < 0.6)]
    ids = np.concatenate([some.ravel(), hubs[rng.random(len(hubs)) < 0.2]]).astype(np.int32)
    num_states = variables.num_states[ids]
    states = rng.integers(0, np.clip(num_states, 1, 2))
    value = np.where(num_states > 0, states, rng.choice([-1.0, 0.5], len(ids)))
    with_error = (num_states == 0) & (rng.random(len(ids)) < rng.choice([0.0, 0.5, 1.0]))
    return Evidence.of(ids, value, np.where(with_error, rng.choice([0.5, 2.0], len(ids)), 0.0))


def random_classes(graph: FactorGraph, rng: np.random.Generator) -> np.ndarray:
    """(variable,): any partition within equal domains, of one class each up to one per variable."""
    domains = list(dict.fromkeys(graph.variables.domains))
    domain = np.array([domains.index(d) for d in graph.variables.domains], dtype=int)
    part = rng.integers(0, rng.choice([1, 2, 3, 100]), graph.num_variables)
    both = np.stack([domain[graph.variables.domain_id], part])
    return np.unique(both, axis=1, return_inverse=True)[1].ravel().astype(np.int32)
