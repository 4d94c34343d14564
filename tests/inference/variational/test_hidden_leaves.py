"""Values that nobody observed do not mislead variational inference, and are answered themselves."""

from __future__ import annotations

import numpy as np
import pytest

import hylift as hl

SENSORS = """
    In(sensor, room)
    Faulty(sensor)
    reading(sensor): {domain}
    temperature(room): real
    -2  Faulty(s)
    normal(temperature(r) | 20, 9)
    In(s, r) * normal(reading(s) | 20*Faulty(s) + temperature(r)*!Faulty(s), 0.25 + 64*Faulty(s))
"""
METHODS = [hl.BVI(3), hl.MeanField()]


def network(readings: dict[str, float], domain: str = "real") -> hl.FactorGraph:
    places = {f"In(s{number}, r{number % 2})": True for number in range(6)}
    evidence = places | {f"reading({sensor})": value for sensor, value in readings.items()}
    return hl.ground(hl.parse(SENSORS.format(domain=domain)), evidence, closed=["In"])


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
@pytest.mark.parametrize("lift", ["exact", "none"])
def test_silent_sensors_are_as_likely_faulty_as_before(method, lift) -> None:
    graph = network({"s0": 21.5, "s1": 18.0})
    exact = hl.infer(graph, hl.Exact())

    found = hl.infer(graph, method, lift=lift)

    for sensor in ("s2", "s3", "s4", "s5"):
        expected = exact.marginal(f"Faulty({sensor})").prob("true")
        # One mixture is spread over two rooms, which costs a little; misled it would say 1.
        assert found.marginal(f"Faulty({sensor})").prob("true") == pytest.approx(expected, abs=0.01)


def test_marginals_of_what_was_integrated_out_are_right() -> None:
    graph = network({"s0": 21.5, "s1": 18.0})
    exact = hl.infer(graph, hl.Exact())

    found = hl.infer(graph, hl.BVI(3), tasks=("marginals", "logz", "map"))

    for sensor in ("s2", "s5"):
        one, other = (p.marginal(f"reading({sensor})") for p in (exact, found))
        assert other.mean == pytest.approx(one.mean, abs=0.01)
        assert other.var == pytest.approx(one.var, rel=0.01)
        levels = np.array([0.05, 0.25, 0.5, 0.75, 0.95])
        np.testing.assert_allclose(other.quantile(levels), one.quantile(levels), atol=0.05)
    assert found.map().energy == pytest.approx(exact.map().energy, abs=1e-6)
    assert found.mixture is not None
    assert len(found.mixture.hidden) == len(found.select())
    note = "4 reals that nothing else depends on, such as 'reading(s2)', were integrated out first."
    assert note in found.solution.notes


def test_bounds_that_do_not_matter_change_nothing_and_others_are_kept() -> None:
    wide = hl.infer(network({"s0": 21.5}, "real[-200, 200]"), hl.BVI(3))
    narrow = hl.infer(network({"s0": 21.5}, "real[15, 25]"), hl.BVI(3))

    assert any("integrated out" in note for note in wide.solution.notes)
    assert not any("integrated out" in note for note in narrow.solution.notes)
    assert narrow.marginal("reading(s2)").cdf(15.0) == pytest.approx(0.0, abs=1e-9)


def test_draws_and_joints_reach_what_was_integrated_out() -> None:
    found = hl.infer(network({"s0": 21.5, "s1": 18.0}), hl.BVI(3))

    draws = found.sample(20_000, seed=0, atoms=["reading(s2)", "temperature(r0)"])
    column = draws["reading(s2)"].to_numpy()

    marginal = found.marginal("reading(s2)")
    # A component has one Gaussian with the mean and the variance of its states.
    assert column.mean() == pytest.approx(marginal.mean, abs=0.1)
    assert column.std() == pytest.approx(marginal.std, rel=0.05)


def narrow_leaves(count: int, bound: float) -> hl.FactorGraph:
    """Reals around x, with standard deviation 1 given x and bounds."""
    quadratic = hl.ConditionalQuadratic
    names = [f"y{number}" for number in range(count)]
    return hl.FactorGraph.build(
        {"x": hl.real, **dict.fromkeys(names, hl.interval(-bound, bound))},
        [
            (quadratic.gaussian([0.0], [[1e-4]]), ["x"]),
            (quadratic.linear_gaussian([1.0], 1.0), [[name, "x"] for name in names]),
        ],
    )


def test_a_bound_on_log_z_is_called_so_only_where_no_mass_is_lost() -> None:
    near = hl.infer(narrow_leaves(200, 3.5), hl.MeanField())
    far = hl.infer(narrow_leaves(200, 50.0), hl.MeanField())

    assert near.log_partition.kind == "estimate"
    assert any("of its mass beyond, so log Z is an estimate" in n for n in near.solution.notes)
    assert far.log_partition.kind == "lower bound"
    assert far.log_partition.value == pytest.approx(0.0, abs=1e-9)


def test_betas_that_were_asked_for_stay() -> None:
    found = hl.infer(narrow_leaves(2, 3.5), hl.MeanField(reals="beta"))

    assert not any("integrated out" in note for note in found.solution.notes)
    assert found.marginal("y0").cdf(-3.5) == 0.0


def test_only_those_whose_bounds_matter_are_put_back() -> None:
    quadratic = hl.ConditionalQuadratic
    wide = [f"y{number}" for number in range(20)]
    graph = hl.FactorGraph.build(
        {"x": hl.real, "tight": hl.interval(-1, 1), **dict.fromkeys(wide, hl.interval(-500, 500))},
        [
            (quadratic.gaussian([0.0], [[1.0]]), ["x"]),
            (quadratic.linear_gaussian([1.0], 1.0), [[name, "x"] for name in [*wide, "tight"]]),
        ],
    )

    found = hl.infer(graph, hl.MeanField())

    assert any("20 reals that nothing else" in note for note in found.solution.notes)
    # Beside the one real that stays, x has a precision of 2.
    assert found.marginal("x").std == pytest.approx(0.7, abs=0.05)


def test_a_run_that_is_stopped_says_that_bounds_were_not_looked_after() -> None:
    found = hl.infer(narrow_leaves(3, 0.5), hl.BVI(2), callback=lambda step: True)

    assert found.solution.result == "stopped"
    assert found.log_partition.kind == "estimate"
    assert any("Ran out of time before enforcing the bounds of" in n for n in found.solution.notes)


def test_a_lifted_graph_is_trimmed_as_its_ground_graph_is() -> None:
    graph = network({"s0": 21.5, "s1": 18.0})
    lifted = hl.lift(graph).graph

    one, other = (hl.infer(g, hl.MeanField()) for g in (graph, lifted))

    assert other.log_partition.value == pytest.approx(one.log_partition.value, abs=1e-9)


def test_what_a_narrow_link_leaves_is_not_lost() -> None:
    quadratic = hl.ConditionalQuadratic
    link = quadratic.linear_gaussian([1.0], 1e-10)
    own = quadratic.shared([[0.0, 0.0], [0.0, -0.5]], [0.0, 0.0])
    both = quadratic(link.A + own.A, link.b + own.b, link.c)
    graph = hl.FactorGraph.build(
        {"y": hl.real, "x": hl.real},
        [(quadratic.gaussian([3.0], [[1.0]]), ["x"]), (both, ["y", "x"])],
    )

    assert hl.infer(graph, hl.MeanField()).marginal("x").mean == pytest.approx(1.5, rel=1e-4)
