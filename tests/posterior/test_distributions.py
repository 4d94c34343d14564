"""Marginal distributions against SciPy, row by row and at the extremes."""

import itertools
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, optimize, stats

from hylift.numerics.quadrature import gauss_legendre_nodes
from hylift.posterior.distributions import (
    Categorical,
    GaussianMixture,
    PiecewiseDensity,
    PointMass,
    RealDistribution,
)

PROBABILITIES = [0.0, 1e-12, 1e-3, 0.3, 0.5, 0.9, 1.0 - 1e-12, 1.0]


@st.composite
def mixtures(draw, max_components=5):
    num_components = draw(st.integers(1, max_components))

    def floats(low, high):
        unit = st.floats(0.0, 1.0).map(lambda u: low + (high - low) * u)
        return np.array(draw(st.lists(unit, min_size=num_components, max_size=num_components)))

    weights = floats(0.01, 1.0)
    return GaussianMixture(weights / weights.sum(), floats(-20.0, 20.0), 10.0 ** floats(-2.0, 2.0))


def random_mixtures(batch, num_components, seed=0):
    rng = np.random.default_rng(seed)
    shape = (*batch, num_components)
    weights = rng.dirichlet(np.ones(num_components), batch)
    return GaussianMixture(weights, rng.normal(0, 4, shape), rng.gamma(1, 1, shape) + 0.01)


def quartic(x):
    return np.exp(-(x**4) / 20 + x) * (1 + 0.3 * np.sin(5 * x))


def piecewise_quartic():
    edges = np.linspace(-3.0, 5.0, 25)
    nodes, _ = gauss_legendre_nodes(edges, 12)
    return PiecewiseDensity.from_gauss_legendre(edges, quartic(nodes).reshape(24, 12))


def random_piecewise(batch, seed=0):
    rng = np.random.default_rng(seed)
    edges = np.cumsum(rng.uniform(0.1, 2.0, (*batch, 5)), axis=-1)
    return PiecewiseDensity.from_gauss_legendre(edges, rng.uniform(0.1, 1.0, (*batch, 4, 5)))


def every_real_distribution(batch):
    return [
        random_mixtures(batch, 4),
        random_mixtures(batch, 1),
        random_piecewise(batch),
        PointMass(np.random.default_rng(0).normal(size=batch)),
    ]


def scipy_integral(distribution, function, scale_points):
    ends = np.unique(scale_points)
    return sum(
        integrate.quad(lambda x: function(x, distribution.pdf(x)), a, b, epsabs=1e-13, limit=200)[0]
        for a, b in itertools.pairwise(ends)
    )


def scale_points(mixture):
    offsets = np.sqrt(mixture.variances)[:, None] * np.array([-10.0, -3.0, 0.0, 3.0, 10.0])
    return mixture.means[:, None] + offsets


@pytest.mark.parametrize("batch", [(), (3,), (2, 3)])
@pytest.mark.parametrize("which", range(4))
def test_results_have_the_shape_of_the_argument_then_of_the_batch(batch, which):
    distribution = every_real_distribution(batch)[which]

    values = [distribution.mean, distribution.var, distribution.std, distribution.mode]
    values += [distribution.entropy, distribution.cdf(0.3), distribution.quantile(0.3)]
    values += [*distribution.interval()]
    values += [] if isinstance(distribution, PointMass) else [distribution.pdf(0.3)]

    assert isinstance(distribution, RealDistribution)
    assert all(np.shape(value) == batch for value in values)
    assert all(isinstance(value, float if batch == () else np.ndarray) for value in values)
    assert np.shape(distribution.cdf(np.zeros((4, 2)))) == (4, 2, *batch)
    assert np.shape(distribution.quantile(np.full((0, 2), 0.5))) == (0, 2, *batch)
    assert distribution.sample(5, seed=1).shape == (5, *batch)


@pytest.mark.parametrize("which", range(4))
def test_a_batch_equals_its_rows(which):
    distribution = every_real_distribution((2, 3))[which]
    x = np.linspace(-3.0, 6.0, 7)

    for i, j in np.ndindex(2, 3):
        row = distribution[i, j]
        for name in ("mean", "var", "mode", "entropy"):
            np.testing.assert_allclose(
                getattr(distribution, name)[i, j], getattr(row, name), rtol=1e-12, atol=1e-12
            )
        np.testing.assert_allclose(distribution.cdf(x)[:, i, j], row.cdf(x), atol=1e-14)
        np.testing.assert_allclose(
            distribution.quantile(PROBABILITIES)[:, i, j], row.quantile(PROBABILITIES), rtol=1e-10
        )


