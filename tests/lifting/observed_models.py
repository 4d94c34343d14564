"""Symmetric models with many observed reals, and kinds of factors found one at a time."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace

import numpy as np
from hypothesis import strategies as st

from hylift.graph import (
    Atoms,
    Conditioned,
    Evidence,
    FactorGraph,
    FactorGroup,
    Part,
    Variables,
    boolean,
    real,
)
from hylift.lifting import Structure
from hylift.lifting.coarse.clusters import EvidenceClusters
from hylift.potentials import ConditionalQuadratic, Function, Potential, Table
from oracle import exchangeable, parameters
from random_models import sums

PALETTES = [[-1.0, 0.5], [-1.5, -1.0, 0.25, 0.5, 2.0], list(np.linspace(-1.5, 2.0, 29))]
"""Sums and products of these are exact, or nearly so."""

PIECE = (boolean, real, real, real)
"""Variables of each copy; the last two are observed most often."""


@st.composite
def observed_graphs(draw: st.DrawFn, *, max_copies: int = 9) -> FactorGraph:
    """Copies of a piece, related to each other, with evidence on many of their reals."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1), label="seed of the details"))
    num_copies = draw(st.integers(2, max_copies), label="copies")
    blocks = zip("bxyz", PIECE, strict=True)
    names = (range(num_copies),)
    variables = Variables.in_blocks([(Atoms(name, names), domain) for name, domain in blocks])
    if draw(st.integers(0, 3), label="with multiplicities") == 0:
        multiplicity = np.tile(rng.choice([1.0, 3.0], num_copies), len(PIECE))
        variables = replace(variables, multiplicity=multiplicity)
    ids = np.arange(len(variables)).reshape(len(PIECE), num_copies)
    num_groups = draw(st.integers(1, 4), label="groups")
    groups = [_relation(rng, ids, variables.num_states) for _ in range(num_groups)]
    graph = FactorGraph(variables, tuple(groups), log_constant=0.25)
    palette = draw(st.sampled_from(PALETTES), label="values")
    return graph.observe(_evidence(rng, graph, ids, palette))


def _relation(rng: np.random.Generator, ids: np.ndarray, num_states: np.ndarray) -> FactorGroup:
    """A factor for each copy, of its variables and some of the next copy or the first."""
    own = rng.permutation(len(ids))[: rng.integers(1, 4)]
    scope = ids[own].T
    if rng.random() < 0.4:
        other = ids[rng.integers(len(ids))]
        column = np.roll(other, 1) if rng.random() < 0.6 else np.full_like(other, other[0])
        scope = np.concatenate([scope, column[:, None]], axis=1)
        scope = scope[[len(set(row)) == len(row) for row in scope.tolist()]]
    slots = np.argsort(num_states[scope[0]] == 0, kind="stable")  # discrete ones first
    scope = scope[:, slots].astype(np.int32)
    potential = _potential(rng, num_states[scope[0]])
    row = rng.integers(0, 2, len(scope)) * (rng.random() < 0.3)
    multiplicity = rng.choice([1.0, 2.0], len(scope)) if rng.random() < 0.2 else None
    return FactorGroup(potential, scope, row, multiplicity)


def _potential(rng: np.random.Generator, num_states: np.ndarray) -> Potential:
    """Two rows of few distinct parameters, often symmetric."""
    sizes, num_reals = num_states[num_states > 0], int(np.count_nonzero(num_states == 0))
    if rng.random() < 0.2:
        symmetric = (tuple(range(len(sizes), len(num_states))),) if num_reals > 1 else ()
        parameters = rng.choice([0.5, 1.0], (2, 2))
        return Function(sums, len(sizes), num_reals, parameters, symmetric=symmetric)
    c = rng.choice([0.5, 1.0], (2, *sizes))
    if not num_reals:
        return Table(c)
    A = -rng.choice([0.0, 0.5, 1.0], (2, *sizes, num_reals, num_reals))
    b = rng.choice([0.0, 1.0], (2, *sizes, num_reals))
    if rng.random() < 0.6:
        A, b = A[..., :1, :1] * np.ones((num_reals, num_reals)), b[..., :1] * np.ones(num_reals)
    return ConditionalQuadratic(A, b, c)


def _evidence(
    rng: np.random.Generator, graph: FactorGraph, ids: np.ndarray, palette: list[float]
) -> Evidence:
    observed = rng.random(ids.shape) < rng.permutation([0.1, 0.1, 0.8, 1.0])[:, None]
    observed |= rng.random(ids.shape) < np.array([[0.0], [0.0], [0.8], [rng.choice([0.3, 1.0])]])
    some = ids[observed].astype(np.int32)
    is_real = graph.variables.num_states[some] == 0
    value = np.where(is_real, rng.choice(palette, len(some)), rng.integers(0, 2, len(some)))
    with_error = is_real & (rng.random(len(some)) < rng.choice([0.0, 0.0, 0.5]))
    return Evidence.of(some, value, np.where(with_error, rng.choice([0.5, 2.0], len(some)), 0.0))


def coarse_kinds(
    graph: FactorGraph, hidden: Conditioned, structure: Structure, clusters: EvidenceClusters
) -> np.ndarray:
    """(factor,): kinds that know observed reals by cluster only, in plain Python."""
    keys: list[set[Hashable]] = [{("exact", kind)} for kind in structure.kind.tolist()]
    parts = (part for parts in hidden.parts for part in parts)
    places = ((part, position) for part in parts for position in part.factors.tolist())
    for factor, (part, position) in enumerate(places):
        if key := _key(graph, part, position, clusters):
            orbit = structure.orbit[structure.first[factor] : structure.first[factor + 1]]
            group = int(np.searchsorted(structure.offsets, factor, side="right"))
            keys[factor].add((*key, group, tuple(orbit.tolist())))
    return _components(keys)


def _key(
    graph: FactorGraph, part: Part, position: int, clusters: EvidenceClusters
) -> tuple[Hashable, ...] | None:
    if part.source < 0:
        return "measurement", int(clusters.cluster[position])
    group = graph.groups[part.source]
    of_variable = {v: at for at, v in enumerate(graph.evidence.variable.tolist())}
    seen = []
    for slot in part.slots:
        at = of_variable[int(group.scope[position, slot])]
        is_real = group.potential.slot_states[slot] == 0
        seen.append(("cluster", int(clusters.cluster[at])) if is_real else graph.evidence.value[at])
    if not any(isinstance(entry, tuple) for entry in seen):
        return None
    row = int(group.row[position])
    left = [slot for slot in range(group.arity) if slot not in part.slots]
    twins = [
        next(s for s in range(slot + 1) if s == slot or exchangeable(group.potential, row, s, slot))
        for slot in (*part.slots, *left)
    ]
    return part.source, *twins, len(left), tuple(parameters(group.potential, row).tolist()), *seen


def _components(keys: list[set[Hashable]]) -> np.ndarray:
    """Numbers of what hangs together by shared keys."""
    number = list(range(len(keys)))
    changed = True
    while changed:
        least: dict[Hashable, int] = {}
        for its, n in zip(keys, number, strict=True):
            for key in its:
                least[key] = min(n, least.get(key, n))
        new = [min(least[key] for key in its) for its in keys]
        changed, number = new != number, new
    return np.array(number, dtype=np.int32)
