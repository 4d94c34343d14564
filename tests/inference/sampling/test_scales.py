"""Densities that are narrow, far from 0, cut off rarely, or held with very different strength."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from hybrid_models import tied_levels
from hylift.graph import FactorGraph, boolean, categorical, interval, real
from hylift.inference import Exact, infer
from hylift.inference.sampling import Gibbs
from hylift.inference.sampling.marginals import positive_density
from hylift.potentials import ConditionalQuadratic, Table


def normal_between(low: float, high: float, mean: float, sd: float) -> FactorGraph:
    return FactorGraph.build(
        {"x": interval(low, high)},
        [(ConditionalQuadratic.gaussian([mean], [[sd**2]]), ["x"])],
    )


@pytest.mark.parametrize(
    ("low", "high", "mean", "sd"),
    [
        (0, 1e6, 1, 1),
        (0, 1e12, 1, 1),
        (-1e6, 1e6, -1e6, 1),
        (0, 1e3, -2, 1),
        (0, np.inf, 0, 1e-6),
        (0, np.inf, 0, 1e-8),
        (0, np.inf, 0, 1e8),
        (-np.inf, 0, 3, 1),
        (1e8, 1e8 + 1, 1e8 + 0.2, 0.3),
        (0, 1e-2, 0, 1),
    ],
)
def test_grids_resolve_what_bounds_cut_off(low: float, high: float, mean: float, sd: float) -> None:
    shifted = stats.truncnorm((low - mean) / sd, (high - mean) / sd, 0.0, sd)

    found = infer(normal_between(low, high, mean, sd), Gibbs(draws=200), seed=1)

    marginal = found.marginal("x")
    # Means near 1e8 are told apart by 1e-8 only, and panels that reach to 1e12 add rounding.
    error = max(2e-7 * sd, 1e-17 * high if np.isfinite(high) else 0.0)
    assert marginal.mean - mean == pytest.approx(shifted.mean(), rel=1e-6, abs=error)
    assert marginal.std == pytest.approx(shifted.std(), rel=1e-6)


@pytest.mark.parametrize("far", [1e3, 1e6])
def test_the_tail_of_a_far_normal_is_exponential(far: float) -> None:
    found = infer(normal_between(0, np.inf, -far, 1), Gibbs(draws=200), seed=1)

    # It falls as exp(-far x - x²/2), so that the mean is 1/far (1 - 1/far² …).
    assert found.marginal("x").mean == pytest.approx(1 / far, rel=2e-6)
    assert found.marginal("x").std == pytest.approx(1 / far, rel=4e-6)


@pytest.mark.parametrize("high", [10, 30, 100, 1e4])
def test_densities_stay_positive_where_they_fall_steeply(high: float) -> None:
    graph = normal_between(0, high, 0, 1)
    exact, found = infer(graph, Exact()), infer(graph, Gibbs(draws=50), seed=0)

    comparison = exact.compare(found)

    assert found.marginal("x").pdf(np.linspace(0.0, high, 10_001)).min() > 0
    assert comparison.max_kl < 1e-6


def test_flattened_cubics_keep_the_mass_of_their_panels() -> None:
    rng = np.random.default_rng(0)
    values = np.exp(-30 * rng.random((5, 7, 4)))
    edges = np.tile(np.linspace(0.0, 7.0, 8), (5, 1))

    density = positive_density(edges, values)

    weights = np.polynomial.legendre.leggauss(4)[1] / 2
    mass = values @ weights
    np.testing.assert_allclose(
        density.coefficients[..., 0], mass / mass.sum(axis=1, keepdims=True), rtol=1e-12
    )
    assert density.pdf(np.linspace(0.0, 7.0, 7001)[:, None]).min() > 0


def rarely_near_a_bound() -> FactorGraph:
    """One state in twenty has its real one standard deviation from a bound."""
    place = ConditionalQuadratic.gaussian([[0.0], [9.0]], [[[0.01]], [[1.0]]])
    return FactorGraph.build(
        {"on": boolean, "x": interval(-10, 10)},
        [(place, ["on", "x"]), (Table.from_values([0.95, 0.05]), ["on"])],
    )


@pytest.mark.parametrize("seed", range(6))
def test_bounds_that_matter_in_a_rare_state_are_respected(seed: int) -> None:
    graph = rarely_near_a_bound()

    found = infer(graph, Gibbs(), seed=seed)

    assert found.marginal("x").cdf(10.0) == 1.0
    # By the rare state, of which 4,000 draws, one sweep in four, tell to within 0.02.
    assert infer(graph, Exact()).compare(found).max_kl < 5e-3


@pytest.mark.parametrize("seed", range(6))
def test_a_component_may_turn_indefinite_after_the_warm_up(seed: int) -> None:
    bend = ConditionalQuadratic([[[[-50.0]], [[0.01]]]], [[[0.0], [0.0]]], [[0.0, 16.0]])
    graph = FactorGraph.build(
        {"on": boolean, "x": interval(-10, 10), "y": real},
        [(bend, ["on", "x"]), (ConditionalQuadratic.square(-0.5), ["y"])],
    )

    found = infer(graph, Gibbs(warm_up=1, chains=1, draws=4), seed=seed)

    assert found.marginal("x").cdf(10.0) == 1.0
    assert found.marginal("y").std == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("added", "prior"), [(1e4, 1e-2), (1e8, 1e-8), (1e12, 1e-4), (1e16, 1.0), (1e16, 1e-2)]
)
def test_a_state_that_holds_a_real_much_faster_leaves_the_other_its_digits(
    added: float, prior: float
) -> None:
    half = np.log([added + prior, prior]) / 2  # each state has a probability of one half
    hold = ConditionalQuadratic([[[[-added / 2]], [[0.0]]]], [[[0.0], [0.0]]], [half])
    graph = FactorGraph.build(
        {"free": boolean, "x": real},
        [(hold, ["free", "x"]), (ConditionalQuadratic.square(-prior / 2), ["x"])],
    )

    found = infer(graph, Gibbs(draws=4000), seed=0)

    assert found.solution.result == "converged"
    assert found.draws is not None
    # 4,000 independent draws: four standard errors.
    assert found.draws.mean[0] == pytest.approx(0.5, abs=0.032)


@pytest.mark.parametrize("stiffness", [1e2, 1e4, 1e6])
def test_reals_that_bounds_and_each_other_hold_move_together(stiffness: float) -> None:
    graph = FactorGraph.build(
        {"x": interval(0, 1), "y": interval(0, 1)},
        [(ConditionalQuadratic.squared_distance(stiffness, [1, -1]), ["x", "y"])],
    )

    found = infer(graph, Gibbs(), seed=1)

    assert found.solution.result == "converged"
    assert found.draws is not None
    assert found.draws.diagnostics().ess.min() > 1000
    np.testing.assert_array_less(np.abs(found.draws.mean - 0.5), 4 * found.draws.mcse)
    # Almost even, and the closer the stiffer.
    assert found.marginal("x").std == pytest.approx(1 / np.sqrt(12), abs=0.02)


def test_marginals_that_are_narrower_than_a_grid_are_told() -> None:
    size = 24
    place = ConditionalQuadratic.gaussian(
        np.arange(size, dtype=float)[:, None], np.full((size, 1, 1), 1e-8)
    )
    graph = FactorGraph.build(
        {"c": categorical(size), "x": interval(0, size)}, [(place, ["c", "x"])]
    )

    found = infer(graph, Gibbs(), seed=0)

    assert (
        "Densities of 1 real, such as 'x', are narrower than the panels of a grid: their marginals "
        "are histograms, exact to the width of a panel."
    ) in found.solution.notes
    # Half of the first state is cut off. Panels are no wider than 1, and 1,000 draws of a state
    # with a standard deviation of 7 tell its mean to within 0.9, four standard errors.
    mean = np.arange(size).sum() / (size - 0.5)
    assert found.marginal("x").mean == pytest.approx(mean, abs=1.9)


@pytest.mark.parametrize("var", [1e-8, 1e-10])
def test_probabilities_beside_closely_tied_reals_are_those_of_the_draws(var: float) -> None:
    graph = tied_levels(4, var)
    exact = infer(graph, Exact())

    found = infer(graph, Gibbs(), seed=1)

    for step in range(4):
        atom = f"Up({step})"
        assert found.prob(atom).value == pytest.approx(exact.prob(atom).value, abs=0.03)