def test_blocks_of_points_and_rows_give_the_same_as_single_calls():
    distribution = random_mixtures((301,), 40)
    x = np.linspace(-5.0, 5.0, 50)

    blocked = distribution.pdf(x)

    single = np.array([distribution.pdf(value) for value in x])
    np.testing.assert_allclose(blocked, single, rtol=1e-13)


def test_indexing_takes_ints_slices_and_arrays():
    distribution = random_mixtures((5,), 3)

    assert distribution[2].batch_shape == ()
    assert distribution[1:4].batch_shape == (3,)
    assert distribution[np.array([[0, 4], [1, 1]])].batch_shape == (2, 2)
    assert distribution[distribution.mean > np.inf].batch_shape == (0,)
    np.testing.assert_array_equal(distribution[[4, 0]].means, distribution.means[[4, 0]])
    assert [row.mean for row in distribution] == list(distribution.mean)


def test_indexing_beyond_the_batch_is_an_error():
    distribution = random_mixtures((5,), 3)

    with pytest.raises(IndexError):
        distribution[5]
    with pytest.raises(IndexError):
        distribution[0, 0]
    with pytest.raises(TypeError, match="a single GaussianMixture has no batch to index"):
        distribution[0][0]


def test_arrays_are_read_only_and_not_copied():
    means, variances = np.zeros((3, 2)), np.ones((3, 2))

    distribution = GaussianMixture([0.5, 0.5], means, variances)

    assert np.shares_memory(distribution.means, means)
    assert distribution.weights.strides[0] == 0  # one row of weights for all
    assert means.flags.writeable
    for array in (distribution.weights, distribution.means, distribution[[0, 1]].variances):
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0.0


@pytest.mark.parametrize("p", [-0.1, 1.5, np.nan])
@pytest.mark.parametrize("which", range(4))
def test_a_probability_outside_of_0_to_1_is_quoted(which, p):
    distribution = every_real_distribution(())[which]

    with pytest.raises(ValueError, match=rf"p\[1\] must be in \[0, 1\], but is {p}"):
        distribution.quantile([0.5, p])
    with pytest.raises(ValueError, match=rf"mass must be in \[0, 1\], but is {p}"):
        distribution.interval(p)


def test_nan_is_no_point_to_evaluate_at():
    with pytest.raises(ValueError, match=r"x\[0\] must be not NaN, but is nan"):
        random_mixtures((), 2).pdf([np.nan])


def test_samples_need_a_seed_and_repeat_with_it():
    distribution = random_mixtures((3,), 2)

    np.testing.assert_array_equal(distribution.sample(4, seed=7), distribution.sample(4, seed=7))
    generator = np.random.default_rng(7)
    np.testing.assert_array_equal(
        distribution.sample(4, seed=generator), distribution.sample(4, seed=7)
    )
    with pytest.raises(TypeError, match=r"seed must be an int or a numpy\.random\.Generator"):
        distribution.sample(4, seed=None)
    with pytest.raises(ValueError, match="size must be at least 0, but is -1"):
        distribution.sample(-1, seed=7)


@pytest.mark.parametrize("which", range(3))
def test_samples_follow_the_cdf(which):
    distribution = every_real_distribution((2,))[which]

    draws = distribution.sample(4000, seed=3)

    for row in range(2):
        assert stats.kstest(draws[:, row], distribution[row].cdf).pvalue > 1e-3


def test_samples_of_a_large_batch_come_from_the_right_rows():
    low = np.arange(40_000.0)
    edges = low[:, None] + np.array([0.0, 0.5, 1.0])

    draws = PiecewiseDensity.from_gauss_legendre(edges, np.ones((40_000, 2, 2))).sample(2, seed=1)

    np.testing.assert_array_equal(np.floor(draws), [low, low])


def test_an_empty_batch_has_empty_results():
    distribution = random_mixtures((3,), 2)[:0]

    assert distribution.mean.shape == distribution.mode.shape == (0,)
    assert distribution.quantile([0.1, 0.2]).shape == (2, 0)
    assert GaussianMixture(np.empty((0, 2)), np.empty((0, 2)), np.empty((0, 2))).batch_shape == (0,)


@pytest.mark.parametrize("which", range(4))
def test_distributions_survive_pickling(which):
    distribution = every_real_distribution((2,))[which]

    copy = pickle.loads(pickle.dumps(distribution))

    np.testing.assert_array_equal(copy.mean, distribution.mean)


