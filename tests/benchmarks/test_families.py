"""Random models as practitioners write them, and the score of an answer."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import hylift as hl
from benchmarks.families.practice import PRACTICE, written
from benchmarks.families.score import Moments, is_flagged, score, wrong
from tests import oracle


@pytest.mark.parametrize("family", PRACTICE)
def test_models_are_the_same_for_a_seed_and_have_5_to_60_hidden_variables(family):
    models = [written(family, seed) for seed in range(8)]

    sizes = [np.count_nonzero(model.graph().is_hidden) for model in models]

    assert models == [written(family, seed) for seed in range(8)]
    assert len({model.rules for model in models}) == 8
    assert min(sizes) >= 5
    assert max(sizes) <= 60


def test_exact_answers_are_right_and_mean_field_is_not():
    graph = written("couplings", 1).graph()
    truth = oracle.solve(graph)

    exact = hl.infer(graph, hl.Exact())
    moments = Moments.of(exact)

    rows = {row["atom"]: row for row in exact.marginals().to_pylist()}
    for v, probs in truth.probs.items():
        np.testing.assert_allclose(rows[graph.variables.names[v]]["probs"], probs, atol=1e-9)
    assert score(graph, hl.Exact(), moments).wrong is None
    assert score(graph, hl.MeanField(), moments).wrong is not None


def test_an_error_is_named_by_its_variable_and_size():
    graph = written("sensors", 0).graph()
    exact = Moments.of(hl.infer(graph, hl.Exact()))

    first = np.arange(len(exact.std)) == 0
    shifted = replace(exact, mean=exact.mean + 0.3 * exact.std * first)
    wider = replace(exact, std=np.where(first, 2, 1) * exact.std)

    assert wrong(exact, exact) is None
    assert wrong(replace(exact, mean=exact.mean + 0.2 * exact.std), exact) is None
    assert wrong(shifted, exact) == f"mean of {exact.name[0]} by 0.30 sd"
    assert wrong(wider, exact) == f"sd of {exact.name[0]} by a factor 2.00"
    assert wrong(replace(exact, probs=exact.probs * np.nan), exact) is not None


def test_answers_that_have_not_converged_or_say_so_are_flagged():
    graph = written("clustering", 1).graph()

    assert is_flagged(hl.infer(graph, hl.Gibbs(draws=10, warm_up=1)))
    assert not is_flagged(hl.infer(graph, hl.Exact()))
