"""Graphs at the edge of what a graph is, and graphs that are long."""

import itertools

import numpy as np
import pytest

import oracle
import zoo
from hylift.graph import (
    Evidence,
    FactorGraph,
    FactorGroup,
    Variables,
    boolean,
    categorical,
    interval,
    real,
)
from hylift.inference import infer
from hylift.potentials import ConditionalQuadratic, Table

EVERYTHING = ("marginals", "logz", "map")


def test_an_empty_graph_has_log_z_zero() -> None:
    posterior = infer(FactorGraph.build({}, []), tasks=EVERYTHING)

    assert posterior.log_partition.value == 0.0
    assert posterior.map().to_dict() == {}
    assert posterior.map().energy == 0.0
    assert posterior.marginals().num_rows == 0


def test_a_constant_of_an_empty_graph_is_log_z() -> None:
    graph = FactorGraph(Variables.named({}), (), log_constant=-2.5)

    posterior = infer(graph, tasks=EVERYTHING)

    assert posterior.log_partition.value == -2.5
    assert posterior.map().energy == 2.5


def test_a_factor_without_slots_counts() -> None:
    constants = Table(np.array([0.5, 0.25]))
    group = FactorGroup(constants, np.zeros((2, 0), dtype=np.int32), multiplicity=[2.0, 4.0])
    graph = FactorGraph(Variables.named({"a": boolean}), (group,))

    posterior = infer(graph, tasks=EVERYTHING)

    assert posterior.log_partition.value == pytest.approx(2.0 + np.log(2))
    assert posterior.map().energy == pytest.approx(-2.0)


def test_variables_without_factors_are_uniform() -> None:
    graph = FactorGraph.build({"b": boolean, "c": categorical(3), "u": interval(-1, 3)}, [])

    posterior = infer(graph)

    assert posterior.log_partition.value == pytest.approx(np.log(2 * 3 * 4), abs=1e-10)
    assert posterior.marginal("b").probs == pytest.approx([1 / 2] * 2)
    assert posterior.marginal("c").probs == pytest.approx([1 / 3] * 3)
    assert posterior.marginal("u").pdf([-0.9, 2.5]) == pytest.approx([1 / 4] * 2)


def test_one_categorical_of_one_state() -> None:
    graph = FactorGraph.build({"only": categorical(["here"])}, [(Table.shared([0.7]), ["only"])])

    posterior = infer(graph, tasks=EVERYTHING)

    assert posterior.log_partition.value == pytest.approx(0.7)
    assert posterior.marginal("only").probs.tolist() == [1.0]
    assert posterior.map().to_dict() == {"only": "here"}


def test_when_everything_is_observed_log_z_is_the_log_density() -> None:
    graph = zoo.switching_regime()
    values = np.array([0, 1, 1, 0.5, 2.0, 3.0])
    observed = graph.observe(Evidence.of(np.arange(6), values))

    posterior = infer(observed, tasks=EVERYTHING)

    assert posterior.log_partition.value == pytest.approx(graph.log_density(values), abs=1e-10)
    assert posterior.map().energy == pytest.approx(-graph.log_density(values), abs=1e-10)
    assert posterior.map().to_dict() == {}
    assert posterior.map()["regime(t1)"] == "storm"
    assert posterior.marginal("regime(t0)").prob("calm") == 1.0
    assert posterior.marginal("x(t2)").mean == 3.0
    assert posterior.marginal("x(t2)").var == 0.0


def test_impossible_states_have_probability_zero() -> None:
    at_most_one = np.ones((2, 2, 2), dtype=bool)
    at_most_one[[0, 1, 1, 1], [1, 0, 1, 1], [1, 1, 0, 1]] = False
    graph = FactorGraph.build(
        {"a": boolean, "b": boolean, "c": boolean},
        [
            (Table.weighted(np.inf, at_most_one), ["a", "b", "c"]),
            (Table.weighted(np.inf, [[0, 1], [1, 1]]), ["a", "b"]),
        ],
    )

    posterior = infer(graph)

    assert posterior.log_partition.value == pytest.approx(np.log(2))
    assert posterior.marginal("c").probs.tolist() == [1.0, 0.0]
    assert posterior.marginal("a").probs == pytest.approx([0.5, 0.5])


def test_a_group_without_factors_changes_nothing() -> None:
    graph = zoo.mixed_cardinality_loop()
    empty = FactorGroup(Table(np.zeros((0, 2))), np.zeros((0, 1), dtype=np.int32))
    longer = FactorGraph(graph.variables, (empty, *graph.groups))

    actual, expected = infer(longer), infer(graph)

    assert actual.log_partition.value == pytest.approx(expected.log_partition.value, abs=1e-12)