def test_one_component_is_the_normal_distribution():
    means, sds = np.array([-3.0, 0.0, 1e6]), np.array([1e-6, 1.0, 1e6])
    distribution = GaussianMixture([1.0], means[:, None], sds[:, None] ** 2)
    normal = stats.norm(means, sds)
    x = np.array([[-3.0], [0.5], [2e6]])

    np.testing.assert_array_equal(distribution.mean, means)
    np.testing.assert_array_equal(distribution.mode, means)
    np.testing.assert_allclose(distribution.std, sds, rtol=1e-15)
    np.testing.assert_allclose(distribution.entropy, normal.entropy(), rtol=1e-13)
    np.testing.assert_allclose(distribution.pdf(x[:, 0]), normal.pdf(x), rtol=1e-12)
    np.testing.assert_allclose(distribution.log_pdf(x[:, 0]), normal.logpdf(x), rtol=1e-12)
    np.testing.assert_allclose(distribution.cdf(x[:, 0]), normal.cdf(x), rtol=1e-12)
    p = np.array(PROBABILITIES)
    np.testing.assert_allclose(distribution.quantile(p), normal.ppf(p[:, None]), rtol=1e-13)


@given(mixtures(), st.floats(-60.0, 60.0))
@settings(max_examples=100, deadline=None, derandomize=True)
def test_densities_are_weighted_sums_of_normal_densities(mixture, x):
    normal = stats.norm(mixture.means, np.sqrt(mixture.variances))

    assert mixture.pdf(x) == pytest.approx(mixture.weights @ normal.pdf(x), rel=1e-12)
    assert mixture.cdf(x) == pytest.approx(mixture.weights @ normal.cdf(x), rel=1e-12)
    expected = np.logaddexp.reduce(np.log(mixture.weights) + normal.logpdf(x))
    assert mixture.log_pdf(x) == pytest.approx(expected, rel=1e-12, abs=1e-12)


@given(mixtures())
@settings(max_examples=40, deadline=None, derandomize=True)
def test_moments_and_entropy_are_integrals_of_the_density(mixture):
    points = scale_points(mixture)

    mean = scipy_integral(mixture, lambda x, f: x * f, points)
    var = scipy_integral(mixture, lambda x, f: (x - mixture.mean) ** 2 * f, points)
    entropy = scipy_integral(mixture, lambda x, f: -f * np.log(f) if f > 0 else 0.0, points)

    assert mixture.mean == pytest.approx(mean, rel=1e-9, abs=1e-9)
    assert mixture.var == pytest.approx(var, rel=1e-9)
    assert mixture.entropy == pytest.approx(entropy, abs=1e-8)


def test_entropies_of_many_mixtures_agree_with_a_fine_fixed_rule():
    mixtures = random_mixtures((500,), 5)
    sds = np.sqrt(mixtures.variances)
    knots = mixtures.means[..., None] + sds[..., None] * np.linspace(-9, 9, 25)
    knots = np.sort(knots.reshape(500, -1), axis=1)
    nodes, weights = np.polynomial.legendre.leggauss(12)

    actual = mixtures.entropy

    half, middle = np.diff(knots) / 2, (knots[:, 1:] + knots[:, :-1]) / 2
    x = (middle[..., None] + half[..., None] * nodes).reshape(500, -1, 1)
    log_density = stats.norm.logpdf(x, mixtures.means[:, None], sds[:, None])
    log_density = np.log(np.exp(log_density) @ mixtures.weights[..., None] + 1e-300)[..., 0]
    terms = -np.exp(log_density) * log_density
    expected = (terms * (half[..., None] * weights).reshape(500, -1)).sum(axis=1)
    np.testing.assert_allclose(actual, expected, atol=1e-8)


@given(mixtures(), st.floats(1e-14, 1.0 - 1e-14))
@settings(max_examples=200, deadline=None, derandomize=True)
def test_quantiles_invert_the_cdf(mixture, p):
    x = mixture.quantile(p)

    slope = mixture.pdf(x)
    rounding = 1e-15 * abs(x) * slope  # what one rounding of x does to the cdf
    assert mixture.cdf(x) == pytest.approx(p, rel=1e-12, abs=1e-15 + rounding)


@given(mixtures(), st.floats(0.0, 1.0))
@settings(max_examples=100, deadline=None, derandomize=True)
def test_quantiles_of_the_mirror_image_are_mirrored(mixture, p):
    mirrored = GaussianMixture(mixture.weights, -mixture.means, mixture.variances)

    actual = -mirrored.quantile(1.0 - p)

    # Between components far apart the cdf is flat, and rounding alone decides on x.
    expected = mixture.quantile(1.0 - (1.0 - p))
    assert actual == pytest.approx(expected, rel=1e-9) or mixture.cdf(actual) == pytest.approx(
        mixture.cdf(expected), abs=1e-14
    )


