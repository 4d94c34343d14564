"""Expectation propagation with functions and bounds, beside integrals over grids."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm

import hylift as hl
from answers import log_z
from hylift.errors import UnsupportedError
from hylift.graph import FactorGraph, boolean, interval, real
from hylift.inference import EP, Exact, infer
from hylift.inference.expectation.coordinates import of_functions
from hylift.inference.expectation.layout import Sites
from hylift.inference.expectation.state import Propagation
from hylift.posterior import Posterior
from hylift.potentials import ConditionalQuadratic, Function, Table

LINE = np.linspace(-8.0, 8.0, 401)


def log_sigmoid(x: np.ndarray) -> np.ndarray:
    return -np.logaddexp(0.0, -x)


def on_grid(log_density: np.ndarray) -> tuple[float, list[tuple[float, float]]]:
    """log Z, and mean and standard deviation of each axis, all of which are `LINE`."""
    top, step = log_density.max(), LINE[1] - LINE[0]
    mass = np.exp(log_density - top)
    total, moments = mass.sum(), []
    for axis in range(mass.ndim):
        own = mass.sum(axis=tuple(a for a in range(mass.ndim) if a != axis)) / total
        mean = float(own @ LINE)
        moments.append((mean, float(np.sqrt(own @ (LINE - mean) ** 2))))
    return float(top + np.log(total * step**mass.ndim)), moments


def check_near(found: Posterior, names: str, log_density: np.ndarray, rel: float) -> None:
    expected, moments = on_grid(log_density)
    assert found.solution.result == "converged"
    assert log_z(found) == pytest.approx(expected, abs=rel)
    for name, (mean, std) in zip(names, moments, strict=True):
        assert found.marginal(name).mean == pytest.approx(mean, abs=rel * std)
        assert found.marginal(name).std == pytest.approx(std, rel=rel)


def test_one_function_of_one_real_is_integrated() -> None:
    """One site is exact: log Z, mean and standard deviation."""
    bend = Function(lambda x, slope: log_sigmoid(slope * (x - 1)), 0, 1, np.array([[3.0]]))
    graph = FactorGraph.build(
        {"x": real}, [(bend, ["x"]), (ConditionalQuadratic.square(-0.5), ["x"])]
    )

    found = infer(graph, EP())

    check_near(found, "x", log_sigmoid(3 * (LINE - 1)) - 0.5 * LINE**2, 1e-6)


def test_soft_inequalities_of_sums_of_reals() -> None:
    model = hl.parse("""
        x: real
        y: real
        normal(x | 0, 1)
        normal(y | 0.5, 2)
        2 x > y
        1 x + y > 1
    """)
    x, y = LINE[:, None], LINE

    found = infer(hl.ground(model), EP())

    base = -0.5 * x**2 - 0.25 * (y - 0.5) ** 2 - np.log(2 * np.pi) - 0.5 * np.log(2)
    check_near(found, "xy", base + 2 * log_sigmoid(x - y) + log_sigmoid(x + y - 1), 5e-3)


def test_products_of_hidden_reals() -> None:
    """A slope times a difference of two reals: two coordinates, integrated to about 1e-4."""
    item = Function(lambda a, t, b: log_sigmoid(a * (t - b)), 0, 3)
    graph = FactorGraph.build(
        {"a": real, "t": real, "b": real},
        [
            (item, ["a", "t", "b"]),
            (ConditionalQuadratic.square(-0.5), [["a"], ["t"], ["b"]]),
            (ConditionalQuadratic.shared([[0.0]], [1.0]), ["a"]),
        ],
    )
    (group,) = [group for group in graph.groups if group.potential.quadratic() is None]
    a, t, b = LINE[::4, None, None], LINE[::4, None], LINE[::4]
    values = log_sigmoid(a * (t - b)) - 0.5 * (a**2 + t**2 + b**2) + a

    found = infer(graph, EP())
    (piece,) = of_functions(group, graph.variables, np.zeros(3), np.ones(3))

    weight = np.exp(values - values.max())
    weight /= weight.sum()
    assert piece.dim == 2
    assert found.marginal("t").mean == pytest.approx((weight * t).sum(), abs=2e-4)
    assert found.marginal("a").mean == pytest.approx((weight * a).sum(), abs=2e-4)
    variance = (weight * a**2).sum() - (weight * a).sum() ** 2
    assert found.marginal("a").var == pytest.approx(variance, abs=2e-4)


def test_heavy_tails_and_states_in_functions() -> None:
    """A Student prior, which nothing else confines, and a function that a Boolean changes."""
    student = Function(lambda x: -2.5 * np.log1p((x - 1) ** 2 / 4), 0, 1)
    tilted = Function(lambda on, x: np.where(on == 1, log_sigmoid(2 * x), log_sigmoid(-x)), 1, 1)
    graph = FactorGraph.build(
        {"on": boolean, "x": real},
        [
            (student, ["x"]),
            (tilted, ["on", "x"]),
            (ConditionalQuadratic.squared_distance(0.5, [1.0], 0.5), ["x"]),
        ],
    )
    base = -2.5 * np.log1p((LINE - 1) ** 2 / 4) - 0.5 * (LINE - 0.5) ** 2
    up, down = base + log_sigmoid(2 * LINE), base + log_sigmoid(-LINE)

    found = infer(graph, EP())

    check_near(found, "x", np.logaddexp(up, down), 5e-3)
    share = np.exp(up).sum() / (np.exp(up).sum() + np.exp(down).sum())
    assert found.marginal("on").probs[1] == pytest.approx(share, abs=2e-3)


def test_a_student_prior_alone() -> None:
    """Its tails reach farther than the nodes."""
    student = Function(lambda x: -10 * np.log1p((x - 1) ** 2 / 4), 0, 1)
    graph = FactorGraph.build({"x": real}, [(student, ["x"])])

    found = infer(graph, EP())

    check_near(found, "x", -10 * np.log1p((LINE - 1) ** 2 / 4), 1e-4)


@pytest.mark.parametrize("domain", [interval(0.5, 2.0), hl.Domain(lower=0.5), interval(3.0, 9.0)])
def test_a_truncated_gaussian_is_exact(domain: hl.Domain) -> None:
    graph = FactorGraph.build({"x": domain}, [(ConditionalQuadratic.square(-0.5), ["x"])])

    found, exact = infer(graph, EP()), infer(graph, Exact())

    assert log_z(found) == pytest.approx(log_z(exact), abs=1e-8)
    assert found.marginal("x").mean == pytest.approx(exact.marginal("x").mean, abs=1e-7)
    assert found.marginal("x").std == pytest.approx(exact.marginal("x").std, abs=1e-7)
    assert found.marginal("x").quantile(0.0) >= domain.lower - 1e-12


def test_a_mixture_between_bounds_keeps_its_shape() -> None:
    graph = FactorGraph.build(
        {"s": boolean, "x": interval(0, 4)},
        [
            (ConditionalQuadratic.gaussian([[0.0], [3.0]], [[[0.5]], [[0.2]]]), ["s", "x"]),
            (Table.shared([0.0, 0.5]), ["s"]),
        ],
    )

    found, exact = infer(graph, EP()), infer(graph, Exact())

    assert found.marginal("s").probs[1] == pytest.approx(exact.marginal("s").probs[1], abs=0.05)
    assert found.marginal("x").pdf(3.0) == pytest.approx(exact.marginal("x").pdf(3.0), rel=0.15)
    assert found.marginal("x").pdf(-0.1) == 0.0


def test_functions_whose_condition_is_false_are_left_out() -> None:
    model = hl.parse("""
        thing = {a, b}
        On(thing)
        x(thing): real
        normal(x(t) | 0, 1)
        On(t) * (x(t) > 1)
    """)

    found = infer(hl.ground(model, {"On(a)": True, "On(b)": False}), EP())

    assert found.marginal("x(b)").std == pytest.approx(1.0, abs=1e-12)
    assert found.marginal("x(a)").mean > 0.3


def test_a_threshold_far_from_zero_is_no_constant() -> None:
    """A step at one deviation above the mean: the Gaussian truncated there."""
    model = hl.parse("level: real\nnormal(level | 500, 25)\n(level < 505; slope=100)")

    found = infer(hl.ground(model), EP()).marginal("level")

    share = norm.pdf(1) / norm.cdf(1)
    assert found.mean == pytest.approx(500 - 5 * share, abs=0.1)
    assert found.std == pytest.approx(5 * np.sqrt(1 - share - share**2), rel=0.02)


def test_functions_of_more_than_three_reals_are_refused() -> None:
    wave = Function(lambda *x: np.cos(x[0] * x[1] + x[2] * x[3]), 0, 4)
    graph = FactorGraph.build(
        dict.fromkeys("wxyz", real),
        [(wave, list("wxyz")), (ConditionalQuadratic.square(-0.5), [[name] for name in "wxyz"])],
    )

    with pytest.raises(UnsupportedError, match="EP integrates functions over up to 3 reals"):
        infer(graph, EP())


def test_deviations_of_reals_in_many_functions_are_corrected() -> None:
    """One item with a hidden slope and difficulty, answered by twelve known persons."""
    ability, right = np.linspace(-2.0, 2.0, 12), np.arange(12) % 3 != 0
    sign = np.where(right, 1.0, -1.0)
    item = Function(
        lambda a, b, t, s: log_sigmoid(s * a * (t - b)), 0, 2, np.stack([ability, sign], axis=1)
    )
    graph = FactorGraph.build(
        {"a": real, "b": real},
        [
            (item, [["a", "b"]] * 12),
            (ConditionalQuadratic.squared_distance(2.0, [1.0], 1.0), ["a"]),
            (ConditionalQuadratic.square(-0.5), ["b"]),
        ],
    )
    a, b = LINE[:, None], LINE
    values = -2 * (a - 1) ** 2 - 0.5 * b**2
    values = values + sum(log_sigmoid(s * a * (t - b)) for t, s in zip(ability, sign, strict=True))
    _, moments = on_grid(values)

    found = infer(graph, EP())
    state = Propagation(Sites.of(graph), 1e-9, 1000, None)
    while state.step().result is None:
        pass

    for name, (mean, std) in zip("ab", moments, strict=True):
        plain = np.sqrt(state.solved.covariance[state.sites.joint.step[graph.variables.id(name)]])
        assert abs(found.marginal(name).std - std) <= abs(plain - std) + 1e-3
        assert found.marginal(name).std == pytest.approx(std, rel=0.12)
        assert found.marginal(name).mean == pytest.approx(mean, abs=0.05 * std)


def test_nodes_follow_a_function_that_is_narrow_beside_the_prior() -> None:
    """A measured exponential with little noise, and a wide prior."""
    seen = Function(lambda x: -1e4 * (np.exp(x) - 3.0) ** 2, 0, 1)
    graph = FactorGraph.build(
        {"x": real}, [(seen, ["x"]), (ConditionalQuadratic.square(-0.005), ["x"])]
    )

    found = infer(graph, EP())

    assert found.solution.result == "converged"
    assert found.marginal("x").mean == pytest.approx(np.log(3.0), abs=1e-4)
    assert found.marginal("x").std == pytest.approx(1 / (3 * np.sqrt(2e4)), rel=1e-2)


@pytest.mark.parametrize("steepness", [np.inf, 200.0])
def test_steps_are_integrated_up_to_where_they_are(steepness: float) -> None:
    """A function that is impossible, or nearly so, on a half line; NumPy must not warn."""

    def step(x: np.ndarray) -> np.ndarray:
        if np.isinf(steepness):
            return np.where(x > 0.5, 0.0, -np.inf)
        return log_sigmoid(steepness * (x - 0.5))

    graph = FactorGraph.build(
        {"x": real}, [(Function(step, 0, 1), ["x"]), (ConditionalQuadratic.square(-0.5), ["x"])]
    )

    found = infer(graph, EP())

    line = 0.5 + np.concatenate([-np.geomspace(9, 1e-9, 20001), np.geomspace(1e-9, 9, 20001)])
    density = np.exp(step(line) - 0.5 * line**2)
    total = np.trapezoid(density, line)
    mean = np.trapezoid(density * line, line) / total
    assert found.solution.result == "converged"
    assert log_z(found) == pytest.approx(np.log(total), abs=1e-6)
    assert found.marginal("x").mean == pytest.approx(mean, abs=1e-6)


def test_the_density_of_an_unknown_scale_is_corrected() -> None:
    """Eight schools: the Gaussian of the scale has half of its standard deviation."""
    model = hl.parse("""
        effect(school): real
        error(school): real
        theta(school): real
        mu: real
        tau: real[0, 50]
        normal(effect(s) | theta(s), error(s)^2)
        normal(theta(s) | mu, tau^2)
        normal(mu | 0, 10000)
    """)
    effect = [28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0]
    error = [15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0]
    evidence = {
        "effect": [*zip("ABCDEFGH", effect, strict=True)],
        "error": [*zip("ABCDEFGH", error, strict=True)],
    }
    graph = hl.ground(model, evidence)

    found, exact = infer(graph, EP()), infer(graph, Exact())

    assert found.solution.result == "converged"
    for name in ("tau", "mu", "theta(A)"):
        a, b = found.marginal(name), exact.marginal(name)
        assert a.mean == pytest.approx(b.mean, abs=0.1 * b.std)
        assert a.std == pytest.approx(b.std, rel=0.1)
