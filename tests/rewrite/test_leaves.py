"""Reals that tell nothing of others are integrated out, and nothing else is."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from hylift.graph import FactorGraph, boolean, interval, real
from hylift.inference import Exact, infer
from hylift.potentials import ConditionalQuadratic, Function, Table
from hylift.rewrite.leaves import eliminate_leaves
from zoo import ZOO, ZooModel

Q = ConditionalQuadratic


def reading(working: float = 0.25, broken: float = 64.0) -> ConditionalQuadratic:
    """A reading y of a temperature x by a sensor that may be faulty: slots faulty, y, x."""
    return Q.switch(
        [Q.linear_gaussian([1.0], working), Q.linear_gaussian([0.0], broken, offset=20.0)]
    )


def rooms() -> FactorGraph:
    return FactorGraph.build(
        {"f1": boolean, "f2": boolean, "y1": real, "y2": real, "x": real},
        [
            (Table.from_values([0.9, 0.1]), [["f1"], ["f2"]]),
            (Q.gaussian([20.0], [[9.0]]), ["x"]),
            (reading(), [["f1", "y1", "x"], ["f2", "y2", "x"]]),
        ],
    )


def names(graph: FactorGraph) -> list[str]:
    return list(graph.variables.names)


@pytest.mark.parametrize("model", ZOO, ids=str)
def test_log_z_and_the_marginals_of_what_stays_are_the_same(model: ZooModel) -> None:
    graph = model.graph()
    whole = infer(graph, Exact())

    found = eliminate_leaves(graph)
    small = infer(found.graph, Exact())

    assert small.log_partition is not None
    assert whole.log_partition is not None
    assert small.log_partition.value == pytest.approx(whole.log_partition.value, abs=1e-9)
    hidden = np.flatnonzero(~small.observed)
    one, other = whole.marginals_of(found.kept[hidden]), small.marginals_of(hidden)
    for column in ("mean", "std"):
        expected = one[column].to_numpy()
        np.testing.assert_allclose(other[column].to_numpy(), expected, rtol=1e-7, atol=1e-9)


def test_a_reading_that_nobody_took_goes_and_leaves_no_factor() -> None:
    graph = rooms().observe({"y1": 21.0})

    found = eliminate_leaves(graph)

    assert names(found.graph) == ["f1", "f2", "y1", "x"]
    assert names(graph)[found.eliminated[-1].variables[0]] == "y2"
    assert found.graph.num_factors == graph.num_factors - 1


def test_factors_that_are_not_normalised_leave_a_table_of_their_states() -> None:
    on = Q.squared_distance(0.5, [1.0, -1.0]).times([1.0, 4.0])
    graph = FactorGraph.build(
        {"d": boolean, "y": real, "x": real},
        [(Q.gaussian([0.0], [[1.0]]), ["x"]), (on, ["d", "y", "x"])],
    )

    found = eliminate_leaves(graph)

    assert names(found.graph) == ["d", "x"]
    exact = infer(graph, Exact()).marginal("d").probs
    np.testing.assert_allclose(exact, [2 / 3, 1 / 3], rtol=1e-12)
    np.testing.assert_allclose(infer(found.graph, Exact()).marginal("d").probs, exact, rtol=1e-12)


def test_a_chain_goes_from_its_end_to_where_something_is_known() -> None:
    chain = [f"x{time}" for time in range(6)]
    step = Q.linear_gaussian([1.0], 1.0)
    graph = FactorGraph.build(
        dict.fromkeys(chain, real),
        [
            (Q.gaussian([0.0], [[1.0]]), ["x0"]),
            (step, [[later, earlier] for earlier, later in pairwise(chain)]),
        ],
    ).observe({"x2": 1.0})

    found = eliminate_leaves(graph)

    # What stands beside nothing hidden any more may stay.
    assert names(found.graph) == ["x0", "x1", "x2", "x3"]
    assert [names(graph)[one.variables[0]] for one in found.eliminated] == ["x4", "x5"]


def test_what_says_something_stays() -> None:
    bell = Function(lambda y, x: -abs(y - x), num_reals=2)
    graph = FactorGraph.build(
        {"y": real, "z": real, "x": real, "d": boolean},
        [
            (bell, ["y", "x"]),
            (Q.gaussian([0.0, 0.0], [[1.0, 0.5], [0.5, 1.0]]), ["z", "x"]),
            (Table.from_values([1.0, 2.0]), ["d"]),
        ],
    )

    found = eliminate_leaves(graph)

    # z and x have a joint density: integrated over z it still says something of x.
    assert found.graph is graph
    assert found.eliminated == ()


def test_soft_evidence_and_wishes_keep_a_real() -> None:
    graph = rooms()
    keep = np.array([name == "y1" for name in graph.variables.names])

    assert names(eliminate_leaves(graph, keep).graph) == ["f1", "f2", "y1", "x"]


def test_bounds_are_taken_for_far_away() -> None:
    graph = FactorGraph.build(
        {"y": interval(-1, 1), "x": real},
        [(Q.gaussian([0.0], [[1.0]]), ["x"]), (Q.linear_gaussian([1.0], 1.0), ["y", "x"])],
    )

    assert names(eliminate_leaves(graph).graph) == ["x"]
