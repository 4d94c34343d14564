"""Filtered moments are those of exact inference up to each time."""

from pathlib import Path

import numpy as np
import pytest

import hylift as hl
from hylift.inference.filtering.filter import times_of
from inference.filtering.gaussian_chains import (
    CHAIN,
    SQUARES,
    chains,
    observed,
    up_to,
    wells,
    with_parameters,
)

MODELS = Path(__file__).parents[3] / "examples" / "models"
CHAINS = chains()
INPUTS = {"inputs": "u(*)", "parameters": "a(*) q(*) r(*) gain(*)"}
"""Observed reals that densities depend on."""
DENSITIES = [name for name in CHAINS if name not in ("squares", "switched")]


def moments(posterior, ids):
    names = posterior.variables.names.render(ids).to_pylist()
    found = [posterior.marginal(name) for name in names]
    return np.array([float(d.mean) for d in found]), np.array([float(d.var) for d in found])


@pytest.mark.parametrize("name", CHAINS)
def test_filtered_moments_and_log_z_are_exact_in_the_model_up_to_each_time(name):
    graph, argument = CHAINS[name]
    time = times_of(graph.variables.names, argument)

    found = hl.kalman_filter(graph, argument)

    for at, last in enumerate(found.times):
        posterior = hl.infer(up_to(graph, time, last, last + 1), hl.Exact())
        own = found.time == last
        if last == found.times[-1]:
            own |= found.time < 0
        names = graph.variables.names.render(found.ids[own]).to_pylist()
        mean, var = moments(posterior, posterior.variables.names.ids(names))
        assert np.allclose(found.mean[own], mean, rtol=1e-10, atol=1e-10)
        assert np.allclose(found.var[own], var, rtol=1e-10, atol=1e-10)
        assert found.log_partition[at] == pytest.approx(posterior.log_partition.value, rel=1e-10)
    assert found.log_likelihood.sum() == pytest.approx(found.log_partition[-1], rel=1e-12)


@pytest.mark.parametrize("name", DENSITIES)
def test_predictions_are_exact_without_the_evidence_of_their_time(name):
    graph, argument = CHAINS[name]
    time = times_of(graph.variables.names, argument)
    inputs = "x(*)" if "known" in name else INPUTS.get(name, "")

    found = hl.kalman_filter(graph, argument)

    for last in found.times:
        before = up_to(graph, time, last, last)
        if inputs:
            given = [
                v
                for pattern in inputs.split()
                for v in graph.variables.names.matching(pattern)
                if time[v] <= last
            ]
            seen = graph.evidence
            keep = np.isin(seen.variable, given)
            names = graph.variables.names.render(seen.variable[keep]).to_pylist()
            before = before.observe(dict(zip(names, seen.value[keep].tolist(), strict=True)))
        posterior = hl.infer(before, hl.Exact())
        for ids, of_time, mean, var in (
            (found.ids, found.time, found.predicted_mean, found.predicted_var),
            (found.measured, found.measured_time, found.measured_mean, found.measured_var),
        ):
            own = of_time == last
            names = graph.variables.names.render(ids[own]).to_pylist()
            expected = moments(posterior, posterior.variables.names.ids(names))
            noise = soft_variances(graph, ids[own]) if ids is found.measured else 0.0
            assert np.allclose(mean[own], expected[0], rtol=1e-10, atol=1e-10)
            assert np.allclose(var[own], expected[1] + noise, rtol=1e-10, atol=1e-10)


def soft_variances(graph, ids):
    var = np.zeros(graph.num_variables)
    var[graph.evidence.variable] = graph.evidence.var
    return var[ids]


