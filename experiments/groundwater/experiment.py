"""All clusters studied side by side, and what comes of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import TypeVar

import numpy as np
from numba import get_num_threads

import hylift as hl
from experiments.groundwater import data, figures
from experiments.groundwater.cluster import RELATIONAL_SHARED, Cluster, study
from experiments.groundwater.data import Wells
from experiments.groundwater.filters.predictions import FIRST_HELD_OUT, Measurements
from experiments.groundwater.filters.tuning import Shrinkage, Tuning
from experiments.groundwater.findings import notes, rows, tables
from experiments.groundwater.model import IntArray, ground
from experiments.measure import in_turn, speed
from experiments.report import Outcome, Speed
from experiments.setting import Setting
from hylift.progress import Progress

Found = TypeVar("Found")

SEED = 0
NUM_SHARED_SHOWN = 4
SHARE_OF_TUNING, SHARE_OF_STUDY = 0.1, 0.95
"""Of the time, until the end of each; the rest is for how long methods take."""


def run(setting: Setting) -> Outcome:
    """Filters and smooths all wells, and scores predictions of months that were held out."""
    wells = data.generated(SEED) if setting.data is None else data.published(setting.data)
    chosen = shown_wells(wells)
    tuning = tuned(wells, setting.progress)
    clusters = studied(wells, np.array(list(chosen.values())), tuning.best, setting.progress)
    speeds, accuracy = _speeds(wells, clusters, setting)
    shown = {one.well: one for cluster in clusters for one in cluster.shown}
    busiest = sorted(clusters, key=lambda one: -len(one.measurements))[:NUM_SHARED_SHOWN]
    drawn = [(what, shown[well]) for what, well in chosen.items()]
    return Outcome(
        "Groundwater: a relational Kalman model of all wells",
        setting.source,
        rows(clusters),
        speeds,
        notes(clusters, tuning),
        accuracy,
        figures={
            "wells": lambda: figures.draw_wells(drawn),
            "scores": lambda: figures.draw_scores(clusters),
            "shared": lambda: figures.draw_shared(busiest),
        },
        tables=tables(clusters, tuning),
    )


def tuned(wells: Wells, progress: Progress) -> Tuning:
    """What each shrinkage is worth to wells on their own, over all clusters."""

    def of_cluster(number: int) -> Tuning:
        return Tuning.of(Measurements.of(wells.levels[wells.of_cluster(number)]))

    found = _by_cluster(wells, of_cluster, 1, lambda share, what: progress(
        SHARE_OF_TUNING * share, f"tuning, {what}"
    ))  # fmt: skip
    return Tuning.joined(found)


def studied(
    wells: Wells, shown: IntArray, shrinkage: Shrinkage, progress: Progress
) -> list[Cluster]:
    """All clusters; shown: wells to be drawn."""

    def of_cluster(number: int) -> Cluster:
        return study(wells, number, shown, shrinkage)

    part = SHARE_OF_STUDY - SHARE_OF_TUNING
    return _by_cluster(wells, of_cluster, 3, lambda share, what: progress(
        SHARE_OF_TUNING + part * share, what
    ))  # fmt: skip


def _by_cluster(
    wells: Wells, of_cluster: Callable[[int], Found], power: int, progress: Progress
) -> list[Found]:
    """What is found of each cluster, as many at a time as there are threads: how many makes no
    difference. power: that of the number of wells which the work grows with."""
    work = np.bincount(wells.cluster).astype(float) ** power
    found: dict[int, Found] = {}
    with ThreadPoolExecutor(get_num_threads()) as pool:
        # Those with much to do come first, so that none of them is left to one thread at the end.
        waiting = {pool.submit(of_cluster, int(k)): int(k) for k in np.argsort(-work)}
        for future in as_completed(waiting):
            found[waiting[future]] = future.result()
            share = sum(work[number] for number in found) / work.sum()
            progress(share, f"{len(found)} of {len(work)} clusters")
    return [found[number] for number in sorted(found)]


def shown_wells(wells: Wells) -> dict[str, int]:
    """Wells that differ in when they were measured, by what is special about them."""
    levels = wells.levels
    measured = ~np.isnan(levels)
    count, held_out = measured.sum(axis=1), measured[:, FIRST_HELD_OUT:].sum(axis=1)
    last = np.maximum.accumulate(np.where(measured, np.arange(levels.shape[1]), -1), axis=1)
    gap = np.where(measured[:, 1:] & (last[:, :-1] >= 0), 1 + np.arange(levels.shape[1] - 1), 0)
    gap = np.where(gap > 0, gap - last[:, :-1], 0).max(axis=1)
    jump = np.where(measured, np.abs(levels), 0)[:, FIRST_HELD_OUT:].max(axis=1)
    fair = (held_out >= 3) & (count >= held_out + 10)
    wanted = {
        "measured most often": np.where(held_out > 0, count, -1),
        "measured rarely": np.where(fair, -count, -np.inf),
        "a long gap": np.where(fair & (count >= 30), gap, -1),
        "farthest from its mean in the held-out years": jump,
    }
    found: dict[str, int] = {}
    for what, score in wanted.items():
        free = np.where(np.isin(np.arange(len(score)), list(found.values())), -np.inf, score)
        found[what] = int(np.argmax(free))
    return found


def _speeds(
    wells: Wells, clusters: Sequence[Cluster], setting: Setting
) -> tuple[tuple[Speed, ...], str]:
    """How long variational methods take on a small and a middling cluster whose wells share
    parameters; and a sentence on how near their answers come."""
    by_size = sorted(clusters, key=lambda one: len(one.wells))
    small, middling = by_size[0], by_size[len(by_size) // 2]
    speeds, remarks = [], []
    for method, cluster in ((hl.BVI(1), small), (hl.NPVI(3), small), (hl.BVI(1), middling)):
        name = f"cluster {cluster.number}"
        setting.progress(SHARE_OF_STUDY, f"{method.name} on {name}")
        graph = ground(wells.levels[cluster.wells], cluster.parameters[RELATIONAL_SHARED])
        runs = in_turn(graph, method, num_timed=setting.num_timed)
        speeds.append(speed(name, method.name, runs))
        comparison = hl.infer(graph, hl.Exact()).compare(runs["exact"].posterior)
        told = f"{comparison.mean_l1:.1e} and {comparison.mean_kl:.3g}"
        remarks.append(f"{told} by {method.name} on {name}")
    return tuple(speeds), (
        f"Mean distance of means and mean KL from the exact answer: {', '.join(remarks)}. Products "
        "of marginals cannot say how levels move together over 852 months, and are too sure of "
        "each: the figures above are of exact filters."
    )
