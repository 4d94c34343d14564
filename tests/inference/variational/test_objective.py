"""The fast objectives beside the slow ones, term by term."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from hylift.components.family import BETA, CATEGORICAL
from hylift.errors import ImpossibleEvidenceError
from hylift.graph import FactorGraph, FactorGroup, Variables, boolean, interval, real
from hylift.inference.variational.objective import Objective
from hylift.inference.variational.problem import FitProblem, Mixtures
from hylift.lifting import Structure, quotient, tie
from hylift.numerics import threads
from hylift.potentials import ConditionalQuadratic, Table
from inference.variational.candidates import (
    nodes,
    problem_of,
    random_mixtures,
    slow_mixture,
    slow_values,
)
from random_models import graphs, random_classes, symmetric_graphs
from slow_objective import expected_energy
from zoo import ZOO, ZooModel

SEEDS = st.integers(0, 2**32 - 1)
SIZES = st.integers(1, 3)
STARTS = 3


def conditioned(graph: FactorGraph) -> FactorGraph | None:
    """None where the evidence is impossible, so that there is nothing to evaluate."""
    try:
        return graph.condition()
    except ImpossibleEvidenceError:
        return None


def check_values(problem: FitProblem, num_components: int, rng: np.random.Generator) -> None:
    """Both objectives, of several starts at once, with the same few nodes."""
    q = random_mixtures(problem, STARTS, num_components, rng, zeros=bool(rng.random() < 0.5))
    num_nodes = int(rng.integers(3, 7))
    for entropy in ("bethe", "jensen", "tracey"):
        with nodes(num_nodes):
            actual = Objective(problem, entropy, "search").evaluate(q).value

        if entropy == "bethe" and num_components == 1:
            expected = product_values(problem, q, num_nodes)
        else:
            expected = slow_values(problem, q, entropy, num_nodes)
        np.testing.assert_allclose(actual, expected, rtol=1e-10, atol=1e-10, err_msg=entropy)


def product_values(problem: FitProblem, q: Mixtures, num_nodes: int) -> np.ndarray:
    """(start,): the free energy of single products, whose entropies have a closed form."""
    layout, found = problem.layout, []
    for start in range(q.num_starts):
        mixture = slow_mixture(problem, q, start)  # of one component: all parts have the weight 1
        total = expected_energy(problem.graph, mixture, num_nodes)
        for variable, count in enumerate(problem.multiplicity):
            own = q.entries[start, layout.first[variable] : layout.first[variable + 1], 0]
            if layout.family[variable] == CATEGORICAL:
                entropy = stats.entropy(own)
            elif layout.family[variable] == BETA:
                width = layout.upper[variable] - layout.lower[variable]
                entropy = stats.beta.entropy(*own) + np.log(width)
            else:
                entropy = stats.norm.entropy(scale=np.sqrt(own[1]))
            total -= count * entropy
        found.append(total)
    return np.array(found)


@settings(max_examples=80)
@given(graphs(max_reals=2, max_bounded=2, functions="anywhere"), SEEDS, SIZES)
def test_values_with_betas_are_those_of_the_slow_objectives(
    graph: FactorGraph, seed: int, num_components: int
) -> None:
    hidden = conditioned(graph)
    if hidden is not None:
        problem = problem_of(hidden, betas=True)

        check_values(problem, num_components, np.random.default_rng(seed))


@settings(max_examples=80)
@given(graphs(max_bounded=1), SEEDS, SIZES)
def test_values_with_gaussians_are_those_of_the_slow_objectives(
    graph: FactorGraph, seed: int, num_components: int
) -> None:
    hidden = conditioned(graph)
    if hidden is not None:
        problem = problem_of(hidden, betas=False)

        check_values(problem, num_components, np.random.default_rng(seed))


@settings(max_examples=100)
@given(symmetric_graphs(max_copies=4, max_relations=3), SEEDS, SIZES)
def test_values_of_quotients_are_those_of_the_slow_objectives(
    graph: FactorGraph, seed: int, num_components: int
) -> None:
    """Any partition has multiplicities, and classes that stand in one factor several times."""
    rng = np.random.default_rng(seed)
    ground = graph.condition()
    structure = Structure.of(ground)
    lifted = quotient(ground, structure, tie(structure, random_classes(ground, rng)))

    check_values(problem_of(lifted, betas=True), num_components, rng)


@pytest.mark.parametrize("model", ZOO, ids=str)
def test_values_of_the_zoo_are_those_of_the_slow_objectives(model: ZooModel) -> None:
    problem = problem_of(model.graph().condition(), betas=True)

    check_values(problem, 2, np.random.default_rng(3))


def test_what_is_impossible_costs_infinitely_much_or_its_price() -> None:
    never_both = Table.weighted(np.inf, [[1, 1], [1, 0]])
    graph = FactorGraph.build({"a": boolean, "b": boolean}, [(never_both, ["a", "b"])])
    problem = problem_of(graph, betas=False)
    possible, mixed = [1.0, 0.0, 0.3, 0.7], [0.8, 0.2, 0.3, 0.7]
    q = problem.products(np.array([possible, mixed])[:, :, None])

    for entropy in ("bethe", "jensen", "tracey"):
        infinite = Objective(problem, entropy, "final").evaluate(q).value
        priced = Objective(problem, entropy, "final", 50.0).evaluate(q).value
        free = Objective(problem, entropy, "final", 0.0).evaluate(q).value

        assert np.isfinite(infinite).tolist() == [True, False]
        assert infinite[1] == np.inf
        np.testing.assert_allclose(priced - free, [0.0, 50.0 * 0.2 * 0.7], rtol=1e-12, atol=1e-12)


def test_an_impossible_component_makes_the_whole_mixture_impossible() -> None:
    graph = FactorGraph.build({"a": boolean}, [(Table.weighted(np.inf, [0, 1]), ["a"])])
    q = Mixtures.even(np.array([[[0.0, 0.5], [1.0, 0.5]]]), 1)

    value = Objective(problem_of(graph, betas=False), "bethe", "final").evaluate(q).value

    assert value.tolist() == [np.inf]


def test_a_constant_of_the_graph_changes_the_value_by_just_that() -> None:
    square = ConditionalQuadratic.square(-0.5)
    plain = FactorGraph.build({"x": real}, [(square, ["x"])])
    shifted = FactorGraph(plain.variables, plain.groups, log_constant=2.5)
    q = random_mixtures(problem_of(plain, betas=False), 2, 2, np.random.default_rng(0))

    for entropy in ("bethe", "jensen", "tracey"):
        values = [
            Objective(problem_of(graph, betas=False), entropy, "final").evaluate(q).value
            for graph in (plain, shifted)
        ]

        np.testing.assert_allclose(values[0] - values[1], 2.5, rtol=1e-12)


def test_many_blocks_add_up_to_the_value_of_one() -> None:
    rng = np.random.default_rng(5)
    pairs = rng.integers(0, 30, (80, 2))
    pairs = pairs[pairs[:, 0] != pairs[:, 1]].astype(np.int32)
    domains = {f"x{i}": interval(-1, 2) if i % 2 else real for i in range(30)}
    product = ConditionalQuadratic.product(0.3)
    graph = FactorGraph(Variables.named(domains), (FactorGroup(product, pairs),))
    problem = problem_of(graph, betas=True)
    q = random_mixtures(problem, 2, 3, rng)

    for entropy in ("bethe", "jensen", "tracey"):
        at_once = Objective(problem, entropy, "search").evaluate(q)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(threads, "BLOCK", 100)
            in_blocks = Objective(problem, entropy, "search").evaluate(q)

        np.testing.assert_allclose(in_blocks.value, at_once.value, rtol=1e-12)
        np.testing.assert_allclose(in_blocks.of_weights, at_once.of_weights, rtol=1e-11)
        np.testing.assert_allclose(in_blocks.of_entries, at_once.of_entries, rtol=1e-9, atol=1e-11)


def test_starts_do_not_touch_each_other() -> None:
    problem = problem_of(ZOO[0].graph(), betas=True)
    q = random_mixtures(problem, 4, 2, np.random.default_rng(1))

    for entropy in ("bethe", "jensen", "tracey"):
        objective = Objective(problem, entropy, "search")
        together = objective.evaluate(q)
        for start in range(4):
            alone = objective.evaluate(q.take([start]))

            assert alone.value[0] == together.value[start]
            assert alone.of_weights[0].tolist() == together.of_weights[start].tolist()
            assert alone.of_entries[0].tolist() == together.of_entries[start].tolist()