@given(mixtures(max_components=7))
@settings(max_examples=100, deadline=None, derandomize=True)
def test_no_point_is_denser_than_the_mode(mixture):
    sds = np.sqrt(mixture.variances)
    grid = (mixture.means[:, None] + sds[:, None] * np.linspace(-4, 4, 401)).ravel()

    mode = mixture.mode

    assert mixture.pdf(grid).max() <= mixture.pdf(mode) * (1 + 1e-12)


@pytest.mark.parametrize("seed", range(20))
def test_the_mode_is_where_the_slope_vanishes(seed):
    mixture = random_mixtures((), 5, seed)
    sds = np.sqrt(mixture.variances)

    def slope(x):
        z = (x - mixture.means) / sds
        return -np.sum(mixture.weights / sds * stats.norm.pdf(z) * z / sds)

    mode = mixture.mode

    step = 0.05 * sds.min()
    expected = optimize.brentq(slope, mode - step, mode + step, xtol=1e-14)
    assert mode == pytest.approx(expected, abs=1e-10 * sds.min())


def test_the_mode_is_shifted_by_a_component_six_sds_away():
    mixture = GaussianMixture([0.6, 0.4], [0.0, 6.0], [1.0, 1.0])

    mode = mixture.mode

    expected = 6.0 * np.exp(-18.0) * 0.4 / 0.6  # first order in the far component
    assert mode == pytest.approx(expected, abs=1e-12)


def test_the_mode_lies_between_means_that_almost_agree():
    mixture = GaussianMixture([0.7, 0.3], [0.0, 1e-7], [1.0, 1.0])

    assert mixture.mode == pytest.approx(0.3e-7, abs=1e-12)


def test_the_mode_may_lie_between_the_means():
    mixture = GaussianMixture([0.25, 0.25, 0.25, 0.25], [-1.2, -0.6, 0.6, 1.2], [1.0] * 4)

    assert mixture.mode == pytest.approx(0.0, abs=1e-10)


def test_the_mode_of_a_flat_top_is_found():
    # Two sds apart, the second derivative vanishes too: x is determined to eps^(1/3) only.
    mixture = GaussianMixture([0.5, 0.5], [-1.0, 1.0], [1.0, 1.0])

    assert mixture.mode == pytest.approx(0.0, abs=1e-3)


def test_components_of_weight_0_change_nothing():
    weights, means, variances = np.array([0.3, 0.7]), np.array([0.0, 3.0]), np.array([1.0, 2.0])
    plain = GaussianMixture(weights, means, variances)
    padded = GaussianMixture(
        [0.0, *weights, 0.0], [1e300, *means, 3.0], np.array([0.0, *variances, 1e-300])
    )
    x = np.array([-1.0, 3.0, 1e300, np.inf, -np.inf])

    for name in ("mean", "var", "mode", "entropy"):
        assert getattr(padded, name) == pytest.approx(getattr(plain, name), rel=1e-12)
    for name in ("pdf", "log_pdf", "cdf"):
        np.testing.assert_allclose(getattr(padded, name)(x), getattr(plain, name)(x), rtol=1e-14)
    np.testing.assert_allclose(padded.quantile(PROBABILITIES), plain.quantile(PROBABILITIES))
    assert np.abs(padded.sample(100, seed=1)).max() < 100.0


def test_a_single_positive_weight_is_the_normal_distribution():
    mixture = GaussianMixture([0.0, 1.0], [5.0, 2.0], [1.0, 4.0])

    assert mixture.mode == 2.0
    assert mixture.quantile(0.9) == pytest.approx(stats.norm(2.0, 2.0).ppf(0.9), rel=1e-13)
    assert mixture.entropy == pytest.approx(stats.norm(2.0, 2.0).entropy(), abs=1e-9)


