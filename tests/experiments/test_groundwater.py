"""The relational model of all wells, its filters, and what is said about them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numba
import numpy as np
import pyarrow as pa
import pytest

import hylift as hl
from experiments.groundwater import data, experiment, figures, findings
from experiments.groundwater.cluster import (
    ALONE_SHARED,
    METHODS,
    PAIRS,
    RELATIONAL_OWN,
    RELATIONAL_SHARED,
    Cluster,
    study,
)
from experiments.groundwater.data import Wells
from experiments.groundwater.filters import fit
from experiments.groundwater.filters.predictions import FIRST_HELD_OUT, Measurements
from experiments.groundwater.filters.search import highest
from experiments.groundwater.filters.tuning import FLOORS, STRENGTHS, Shrinkage, Tuning
from experiments.groundwater.model import MONTHS_OF_YEAR, Parameters, ground
from experiments.groundwater.scores import by_cluster, by_well, score, won, worst_wells
from hylift.progress import silent

PARAMETERS = Parameters(
    a=np.array([0.9, 0.5, 0.8, 0.99, 0.7]),
    q=np.array([0.4, 1.0, 0.2, 0.6, 0.1]),
    r=np.array([1.5, 1.0, 0.3, 2.0, 0.7]),
    b=0.7,
    s=0.8,
    v=0.6,
)
FREE = np.array([2.0, -0.5, 0.3])
SHRINKAGE = Shrinkage(strength=4.0, floor=0.1)
NONE = np.zeros(0, np.int64)

ALONE_MODEL = """
    x(well, month): real
    o(well, month): real
    Measured(well, month)
    normal(x(w, t) | 0, {q}/(1 - {a}^2))  where t = 0
    normal(x(w, t+1) | {a} * x(w, t), {q})
    normal(o(w, t) | x(w, t), {r})  where Measured(w, t)
