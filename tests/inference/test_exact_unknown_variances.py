"""Exact inference with reals that make the rest Gaussian once they are known."""

import numpy as np
import pytest
from scipy import integrate, stats

import hylift as hl
from hierarchies import (
    SCHOOL_NAMES,
    Floats,
    Hierarchy,
    eight_schools,
    integrated,
    moments,
    schools_given,
)
from hylift.errors import UnsupportedError
from hylift.graph import FactorGraph, interval, real
from hylift.inference import Exact
from hylift.inference.exact.nodes.conditional import known_reals
from hylift.potentials import Function
from hylift.rewrite.kinds import Kinds


def assert_moments(posterior: hl.Posterior, names: list[str], mean: Floats, std: Floats) -> None:
    found = [posterior.marginal(name) for name in names]
    np.testing.assert_allclose([m.mean for m in found], mean, rtol=0, atol=1e-6)
    np.testing.assert_allclose([np.sqrt(m.var) for m in found], std, rtol=0, atol=1e-6)


def test_eight_schools_agree_with_an_integral_over_their_spread() -> None:
    posterior = hl.infer(eight_schools("[0, 50]"), Exact())

    log_z, mean, std = moments(schools_given, 0.0, 50.0)
    assert_moments(posterior, SCHOOL_NAMES, mean, std)
    assert posterior.log_partition.value == pytest.approx(log_z, abs=1e-8)
    assert posterior.log_partition.kind == "estimate"
    assert posterior.log_partition.error <= 1e-8


def test_a_half_normal_prior_of_a_spread_needs_no_upper_bound() -> None:
    posterior = hl.infer(eight_schools("[0, inf]", "normal(tau | 0, 25)"), Exact())

    def given(tau: float) -> tuple[float, Floats, Floats]:
        log_likelihood, mean, var = schools_given(tau)
        return log_likelihood + stats.norm(0, 5).logpdf(tau), mean, var

    log_z, mean, std = moments(given, 0.0, 60.0)
    assert_moments(posterior, SCHOOL_NAMES, mean, std)
    assert posterior.log_partition.value == pytest.approx(log_z, abs=1e-7)


def test_the_density_of_a_spread_is_that_of_the_integral() -> None:
    tau = hl.infer(eight_schools("[0, 50]"), Exact()).marginal("tau")

    log_z, _, _ = moments(schools_given, 0.0, 50.0)
    at = np.array([0.01, 0.5, 3.0, 8.0, 20.0, 45.0])
    expected = [np.exp(schools_given(x)[0] - log_z) for x in at]
    assert tau.pdf(at) == pytest.approx(expected, abs=1e-7)


def test_a_narrow_variance_on_a_wide_interval_is_found() -> None:
    rng = np.random.default_rng(1)
    y = 3.0 + 0.02 * rng.normal(size=2000)
    model = hl.parse("""
        y(row): real
        m: real
        noise: real[0.000001, 1000]
        normal(y(i) | m, noise)
        normal(m | 0, 100)
    """)
    graph = hl.ground(model, {"y": [(f"r{i}", float(v)) for i, v in enumerate(y)]})

    posterior = hl.infer(graph, Exact())

    # Given the variance v, m is Gaussian with precision n / v + 1 / 100.
    n, total, squares = len(y), y.sum(), (y**2).sum()

    def given(v: float) -> tuple[float, Floats, Floats]:
        precision, linear = n / v + 0.01, total / v
        log_density = -0.5 * n * np.log(2 * np.pi * v) - 0.5 * squares / v
        log_density += 0.5 * linear**2 / precision - 0.5 * np.log(100 * precision)
        return log_density, np.array([linear / precision]), np.array([1 / precision])

    var = y.var()
    _, mean, std = moments(given, 0.7 * var, 1.4 * var)
    names = ["noise", "m"]
    found = [posterior.marginal(name) for name in names]
    assert [m.mean for m in found] == pytest.approx(mean, rel=1e-6)
    assert [np.sqrt(m.var) for m in found] == pytest.approx(std, rel=1e-6)