def test_components_a_million_sds_apart():
    weights = np.array([0.2, 0.3, 0.5])
    mixture = GaussianMixture(weights, [-1e6, 0.0, 1e6], [1.0, 4.0, 0.25])
    inside = np.array([0.1, 0.35, 0.75])

    quantiles = mixture.quantile(inside)

    expected = stats.norm([-1e6, 0.0, 1e6], [1.0, 2.0, 0.5]).ppf([0.5, 0.5, 0.5])
    np.testing.assert_allclose(quantiles, expected, rtol=1e-12, atol=1e-12)
    assert mixture.cdf(mixture.quantile([0.2, 0.5])) == pytest.approx([0.2, 0.5], abs=1e-13)
    assert mixture.mode == 1e6
    separate = weights @ stats.norm(0, [1.0, 2.0, 0.5]).entropy() + stats.entropy(weights)
    assert mixture.entropy == pytest.approx(separate, abs=1e-8)


def test_variances_of_1e_minus_12_and_1e12_in_one_mixture():
    mixture = GaussianMixture([0.5, 0.5], [1.0, 0.0], [1e-12, 1e12])

    assert mixture.mode == pytest.approx(1.0, abs=1e-16)
    assert mixture.var == pytest.approx(0.5e12 + 0.25, rel=1e-12)
    assert mixture.quantile(0.5) == pytest.approx(1.0, abs=1e-11)
    assert mixture.quantile(0.05) == pytest.approx(1e6 * stats.norm.ppf(0.1), rel=1e-12)
    assert mixture.quantile(1e-12) == pytest.approx(1e6 * stats.norm.ppf(2e-12), rel=1e-12)
    assert mixture.cdf(mixture.quantile(0.6)) == pytest.approx(0.6, abs=1e-9)  # x has 16 digits
    separate = 0.5 * stats.norm(0, [1e-6, 1e6]).entropy().sum() + np.log(2.0)
    # The wide component adds w log f ~ 1e-12 under the narrow one.
    assert mixture.entropy == pytest.approx(separate, abs=1e-8)


def test_quantiles_reach_infinity():
    mixture = random_mixtures((3,), 2)

    np.testing.assert_array_equal(mixture.quantile([0.0, 1.0]), [[-np.inf] * 3, [np.inf] * 3])
    assert mixture.interval(1.0)[1].tolist() == [np.inf] * 3


def test_quantiles_in_tiny_tails_follow_the_widest_component():
    mixture = GaussianMixture([0.9, 0.1], [0.0, 1.0], [1.0, 25.0])

    for p in (1e-12, 1e-100, 1e-300):
        assert mixture.quantile(p) == pytest.approx(stats.norm(1.0, 5.0).ppf(p / 0.1), rel=1e-10)


@pytest.mark.parametrize("spacing", ["dense", "apart"])
def test_65536_components_in_one_marginal(spacing):
    num_components = 65_536
    rng = np.random.default_rng(0)
    weights = rng.dirichlet(np.ones(num_components))
    if spacing == "dense":
        means, variances = rng.normal(0, 3, num_components), rng.gamma(2, 1, num_components) + 0.1
    else:
        means, variances = 1e3 * np.arange(num_components), np.ones(num_components)
    mixture = GaussianMixture(weights, means, variances)

    mode, median = mixture.mode, mixture.quantile(0.5)

    assert mixture.cdf(median) == pytest.approx(0.5, abs=1e-13)
    highest = means[np.argsort(-weights / np.sqrt(variances))[:20]]
    assert mixture.pdf(mode) >= mixture.pdf(highest).max()
    assert mixture.pdf(mode) >= mixture.pdf(np.linspace(means.min(), means.max(), 50)).max()
    assert np.isfinite(mixture.sample(1000, seed=1)).all()


def test_the_entropy_of_thousands_of_components_apart_is_a_sum():
    weights = np.random.default_rng(0).dirichlet(np.ones(4096))
    mixture = GaussianMixture(weights, 1e6 * np.arange(4096), np.ones(4096))

    separate = stats.entropy(weights) + stats.norm.entropy()

    assert mixture.entropy == pytest.approx(separate, abs=1e-8)


def test_the_density_underflows_where_its_log_does_not():
    mixture = random_mixtures((), 3)

    assert mixture.pdf(1e6) == 0.0
    assert np.isfinite(mixture.log_pdf(1e6))
    assert mixture.log_pdf(np.inf) == -np.inf


