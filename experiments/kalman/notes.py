"""Sentences on evidence, on answers, and on how the paper's figures compare."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from experiments import measure
from experiments.instances import Variant, kalman, sources
from experiments.kalman.levels import Levels
from experiments.kalman.trials import Trial, figures, name, variances
from experiments.report import Row
from experiments.report.show import number
from experiments.setting import Setting
from hylift.words import counted

ON_MEASURES = (
    "Means ± standard deviations over five trials. l1: of the modes of the last month from those "
    "of GaBP, as in the paper; l1 exact: from the exact ones."
)
ON_METHODS = (
    "With one component the best mixture of a Gaussian model is a linear system, solved without "
    "steps; with several, components are placed around its means, and variables that differ in "
    "their means alone are one class."
)
ON_READING = (
    "KL is from the exact marginals; the text of the paper speaks of one from GaBP, without "
    "figures. It does not say how many components its methods have here; we take K = 1 beside its "
    "figures."
)
ON_TIMES = (
    "The paper's seconds are of another machine, a single core of a 2.2 GHz Core i7. It says "
    "itself that its implementations, but for those in TensorFlow, are not tuned, and that the "
    "times of EPBP and of BVI are not to be compared."
)


def notes(
    setting: Setting,
    shape: kalman.Shape,
    trials: Mapping[Variant, Sequence[Trial]],
    levels: Levels,
) -> list[str]:
    """All that is said below the tables."""
    found = [ON_MEASURES, _on_evidence(setting, levels)]
    for variant, of_variant in trials.items():
        found += on_answers(variant, of_variant)
    if "paper" in trials:
        if setting.data is not None:
            found.append(compare_answers(setting.data, shape, trials["paper"]))
        found += [ON_READING, ON_TIMES]
    return [*found, ON_METHODS]


def accuracy(rows: Sequence[Row], trials: Mapping[Variant, Sequence[Trial]]) -> str:
    """A sentence on the variational answers of the clean variant, which the paper does not have."""
    if "clean" not in trials:
        return ""
    own = [row for row in rows if row.instance == "clean variant" and row.components is not None]
    furthest = max(row.value for row in own if row.measure == "l1 exact")
    kl = [row.value for row in own if row.measure == "KL"]
    shares = _shares_of_variance(trials["clean"]).values()
    return (
        f"Clean variant, which the paper does not have: modes within {number(furthest, 2)} of the "
        f"exact ones on average over wells, variances {min(shares):.3g} to {max(shares):.3g} of "
        f"the exact ones, KL {number(min(kl))} to {number(max(kl))}."
    )


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


def on_answers(variant: Variant, trials: Sequence[Trial]) -> list[str]:
    """Sentences on variances, and on where there is nothing to compare with."""
    prefix = f"{variant.capitalize()} variant:"
    parts = [
        f"{share:.3g} of the exact one by {method}"
        for method, share in _shares_of_variance(trials).items()
    ]
    sentences = [f"{prefix} the variance of the last month is {' and '.join(parts)}."]
    converged = sum(one.has_reference for one in trials)
    if converged < len(trials):
        rest = f"l1 and its own figures are of {'it' if converged == 1 else 'these'} alone"
        sentences.append(
            f"{prefix} Gaussian belief propagation converges in {converged} of "
            f"{counted(len(trials), 'trial')}{'; ' + rest if converged else ''}. "
            f"The variational methods converge in {_share_converged(trials)} runs."
        )
    if without := _without_mass(trials):
        sentences.append(
            f"{prefix} KL is infinite where particles leave no mass at levels that are possible, "
            f"in {without} of {counted(len(trials), 'trial')} of EPBP."
        )
    return sentences


def _shares_of_variance(trials: Sequence[Trial]) -> dict[str, float]:
    """How large the variances of lifted BVI are beside the exact ones, on average over trials."""
    exact = np.array([variances(one.exact.posterior).mean() for one in trials])
    shares = {}
    for place, run in enumerate(trials[0].runs):
        if run.label == "L-BVI":
            found = np.array([variances(one.runs[place].posterior).mean() for one in trials])
            components = measure.components(run.method)
            shares[f"{name(run)} with K = {components}"] = float((found / exact).mean())
    return shares


def compare_answers(data: Path, shape: kalman.Shape, trials: Sequence[Trial]) -> str:
    """A sentence on how far exact answers are from the authors', which are published beside the
    constants."""
    path = data / "groundwater" / f"LRKF_{shape}.mat"
    size = (kalman.NUM_WELLS[shape], kalman.NUM_PUBLISHED)
    theirs = sources.read_matrix(path, "res", size).T[: len(trials)]
    ours = [measure.modes(one.exact.posterior, kalman.LAST_MONTH) for one in trials]
    furthest = np.abs(theirs - ours).max(axis=1)
    return (
        f"The authors' own answers for the last month (res of {path.name}, a row per well) differ "
        f"from the exact ones, at the well where they do most, by {number(furthest.min(), 2)} to "
        f"{number(furthest.max(), 2)}, depending on the trial."
    )


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
        if measure.components(run.method) is not None
    ]
    count = results.count("converged")
    return f"all {count}" if count == len(results) else f"{count} of {len(results)}"
