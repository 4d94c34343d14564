"""A race as text: a table and remarks on it, for a terminal and for `str`."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

from hylift.posterior import LogPartition
from hylift.posterior.answers import ENDS
from hylift.racing.finish import Finish, shortened
from hylift.words import TextTable, listed, printable, worded

if TYPE_CHECKING:
    from hylift.racing.result import Race

CERTAIN = 1e-9
"""Relative difference beyond rounding."""
NOTHING = "–"
SIGNS = {"exact": "", "lower bound": "≥ ", "upper bound": "≤ ", "interval": "", "estimate": "≈ "}
"""The sign before a log Z of each kind."""
MEANING = {
    "lower bound": "≥ a lower bound",
    "upper bound": "≤ an upper bound",
    "interval": "± a certain interval",
    "estimate": "≈ an estimate",
}


def plain_text(race: Race) -> str:
    """The table, the yardstick, and the skipped methods."""
    blocks = [str(results(race)), *(printable(line, one_line=True) for line in remarks(race))]
    if race.skipped:
        blocks.append(f"Skipped:\n{skipped(race)}")
    return "\n".join(blocks)


def results(race: Race) -> TextTable:
    """A line per method that finished."""
    header = ("method", "seconds", "log Z", "KL", "l1", "MAP energy", "ended", "trust", "memory")
    rows = tuple(_row(one, race) for one in race.finishes)
    return TextTable(header, rows, (1, 2, 3, 4, 5, 8))


def skipped(race: Race, in_words: Callable[[str], str] = str) -> TextTable:
    """A line per method without an answer; no header."""
    rows = [("  " + one.label, shortened(in_words(one.reason))) for one in race.skipped]
    return TextTable(rows[0], tuple(rows[1:]), ())


def remarks(race: Race) -> list[str]:
    """Sentences below the table."""
    lines = []
    if race.yardstick is not None:
        lines.append(
            f"KL and l1: mean distance of the marginals from those of {race.yardstick.label} "
            f"({race.yardstick.reason})."
        )
    elif any(one.posterior.all_marginals is not None for one in race):
        lines.append("KL and l1: no method has marginals that others could be measured by.")
    found = [one.posterior.assignment for one in race]
    if any(one is not None and one.kind == "exact" for one in found):
        lines.append("MAP energy: = where no assignment has less.")
    kinds = {one.posterior.log_partition.kind for one in race if one.posterior.log_partition}
    if kinds - {"exact"}:
        said = ", ".join(meaning for kind, meaning in MEANING.items() if kind in kinds)
        lines.append(f"log Z: {said}.")
    lines += _refuted(race)
    lines += [
        worded(f"{one.label} has a MAP assignment only: ", one.refused)
        for one in race
        if one.refused is not None
    ]
    return lines + _notes(race)


def _refuted(race: Race) -> list[str]:
    """Estimates of log Z that bounds prove to be too low or too high."""
    found = [(one.posterior.log_partition, one.label) for one in race]
    known = [(log_z, label) for log_z, label in found if log_z is not None]
    bounds = [(log_z, label) for log_z, label in known if log_z.kind != "exact"]
    lines = []
    for word, proves, sign in (("low", "more", 1.0), ("high", "less", -1.0)):
        ends = [(z.lower if sign > 0 else -z.upper, label) for z, label in bounds]
        bound, whose = max(ends, default=(-math.inf, ""))
        wrong = [
            label
            for log_z, label in known
            if log_z.kind == "estimate" and sign * log_z.value < bound - CERTAIN * (1 + abs(bound))
        ]
        if wrong and bound > -math.inf:
            lines.append(f"log Z of {listed(wrong)} is too {word}: {whose} proves {proves}.")
    return lines


def _notes(race: Race) -> list[str]:
    """Notes of the yardstick and of methods that did not converge; those of others are omitted."""
    return [
        worded(f"Note on {one.label}: ", note)
        for one in race
        if _is_yardstick(one, race) or one.posterior.solution.result != "converged"
        for note in one.notes
    ]


def _row(finish: Finish, race: Race) -> tuple[str, ...]:
    kl = "yardstick" if _is_yardstick(finish, race) else _number(finish.mean_kl)
    assignment = finish.posterior.assignment
    energy = NOTHING if assignment is None else f"{assignment.energy + 0.0:.8g}"  # + 0.0: never -0
    if assignment is not None and assignment.kind == "exact":
        energy = f"= {energy}"
    return (
        finish.label,
        f"{finish.seconds:.2g}" if finish.seconds < 10 else f"{finish.seconds:.0f}",
        _log_z(finish.posterior.log_partition),
        kl,
        _number(finish.mean_l1),
        energy,
        _end(finish),
        finish.posterior.trust.verdict,
        NOTHING if finish.memory is None else _memory(finish.memory),
    )


def _is_yardstick(finish: Finish, race: Race) -> bool:
    return race.yardstick is not None and finish.label == race.yardstick.label


def _end(finish: Finish) -> str:
    result = finish.posterior.solution.result
    # A search has nothing that would converge.
    return "steps used up" if finish.is_search and result == "max_steps" else ENDS[result]


def _number(value: float | None) -> str:
    return NOTHING if value is None else f"{value:.2g}"


def _log_z(log_z: LogPartition | None) -> str:
    if log_z is None:
        return NOTHING
    off = f" ± {log_z.error:.2g}" if log_z.kind == "interval" else ""
    return f"{SIGNS[log_z.kind]}{log_z.value + 0.0:.7g}{off}"


def _memory(size: int) -> str:
    return f"{size / 1e6:,.0f} MB" if size >= 1e6 else "< 1 MB"