@pytest.mark.parametrize(
    ("weights", "means", "variances", "message"),
    [
        ([0.5, 0.6], [0, 1], [1, 1], "the sum of weights must be 1 within 1e-9, but is 1.1"),
        ([1.5, -0.5], [0, 1], [1, 1], r"weights\[1\] must be at least 0, but is -0.5"),
        ([0.5, 0.5], [0, np.nan], [1, 1], r"means\[1\] must be not NaN"),
        ([0.5, 0.5], [0, np.inf], [1, 1], r"means\[1\] must be finite, but is inf"),
        ([0.5, 0.5], [0, 1], [1, -1], r"variances\[1\] must be at least 0, but is -1.0"),
        ([0.5, 0.5], [0, 1], [1, 0], "variance 0; an observed value is a PointMass"),
        ([0.5, 0.5], [0, 1], [1], r"variances must have the shape of means, \(2,\)"),
        ([0.5, 0.5], [0], [1], r"weights must have shape \(1,\)"),
        (1.0, 0.0, 1.0, r"means must have shape \(\*batch, component\)"),
    ],
)
def test_a_wrong_mixture_is_refused(weights, means, variances, message):
    with pytest.raises(ValueError, match=message):
        GaussianMixture(weights, means, variances)


def test_weights_are_normalized_exactly():
    mixture = GaussianMixture([0.5 + 4e-10, 0.5], [0.0, 1.0], [1.0, 1.0])

    assert mixture.weights.sum() == 1.0


def test_a_categorical_knows_its_states():
    marginal = Categorical([1 / 6, 0.5, 1 / 3], ("low", "middle", "high"))

    assert marginal.mode == "middle"
    assert marginal.mode_state == 1
    assert marginal.prob("high") == marginal.prob(2) == pytest.approx(1 / 3)
    assert marginal.entropy == pytest.approx(stats.entropy(marginal.probs), rel=1e-14)
    assert isinstance(marginal.entropy, float)


def test_a_batch_of_categoricals_equals_its_rows():
    probs = np.random.default_rng(0).dirichlet([1, 1, 1], (4, 2))
    batch = Categorical(probs, ("a", "b", "c"))

    assert batch.mode.tolist() == [[batch[i, j].mode for j in range(2)] for i in range(4)]
    np.testing.assert_allclose(batch.entropy, stats.entropy(probs, axis=-1), rtol=1e-13)
    np.testing.assert_array_equal(batch.prob("b"), batch.probs[..., 1])
    assert batch[1].states == batch.states


def test_samples_of_a_categorical_have_its_frequencies():
    probs = np.array([[0.1, 0.0, 0.6, 0.3, 0.0], [0.0, 1.0, 0.0, 0.0, 0.0]])

    draws = Categorical(probs, tuple("abcde")).sample(100_000, seed=5)

    frequencies = [np.bincount(draws[:, row], minlength=5) / len(draws) for row in range(2)]
    assert draws.shape == (100_000, 2)
    assert np.issubdtype(draws.dtype, np.integer)
    np.testing.assert_allclose(frequencies, probs, atol=0.006)  # four standard errors
    assert frequencies[0][1] == frequencies[0][4] == 0


def test_unknown_states_suggest_the_closest():
    marginal = Categorical([0.25, 0.75], ("false", "true"))

    message = r"unknown state 'ture'. Did you mean 'true'\? Allowed: 'false', 'true'."
    with pytest.raises(ValueError, match=message):
        marginal.prob("ture")
    with pytest.raises(ValueError, match=r"state index 2 is not in 0..1. Allowed: 'false', 'true'"):
        marginal.prob(2)


@pytest.mark.parametrize(
    ("probs", "states", "message"),
    [
        ([0.5, 0.6], ("a", "b"), "the sum of probs must be 1 within 1e-9"),
        ([[0.5, 0.5], [0.5, 0.4]], ("a", "b"), r"the sum of probs\[1\] must be 1"),
        ([0.5, 0.5], ("a", "b", "c"), r"probs must have shape \(\*batch, 3\)"),
        ([0.5, 0.5], ("a", "a"), r"states must be distinct labels"),
    ],
)
def test_a_wrong_categorical_is_refused(probs, states, message):
    with pytest.raises(ValueError, match=message):
        Categorical(probs, states)


def test_a_piecewise_density_agrees_with_quadrature():
    density = piecewise_quartic()
    mass = integrate.quad(quartic, -3, 5, epsabs=1e-13, limit=200)[0]

    def integral(function):
        return integrate.quad(
            lambda x: function(x, quartic(x) / mass), -3, 5, epsabs=1e-12, limit=200
        )[0]

    x = np.linspace(-3, 5, 30)
    np.testing.assert_allclose(density.pdf(x), quartic(x) / mass, atol=1e-10)
    assert density.mean == pytest.approx(integral(lambda x, f: x * f), abs=1e-10)
    assert density.var == pytest.approx(
        integral(lambda x, f: (x - density.mean) ** 2 * f), abs=1e-10
    )
    assert density.entropy == pytest.approx(integral(lambda x, f: -f * np.log(f)), abs=1e-9)
    for point in (-2.0, 0.0, 1.7):
        expected = integrate.quad(quartic, -3, point, epsabs=1e-13)[0] / mass
        assert density.cdf(point) == pytest.approx(expected, abs=1e-11)