"""


def levels(num_wells: int = 5, num_months: int = 30, share: float = 0.4) -> np.ndarray:
    """(well, month): at random, with gaps; nothing in the first months, and nothing in a well."""
    rng = np.random.default_rng(3)
    found = rng.normal(0, 2, (num_wells, num_months))
    found[rng.random(found.shape) > share] = np.nan
    found[:, :4] = np.nan
    found[1] = np.nan
    return found


def covariance(measurements: Measurements, p: Parameters) -> np.ndarray:
    """(measurement, measurement): what the model says about all of them."""
    m = measurements
    apart = np.abs(m.month[:, None] - m.month)
    same_well = m.well[:, None] == m.well
    left = p.a[m.well]
    return (
        same_well * p.q[m.well] / (1 - left**2) * left**apart
        + p.s / (1 - p.b**2) * p.b**apart
        + p.v * (apart % MONTHS_OF_YEAR == 0)
        + np.diag(p.r[m.well])
    )


def log_normal(value: np.ndarray, cov: np.ndarray) -> float:
    _, log_det = np.linalg.slogdet(2 * np.pi * cov)
    return -0.5 * float(log_det + value @ np.linalg.solve(cov, value))


@pytest.fixture(scope="module")
def wells() -> Wells:
    return data.generated(1, num_wells=40, num_clusters=3)


@pytest.fixture(scope="module")
def clusters(wells: Wells) -> list[Cluster]:
    return experiment.studied(wells, np.array([0, 39]), SHRINKAGE, silent)


@pytest.fixture(scope="module")
def tuning(wells: Wells) -> Tuning:
    return experiment.tuned(wells, silent)


def test_the_compiled_filter_has_the_density_of_the_joint_normal() -> None:
    measurements = Measurements.of(levels())

    found = fit.together(measurements, PARAMETERS)

    cov = covariance(measurements, PARAMETERS)
    assert found.joint == pytest.approx(log_normal(measurements.value, cov), abs=1e-10)


def test_the_compiled_filter_predicts_each_measurement_from_earlier_months() -> None:
    m = Measurements.of(levels())
    cov = covariance(m, PARAMETERS)

    found = fit.together(m, PARAMETERS)

    for k in range(len(m)):
        past = m.month < m.month[k]
        weight = np.linalg.solve(cov[np.ix_(past, past)], cov[past, k])
        assert found.mean[k] == pytest.approx(weight @ m.value[past], abs=1e-10)
        assert found.var[k] == pytest.approx(cov[k, k] - weight @ cov[past, k], abs=1e-10)


def test_the_compiled_filter_the_filter_of_the_library_and_exact_inference_agree() -> None:
    measured = levels()
    graph = ground(measured, PARAMETERS)

    ours = fit.together(Measurements.of(measured), PARAMETERS)
    filtered = hl.kalman_filter(graph, "month")
    exact = hl.infer(graph, hl.Exact())

    np.testing.assert_allclose(filtered.measured_mean, ours.mean, atol=1e-10)
    np.testing.assert_allclose(filtered.measured_var, ours.var, atol=1e-10)
    np.testing.assert_allclose(filtered.log_likelihood, ours.by_month, atol=1e-10)
    assert exact.log_partition.value == pytest.approx(ours.joint, abs=1e-8)


def test_the_filter_of_single_wells_agrees_with_the_library() -> None:
    measured = levels()
    m = Measurements.of(measured)
    a = 0.5 + 0.4999 / (1 + np.exp(-FREE[0]))
    q, r = np.exp(FREE[1:])
    evidence = {
        "well": list(range(m.num_wells)),
        "month": list(range(m.num_months)),
        "Measured": pa.table({"well": m.well, "month": m.month}),
        "o": pa.table({"well": m.well, "month": m.month, "value": m.value}),
    }
    graph = hl.ground(hl.parse(ALONE_MODEL.format(a=a, q=q, r=r)), evidence, closed=["Measured"])

    ours = fit.alone(m, FREE)
    filtered = hl.kalman_filter(graph, "month")

    np.testing.assert_allclose(filtered.measured_mean, ours.mean, atol=1e-10)
    np.testing.assert_allclose(filtered.measured_var, ours.var, atol=1e-10)
    np.testing.assert_allclose(filtered.log_likelihood, ours.by_month, atol=1e-10)


def test_wells_that_share_next_to_nothing_are_wells_on_their_own() -> None:
    m = Measurements.of(levels())
    a = 0.5 + 0.4999 / (1 + np.exp(-FREE[0]))
    q, r = np.exp(FREE[1:])

    together = fit.together(m, Parameters.equal(m.num_wells, a, q, r, 0.5, 0.0, 0.0))

    alone = fit.alone(m, FREE)
    np.testing.assert_allclose(together.mean, alone.mean, atol=1e-10)
    np.testing.assert_allclose(together.by_month, alone.by_month, atol=1e-10)


def test_readings_of_shown_wells_change_nothing_but_what_is_shown() -> None:
    measured = levels()

    plain = hl.kalman_filter(ground(measured, PARAMETERS), "month")
    shown = hl.kalman_filter(ground(measured, PARAMETERS, np.array([2])), "month")

    assert len(shown.ids) == len(plain.ids) + measured.shape[1]
    np.testing.assert_allclose(shown.log_likelihood, plain.log_likelihood, atol=1e-10)


def test_the_search_finds_the_highest_likelihood() -> None:
    """Of a mean and a log-variance, which are known in closed form, in two sets at once."""
    value = np.random.default_rng(0).normal(3, 2, 60)
    owner = np.repeat([0, 1], 30)

    free, height = highest(
        lambda free: (value - free[owner, 0], np.exp(free[owner, 1])),
        owner,
        np.zeros((2, 2)),
        ((-10.0, 10.0), (-5.0, 5.0)),
    )

    halves = value.reshape(2, 30)
    # A search ends when a step gains less than 1e-5; it is quadratic at the end.
    np.testing.assert_allclose(free[:, 0], halves.mean(axis=1), atol=1e-4)
    np.testing.assert_allclose(free[:, 1], np.log(halves.var(axis=1)), atol=1e-4)
    best = -0.5 * 30 * (np.log(2 * np.pi * halves.var(axis=1)) + 1)
    np.testing.assert_allclose(height, best, atol=1e-5)  # as above


def test_the_search_stays_within_its_box() -> None:
    value = np.random.default_rng(0).normal(3, 2, 60)

    free, _ = highest(
        lambda free: (value - free[0, 0], np.full(60, np.exp(free[0, 1]))),
        np.zeros(60, np.int64),
        np.zeros((1, 2)),
        ((-1.0, 1.0), (-5.0, 5.0)),
    )

    assert free[0, 0] == 1.0
    variance = ((value - 1) ** 2).mean()
    assert free[0, 1] == pytest.approx(np.log(variance), abs=1e-4)  # a step gains less than 1e-5


def test_fitted_parameters_are_more_likely_than_others(wells: Wells) -> None:
    m = Measurements.of(wells.levels[wells.of_cluster(0)])
    shared = fit.fit_shared(m)
    own = fit.fit_own(m, shared, 4.0)

    equal, common = fit.fit_together(m, shared)
    own_common = fit.fit_common(m, own, common)

    every = np.tile(equal, (m.num_wells, 1))
    fitted = fit.together(m, fit.parameters(every, common)).joint
    for step in 0.05 * np.eye(3):
        assert fit.together(m, fit.parameters(every + step, common)).joint < fitted
        assert fit.together(m, fit.parameters(every, common - step)).joint < fitted
    assert fitted > fit.alone(m, shared).joint
    assert fit.together(m, fit.parameters(own, own_common)).joint > fit.alone(m, own).joint


def test_own_parameters_fit_better_the_less_they_are_drawn_together(wells: Wells) -> None:
    m = Measurements.of(wells.levels[wells.of_cluster(1)])
    shared = fit.fit_shared(m)

    own, shrunk, tight = (fit.fit_own(m, shared, strength) for strength in (0.0, 1.0, 1e6))

    joint = [fit.alone(m, free).joint for free in (own, shrunk, shared)]
    assert joint == sorted(joint, reverse=True)
    np.testing.assert_allclose(tight, np.tile(shared, (m.num_wells, 1)), atol=1e-3)  # a penalty


def test_a_floor_keeps_variances_near_those_of_the_cluster_and_leaves_the_rest() -> None:
    wells = np.array([[1.0, -5.0, 2.0], [-1.0, 0.5, -9.0]])

    found = fit.floored(wells, np.zeros(3), 0.1)

    least = np.log(0.1)
    np.testing.assert_allclose(found, [[1.0, least, 2.0], [-1.0, 0.5, least]])
    np.testing.assert_array_equal(fit.floored(wells, np.zeros(3), 0.0), wells)


def test_shrinkage_is_tuned_without_a_look_at_held_out_months(wells: Wells, tuning: Tuning) -> None:
    changed = wells.levels.copy()
    changed[:, FIRST_HELD_OUT:] += 5.0

    other = experiment.tuned(replace(wells, levels=changed), silent)

    np.testing.assert_array_equal(other.log_density, tuning.log_density)
    best = max(tuning.table(), key=lambda line: line["log_density"])
    assert (best["strength"], best["floor"]) == (tuning.best.strength, tuning.best.floor)
    assert len(tuning.table()) == len(STRENGTHS) * len(FLOORS)


def test_generated_wells_are_of_the_kind_and_size_of_the_published() -> None:
    found = data.generated(0)

    measured = ~np.isnan(found.levels)
    assert found.levels.shape == (3420, 852)
    assert found.num_clusters == 50
    assert np.bincount(found.cluster).min() >= data.FEWEST_WELLS
    assert 0.05 < measured.mean() < 0.08
    assert measured[:, FIRST_HELD_OUT:].any(axis=1).mean() > 0.2


def test_published_wells_are_read_with_missing_months_left_missing(data_dir: Path) -> None:
    found = data.published(data_dir)

    assert found.levels.shape == (3420, 852)
    assert np.count_nonzero(~np.isnan(found.levels)) == 178_862
    assert np.bincount(found.cluster, minlength=50).min() == 11
    assert np.nanmax(np.abs(found.levels)) < 200


def test_the_library_and_the_fit_agree_on_a_published_cluster(data_dir: Path) -> None:
    found = data.published(data_dir)
    smallest = int(np.bincount(found.cluster).argmin())

    (cluster,) = experiment.studied(
        Wells(found.levels[found.of_cluster(smallest)], np.zeros(11, np.int64)),
        NONE,
        SHRINKAGE,
        silent,
    )

    assert cluster.difference < 1e-9
    assert cluster.exact_difference < 1e-9
    assert cluster.lifted.num_hidden == 12 * 852 + 12


def test_the_relational_model_predicts_wells_that_follow_it_better_than_wells_alone(
    clusters: list[Cluster],
) -> None:
    found = {method: score(clusters, method) for method in METHODS}

    for alone, relational in PAIRS:
        assert found[relational].joint > found[alone].joint
        assert found[relational].rmse < found[alone].rmse
    inside = found[RELATIONAL_SHARED].inside
    assert inside == pytest.approx(0.9, abs=0.04)  # a share of some hundreds


def test_filtered_levels_are_less_sure_than_smoothed_ones(clusters: list[Cluster]) -> None:
    shown = [one for cluster in clusters for one in cluster.shown]

    assert [one.well for one in shown] == [0, 39]
    for one in shown:
        assert (one.smoothed.sd <= one.filtered.sd + 1e-9).all()
        assert one.smoothed.mean[-1] == pytest.approx(one.filtered.mean[-1], abs=1e-8)
        assert one.smoothed.sd[-1] == pytest.approx(one.filtered.sd[-1], abs=1e-8)


def test_held_out_months_make_no_difference_to_parameters(
    wells: Wells, clusters: list[Cluster]
) -> None:
    changed = wells.levels.copy()
    changed[:, FIRST_HELD_OUT:] += 5.0

    other = study(replace(wells, levels=changed), 2, NONE, SHRINKAGE)

    assert_same_parameters(other, clusters[2])


def test_threads_make_no_difference(wells: Wells, clusters: list[Cluster], threads: None) -> None:
    numba.set_num_threads(1)

    found = experiment.studied(wells, np.array([0, 39]), SHRINKAGE, silent)

    for one, other in zip(found, clusters, strict=True):
        assert_same_parameters(one, other)
    assert score(found, RELATIONAL_OWN) == score(clusters, RELATIONAL_OWN)


def test_the_relational_model_takes_the_wells_parameters_as_they_are_alone(
    wells: Wells, clusters: list[Cluster]
) -> None:
    m = clusters[0].measurements
    training = m.take(~m.is_held_out)

    free = SHRINKAGE.fit(training, fit.fit_shared(training))

    own = clusters[0].parameters[RELATIONAL_OWN]
    np.testing.assert_allclose(np.log(own.q), free[:, 1], atol=1e-10)
    np.testing.assert_allclose(np.log(own.r), free[:, 2], atol=1e-10)


def assert_same_parameters(one: Cluster, other: Cluster) -> None:
    for method in (RELATIONAL_SHARED, RELATIONAL_OWN):
        for name in "aqrbsv":
            left, right = (getattr(each.parameters[method], name) for each in (one, other))
            np.testing.assert_array_equal(left, right)


def test_tables_have_a_line_per_cluster_and_per_well(
    clusters: list[Cluster], tuning: Tuning
) -> None:
    found = findings.tables(clusters, tuning)

    assert [line["cluster"] for line in found["clusters"]] == [0, 1, 2]
    assert [line["well"] for line in found["wells"]] == list(range(40))
    each = [line["relational_own_log_density"] for line in found["wells"]]
    one = score(clusters, RELATIONAL_OWN)
    assert sum(each) == pytest.approx(one.each * one.count)
    assert len(found["curves"]) == 2 * 852


def test_rows_compare_within_pairs(clusters: list[Cluster]) -> None:
    found = {(row.instance, row.method, row.measure): row.value for row in findings.rows(clusters)}

    for instance in (findings.ALL, findings.MOST):
        for pair in PAIRS:
            lost = [found[instance, method, "clusters lost in the pair"] for method in pair]
            assert sum(lost) == 3
    for method in METHODS:
        month = found[findings.ALL, method, "-log density, month by month"]
        assert month == pytest.approx(-score(clusters, method).joint)
        assert (findings.MOST, method, "-log density, month by month") not in found


def test_the_worst_wells_are_left_out_of_all_methods_alike(clusters: list[Cluster]) -> None:
    worst = worst_wells(clusters, 2)

    sums = {method: np.concatenate([by_well(each, method) for each in clusters])
            for method in METHODS}  # fmt: skip
    least = np.min(list(sums.values()), axis=0)
    assert set(worst) == set(np.argsort(least)[:2])
    for method in METHODS:
        rest = score(clusters, method, worst)
        kept = np.setdiff1d(np.arange(40), worst)
        assert rest.each * rest.count == pytest.approx(sums[method][kept].sum())


def test_notes_count_the_clusters_that_were_won(clusters: list[Cluster], tuning: Tuning) -> None:
    said = " ".join(findings.notes(clusters, tuning))

    wins, _ = won(clusters, RELATIONAL_SHARED, ALONE_SHARED)
    assert "With shared parameters, what wells share raises the log-density" in said
    assert f"in {wins} of 3 clusters with held-out" in said
    assert "40 wells in 3 clusters, 852 months" in said
    assert f"strength {tuning.best.strength:g} and" in said


def test_a_cluster_without_held_out_measurements_is_left_out_of_scores(
    clusters: list[Cluster], tuning: Tuning
) -> None:
    cut = {
        method: replace(
            found,
            mean=found.mean[:0],
            var=found.var[:0],
            by_month=found.by_month * 0,
            measurements=found.measurements.take(found.mean == np.inf),
        )
        for method, found in clusters[0].held_out.items()
    }
    some = [replace(clusters[0], held_out=cut), *clusters[1:]]

    assert np.isnan(by_cluster(some, RELATIONAL_OWN)[0])
    assert "of 2 clusters with held-out" in " ".join(findings.notes(some, tuning))
    assert findings.tables(some, tuning)["clusters"][0]["relational_own_joint"] is None
    assert len(figures.draw_scores(some).axes[0].get_xticks()) == 2


def test_pictures_show_wells_scores_and_what_is_shared(clusters: list[Cluster]) -> None:
    shown = [("one of them", one) for cluster in clusters for one in cluster.shown]

    drawn = figures.draw_wells(shown)
    scores = figures.draw_scores(clusters)
    shared = figures.draw_shared(clusters[:2])

    titles = [ax.get_title(loc="left") for ax in drawn.axes]
    assert titles == [f"Well {one.well} of cluster {one.cluster}: {what}" for what, one in shown]
    assert [len(ax.get_xticks()) for ax in scores.axes] == [3, 3]
    assert len(shared.axes) == 4


def test_shown_wells_differ_from_each_other(wells: Wells) -> None:
    found = experiment.shown_wells(wells)

    assert len(set(found.values())) == 4
    count = (~np.isnan(wells.levels)).sum(axis=1)
    assert count[found["measured most often"]] > count[found["measured rarely"]]
