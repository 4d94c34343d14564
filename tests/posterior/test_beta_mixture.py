"""Mixtures of Betas against SciPy, at the edges and row by row."""

import itertools

import numpy as np
import pytest
from scipy import integrate, optimize, special, stats

from hylift.posterior.distributions import BetaMixture, GaussianMixture, RealDistribution

PROBABILITIES = [0.0, 1e-9, 1e-3, 0.3, 0.5, 0.9, 1.0 - 1e-9, 1.0]


def random_mixtures(batch, num_components, seed=0, least=-0.5):
    rng = np.random.default_rng(seed)
    shape = (*batch, num_components)
    weights = rng.dirichlet(np.ones(num_components), batch)
    alpha, beta = 10.0 ** rng.uniform(least, 2.3, (2, *shape))
    lower = rng.normal(0, 3, batch)
    return BetaMixture(weights, alpha, beta, lower, lower + 10.0 ** rng.uniform(-1, 2, batch))


def scipy_betas(mixture):
    width = mixture.upper - mixture.lower
    return stats.beta(
        mixture.alpha, mixture.beta, np.expand_dims(mixture.lower, -1), np.expand_dims(width, -1)
    )


@pytest.mark.parametrize("seed", range(20))
def test_densities_are_weighted_sums_of_beta_densities(seed):
    mixture = random_mixtures((), 1 + seed % 4, seed)
    betas = scipy_betas(mixture)
    x = np.linspace(mixture.lower, mixture.upper, 41)[1:-1]

    pdf = [mixture.weights @ betas.pdf(value) for value in x]
    cdf = [mixture.weights @ betas.cdf(value) for value in x]

    np.testing.assert_allclose(mixture.pdf(x), pdf, rtol=1e-10)
    np.testing.assert_allclose(mixture.cdf(x), cdf, rtol=1e-10, atol=1e-14)
    np.testing.assert_allclose(mixture.log_pdf(x), np.log(pdf), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("seed", range(20))
def test_moments_are_those_of_a_mixture(seed):
    mixture = random_mixtures((), 1 + seed % 4, seed)
    betas = scipy_betas(mixture)

    mean = mixture.weights @ betas.mean()
    var = mixture.weights @ (betas.var() + (betas.mean() - mean) ** 2)

    assert mixture.mean == pytest.approx(mean, rel=1e-12, abs=1e-12)
    assert mixture.var == pytest.approx(var, rel=1e-10)


def entropy_by_quadrature(mixture):
    """Over y = log u/(1 - u), where the integrand has no poles."""
    heights = np.log(mixture.weights) - special.betaln(mixture.alpha, mixture.beta)

    def term(y):
        near, far = -np.logaddexp(0.0, -y), -np.logaddexp(0.0, y)
        log = np.logaddexp.reduce(heights + mixture.alpha * near + mixture.beta * far)
        return -np.exp(log) * (log - near - far - np.log(mixture.upper - mixture.lower))

    knots = np.sort([-300.0, 300.0, *np.log(mixture.alpha / mixture.beta)])
    return sum(
        integrate.quad(term, low, high, epsabs=1e-13, limit=500)[0]
        for low, high in itertools.pairwise(knots)
        if high > low
    )


@pytest.mark.parametrize("seed", range(12))
def test_the_entropy_is_an_integral_of_the_density(seed):
    mixture = random_mixtures((), 2 + seed % 3, seed)

    assert mixture.entropy == pytest.approx(entropy_by_quadrature(mixture), abs=1e-9)


def test_the_entropy_of_one_component_is_in_closed_form():
    mixture = BetaMixture([1.0], [[0.3], [4.0]], [[0.5], [1.0]], [0.0, -1.0], [1.0, 3.0])

    np.testing.assert_allclose(mixture.entropy, scipy_betas(mixture).entropy()[:, 0], rtol=1e-10)


@pytest.mark.parametrize("seed", range(20))
def test_quantiles_invert_the_cdf(seed):
    mixture = random_mixtures((), 1 + seed % 4, seed, least=0.0)

    x = mixture.quantile(PROBABILITIES)

    assert (x[0], x[-1]) == (mixture.lower, mixture.upper)
    # One rounding of x changes the cdf by its slope, which may be steep.
    rounding = 4e-16 * (np.abs(x[1:-1]) + 1.0) * mixture.pdf(x[1:-1])
    assert (np.abs(mixture.cdf(x[1:-1]) - PROBABILITIES[1:-1]) <= 1e-13 + rounding).all()


def test_quantiles_of_one_component_are_those_of_scipy():
    mixture = BetaMixture([1.0], [0.4], [2.5], 1.0, 3.0)

    expected = stats.beta(0.4, 2.5, 1.0, 2.0).ppf(PROBABILITIES)
    np.testing.assert_allclose(mixture.quantile(PROBABILITIES), expected, rtol=1e-12)


def test_quantiles_close_to_a_pole_keep_their_digits():
    mixture = BetaMixture([0.5, 0.5], [0.2, 3.0], [3.0, 2.0], 0.0, 1.0)

    for p in (1e-12, 1e-6, 1e-3):
        assert mixture.cdf(mixture.quantile(p)) == pytest.approx(p, rel=1e-10)
    mirrored = BetaMixture([0.5, 0.5], [3.0, 2.0], [0.2, 3.0], -1.0, 0.0)
    np.testing.assert_allclose(
        mirrored.quantile([0.9, 0.6]), -mixture.quantile([1 - 0.9, 0.4]), rtol=1e-10
    )


@pytest.mark.parametrize("seed", range(30))
def test_no_point_is_denser_than_the_mode(seed):
    mixture = random_mixtures((), 1 + seed % 5, seed, least=0.0)

    mode = mixture.mode

    grid = np.linspace(mixture.lower, mixture.upper, 20_001)
    assert mixture.pdf(grid).max() <= mixture.pdf(mode) * (1 + 1e-12)


def test_the_mode_is_where_the_slope_vanishes():
    mixture = BetaMixture([0.6, 0.4], [5.0, 8.0], [9.0, 4.0], 0.0, 1.0)

    def slope(x, h=1e-6):
        return mixture.log_pdf(x + h) - mixture.log_pdf(x - h)

    expected = optimize.brentq(slope, mixture.mode - 0.05, mixture.mode + 0.05, xtol=1e-12)
    assert mixture.mode == pytest.approx(expected, abs=1e-8)  # of a numerical slope


@pytest.mark.parametrize(
    ("alpha", "beta", "mode"),
    [
        ([0.5], [2.0], 2.0),
        ([2.0], [0.5], 5.0),
        ([0.5], [0.4], 5.0),
        ([1.0], [1.0], 3.5),
        ([1.0], [3.0], 2.0),
        ([3.0, 0.9], [3.0, 2.0], 2.0),
        ([3.0, 3.0], [3.0, 0.9], 5.0),
        ([1.0, 1.0], [3.0, 4.0], 2.0),
        ([4.0, 2.0], [1.0, 1.0], 5.0),
        ([1.0, 1.0], [1.0, 1.0], 3.5),
    ],
)
def test_the_mode_may_be_an_edge(alpha, beta, mode):
    weights = np.full(len(alpha), 1.0 / len(alpha))

    assert BetaMixture(weights, alpha, beta, 2.0, 5.0).mode == pytest.approx(mode, abs=1e-12)


def test_the_density_is_infinite_at_a_pole_and_0_outside():
    mixture = BetaMixture([0.5, 0.5], [0.5, 3.0], [2.0, 1.0], 2.0, 5.0)

    assert mixture.pdf([1.9, 5.1, -np.inf, np.inf]).tolist() == [0.0] * 4
    assert mixture.log_pdf([1.9, 5.1]).tolist() == [-np.inf] * 2
    assert mixture.pdf(2.0) == np.inf
    assert mixture.pdf(5.0) == pytest.approx(0.5 * 3.0 / 3.0)
    assert mixture.cdf([1.0, 2.0, 5.0, 9.0]).tolist() == [0.0, 0.0, 1.0, 1.0]


def test_a_batch_equals_its_rows():
    batch = random_mixtures((2, 3), 3)
    x = np.linspace(-3.0, 6.0, 7)

    for i, j in np.ndindex(2, 3):
        row = batch[i, j]
        for name in ("mean", "var", "mode", "entropy"):
            assert getattr(batch, name)[i, j] == pytest.approx(getattr(row, name), rel=1e-10)
        np.testing.assert_allclose(batch.cdf(x)[:, i, j], row.cdf(x), atol=1e-14)
        np.testing.assert_allclose(
            batch.quantile(PROBABILITIES)[:, i, j], row.quantile(PROBABILITIES), rtol=1e-10
        )
    assert batch.sample(5, seed=1).shape == (5, 2, 3)
    assert isinstance(batch, RealDistribution)


def test_samples_follow_the_cdf():
    mixture = random_mixtures((2,), 3, seed=4)

    draws = mixture.sample(4000, seed=3)

    for row in range(2):
        assert stats.kstest(draws[:, row], mixture[row].cdf).pvalue > 1e-3


def test_components_of_weight_0_change_nothing():
    plain = BetaMixture([0.3, 0.7], [2.0, 5.0], [3.0, 1.5], 0.0, 2.0)
    padded = BetaMixture([0.0, 0.3, 0.7], [0.1, 2.0, 5.0], [0.2, 3.0, 1.5], 0.0, 2.0)

    for name in ("mean", "var", "mode", "entropy"):
        assert getattr(padded, name) == pytest.approx(getattr(plain, name), rel=1e-10)
    np.testing.assert_allclose(padded.pdf([0.0, 1.0, 2.0]), plain.pdf([0.0, 1.0, 2.0]))
    np.testing.assert_allclose(padded.quantile(PROBABILITIES), plain.quantile(PROBABILITIES))


def test_a_narrow_beta_is_almost_a_gaussian():
    mean, n = 0.4, 1e6
    betas = BetaMixture([0.5, 0.5], [mean * n, 0.6 * n], [(1 - mean) * n, 0.4 * n], 0.0, 1.0)
    gaussians = GaussianMixture([0.5, 0.5], [mean, 0.6], [0.24 / n, 0.24 / n])

    assert betas.entropy == pytest.approx(gaussians.entropy, abs=1e-5)
    np.testing.assert_allclose(
        betas.quantile([0.1, 0.8]), gaussians.quantile([0.1, 0.8]), atol=1e-6
    )


@pytest.mark.parametrize(
    ("alpha", "beta", "lower", "upper", "message"),
    [
        ([1.0, 0.0], [1.0, 1.0], 0.0, 1.0, "alpha must be positive, but is 0"),
        ([1.0, 2.0], [1.0, -1.0], 0.0, 1.0, r"beta\[1\] must be at least 0, but is -1.0"),
        ([1.0, 2.0], [1.0], 0.0, 1.0, "beta must have the shape of alpha"),
        ([1.0, 2.0], [1.0, 1.0], 1.0, 1.0, "lower must be below upper"),
        ([1.0, 2.0], [1.0, 1.0], 0.0, np.inf, "upper must be finite"),
        ([1.0, 2.0], [1.0, 1.0], [0.0, 0.0], 1.0, r"lower must have shape \(\) or \(\)"),
        (1.0, 1.0, 0.0, 1.0, r"alpha must have shape \(\*batch, component\)"),
    ],
)
def test_a_wrong_mixture_is_refused(alpha, beta, lower, upper, message):
    with pytest.raises(ValueError, match=message):
        BetaMixture([0.5, 0.5], alpha, beta, lower, upper)


def test_texts_are_short():
    mixture = BetaMixture([0.5, 0.5], [2.0, 2.0], [2.0, 2.0], 0.0, 2.0)

    assert repr(mixture) == "BetaMixture(mean=1, std=0.447, low=0, high=2, components=2)"
    assert repr(random_mixtures((2,), 3)) == "BetaMixture(batch_shape=(2,), components=3)"
