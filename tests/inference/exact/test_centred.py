"""Gross outliers, precise sensors and large offsets: exact, with errors that are stated."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import hylift as hl
from benchmarks.certified.models import Sensors
from hylift.errors import IntractableError
from hylift.rewrite.centred import ByOrigin

READINGS = 20 + np.random.default_rng(0).normal(size=30)
"""Of one level, in deviations of 1."""


def level_graph(readings: np.ndarray, good: float, bad: float, mean: float = 20) -> hl.FactorGraph:
    model = hl.parse(f"""
        Faulty(sensor)
        level: real
        reading(sensor): real
        -3  Faulty(s)
        normal(level | {mean!r}, 9)
        normal(reading(s) | level, {good!r} + {bad - good!r}*Faulty(s))
    """)
    table = pa.table({"sensor": np.arange(len(readings)), "value": readings})
    return hl.ground(model, {"reading": table})


def direct(readings: np.ndarray, good: float, bad: float, mean: float = 20):
    """log Z, P(Faulty), and the mean of the level, by a fine sum in long doubles."""
    r, pi = readings.astype(np.longdouble) - mean, np.longdouble(np.pi)
    x = np.zeros(1, dtype=np.longdouble)

    def logs(x):
        off = (r - x[:, None]) ** 2 / 2
        return [p - off / v - np.log(2 * pi * v) / 2 for p, v in ((0, good), (-3, bad))]

    for _ in range(500):  # to the mode
        fine, wide = logs(x)
        share = np.exp(wide - np.logaddexp(fine, wide))
        precision = (1 - share) / np.longdouble(good) + share / np.longdouble(bad)
        x = (precision * r).sum(axis=1) / (precision.sum(axis=1) + np.longdouble(1) / 9)
    width = 1 / np.sqrt(precision.sum() + 1 / 9)
    x = x + np.arange(-40, 40, 0.02, dtype=np.longdouble) * width
    fine, wide = logs(x)
    total = np.logaddexp(fine, wide)
    log_p = total.sum(axis=1) - x**2 / 18 - np.log(2 * pi * 9) / 2 + np.log(0.02 * width)
    log_z = log_p.max() + np.log(np.exp(log_p - log_p.max()).sum())
    probs = np.exp(log_p - log_z)
    faulty = (np.exp(wide - total) * probs[:, None]).sum(axis=0)
    return float(log_z), faulty.astype(float), float(probs @ x) + mean, float(width)


def with_outlier(value: float) -> np.ndarray:
    return np.where(np.arange(30) == 3, value, READINGS)


@pytest.mark.parametrize(
    ("readings", "good", "bad"),
    [
        (with_outlier(1e3), 1.0, 100.0),
        (with_outlier(1e5), 1.0, 100.0),
        (with_outlier(2e6), 1.0, 100.0),
        (with_outlier(1e5), 1.0, 1e6),
        (20 + 1e-4 * (READINGS - 20), 1e-8, 1.0),
    ],
    ids=["far", "typed wrong", "off by a million", "typed wrong, wide", "precise"],
)
def test_outliers_and_precise_sensors_are_exact(readings, good, bad):
    log_z, faulty, mean, width = direct(readings, good, bad)

    found = hl.infer(level_graph(readings, good, bad), hl.Exact())

    assert found.log_partition.kind == "exact"
    assert found.solution.marginal_error <= 1e-9
    assert abs(found.log_partition.value - log_z) <= found.log_partition.error
    probs = [found.marginal(f"Faulty({s})").prob("true") for s in range(30)]
    np.testing.assert_allclose(probs, faulty, atol=1e-10)
    assert found.marginal("level").mean == pytest.approx(mean, abs=2e-5 * width)


def test_a_reading_far_from_all_others_is_bounded_by_smaller_cells():
    readings = np.where(np.arange(40) % 9 == 4, 1e5, np.resize(READINGS, 40))
    model = hl.parse("""
        Faulty(sensor)
        reading(sensor): real
        temperature: real
        -3  Faulty(s)
        normal(temperature | 20, 9)
        normal(reading(s) | 20*Faulty(s) + temperature*!Faulty(s), 0.25 + 100*Faulty(s))
    """)
    table = pa.table({"sensor": np.arange(40), "value": readings})
    x = np.arange(15, 25, 0.002, dtype=np.longdouble)[:, None]
    fine = -((readings - x) ** 2) / 0.5 - np.log(np.longdouble(0.5 * np.pi)) / 2
    wide = -3 - (readings - 20.0) ** 2 / 200.5 - np.log(np.longdouble(200.5 * np.pi)) / 2
    total = np.logaddexp(fine, wide)
    log_p = total.sum(axis=1) - (x[:, 0] - 20) ** 2 / 18 - np.log(18 * np.pi) / 2 + np.log(0.002)
    log_z = log_p.max() + np.log(np.exp(log_p - log_p.max()).sum())
    faulty = np.exp(wide - total).T @ np.exp(log_p - log_z)

    found = hl.infer(hl.ground(model, {"reading": table}))

    assert found.solution.method == "exact"
    assert found.log_partition.kind == "exact"
    assert abs(found.log_partition.value - float(log_z)) <= found.log_partition.error
    probs = [found.marginal(f"Faulty({s})").prob("true") for s in range(40)]
    np.testing.assert_allclose(probs, faulty.astype(float), atol=1e-10)


def test_what_cannot_be_bounded_is_refused_by_name():
    model = hl.parse("""
        Faulty(day)
        reading(day): real
        level(day): real
        -3  Faulty(t)
        normal(level(0) | 0, 100)
        normal(level(t+1) | level(t), 1)
        normal(reading(t) | level(t), 1 + 99*Faulty(t))
    """)
    readings = np.where(np.arange(40) == 7, 1e5, READINGS[np.arange(40) % 30] - 20)
    table = pa.table({"day": np.arange(40), "value": readings})

    with pytest.raises(IntractableError, match=r"'level\(\d+\)'.*readings far from all others"):
        hl.infer(hl.ground(model, {"reading": table}), hl.Exact())


def test_an_offset_costs_no_digits():
    far = READINGS + 1.7e9
    log_z, faulty, mean, width = direct(far, 1.0, 100.0, 1.7e9)

    found = hl.infer(level_graph(far, 1.0, 100.0, 1.7e9), hl.Exact())

    probs = [found.marginal(f"Faulty({s})").prob("true") for s in range(30)]
    np.testing.assert_allclose(probs, faulty, atol=1e-7)
    assert found.marginal("level").mean == pytest.approx(mean, abs=1e-6 * width)
    assert found.log_partition.kind == "exact"
    assert found.log_partition.value == pytest.approx(log_z, abs=1e-10)


def test_answers_about_centred_reals_are_in_the_units_of_the_user():
    graph = level_graph(with_outlier(1e5), 1.0, 100.0)

    found = hl.infer(graph, hl.Exact(), tasks=["marginals", "logz", "map"])

    best = found.map()
    assert best["Faulty(3)"] == "true"
    assert best["level"] == pytest.approx(found.marginal("level").mean, abs=2.0)
    assert best.energy == pytest.approx(found.energy(best), rel=1e-12)
    whole = np.zeros(len(graph.variables))
    whole[graph.evidence.variable] = graph.evidence.value
    whole[~found.observed] = best.values[~found.observed]
    assert best.energy == pytest.approx(-graph.log_density(whole), rel=1e-12)
    expected = found.expected_counts()["expected"].to_pylist()
    probs = [found.marginal(f"Faulty({s})").prob("true") for s in range(30)]
    assert expected[0] == pytest.approx(sum(probs), abs=1e-9)
    prior = -((found.marginal("level").mean - 20) ** 2 + found.marginal("level").var) / 18
    assert expected[1] == pytest.approx(prior - np.log(18 * np.pi) / 2, rel=1e-9)


def test_a_centred_graph_has_the_same_density():
    graph = level_graph(with_outlier(1e3), 1.0, 100.0)
    origin = np.zeros(graph.num_variables)
    level = graph.variables.id("level")
    origin[level] = 17.25
    values = np.random.default_rng(1).integers(0, 2, graph.num_variables).astype(float)
    values[level] = 21.5
    values[graph.evidence.variable] = graph.evidence.value
    by_origin = ByOrigin.of(graph)

    moved = by_origin.centred(origin)

    hidden = np.flatnonzero(graph.is_hidden)
    expected = graph.log_density(values)
    assert moved.log_density(values[hidden] - origin[hidden]) == pytest.approx(expected, rel=1e-13)
    at_zero, at_level = (by_origin.lost(o) for o in (np.zeros(len(origin)), origin))
    assert at_level.total < at_zero.total


@pytest.mark.parametrize("alike", [True, False])
def test_many_parts_are_exact_whether_or_not_they_look_alike(alike):
    found = hl.infer(Sensors.in_pairs(2_000, alike=alike).graph())

    assert found.log_partition.kind == "exact"
    assert found.log_partition.error <= 1e-9
    assert found.solution.marginal_error <= 1e-11
