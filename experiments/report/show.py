"""An outcome in a terminal."""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import groupby

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from experiments.report.answers import QUESTIONS, answers
from experiments.report.outcome import Outcome
from experiments.report.row import Row
from experiments.report.speed import Speed
from hylift.words import counted

STYLES = {"beaten": "green", "matched": "green", "not reached": "yellow", "": ""}


def show(out: Console, outcome: Outcome) -> None:
    """Prints tables, the reasons for figures that were not reached, and the answers."""
    out.print(f"\n[bold]{escape(outcome.title)}[/bold] ({outcome.source} evidence)")
    for instance, rows in groupby(outcome.rows, key=lambda row: row.instance):
        _show_rows(out, instance, list(rows))
    if outcome.speeds:
        _show_speeds(out, outcome.speeds)
    for row in outcome.rows:
        if row.why:
            out.print(f"{_place(row)}: {row.why}", highlight=False, markup=False)
    for note in outcome.notes:
        out.print(note, highlight=False, markup=False)
    for answer in answers(outcome.rows, outcome.speeds):
        question = QUESTIONS[answer.question]
        out.print(
            f"[bold]{answer.question}[/bold] {question} {escape(answer.sentence)}",
            highlight=False,
        )


def show_summary(out: Console, rows: Iterable[Row]) -> None:
    """Prints how many of the paper's figures were reached, and which were not."""
    found = [row for row in rows if row.paper is not None]
    if not found:
        return
    missed = [row for row in found if row.verdict == "not reached"]
    beaten = sum(row.verdict == "beaten" for row in found)
    out.print(
        f"\n[bold]Of {counted(len(found), 'figure')} of the paper[/bold] {beaten} beaten, "
        f"{len(found) - beaten - len(missed)} matched, {len(missed)} not reached.",
        highlight=False,
    )
    for row in missed:
        out.print(
            f"  {_place(row)}: {row.value:.3g} against {row.paper.text if row.paper else ''}; "
            f"{row.why or 'no reason known'}",
            highlight=False,
            markup=False,
        )


def _place(row: Row) -> str:
    components = "" if row.components is None else f", K = {row.components}"
    instance = f" ({row.instance})" if row.instance else ""
    return f"{row.measure} of {row.method}{components}{instance}"


def _show_rows(out: Console, instance: str, rows: list[Row]) -> None:
    """A table with a line per method and, side by side, the figure of each measure."""
    measures = list(dict.fromkeys(row.measure for row in rows))
    has_components = any(row.components is not None for row in rows)
    table = Table(box=None, pad_edge=False, title=instance or None, title_justify="left")
    table.add_column("method")
    if has_components:
        table.add_column("K", justify="right")
    in_paper = {row.measure for row in rows if row.paper is not None}
    for measure in measures:
        table.add_column(measure, justify="right")
        if measure in in_paper:
            table.add_column("paper", justify="right", style="dim")
            table.add_column("")
    lines: dict[tuple[str, int | None], dict[str, Row]] = {}
    for row in rows:
        lines.setdefault((row.method, row.components), {})[row.measure] = row
    for (method, components), of_measure in lines.items():
        cells = [escape(method)]
        if has_components:
            cells.append("" if components is None else str(components))
        for measure in measures:
            found = _cells(of_measure.get(measure))
            cells += found if measure in in_paper else found[:1]
        table.add_row(*cells)
    out.print(table, highlight=False)


def _cells(row: Row | None) -> tuple[str, str, str]:
    if row is None:
        return "", "", ""
    spread = "" if row.spread is None else f" ± {number(row.spread, 2)}"
    verdict = f"[{STYLES[row.verdict]}]{row.verdict}[/]" if row.verdict else ""
    return f"{number(row.value)}{spread}", row.paper.text if row.paper else "–", verdict


def _show_speeds(out: Console, speeds: tuple[Speed, ...]) -> None:
    """A table of times; what is only of coarse to fine is left out where nothing is."""
    is_coarse = any(one.coarse is not None for one in speeds)
    columns = ["ground", "lifted", "faster by"]
    columns += ["coarse to fine", "lifted, near", "c2f, near", "faster by"] if is_coarse else []
    columns.append("classes: ground, lifted" + (", c2f" if is_coarse else ""))
    table = Table("method", box=None, pad_edge=False, title="Time of answers", title_justify="left")
    for column in columns:
        table.add_column(column, justify="right")
    for one in speeds:
        cells = [
            escape(", ".join(word for word in (one.method, one.instance) if word)),
            _seconds(one.ground.seconds),
            _seconds(one.lifted.seconds),
            f"{one.by_lifting:.3g}×",
        ]
        classes = [f"{one.ground.num_classes:,}", f"{one.lifted.num_classes:,}"]
        if one.coarse is not None:
            near = (_seconds(one.lifted.near), _seconds(one.coarse.near))
            cells += [_seconds(one.coarse.seconds), *near, f"{one.by_coarseness:.3g}×"]
            first = "" if one.coarse.first_classes is None else f"{one.coarse.first_classes:,}→"
            classes.append(f"{first}{one.coarse.num_classes:,}")
        elif is_coarse:
            cells += [""] * 4
        table.add_row(*cells, ", ".join(classes))
    out.print(table, highlight=False)
    for sentence in dict.fromkeys(one.nearness for one in speeds if one.nearness):
        out.print(f"Near: {sentence}", highlight=False, markup=False)


def _seconds(value: float) -> str:
    if not math.isfinite(value):
        return "never"
    return f"{1e3 * value:.3g} ms" if value < 1 else f"{value:.3g} s"


def number(value: float, digits: int = 3) -> str:
    """A number as short as so many digits allow, in the paper's way of writing."""
    if value != 0 and not 1e-3 <= abs(value) < 1e5:
        return f"{value:.{digits - 1}e}".replace("e-0", "e-").replace("e+0", "e")
    return f"{value:.{digits}g}" if abs(value) < 1000 else f"{value:,.4f}"
