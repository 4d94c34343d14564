"""Symmetric models with many observed reals, and kinds of factors found one at a time."""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np
from hypothesis import strategies as st

from hylift.errors import ImpossibleEvidenceError
from hylift.graph import Conditioned, Evidence, FactorGraph
from hylift.lifting import Structure
from hylift.lifting.coarse import EvidenceClusters
from random_models import symmetric_graphs

PALETTES = [[-1.0, 0.5], [-1.5, -1.0, 0.25, 0.5, 2.0], list(np.linspace(-1.5, 2.0, 29))]
"""Sums and products of these are exact, or nearly so."""


@st.composite
def observed_graphs(draw: st.DrawFn, *, max_copies: int = 7) -> FactorGraph:
    """Copies of a piece with evidence on many of its reals, with and without error."""
    graph = draw(symmetric_graphs(max_copies=max_copies, evidence=False))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1), label="seed of the evidence"))
    palette = draw(st.sampled_from(PALETTES), label="values")
    num_states = graph.variables.num_states
    share = np.where(num_states > 0, 0.2, rng.choice([0.3, 0.7]))
    ids = np.flatnonzero(rng.random(len(num_states)) < share).astype(np.int32)
    states = rng.integers(0, np.clip(num_states[ids], 1, 2))
    value = np.where(num_states[ids] > 0, states, rng.choice(palette, len(ids)))
    with_error = (num_states[ids] == 0) & (rng.random(len(ids)) < rng.choice([0.0, 0.4]))
    var = np.where(with_error, rng.choice([0.5, 2.0], len(ids)), 0.0)
    observed = graph.observe(Evidence.of(ids, value, var))
    try:
        observed.condition()
    except ImpossibleEvidenceError:
        return graph
    return observed


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
            keys[factor].add((*key, tuple(orbit.tolist())))
    return _components(keys)


def _key(graph, part, position, clusters) -> tuple[Hashable, ...] | None:
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
    row = tuple(group.potential.flat[group.row[position]].tolist())
    return part.source, part.slots, row, *seen


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
