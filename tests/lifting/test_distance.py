"""Liftings by distance, beside color passing in plain Python, one round after the other."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Hashable, Sequence
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hylift.errors import ModelError
from hylift.graph import Evidence, FactorGraph, FactorGroup, Variables, boolean, interval, real
from hylift.lifting import Surroundings, by_distance, lift
from hylift.lifting.coarse import levels as levels_module
from hylift.potentials import ConditionalQuadratic, Table
from oracle import plain_factors
from random_models import symmetric_graphs
from slow_objective import Mixture, bethe, energy, jensen

SEEDS = st.integers(0, 2**32 - 1)


def all_rounds(graph: FactorGraph) -> list[Surroundings]:
    """Every lifting, however many classes it has."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(levels_module, "MAX_CLASS_SHARE", 1.0)
        return list(by_distance(graph))


def numbered(keys: Sequence[Hashable]) -> list[int]:
    place = {key: number for number, key in enumerate(dict.fromkeys(keys))}
    return [place[key] for key in keys]


def rounds_of_color_passing(graph: FactorGraph, tolerance: float = 1e-12) -> list[list[int]]:
    """Classes of variables after 0, 1, 2, … rounds, up to the last that splits one."""
    variables, factors = graph.variables, plain_factors(graph, tolerance)
    members = [Fraction(n) for n in variables.multiplicity.tolist()]
    found = [numbered([variables.domain(v) for v in range(len(members))])]
    while True:
        color = found[-1]
        received: list[defaultdict[tuple[Hashable, int], Fraction]]
        received = [defaultdict(Fraction) for _ in color]
        for factor in factors:
            for variable, orbit in zip(factor.scope, factor.orbits, strict=True):
                link = factor.color(color), orbit
                received[variable][link] += factor.multiplicity / members[variable]
        heard = [frozenset(counts.items()) for counts in received]
        finer = numbered(list(zip(color, heard, strict=True)))
        if len(set(finer)) == len(set(color)):
            return found
        found.append(finer)


def chain(length: int, kind: str = "boolean") -> FactorGraph:
    """Variables in a row, of which the first is told apart by a factor of its own."""
    place = np.arange(length, dtype=np.int32)
    links = np.stack([place[:-1], place[1:]], axis=1)
    if kind == "boolean":
        near, own = Table.shared([[1.0, 0.0], [0.0, 1.0]]), Table.shared([0.0, 0.5])
    else:
        near = ConditionalQuadratic.squared_distance(1.0, [1.0, -1.0])
        own = ConditionalQuadratic.squared_distance(0.5, [1.0])
    domain = boolean if kind == "boolean" else real
    return FactorGraph(
        Variables.uniform(domain, length),
        (FactorGroup(near, links), FactorGroup(own, place[:1, None])),
    )


@settings(max_examples=100)
@given(symmetric_graphs(max_copies=8))
def test_classes_are_those_of_as_many_rounds(graph: FactorGraph) -> None:
    *coarse, last = all_rounds(graph)

    expected = rounds_of_color_passing(last.lifting.ground)
    assert len(coarse) == len(expected) - 1
    for found in coarse:
        classes = found.lifting.variable_to_class.tolist()
        assert numbered(classes) == expected[found.distance]
    assert numbered(last.lifting.variable_to_class.tolist()) == expected[-1]


@settings(max_examples=60)
@given(symmetric_graphs(max_copies=8))
def test_each_lifting_divides_the_one_before(graph: FactorGraph) -> None:
    levels = all_rounds(graph)

    assert len(levels[0].parent) == 0
    assert [level.is_last for level in levels] == [False] * (len(levels) - 1) + [True]
    assert [level.lifting.is_exact for level in levels] == [level.is_last for level in levels]
    assert [level.distance for level in levels] == sorted(level.distance for level in levels)
    for before, after in itertools.pairwise(levels):
        coarse, fine = before.lifting, after.lifting
        assert len(after.parent) == fine.num_classes
        assert (after.parent[fine.variable_to_class] == coarse.variable_to_class).all()
        assert fine.num_classes >= coarse.num_classes


@settings(max_examples=60)
@given(symmetric_graphs(max_copies=8))
def test_the_last_is_the_exact_lifting(graph: FactorGraph) -> None:
    last = all_rounds(graph)[-1].lifting
    exact = lift(graph)

    assert last.variable_to_class.tolist() == exact.variable_to_class.tolist()
    for own, other in zip(last.factor_to_class, exact.factor_to_class, strict=True):
        assert own.tolist() == other.tolist()
    assert last.graph.num_factors == exact.graph.num_factors
    assert last.hidden.tolist() == exact.hidden.tolist()


