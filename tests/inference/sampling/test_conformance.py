"""Gibbs against exact inference, within the error that it states."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from numpy.typing import NDArray

from hylift.graph import FactorGraph
from hylift.inference import Exact, infer
from hylift.inference.sampling import Gibbs
from hylift.posterior import Categorical, Posterior
from hylift.posterior.draws import standard_error
from zoo import (
    ZOO,
    ZooModel,
    bounded_and_unbounded_reals,
    mixed_cardinality_loop,
    switching_regime,
    truncated_gaussian,
)

REFUSED = {"function_of_bounded_reals", "function_of_both_kinds"}
CLAIMED = [model for model in ZOO if str(model) not in REFUSED]

FAR = 4.0
"""Standard errors that no mean is off, with these seeds: by chance one in 10,000 may be."""


@cache
def answers(model: ZooModel) -> tuple[Posterior, Posterior]:
    graph = model.graph()
    everything = ("marginals", "logz", "map")
    return infer(graph, Exact(), tasks=everything), infer(graph, Gibbs(), tasks=everything, seed=7)


def each_statistic(exact: Posterior, found: Posterior) -> list[tuple[str, float, float, float]]:
    """Name, exact value, the marginal's and the standard error of probabilities and means."""
    assert found.draws is not None
    rows = []
    for at, variable in enumerate(found.draws.ids.tolist()):
        name = exact.variables.names[variable]
        true, got = exact.marginal(name), found.marginal(name)
        values = found.draws.values[:, :, at]
        if isinstance(true, Categorical):
            is_state = (values[:, :, None] == np.arange(len(true.probs))).astype(float)
            # A state that was never drawn may have a probability of one in so many draws.
            error = np.maximum(standard_error(is_state), 1 / values.size)
            assert np.abs(is_state.mean(axis=(0, 1)) - true.probs).max() <= FAR * error.max()
            rows += list(zip([name] * len(error), true.probs, got.probs, error, strict=True))
        else:
            error = standard_error(values[:, :, None])[0]
            squares = (values - true.mean) ** 2
            of_var = standard_error(squares[:, :, None])[0]
            assert abs(values.mean() - true.mean) <= FAR * error, name
            assert abs(squares.mean() - true.var) <= FAR * of_var, name
            rows += [(name, true.mean, got.mean, error), (name, true.var, got.var, of_var)]
    return rows


@pytest.mark.parametrize("model", CLAIMED, ids=str)
def test_draws_and_marginals_are_exact_within_the_stated_error(model: ZooModel) -> None:
    exact, found = answers(model)

    for name, true, got, error in each_statistic(exact, found):
        assert abs(got - true) <= FAR * error, name


@pytest.mark.parametrize("model", CLAIMED, ids=str)
def test_chains_agree(model: ZooModel) -> None:
    _, found = answers(model)

    assert found.solution.result == "converged"
    assert found.draws is not None
    assert found.draws.diagnostics().r_hat.max() < 1.05


@pytest.mark.parametrize("model", CLAIMED, ids=str)
def test_the_best_assignment_is_found_on_small_models(model: ZooModel) -> None:
    exact, found = answers(model)

    assert found.assignment is not None
    assert found.assignment.kind == "estimate"
    assert found.assignment.energy == pytest.approx(exact.map().energy, abs=1e-6)
    assert found.energy(found.assignment) == pytest.approx(found.assignment.energy, abs=1e-9)


@pytest.mark.parametrize("model", CLAIMED, ids=str)
def test_there_is_no_log_z_and_the_notes_say_so(model: ZooModel) -> None:
    _, found = answers(model)

    assert found.log_partition is None
    assert "Gibbs does not estimate log Z." in found.solution.notes


@pytest.mark.parametrize("model", [m for m in CLAIMED if "gaussian" in m.tags], ids=str)
def test_gaussian_marginals_without_states_and_near_bounds_are_exact(model: ZooModel) -> None:
    exact, found = answers(model)

    for name in found.marginals()["atom"].to_pylist():
        true, got = exact.marginal(name), found.marginal(name)
        # On a grid, where bounds matter, by quadrature.
        assert got.mean == pytest.approx(true.mean, abs=1e-6)
        assert got.std == pytest.approx(true.std, abs=1e-6)


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


def test_the_median_of_a_cut_off_real_is_where_exact_inference_has_it() -> None:
    graph = truncated_gaussian()
    exact, found = infer(graph, Exact()).marginal("x"), infer(graph, Gibbs()).marginal("x")

    # The grid has panels of four nodes each.
    np.testing.assert_allclose(
        found.quantile([0.05, 0.5, 0.95]), exact.quantile([0.05, 0.5, 0.95]), atol=1e-5
    )
