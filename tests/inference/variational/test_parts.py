"""Connected parts of a model are fitted side by side, each with weights of its own."""

from __future__ import annotations

import numpy as np
import pytest

import hylift as hl
from hylift.graph import FactorGraph, boolean
from hylift.inference.variational.objective import Entropy, Objective
from hylift.potentials import ConditionalQuadratic, Table
from hylift.rewrite.parts import parts_of, some_parts
from inference.variational.candidates import problem_of, random_mixtures

MODEL = """
    n = {{{constants}}}
    A(n)
    x(n): real
    y(n): real
    0.3  A(i)
    normal(x(i) | 4*A(i), 1)
    normal(y(i) | x(i), 0.5)
"""
METHODS = [hl.BVI(2), hl.NPVI(2), hl.NPVI(2, bound="tracey")]


def sensors(count: int, *, alike: bool = False) -> FactorGraph:
    seen = np.full(count, 2.0) if alike else np.random.default_rng(0).normal(2, 1.5, count)
    values = {f"y({i})": float(value) for i, value in enumerate(seen)}
    return hl.ground(hl.parse(MODEL.format(constants=", ".join(map(str, range(count))))), values)


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
def test_many_parts_are_as_good_as_each_by_itself(method: hl.BVI | hl.NPVI) -> None:
    graph = sensors(12)

    whole = hl.infer(graph, method, lift="none")

    hidden = graph.condition()
    part, num_parts = parts_of(hidden)
    total = hidden.log_constant
    for one in range(num_parts):
        found = hl.infer(some_parts(hidden, part == one), method).log_partition
        assert found is not None
        total += found.value
    assert whole.log_partition is not None
    assert whole.mixture is not None
    assert whole.mixture.weights.shape == (12, 2)
    assert whole.log_partition.value == pytest.approx(total, abs=0.3)
    assert hl.infer(graph, hl.Exact()).compare(whole).mean_kl < 0.05


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
def test_copies_of_a_part_share_their_weights_and_are_independent(
    method: hl.BVI | hl.NPVI,
) -> None:
    graph, one = sensors(50, alike=True), sensors(1, alike=True)

    lifted, alone = hl.infer(graph, method), hl.infer(one, method)

    assert lifted.log_partition is not None
    assert alone.log_partition is not None
    assert lifted.log_partition.value == pytest.approx(50 * alone.log_partition.value, rel=1e-6)
    assert lifted.mixture is not None
    assert lifted.mixture.weights.shape == (50, 2)
    assert np.ptp(lifted.mixture.weights, axis=0).max() == 0.0
    both = lifted.joint(["A(0)", "A(1)"]).probs()
    np.testing.assert_allclose(both, np.outer(both.sum(axis=1), both.sum(axis=0)), atol=1e-12)


def test_parts_of_different_size_in_one_class_share_one_mixture() -> None:
    """Color passing cannot tell two triangles from a hexagon: one class, but parts of two sizes."""
    ring = [[f"v{i}", f"v{(i + 1) % 6}"] for i in range(6)]
    triangle = [[f"w{i}", f"w{(i + 1) % 3}"] for i in range(3)]
    names = [f"v{i}" for i in range(6)] + [f"w{i}" for i in range(3)]
    pair = Table.shared([[0.8, 0.0], [0.0, 0.8]])
    graph = FactorGraph.build(dict.fromkeys(names, boolean), [(pair, ring + triangle)])
    exact = hl.infer(graph, hl.Exact()).log_partition

    found = hl.infer(graph, hl.NPVI(2, bound="tracey"))

    assert found.mixture is not None
    assert len(found.mixture.layout) == 1
    assert found.mixture.part is None
    assert found.log_partition is not None
    assert exact is not None
    assert found.log_partition.value <= exact.value


@pytest.mark.parametrize("entropy", ["bethe", "jensen", "tracey"])
def test_parts_that_still_move_are_set_apart_without_a_trace(entropy: Entropy) -> None:
    count = 40
    rng = np.random.default_rng(2)
    names = {f"s{i}": boolean for i in range(count)} | {f"x{i}": hl.real for i in range(count)}
    rows = rng.normal(0, 1, (count, 2))
    switch = ConditionalQuadratic(
        np.full((count, 2, 1, 1), -0.5), rng.normal(0, 2, (count, 2, 1)), rows
    )
    scope = [[f"s{i}", f"x{i}"] for i in range(count)]
    graph = FactorGraph.build(names, [(switch, scope)])
    problem = problem_of(graph, betas=False)
    objective = Objective(problem, entropy, "search")
    q = random_mixtures(problem, 1, 2, rng)
    is_kept = rng.random(problem.num_parts) < 0.4

    few = objective.restricted(is_kept)
    entries = problem.layout.entries_of(np.flatnonzero(is_kept[problem.part]))
    small = type(q)(q.weights[:, is_kept], np.ascontiguousarray(q.entries[:, entries]))

    whole, part = objective.evaluate(q), few.evaluate(small)
    np.testing.assert_allclose(part.by_part, whole.by_part[:, is_kept], rtol=1e-12)
    np.testing.assert_allclose(part.of_entries, whole.of_entries[:, entries], rtol=1e-10)
    np.testing.assert_allclose(part.of_weights, whole.of_weights[:, is_kept], rtol=1e-10)