def test_one_coefficient_is_on_nodes_rather_than_all_that_it_multiplies() -> None:
    y = np.array([1.5, -2.5, 0.5, 3.0, -1.0, 2.0])
    model = hl.parse("""
        y(row): real
        x(row): real
        b: real
        normal(y(i) | b * x(i), 1)
        normal(x(i) | 0.5, 1)
        normal(b | 0, 4)
    """)
    graph = hl.ground(model, {"y": [(f"r{i}", float(v)) for i, v in enumerate(y)]})

    posterior = hl.infer(graph, Exact())

    def given(b: float) -> tuple[float, Floats, Floats]:
        log_density = stats.norm(0, 2).logpdf(b)
        log_density += stats.norm(0.5 * b, np.sqrt(1 + b**2)).logpdf(y).sum()
        return float(log_density), (0.5 + b * y) / (1 + b**2), np.full(len(y), 1 / (1 + b**2))

    log_z, mean, std = moments(given, -30.0, 30.0)
    names = ["b", *(f"x(r{i})" for i in range(len(y)))]
    chosen = known_reals(Kinds.of(graph.condition()))
    assert np.count_nonzero(chosen) == 1
    assert_moments(posterior, names, mean, std)
    assert posterior.log_partition.value == pytest.approx(log_z, abs=1e-7)


@pytest.mark.parametrize("domain", ["", "[-5, 9]", "[-3, 100]"])
def test_both_signs_of_a_coefficient_are_found_however_narrow_they_are(domain: str) -> None:
    y = 2.0 * np.random.default_rng(0).normal(size=3000) + 0.02
    model = hl.parse(f"""
        y(row): real
        x(row): real
        b: real{domain}
        normal(y(i) | b * x(i), 1)
        normal(x(i) | 0.01, 1)
        normal(b | 0, 25)
    """)
    graph = hl.ground(model, {"y": [(f"r{i}", float(v)) for i, v in enumerate(y)]})

    posterior = hl.infer(graph, Exact())

    # Given b, each y is N(0.01 b, 1 + b²); a fine sum over both peaks.
    b = np.linspace(-3.0, 3.0, 600_001)
    residual = (y**2).sum() - 0.02 * b * y.sum() + len(y) * 1e-4 * b**2
    log_density = stats.norm(0, 5).logpdf(b) - 0.5 * len(y) * np.log(2 * np.pi * (1 + b**2))
    log_density -= 0.5 * residual / (1 + b**2)
    share = np.exp(log_density - log_density.max())
    log_z = np.log(share.sum() * (b[1] - b[0])) + log_density.max()
    mean = share @ b / share.sum()
    std = np.sqrt(share @ (b - mean) ** 2 / share.sum())
    assert posterior.log_partition.value == pytest.approx(log_z, abs=1e-8)
    assert_moments(posterior, ["b"], np.array([mean]), np.array([std]))


def test_a_variance_that_depends_on_a_switch_is_integrated_in_both_states() -> None:
    model = hl.parse("""
        y(row): real
        Wild: boolean
        m: real
        noise: real[0.1, 20]
        normal(y(i) | m, noise * (1 + 8*Wild))
        normal(m | 0, 9)
        0.3  Wild
    """)
    y = np.array([0.4, -1.0, 5.0, 2.0, -4.0])
    graph = hl.ground(model, {"y": [(f"r{i}", float(v)) for i, v in enumerate(y)]})

    posterior = hl.infer(graph, Exact())

    def density(state: int, v: float) -> float:
        cov = np.eye(5) * v * (1 + 8 * state) + 9.0
        return float(np.exp(stats.multivariate_normal(np.zeros(5), cov).logpdf(y) + 0.3 * state))

    weight = [integrate.quad(lambda v, s=s: density(s, v), 0.1, 20, epsabs=0)[0] for s in (0, 1)]
    probs = np.array(weight) / sum(weight)
    assert posterior.marginal("Wild").probs == pytest.approx(probs, abs=1e-8)
    assert posterior.log_partition.value == pytest.approx(np.log(sum(weight)), abs=1e-8)


def test_a_variance_without_an_end_or_a_prior_is_refused() -> None:
    model = hl.parse("""
        y: real
        m: real
        v: real[0, inf]
        normal(y | m, v)
        normal(m | 0, 1)
    """)

    with pytest.raises(UnsupportedError, match=r"'v': its density does not fall off where it has"):
        hl.infer(hl.ground(model, {"y": 2.0}), Exact())


