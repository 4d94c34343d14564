"""The experiment: all methods on all problems of a model."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from experiments.energies import picture
from experiments.energies.curves import rounding
from experiments.energies.problem import Problem
from experiments.energies.study import Study, study
from experiments.measure import seconds_until
from experiments.report import Outcome
from experiments.report.show import number
from experiments.setting import Setting

MEASURES = (
    "energy: of the mode of the mixture, as in the paper, or the least on a walk; polished: of the "
    "answer that hylift gives, which improves the mode and other candidates on the model itself.",
    "HMWS: hybrid MaxWalkSAT with 0.7 of its moves greedy and one start, as in the paper. It moves "
    "reals to optima, around which its noise of 0.3 is in their standard deviations.",
)


def experiment(title: str, setting: Setting, problems: Sequence[Problem]) -> Outcome:
    """Energies and times of all methods."""
    studies = [
        study(problem, setting, setting.part(problem.name, number, len(problems)))
        for number, problem in enumerate(problems)
    ]
    return outcome(title, setting, studies)


def outcome(title: str, setting: Setting, studies: Sequence[Study]) -> Outcome:
    """What there is to show of the studies."""
    notes = [
        *MEASURES, _walks(studies), *_first_flips(studies), *_first_steps(studies),
        *(_until_polished(one) for one in studies), *_of_evidence(studies),
    ]  # fmt: skip
    return Outcome(
        title,
        setting.source,
        tuple(row for one in studies for row in one.rows),
        tuple(one.speed for one in studies),
        tuple(notes),
        accuracy(studies),
        {"energy": lambda: picture.draw(studies)},
        {"curves": [point for one in studies for point in one.to_dicts()]},
    )


def accuracy(studies: Sequence[Study]) -> str:
    """How far variational answers are from the optimum, over all problems, methods and seeds."""
    polished = _polished(studies)
    at_optimum = (
        f"Polished answers are at the exact optimum in {np.count_nonzero(polished == 0)} of "
        f"{len(polished)} runs"
    )
    if polished.any():
        at_optimum += f", and at most {number(polished.max())} above it"
    return f"{at_optimum}; modes are {_range(_modes(studies))} above it."


def _walks(studies: Sequence[Study]) -> str:
    """How walks compare with modes and with polished answers."""
    walks = _joined(one.gaps(one.walks.energy) for one in studies)
    lower = sum(_modes([one]).min() > one.gaps(one.walks.energy).max() for one in studies)
    higher = sum(_modes([one]).max() < one.gaps(one.walks.energy).min() for one in studies)
    beaten = sum(_polished([one]).max() <= one.gaps(one.walks.energy).min() for one in studies)
    return (
        "The paper finds variational MAP assignments better than those of HMWS. Here walks end "
        f"{_range(walks)} above the optimum, in {np.count_nonzero(walks == 0)} of {len(walks)} "
        f"runs at it, and modes {_range(_modes(studies))} above: of {len(studies)} problems, all "
        f"walks are lower than all modes on {lower}, and higher on {higher}. Polished answers are "
        f"no higher than any walk on {beaten}."
    )


def _first_flips(studies: Sequence[Study]) -> list[str]:
    """A sentence, if walks are at the optimum from the first flip on."""
    names = [one.problem.name for one in studies if not one.curves[0].gaps(one.optimum).any()]
    if not names:
        return []
    return [
        f"HMWS is at the optimum after its first flip on {'; '.join(names)}: its start, where "
        "reals are solved jointly, already is the answer. It is a stronger walk than the paper's."
    ]


def _first_steps(studies: Sequence[Study]) -> list[str]:
    """A sentence, if some modes are near their ends from the first step on."""
    told = []
    for one in studies:
        labels = ("ground", "lifted", "c2f")
        modes = [curve.history for curve in one.curves[1:] if not curve.polished]
        at_once = [
            name
            for name, timing, history in zip(labels, one.speed.timings, modes, strict=False)
            if timing.near == history.seconds[0]
        ]
        if at_once:
            told.append(f"{one.problem.name}: {', '.join(at_once)}")
    if not told:
        return []
    return [
        f"Modes are near from the first step on ({'; '.join(told)}): until then time goes into "
        "lifting and into the choice among starts."
    ]


def _until_polished(one: Study) -> str:
    """How long it takes until answers, the variational ones polished, stay at the optimum."""
    level = one.optimum + rounding(one.optimum)
    times = {
        curve.method: seconds_until(curve.history, level)
        for curve in one.curves
        if curve.polished or curve is one.curves[0]
    }
    told = ", ".join(
        f"{method} {f'after {1e3 * seconds:.0f} ms' if np.isfinite(seconds) else 'never'}"
        for method, seconds in times.items()
    )
    return f"At the optimum, the variational ones polished, on {one.problem.name}: {told}."


def _of_evidence(studies: Sequence[Study]) -> list[str]:
    """Notes on evidence; a note on several problems once."""
    names: dict[str, list[str]] = {}
    for one in studies:
        if one.problem.note:
            names.setdefault(one.problem.note, []).append(one.problem.name)
    return [f"{'; '.join(found)}: {note}" for note, found in names.items()]


def _modes(studies: Sequence[Study]) -> NDArray[np.float64]:
    return _joined(one.gaps(ends.energy) for one in studies for ends in one.variational)


def _polished(studies: Sequence[Study]) -> NDArray[np.float64]:
    return _joined(
        one.gaps(ends.polished)
        for one in studies
        for ends in one.variational
        if ends.polished is not None
    )


def _joined(parts: Iterable[NDArray[np.float64]]) -> NDArray[np.float64]:
    return np.concatenate(list(parts))


def _range(values: NDArray[np.float64]) -> str:
    low, high = number(float(values.min()), 2), number(float(values.max()), 2)
    return low if low == high else f"{low} to {high}"