@pytest.mark.parametrize("seed", [0, 1, 2, 4, 5, 7])
def test_a_state_in_which_nothing_holds_a_real_does_not_matter_if_impossible(seed: int) -> None:
    """x is only held where `a` is true; `a` equals `b`, and `b` is true."""
    rng = np.random.default_rng(seed)
    names = [f"v{i}" for i in range(7)]
    pairs = [pair for pair in itertools.combinations(names, 2) if rng.random() < 0.45]
    a, b = rng.permutation(names)[:2].tolist()
    graph = FactorGraph.build(
        dict.fromkeys(names, boolean) | {"x": real},
        [
            *((Table.shared(rng.normal(size=(2, 2))), pair) for pair in pairs),
            (Table.weighted(np.inf, [[1, 0], [0, 1]]), [a, b]),
            (Table.weighted(np.inf, [0, 1]), [b]),
            (ConditionalQuadratic.gaussian([1.0], [[2.0]]).times([0, 1]), [a, "x"]),
        ],
    )

    posterior = infer(graph, tasks=EVERYTHING)

    expected = oracle.solve(graph)
    assert posterior.log_partition.value == pytest.approx(expected.log_z, rel=0, abs=1e-10)
    assert posterior.map().energy == pytest.approx(expected.map_energy, rel=0, abs=1e-10)
    for variable, probs in expected.probs.items():
        np.testing.assert_allclose(
            posterior.all_marginals[variable].probs, probs, rtol=0, atol=1e-10
        )


def test_a_chain_of_20000_booleans_agrees_with_transfer_matrices() -> None:
    size, rng = 20_000, np.random.default_rng(2)
    fields, couplings = rng.normal(size=(size, 2)), rng.normal(size=(size - 1, 2, 2))
    ids = np.arange(size)
    graph = FactorGraph(
        Variables.uniform(boolean, size),
        (
            FactorGroup(Table(fields), ids[:, None]),
            FactorGroup(Table(couplings), np.stack([ids[:-1], ids[1:]], axis=1)),
        ),
    )
    left, right = np.zeros((size, 2)), np.zeros((size, 2))
    log_z = 0.0
    for t in range(size):
        message = left[t - 1] @ np.exp(couplings[t - 1]) if t else np.ones(2)
        unscaled = message * np.exp(fields[t])
        log_z += np.log(unscaled.sum())
        left[t] = unscaled / unscaled.sum()
    right[-1] = 1.0
    for t in reversed(range(size - 1)):
        message = np.exp(couplings[t]) @ (np.exp(fields[t + 1]) * right[t + 1])
        right[t] = message / message.sum()
    belief = left * right

    posterior = infer(graph)

    expected = belief / belief.sum(axis=1, keepdims=True)
    actual = np.stack(posterior.marginals()["probs"].to_pylist())
    assert posterior.log_partition.value == pytest.approx(log_z, rel=1e-12)
    np.testing.assert_allclose(actual, expected, rtol=0, atol=1e-10)


def test_a_gaussian_chain_of_20000_reals_agrees_with_a_kalman_smoother() -> None:
    size, rng = 20_000, np.random.default_rng(3)
    a, q, r, measured = 0.95, 0.4, 0.7, rng.normal(size=20_000)
    ids = np.arange(size)
    graph = FactorGraph(
        Variables.uniform(real, 2 * size),
        (
            FactorGroup(ConditionalQuadratic.gaussian([1.0], [[2.0]]), ids[:1, None]),
            FactorGroup(
                ConditionalQuadratic.linear_gaussian([a], q), np.stack([ids[1:], ids[:-1]], axis=1)
            ),
            FactorGroup(
                ConditionalQuadratic.linear_gaussian([1.0], r), np.stack([ids + size, ids], axis=1)
            ),
        ),
    ).observe(Evidence.of(ids + size, measured))
    log_likelihood, mean, var = kalman_smoother(a, q, r, measured, 1.0, 2.0)

    posterior = infer(graph)

    table = posterior.marginals()
    assert posterior.log_partition.value == pytest.approx(log_likelihood, rel=1e-11)
    np.testing.assert_allclose(table["mean"].to_numpy(), mean, rtol=0, atol=1e-10)
    np.testing.assert_allclose(table["std"].to_numpy() ** 2, var, rtol=0, atol=1e-10)


def kalman_smoother(
    a: float, q: float, r: float, measured: np.ndarray, mean: float, var: float
) -> tuple[float, np.ndarray, np.ndarray]:
    """Log-likelihood, smoothed means and variances of x' = a x + N(0, q), y = x + N(0, r)."""
    log_likelihood, filtered, predicted = 0.0, [], []
    for y in measured:
        predicted.append((mean, var))
        log_likelihood -= 0.5 * (np.log(2 * np.pi * (var + r)) + (y - mean) ** 2 / (var + r))
        gain = var / (var + r)
        mean, var = mean + gain * (y - mean), (1 - gain) * var
        filtered.append((mean, var))
        mean, var = a * mean, a * a * var + q
    smoothed = [filtered[-1]]
    for (m, v), (next_m, next_v) in zip(
        reversed(filtered[:-1]), reversed(predicted[1:]), strict=True
    ):
        gain = a * v / next_v
        later_m, later_v = smoothed[-1]
        smoothed.append((m + gain * (later_m - next_m), v + gain**2 * (later_v - next_v)))
    means, variances = np.array(smoothed[::-1]).T
    return float(log_likelihood), means, variances
