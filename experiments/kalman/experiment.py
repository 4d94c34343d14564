"""Table 3 of the paper: accuracy and times of methods on relational Kalman filters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

import hylift as hl
from experiments.instances import Variant, kalman
from experiments.kalman.figures import draw_accuracy, draw_levels
from experiments.kalman.levels import Levels, known_levels, levels_of
from experiments.kalman.reference import compare_answers
from experiments.kalman.speeds import speeds
from experiments.kalman.trials import (
    Trial,
    all_trials,
    components,
    figures,
    instance,
    name,
    num_diverged,
    rows,
    table,
    variances,
)
from experiments.report import Outcome, Speed
from experiments.setting import Setting
from hylift.words import counted

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
    notes = [_on_evidence(setting, shown[0])]
    notes += [note for variant, found in trials.items() for note in _on_answers(variant, found)]
    if "paper" in trials and setting.data is not None:
        notes.append(compare_answers(setting.data, shape, trials["paper"]))
    notes.append(
        "With one component the best mixture of a Gaussian model is a linear system, solved "
        "without steps; with several, components are placed around its means, and variables that "
        "differ in their means alone are one class."
    )
    pictures: dict[str, Callable[[], Figure]] = {"levels": lambda: draw_levels(shown)}
    if "paper" in trials:
        of_paper = [row for row in every if row.instance == "paper variant"]
        pictures["accuracy"] = lambda: draw_accuracy(of_paper, setting.source)
    return Outcome(
        TITLES[shape],
        setting.source,
        tuple(every),
        tuple(timings),
        tuple(notes),
        pictures,
        {
            "trials": [line for variant, found in trials.items() for line in table(variant, found)],
            "levels": [line for levels in shown for line in levels.table()],
        },
    )


def _measure(
    setting: Setting, shape: kalman.Shape
) -> tuple[dict[Variant, list[Trial]], list[Speed]]:
    """All trials of each variant, and what lifting does to times."""
    total = 2 * len(setting.variants) + (shape == "tree")
    trials: dict[Variant, list[Trial]] = {}
    timings: list[Speed] = []
    for number, variant in enumerate(setting.variants):
        part = setting.part(f"{variant} variant", 2 * number, total)
        trials[variant] = all_trials(setting, shape, variant, part)
        part = setting.part(f"{variant} variant", 2 * number + 1, total)
        timings += speeds(setting, shape, variant, part)
    if shape == "tree":
        variant = setting.variants[0]
        timings += speeds(setting, "forest", variant, setting.part("all wells", total - 1, total))
    return trials, timings


def _measured_levels(setting: Setting, shape: kalman.Shape) -> np.ndarray:
    """(well, month): what was measured, NaN where nothing was."""
    graph = instance(setting, shape, "clean", 0).graph
    return known_levels(hl.infer(graph, hl.Exact()))


def _on_evidence(setting: Setting, levels: Levels) -> str:
    count = np.count_nonzero(~np.isnan(levels.measured))
    sentence = (
        f"{count:,} of {levels.measured.size:,} levels are measured; the paper variant has 0 or 1 "
        "in place of all others, as if they were measurements, the clean variant leaves them out."
    )
    if setting.data is None:
        sentence += (
            " The evidence is generated; the paper's figures beside ours are those of its own."
        )
    return sentence


def _on_answers(variant: Variant, trials: Sequence[Trial]) -> list[str]:
    """Sentences on variances, and on where the paper's reference has no answer."""
    exact = np.array([variances(one.exact.posterior).mean() for one in trials])
    parts = []
    for place, run in enumerate(trials[0].runs):
        if run.label == "L-BVI":
            found = np.array([variances(one.runs[place].posterior).mean() for one in trials])
            share = float((found / exact).mean())
            parts.append(f"{share:.3g} of the exact one by {name(run)} with K = {components(run)}")
    notes = [
        f"{variant.capitalize()} variant: the variance of the last month is {' and '.join(parts)}."
    ]
    if diverged := num_diverged(trials):
        notes.append(
            f"{variant.capitalize()} variant: Gaussian belief propagation diverges in "
            f"{diverged} of {counted(len(trials), 'trial')}, so that nothing is compared with it. "
            f"The variational methods converge in {_share_converged(trials)} runs."
        )
    if without := _without_mass(trials):
        notes.append(
            f"{variant.capitalize()} variant: KL is infinite where particles leave no mass at "
            f"levels that are possible, in {without} of {counted(len(trials), 'trial')} of EPBP."
        )
    return notes


def _without_mass(trials: Sequence[Trial]) -> int:
    """Trials in which particles are nowhere near some of the levels that are possible."""
    return sum(
        bool(np.isinf(figures(one, run)["KL"]))
        for one in trials
        for run in one.runs
        if name(run) == "EPBP"
    )


def _share_converged(trials: Sequence[Trial]) -> str:
    """How many runs of variational methods converged: 'all 30', '28 of 30'."""
    results = [
        run.posterior.solution.result
        for one in trials
        for run in one.runs
        if components(run) is not None
    ]
    count = results.count("converged")
    return f"all {count}" if count == len(results) else f"{count} of {len(results)}"
