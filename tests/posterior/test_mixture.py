"""Mixtures of products against enumeration and SciPy's integrals, spread out and by classes."""

import dataclasses

import numpy as np
import pytest
from scipy import integrate, optimize, stats

from hylift.components import Layout
from hylift.errors import ImpossibleEvidenceError, ModelError, UnsupportedError
from hylift.posterior import BetaMixture, Categorical, GaussianMixture, Mixture, with_observed
from posterior import mixtures

WET, X, COLOR, SHARE, Y, DRY = range(6)


def random_points(q: Mixture, size: int, seed: int = 0) -> np.ndarray:
    return q.sample(size, np.random.default_rng(seed))


def test_densities_are_weighted_sums_of_products() -> None:
    q = mixtures.mixture()
    points = random_points(q, 20)
    ids = np.array([Y, WET, SHARE])

    actual = q.log_density(ids, points[:, ids])

    expected = [mixtures.density(q, ids.tolist(), point[ids].tolist()) for point in points]
    np.testing.assert_allclose(np.exp(actual), expected, rtol=1e-12)


def test_densities_by_component_are_products() -> None:
    q = mixtures.mixture()
    point = random_points(q, 1)

    logs = q.log_density_by_part(q.hidden, point)[:, 0]

    for k in range(3):
        factors = [mixtures.factor(q, i, k, point[0, i]) for i in range(6)]
        assert logs[0, k] == pytest.approx(np.log(factors).sum(), rel=1e-12)


def test_a_beta_has_no_density_outside_its_interval() -> None:
    q = mixtures.mixture()

    logs = q.log_density_by_part(np.array([SHARE]), np.array([[-1.1], [3.1], [0.0]]))[:, 0]

    assert np.isneginf(logs).all(axis=1).tolist() == [True, True, False]


def test_a_state_that_is_none_has_probability_0() -> None:
    q = mixtures.mixture()

    assert (
        q.log_density(np.array([COLOR]), np.array([[3.0], [-1.0], [0.5]])).tolist() == [-np.inf] * 3
    )


def test_marginals_are_integrals_of_the_joint_density() -> None:
    q = mixtures.mixture()
    marginals = q.marginals(mixtures.variables())

    for value in (-1.0, 0.5, 2.0):
        mass = sum(
            integrate.quad(
                lambda s, value=value, wet=wet: mixtures.density(
                    q, [X, SHARE, WET], [value, s, wet]
                ),
                -1,
                3,
            )[0]
            for wet in (0, 1)
        )
        assert marginals[X].pdf(value) == pytest.approx(mass, rel=1e-8)
    np.testing.assert_allclose(
        marginals[COLOR].probs, [mixtures.density(q, [COLOR], [s]) for s in range(3)], rtol=1e-12
    )


def test_marginals_have_the_family_of_their_variable() -> None:
    marginals = mixtures.mixture().marginals(mixtures.variables())

    families = [Categorical, GaussianMixture, Categorical, BetaMixture, GaussianMixture]
    assert [type(marginals[i]) for i in range(5)] == families
    assert marginals[COLOR].states == ("red", "green", "blue")
    assert marginals[WET].states == ("false", "true")
    assert (marginals[SHARE].lower, marginals[SHARE].upper) == (-1.0, 3.0)


def test_a_lifted_mixture_answers_like_the_same_spread_out() -> None:
    lifted, spread, variables = mixtures.lifted()
    points = random_points(lifted, 7)
    some = lifted.hidden[[3, 17, 30]]

    for one, other in [
        (lifted.log_density(lifted.hidden, points), spread.log_density(spread.hidden, points)),
        (lifted.component_modes(), spread.component_modes()),
        (lifted.marginal_modes(), spread.marginal_modes()),
        (lifted.mode()[0], spread.mode()[0]),
        (lifted.mode()[1], spread.mode()[1]),
        (lifted.given(some, points[0, [3, 17, 30]]).weights,
         spread.given(some, points[0, [3, 17, 30]]).weights),
    ]:  # fmt: skip
        np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-10)
    few, many = lifted.marginals(variables), spread.marginals(variables)
    assert sum(batch.batch_shape[0] for batch in few.batches) == 6
    for i in range(40):
        assert few[i].entropy == pytest.approx(many[i].entropy, abs=1e-10)


def test_marginals_stand_beside_those_of_observed_variables() -> None:
    model = mixtures.graph().observe({"y": 1.5, "wet": True})
    q = mixtures.mixture().of(np.array([X, COLOR, SHARE, DRY]))

    marginals = with_observed(model, q.hidden, q.marginals(model.variables))

    assert marginals[Y].mean == 1.5
    assert marginals[WET].probs.tolist() == [0.0, 1.0]
    whole = mixtures.mixture().marginals(model.variables)
    assert marginals[SHARE].mean == whole[SHARE].mean


