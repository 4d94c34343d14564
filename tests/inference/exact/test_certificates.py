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
from inference.exact.certified import assert_certified
from tests.fine_grid import on_grid


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


def with_outliers(rng: np.random.Generator, sketch: Sketch) -> None:
    """A walk, with some readings sixty steps away."""
    x, sketch.reach = sketch.real(), 90.0
    sketch.normal((), (x,), [1.0], 0.0, 1.0)
    for day in range(20):
        after, broken = sketch.real(), sketch.discrete()
        sketch.normal((), (x, after), [-1.0, 1.0], 0.0, 1.0)
        sketch.table(np.array([0.0, -3.0]), broken)
        reading = 60.0 if day % 7 == 3 else rng.normal()
        sketch.normal((broken,), (after,), [[1.0], [0.0]], reading, [0.25, 1600.0])
        x = after


def with_jumps(rng: np.random.Generator, sketch: Sketch) -> None:
    """A walk whose steps are small or large."""
    x, sketch.reach = sketch.real(), 30.0
    sketch.normal((), (x,), [1.0], 0.0, 1.0)
    for _ in range(18):
        after, jumps = sketch.real(), sketch.discrete()
        sketch.table(np.array([0.0, -1.0]), jumps)
        sketch.normal((jumps,), (x, after), [-1.0, 1.0], 0.0, [0.05, 2.0])
        sketch.sensor(rng, after, rng.normal(0, 1.5), 0.5)
        x = after


def with_hard_chain(rng: np.random.Generator, sketch: Sketch) -> None:
    """One real beside a chain of categoricals with an impossible pair of states."""
    x, sketch.reach, before = sketch.real(), 30.0, None
    sketch.normal((), (x,), [1.0], 0.0, 4.0)
    for _ in range(20):
        state = sketch.discrete(3)
        slope = [[1.0], [1.0], [0.0]]
        sketch.normal((state,), (x,), slope, rng.normal(0, 2, 3), [0.3, 2.0, 20.0])
        if before is not None:
            log_table = rng.normal(size=(3, 3))
            log_table[1, 1] = -np.inf
            sketch.table(log_table, before, state)
        before = state


def in_a_cycle(rng: np.random.Generator, sketch: Sketch) -> None:
    """Reals in a ring, with three sensors each."""
    ring, sketch.reach = [sketch.real() for _ in range(6)], 11.0
    for x, after in zip(ring, [*ring[1:], ring[0]], strict=True):
        sketch.normal((), (x,), [1.0], 0.0, 2.0)
        sketch.normal((), (x, after), [1.0, -1.0], 0.0, 1.0)
        for _ in range(3):
            sketch.sensor(rng, x, rng.normal(0, 1.5), 1.0)


@pytest.mark.parametrize("draw", [with_outliers, with_jumps, with_hard_chain, in_a_cycle])
def test_outliers_jumps_impossible_states_and_cycles_are_as_on_a_fine_grid(draw):
    sketch = Sketch(1.0, 0.0)
    draw(np.random.default_rng(5), sketch)
    model = sketch.done()

    assert_certified(model.graph, on_grid(model.graph, model.low, model.high))
