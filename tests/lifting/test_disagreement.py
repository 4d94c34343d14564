"""Where the gradient disagrees within a class, beside finite differences of each factor."""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from expectations import SlotBelief, expectation
from hylift.errors import ModelError
from hylift.graph import (
    Atoms,
    Evidence,
    FactorGraph,
    FactorGroup,
    Soft,
    Variables,
    boolean,
    real,
)
from hylift.lifting import Beliefs, Level, by_disagreement, coarse_to_fine
from hylift.lifting.coarse.disagreement import disagreement
from hylift.potentials import ConditionalQuadratic, Function, Table
from lifting.observed_models import observed_graphs
from slow_objective import Mixture

SEEDS = st.integers(0, 2**32 - 1)


def beliefs_of(q: Mixture) -> Beliefs:
    return Beliefs(q.weights, q.mean, q.var, q.probs)


def random_beliefs(level: Level, seed: int = 0) -> Beliefs:
    rng = np.random.default_rng(seed)
    return beliefs_of(Mixture.random(level.lifting.graph, 2, rng, zeros=False))


def differentiated(level: Level, q: Mixture, component: int) -> list[list[np.ndarray]]:
    """Per factor and slot: the gradient in coordinates of unit Fisher information."""
    return [
        _by_slot(group, factor, q, component, level.lifting.variable_to_class[group.scope[factor]])
        for group in level.lifting.ground.groups
        for factor in range(len(group))
    ]


def _by_slot(
    group: FactorGroup, factor: int, q: Mixture, k: int, classes: np.ndarray
) -> list[np.ndarray]:
    beliefs = [_belief(q, k, c) for c in classes]

    def expected(slot: int, belief: SlotBelief) -> float:
        changed = [*beliefs[:slot], belief, *beliefs[slot + 1 :]]
        return float(expectation(group.potential, group.row[[factor]], changed)[0])

    return [
        _finite_difference(q, k, c, functools.partial(expected, slot))
        for slot, c in enumerate(classes)
    ]


def _belief(q: Mixture, k: int, c: int, mean: float = 0.0, var: float = 0.0) -> SlotBelief:
    if q.num_states[c]:
        return SlotBelief.discrete(q.probs[k, c, : q.num_states[c]][None])
    return SlotBelief.gaussian(q.mean[k, [c]] + mean, q.var[k, [c]] + var, 40)


def _finite_difference(
    q: Mixture, k: int, c: int, expected: Callable[[SlotBelief], float]
) -> np.ndarray:
    if q.num_states[c]:
        probs = q.probs[k, c, : q.num_states[c]]
        at = np.array([expected(SlotBelief.discrete(p[None])) for p in np.eye(len(probs))])
        return np.sqrt(probs) * (at - probs @ at)
    step, var = 1e-4, q.var[k, c]
    by_mean, by_var = (
        (expected(_belief(q, k, c, **{name: step})) - expected(_belief(q, k, c, **{name: -step})))
        / (2 * step)
        for name in ("mean", "var")
    )
    return np.array([np.sqrt(var) * by_mean, np.sqrt(2) * var * by_var])


def slow_disagreement(level: Level, q: Mixture) -> np.ndarray:
    """Factor by factor, slot by slot."""
    ground, coloring, structure = level.lifting.ground, level.coloring, level.structure
    to_class = level.lifting.variable_to_class
    multiplicity = np.concatenate([g.multiplicity for g in ground.groups] or [np.zeros(0)])
    total = np.zeros(len(level.clusters))
    for k, weight in enumerate(q.weights):
        gradients = differentiated(level, q, k)
        mean: dict[tuple[int, ...], list] = defaultdict(list)
        items = []
        for factor, slots in enumerate(gradients):
            for slot, gradient in enumerate(slots):
                edge = structure.first[factor] + slot
                variable = int(structure.slots[edge])
                # Within a class of factors, slots of one orbit and class are alike.
                key = int(coloring.factor[factor]), structure.orbit[edge], to_class[variable]
                mean[key].append((multiplicity[factor], gradient))
                items.append((factor, variable, key, gradient))
        means = {
            key: sum(n * g for n, g in terms) / sum(n for n, _ in terms)
            for key, terms in mean.items()
        }
        shares: dict[tuple[int, int], np.ndarray] = defaultdict(lambda: 0.0)
        for factor, variable, key, gradient in items:
            absorbed = level.absorbed.observation[
                level.absorbed.first[factor] : level.absorbed.first[factor + 1]
            ]
            for cluster in set(level.clusters.cluster[absorbed].tolist()):
                shares[cluster, variable] += multiplicity[factor] * (gradient - means[key])
        for (cluster, variable), share in shares.items():
            size = ground.variables.multiplicity[variable]
            total[cluster] += weight / size * float(np.sum(np.square(share)))
    return total