# Conditioning


def test_a_conditional_density_is_joint_over_marginal() -> None:
    q = mixtures.mixture()
    point = random_points(q, 1)[0]
    given, rest = np.array([X, COLOR]), np.array([WET, SHARE, Y, DRY])

    conditional = q.given(given, point[given])

    assert conditional.hidden.tolist() == rest.tolist()
    joint = mixtures.density(q, list(range(6)), point.tolist())
    marginal = mixtures.density(q, given.tolist(), point[given].tolist())
    actual = np.exp(conditional.log_density(rest, point[None, rest]))[0]
    assert actual == pytest.approx(joint / marginal, rel=1e-12)


def test_conditioning_twice_is_conditioning_once() -> None:
    q = mixtures.mixture()
    point = random_points(q, 1)[0]

    once = q.given(np.array([X, COLOR]), point[[X, COLOR]])
    twice = q.given(np.array([COLOR]), point[[COLOR]]).given(np.array([X]), point[[X]])

    np.testing.assert_allclose(twice.weights, once.weights, rtol=1e-12)
    assert twice.hidden.tolist() == once.hidden.tolist()


def test_far_away_values_choose_the_widest_component() -> None:
    q = mixtures.mixture()
    widest = int(np.argmax(q.entries[q.layout.first[X] + 1]))

    conditional = q.given(np.array([X]), np.array([1e8]))

    assert conditional.weights[widest] == 1.0


def test_an_impossible_value_is_an_error() -> None:
    q = mixtures.mixture()
    entries = q.entries.copy()
    entries[q.layout.first[COLOR] : q.layout.first[COLOR + 1]] = [[0.0] * 3, [0.5] * 3, [0.5] * 3]
    q = dataclasses.replace(q, entries=entries)

    with pytest.raises(ImpossibleEvidenceError, match="gives probability 0 to these"):
        q.given(np.array([COLOR]), np.array([0.0]))
    assert q.given(np.array([COLOR]), np.array([1.0])).num_components == 3


def test_a_value_at_a_pole_chooses_the_components_with_a_pole() -> None:
    q = mixtures.mixture()
    entries = q.entries.copy()
    entries[q.layout.first[SHARE], 1] = 0.5
    q = dataclasses.replace(q, entries=entries)

    assert q.given(np.array([SHARE]), np.array([-1.0])).weights.tolist() == [0.0, 1.0, 0.0]


def test_all_variables_may_be_given() -> None:
    q = mixtures.mixture()
    point = random_points(q, 1)[0]

    nothing_left = q.given(q.hidden, point)

    assert len(nothing_left.hidden) == 0
    assert nothing_left.mode()[0].shape == (0,)
    assert nothing_left.sample(3, np.random.default_rng(0)).shape == (3, 0)
    assert len(nothing_left.marginals(mixtures.variables())) == 0


# Samples


def test_samples_have_the_moments_of_the_mixture() -> None:
    q = mixtures.mixture()
    size = 40_000
    marginals = q.marginals(mixtures.variables())

    draws = random_points(q, size, seed=3)

    for variable in (X, SHARE, Y):
        error = 4.0 * marginals[variable].std / np.sqrt(size)
        assert draws[:, variable].mean() == pytest.approx(marginals[variable].mean, abs=error)
    product = q.expect(lambda x, y: x * y, np.array([X, Y]))
    spread = (draws[:, X] * draws[:, Y]).std() / np.sqrt(size)
    assert (draws[:, X] * draws[:, Y]).mean() == pytest.approx(product.value, abs=4.0 * spread)
    frequencies = np.bincount(draws[:, COLOR].astype(int), minlength=3) / size
    np.testing.assert_allclose(frequencies, marginals[COLOR].probs, atol=0.01)


def test_draws_are_in_no_order() -> None:
    q = mixtures.mixture()
    draws = random_points(q, 2000)[:, X]

    lag = np.corrcoef(draws[:-1], draws[1:])[0, 1]

    assert abs(lag) < 4.0 / np.sqrt(2000)


def test_some_variables_are_drawn_alone() -> None:
    q = mixtures.mixture()

    draws = q.sample(5000, np.random.default_rng(0), np.array([Y, WET]))

    assert draws.shape == (5000, 2)
    assert set(draws[:, 1]) == {0.0, 1.0}
    marginal = q.marginals(mixtures.variables())[Y]
    assert stats.kstest(draws[:, 0], marginal.cdf).pvalue > 1e-3


# Modes