def test_the_mode_of_a_piecewise_density_is_where_its_slope_vanishes():
    density = piecewise_quartic()

    def slope_of_log(x):
        return -(x**3) / 5 + 1 + 1.5 * np.cos(5 * x) / (1 + 0.3 * np.sin(5 * x))

    expected = optimize.brentq(slope_of_log, density.mode - 0.1, density.mode + 0.1, xtol=1e-14)
    assert density.mode == pytest.approx(expected, abs=1e-8)  # of an interpolated density
    assert density.pdf(np.linspace(-3, 5, 10_001)).max() <= density.pdf(density.mode)


def test_moments_of_one_panel_are_exact():
    # The density 3 t²/2 = P_0/2 + P_2 on [-1, 1], stretched by 4 and moved by 10.
    density = PiecewiseDensity([6.0, 14.0], [[0.5 / 4, 0.0, 1.0 / 4]])

    assert density.mean == pytest.approx(10.0, abs=1e-14)
    assert density.var == pytest.approx(16.0 * 3.0 / 5.0, abs=1e-13)


def test_the_mode_is_in_the_right_one_of_two_panels_of_almost_equal_height():
    # Peaks 1 at t = 0.03, off the grid of the search, and 1 - 1e-6 at t = 0, on it.
    def panel(top, peak):
        return [top - peak**2 - 1 / 3, 2 * peak, -2 / 3]  # of top - (t - peak)²

    coefficients = np.array([panel(1.0 - 1e-6, 0.0), panel(1.0, 0.03)])
    density = PiecewiseDensity([0.0, 2.0, 4.0], coefficients / (2 * coefficients[:, 0].sum()))

    assert density.mode == pytest.approx(3.03, abs=1e-12)


def test_the_mode_may_be_an_end_point():
    edges = np.linspace(0.0, 2.0, 4)
    nodes, _ = gauss_legendre_nodes(edges, 8)

    falling = PiecewiseDensity.from_gauss_legendre(edges, np.exp(-nodes).reshape(3, 8))
    rising = PiecewiseDensity.from_gauss_legendre(edges, np.exp(nodes).reshape(3, 8))

    assert falling.mode == pytest.approx(0.0, abs=1e-12)
    assert rising.mode == pytest.approx(2.0, abs=1e-12)


@given(st.integers(0, 10_000), st.floats(0.0, 1.0))
@settings(max_examples=100, deadline=None, derandomize=True)
def test_piecewise_quantiles_invert_the_cdf(seed, p):
    density = random_piecewise((3,), seed)

    x = density.quantile(p)

    actual = np.array([density[row].cdf(x[row]) for row in range(3)])
    np.testing.assert_allclose(actual, p, atol=1e-13)


def test_piecewise_quantiles_end_at_the_ends():
    density = random_piecewise((3,))

    np.testing.assert_array_equal(density.quantile(0.0), density.low)
    np.testing.assert_array_equal(density.quantile(1.0), density.high)


def test_a_piecewise_density_vanishes_outside():
    density = piecewise_quartic()

    np.testing.assert_array_equal(density.pdf([-np.inf, -3.1, 5.1, np.inf]), 0.0)
    np.testing.assert_array_equal(density.cdf([-np.inf, -3.0, 5.0, np.inf]), [0, 0, 1, 1])
    assert density.pdf(-3.0) > 0.0


def test_quantiles_skip_a_gap_without_density():
    values = np.zeros((3, 4))
    values[[0, 2]] = 1.0
    density = PiecewiseDensity.from_gauss_legendre([0.0, 1.0, 2.0, 3.0], values)

    np.testing.assert_allclose(density.quantile([0.25, 0.75]), [0.5, 2.5], atol=1e-14)
    assert density.cdf(density.quantile(0.5)) == 0.5
    assert density.entropy == pytest.approx(np.log(2.0), abs=1e-14)


@pytest.mark.parametrize("degree", [1, 2, 3])
def test_low_degrees_are_densities_too(degree):
    density = PiecewiseDensity.from_gauss_legendre([0.0, 1.0, 4.0], np.ones((2, degree)))

    assert density.mean == pytest.approx(2.0, abs=1e-14)
    assert density.var == pytest.approx(16.0 / 12.0, abs=1e-13)
    assert density.quantile(0.5) == pytest.approx(2.0, abs=1e-13)
    assert 0.0 <= density.mode <= 4.0


