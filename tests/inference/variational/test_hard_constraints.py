"""What is impossible: objectives stay finite, probabilities become zero, assignments obey."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from answers import infer
from hylift.graph import FactorGraph, boolean, categorical
from hylift.inference import BVI, NPVI, Exact
from hylift.posterior import Posterior
from hylift.potentials import Function, Table
from zoo import (
    IMPLIES,
    ZOO,
    ZooModel,
    distant_constraint_keeps_a_real_in_place,
    hard_clause,
    hard_constraint_keeps_a_real_in_place,
)

HARD = [model for model in ZOO if "hard" in model.tags]
METHODS = [BVI(1), BVI(3), NPVI(2)]
NOT_FEASIBLE = (
    "The mixture does not satisfy all hard constraints, which count with a large finite weight "
    "here; the MAP assignment does where one could be found. More components or restarts may help."
)
AGREE = [[1, 0], [0, 1]]


def exactly_one(*states: np.ndarray) -> np.ndarray:
    return np.where(sum(np.asarray(state) for state in states) == 1, 0.0, -np.inf)


def is_feasible(posterior: Posterior) -> bool:
    return NOT_FEASIBLE not in posterior.solution.notes


def colouring(num_states: int = 3) -> FactorGraph:
    """A ring of five whose neighbours differ, one of them fixed by a preference."""
    names = [f"c{i}" for i in range(5)]
    differ = Table.weighted(np.inf, 1 - np.eye(num_states))
    return FactorGraph.build(
        dict.fromkeys(names, categorical(num_states)),
        [
            (differ, [[names[i], names[(i + 1) % 5]] for i in range(5)]),
            (Table.shared([0.0, 1.0, 0.5]), ["c0"]),
        ],
    )


def one_of_three() -> FactorGraph:
    """Exactly one of three holds, each with a weight of its own."""
    weights = {"a": 0.2, "b": 0.7, "c": -0.4}
    return FactorGraph.build(
        dict.fromkeys(weights, boolean),
        [
            (Function(exactly_one, num_discrete=3), ["a", "b", "c"]),
            *((Table.shared([0.0, weight]), [name]) for name, weight in weights.items()),
        ],
    )


def chain_of_implications() -> FactorGraph:
    names = [f"b{i}" for i in range(6)]
    implies = Table.weighted(np.inf, IMPLIES)
    return FactorGraph.build(
        dict.fromkeys(names, boolean),
        [
            (implies, [[names[i], names[i + 1]] for i in range(5)]),
            (Table.shared([0.0, 1.0]), ["b0"]),
            (Table.shared([1.5, 0.0]), ["b3"]),
        ],
    )


@pytest.mark.parametrize("lift", ["exact", "none"])
@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
@pytest.mark.parametrize(
    "graph",
    [*(model.graph for model in HARD), colouring, one_of_three, chain_of_implications],
    ids=lambda graph: graph.__name__,
)
def test_objectives_are_finite_and_assignments_obey(
    graph: Callable[[], FactorGraph], method: BVI | NPVI, lift: str
) -> None:
    posterior = infer(graph(), method, lift=lift)

    found, best = posterior.log_partition, posterior.map()
    assert found is not None
    assert np.isfinite(found.value)
    assert np.isfinite(best.energy)
    assert posterior.energy(best) == pytest.approx(best.energy)
    if found.kind == "lower bound":
        assert is_feasible(posterior)
    if is_feasible(posterior):
        assert np.isfinite(posterior.map(polish=False).energy)


@pytest.mark.parametrize("method", [BVI(2), BVI(3), NPVI(3)], ids=lambda method: method.name)
@pytest.mark.parametrize("graph", [hard_clause, colouring, one_of_three, chain_of_implications])
def test_draws_from_a_feasible_mixture_are_possible(
    graph: Callable[[], FactorGraph], method: BVI | NPVI
) -> None:
    posterior = infer(graph(), method, lift="none")

    assert is_feasible(posterior)
    draws = posterior.sample(200, seed=1).to_pylist()
    energies = [posterior.energy(draw) for draw in draws]
    assert np.isfinite(energies).all()


def test_impossible_states_have_probability_zero() -> None:
    agree = Table.weighted(np.inf, AGREE)
    graph = FactorGraph.build(
        {"a": boolean, "b": boolean, "c": boolean},
        [
            (agree, [["a", "b"]]),
            (Table.weighted(np.inf, [0, 1]), ["c"]),
            (Table.shared([0.0, 0.4]), ["b"]),
        ],
    )

    posterior = infer(graph, BVI(2))

    assert is_feasible(posterior)
    probs = posterior.joint(["a", "b", "c"]).probs()
    assert probs[:, :, 0].max() == 0.0
    assert probs[0, 1, 1] == probs[1, 0, 1] == 0.0
    true = np.exp(0.4) / (1 + np.exp(0.4))
    assert posterior.marginal("a").prob("true") == pytest.approx(true, abs=1e-4)


@pytest.mark.parametrize("components", [2, 3, 5])
@pytest.mark.parametrize("seed", range(4))
def test_a_clause_of_two_holds_each_with_two_thirds(components: int, seed: int) -> None:
    posterior = infer(hard_clause(), BVI(components), lift="none", seed=seed)

    assert is_feasible(posterior)
    assert posterior.marginal("H").prob("true") == pytest.approx(2 / 3, abs=1e-3)
    assert posterior.marginal("S").prob("true") == pytest.approx(2 / 3, abs=1e-3)
    assert posterior.joint(["H", "S"]).probs()[0, 0] == 0.0
    found = posterior.log_partition
    assert found is not None
    assert found.value == pytest.approx(np.log(3), abs=1e-4)


def test_a_clause_of_two_holds_each_with_two_thirds_by_default() -> None:
    """Lifted, H and S are one class: a mixture whose components treat them alike cannot do it."""
    posterior = infer(hard_clause(), BVI(3))

    assert posterior.marginal("H").prob("true") == pytest.approx(2 / 3, abs=1e-2)


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
@pytest.mark.parametrize(
    "graph", [hard_constraint_keeps_a_real_in_place, distant_constraint_keeps_a_real_in_place]
)
def test_a_constraint_keeps_a_real_in_place(
    graph: Callable[[], FactorGraph], method: BVI | NPVI
) -> None:
    exact = infer(graph(), Exact())

    posterior = infer(graph(), method)

    assert is_feasible(posterior)
    assert posterior.marginal("x").mean == pytest.approx(exact.marginal("x").mean, abs=0.05)


def test_the_map_of_constraints_is_the_exact_one() -> None:
    for graph in (colouring(), one_of_three(), chain_of_implications()):
        expected = infer(graph, Exact(), tasks="map").map()

        actual = infer(graph, BVI(3), lift="none").map()

        assert actual.energy == pytest.approx(expected.energy, abs=1e-9)


def test_clauses_that_all_must_hold_are_satisfied() -> None:
    """A random formula of three literals each that has solutions."""
    rng = np.random.default_rng(2)
    solution = rng.integers(0, 2, 12)
    names = np.array([f"v{i}" for i in range(12)])
    factors = []
    for _ in range(36):
        chosen = rng.permutation(12)[:3]
        holds = np.ones((2, 2, 2))
        holds[tuple(1 - solution[chosen] ^ (rng.random(3) < 0.5) * [0, 1, 1])] = 0.0
        if holds[tuple(solution[chosen])] == 1.0:
            factors.append((Table.weighted(np.inf, holds), names[chosen].tolist()))
    graph = FactorGraph.build(dict.fromkeys(names.tolist(), boolean), factors)

    for method in (BVI(1), BVI(2), NPVI(2)):
        posterior = infer(graph, method, lift="none")

        assert np.isfinite(posterior.map().energy)
        found = posterior.log_partition
        assert found is not None
        assert np.isfinite(found.value)


@pytest.mark.parametrize(
    "model", [m for m in HARD if str(m) not in ("counted_factors", "copied_factors")], ids=str
)
def test_hard_models_have_marginals_near_to_the_exact_ones(model: ZooModel) -> None:
    """With enough components; where factors stand for several, Bethe counts them as loops."""
    graph = model.graph()
    exact = infer(graph, Exact())

    posterior = infer(graph, BVI(5), lift="none")

    for name in graph.variables.names.render().to_pylist():
        expected, actual = exact.marginal(name), posterior.marginal(name)
        if hasattr(expected, "probs"):
            np.testing.assert_allclose(actual.probs, expected.probs, atol=0.05)


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
def test_constraints_that_contradict_each_other_are_not_called_a_bound(method: BVI | NPVI) -> None:
    graph = FactorGraph.build(
        {"a": boolean, "b": boolean},
        [
            (Table.weighted(np.inf, [0, 1]), ["a"]),
            (Table.weighted(np.inf, AGREE), ["a", "b"]),
            (Table.weighted(np.inf, [1, 0]), ["b"]),
        ],
    )

    posterior = infer(graph, method, rewrite=False)

    assert not is_feasible(posterior)
    assert posterior.log_partition is not None
    assert posterior.log_partition.kind == "estimate"
    assert posterior.map().energy == np.inf
