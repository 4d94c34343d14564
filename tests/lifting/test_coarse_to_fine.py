"""Liftings from coarse to fine: nested, sound at every level, and exact at the last."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hylift.errors import ModelError
from hylift.graph import (
    Atoms,
    Conditioned,
    Evidence,
    FactorGraph,
    FactorGroup,
    Soft,
    Variables,
    boolean,
    real,
)
from hylift.lifting import Level, Lifting, Structure, coarse_to_fine, lift, stable_coloring
from hylift.potentials import ConditionalQuadratic, Function, Table
from lifting.observed_models import coarse_kinds, observed_graphs
from oracle import solve
from slow_objective import Mixture, bethe, energy, jensen

SEEDS = st.integers(0, 2**32 - 1)


def people(num_people: int, weight: float = 0.5) -> FactorGraph:
    """Everyone has a mood x and a score y that follows it; moods follow a common one."""
    names = ([f"p{i}" for i in range(num_people)],)
    blocks = [(Atoms("x", names), real), (Atoms("y", names), real), (Atoms("common", ()), real)]
    variables = Variables.in_blocks(blocks)
    x, y = np.arange(num_people), num_people + np.arange(num_people)
    common = np.full(num_people, 2 * num_people)
    score = ConditionalQuadratic.squared_distance(weight, [1, -1])
    follow = ConditionalQuadratic.squared_distance(0.25, [1, -1])
    groups = (
        FactorGroup(score, np.stack([y, x], axis=1)),
        FactorGroup(follow, np.stack([x, common], axis=1)),
        FactorGroup(ConditionalQuadratic.square(-1.0), common[:1, None]),
    )
    return FactorGraph(variables, groups)


def scored(values: list[float]) -> FactorGraph:
    """People with observed scores."""
    size = len(values)
    return people(size).observe(Evidence.of(np.arange(size, 2 * size), values))


def one_at_a_time(level: Level) -> np.ndarray:
    """The first cluster that can be split."""
    chosen = np.zeros(len(level.clusters), dtype=bool)
    chosen[np.argmax(level.splittable)] = True
    return chosen


def at_random(seed: int) -> Callable[[Level], np.ndarray]:
    rng = np.random.default_rng(seed)
    return lambda level: rng.random(len(level.clusters)) < 0.4


def assert_same_lifting(found: Lifting, expected: Lifting) -> None:
    assert found.is_exact == expected.is_exact
    assert found.variable_to_class.tolist() == expected.variable_to_class.tolist()
    for mine, theirs in zip(found.factor_to_class, expected.factor_to_class, strict=True):
        assert mine.tolist() == theirs.tolist()
    for mine, theirs in zip(found.graph.groups, expected.graph.groups, strict=True):
        assert mine.scope.tolist() == theirs.scope.tolist()
        assert mine.multiplicity.tolist() == theirs.multiplicity.tolist()
        rows = mine.potential.flat[mine.row], theirs.potential.flat[theirs.row]
        np.testing.assert_allclose(*rows, rtol=1e-10)


@settings(max_examples=150)
@given(observed_graphs(), SEEDS)
def test_levels_nest_and_end_at_the_exact_lifting(graph: FactorGraph, seed: int) -> None:
    exact = lift(graph)

    for choose in (None, at_random(seed)):
        levels = list(coarse_to_fine(graph, **({"choose": choose} if choose else {})))

        assert_same_lifting(levels[-1].lifting, exact)
        assert [level.lifting.is_exact for level in levels[:-1]] == [False] * (len(levels) - 1)
        assert [level.is_last for level in levels] == [False] * (len(levels) - 1) + [True]
        assert len(levels[0].parent) == 0
        for before, after in itertools.pairwise(levels):
            of_members = after.parent[after.lifting.variable_to_class]
            assert of_members.tolist() == before.lifting.variable_to_class.tolist()
            assert after.coloring.num_factor_classes > before.coloring.num_factor_classes


@settings(max_examples=150)
@given(observed_graphs(), SEEDS)
def test_each_level_is_what_color_passing_from_the_start_finds(
    graph: FactorGraph, seed: int
) -> None:
    hidden = Conditioned.of(graph)
    structure = Structure.of(hidden.graph)

    for level in coarse_to_fine(graph, choose=at_random(seed)):
        kind = coarse_kinds(graph, hidden, structure, level.clusters)
        expected = stable_coloring(structure, kind)

        assert level.coloring.variable.tolist() == expected.variable.tolist()
        assert level.coloring.factor.tolist() == expected.factor.tolist()


@settings(max_examples=100)
@given(observed_graphs(max_copies=5), SEEDS)
def test_at_every_level_objectives_are_those_of_the_ground_graph(
    graph: FactorGraph, seed: int
) -> None:
    rng = np.random.default_rng(seed)

    for level in coarse_to_fine(graph):
        lifted, ground = level.lifting.graph, level.lifting.ground
        q = Mixture.random(lifted, 2, rng, zeros=True)
        values = np.where(lifted.variables.num_states, 0.0, rng.normal(size=len(lifted.variables)))

        spread, spread_values = (
            q.spread(level.lifting.variable_to_class),
            level.lifting.spread(values),
        )
        close = {"rtol": 1e-10, "atol": 1e-10}
        np.testing.assert_allclose(bethe(lifted, q), bethe(ground, spread), **close)
        np.testing.assert_allclose(jensen(lifted, q), jensen(ground, spread), **close)
        np.testing.assert_allclose(energy(lifted, values), energy(ground, spread_values), **close)
        assert lifted.log_density(values) == pytest.approx(ground.log_density(spread_values))


def test_the_bound_of_a_coarse_level_is_a_bound() -> None:
    graph = scored([0.0, 0.5, 3.0]).observe({"x(p0)": Soft(1.0, 0.5)})
    log_z = solve(graph).log_z
    rng = np.random.default_rng(0)

    for level in coarse_to_fine(graph):
        bounds = [
            -jensen(level.lifting.graph, Mixture.random(level.lifting.graph, 2, rng, zeros=False))
            for _ in range(200)
        ]

        assert max(bounds) < log_z


@settings(max_examples=100)
@given(observed_graphs(), st.sampled_from([0.01, 0.3, 2.0, 100.0]), SEEDS)
def test_the_order_of_splits_makes_no_difference_in_the_end(
    graph: FactorGraph, epsilon: float, seed: int
) -> None:
    *_, all_at_once = coarse_to_fine(graph, epsilon=epsilon)
    *_, in_turn = coarse_to_fine(graph, epsilon=epsilon, choose=one_at_a_time)
    *_, shuffled = coarse_to_fine(graph, epsilon=epsilon, choose=at_random(seed))

    assert_same_lifting(in_turn.lifting, all_at_once.lifting)
    assert_same_lifting(shuffled.lifting, all_at_once.lifting)
    varying = all_at_once.clusters.variance > epsilon
    assert not (all_at_once.splittable & varying).any()


def test_scores_are_told_apart_in_two_parts_then_four() -> None:
    levels = list(coarse_to_fine(scored([0.0, 1.0, 10.0, 11.0])))

    classes = [level.lifting.variable_to_class[:4].tolist() for level in levels]
    assert classes == [[0, 0, 0, 0], [0, 0, 1, 1], [0, 1, 2, 3]]
    assert [level.parent.tolist() for level in levels] == [[], [0, 0, 1], [0, 0, 1, 1, 2]]
    assert [len(level.clusters) for level in levels] == [1, 2, 4]


def test_a_factor_of_a_cluster_is_its_expectation_over_the_values() -> None:
    scores = np.array([0.0, 1.0, 3.0, 10.0, 12.0])
    x = np.linspace(-2, 2, 7)

    level = next(coarse_to_fine(scored(list(scores))))

    group = level.lifting.graph.groups[0]
    mean, variance = level.clusters.mean[0], level.clusters.variance[0]
    assert (mean, variance) == (scores.mean(), scores.var())
    found = group.potential.log_value(group.row[0], [x])
    np.testing.assert_allclose(found, -0.5 * ((x - mean) ** 2 + variance), rtol=1e-12)
    assert group.multiplicity[0] == 5


def test_a_cluster_of_measurements_is_its_expectation_over_the_values() -> None:
    values = np.array([0.0, 1.0, 5.0])
    graph = people(3).observe({f"x(p{i})": Soft(value, 0.5) for i, value in enumerate(values)})

    level = next(coarse_to_fine(graph))

    x = np.linspace(-2, 2, 7)
    groups = [group for group in level.lifting.graph.groups if group.arity == 1]
    found = sum(
        multiplicity * group.potential.log_value(row, [x])
        for group in groups
        for row, multiplicity in zip(group.row, group.multiplicity, strict=True)
        if multiplicity == 3
    )
    expected = -((x - values.mean()) ** 2 + values.var()) - 0.5 * np.log(np.pi)
    np.testing.assert_allclose(found, 3 * expected, rtol=1e-12)


def test_epsilon_is_a_variance_below_which_nothing_is_split() -> None:
    graph = scored([0.0, 1.0, 10.0, 11.0])

    *_, coarse = coarse_to_fine(graph, epsilon=0.25)
    *_, fine = coarse_to_fine(graph, epsilon=0.2499)
    levels = list(coarse_to_fine(graph, epsilon=1e6))

    assert coarse.clusters.variance.tolist() == [0.25, 0.25]
    assert coarse.lifting.num_classes == 3
    assert coarse.is_last
    assert not coarse.lifting.is_exact
    assert fine.lifting.is_exact
    assert len(levels) == 1


@pytest.mark.parametrize("epsilon", [-1e-9, np.nan, np.inf])
def test_epsilon_is_refused_before_anything_is_done(epsilon: float) -> None:
    with pytest.raises(ModelError, match=rf"must be finite and non-negative, not {epsilon}"):
        coarse_to_fine(scored([1.0, 2.0]), epsilon=epsilon)


def test_something_else_than_a_graph_is_refused() -> None:
    with pytest.raises(ModelError, match="can be lifted, not a value of type 'list'"):
        coarse_to_fine([])  # type: ignore[arg-type]


def test_without_observed_reals_there_is_one_level_and_it_is_exact() -> None:
    graph = people(3)

    (level,) = coarse_to_fine(graph)

    assert_same_lifting(level.lifting, lift(graph))
    assert level.is_last
    assert len(level.clusters) == 0


def test_scores_that_are_all_equal_need_one_level() -> None:
    (level,) = coarse_to_fine(scored([2.5] * 4))

    assert level.lifting.is_exact
    assert level.lifting.num_classes == 2


def test_evidence_that_no_parameter_depends_on_is_not_told_apart() -> None:
    graph = people(3)
    ignored = ConditionalQuadratic.squared_distance(1.0, [0, 1])  # of y and x, x alone
    groups = (FactorGroup(ignored, graph.groups[0].scope), *graph.groups[1:])
    graph = FactorGraph(graph.variables, groups)

    (level,) = coarse_to_fine(graph.observe({"y(p0)": 1, "y(p1)": 2, "y(p2)": 7}))

    assert level.lifting.is_exact
    assert level.lifting.num_classes == 2
    assert not level.splittable.any()


def test_factors_with_all_slots_observed_have_no_part_in_it() -> None:
    evidence = {"x(p0)": 1, "y(p0)": 2, "y(p1)": 3, "y(p2)": 3, "common": 0}
    graph = people(3).observe(evidence)

    (level,) = coarse_to_fine(graph)

    assert level.clusters.cluster.tolist() == [-1, -1, 0, 0, 0] or level.lifting.is_exact
    assert level.lifting.num_classes == 1


def test_evidence_in_several_slots_of_a_factor_is_told_apart_slot_by_slot() -> None:
    variables = Variables.in_blocks(
        [(Atoms(name, (["1", "2", "3", "4"],)), real) for name in ("x", "y", "z")]
    )
    triple = ConditionalQuadratic.squared_distance(1.0, [1, 1, 2])
    graph = FactorGraph(variables, (FactorGroup(triple, np.arange(12).reshape(3, 4).T),))
    evidence = Evidence.of(np.arange(4, 12), [0, 0, 8, 8, 0, 6, 0, 6])

    levels = list(coarse_to_fine(graph.observe(evidence), choose=one_at_a_time))

    classes = [level.lifting.variable_to_class.tolist() for level in levels]
    assert classes == [[0, 0, 0, 0], [0, 0, 1, 1], [0, 1, 2, 3]]


def test_different_evidence_with_one_sum_is_merged_again_in_the_end() -> None:
    """The factor depends on y + z only: (1, 3), (2, 2) and (3, 1) make no difference."""
    variables = Variables.in_blocks(
        [(Atoms(name, (["1", "2", "3", "4"],)), real) for name in ("x", "y", "z")]
    )
    total = ConditionalQuadratic.squared_distance(1.0, [1, 1, 1])
    graph = FactorGraph(variables, (FactorGroup(total, np.arange(12).reshape(3, 4).T),))
    evidence = Evidence.of(np.arange(4, 12), [1, 2, 3, 2, 3, 2, 1, 7])

    *_, last = coarse_to_fine(graph.observe(evidence))

    assert last.lifting.variable_to_class.tolist() == [0, 0, 0, 1]


def test_discrete_evidence_is_known_from_the_first_level_on() -> None:
    names = (["1", "2", "3", "4"],)
    blocks = [(Atoms("on", names), boolean), (Atoms("x", names), real), (Atoms("y", names), real)]
    switch = ConditionalQuadratic.squared_distance(1.0, [1, -1]).times([1, 2])
    scope = np.arange(12).reshape(3, 4).T
    graph = FactorGraph(Variables.in_blocks(blocks), (FactorGroup(switch, scope),))
    evidence = Evidence.of([0, 1, 2, 3, 8, 9, 10, 11], [0, 1, 0, 1, 0.5, 0.5, 3, 4])

    levels = list(coarse_to_fine(graph.observe(evidence)))

    classes = [level.lifting.variable_to_class.tolist() for level in levels]
    assert classes == [[0, 1, 0, 1], [0, 1, 2, 3]]


def test_functions_keep_their_parameters_while_their_variables_are_merged() -> None:
    graph = people(3)
    bump = Function(lambda y, x: np.cos(x - y), num_reals=2)
    groups = (FactorGroup(bump, graph.groups[0].scope), *graph.groups[1:])
    graph = FactorGraph(graph.variables, groups).observe({"y(p0)": 1, "y(p1)": 1, "y(p2)": 2})

    first, last = coarse_to_fine(graph)

    group = next(g for g in first.lifting.graph.groups if g.potential.quadratic() is None)
    assert first.lifting.num_classes == 2
    assert not first.lifting.is_exact
    assert group.scope.tolist() == [[0], [0]]
    assert group.multiplicity.tolist() == [2, 1]
    assert last.lifting.variable_to_class.tolist() == [0, 0, 1, 2]


def test_evidence_on_a_lifted_graph_counts_as_often_as_its_variables() -> None:
    lifted = lift(people(4).observe({"y(p1)": 0.0})).graph  # p1, and the other three

    level = next(coarse_to_fine(lifted.observe({"x(p0)": Soft(4.0, 1.0), "x(p1)": Soft(0.0, 1.0)})))

    assert level.clusters.mean.tolist() == [3.0]
    assert level.clusters.variance.tolist() == [3.0]


def test_values_that_are_equal_only_to_the_tolerance_may_still_differ_in_effect() -> None:
    """x - y + 1e6 is 0 or 1e-7: all digits but the last are lost."""
    far = ConditionalQuadratic.squared_distance(1.0, [-1, 1], -1e6)
    graph = people(2)
    graph = FactorGraph(graph.variables, (FactorGroup(far, graph.groups[0].scope),))
    graph = graph.observe({"y(p0)": 1e6, "y(p1)": 1e6 * (1 + 2e-13)})

    first, last = coarse_to_fine(graph)

    assert first.lifting.num_classes == 2  # p0 and p1, and the common one
    assert not first.splittable.any()
    assert_same_lifting(last.lifting, lift(graph))
    assert last.lifting.num_classes == 3


def test_nothing_is_inferred_ahead_of_what_is_asked_for() -> None:
    asked: list[int] = []

    def choose(level: Level) -> np.ndarray:
        asked.append(level.lifting.num_classes)
        return np.zeros(len(level.clusters), dtype=bool)

    levels = coarse_to_fine(scored([0.0, 1.0, 10.0, 11.0]), choose=choose)
    next(levels)

    assert asked == []
    assert next(levels).lifting.num_classes == 3  # nothing was picked, so all are split
    assert asked == [2]


def test_a_choice_of_the_wrong_shape_is_refused() -> None:
    levels = coarse_to_fine(scored([0.0, 1.0]), choose=lambda level: np.array([True, False]))
    next(levels)

    with pytest.raises(ModelError, match=r"the choice among 1 clusters .* of bool of shape \(2,\)"):
        next(levels)


def test_progress_is_told_at_each_level() -> None:
    told: list[tuple[float, str]] = []

    levels = list(
        coarse_to_fine(scored([0.0, 1.0, 10.0, 11.0]), progress=lambda *args: told.append(args))
    )

    shares = [share for share, _ in told]
    assert shares == sorted(shares)
    assert shares[-1] == 1.0
    assert [what for _, what in told][-len(levels) :] == [
        f"{count} clusters of evidence" for count in (1, 2, 4)
    ]


def test_tables_of_hidden_truths_follow_their_classes() -> None:
    """Truths that hang on people are told apart when the people are."""
    names = (["1", "2", "3", "4"],)
    blocks = [(Atoms("on", names), boolean), (Atoms("x", names), real), (Atoms("y", names), real)]
    ids = np.arange(12).reshape(3, 4)
    near = ConditionalQuadratic.squared_distance(1.0, [1, -1])
    graph = FactorGraph(
        Variables.in_blocks(blocks),
        (
            FactorGroup(Table.shared([0.0, 0.5]), ids[0][:, None]),
            FactorGroup(ConditionalQuadratic.square(-1.0).times([1, 2]), ids[:2].T),
            FactorGroup(near, ids[1:].T),
        ),
    )

    levels = list(coarse_to_fine(graph.observe(Evidence.of(ids[2], [0.0, 5.0, 0.0, 6.0]))))

    classes = [level.lifting.variable_to_class.tolist() for level in levels]
    assert classes == [
        [0, 0, 0, 0, 1, 1, 1, 1],
        [0, 1, 0, 1, 2, 3, 2, 3],
        [0, 1, 0, 2, 3, 4, 3, 5],
    ]


@pytest.mark.parametrize(
    "distance",
    [
        ConditionalQuadratic.squared_distance(1.0, [1, -1]),
        Function(lambda x, y: -np.abs(x - y), num_reals=2, symmetric=((0, 1),)),
    ],
    ids=["quadratic", "function"],
)
def test_it_does_not_matter_which_of_two_exchangeable_slots_has_a_value(distance) -> None:
    pairs = np.arange(40, dtype=np.int32).reshape(20, 2)
    graph = FactorGraph(Variables.uniform(real, 40), (FactorGroup(distance, pairs),))
    observed = pairs[np.arange(20), np.arange(20) % 2]
    graph = graph.observe(Evidence.of(observed, np.linspace(0, 1, 20)))

    first = next(coarse_to_fine(graph))

    assert first.lifting.num_classes == 1
