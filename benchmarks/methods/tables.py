"""What was measured, a table for each question: a row per method, a column per model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.methods.measured import Measured, Result
from hylift.inference.capabilities import METHODS
from hylift.inference.method import method_by_key
from hylift.racing.text import NOTHING, SIGNS
from hylift.words import TextTable

LABELS = tuple(method_by_key(info.key).name for info in METHODS)
TRUSTED = "trusted"
SAME = 1e-9
"""Relative difference that rounding makes."""

Cell = Callable[[Measured, Result], str]


@dataclass(frozen=True, slots=True)
class Table:
    """Cells in words, with a title and what is to be known of them."""

    title: str
    note: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    right: tuple[int, ...]
    """Columns of numbers."""

    def __str__(self) -> str:
        table = TextTable(self.header, self.rows, self.right)
        return f"{self.title}. {self.note}\n{table}"

    def markdown(self) -> str:
        rule = tuple("---:" if i in self.right else "---" for i in range(len(self.header)))
        lines = [self.header, rule, *self.rows]
        body = "\n".join(f"| {' | '.join(line)} |" for line in lines)
        return f"**{self.title}.** {self.note}\n\n{body}"


def tables(measured: Sequence[Measured]) -> list[Table]:
    """The models, and then what each method made of them."""
    with_reals = [one for one in measured if (one.graph.variables.num_states == 0).any()]
    return [
        _models(measured),
        _by_method(
            "Divergence",
            "Mean of KL(trusted ‖ found) over the hidden variables; † where the method says itself "
            "that it has not converged; – where it does not take the model.",
            measured, lambda one, result: _distance(one, result, result.finish.mean_kl),
        ),
        _by_method(
            "Worst error",
            "The largest error of a mean, in standard deviations, or of a probability.",
            measured, lambda one, result: _distance(one, result, result.worst),
        ),
        _by_method(
            "Width",
            "Standard deviations of reals, over the trusted ones; the median.",
            with_reals, lambda one, result: _distance(one, result, result.width),
        ),
        _by_method(
            "log Z",
            "How far from the exact value; the value itself where that is not known. "
            "≥ is a lower bound, ≤ an upper bound, ± the middle of a certain interval, "
            "≈ an estimate.",
            measured, _log_z,
        ),
        _by_method(
            "Seconds",
            "For marginals, log Z and MAP together, lifted; in brackets on the ground graph. ‡ is "
            "of MAP alone, where the rest was refused or is not what the method does.",
            measured, _seconds,
        ),
        _by_method(
            "MAP",
            "Energy of the best assignment above the least that any method found; 0 is the best, "
            "= where that is proven.",
            measured, _energy,
        ),
    ]  # fmt: skip


def _models(measured: Sequence[Measured]) -> Table:
    rows = []
    for one in measured:
        hidden = one.graph.num_variables - len(one.graph.evidence.variable)
        by = one.race.yardstick
        rows.append(
            (
                one.model.name,
                one.model.about,
                f"{hidden:,}",
                f"{one.graph.num_factors:,}",
                NOTHING
                if by is None
                else by.reason
                if by.label == "exact"
                else f"{by.label}: {by.reason}",
            )
        )
    header = ("model", "what it is", "hidden variables", "factors", "trusted")
    return Table("Models", "The last column says whose marginals the others are held against.",
                 header, tuple(rows), (2, 3))  # fmt: skip


def _by_method(title: str, note: str, measured: Sequence[Measured], cell: Cell) -> Table:
    """A row per method that has anything to say."""
    labels = sorted({label for one in measured for label in one.results}, key=_place)
    rows = [(label, *(_cell(one, label, cell) for one in measured)) for label in labels]
    told = tuple(row for row in rows if any(word != NOTHING for word in row[1:]))
    header = ("method", *(one.model.name for one in measured))
    return Table(title, note, header, told, tuple(range(1, len(header))))


def _cell(one: Measured, label: str, cell: Cell) -> str:
    if label in one.results:
        return cell(one, one.results[label])
    has_failed = any(other.label == label and other.has_failed for other in one.race.skipped)
    return "failed" if has_failed else NOTHING


def _place(label: str) -> tuple[int, str]:
    """Where a method stands among all; from coarse to fine beside itself."""
    name = label.partition(" coarse")[0]
    return LABELS.index(name) if name in LABELS else len(LABELS), label


def _distance(one: Measured, result: Result, value: float | None) -> str:
    mark = "" if result.finish.posterior.solution.result == "converged" else " †"
    if one.race.yardstick is not None and result.finish.label == one.race.yardstick.label:
        return TRUSTED + mark
    return NOTHING if value is None else _number(value) + mark


def _log_z(one: Measured, result: Result) -> str:
    found = result.finish.posterior.log_partition
    if found is None:
        return NOTHING
    if found.kind == "exact":
        return "exact"
    exact = [
        log_z.value
        for other in one.race
        if (log_z := other.posterior.log_partition) is not None and log_z.kind == "exact"
    ]
    value = f"{found.value - exact[0]:+.2g}" if exact else f"{found.value:.6g}"
    off = f" ± {found.error:.2g}" if found.kind == "interval" else ""
    return SIGNS[found.kind] + value + off


def _seconds(one: Measured, result: Result) -> str:
    finish = result.finish
    lifted = _time(finish.seconds) + (" ‡" if finish.refused or finish.is_search else "")
    return lifted if result.ground_seconds is None else f"{lifted} ({_time(result.ground_seconds)})"


def _time(seconds: float) -> str:
    return f"{seconds:.2g}" if seconds < 10 else f"{seconds:.0f}"


def _energy(one: Measured, result: Result) -> str:
    assignment = result.finish.posterior.assignment
    if assignment is None:
        return NOTHING
    gap = float(one.race.above_least(np.array([assignment.energy]))[0])
    return ("= " if assignment.kind == "exact" else "") + _number(gap)


def _number(value: float) -> str:
    if value == np.inf:
        return "∞"
    return "0" if abs(value) < SAME else f"{value:.2g}"
