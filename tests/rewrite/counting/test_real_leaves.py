"""Reals with one state and one hub are integrated out, and can be restored."""

from __future__ import annotations

import numpy as np
import pytest

import oracle
from hylift.graph import FactorGraph, FactorGroup, boolean, real
from hylift.potentials import ConditionalQuadratic
from hylift.rewrite.counting.leaves import restated
from hylift.rewrite.counting.real_leaves import eliminate_real_leaves

Q = ConditionalQuadratic


def star(count: int = 3) -> FactorGraph:
    """Reals t with a Boolean each, tied to a hub m that has a factor of its own."""
    names = range(count)
    domains = {f"t{i}": real for i in names} | {f"h{i}": boolean for i in names} | {"m": real}
    return FactorGraph.build(
        domains,
        [
            (Q.gaussian([[1.0], [3.0]], [[[0.5]], [[2.0]]]), [[f"h{i}", f"t{i}"] for i in names]),
            (Q.squared_distance(0.8, [1.0, -0.5], 0.3), [[f"t{i}", "m"] for i in names]),
            (Q.gaussian([0.2], [[1.5]]), [["m"], ["t1"]]),
        ],
    )


def test_the_integral_and_the_marginals_of_the_rest_stay():
    graph = star()
    expected = oracle.solve(graph)

    small = eliminate_real_leaves(graph)

    assert list(small.graph.variables.names) == ["h0", "h1", "h2", "m"]
    found = oracle.solve(small.graph)
    assert found.log_z == pytest.approx(expected.log_z, abs=1e-10)
    assert found.mean[3] == pytest.approx(expected.mean[6], abs=1e-9)
    assert found.probs[1] == pytest.approx(expected.probs[4], abs=1e-10)


def test_the_best_values_of_leaves_complete_the_best_assignment():
    graph = star()
    small = eliminate_real_leaves(graph, maximise=True)
    expected = oracle.solve(graph)

    assert oracle.solve(small.graph).map_energy == pytest.approx(expected.map_energy, abs=1e-9)
    values = np.array([0.0, 1.0, 1.0, 0.7])
    best = small.graph.log_density(values)
    assert graph.log_density(small.restored(values)) == pytest.approx(best, abs=1e-10)


def test_the_density_of_a_leaf_given_the_rest_is_normalised():
    graph = star()
    (leaves,) = eliminate_real_leaves(graph).eliminated
    group = FactorGroup(
        leaves.conditional(),
        np.column_stack([leaves.state, leaves.leaf, leaves.hub]),
        leaves.row,
    )

    values = np.array([0.3, 0.1, -0.4, 1.0, 0.0, 1.0, 0.9])
    small = eliminate_real_leaves(graph)
    rest = small.graph.log_density(values[small.kept])
    assert group.log_sum(values) + rest == pytest.approx(graph.log_density(values), abs=1e-10)


STATISTICS = {
    "own": (Q.gaussian([[0.4], [1.0]], [[[1.0]], [[3.0]]]), ["h0", "t0"]),
    "other state": (Q.gaussian([[0.4], [1.0]], [[[1.0]], [[3.0]]]), ["h2", "t0"]),
    "pair": (Q.squared_distance(0.3, [1.0, -2.0], 0.1), ["t2", "t0"]),
    "hub first": (Q.squared_distance(0.3, [1.0, -2.0], 0.1), ["m", "t0"]),
    "hub last": (Q.squared_distance(0.3, [1.0, -2.0], 0.1), ["t1", "m"]),
    "three": (Q.squared_distance(0.3, [1.0, -2.0, 0.7], 0.1), ["t1", "m", "t2"]),
    "alone": (Q.square(0.5), ["t1"]),
    "hub": (Q.square(0.5), ["m"]),
}


@pytest.mark.parametrize("name", STATISTICS)
def test_statistics_have_the_same_expectations(name):
    graph = star()
    potential, names = STATISTICS[name]
    group = FactorGroup(potential, graph.variables.ids(names)[None].astype(np.int32))

    small = eliminate_real_leaves(graph)
    found = restated(small, group)

    assert expected_sum(small.graph, found) == pytest.approx(expected_sum(graph, [group]))


def expected_sum(graph: FactorGraph, groups: list[FactorGroup], step: float = 1e-4) -> float:
    """d log Z / dε of the density times exp(ε · groups), by central differences."""
    logs = []
    for sign in (1.0, -1.0):
        tilted = [FactorGroup(g.potential, g.scope, g.row, g.multiplicity * step) for g in groups]
        if sign < 0:
            tilted = [
                FactorGroup(
                    g.potential.with_flat(-g.potential.flat), g.scope, g.row, g.multiplicity
                )
                for g in tilted
            ]
        more = FactorGraph(graph.variables, (*graph.groups, *tilted))
        logs.append(oracle.solve(more).log_z + graph.log_constant)
    return (logs[0] - logs[1]) / (2 * step)


def test_few_links_are_left_alone():
    graph = star(2)

    assert eliminate_real_leaves(graph).graph is graph


def test_a_leaf_to_keep_is_kept():
    keep = np.zeros(7, dtype=bool)
    keep[[0, 1, 2]] = True

    assert eliminate_real_leaves(star(), keep).eliminated == ()