def test_a_state_space_model_is_filtered_as_in_a_textbook():
    rng = np.random.default_rng(0)
    F, Q = rng.normal(size=(3, 3)) * 0.5, np.diag([0.5, 1.0, 0.2])
    H, R = rng.normal(size=(2, 3)), np.diag([0.4, 0.9])
    y = rng.normal(size=(10, 2))
    y[4] = np.nan
    graph, time = state_space(F, Q, H, R, y)
    is_state = np.arange(len(time)) < 3 * len(y)

    found = hl.kalman_filter(graph, time)

    mean, cov, log_likelihood = np.zeros(3), np.eye(3), []
    for t in range(10):
        if t:
            mean, cov = F @ mean, F @ cov @ F.T + Q
        own = (found.time == t) & is_state[found.ids]
        assert np.allclose(found.predicted_mean[own], mean, atol=1e-10)
        assert np.allclose(found.predicted_var[own], np.diag(cov), atol=1e-10)
        log_likelihood.append(0.0)
        if not np.isnan(y[t, 0]):
            S = H @ cov @ H.T + R
            error = y[t] - H @ mean
            seen = found.measured_time == t
            assert np.allclose(found.measured_mean[seen], H @ mean, atol=1e-10)
            assert np.allclose(found.measured_var[seen], np.diag(S), atol=1e-10)
            log_likelihood[t] = -0.5 * (
                error @ np.linalg.solve(S, error) + np.linalg.slogdet(2 * np.pi * S)[1]
            )
            gain = cov @ H.T @ np.linalg.inv(S)
            mean, cov = mean + gain @ error, cov - gain @ S @ gain.T
        assert np.allclose(found.mean[own], mean, atol=1e-10)
        assert np.allclose(found.var[own], np.diag(cov), atol=1e-10)
    assert np.allclose(found.log_likelihood, log_likelihood, atol=1e-10)


def state_space(F, Q, H, R, y):
    """x_0 ~ N(0, 1), x_t = F x_(t-1) + N(0, Q), y_t = H x_t + N(0, R); with times."""
    names = [f"x{t}.{i}" for t in range(len(y)) for i in range(3)]
    names += [f"y{t}.{i}" for t in range(len(y)) for i in range(2)]
    linear = hl.ConditionalQuadratic.linear_gaussian
    factors = [(hl.ConditionalQuadratic.gaussian([0.0], 1.0), [[f"x0.{i}"] for i in range(3)])]
    for t in range(len(y)):
        if t:
            before = [f"x{t - 1}.{i}" for i in range(3)]
            factors += [(linear(F[i], Q[i, i]), [f"x{t}.{i}", *before]) for i in range(3)]
        now = [f"x{t}.{i}" for i in range(3)]
        factors += [(linear(H[i], R[i, i]), [f"y{t}.{i}", *now]) for i in range(2)]
    graph = hl.FactorGraph.build(dict.fromkeys(names, hl.real), factors)
    seen = {f"y{t}.{i}": y[t, i] for t in range(len(y)) for i in range(2) if y[t, i] == y[t, i]}
    return graph.observe(seen), np.array([int(name[1:].split(".")[0]) for name in names])


def test_the_order_of_factors_changes_nothing():
    graph, rng = wells(), np.random.default_rng(3)
    groups = [group.take(rng.permutation(len(group))) for group in graph.groups]
    shuffled = hl.FactorGraph(graph.variables, tuple(groups[::-1]), graph.evidence)

    one, other = hl.kalman_filter(graph, "month"), hl.kalman_filter(shuffled, "month")

    for name in ("mean", "var", "predicted_mean", "predicted_var", "log_likelihood"):
        assert np.allclose(getattr(one, name), getattr(other, name), rtol=1e-12, atol=1e-12)
    assert np.allclose(one.measured_mean, other.measured_mean, rtol=1e-12, atol=1e-12)
    assert np.array_equal(one.measured, other.measured)


def test_times_as_an_array_and_as_an_argument_are_the_same():
    graph = wells()
    time = times_of(graph.variables.names, "month")
    tenfold = np.where(time < 0, -1, 10 * time)

    by_name, by_array = hl.kalman_filter(graph, "month"), hl.kalman_filter(graph, tenfold)

    assert np.array_equal(10 * by_name.times, by_array.times)
    assert np.array_equal(by_name.mean, by_array.mean)


