"""Reals on intervals: numerical integration against closed forms of truncated Gaussians."""

import itertools

import numpy as np
import pytest
from scipy import stats

from hylift.errors import IntractableError
from hylift.graph import FactorGraph, boolean, interval, real
from hylift.inference import Exact, infer
from hylift.potentials import ConditionalQuadratic, Function, Table


@pytest.mark.parametrize(
    ("lower", "upper", "mean", "std"),
    [
        (-1.0, 2.0, 0.3, 1.0),  # cut on both sides
        (0.0, 1.0, 0.0, 0.01),  # half a narrow bell
        (5.0, 8.0, 0.0, 1.0),  # only a tail
        (-1.0, 1.0, 0.2, 50.0),  # nearly uniform
        (-50.0, 50.0, 3.0, 1.0),  # bounds that make no difference
    ],
)
def test_a_truncated_gaussian_has_its_closed_form(
    lower: float, upper: float, mean: float, std: float
) -> None:
    potential = ConditionalQuadratic.gaussian([mean], [[std**2]])
    graph = FactorGraph.build({"x": interval(lower, upper)}, [(potential, ["x"])])
    expected = stats.truncnorm((lower - mean) / std, (upper - mean) / std, mean, std)
    bell = stats.norm(mean, std)

    posterior = infer(graph, Exact())

    log_z = np.log(bell.sf(lower) - bell.sf(upper))
    marginal = posterior.marginal("x")
    points = expected.ppf([0.01, 0.3, 0.9])
    assert posterior.log_partition.value == pytest.approx(log_z, rel=0, abs=1e-8)
    assert marginal.mean == pytest.approx(expected.mean(), rel=1e-8)
    assert marginal.var == pytest.approx(expected.var(), rel=1e-8)
    assert marginal.pdf(points) == pytest.approx(expected.pdf(points), rel=1e-7)
    assert marginal.cdf(points) == pytest.approx([0.01, 0.3, 0.9], abs=1e-8)


@pytest.mark.parametrize(
    ("lower", "upper", "mean", "best"), [(0.0, 1.0, -2.0, 0.0), (0.0, 1.0, 0.4, 0.4), (0, 1, 9, 1)]
)
def test_the_most_probable_value_respects_the_bounds(
    lower: float, upper: float, mean: float, best: float
) -> None:
    potential = ConditionalQuadratic.gaussian([mean], [[1.0]])
    graph = FactorGraph.build({"x": interval(lower, upper)}, [(potential, ["x"])])

    found = infer(graph, Exact(), tasks=["map"]).map()

    assert found["x"] == pytest.approx(best, abs=1e-6)
    assert found.energy == pytest.approx(-stats.norm(mean, 1).logpdf(best), abs=1e-10)


def test_a_chain_of_bounded_reals_agrees_with_a_dense_grid() -> None:
    names = [f"x{i}" for i in range(4)]
    pull = ConditionalQuadratic.squared_distance(1.0, [1, -1])
    drift = ConditionalQuadratic.shared([[0.0]], [0.5])
    graph = FactorGraph.build(
        dict.fromkeys(names, interval(-1, 1)),
        [(pull, list(itertools.pairwise(names))), (drift, ["x0"])],
    )
    nodes, weights = np.polynomial.legendre.leggauss(40)
    step = np.exp(-((nodes[:, None] - nodes) ** 2)) * weights
    beyond = step @ step @ step @ np.ones(40)

    posterior = infer(graph, Exact())

    mass = weights * np.exp(0.5 * nodes) * beyond
    assert posterior.log_partition.value == pytest.approx(np.log(mass.sum()), rel=0, abs=1e-9)
    assert posterior.marginal("x0").mean == pytest.approx(mass @ nodes / mass.sum(), abs=1e-9)


def test_an_unbounded_real_beside_a_truncated_one_has_its_moments() -> None:
    graph = FactorGraph.build(
        {"x": interval(0, 1), "y": real},
        [
            (ConditionalQuadratic.gaussian(0.0, 1.0), ["x"]),
            (ConditionalQuadratic.linear_gaussian([2.0], 0.5, 1.0), ["y", "x"]),
        ],
    )
    x = stats.truncnorm(0, 1)

    posterior = infer(graph, Exact())

    y = posterior.marginal("y")
    log_z = np.log(stats.norm.cdf(1) - 0.5)
    assert posterior.log_partition.value == pytest.approx(log_z, rel=0, abs=1e-9)
    assert posterior.marginal("x").mean == pytest.approx(x.mean(), abs=1e-9)
    assert [y.mean, y.var] == pytest.approx([2 * x.mean() + 1, 4 * x.var() + 0.5], abs=1e-9)


