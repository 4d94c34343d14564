"""Records of random models, and errors stated from them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from benchmarks.families import records
from benchmarks.families.calibration import FLOORS, Calibration, Scores, multiplier, scores
from tests import oracle


def drawn(rng, models=400, size=5, scale=1.0):
    """Scores of normal errors with known deviations, those of each model correlated."""
    error = np.exp(rng.normal(0, 1, (models, size)))
    common = rng.normal(0, 1, (models, 1))
    off = scale * error * np.abs(0.8 * common + 0.6 * rng.normal(0, 1, (models, size)))
    model = np.repeat(np.arange(models), size)
    return Scores(model, off.reshape(-1), np.zeros(models * size), 2 * error.reshape(-1))


def test_a_multiplier_covers_all_variables_of_95_percent_of_new_models():
    rng = np.random.default_rng(0)
    shares = [drawn(rng).covered(multiplier([drawn(rng, 100)])) for _ in range(200)]

    variables, models = np.mean(shares, axis=0)

    assert models == pytest.approx(0.95, abs=0.01)
    assert variables > models


def test_few_models_give_no_finite_multiplier():
    assert multiplier([drawn(np.random.default_rng(0), models=18)]) == np.inf
    assert np.isfinite(multiplier([drawn(np.random.default_rng(0), models=19)]))


def test_a_family_is_measured_with_multipliers_of_the_others():
    rng = np.random.default_rng(1)
    found = {"easy": {"prob": drawn(rng)}, "hard": {"prob": drawn(rng, scale=10.0)}}
    calibration = Calibration(found, found)

    assert calibration.multipliers("hard")["prob"] < 0.2 * calibration.multipliers("easy")["prob"]


def test_scores_are_largest_over_states_and_in_deviations_of_reals():
    table = pa.table({
        "seed": [7, 7, 7, 7],
        "variable": [0, 0, 0, 1],
        "is_real": [False, False, False, True],
        "exact": [0.5, 0.3, 0.2, 1.0],
        "exact_std": [np.nan, np.nan, np.nan, 2.0],
        "flat": [0.5, 0.35, 0.15, 1.5],
        "flat_std": [np.nan, np.nan, np.nan, 2.5],
        "flat_error": [0.01, 0.01, 0.01, 0.5],
        "flat_std_error": [np.nan, np.nan, np.nan, 0.001],
        "ep": [0.6, 0.3, 0.1, 2.0],
        "ep_std": [np.nan, np.nan, np.nan, 1.0],
        "ep_result": ["converged"] * 4,
    })  # fmt: skip

    flat, joint = scores(table, "flat"), scores(table, "ep")

    np.testing.assert_allclose(flat["prob"].error, [0.05])
    np.testing.assert_allclose(flat["prob"].score, [0.02])
    np.testing.assert_allclose(flat["mean"].error, [0.25])
    np.testing.assert_allclose(flat["mean"].score, [0.4])
    np.testing.assert_allclose(flat["std"].error, [np.log(1.25)])
    np.testing.assert_allclose(flat["std"].score, [FLOORS["std"]])
    np.testing.assert_allclose(joint["prob"].gap, [0.1])
    np.testing.assert_allclose(joint["mean"].gap, [0.5])
    np.testing.assert_allclose(joint["std"].gap, [np.log(2.5)])


def test_runs_that_failed_count_as_infinite_errors():
    numbers = {
        name: [0.5, None] for name in ("flat", "flat_std", "flat_error", "flat_std_error", "ep")
    }
    table = pa.table({
        "seed": [7, 8], "variable": [0, 0], "is_real": [False, False],
        "exact": [0.5, 0.5], "exact_std": [np.nan, np.nan], "ep_std": [np.nan, np.nan],
        "ep_result": ["converged", None], "flat_result": ["converged", None], **numbers,
    })  # fmt: skip

    found = Calibration.of({"some": table})

    np.testing.assert_array_equal(found.flat["some"]["prob"].ratio(), [0.0, np.inf])
    np.testing.assert_array_equal(found.joint["some"]["prob"].ratio(), [0.0])


def test_records_hold_the_exact_answer_and_are_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(records, "AT_ONCE", 1)
    records.collect(tmp_path, 1, ("couplings",))
    before = records.read(tmp_path, "smc")["couplings"]
    first = before.filter(np.asarray(before["seed"]) == records.FIRST)
    truth = oracle.solve(records.written("couplings", records.FIRST).graph())

    monkeypatch.setattr(records, "recorded", None)  # would fail if it were called
    records.collect(tmp_path, 1, ("couplings",))

    probs = np.concatenate([truth.probs[v] for v in sorted(truth.probs)])
    is_real = np.asarray(first["is_real"])
    np.testing.assert_allclose(np.asarray(first["exact"])[~is_real], probs, atol=1e-9)
    assert records.read(tmp_path, "smc")["couplings"].num_rows == before.num_rows