def test_the_wells_of_the_published_model_are_held_one_after_another():
    model = hl.read_model(MODELS / "kalman-tree.mln")
    rng = np.random.default_rng(5)
    graph = hl.ground(model, {"well": [f"w{i}" for i in range(30)]})
    start, _ = graph.variables.names.predicate("x")
    first = start[times_of(graph.variables.names, "month")[start] == 0]
    seen, _ = graph.variables.names.predicate("o")
    ids = np.concatenate([first, seen])
    graph = graph.observe(hl.Evidence.of(ids, rng.normal(50, 5, size=len(ids))))

    found = hl.kalman_filter(graph, "month")

    exact = hl.infer(graph, hl.Exact())
    assert found.log_partition[-1] == pytest.approx(exact.log_partition.value, rel=1e-12)
    assert found.width == 2
    assert len(found.measured) == len(seen)
    # All measurements of a month are independent of each other here, given those before.
    by_month = np.bincount(found.measured_time, found.log_density)
    assert np.allclose(found.log_likelihood, by_month, atol=1e-10)


def test_squares_written_out_are_filtered_exactly():
    model = hl.read_model(MODELS / "kalman-cycle.mln")
    graph = hl.ground(model, {"well": [f"w{i}" for i in range(6)]})
    names = graph.variables.names
    ids = np.concatenate([names.ids([f"x(w{i},0)" for i in range(6)]), names.predicate("o")[0]])
    value = np.random.default_rng(2).normal(5, 3, size=len(ids))
    graph = graph.observe(hl.Evidence.of(ids, value))

    found = hl.kalman_filter(graph, "month")

    exact = hl.infer(graph, hl.Exact())
    last = found.time == 19
    mean, var = moments(exact, found.ids[last])
    assert np.allclose(found.mean[last], mean, rtol=1e-10)
    assert np.allclose(found.var[last], var, rtol=1e-10)
    assert found.log_partition[-1] == pytest.approx(exact.log_partition.value, rel=1e-10)


def test_the_state_is_as_wide_as_one_month():
    found = hl.kalman_filter(wells(), "month")

    # Three wells, a trend and two seasons; and one real of the month before at a time.
    assert found.width == 7


def test_reals_that_only_a_joint_density_holds_are_born_together():
    cov = np.array([[2.0, 0.7, 0.1], [0.7, 1.0, -0.2], [0.1, -0.2, 0.5]])
    graph = hl.FactorGraph.build(
        dict.fromkeys(["a", "b", "c", "next", "seen"], hl.real),
        [
            (hl.ConditionalQuadratic.gaussian([1.0, -1.0, 2.0], cov), ["a", "b", "c"]),
            (hl.ConditionalQuadratic.linear_gaussian([1.0, 0.5, -1.0], 0.3), ["next", *"abc"]),
            (hl.ConditionalQuadratic.linear_gaussian([1.0, 1.0], 0.2), ["seen", "a", "c"]),
        ],
    ).observe({"seen": 2.0})

    found = hl.kalman_filter(graph, np.array([0, 0, 0, 1, 0]))

    exact = hl.infer(graph, hl.Exact())
    mean, var = moments(exact, found.ids)
    assert np.allclose(found.predicted_mean[:3], [1.0, -1.0, 2.0], atol=1e-12)
    assert np.allclose(found.predicted_var[:3], np.diag(cov), atol=1e-12)
    assert np.allclose(found.mean, mean, atol=1e-12)
    assert np.allclose(found.var, var, atol=1e-12)
    assert found.log_partition[-1] == pytest.approx(exact.log_partition.value, abs=1e-12)


def test_a_real_that_only_its_measurement_holds_begins_with_it():
    text = CHAIN.replace("normal(x(k) | 0, 2)  where k = 0", "")
    graph = observed(text, o={0: 3.0, 1: 4.0})

    found = hl.kalman_filter(graph, "t")

    assert found.mean[0] == pytest.approx(3.0)
    assert found.var[0] == pytest.approx(0.7)
    assert found.measured.tolist() == [graph.variables.names.id("o(1)")]
    exact = hl.infer(graph, hl.Exact())
    assert found.log_partition[-1] == pytest.approx(exact.log_partition.value, abs=1e-12)