def test_a_narrow_state_beside_a_wide_one_keeps_its_probability() -> None:
    """The wide state leaves the interval; the narrow one falls between the nodes of a grid."""
    means, stds = np.array([14.0, 0.1]), np.array([5.0, 4e-3])
    bells = ConditionalQuadratic.gaussian(means[:, None], (stds**2)[:, None, None])
    graph = FactorGraph.build(
        {"narrow": boolean, "x": interval(-15, 15)}, [(bells, ["narrow", "x"])]
    )
    inside = stats.norm.cdf(15, means, stds) - stats.norm.cdf(-15, means, stds)

    posterior = infer(graph, Exact())

    assert posterior.log_partition.value == pytest.approx(np.log(inside.sum()), abs=1e-6)
    assert posterior.marginal("narrow").probs == pytest.approx(inside / inside.sum(), abs=1e-6)


def test_a_narrow_state_beside_a_flat_one_can_be_the_most_probable() -> None:
    flat_or_narrow = ConditionalQuadratic.shared(
        [[[0.0]], [[-5e5]]], [[0.0], [1e5]], [0.0, -4998.0]
    )
    graph = FactorGraph.build(
        {"narrow": boolean, "x": interval(-15, 15)}, [(flat_or_narrow, ["narrow", "x"])]
    )

    best = infer(graph, Exact(), tasks=["map"]).map()

    assert best.to_dict() == {"narrow": "true", "x": pytest.approx(0.1)}
    assert best.energy == pytest.approx(-2.0, abs=1e-6)


def test_a_bounded_real_without_factors_does_not_disturb_an_unbounded_one() -> None:
    """x has no place where `on` is false, which is impossible; u is uniform."""
    graph = FactorGraph.build(
        {"on": boolean, "x": real, "u": interval(0, 2)},
        [
            (Table.weighted(np.inf, [0, 1]), ["on"]),
            (ConditionalQuadratic.gaussian([1.0], [[1.0]]).times([0, 1]), ["on", "x"]),
        ],
    )

    posterior = infer(graph, Exact())

    assert posterior.log_partition.value == pytest.approx(np.log(2.0), abs=1e-10)
    assert posterior.marginal("x").mean == pytest.approx(1.0, abs=1e-10)
    assert posterior.marginal("u").mean == pytest.approx(1.0, abs=1e-10)


def test_a_function_may_use_states_as_indices() -> None:
    centres = np.array([-0.5, 0.5])
    graph = FactorGraph.build(
        {"d": boolean, "x": interval(-1, 1)},
        [(Function(lambda d, x: -np.abs(x - centres[d]), 1, 1), ["d", "x"])],
    )

    posterior = infer(graph, Exact())

    assert posterior.marginal("d").probs == pytest.approx([0.5, 0.5], abs=1e-9)
    assert posterior.map().energy == pytest.approx(0.0, abs=1e-6)


def test_a_jump_in_a_density_is_answered_within_the_reported_error_or_refused() -> None:
    jump = Function(lambda x: np.where(x < 0.3, -x, -np.inf), num_reals=1)
    graph = FactorGraph.build({"x": interval(-1, 1)}, [(jump, ["x"])])

    try:
        log_z = infer(graph, Exact()).log_partition
    except IntractableError:
        return

    assert log_z.kind == "estimate"
    assert log_z.value == pytest.approx(np.log(np.e - np.exp(-0.3)), abs=log_z.error)


def test_the_error_of_numerical_integration_is_reported() -> None:
    potential = ConditionalQuadratic.gaussian([0.0], [[1.0]])
    graph = FactorGraph.build({"x": interval(-1, 2)}, [(potential, ["x"])])

    posterior = infer(graph, Exact())

    assert 0 <= posterior.log_partition.error < 1e-9
    assert "The integral over 1 bounded real is a sum over" in posterior.solution.notes[0]


