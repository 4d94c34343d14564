"""The errors that Gibbs states, and densities that bounds cut off."""

from __future__ import annotations

import re

import numpy as np
import pytest
from numpy.typing import NDArray

from hylift.graph import FactorGraph
from hylift.grounding import ground
from hylift.inference import Exact, infer
from hylift.inference.sampling import Gibbs
from hylift.language import parse
from hylift.posterior import Categorical
from zoo import (
    ZooModel,
    bounded_and_unbounded_reals,
    mixed_cardinality_loop,
    switching_regime,
    toy_hybrid_mln,
    truncated_gaussian,
)


def test_densities_that_bounds_cut_off_are_near_the_exact_ones() -> None:
    graph = bounded_and_unbounded_reals()
    exact, found = infer(graph, Exact()), infer(graph, Gibbs(), seed=2)

    comparison = exact.compare(found)

    # Averages over 4,000 draws.
    assert comparison.mean_kl < 2e-3


def exact_means(graph: FactorGraph) -> NDArray[np.float64]:
    exact = infer(graph, Exact())
    means = []
    for variable in np.flatnonzero(~exact.observed):
        marginal = exact.marginal(exact.variables.names[int(variable)])
        is_discrete = isinstance(marginal, Categorical)
        states = np.arange(len(marginal.probs)) if is_discrete else None
        means.append(marginal.mean if states is None else float(marginal.probs @ states))
    return np.array(means)


@pytest.mark.parametrize("model", [switching_regime, mixed_cardinality_loop])
def test_stated_errors_are_neither_too_small_nor_too_large(model: ZooModel) -> None:
    graph = model()
    means = exact_means(graph)
    scores = []
    for seed in range(40):
        draws = infer(graph, Gibbs(warm_up=100), tasks="marginals", seed=seed).draws
        assert draws is not None
        scores.append((draws.mean - means) / draws.mcse)

    # Of a standard normal 68 % are within 1 and 95 % within 2. Variables of one run go together,
    # so that 40 runs tell these shares to within 0.22 and 0.10, three standard deviations.
    within = [float((np.abs(scores) < bound).mean()) for bound in (1, 2, 4)]
    assert 0.46 < within[0] < 0.90
    assert within[1] > 0.85
    assert within[2] > 0.97


@pytest.mark.slow
@pytest.mark.parametrize("model", [toy_hybrid_mln, switching_regime, mixed_cardinality_loop])
def test_errors_of_marginals_are_neither_too_small_nor_those_of_draws(model: ZooModel) -> None:
    graph = model()
    truth = infer(graph, Exact())
    scores, shares = [], []
    for seed in range(40):
        found = infer(graph, Gibbs(warm_up=100, draws=320, longer=1), tasks="marginals", seed=seed)
        assert found.draws is not None
        errors, draws = found.draws.standard_errors(), found.draws.diagnostics()
        for place, variable in enumerate(found.draws.ids.tolist()):
            name = found.variables.names[variable]
            own, exact = found.marginal(name), truth.marginal(name)
            if isinstance(own, Categorical):
                off, stated = np.abs(own.probs - exact.probs).max(), errors.probability[place]
            else:
                off, stated = own.mean - exact.mean, errors.mean[place]
                scores.append(np.log(own.std / exact.std) / max(errors.std[place], 1e-4))
            scores.append(off / max(stated, 1e-6))
            shares.append(stated / draws.mcse[place])

    # As above; errors from 64 batches, or 8 half-chains, are themselves uncertain.
    assert float((np.abs(scores) < 2).mean()) > 0.85
    assert float((np.abs(scores) < 4).mean()) > 0.97
    assert np.median(shares) < 0.9


def test_the_median_of_a_cut_off_real_is_where_exact_inference_has_it() -> None:
    graph = truncated_gaussian()
    exact, found = infer(graph, Exact()).marginal("x"), infer(graph, Gibbs()).marginal("x")

    # The grid has panels of four nodes each.
    np.testing.assert_allclose(
        found.quantile([0.05, 0.5, 0.95]), exact.quantile([0.05, 0.5, 0.95]), atol=1e-5
    )


def test_notes_state_errors_of_probabilities_and_of_means_in_deviations() -> None:
    rules = "n = {0, ..., 4}\nA(n)\nx(n): real\n0.5 A(i) ^ A(i+1)\nnormal(x(i) | 900*A(i), 90000)"

    found = infer(ground(parse(rules)), Gibbs())

    (note,) = (note for note in found.solution.notes if note.startswith("R-hat"))
    stated = re.search(
        r"standard error of a probability at most ([\d.]+) \(.A\(\d\).\) "
        r"and of a mean at most ([\d.]+) deviations \(.x\(\d\).\)\.$",
        note,
    )
    assert stated is not None, note
    assert all(0.001 < float(error) < 0.1 for error in stated.groups())
