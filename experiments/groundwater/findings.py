"""Rows, tables and notes of the clusters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from experiments.groundwater.cluster import (
    ALONE_OWN,
    METHODS,
    PAIRS,
    RELATIONAL_OWN,
    RELATIONAL_SHARED,
    Cluster,
    Shown,
)
from experiments.groundwater.filters.predictions import FIRST_HELD_OUT
from experiments.groundwater.filters.tuning import FIRST_VALIDATED, STRENGTHS, Tuning
from experiments.groundwater.model import IntArray
from experiments.groundwater.scores import (
    NOTHING,
    NUM_WORST,
    by_well,
    score,
    won,
    worst_wells,
)
from experiments.report import Row

LEVEL = 0.9
"""That of the intervals."""

ALL = "All held-out measurements, predicted a month ahead"
MOST = f"Without the {NUM_WORST} wells that are predicted worst"


def rows(clusters: Sequence[Cluster]) -> tuple[Row, ...]:
    """Of all held-out measurements, and of those of all wells but the worst."""
    worst = worst_wells(clusters)
    return (*_scored(clusters, ALL, NOTHING), *_scored(clusters, MOST, worst))


def _scored(clusters: Sequence[Cluster], instance: str, left_out: IntArray) -> list[Row]:
    found = []
    for pair in PAIRS:
        for method, other in (pair, pair[::-1]):
            one = score(clusters, method, left_out)
            joint = {} if len(left_out) else {"-log density, month by month": -one.joint}
            measures = joint | {
                "-log density, one by one": -one.each,
                "its median": -one.median,
                "RMSE": one.rmse,
                "coverage off 90 %": abs(one.inside - LEVEL),
                "clusters lost in the pair": float(won(clusters, other, method, left_out)[0]),
            }
            found += [Row(instance, method, None, name, value) for name, value in measures.items()]
    return found


def tables(clusters: Sequence[Cluster], tuning: Tuning) -> dict[str, list[dict[str, Any]]]:
    """A line per cluster, per well, per shrinkage, and the curves of the picture of wells."""
    return {
        "clusters": [_of_cluster(each) for each in clusters],
        "wells": [line for each in clusters for line in _of_wells(each)],
        "tuning": tuning.table(),
        "curves": [line for each in clusters for one in each.shown for line in _of_curves(one)],
    }


def notes(clusters: Sequence[Cluster], tuning: Tuning) -> tuple[str, ...]:
    """What there is to say, for the relational model and against it."""
    return (
        _about_measures(clusters),
        _about_methods(tuning),
        *_about_pairs(clusters),
        _about_all(clusters),
        _about_outliers(clusters),
        _about_intervals(clusters),
        _about_lifting(clusters),
        _about_agreement(clusters),
        _about_time(clusters),
    )


def _of_cluster(cluster: Cluster) -> dict[str, Any]:
    shared, own = (cluster.parameters[name] for name in (RELATIONAL_SHARED, RELATIONAL_OWN))
    line: dict[str, Any] = {
        "cluster": cluster.number,
        "wells": len(cluster.wells),
        "measurements": len(cluster.measurements),
        "held_out": int(cluster.measurements.is_held_out.sum()),
        **{name: float(getattr(shared, name)[0]) for name in "aqr"},
        **{name: getattr(shared, name) for name in "bsv"},
        **{f"own_{name}": getattr(own, name) for name in "bsv"},
        "hidden_variables": cluster.lifted.num_hidden,
        "classes": cluster.lifted.num_classes,
        "classes_without_values": cluster.lifted.num_centred,
    }
    for method in METHODS:
        found = asdict(score([cluster], method))
        del found["count"]
        line |= {_column(method, name): _or_none(value) for name, value in found.items()}
    return line


def _of_wells(cluster: Cluster) -> list[dict[str, Any]]:
    m, own = cluster.measurements, cluster.parameters[RELATIONAL_OWN]
    columns = {
        "well": cluster.wells,
        "cluster": np.full(m.num_wells, cluster.number),
        "measurements": np.bincount(m.well, minlength=m.num_wells),
        "held_out": _num_held_out(cluster),
        "a": own.a,
        "q": own.q,
        "r": own.r,
        **{_column(method, "log_density"): by_well(cluster, method) for method in METHODS},
    }
    values = zip(*(column.tolist() for column in columns.values()), strict=True)
    return [dict(zip(columns, each, strict=True)) for each in values]


def _of_curves(one: Shown) -> list[dict[str, Any]]:
    columns = {
        "measured": one.levels,
        "filtered_mean": one.filtered.mean,
        "filtered_sd": one.filtered.sd,
        "smoothed_mean": one.smoothed.mean,
        "smoothed_sd": one.smoothed.sd,
    }
    values = zip(*(column.tolist() for column in columns.values()), strict=True)
    return [
        {"well": one.well, "month": month}
        | {name: _or_none(value) for name, value in zip(columns, each, strict=True)}
        for month, each in enumerate(values)
    ]


def _column(method: str, name: str) -> str:
    return f"{method.removesuffix(' parameters').replace(', ', '_')}_{name}"


def _or_none(value: float) -> float | None:
    """Files have no number that is none."""
    return value if np.isfinite(value) else None


def _num_held_out(cluster: Cluster) -> IntArray:
    m = cluster.measurements
    return np.bincount(m.well[m.is_held_out], minlength=m.num_wells)


def _about_measures(clusters: Sequence[Cluster]) -> str:
    num_wells = sum(len(each.wells) for each in clusters)
    count = sum(len(each.measurements) for each in clusters)
    num_months = clusters[0].measurements.num_months
    held_out = score(clusters, RELATIONAL_OWN).count
    return (
        f"{num_wells:,} wells in {len(clusters)} clusters, {num_months} months, {count:,} "
        f"measurements ({count / num_wells / num_months:.1%}); missing months stay missing. "
        f"Parameters are fitted to months before {FIRST_HELD_OUT}, the {held_out:,} measurements "
        "since then are predicted a month ahead by filters that read on. -log density, per "
        "measurement: month by month, those of a month together given earlier months; one by one, "
        "each given earlier months. Coverage: the share of measurements in their intervals of "
        "90 %. Clusters lost: those in which the other method of the same pair has the higher "
        "log-density."
    )


def _about_methods(tuning: Tuning) -> str:
    best, each = tuning.best, tuning.log_density / max(tuning.count, 1)
    return (
        "Alone: a filter per well. Relational: the wells of a cluster have a trend and a season in "
        "common. Shared parameters: a, q and r are the same for all wells of a cluster, and all "
        "are fitted by maximum likelihood. Own parameters: a, q and r of each well alone are drawn "
        "towards those of its cluster, and the relational model takes them as they are and fits "
        "only its trend and season. How strongly they are drawn, and the least part of the "
        "cluster's variances that theirs may be, were tuned for the wells alone, one choice for "
        f"all clusters: fitted to months before {FIRST_VALIDATED} and scored on those up to "
        f"{FIRST_HELD_OUT - 1}, strength {best.strength:g} and a least part of {best.floor:g} came "
        f"out best ({each.max():.3f} per measurement; without a least part {each[:, 0].max():.3f} "
        f"at most, with strength {STRENGTHS[0]:g} {each[0].max():.3f}). The least part was thought "
        "of after filters without one had done badly on the held-out months."
    )


def _about_pairs(clusters: Sequence[Cluster]) -> list[str]:
    """What wells tell about each other: a sentence per pair."""
    found, worst = [], worst_wells(clusters)
    for alone, relational in PAIRS:
        ours, theirs = score(clusters, relational), score(clusters, alone)
        wins, count = won(clusters, relational, alone)
        rest, other = score(clusters, relational, worst), score(clusters, alone, worst)
        rest_wins, rest_count = won(clusters, relational, alone, worst)
        verdict = "raises" if ours.joint > theirs.joint else "lowers"
        found.append(
            f"With {alone.partition(', ')[2]}, what wells share {verdict} the log-density from "
            f"{theirs.joint:.3f} to {ours.joint:.3f} per measurement, in {wins} of {count} "
            f"clusters with held-out measurements; one by one from {theirs.each:.3f} to "
            f"{ours.each:.3f}, the median from {theirs.median:.3f} to {ours.median:.3f}, the RMSE "
            f"from {theirs.rmse:.3f} to {ours.rmse:.3f}. Without the {NUM_WORST} wells that are "
            f"predicted worst: one by one from {other.each:.3f} to {rest.each:.3f}, better in "
            f"{rest_wins} of {rest_count} clusters."
        )
    return found


def _about_all(clusters: Sequence[Cluster]) -> str:
    """Which of all methods is best, by each score."""
    found = {method: score(clusters, method) for method in METHODS}
    wanted = {
        "log-density month by month": {name: one.joint for name, one in found.items()},
        "log-density one by one": {name: one.each for name, one in found.items()},
        "the median": {name: one.median for name, one in found.items()},
        "RMSE": {name: -one.rmse for name, one in found.items()},
        "coverage": {name: -abs(one.inside - LEVEL) for name, one in found.items()},
    }
    best = [f"{what} '{max(each, key=lambda m: each[m])}'" for what, each in wanted.items()]
    wins, count = won(clusters, RELATIONAL_SHARED, ALONE_OWN)
    return (
        f"Best of all four: by {', by '.join(best)}. Across pairs, '{RELATIONAL_SHARED}' is better "
        f"than '{ALONE_OWN}' in {wins} of {count} clusters."
    )


def _about_outliers(clusters: Sequence[Cluster]) -> str:
    """How much of a total comes from the worst well."""
    parts = []
    for method in METHODS:
        sums = np.concatenate([by_well(each, method) for each in clusters])
        parts.append(f"{method} {sums.min() / sums.sum():.0%}")
    return f"Share of a method's worst well in its sum of log-densities: {'; '.join(parts)}."


def _about_intervals(clusters: Sequence[Cluster]) -> str:
    inside = {name: score(clusters, name).inside for name in METHODS}
    parts = [f"{name} {share:.1%}" for name, share in inside.items()]
    wide = (
        f" '{RELATIONAL_OWN}' is too cautious: the variances of wells alone, which it takes, hold "
        "also what the wells share."
        if inside[RELATIONAL_OWN] > max(inside[ALONE_OWN], LEVEL)
        else ""
    )
    return f"Held-out measurements in their intervals of 90 %: {'; '.join(parts)}.{wide}"


def _about_lifting(clusters: Sequence[Cluster]) -> str:
    hidden, classes, middle = (
        sum(getattr(each.lifted, name) for each in clusters)
        for name in ("num_hidden", "num_classes", "num_centred")
    )
    return (
        f"With shared parameters, exact lifting finds {classes:,} classes among {hidden:,} hidden "
        "variables (levels, trends, seasons): nearly every well has measurements of its own. "
        "Without their values, as for variances, wells measured in the same months are alike: "
        f"{middle:,} classes."
    )


def _about_agreement(clusters: Sequence[Cluster]) -> str:
    return (
        "Figures of relational methods are those of the library's filter. Largest relative "
        "difference in a mean, a variance or the log-density of a month to the filter that "
        f"parameters were fitted with: {max(each.difference for each in clusters):.1e}; between "
        "log Z of the filter and of exact inference: "
        f"{max(each.exact_difference for each in clusters):.1e}."
    )


def _about_time(clusters: Sequence[Cluster]) -> str:
    names = clusters[0].seconds
    parts = [f"{name} {sum(each.seconds[name] for each in clusters):.0f} s" for name in names]
    return f"Time of the threads that share the clusters, in sum: {', '.join(parts)}."
