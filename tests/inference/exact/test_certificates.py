"""Models made to break a certificate: far modes, flat states, precise sensors, other units."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import norm

import hylift as hl
from benchmarks.certified.families import Sketch
from benchmarks.certified.models import QUICK_START, Sensors


def with_sensors(sketch: Sketch, x: int, readings: np.ndarray, var: tuple[float, float]) -> None:
    """Sensors that read x with one of two variances, the second with log-odds -1."""
    for reading in readings.tolist():
        broken = sketch.discrete()
        sketch.table(np.array([0.0, -1.0]), broken)
        sketch.normal((broken,), (x,), [[1.0], [1.0]], reading, var)


def log_integral(points: np.ndarray, log_density: np.ndarray) -> float:
    return float(logsumexp(log_density) + np.log(points[1] - points[0]))


def log_sensors(points: np.ndarray, readings: np.ndarray, var: tuple[float, float]) -> np.ndarray:
    total = np.zeros(len(points))
    for reading in readings:
        fine, wide = (norm.logpdf(reading, points, v**0.5) for v in var)
        total += np.logaddexp(fine, wide - 1.0)
    return total


@pytest.mark.parametrize("num_sensors", [4, 60])
def test_a_state_that_confines_nothing_is_refused_however_improbable(num_sensors):
    text = QUICK_START.replace("normal(temperature(r) | 20, 9)", "")
    sensors = Sensors.drawn(num_sensors, 2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # grounding says so as well
        graph = sensors.graph(text)

    with pytest.raises(hl.HyliftError, match="improper in 'temperature"):
        hl.infer(graph, hl.Exact())


@pytest.mark.parametrize("distance", [1e2, 1e4, 1e6, 1e9])
def test_a_far_mode_behind_one_of_many_states_is_not_missed(distance):
    sketch = Sketch(1.0, 0.0)
    x, which = sketch.real(), sketch.discrete(100)
    mean, weight = np.zeros(100), np.zeros(100)
    mean[57], weight[57] = distance, 30.0
    sketch.table(weight, which)
    sketch.normal((which,), (x,), [1.0], mean, 1.0)
    readings = np.random.default_rng(0).normal(0, 0.5, 20)
    var = (0.25, 100.0 + distance**2)
    with_sensors(sketch, x, readings, var)
    at = np.arange(-15, 15, 0.01)
    near, far = (
        log_integral(at, norm.logpdf(at, 0, 1) + log_sensors(at + shift, readings, var))
        for shift in (0.0, distance)
    )
    expected = np.logaddexp(np.log(99) + near, 30.0 + far)

    try:
        found = hl.infer(sketch.done().graph, hl.Exact())
    except hl.HyliftError:
        return  # too wide for a lattice: refused, not answered wrongly

    log_z = found.log_partition
    assert log_z.value == pytest.approx(expected, abs=max(1e-9, log_z.error))
    assert found.marginal("x1").prob("57") == pytest.approx(np.exp(30 + far - expected), abs=1e-9)


def test_sensors_of_very_different_precision_are_integrated_or_refused():
    sketch = Sketch(1.0, 0.0)
    x = sketch.real()
    sketch.normal((), (x,), [1.0], 0.0, 1e4)
    readings, var = np.arange(30) % 3 * 1.0, (1e-6, 10.0)
    with_sensors(sketch, x, readings, var)
    at = np.arange(-20.0, 22.0, 5e-5)
    expected = log_integral(at, norm.logpdf(at, 0, 100) + log_sensors(at, readings, var))

    try:
        found = hl.infer(sketch.done().graph, hl.Exact())
    except hl.HyliftError:
        return

    log_z = found.log_partition
    assert log_z.value == pytest.approx(expected, abs=max(1e-9, log_z.error))


@pytest.mark.parametrize(("unit", "origin"), [(1e-6, 0.0), (1e6, 0.0), (1.0, 1e4), (1e-3, 1.0)])
def test_units_and_origins_change_no_probability(unit, origin):
    probs = []
    for sketch in (Sketch(1.0, 0.0), Sketch(unit, origin)):
        x = sketch.real()
        sketch.normal((), (x,), [1.0], 0.0, 4.0)
        with_sensors(sketch, x, np.random.default_rng(1).normal(1, 1, 30), (0.3, 20.0))
        found = hl.infer(sketch.done().graph, hl.Exact())
        table = found.marginals()["probs"].to_pylist()
        probs.append([p[1] for p in table if p is not None])
        stated = found.log_partition.error

    # In other units numbers are rounded elsewhere: 1e4² eps / 0.3 in the worst case.
    np.testing.assert_allclose(probs[1], probs[0], atol=max(1e-10, stated))
