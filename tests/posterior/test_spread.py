"""Marginals of classes, spread to the variables they stand for."""

from pathlib import Path

import numpy as np
import pytest

from hylift.graph import FactorGraph, Names, Variables, boolean, real
from hylift.posterior import (
    Categorical,
    GaussianMixture,
    Marginals,
    PiecewiseDensity,
    PointMass,
    Posterior,
    Solution,
    with_observed,
)

SOLUTION = Solution("test", 0, "converged", 1, 0.0, None)


def of_classes() -> Marginals:
    """Two Booleans, two mixtures, and a density on an interval, in a mixed order."""
    states = Categorical(np.array([[0.3, 0.7], [0.1, 0.9]]), ("false", "true"))
    mixtures = GaussianMixture(
        np.array([[0.5, 0.5], [1.0, 0.0]]), np.array([[0.0, 3.0], [1.0, 1.0]]), np.ones((2, 2))
    )
    density = PiecewiseDensity(np.array([[0.0, 1.0]]), np.array([[[1.0, 0.0]]]))
    parts = [(np.array([0, 3]), states), (np.array([4, 1]), mixtures), (np.array([2]), density)]
    return Marginals.assemble(5, parts)


def variables_of(variable_to_class: np.ndarray) -> Variables:
    domain_id = np.array([0, 1, 1, 0, 1], dtype=np.int32)[variable_to_class]
    num_variables = len(domain_id)
    names = Names.numbered(num_variables)
    return Variables((boolean, real), domain_id, names, np.ones(num_variables))


@pytest.fixture
def variable_to_class() -> np.ndarray:
    return np.random.default_rng(0).integers(0, 5, 40).astype(np.int32)


def test_each_variable_has_the_marginal_of_its_class(variable_to_class: np.ndarray) -> None:
    classes = of_classes()

    spread = classes.spread(variable_to_class)

    assert len(spread) == 40
    for variable, cls in enumerate(variable_to_class.tolist()):
        assert type(spread[variable]) is type(classes[cls])
        assert spread[variable].entropy == classes[cls].entropy


def test_distributions_are_shared_and_not_copied(variable_to_class: np.ndarray) -> None:
    classes = of_classes()

    spread = classes.spread(variable_to_class)

    assert spread.batches is classes.batches
    assert spread.batch.nbytes + spread.row.nbytes == 8 * 40


def test_the_table_of_variables_repeats_that_of_classes(variable_to_class: np.ndarray) -> None:
    classes = of_classes()
    ids = np.random.default_rng(1).permutation(40)

    rows = classes.spread(variable_to_class).to_arrow(variables_of(variable_to_class), ids)
    few = classes.spread(variable_to_class).to_arrow(variables_of(variable_to_class), ids[:3])

    expected = classes.to_arrow(variables_of(np.arange(5)), np.arange(5)).to_pylist()
    for actual, variable in zip(rows.to_pylist(), ids.tolist(), strict=True):
        assert actual == expected[variable_to_class[variable]] | {"atom": f"x{variable}"}
    assert few.to_pylist() == rows.slice(0, 3).to_pylist()


def test_a_spread_posterior_is_stored(variable_to_class: np.ndarray, tmp_path: Path) -> None:
    spread = of_classes().spread(variable_to_class)
    observed = np.zeros(40, dtype=bool)
    posterior = Posterior(variables_of(variable_to_class), observed, SOLUTION, all_marginals=spread)

    posterior.save(tmp_path / "spread")
    loaded = Posterior.load(tmp_path / "spread")

    assert loaded.marginals().to_pylist() == posterior.marginals().to_pylist()
    assert [b.batch_shape for b in loaded.all_marginals.batches] == [(2,), (2,), (1,)]
    assert loaded.all_marginals.row.tolist() == spread.row.tolist()


def test_spread_marginals_stand_beside_those_of_observed_variables() -> None:
    likely = Categorical(np.array([[0.3, 0.7]]), boolean.states)
    classes = Marginals.assemble(1, [(np.array([0]), likely)])
    variables = dict.fromkeys("abcd", boolean) | {"x": real, "y": real}
    observed = {"b": True, "d": True, "x": 2.0, "y": 2.0}
    graph = FactorGraph.build(variables, []).observe(observed)

    marginals = with_observed(graph, np.array([0, 2]), classes.spread(np.zeros(2, dtype=int)))

    probs = [marginals[variable].probs.tolist() for variable in range(4)]
    assert probs == [[0.3, 0.7], [0.0, 1.0], [0.3, 0.7], [0.0, 1.0]]
    assert isinstance(marginals[5], PointMass)
    assert (marginals[4].mean, marginals[5].mean) == (2.0, 2.0)
    assert [batch.batch_shape for batch in marginals.batches] == [(1,), (1,), (2,)]


def test_states_that_were_observed_often_are_held_once() -> None:
    graph = FactorGraph(Variables.uniform(boolean, 6), ())
    graph = graph.observe({f"x{i}": bool(i % 2) for i in range(6)})

    marginals = with_observed(graph, np.zeros(0, dtype=np.int64), [])

    assert [batch.batch_shape for batch in marginals.batches] == [(2,)]
    assert [marginals[i].probs.tolist() for i in range(6)] == [[1.0, 0.0], [0.0, 1.0]] * 3
