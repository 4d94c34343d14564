"""Exact inference on random hybrid models, against enumeration and against fine grids."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given

from benchmarks.certified.families import FAMILIES, drawn
from inference.exact.certified import assert_certified
from random_models import graphs
from tests import oracle
from tests.fine_grid import enumerated, on_grid


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("seed", range(2))
def test_grids_agree_with_enumeration(family, seed):
    model = drawn(family, seed, size=3)

    exact, grid = enumerated(model.graph), on_grid(model.graph, model.low, model.high)

    assert grid.log_z == pytest.approx(exact.log_z, abs=1e-10)
    for v in range(model.graph.num_variables):
        if v in exact.probs:
            np.testing.assert_allclose(grid.probs[v], exact.probs[v], atol=1e-10)
        else:
            std = exact.var[v] ** 0.5
            assert grid.mean[v] == pytest.approx(exact.mean[v], abs=1e-10 * std)
            assert grid.var[v] == pytest.approx(exact.var[v], rel=1e-9)


@given(graphs(max_discrete=3, max_reals=3))
def test_enumeration_at_once_agrees_with_state_by_state(graph):
    expected = oracle.solve(graph)
    if expected.log_z == -np.inf:
        return

    found = enumerated(graph)

    assert found.log_z == pytest.approx(expected.log_z, abs=1e-9)
    for v, p in expected.probs.items():
        np.testing.assert_allclose(found.probs[v], p, atol=1e-9)
    for v, mean in expected.mean.items():
        assert found.mean[v] == pytest.approx(mean, abs=1e-8)
        assert found.var[v] == pytest.approx(expected.var[v], abs=1e-8)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("seed", range(4))
def test_random_models_are_as_certified(family, seed):
    model = drawn(family, seed, size=4 + 4 * seed)

    assert_certified(model.graph, on_grid(model.graph, model.low, model.high))


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_many_random_models_are_as_certified(family):
    for seed in range(63):
        model = drawn(family, seed, size=3 + seed % 18)

        assert_certified(model.graph, on_grid(model.graph, model.low, model.high))
