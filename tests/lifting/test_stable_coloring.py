"""Color passing: collisions of hashes, work lists, and going on from a coarser coloring."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from hylift.graph import FactorGraph, FactorGroup, Variables, boolean
from hylift.lifting import Partition, Structure, coloring, stable_coloring
from hylift.potentials import Table
from oracle import coarsest_equitable
from random_models import symmetric_graphs

SEEDS = st.integers(0, 2**32 - 1)
MASKS = [0, 1, 3, 0xF, 0x8000_0000_0000_0000]


def coarser_kinds(structure: Structure, rng: np.random.Generator) -> NDArray[np.int32]:
    """Kinds of which some are joined, those of one group and one set of exchangeable slots."""
    label = rng.integers(0, rng.choice([1, 2, 5]), max(structure.num_kinds, 1))
    keys = []
    for factor, kind in enumerate(structure.kind.tolist()):
        group = int(np.searchsorted(structure.offsets, factor, side="right"))
        orbit = structure.orbit[structure.first[factor] : structure.first[factor + 1]]
        keys.append((group, tuple(orbit.tolist()), int(label[kind])))
    place = {key: number for number, key in enumerate(dict.fromkeys(keys))}
    return np.array([place[key] for key in keys], dtype=np.int32)


def assert_same(actual: Partition, expected: Partition) -> None:
    assert actual.variable.tolist() == expected.variable.tolist()
    assert actual.factor.tolist() == expected.factor.tolist()
    assert actual.first_variable.tolist() == expected.first_variable.tolist()
    assert actual.first_factor.tolist() == expected.first_factor.tolist()


@pytest.mark.parametrize("mask", MASKS)
@settings(max_examples=40)
@given(graph=symmetric_graphs())
def test_colliding_hashes_cost_no_class(mask: int, graph: FactorGraph) -> None:
    ground = graph.condition()

    partition = stable_coloring(Structure.of(ground), mask=mask)

    assert partition.variable.tolist() == coarsest_equitable(ground)


@settings(max_examples=100)
@given(symmetric_graphs())
def test_full_hashes_leave_nothing_to_repair(graph: FactorGraph) -> None:
    """A collision of 64 bits is so rare that one here is a weakness of the hashes."""
    structure = Structure.of(graph.condition())
    with pytest.MonkeyPatch.context() as patch:
        # With nothing split after it, the first coloring is the result.
        patch.setattr(
            coloring, "_split", lambda _, found: (found.variable, found.num_variable_classes)
        )
        unverified = stable_coloring(structure)

    assert_same(unverified, stable_coloring(structure))


@pytest.mark.parametrize("few", [0.0, 0.1, 1.0, 2.0])
@settings(max_examples=40)
@given(graph=symmetric_graphs(max_copies=8))
def test_looking_only_at_what_changed_finds_the_same(few: float, graph: FactorGraph) -> None:
    ground = graph.condition()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(coloring, "FEW", few)
        partition = stable_coloring(Structure.of(ground))

    assert partition.variable.tolist() == coarsest_equitable(ground)


def check_resuming(graph: FactorGraph, seed: int, few: float, mask: int) -> None:
    rng = np.random.default_rng(seed)
    structure = Structure.of(graph.condition())
    coarse = coarser_kinds(structure, rng)
    expected = stable_coloring(structure)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(coloring, "FEW", few)
        start = stable_coloring(structure, coarse, mask=mask)
        actual = stable_coloring(structure, start=start, mask=mask)

    assert start.num_variable_classes <= expected.num_variable_classes
    assert_same(actual, expected)


@pytest.mark.parametrize("few", [0.0, 0.25, 2.0])
@settings(max_examples=60)
@given(graph=symmetric_graphs(max_copies=8), seed=SEEDS)
def test_going_on_from_coarser_kinds_ends_where_the_exact_ones_do(
    few: float, graph: FactorGraph, seed: int
) -> None:
    check_resuming(graph, seed, few, coloring.ALL_BITS)


@settings(max_examples=40)
@given(symmetric_graphs(max_copies=8), SEEDS)
def test_going_on_survives_colliding_hashes(graph: FactorGraph, seed: int) -> None:
    check_resuming(graph, seed, few=2.0, mask=1)


@pytest.mark.slow
@settings(max_examples=3000)
@given(
    symmetric_graphs(max_copies=8),
    SEEDS,
    st.sampled_from([0.0, 0.25, 2.0]),
    st.sampled_from([*MASKS, coloring.ALL_BITS]),
)
def test_going_on_thousands_of_times(graph: FactorGraph, seed: int, few: float, mask: int) -> None:
    check_resuming(graph, seed, few, mask)


AGREE, IMPLY = Table.shared([[1.0, 0.0], [0.0, 1.0]]), Table.shared([[1.0, 1.0], [0.0, 1.0]])
PRIOR = Table.shared([0.0, 0.5])


def pairwise(
    num_variables: int, pairs: list[tuple[int, int]], *, directed: bool, singled_out: list[int]
) -> FactorGraph:
    scope = np.array(pairs, dtype=np.int32).reshape(-1, 2)
    groups = [FactorGroup(IMPLY if directed else AGREE, scope)]
    groups.append(FactorGroup(PRIOR, np.array(singled_out, dtype=np.int32).reshape(-1, 1)))
    return FactorGraph(Variables.uniform(boolean, num_variables), tuple(groups))


def cycle(directed: bool) -> FactorGraph:
    pairs = [(i, (i + 1) % 200) for i in range(200)]
    return pairwise(200, pairs, directed=directed, singled_out=[17])


def chain(directed: bool) -> FactorGraph:
    return pairwise(150, list(itertools.pairwise(range(150))), directed=directed, singled_out=[])


def torus(directed: bool) -> FactorGraph:
    size = 14
    cells = [(i, j) for i in range(size) for j in range(size)]
    pairs = [(i * size + j, (i + 1) % size * size + j) for i, j in cells]
    pairs += [(i * size + j, i * size + (j + 1) % size) for i, j in cells]
    return pairwise(size**2, pairs, directed=directed, singled_out=[30, 31])


def binary_tree(directed: bool) -> FactorGraph:
    pairs = [(i, (i - 1) // 2) for i in range(1, 255)]
    return pairwise(255, pairs, directed=directed, singled_out=[200])


def regular(directed: bool) -> FactorGraph:
    """A random graph in which all have three neighbours, one of them singled out."""
    rng = np.random.default_rng(5)
    pairs = np.concatenate([np.stack([np.arange(200), rng.permutation(200)], 1) for _ in range(3)])
    distinct = pairs[pairs[:, 0] != pairs[:, 1]]
    return pairwise(200, distinct.tolist(), directed=directed, singled_out=[0])


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("graph", [cycle, chain, torus, binary_tree, regular])
def test_what_is_far_away_is_told_apart(
    graph: Callable[[bool], FactorGraph], directed: bool
) -> None:
    ground = graph(directed)
    structure = Structure.of(ground)

    partition = stable_coloring(structure)

    assert partition.variable.tolist() == coarsest_equitable(ground)
    assert_same(stable_coloring(structure, mask=7), partition)
    nothing_known = np.zeros(structure.num_factors, dtype=np.int32)
    nothing_known[structure.offsets[1] :] = 1
    start = stable_coloring(structure, nothing_known)
    assert_same(stable_coloring(structure, start=start), partition)


@pytest.mark.parametrize("few", [0.0, 0.25, 2.0])
@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("graph", [cycle, chain, torus, binary_tree])
def test_factors_that_are_counted_are_like_factors_written_out(
    graph: Callable[[bool], FactorGraph], directed: bool, few: float
) -> None:
    plain = graph(directed)
    expected = stable_coloring(Structure.of(plain)).variable.tolist()
    pairs, singled_out = plain.groups
    times = np.random.default_rng(1).integers(1, 4, len(pairs))  # 6 = times * multiplicity
    scope = np.repeat(pairs.scope, times, axis=0)
    multiplicity = np.repeat(6.0 / times, times)
    counted = FactorGroup(pairs.potential, scope, multiplicity=multiplicity)
    structure = Structure.of(FactorGraph(plain.variables, (counted, singled_out)))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(coloring, "FEW", few)
        found = stable_coloring(structure)

    assert found.variable.tolist() == expected


def test_two_triangles_are_like_a_hexagon() -> None:
    """What color passing cannot tell apart, and need not."""
    pairs = [(i, (i + 1) % 6) for i in range(6)]
    pairs += [(6, 7), (7, 8), (8, 6), (9, 10), (10, 11), (11, 9)]

    partition = stable_coloring(Structure.of(pairwise(12, pairs, directed=False, singled_out=[])))

    assert partition.num_variable_classes == 1


@settings(max_examples=30)
@given(symmetric_graphs(max_copies=8), SEEDS)
def test_steps_of_ever_finer_kinds_end_at_the_exact_ones(graph: FactorGraph, seed: int) -> None:
    rng = np.random.default_rng(seed)
    structure = Structure.of(graph.condition())
    exact = stable_coloring(structure)
    coarse = coarser_kinds(structure, rng)
    halves = rng.integers(0, 2, max(structure.num_kinds, 1))
    finer = np.unique(
        np.stack([coarse, halves[structure.kind]]), axis=1, return_inverse=True
    )[1].ravel().astype(np.int32)  # fmt: skip

    found = stable_coloring(structure, coarse)
    found = stable_coloring(structure, finer, found)
    found = stable_coloring(structure, start=found)

    assert_same(found, exact)
