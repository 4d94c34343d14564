"""The paper's three questions, answered from what was measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import geometric_mean

from experiments.report.row import Row
from experiments.report.speed import NOTICED, Speed

QUESTIONS = {
    "Q1": "Do the variational methods give accurate MAP and marginals?",
    "Q2": "Does lifting speed them up?",
    "Q3": "Does coarse-to-fine lifting get to accurate results more quickly?",
}

ACCURACY = ("KL", "l1", "energy")
"""Measures that say how good an answer is, rather than how long it took."""


@dataclass(frozen=True, slots=True)
class Answer:
    question: str
    sentence: str


def answers(rows: Sequence[Row], speeds: Sequence[Speed]) -> list[Answer]:
    """A sentence for each question on which something was measured."""
    found = [
        Answer("Q1", _accuracy([row for row in rows if _tells_accuracy(row)])),
        Answer("Q2", _by_lifting(speeds)),
        Answer("Q3", _by_coarseness([one for one in speeds if one.coarse is not None])),
    ]
    return [answer for answer in found if answer.sentence]


def _tells_accuracy(row: Row) -> bool:
    return row.paper is not None and row.measure in ACCURACY and "VI" in row.method


def _accuracy(rows: Sequence[Row]) -> str:
    if not rows:
        return ""
    beaten = sum(row.verdict == "beaten" for row in rows)
    missed = [row for row in rows if row.verdict == "not reached"]
    matched = len(rows) - beaten - len(missed)
    word = "Yes" if not missed else "Mostly" if len(missed) <= len(rows) / 4 else "In part"
    parts = [f"{beaten} beaten"] if beaten else []
    parts += [f"{matched} matched"] if matched else []
    if missed:
        names = ", ".join(dict.fromkeys(_name(row) for row in missed))
        parts.append(f"{len(missed)} not reached ({names})")
    return f"{word}: of the paper's {len(rows)} figures on accuracy " + ", ".join(parts) + "."


def _name(row: Row) -> str:
    components = "" if row.components is None else f" K={row.components}"
    return f"{row.measure} of {row.method}{components}"


def _by_lifting(speeds: Sequence[Speed]) -> str:
    if not speeds:
        return ""
    each = "; ".join(
        f"{_instance(one)}{one.method} {one.by_lifting:.3g} times as fast "
        f"({one.ground.num_classes:,} hidden variables, {one.lifted.num_classes:,} classes)"
        for one in speeds
    )
    return f"{_verdict([one.by_lifting for one in speeds])}: {each}."


def _by_coarseness(speeds: Sequence[Speed]) -> str:
    if not speeds:
        return ""
    parts = []
    for one in speeds:
        ratio, coarse = one.by_coarseness, one.coarse
        assert ratio is not None
        assert coarse is not None
        first = "" if coarse.first_classes is None else f"{coarse.first_classes:,} to "
        parts.append(
            f"{_instance(one)}{one.method} {ratio:.3g} times as fast as exact lifting "
            f"({first}{coarse.num_classes:,} classes against {one.lifted.num_classes:,})"
        )
    ratios = [one.by_coarseness for one in speeds if one.by_coarseness is not None]
    return f"{_verdict(ratios)}: {'; '.join(parts)}."


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


def _instance(speed: Speed) -> str:
    return f"{speed.instance}, " if speed.instance else ""
