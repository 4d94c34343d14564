"""Table 3 of the paper: accuracy and times of methods on relational Kalman filters."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

import hylift as hl
from experiments.instances import Variant, kalman
from experiments.kalman.figures import draw_accuracy, draw_levels
from experiments.kalman.levels import known_levels, levels_of
from experiments.kalman.notes import accuracy, notes
from experiments.kalman.speeds import Timed, all_timed
from experiments.kalman.trials import Trial, all_trials, instance, rows, table
from experiments.report import Outcome
from experiments.setting import Setting

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLES: dict[kalman.Shape, str] = {
    "tree": "Relational Kalman filter, 76 wells on their own (Table 3, tree)",
    "cycle": "Relational Kalman filter, 6 wells that share water (Table 3, cycle)",
}


def run_tree(setting: Setting) -> Outcome:
    return _run(setting, "tree")


def run_cycle(setting: Setting) -> Outcome:
    return _run(setting, "cycle")


def _run(setting: Setting, shape: kalman.Shape) -> Outcome:
    trials, timings = _measure(setting, shape)
    measured = _measured_levels(setting, shape)
    shown = [levels_of(variant, found[0], measured) for variant, found in trials.items()]
    every = [row for variant, found in trials.items() for row in rows(shape, variant, found)]
    pictures: dict[str, Callable[[], Figure]] = {"levels": lambda: draw_levels(shown)}
    if "paper" in trials:
        of_paper = [row for row in every if row.instance == "paper variant"]
        pictures["accuracy"] = lambda: draw_accuracy(of_paper, setting.source)
    return Outcome(
        title=TITLES[shape],
        source=setting.source,
        rows=tuple(every),
        speeds=tuple(one.speed for one in timings),
        notes=tuple(notes(setting, shape, trials, shown[0])),
        accuracy=accuracy(every, trials),
        figures=pictures,
        tables={
            "trials": [line for variant, found in trials.items() for line in table(variant, found)],
            "levels": [line for levels in shown for line in levels.table()],
            "curves": [line for one in timings for line in one.curves()],
        },
    )


def _measure(
    setting: Setting, shape: kalman.Shape
) -> tuple[dict[Variant, list[Trial]], list[Timed]]:
    """All trials of each variant, and what lifting does to times."""
    total = 2 * len(setting.variants) + (shape == "tree")
    trials: dict[Variant, list[Trial]] = {}
    timings: list[Timed] = []
    for number, variant in enumerate(setting.variants):
        part = setting.part(f"{variant} variant", 2 * number, total)
        trials[variant] = all_trials(setting, shape, variant, part)
        part = setting.part(f"{variant} variant", 2 * number + 1, total)
        timings += all_timed(setting, shape, variant, part)
    if shape == "tree":
        variant = setting.variants[0]
        timings += all_timed(
            setting, "forest", variant, setting.part("all wells", total - 1, total)
        )
    return trials, timings


def _measured_levels(setting: Setting, shape: kalman.Shape) -> np.ndarray:
    """(well, month): what was measured, NaN where nothing was."""
    graph = instance(setting, shape, "clean", 0).graph
    return known_levels(hl.infer(graph, hl.Exact()))
