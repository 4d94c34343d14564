"""The paper's three questions, answered from what was measured."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import geometric_mean

from experiments.report.outcome import Outcome
from experiments.report.row import Row
from experiments.report.speed import NOTICED, Speed

QUESTIONS = {
    "Q1": "Do the variational methods give accurate MAP and marginals?",
    "Q2": "Does lifting speed them up?",
    "Q3": "Does coarse-to-fine lifting get to accurate results more quickly?",
}

ACCURACY = ("KL", "l1", "energy")
"""Measures that say how good an answer is, rather than how long it took."""


MOST_TOLD = 2
"""Speeds that are told one by one; of more, the best and the worst."""


@dataclass(frozen=True, slots=True)
class Answer:
    question: str
    sentence: str


def answers(outcome: Outcome) -> list[Answer]:
    """A sentence for each question on which something was measured."""
    counted = _accuracy([row for row in outcome.rows if _tells_accuracy(row)])
    found = [
        Answer("Q1", " ".join(part for part in (counted, outcome.accuracy) if part)),
        Answer("Q2", _by_lifting(outcome.speeds)),
        Answer("Q3", _by_coarseness(outcome.speeds)),
    ]
    return [answer for answer in found if answer.sentence]


def _tells_accuracy(row: Row) -> bool:
    return row.paper is not None and row.measure in ACCURACY and "VI" in row.method


def _accuracy(rows: Sequence[Row]) -> str:
    """How many figures of others the variational methods reach, and which they do not."""
    if not rows:
        return ""
    missed = [row for row in rows if row.verdict == "not reached"]
    word = "Yes" if not missed else "Mostly" if len(missed) <= len(rows) / 4 else "In part"
    count = Counter(row.verdict for row in rows)
    parts = [f"{number} {verdict}" for verdict, number in count.items() if verdict != "not reached"]
    if missed:
        names = ", ".join(dict.fromkeys(_name(row) for row in missed))
        parts.append(f"{len(missed)} not reached ({names})")
    whose = " and ".join(dict.fromkeys(row.paper.source for row in rows if row.paper is not None))
    return f"{word}: of {len(rows)} figures of the {whose} {', '.join(parts)}."


def _name(row: Row) -> str:
    components = "" if row.components is None else f" K={row.components}"
    return f"{row.measure} of {row.method}{components}"


def _by_lifting(speeds: Sequence[Speed]) -> str:
    ratios = {}
    for one in speeds:
        if one.by_lifting is not None:
            words = (
                f"{_name_of(one)} {one.by_lifting:.3g} times as fast "
                f"({one.ground.num_classes:,} hidden variables, {one.lifted.num_classes:,} classes)"
            )
            ratios[words] = one.by_lifting
    return _extremes(ratios)


def _by_coarseness(speeds: Sequence[Speed]) -> str:
    ratios = {}
    for one in speeds:
        if one.coarse is not None and one.by_coarseness is not None:
            first = one.coarse.first_classes
            begins = "" if first is None else f"{first:,} to "
            words = (
                f"{_name_of(one)} {one.by_coarseness:.3g} times as fast as exact lifting "
                f"({begins}{one.coarse.num_classes:,} classes)"
            )
            ratios[words] = one.by_coarseness
    return _extremes(ratios)


def _extremes(ratios: Mapping[str, float]) -> str:
    """A word on all ratios of times, and what there is to say of the largest and the smallest."""
    if not ratios:
        return ""
    ordered = sorted(ratios, key=lambda words: -ratios[words])
    word = _verdict(list(ratios.values()))
    if len(ordered) <= MOST_TOLD:
        return f"{word}: {'; '.join(ordered)}."
    return f"{word}: at best {ordered[0]}; at worst {ordered[-1]}."


def _verdict(ratios: Sequence[float]) -> str:
    """One word for several ratios of times."""
    faster = sum(ratio >= NOTICED for ratio in ratios)
    slower = sum(ratio <= 1 / NOTICED for ratio in ratios)
    if faster == len(ratios):
        return "Yes"
    if not faster:
        return "No" if slower else "It makes no difference"
    mean = geometric_mean(ratios)
    return f"In {faster} of {len(ratios)} cases, {mean:.2g} times on average"


def _name_of(speed: Speed) -> str:
    return f"{speed.method}, {speed.instance}," if speed.instance else speed.method