def test_panels_integrate_polynomials_exactly():
    edges = np.linspace([0.0, 1.0], [1.0, 3.0], 5, axis=-1)
    nodes, weights = gauss_legendre_nodes(edges, 3)

    assert edges.shape == (2, 5)
    assert nodes.shape == weights.shape == (2, 12)
    np.testing.assert_allclose((nodes**5 * weights).sum(-1), [1 / 6, (3**6 - 1) / 6], rtol=1e-13)


@pytest.mark.parametrize(
    ("edges", "coefficients", "message"),
    [
        ([0.0, 1.0, 1.0], [[1.0], [1.0]], "edges must increase along the last axis"),
        ([0.0, 1.0], [[2.0]], "the sum of panel masses must be 1 within 1e-9, but is 2.0"),
        ([0.0, 1.0, 2.0], [[2.0], [-1.0]], r"panel masses\[1\] must be at least -1e-12"),
        ([0.0, 1.0], [[0.5], [0.5]], r"coefficients must have shape \(\*batch, 1, degree\)"),
        ([1.0], [[1.0]], r"edges must have shape \(\*batch, panel \+ 1\)"),
        ([[0.0, 1.0]], [[1.0]], r"edges must have shape \(2,\)"),
    ],
)
def test_a_wrong_piecewise_density_is_refused(edges, coefficients, message):
    with pytest.raises(ValueError, match=message):
        PiecewiseDensity(edges, coefficients)


def test_values_that_are_no_density_are_refused():
    with pytest.raises(ValueError, match=r"values\[0, 1\] must be at least 0, but is -1.0"):
        PiecewiseDensity.from_gauss_legendre([0.0, 1.0], [[1.0, -1.0]])
    with pytest.raises(ValueError, match="values must not all be 0"):
        PiecewiseDensity.from_gauss_legendre([0.0, 1.0], [[0.0, 0.0]])
    with pytest.raises(ValueError, match="degree must be at least 1, but is 0"):
        gauss_legendre_nodes([0.0, 1.0], 0)
    with pytest.raises(ValueError, match="edges must increase"):
        gauss_legendre_nodes([1.0, 0.5, 0.0], 3)


def test_a_point_mass_is_all_at_its_value():
    observed = PointMass(2.5)

    assert (observed.mean, observed.mode, observed.quantile(0.1)) == (2.5, 2.5, 2.5)
    assert (observed.var, observed.std, observed.entropy) == (0.0, 0.0, -np.inf)
    assert observed.cdf([2.4, 2.5, 2.6]).tolist() == [0.0, 1.0, 1.0]
    assert observed.sample(3, seed=1).tolist() == [2.5, 2.5, 2.5]
    assert observed.interval() == (2.5, 2.5)
    with pytest.raises(ValueError, match="an observed value has no density"):
        observed.pdf(2.5)
    with pytest.raises(ValueError, match="value must be finite, but is inf"):
        PointMass(np.inf)


def test_texts_are_short():
    mixture = GaussianMixture([0.3, 0.7], [0.0, 3.0], [1.0, 2.0])

    assert repr(mixture) == "GaussianMixture(mean=2.1, std=1.89, components=2)"
    assert repr(random_mixtures((2,), 3)) == "GaussianMixture(batch_shape=(2,), components=3)"
    marginal = Categorical([1 / 3, 2 / 3], ("false", "true"))
    assert repr(marginal) == "Categorical(false: 0.333, true: 0.667)"
    assert repr(Categorical([[0.5, 0.5]], ("a", "b"))) == "Categorical(batch_shape=(1,), states=2)"
    assert repr(Categorical([0.1] * 10, tuple("abcdefghij"))).endswith("h: 0.100, … 2 more)")
    assert repr(piecewise_quartic()) == (
        "PiecewiseDensity(mean=1.28, std=0.965, low=-3, high=5, panels=24)"
    )
    assert repr(random_piecewise((2,))) == "PiecewiseDensity(batch_shape=(2,), panels=4)"
    assert repr(PointMass(2.5)) == "PointMass(2.5)"
    assert repr(PointMass([1.0, 2.0])) == "PointMass(batch_shape=(2,))"


def test_a_number_that_is_a_label_means_the_label():
    dice = Categorical([0.2, 0.3, 0.5], ("1", "2", "3"))

    assert dice.prob(2) == 0.3
    assert dice.prob("2") == 0.3