def leaves(num: int, weights: dict[str, float]) -> FactorGraph:
    """Per name a hidden real for each leaf, near an observed one with that weight."""
    names = ([f"l{i}" for i in range(num)],)
    blocks, groups = [], []
    for place, (name, weight) in enumerate(weights.items()):
        blocks += [(Atoms(name, names), real), (Atoms(f"seen_{name}", names), real)]
        hidden = 2 * place * num + np.arange(num)
        near = ConditionalQuadratic.squared_distance(weight, [1, -1])
        groups.append(FactorGroup(near, np.stack([hidden, hidden + num], axis=1)))
        groups.append(FactorGroup(ConditionalQuadratic.square(-1.0), hidden[:, None]))
    graph = FactorGraph(Variables.in_blocks(blocks), tuple(groups))
    values = np.random.default_rng(3).normal(size=num)
    seen = {
        f"seen_{name}(l{i})": float(value) for name in weights for i, value in enumerate(values)
    }
    return graph.observe(seen)


@settings(max_examples=60)
@given(observed_graphs(max_copies=5), SEEDS)
def test_disagreement_is_that_of_finite_differences(graph: FactorGraph, seed: int) -> None:
    smooth = [g for g in graph.groups if g.potential.quadratic() is not None]
    graph = FactorGraph.unchecked(graph.variables, smooth, graph.evidence, 0.0)
    rng = np.random.default_rng(seed)

    for level in coarse_to_fine(graph):
        q = Mixture.random(level.lifting.graph, 2, rng, zeros=True)
        found = disagreement(level, beliefs_of(q))

        np.testing.assert_allclose(found, slow_disagreement(level, q), rtol=1e-6, atol=1e-9)


def test_functions_disagree_like_their_finite_differences() -> None:
    names = (range(4),)
    blocks = [(Atoms("on", names), boolean), (Atoms("x", names), real), (Atoms("y", names), real)]
    ids = np.arange(12).reshape(3, 4)
    bump = Function(lambda on, y, x: np.cos(x - y) * (1 + on), num_discrete=1, num_reals=2)
    graph = FactorGraph(
        Variables.in_blocks(blocks),
        (
            FactorGroup(bump, ids[[0, 2, 1]].T),
            FactorGroup(Table.shared([0.0, 1.0]), ids[0][:, None]),
        ),
    )

    level = next(coarse_to_fine(graph.observe(Evidence.of(ids[2], [0.1, 0.2, 0.5, 0.9]))))
    q = Mixture.random(level.lifting.graph, 3, np.random.default_rng(0), zeros=False)
    found = disagreement(level, beliefs_of(q))

    assert found[0] > 0.1
    np.testing.assert_allclose(found, slow_disagreement(level, q), rtol=1e-6)


def test_at_the_last_level_nothing_disagrees() -> None:
    *_, last = coarse_to_fine(leaves(5, {"x": 1.0}))

    assert disagreement(last, random_beliefs(last)).tolist() == [0.0] * len(last.clusters)


def test_evidence_that_all_acts_on_one_variable_does_not_disagree() -> None:
    """A hub hears all of its evidence together, however it is divided."""
    variables = Variables.in_blocks([(Atoms("hub", ()), real), (Atoms("y", (range(5),)), real)])
    near = ConditionalQuadratic.squared_distance(1.0, [1, -1])
    scope = np.stack([np.zeros(5, dtype=int), 1 + np.arange(5)], axis=1)
    graph = FactorGraph(variables, (FactorGroup(near, scope),))
    graph = graph.observe(Evidence.of(1 + np.arange(5), [0.0, 1.0, 3.0, 7.0, 9.0]))

    level = next(coarse_to_fine(graph))

    assert level.splittable.tolist() == [True]
    np.testing.assert_allclose(disagreement(level, random_beliefs(level)), [0.0], atol=1e-20)


def test_measurements_disagree_by_what_they_say() -> None:
    variables = Variables.in_blocks([(Atoms("x", (range(2),)), real)])
    square = FactorGroup(ConditionalQuadratic.square(-1.0), np.array([[0], [1]]))
    graph = FactorGraph(variables, (square,)).observe({"x(0)": Soft(1, 0.5), "x(1)": Soft(4, 0.5)})
    level = next(coarse_to_fine(graph))

    found = disagreement(level, Beliefs(np.ones(1), np.zeros((1, 1)), np.full((1, 1), 0.25), NONE))

    # σ ∂/∂μ of -(x - value)² is 2 σ (value - μ): 1 and 4 are 1.5 from their mean.
    assert found.tolist() == [pytest.approx(2 * (2 * 0.5 * 1.5) ** 2)]


NONE = np.zeros((1, 1, 0))


def test_evidence_that_matters_little_is_split_last() -> None:
    graph = leaves(6, {"weak": 1e-3, "strong": 1.0})
    sizes = []

    for level in coarse_to_fine(graph, choose=by_disagreement(random_beliefs)):
        names = [level.clusters.predicates[p] for p in level.clusters.predicate]
        sizes.append((names.count("seen_strong"), names.count("seen_weak")))

    alone = [strong for strong, weak in sizes if weak == 1]
    assert alone[-1] == 6
    assert sizes[-1] == (6, 6)


