"""Color passing resumed finds what color passing from the start finds."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from hylift.graph import FactorGraph, FactorGroup, Variables, real
from hylift.lifting import Partition, Structure, stable_coloring
from hylift.potentials import ConditionalQuadratic
from random_models import symmetric_graphs

SEEDS = st.integers(0, 2**32 - 1)


def ever_finer(structure: Structure, rng: np.random.Generator) -> list[np.ndarray]:
    """Kinds of factors, at first one per group and symmetry, each finer than those before."""
    kinds = []
    orbits = np.split(structure.orbit, structure.first[1:-1]) if structure.num_factors else []
    groups = np.searchsorted(structure.offsets, np.arange(structure.num_factors), side="right")
    keys = [(g, *o.tolist()) for g, o in zip(groups.tolist(), orbits, strict=True)]
    for _ in range(4):
        number = {key: place for place, key in enumerate(dict.fromkeys(keys))}
        kinds.append(np.array([number[key] for key in keys], dtype=np.int32))
        some = rng.random(len(keys)) < rng.choice([0.1, 0.5, 0.9])
        news = rng.integers(0, 3, len(keys)) * some
        keys = [(*key, new) for key, new in zip(keys, news.tolist(), strict=True)]
    return kinds


def assert_same(found: Partition, expected: Partition) -> None:
    assert found.variable.tolist() == expected.variable.tolist()
    assert found.factor.tolist() == expected.factor.tolist()
    assert found.first_variable.tolist() == expected.first_variable.tolist()
    assert found.first_factor.tolist() == expected.first_factor.tolist()


@settings(max_examples=200)
@given(symmetric_graphs(max_copies=8, evidence=False), SEEDS)
def test_resuming_finds_what_starting_again_finds(graph: FactorGraph, seed: int) -> None:
    structure = Structure.of(graph)
    first, *finer = ever_finer(structure, np.random.default_rng(seed))

    coloring = stable_coloring(structure, first)
    for kind in finer:
        coloring = stable_coloring(structure, kind, start=coloring)

        assert_same(coloring, stable_coloring(structure, kind))


def test_kinds_that_stay_change_nothing() -> None:
    structure = Structure.of(ring(5))
    coloring = stable_coloring(structure)

    same = stable_coloring(structure, structure.kind, start=coloring)

    assert_same(same, coloring)


def ring(size: int) -> FactorGraph:
    near = ConditionalQuadratic.squared_distance(1.0, [1, -1])
    ids = np.arange(size)
    scope = np.stack([ids, (ids + 1) % size], axis=1)
    return FactorGraph(Variables.uniform(real, size), (FactorGroup(near, scope),))


def test_one_factor_that_differs_is_felt_all_around_a_ring() -> None:
    structure = Structure.of(ring(101))
    coloring = stable_coloring(structure)
    kind = structure.kind.copy()
    kind[0] = 1

    found = stable_coloring(structure, kind, start=coloring)

    assert coloring.num_variable_classes == 1
    assert found.num_variable_classes == 51  # the ends of factor 0, and so on to the far side
    assert_same(found, stable_coloring(structure, kind))


def test_a_partner_of_what_stays_is_told_from_partners_that_move_together() -> None:
    """Pairs a-b and c-d, where all but c are marked: d has another partner than a and b."""
    near = ConditionalQuadratic.squared_distance(1.0, [1, -1])
    own = ConditionalQuadratic.square(-1.0)
    pairs, alone = np.array([[0, 1], [2, 3]]), np.arange(4)[:, None]
    graph = FactorGraph(
        Variables.uniform(real, 4), (FactorGroup(near, pairs), FactorGroup(own, alone))
    )
    structure = Structure.of(graph)
    before = np.array([0, 0, 1, 1, 1, 1], dtype=np.int32)
    kind = np.array([0, 0, 2, 2, 1, 2], dtype=np.int32)

    coloring = stable_coloring(structure, before)
    found = stable_coloring(structure, kind, start=coloring)

    assert coloring.variable.tolist() == [0, 0, 0, 0]
    assert found.variable.tolist() == [0, 0, 1, 2]


def test_a_variable_with_many_factors_is_told_apart_by_their_kinds() -> None:
    """Hubs of 40 leaves each; two of them have leaves of other kinds, equally many of each."""
    hub, leaf = np.arange(4), 4 + np.arange(160)
    near = ConditionalQuadratic.squared_distance(1.0, [1, -1])
    scope = np.stack([np.repeat(hub, 40), leaf], axis=1)
    graph = FactorGraph(Variables.uniform(real, 164), (FactorGroup(near, scope),))
    structure = Structure.of(graph)
    before = np.zeros(160, dtype=np.int32)
    coloring = stable_coloring(structure, before)
    kind = np.concatenate([np.zeros(80), np.arange(40) % 20, np.arange(40)[::-1] % 20])

    found = stable_coloring(structure, kind.astype(np.int32), start=coloring)

    assert found.variable[:4].tolist() == [0, 0, 1, 1]
    assert_same(found, stable_coloring(structure, kind.astype(np.int32)))