def test_an_unbounded_real_beside_a_bounded_one_is_a_mixture_over_its_values() -> None:
    graph = FactorGraph.build(
        {"x": interval(-1, 1), "y": real},
        [(ConditionalQuadratic.linear_gaussian([1.0], 1.0), ["y", "x"])],
    )

    posterior = infer(graph, Exact())

    assert posterior.log_partition.value == pytest.approx(np.log(2), abs=1e-10)
    assert posterior.marginal("y").var == pytest.approx(1 + 1 / 3, abs=1e-10)


@pytest.mark.parametrize(
    ("state", "log_weight"),
    [
        # e^(kx) on [0, 1], normalised: all of it within 1/k of the upper end
        (ConditionalQuadratic.shared([[0.0]], [1e5]), np.log(1e5) - 1e5),
        # a Gaussian whose mean is far below: only a steep tail is seen
        (ConditionalQuadratic.gaussian([-1e3], [[1.0]]), 0.5e6 + np.log(1e3 * np.sqrt(2 * np.pi))),
    ],
    ids=["slope", "tail"],
)
def test_a_layer_at_the_end_of_an_interval_is_not_missed(state, log_weight) -> None:
    flat = ConditionalQuadratic.shared([[0.0]], [0.0])
    graph = FactorGraph.build(
        {"d": boolean, "x": interval(0, 1)},
        [
            (ConditionalQuadratic.switch([flat, state]), ["d", "x"]),
            (Table.shared([0.0, log_weight]), ["d"]),
        ],
    )

    posterior = infer(graph, Exact())

    # Tails are known to a part in 1e6 here; a grid that misses them gives 0.
    assert posterior.marginal("d").prob("true") == pytest.approx(0.5, abs=1e-5)
    assert posterior.log_partition.kind == "exact"


def test_a_constant_changes_nothing_but_log_z_on_a_grid() -> None:
    def shifted(constant: float) -> FactorGraph:
        return FactorGraph.build(
            {"d": boolean, "x": interval(-1, 1)},
            [
                (ConditionalQuadratic.gaussian([[0.2], [5.0]], [[[0.3]], [[2.0]]]), ["d", "x"]),
                (Table.shared([constant, constant]), ["d"]),
            ],
        )

    plain, moved = infer(shifted(0.0), Exact()), infer(shifted(1e6), Exact())

    assert moved.marginal("x").mean == pytest.approx(plain.marginal("x").mean, abs=1e-9)
    assert moved.marginal("d").probs == pytest.approx(plain.marginal("d").probs, abs=1e-9)
    difference = moved.log_partition.value - plain.log_partition.value
    assert difference == pytest.approx(1e6, abs=1e-8)


def test_a_far_state_of_little_weight_does_not_widen_a_bounded_real() -> None:
    graph = FactorGraph.build(
        {"d": boolean, "x": interval(-1, 1)},
        [
            (Table.from_values([1.0, 1e-10]), ["d"]),
            (ConditionalQuadratic.gaussian([[0.0], [1e3]], [[[0.01]], [[0.01]]]), ["d", "x"]),
        ],
    )

    marginal = infer(graph, Exact()).marginal("x")

    assert marginal.var == pytest.approx(0.01, rel=1e-6)
    assert marginal.cdf(1.0) == 1.0


@pytest.mark.parametrize(("mean", "kind"), [(10.0, "exact"), (1e6, "estimate")])
def test_digits_lost_to_large_numbers_are_admitted(mean: float, kind: str) -> None:
    two = ConditionalQuadratic.gaussian([[mean], [mean + 1]], [[[0.007]], [[0.0077]]])
    graph = FactorGraph.build({"d": boolean, "x": real}, [(two, ["d", "x"])])

    log_z = infer(graph, Exact()).log_partition

    assert log_z.kind == kind
    assert abs(log_z.value - np.log(2)) <= log_z.error


@pytest.mark.parametrize("width", [1e6, 1e3, 1.0, 1e-3, 1e-6])
def test_the_most_probable_value_at_a_bound_is_found_at_every_scale(width: float) -> None:
    tail = ConditionalQuadratic.gaussian([3 * width], [[width**2]])
    graph = FactorGraph.build({"x": interval(0, width)}, [(tail, ["x"])])

    assert infer(graph, Exact(), tasks=["map"]).map()["x"] == pytest.approx(width, rel=1e-12)