def test_functions_without_a_closed_form_have_all_their_reals_on_nodes() -> None:
    graph = FactorGraph.build(
        {"x": interval(0, 1), "y": interval(0, 1), "z": real},
        [(Function(lambda x, y: -np.abs(x - y), num_reals=2), ["x", "y"])],
    )

    assert known_reals(Kinds.of(graph)).tolist() == [True, True, False]


@pytest.mark.parametrize(
    ("num_rows", "num_groups", "num_regions"), [(400, 60, 12), (5000, 500, 20)]
)
def test_a_hierarchy_with_three_unknown_variances_agrees_with_an_integral_over_them(
    num_rows: int, num_groups: int, num_regions: int
) -> None:
    data = Hierarchy.drawn(num_rows, num_groups, num_regions)

    posterior = hl.infer(data.graph(), Exact())

    log_z, mean, std = integrated(data)
    assert_moments(posterior, data.names, mean, std)
    assert posterior.log_partition.value == pytest.approx(log_z, abs=1e-7)
    assert posterior.log_partition.error <= 1e-7


def test_expected_log_values_of_a_rule_with_an_unknown_variance_are_gradients_of_log_z() -> None:
    y = [1.0, 4.0, 2.5]

    def posterior(weight: float) -> hl.Posterior:
        model = hl.parse(f"""
            y(row): real
            m: real
            v: real[0.5, 9]
            {weight}  normal(y(i) | m, v)
            normal(m | 0, 9)
        """)
        graph = hl.ground(model, {"y": [(f"r{i}", value) for i, value in enumerate(y)]})
        return hl.infer(graph, Exact())

    found = posterior(1.0).expected_counts()

    up, down = (posterior(1.0 + step).log_partition.value for step in (1e-4, -1e-4))
    assert found["expected"][0].as_py() == pytest.approx((up - down) / 2e-4, abs=1e-5)


def test_outliers_about_levels_and_an_unknown_variance_agree_with_sums_over_a_grid() -> None:
    rng = np.random.default_rng(2)
    odd = rng.random((2, 24)) < 0.15
    y = np.array([[4.0], [7.0]]) + np.where(odd, 8.0, 1.5) * rng.normal(size=odd.shape)
    model = hl.parse("""
        Odd(shop, week)
        level(shop): real
        sales(shop, week): real
        noise: real[0.1, 50]
        -2  Odd(s, t)
        normal(level(s) | 5, 9)
        normal(sales(s, t) | level(s), noise + 64*Odd(s, t))
    """)
    sales = [(f"s{s}", t, float(value)) for (s, t), value in np.ndenumerate(y)]

    posterior = hl.infer(hl.ground(model, {"sales": sales}), Exact())

    # Given a level and the noise, weeks are independent mixtures of two Gaussians.
    noise, level = np.linspace(0.1, 50, 501), np.linspace(-10, 20, 301)
    cell = np.full(len(noise), noise[1] - noise[0])
    cell[[0, -1]] *= 0.5
    of_shop = np.zeros((2, len(noise), len(level)))
    for shop, week in np.ndindex(y.shape):
        away = y[shop, week] - level
        states = [
            stats.norm.logpdf(away, 0, np.sqrt(noise[:, None] + 64 * state)) - 2 * state
            for state in (0, 1)
        ]
        of_shop[shop] += np.logaddexp(*states)
        if (shop, week) == (0, 0):
            share = np.exp(states[1] - np.logaddexp(*states))
    density = np.exp(of_shop + stats.norm(5, 3).logpdf(level)) * (level[1] - level[0])
    joint = density.sum(axis=2).prod(axis=0) * cell
    given = density / density.sum(axis=2, keepdims=True)
    mean = joint @ np.column_stack([noise, *(given @ level).reshape(2, -1)]) / joint.sum()
    prob = joint @ (given[0] * share).sum(axis=1) / joint.sum()
    found = [posterior.marginal(name).mean for name in ("noise", "level(s0)", "level(s1)")]
    np.testing.assert_allclose(found, mean, rtol=0, atol=1e-5)  # the grid has steps of 0.1
    assert posterior.marginal("Odd(s0,0)").prob("true") == pytest.approx(prob, abs=1e-6)
    assert posterior.log_partition.value == pytest.approx(np.log(joint.sum()), abs=1e-5)
    assert posterior.log_partition.error < 1e-8
