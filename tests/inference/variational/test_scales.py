"""Answers do not depend on units, on how far bounds are, or on how large energies are."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import hylift as hl
from hylift.errors import ModelError, UnsupportedError

METHODS = [hl.MeanField(), hl.BVI(components=3), hl.NPVI(components=2)]
BY_NAME = pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
build = hl.FactorGraph.build
Q = hl.ConditionalQuadratic


def link(weight: float = 1.0) -> Q:
    return Q.squared_distance(weight, [1.0, -1.0])


@BY_NAME
@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e9])
def test_units_make_no_difference(method, scale):
    pair = Q.gaussian([0.0, 0.0], scale**2 * np.array([[1.0, 0.5], [0.5, 1.0]]))
    graph = build({"x": hl.real, "y": hl.real}, [(pair, ["x", "y"])])
    one = build(
        {"x": hl.real, "y": hl.real},
        [(Q.gaussian([0.0, 0.0], [[1.0, 0.5], [0.5, 1.0]]), ["x", "y"])],
    )

    found, expected = hl.infer(graph, method), hl.infer(one, method)

    assert found.marginal("x").std / scale == pytest.approx(expected.marginal("x").std, rel=1e-3)
    assert found.log_partition.value == pytest.approx(expected.log_partition.value, abs=1e-3)


@pytest.mark.parametrize("method", METHODS[:2], ids=lambda method: method.name)
def test_a_function_may_be_narrow_in_a_wide_interval(method):
    bell = hl.Function(lambda x: -0.5 * (x - 5e5) ** 2, num_reals=1)
    graph = build({"x": hl.interval(0.0, 1e6)}, [(bell, ["x"])])

    posterior = hl.infer(graph, method)

    assert posterior.marginal("x").std == pytest.approx(1.0, abs=1e-3)
    assert posterior.log_partition.value == pytest.approx(0.5 * np.log(2 * np.pi), abs=1e-3)


def test_a_density_may_sit_at_the_end_of_a_wide_interval():
    graph = build({"x": hl.interval(0.0, 1e6)}, [(Q.square(-0.5), ["x"])])

    posterior = hl.infer(graph, hl.BVI(components=3))

    assert posterior.marginal("x").mean == pytest.approx(np.sqrt(2 / np.pi), abs=0.01)


def test_bounds_that_matter_to_one_mode_only_are_kept():
    near, far = Q.gaussian([0.0], [[1.0]]), Q.gaussian([50.0], [[1.0]])
    graph = build(
        {"b": hl.boolean, "x": hl.interval(0.0, 100.0)},
        [(Q.switch([far, near]), ["b", "x"]), (hl.Table.shared([0.0, 1.0]), ["b"])],
    )

    posterior = hl.infer(graph, hl.BVI(components=2))

    exact = hl.infer(graph, hl.Exact())
    assert posterior.marginal("x").cdf(0.0) == 0.0
    assert posterior.marginal("x").mean == pytest.approx(exact.marginal("x").mean, abs=1.0)
    assert posterior.log_partition.value <= exact.log_partition.value + 0.01


@pytest.mark.parametrize("size", [1.0, 1e3, 1e6])
@BY_NAME
def test_large_energies_do_not_outweigh_a_hard_constraint(method, size):
    same = hl.Table.shared([[0.0, -np.inf], [-np.inf, 0.0]])
    graph = build(
        {"a": hl.boolean, "b": hl.boolean},
        [
            (same, ["a", "b"]),
            (hl.Table.shared([0.0, 10 * size]), ["a"]),
            (hl.Table.shared([9 * size, 0.0]), ["b"]),
        ],
    )

    posterior = hl.infer(graph, method)

    assert posterior.marginal("a").prob("true") > 0.7
    assert posterior.log_partition.value == pytest.approx(10 * size, abs=0.5)


def test_rare_states_stay_possible_beside_a_hard_constraint():
    graph = build(
        {"a": hl.boolean, "b": hl.boolean, "rare": hl.boolean},
        [
            (hl.Table.weighted(np.inf, [[0, 1], [1, 1]]), ["a", "b"]),
            (hl.Table.shared([0.0, -14.0]), ["rare"]),
        ],
    )

    posterior = hl.infer(graph, hl.BVI(components=2))

    assert posterior.marginal("rare").prob("true") == pytest.approx(np.exp(-14.0), rel=0.01)


@pytest.mark.parametrize("lift", ["none", "exact", "coarse-to-fine"])
def test_members_of_a_class_may_differ_under_a_hard_constraint(lift):
    graph = build(
        {"H": hl.boolean, "S": hl.boolean},
        [(hl.Table.weighted(np.inf, [[0, 1], [1, 1]]), ["H", "S"])],
    )

    posterior = hl.infer(graph, hl.BVI(components=3), lift=lift)

    assert posterior.marginal("H").prob("true") == pytest.approx(2 / 3, abs=1e-3)


@pytest.mark.parametrize("method", METHODS[:2], ids=lambda method: method.name)
def test_a_form_that_is_flat_in_one_direction_is_no_distribution(method):
    graph = build({"x": hl.real, "y": hl.real}, [(link(), ["x", "y"])])

    with pytest.raises(ModelError, match=r"improper in '[xy]'"):
        hl.infer(graph, method)


def test_bounds_hold_a_form_that_is_flat_in_one_direction():
    interval = hl.interval(-1.0, 1.0)
    graph = build({"x": interval, "y": interval}, [(link(), ["x", "y"])])

    posterior = hl.infer(graph, hl.BVI(components=3))

    exact = hl.infer(graph, hl.Exact())
    assert posterior.log_partition.value == pytest.approx(exact.log_partition.value, abs=0.01)


def test_a_large_form_that_rises_somewhere_is_no_distribution():
    count = 12_000
    pairs = np.arange(2 * count).reshape(count, 2).astype(np.int32)
    rising = Q.shared([[-1.0, 1.5], [1.5, -1.0]], [0.0, 0.0])
    graph = hl.FactorGraph(
        hl.Variables.uniform(hl.real, 2 * count), (hl.FactorGroup(rising, pairs),)
    )

    with pytest.raises(ModelError, match="improper in"):
        hl.infer(graph, hl.MeanField())


def test_a_long_chain_beside_a_boolean_comes_to_rest():
    names = [f"x{i}" for i in range(400)]
    pairs = [[later, earlier] for earlier, later in itertools.pairwise(names)]
    graph = build(
        {"b": hl.boolean} | dict.fromkeys(names, hl.real),
        [
            (Q.linear_gaussian([1.0], 1.0), pairs),
            (Q.gaussian([1.0], [[0.1]]), [[names[0]], [names[-1]]]),
            (Q.square(-1e-6).times([0, 1]), ["b", "x200"]),
        ],
    )

    posterior = hl.infer(graph, hl.MeanField())

    assert posterior.solution.result == "converged"
    assert posterior.marginal("x200").mean == pytest.approx(1.0, abs=1e-3)


def test_a_warm_start_may_come_from_much_tighter_evidence():
    graph = build(
        {"x": hl.real, "y": hl.real, "b": hl.boolean},
        [
            (Q.square(-1.0), ["x"]),
            (link(), ["x", "y"]),
            (Q.square(-0.1).times([0, 1]), ["b", "y"]),
        ],
    )
    method = hl.BVI(components=3)
    tight = hl.infer(graph.observe({"x": hl.Soft(1.0, 1e-12)}), method)
    loose = graph.observe({"x": hl.Soft(1.0, 1.0)})

    warm = hl.infer(loose, method, start=tight)

    assert warm.marginal("x").std == pytest.approx(
        hl.infer(loose, method).marginal("x").std, rel=0.05
    )


def test_a_warm_start_keeps_to_bounds_it_did_not_know():
    graph = build(
        {"x": hl.real, "y": hl.interval(0.0, 1.0)},
        [(Q.square(-1.0), ["x"]), (link(0.3), ["x", "y"])],
    )
    start = hl.infer(graph.observe({"y": 0.5}), hl.BVI(components=2))

    warm = hl.infer(graph, hl.BVI(components=2), start=start)

    assert warm.marginal("y").cdf(0.0) == 0.0
    assert warm.marginal("y").cdf(1.0) == pytest.approx(1.0)


def test_one_bound_that_matters_is_refused():
    graph = build({"x": hl.interval(0.0, np.inf)}, [(Q.square(-0.5), ["x"])])

    with pytest.raises(UnsupportedError, match=r"'x' is bounded on one side only, \[0, inf\]"):
        hl.infer(graph, hl.BVI(components=2))


def test_merged_factors_have_the_same_density_and_other_counting_numbers():
    graph = build(
        {"a": hl.boolean, "b": hl.boolean, "c": hl.boolean},
        [
            (hl.Table.shared(np.array([[0.0, 1.0], [2.0, 0.5]])), [["a", "b"], ["b", "c"]]),
            (hl.Table.shared(np.array([[0.3, 0.0], [0.0, 0.4]])), ["a", "b"]),
        ],
    )

    plain = hl.infer(graph, hl.BVI(components=4), lift="none")
    merged = hl.infer(graph, hl.BVI(components=4, merge_factors=True), lift="none")

    exact = hl.infer(graph, hl.Exact()).log_partition.value
    assert plain.log_partition.kind == "estimate"
    assert merged.log_partition.kind == "lower bound"
    assert merged.log_partition.value <= exact + 1e-9
    with pytest.raises(UnsupportedError, match="merge with lift='exact'"):
        hl.infer(graph, hl.BVI(components=2, merge_factors=True), lift="coarse-to-fine")


def test_a_time_budget_is_kept_before_the_first_step():
    size = 20_000
    domains = (hl.boolean, hl.real)
    names = hl.Names.numbered(2 * size)
    domain_id = np.repeat([0, 1], size).astype(np.int32)
    variables = hl.Variables(domains, domain_id, names, np.ones(2 * size))
    rng = np.random.default_rng(0)
    pairs = rng.integers(0, size, (3 * size, 2))
    scope = np.stack([pairs[:, 0], size + pairs[:, 1]], axis=1).astype(np.int32)
    reals = (size + np.arange(size)[:, None]).astype(np.int32)
    graph = hl.FactorGraph(
        variables,
        (
            hl.FactorGroup(Q.squared_distance(1.0, [1.0], 1.0).times([0, 1]), scope),
            hl.FactorGroup(Q.square(-1.0), reals),
        ),
    )

    posterior = hl.infer(graph, hl.BVI(components=2), lift="none", seconds=0.05)

    assert posterior.solution.result == "out_of_time"
    assert np.isfinite(posterior.log_partition.value)
