"""The same seed gives the same bytes, whatever the number of threads."""

from __future__ import annotations

import numba
import numpy as np
import pytest

from answers import infer
from hylift.graph import FactorGraph, FactorGroup, Variables, boolean, interval, real
from hylift.inference import BVI, NPVI, MeanField
from hylift.inference.variational.objective import Entropy, Objective
from hylift.numerics import threads
from hylift.posterior import Posterior
from hylift.potentials import ConditionalQuadratic, Table
from inference.variational.candidates import problem_of, random_mixtures
from zoo import smallest_toy_hybrid_mln, switching_regime, toy_hybrid_mln

METHODS = [BVI(3, max_steps=30), NPVI(3, max_steps=30), MeanField(), BVI(1)]


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that even a small problem is shared among threads."""
    monkeypatch.setattr(threads, "BLOCK", 1000)


def irregular_graph(size: int = 60) -> FactorGraph:
    """Nothing in it looks alike."""
    rng = np.random.default_rng(8)
    domains = {f"x{i}": [boolean, real, interval(-2, 3)][i % 3] for i in range(size)}
    variables = Variables.named(domains)
    kind = np.arange(size) % 3
    states, reals = np.flatnonzero(kind == 0), np.flatnonzero(kind > 0)
    tables = Table(rng.normal(size=(30, 2, 2)))
    links = ConditionalQuadratic(
        np.zeros((50, 2, 2, 2)) + 0.1 * rng.normal(size=(50, 2, 1, 1)) * (1 - np.eye(2)),
        rng.normal(size=(50, 2, 2)),
        rng.normal(size=(50, 2)),
    )
    pairs = np.stack([rng.permutation(states)[:2] for _ in range(30)])
    triples = [[rng.choice(states), *rng.permutation(reals)[:2]] for _ in range(50)]
    curvature = -1.0 - rng.random((len(reals), 1, 1))
    squares = ConditionalQuadratic(curvature, np.zeros((len(reals), 1)), np.zeros(len(reals)))
    return FactorGraph(
        variables,
        (
            FactorGroup(tables, pairs.astype(np.int32), np.arange(30)),
            FactorGroup(links, np.array(triples, dtype=np.int32), np.arange(50)),
            FactorGroup(squares, reals[:, None].astype(np.int32), np.arange(len(reals))),
        ),
    )


def assert_same_bytes(one: Posterior, other: Posterior) -> None:
    assert one.mixture is not None
    assert other.mixture is not None
    assert one.mixture.weights.tobytes() == other.mixture.weights.tobytes()
    assert one.mixture.entries.tobytes() == other.mixture.entries.tobytes()
    assert one.log_partition == other.log_partition
    assert one.solution.steps == other.solution.steps
    assert one.solution.history is not None
    assert other.solution.history is not None
    np.testing.assert_array_equal(one.solution.history.objective, other.solution.history.objective)


@pytest.mark.usefixtures("small_blocks", "threads")
@pytest.mark.parametrize("entropy", ["bethe", "jensen", "tracey"])
def test_objectives_do_not_depend_on_the_number_of_threads(entropy: Entropy) -> None:
    problem = problem_of(irregular_graph(), betas=True)
    q = random_mixtures(problem, 3, 3, np.random.default_rng(2))
    found = []
    for num_threads in (1, 2):
        numba.set_num_threads(num_threads)
        found.append(Objective(problem, entropy, "final").evaluate(q))

    assert found[0].value.tobytes() == found[1].value.tobytes()
    assert found[0].of_weights.tobytes() == found[1].of_weights.tobytes()
    assert found[0].of_entries.tobytes() == found[1].of_entries.tobytes()


@pytest.mark.usefixtures("small_blocks", "threads")
@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
def test_answers_do_not_depend_on_the_number_of_threads(method: BVI | NPVI | MeanField) -> None:
    graph, found = irregular_graph(24), []
    for num_threads in (1, 2):
        numba.set_num_threads(num_threads)
        found.append(infer(graph, method, seed=5, lift="none"))

    assert_same_bytes(*found)


@pytest.mark.parametrize("lift", ["exact", "coarse-to-fine", "none"])
@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
def test_the_same_seed_gives_the_same_answer(method: BVI | NPVI | MeanField, lift: str) -> None:
    graph = toy_hybrid_mln().observe({"posA(a0)": 1.5})

    one, other = (infer(graph, method, lift=lift, seed=3) for _ in range(2))

    assert_same_bytes(one, other)


def test_another_seed_begins_elsewhere() -> None:
    graph = switching_regime()

    one, other = (infer(graph, BVI(3), seed=seed).solution.history for seed in (0, 1))

    assert one is not None
    assert other is not None
    assert one.objective[0] != other.objective[0]


def test_an_answer_does_not_depend_on_what_was_inferred_before() -> None:
    graph = smallest_toy_hybrid_mln()
    fresh = infer(graph, BVI(2), seed=1)
    infer(switching_regime(), NPVI(3), seed=9)

    assert_same_bytes(infer(graph, BVI(2), seed=1), fresh)