@settings(max_examples=40)
@given(symmetric_graphs(max_copies=4, max_relations=3), SEEDS)
def test_objectives_are_those_of_the_graph_with_classmates_treated_alike(
    graph: FactorGraph, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    for level in all_rounds(graph):
        lifted, ground = level.lifting.graph, level.lifting.ground
        q = Mixture.random(lifted, int(rng.integers(1, 4)), rng, zeros=True)

        spread = q.spread(level.lifting.variable_to_class)

        for objective in (bethe, jensen):
            expected = objective(ground, spread)
            np.testing.assert_allclose(objective(lifted, q), expected, rtol=1e-10, atol=1e-10)


@settings(max_examples=40)
@given(symmetric_graphs(max_copies=6), SEEDS)
def test_energies_are_those_of_equal_classmates(graph: FactorGraph, seed: int) -> None:
    rng = np.random.default_rng(seed)
    for level in all_rounds(graph):
        lifted = level.lifting.graph
        num_states = lifted.variables.num_states
        states = np.floor(rng.random(len(num_states)) * num_states)
        values = np.where(num_states > 0, states, rng.normal(size=len(num_states)))

        expected = energy(level.lifting.ground, values[level.lifting.variable_to_class])

        np.testing.assert_allclose(energy(lifted, values), expected, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("kind", ["boolean", "real"])
def test_a_round_sees_one_factor_further(kind: str) -> None:
    *coarse, last = all_rounds(chain(20, kind))

    assert [found.distance for found in coarse] == list(range(1, len(coarse) + 1))
    for found in coarse:
        # The first, those that see it or the other end, and the rest, who see neither.
        far = min(2 * found.distance + 1, 20)
        assert found.lifting.num_classes == far
    assert last.lifting.num_classes == 20


def test_without_anything_to_tell_apart_there_is_the_exact_lifting_only() -> None:
    ring = np.stack([np.arange(6), (np.arange(6) + 1) % 6], axis=1).astype(np.int32)
    alike = Table.shared([[1.0, 0.0], [0.0, 1.0]])
    graph = FactorGraph(Variables.uniform(boolean, 6), (FactorGroup(alike, ring),))

    (only,) = by_distance(graph)

    assert only.is_last
    assert only.lifting.num_classes == 1
    assert len(only.parent) == 0


@pytest.mark.parametrize(("most", "num_levels"), [(0.0, 1), (0.2, 2), (0.3, 3), (1.0, 11)])
def test_where_classes_are_too_many_the_exact_lifting_follows(
    most: float, num_levels: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(levels_module, "MAX_CLASS_SHARE", most)

    levels = list(by_distance(chain(20)))

    assert len(levels) == num_levels
    assert levels[-1].lifting.num_classes == 20
    assert all(level.lifting.num_classes <= most * 20 for level in levels[:-1])


def test_evidence_is_absorbed_and_tells_variables_apart() -> None:
    graph = chain(12, "real").observe(Evidence.of([6], [2.5]))

    levels = all_rounds(graph)

    assert 6 not in levels[0].lifting.hidden
    assert levels[-1].lifting.ground.num_variables == 11
    assert levels[-1].lifting.num_classes == lift(graph).num_classes


def test_parameters_within_the_tolerance_are_alike() -> None:
    place = np.arange(40, dtype=np.int32)[:, None]
    squares = ConditionalQuadratic(
        -1.0 - 1e-9 * np.arange(40.0).reshape(40, 1, 1), np.zeros((40, 1)), np.zeros(40)
    )
    graph = FactorGraph(
        Variables.uniform(interval(-2, 2), 40), (FactorGroup(squares, place, np.arange(40)),)
    )

    strict, loose = (list(by_distance(graph, tolerance=t))[-1] for t in (1e-12, 1e-6))

    assert strict.lifting.num_classes == 40
    assert loose.lifting.num_classes == 1


def test_progress_is_told_round_by_round() -> None:
    told: list[tuple[float, str]] = []

    def progress(share: float, what: str) -> None:
        told.append((share, what))

    list(by_distance(chain(100), progress=progress))

    words = [what for _, what in told]
    assert words[0] == "absorbing evidence"
    assert words[1:3] == ["passing colors, round 1", "passing colors, round 2"]
    assert told[-1] == (1.0, "lifted")


def test_only_graphs_are_lifted() -> None:
    with pytest.raises(ModelError, match="can be lifted, not a value of type 'str'"):
        next(by_distance("graph"))  # type: ignore[arg-type]
