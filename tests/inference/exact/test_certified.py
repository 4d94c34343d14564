"""Exact inference against direct integration, sums over counts and filters on a grid."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import hylift as hl
from benchmarks.certified import truth
from benchmarks.certified.models import COUNTED, Hamilton, Regimes, Rooms, Sensors, Walk
from benchmarks.certified.truth import Apart
from inference.exact.certified import assert_certified


def test_sensors_of_rooms_are_as_integration_room_by_room():
    model = Sensors.drawn(num_sensors=120, num_rooms=4)

    assert_certified(model.graph(), truth.sensors(model))


@pytest.mark.slow
def test_a_thousand_sensors_are_as_integration_room_by_room():
    model = Sensors.drawn()

    assert_certified(model.graph(), truth.sensors(model))


@pytest.mark.parametrize("num_rooms", [3, 8, 30, pytest.param(1000, marks=pytest.mark.slow)])
def test_rooms_tied_to_each_other_are_as_a_sum_over_the_number_of_heated_ones(num_rooms):
    weight = truth.weight_for(num_rooms) if num_rooms > 3 else -0.5
    model, heated = Rooms(num_rooms, weight), 0.3 if num_rooms > 3 else 0.1902

    expected = truth.rooms(model)

    assert expected.probs["Heated"][0, 1] == pytest.approx(heated, abs=1e-4)
    assert_certified(model.graph(), expected)


@pytest.mark.parametrize("num_days", [6, 40, pytest.param(1000, marks=pytest.mark.slow)])
def test_a_level_in_regimes_is_as_forward_and_backward_on_a_grid(num_days):
    model = Regimes.drawn(num_days)

    assert_certified(model.graph(), truth.regimes(model))


@pytest.mark.parametrize("num_days", [10, 40, pytest.param(200, marks=pytest.mark.slow)])
def test_a_walk_with_faulty_sensors_is_as_forward_and_backward_on_a_grid(num_days):
    model = Walk.drawn(num_days)

    assert_certified(model.graph(), truth.walk(model))


def test_a_grid_of_half_the_spacing_changes_no_answer_of_the_filters():
    walk, regimes = Walk.drawn(40), Regimes.drawn(40)

    once = truth.walk(walk), truth.regimes(regimes)
    twice = truth.walk(walk, spacing=0.0625), truth.regimes(regimes, spacing=0.05)

    for coarse, fine in zip(once, twice, strict=True):
        assert coarse.log_z == pytest.approx(fine.log_z, abs=1e-11)
        np.testing.assert_allclose(coarse.std["level"], fine.std["level"], rtol=1e-10)


def test_switching_autoregression_of_gnp_has_the_published_likelihood(data_dir: Path):
    model = Hamilton.read(data_dir / "learning")
    expected = truth.hamilton(model)

    assert expected.log_z == pytest.approx(Hamilton.LOG_LIKELIHOOD, abs=1e-5)
    assert_certified(model.graph(), expected)


@pytest.mark.parametrize("alike", [True, False])
def test_copies_of_a_small_model_are_as_each_on_its_own(alike):
    model = Sensors.in_pairs(200, alike=alike)

    assert_certified(model.graph(), truth.copies(model))


@pytest.mark.filterwarnings("ignore:.*hard rules say that exactly one")
@pytest.mark.parametrize("name", COUNTED)
def test_the_default_counts_worlds_exactly(name):
    graph = hl.ground(hl.parse(COUNTED[name]))

    found = hl.infer(graph)

    apart = Apart.of(found, truth.counted(name).answer(graph))
    assert found.log_partition.kind == "exact"
    assert apart.log_z <= 1e-11
    assert apart.prob <= 1e-12
