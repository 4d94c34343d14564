"""How well methods predict held-out months."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from experiments.groundwater.cluster import METHODS, Cluster
from experiments.groundwater.model import FloatArray, IntArray

NUM_WORST = 10
NOTHING = np.zeros(0, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class Score:
    """Of one method, over held-out measurements; log-densities are means per measurement."""

    count: int
    joint: float
    """Log-density of all measurements of a month together, given earlier months; NaN where wells
    are left out, which have a part in it."""
    each: float
    """Log-density of each measurement by itself, given earlier months."""
    median: float
    """Of the log-densities of each by itself; a few wild wells make no difference to it."""
    rmse: float
    inside: float
    """Share of measurements within their intervals of 90 %."""


def score(clusters: Sequence[Cluster], method: str, left_out: IntArray = NOTHING) -> Score:
    """Over all clusters, without some wells; NaN where nothing was held out."""
    found = [each.held_out[method] for each in clusters]
    kept = np.concatenate(
        [
            ~np.isin(cluster.wells[each.measurements.well], left_out)
            for cluster, each in zip(clusters, found, strict=True)
        ]
    )
    log_density = np.concatenate([each.log_density for each in found])[kept]
    if not len(log_density):
        return Score(0, *[float("nan")] * 5)
    error = np.concatenate([each.error for each in found])[kept]
    inside = np.concatenate([each.is_inside for each in found])[kept]
    joint = sum(each.joint for each in found) / len(log_density)
    return Score(
        len(log_density),
        float("nan") if len(left_out) else joint,
        float(log_density.mean()),
        float(np.median(log_density)),
        float(np.sqrt((error**2).mean())),
        float(inside.mean()),
    )


def by_cluster(
    clusters: Sequence[Cluster], method: str, left_out: IntArray = NOTHING
) -> FloatArray:
    """(cluster,): log-density per measurement, of months together or, where wells are left out, one
    by one; NaN where nothing was held out."""
    found = [score([each], method, left_out) for each in clusters]
    return np.array([one.each if len(left_out) else one.joint for one in found])


def won(
    clusters: Sequence[Cluster], one: str, other: str, left_out: IntArray = NOTHING
) -> tuple[int, int]:
    """In how many clusters a method is better than another, and of how many."""
    ours, theirs = (by_cluster(clusters, method, left_out) for method in (one, other))
    return int((ours > theirs).sum()), int(np.isfinite(ours).sum())


def by_well(cluster: Cluster, method: str) -> FloatArray:
    """(well of the cluster,): sum of the log-densities of its measurements, each by itself."""
    found = cluster.held_out[method]
    m = found.measurements
    return np.bincount(m.well, found.log_density, m.num_wells)


def worst_wells(clusters: Sequence[Cluster], count: int = NUM_WORST) -> IntArray:
    """Those with the least log-density by whichever method does worst; so that all methods are
    compared on the same wells without them."""
    wells = np.concatenate([each.wells for each in clusters])
    least = [
        np.min([by_well(each, method) for method in METHODS], axis=0) for each in clusters
    ]  # fmt: skip
    return wells[np.argsort(np.concatenate(least), kind="stable")[:count]]