@pytest.mark.parametrize("seed", range(20))
def test_random_quadratics_are_filtered_exactly(seed):
    rng = np.random.default_rng(seed)
    size = 12
    time = np.sort(rng.integers(-1, 4, size=size))
    factors = [(hl.ConditionalQuadratic.square(-1.5), [[f"v{i}"] for i in range(size)])]
    for _ in range(20):
        arity = rng.integers(1, 4)
        scope = [f"v{i}" for i in rng.choice(size, arity, replace=False)]
        A = rng.normal(size=(arity, arity)) * 0.1
        factors.append(
            (hl.ConditionalQuadratic.shared(A + A.T, rng.normal(size=arity), 0.3), scope)
        )
    graph = hl.FactorGraph.build({f"v{i}": hl.real for i in range(size)}, factors)
    graph = graph.observe({"v0": 0.5, "v7": -1.0, "v8": hl.Soft(0.3, 0.5)})

    found = hl.kalman_filter(graph, time)

    for at, last in enumerate(found.times):
        posterior = hl.infer(up_to(graph, time, last, last + 1), hl.Exact())
        own = (found.time == last) | ((found.time < 0) & (last == found.times[-1]))
        mean, var = moments(posterior, found.ids[own])
        assert np.allclose(found.mean[own], mean, atol=1e-10)
        assert np.allclose(found.var[own], var, atol=1e-10)
        assert found.log_partition[at] == pytest.approx(posterior.log_partition.value, abs=1e-9)


def test_squares_that_make_no_density_are_predicted_without_evidence():
    graph = observed(SQUARES, y={2: 1.0})
    time = times_of(graph.variables.names, "t")

    found = hl.kalman_filter(graph, "t")

    before = hl.infer(up_to(graph, time, 1, 2), hl.Exact())
    own = found.time == 1
    mean, var = moments(before, before.variables.names.ids(["x(1)", "y(1)"]))
    assert np.allclose(found.predicted_mean[own], mean, atol=1e-10)
    assert np.allclose(found.predicted_var[own], var, atol=1e-10)


def test_parameters_that_are_observed_reals_are_filtered_as_constants():
    levels = {0: 1.0, 1: -0.5, 4: 2.0, 7: 0.3}
    as_numbers = observed(CHAIN, o=levels)
    text = CHAIN.replace("0.8 *", "a() *").replace("0.5)", "q())").replace("0.7)", "r())")
    declared = "o(t): real\n a: real\n q: real[0, inf]\n r: real[0, inf]"
    model = hl.parse(text.replace("o(t): real", declared))
    seen = {f"o({k})": v for k, v in levels.items()}
    as_reals = hl.ground(model).observe({**seen, "a": 0.8, "q": 0.5, "r": 0.7})

    found, expected = hl.kalman_filter(as_reals, "t"), hl.kalman_filter(as_numbers, "t")

    assert np.allclose(found.mean, expected.mean, atol=1e-12)
    assert np.allclose(found.var, expected.var, rtol=1e-12)
    assert found.predictions()["atom"].to_pylist() == ["o(0)", "o(1)", "o(4)", "o(7)"]
    assert np.allclose(found.measured_mean, expected.measured_mean, atol=1e-12)
    assert np.allclose(found.measured_var, expected.measured_var, rtol=1e-12)
    assert np.allclose(found.log_likelihood, expected.log_likelihood, atol=1e-12)


def test_a_parameter_that_occurs_once_is_not_taken_for_a_measurement():
    graph = with_parameters()

    found = hl.kalman_filter(graph, "t")

    assert found.predictions()["atom"].to_pylist() == [
        "o(w0,0)", "o(w0,3)", "o(w1,1)", "o(w1,3)", "o(w1,4)",
    ]  # fmt: skip
