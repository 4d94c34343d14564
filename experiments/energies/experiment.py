"""The experiment: all methods on all problems of a model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from experiments.energies import picture
from experiments.energies.study import Problem, Study, study
from experiments.report import Outcome
from experiments.setting import Setting

MEASURES = (
    "energy: of the mode of the mixture, as in the paper, or the least on a walk; polished: of the "
    "answer that hylift gives, which improves the mode and other candidates on the model itself.",
    "HMWS: hybrid MaxWalkSAT with 0.7 of its moves greedy and one start, as in the paper. It moves "
    "reals to optima, around which its noise of 0.3 is in their standard deviations.",
)


def experiment(title: str, setting: Setting, problems: Sequence[Problem]) -> Outcome:
    """Energies and times of all methods; with several components on the first problem only."""
    studies = [
        study(
            problem, setting, setting.part(problem.name, number, len(problems)), mixed=number == 0
        )
        for number, problem in enumerate(problems)
    ]
    return outcome(title, setting, studies)


def outcome(title: str, setting: Setting, studies: Sequence[Study]) -> Outcome:
    """What there is to show of the studies."""
    each = [note for one in studies for note in one.notes]
    return Outcome(
        title,
        setting.source,
        tuple(row for one in studies for row in one.rows),
        tuple(speed for one in studies for speed in one.speeds),
        (*MEASURES, _at_optimum(studies), *_at_once(studies), *each),
        {"energy": lambda: picture.draw(studies)},
        {"curves": [point for one in studies for point in one.to_dicts()]},
    )


def _at_optimum(studies: Sequence[Study]) -> str:
    """How many runs ended at the exact optimum, by method."""
    best: Counter[str] = Counter()
    total: Counter[str] = Counter()
    for one in studies:
        for ends in one.ends:
            best[ends.method] += ends.num_best(one.optimum)
            total[ends.method] += len(ends.energy)
    told = ", ".join(f"{method} {best[method]} of {count}" for method, count in total.items())
    return f"Runs that end at the exact optimum, the variational ones polished: {told}."


def _at_once(studies: Sequence[Study]) -> list[str]:
    """A sentence, if steps change nothing in polished answers."""
    gaps = [curve.gaps(one.optimum) for one in studies for curve in one.curves if curve.polished]
    if any(gap.any() for gap in gaps):
        return []
    return [
        "Polished, answers are at the optimum from the first step on, with every method: being "
        "near takes as long as this step and polishing."
    ]