def test_the_schedule_ends_at_the_same_lifting() -> None:
    graph = leaves(6, {"weak": 1e-3, "strong": 1.0})

    *_, all_at_once = coarse_to_fine(graph)
    *_, scheduled = coarse_to_fine(graph, choose=by_disagreement(random_beliefs, share=0.1))

    assert scheduled.lifting.is_exact
    expected = all_at_once.lifting.variable_to_class.tolist()
    assert scheduled.lifting.variable_to_class.tolist() == expected


def test_the_fewest_clusters_are_picked_that_have_the_share() -> None:
    graph = leaves(6, {"weak": 0.1, "strong": 0.2, "strongest": 0.4})
    level = next(coarse_to_fine(graph))
    q = Beliefs(np.ones(1), np.zeros((1, 3)), np.ones((1, 3)), np.zeros((1, 3, 0)))
    found = disagreement(level, q)

    picked = [
        by_disagreement(lambda level: q, share)(level).tolist() for share in (0.1, 0.76, 0.77, 1.0)
    ]

    np.testing.assert_allclose(found / found[0], [1, 4, 16], rtol=1e-10)  # of 21
    assert picked == [
        [False, False, True],
        [False, False, True],
        [False, True, True],
        [True, True, True],
    ]


def test_clusters_become_more_by_a_share_at_least() -> None:
    graph = leaves(6, {"weak": 0.1, "strong": 0.2, "strongest": 0.4})
    level = next(coarse_to_fine(graph))

    picked = [
        by_disagreement(random_beliefs, 0.1, growth=growth)(level) for growth in (0.0, 0.5, 1.0)
    ]

    assert [int(np.count_nonzero(mask)) for mask in picked if mask is not None] == [1, 2, 3]


def test_where_little_disagrees_the_next_level_is_the_last() -> None:
    graph = leaves(6, {"weak": 0.1, "strong": 0.2})
    choose = by_disagreement(random_beliefs, enough=1e6)

    first, last = coarse_to_fine(graph, choose=choose)

    assert choose(first) is None
    assert last.is_last
    assert last.lifting.is_exact
    assert len(last.clusters) == 12
    *_, expected = coarse_to_fine(graph)
    assert last.lifting.variable_to_class.tolist() == expected.lifting.variable_to_class.tolist()


def test_where_nothing_disagrees_nothing_is_picked() -> None:
    level = next(coarse_to_fine(leaves(3, {"x": 1.0})))
    *_, last = coarse_to_fine(leaves(3, {"x": 1.0}))

    assert by_disagreement(random_beliefs)(level).tolist() == [True]
    assert not by_disagreement(random_beliefs)(last).any()


def test_states_that_are_impossible_disagree_with_none() -> None:
    names = (range(3),)
    blocks = [(Atoms("on", names), boolean), (Atoms("x", names), real), (Atoms("y", names), real)]
    near = ConditionalQuadratic.squared_distance(1.0, [1, -1])
    c = near.times([0, 1]).c.copy()
    c[:, 0] = -np.inf
    never = near.times([0, 1])
    potential = ConditionalQuadratic(never.A, never.b, c)
    scope = np.arange(9).reshape(3, 3).T
    graph = FactorGraph(Variables.in_blocks(blocks), (FactorGroup(potential, scope),))
    level = next(coarse_to_fine(graph.observe(Evidence.of([6, 7, 8], [0.0, 1.0, 5.0]))))
    probs = np.array([[[0.0, 1.0], [0.0, 0.0]]])

    found = disagreement(level, Beliefs(np.ones(1), np.zeros((1, 2)), np.ones((1, 2)), probs))

    values = np.array([0.0, 1.0, 5.0])
    assert found.tolist() == [pytest.approx(np.sum((2 * (values - 2.0)) ** 2))]


@pytest.mark.parametrize("share", [0.0, -1.0, 1.5, np.nan])
def test_a_share_is_a_part_of_the_whole(share: float) -> None:
    with pytest.raises(ModelError, match=f"above 0 and at most 1, not {share}"):
        by_disagreement(random_beliefs, share)


@pytest.mark.parametrize("value", [-0.5, np.nan, np.inf, "a"])
@pytest.mark.parametrize("name", ["growth", "enough"])
def test_growth_and_enough_are_not_negative(name: str, value: object) -> None:
    with pytest.raises(ModelError, match=f"{name} must be finite and non-negative"):
        by_disagreement(random_beliefs, **{name: value})


def test_beliefs_about_other_classes_are_refused() -> None:
    level = next(coarse_to_fine(leaves(3, {"x": 1.0})))

    with pytest.raises(ModelError, match=r"shape \(1, 1\) .* not \(1, 2\), \(1, 2\)"):
        disagreement(level, Beliefs(np.ones(1), np.ones((1, 2)), np.ones((1, 2)), NONE))