@pytest.mark.parametrize("seed", range(10))
def test_the_mode_is_a_local_maximum_above_all_component_modes(seed: int) -> None:
    q = mixtures.mixture(seed=seed)

    values, log_q = q.mode()

    assert log_q == pytest.approx(q.log_density(q.hidden, values[None])[0], rel=1e-10, abs=1e-10)
    assert log_q >= q.log_density(q.hidden, q.component_modes()).max() - 1e-12
    assert log_q >= q.log_density(q.hidden, random_points(q, 2000)).max()
    for step in 1e-3 * np.random.default_rng(0).normal(size=(50, 6)):
        step[[WET, COLOR, DRY]] = 0.0
        assert q.log_density(q.hidden, (values + step)[None])[0] <= log_q + 1e-9


@pytest.mark.parametrize("seed", range(5))
def test_the_mode_of_reals_is_what_an_optimiser_finds(seed: int) -> None:
    q = mixtures.mixture(seed=seed).of(np.array([X, SHARE, Y]))

    values, log_q = q.mode()

    best = min(
        (
            optimize.minimize(
                lambda x: (
                    -q.log_density(q.hidden, np.clip(x, [-50, -1, -50], [50, 3, 50])[None])[0]
                ),
                start,
                method="Nelder-Mead",
                options={"xatol": 1e-9, "fatol": 1e-12, "maxiter": 4000},
            )
            for start in q.component_modes()
        ),
        key=lambda found: found.fun,
    )
    assert log_q == pytest.approx(-best.fun, abs=1e-8)
    np.testing.assert_allclose(values, best.x, atol=1e-4)


def test_the_mode_of_states_is_the_most_probable_of_all() -> None:
    for seed in range(10):
        q = mixtures.mixture(seed=seed).of(np.array([WET, COLOR, DRY]))
        states = np.array(mixtures.joint_states(["wet", "color", "dry"]), dtype=float)

        starts = states[::3]
        values, log_q = q.mode(starts)

        assert log_q == pytest.approx(q.log_density(q.hidden, states).max(), abs=1e-12)
        assert q.log_density(q.hidden, values[None])[0] == pytest.approx(log_q, abs=1e-12)


def test_a_component_without_weight_is_no_mode() -> None:
    q = mixtures.mixture(2)
    entries = q.entries.copy()
    for variable in (WET, COLOR, DRY):
        own = slice(q.layout.first[variable], q.layout.first[variable + 1])
        entries[own] = 0.0
        entries[own.start, 0] = entries[own.stop - 1, 1] = 1.0
    q = dataclasses.replace(q, entries=entries, weights=np.array([1.0, 0.0]))

    values, log_q = q.mode()

    np.testing.assert_allclose(values, q.component_modes()[0])
    assert np.isfinite(log_q)


def test_the_mode_of_a_million_variables_is_that_of_one_component() -> None:
    small = mixtures.mixture()
    classes = np.random.default_rng(0).integers(0, 6, 1_000_000).astype(np.int32)
    q = Mixture(small.weights, small.layout, small.entries, classes, np.arange(1_000_000))

    values, log_q = q.mode()

    modes = small.component_modes()
    per_class = np.bincount(classes)
    logs = [
        np.log(small.weights[k])
        + per_class @ np.log([mixtures.factor(small, i, k, modes[k, i]) for i in range(6)])
        for k in range(3)
    ]
    assert log_q == pytest.approx(max(logs), rel=1e-12)
    np.testing.assert_array_equal(values, modes[int(np.argmax(logs))][classes])


def test_a_pole_at_an_edge_leaves_the_mode_finite() -> None:
    q = mixtures.mixture()
    entries = q.entries.copy()
    entries[q.layout.first[SHARE]] = [0.5, 3.0, 0.5]
    q = dataclasses.replace(q, entries=entries)

    values, log_q = q.mode()

    assert np.isfinite(log_q)
    assert np.isfinite(values).all()
    assert q.component_modes()[[0, 2], SHARE].tolist() == [-1.0, -1.0]
    assert q.marginal_modes()[SHARE] == -1.0


def test_a_density_of_0_stays_0_beside_a_pole() -> None:
    q = mixtures.mixture()
    entries = q.entries.copy()
    entries[q.layout.first[SHARE]] = 0.5
    entries[q.layout.first[WET] : q.layout.first[WET + 1]] = [[0.0] * 3, [1.0] * 3]
    q = dataclasses.replace(q, entries=entries)

    ids, values = np.array([SHARE, WET]), np.array([[-1.0, 0.0], [-1.0, 1.0]])

    assert q.log_density(ids, values).tolist() == [-np.inf, np.inf]


def test_marginal_modes_are_those_of_the_marginals() -> None:
    q = mixtures.mixture()
    marginals = q.marginals(mixtures.variables())

    modes = q.marginal_modes()

    for variable in (X, SHARE, Y):
        assert modes[variable] == pytest.approx(marginals[variable].mode, rel=1e-12)
    for variable in (WET, COLOR, DRY):
        assert modes[variable] == marginals[variable].mode_state


# Expectations


def test_expectations_of_polynomials_are_exact() -> None:
    q = mixtures.mixture()
    marginals = q.marginals(mixtures.variables())

    second = q.expect(lambda x: x**2, np.array([X]))
    beta = q.expect(lambda s: s**9, np.array([SHARE]))

    assert second.value == pytest.approx(marginals[X].var + marginals[X].mean ** 2, rel=1e-12)
    assert second.error < 1e-10
    expected = integrate.quad(lambda s: s**9 * marginals[SHARE].pdf(s), -1, 3, epsabs=1e-10)[0]
    assert float(beta) == pytest.approx(expected, rel=1e-9)


def test_expectations_over_states_are_sums() -> None:
    q = mixtures.mixture()
    table = np.random.default_rng(0).normal(size=(3, 2))

    found = q.expect(lambda color, wet: table[color, wet], np.array([COLOR, WET]))

    expected = sum(
        table[color, wet] * mixtures.density(q, [COLOR, WET], [color, wet])
        for color in range(3)
        for wet in range(2)
    )
    assert found.value == pytest.approx(expected, rel=1e-12)
    assert (found.error, found.method) == (0.0, "sum")


def test_the_error_of_a_rough_function_is_honest() -> None:
    q = mixtures.mixture()
    marginal = q.marginals(mixtures.variables())[X]

    found = q.expect(lambda x: (x > 0.3).astype(float), np.array([X]))

    assert found.method == "sampling"
    assert found.value == pytest.approx(1 - marginal.cdf(0.3), abs=4 * found.error)
    assert 1e-4 < found.error < 0.002


def test_many_variables_are_sampled() -> None:
    lifted, _, _ = mixtures.lifted(200)
    reals = lifted.layout.family[lifted.variable_to_class] != 2
    ids = lifted.hidden[reals]

    found = lifted.expect(lambda *columns: np.mean(columns, axis=0), ids, seed=5)

    means, _ = lifted.moments(ids)
    assert found.method == "sampling"
    assert 0 < found.error < 0.1
    assert found.value == pytest.approx((means @ lifted.weights).mean(), abs=4 * found.error)
    again = lifted.expect(lambda *columns: np.mean(columns, axis=0), ids, seed=5)
    assert again == found


def test_a_function_that_is_not_vectorised_is_refused() -> None:
    q = mixtures.mixture()

    with pytest.raises(UnsupportedError, match=r"must return one number per point, .* \(16,\)"):
        q.expect(lambda x: np.ones((len(x), 2)), np.array([X]))


# What is refused


def layout_with(**fields: object) -> Layout:
    return dataclasses.replace(mixtures.mixture().layout, **fields)


def test_a_mixture_that_does_not_hold_together_is_refused() -> None:
    q = mixtures.mixture()
    negative, unnormalised = q.entries.copy(), q.entries.copy()
    negative[q.layout.first[X] + 1] = -1.0
    unnormalised[q.layout.first[WET]] = 0.9
    wrong = {
        "weights of shape": {"weights": np.ones((1, 1))},
        "must have shape": {"entries": q.entries[:-1]},
        "a positive variance": {"entries": negative},
        "must sum to 1": {"entries": unnormalised},
        "increasing ids": {"hidden": np.zeros(6, dtype=np.int64)},
        "one class per hidden variable": {"hidden": np.arange(5)},
        "in a class that does not exist": {"variable_to_class": np.full(6, 6, dtype=np.int32)},
        "an unknown family": {"layout": layout_with(family=np.full(6, 3, np.int8))},
        "different lengths": {"layout": layout_with(lower=np.zeros(2))},
        "two parameters each": {"layout": layout_with(family=np.zeros(6, np.int8))},
        "lower < upper": {"layout": layout_with(upper=np.full(6, -1.0))},
    }

    for message, fields in wrong.items():
        with pytest.raises(ModelError, match=message):
            dataclasses.replace(q, **fields)
    with pytest.raises(ValueError, match="the sum of weights must be 1"):
        dataclasses.replace(q, weights=np.array([0.5, 0.1, 0.1]))


def test_a_variable_that_is_not_hidden_is_refused() -> None:
    q = mixtures.mixture().of(np.array([X, Y]))

    with pytest.raises(ModelError, match="is not hidden in the mixture"):
        q.log_density(np.array([COLOR]), np.zeros((1, 1)))
