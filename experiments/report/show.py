"""An outcome in a terminal."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from itertools import groupby

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from experiments.report.answers import QUESTIONS, answers
from experiments.report.outcome import Outcome
from experiments.report.row import Row
from experiments.report.speed import Speed, Timing
from hylift.words import counted

STYLES = {"beaten": "green", "matched": "green", "within ±": "green", "not reached": "yellow"}


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
    for answer in answers(outcome):
        question = QUESTIONS[answer.question]
        out.print(
            f"[bold]{answer.question}[/bold] {question} {escape(answer.sentence)}",
            highlight=False,
        )


def show_summary(out: Console, rows: Iterable[Row]) -> None:
    """Prints how many figures of others were reached, and which were not."""
    found = [row for row in rows if row.paper is not None]
    if not found:
        return
    for source in dict.fromkeys(row.paper.source for row in found if row.paper is not None):
        own = [row for row in found if row.paper is not None and row.paper.source == source]
        count = Counter(row.verdict for row in own)
        told = ", ".join(f"{number} {verdict}" for verdict, number in count.items())
        out.print(
            f"\n[bold]Of {counted(len(own), 'figure')} of the {escape(source)}:[/bold] {told}.",
            highlight=False,
        )
    for row in found:
        if row.verdict == "not reached" and row.paper is not None:
            out.print(
                f"  {_place(row)}: {number(row.value)} against {row.paper.text}; "
                f"{row.why or 'no reason known'}",
                highlight=False,
                markup=False,
            )


def _place(row: Row) -> str:
    components = "" if row.components is None else f", K = {row.components}"
    instance = f" ({row.instance})" if row.instance else ""
    return f"{row.measure} of {row.method}{components}{instance}"


def _show_rows(out: Console, instance: str, rows: list[Row]) -> None:
    """A table with a line per method and, side by side where there is room, all measures."""
    measures = list(dict.fromkeys(row.measure for row in rows))
    whole = _table(instance, rows, measures)
    if out.measure(whole).minimum <= out.width and _width(out, whole) <= out.width:
        out.print(whole, highlight=False)
        return
    for number, measure in enumerate(measures):
        own = [row for row in rows if row.measure == measure]
        out.print(_table(instance if number == 0 else "", own, [measure]), highlight=False)


def _width(out: Console, table: Table) -> int:
    """Columns that a table takes if no cell is broken."""
    return out.measure(table, options=out.options.update(width=10_000)).maximum


def _table(title: str, rows: list[Row], measures: list[str]) -> Table:
    has_components = any(row.components is not None for row in rows)
    table = Table(box=None, pad_edge=False, title=title or None, title_justify="left")
    table.add_column("method")
    if has_components:
        table.add_column("K", justify="right")
    source = {row.measure: row.paper.source for row in rows if row.paper is not None}
    for measure in measures:
        table.add_column(measure, justify="right")
        if measure in source:
            table.add_column(source[measure], justify="right", style="dim")
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
            cells += found if measure in source else found[:1]
        table.add_row(*cells)
    return table


def _cells(row: Row | None) -> tuple[str, str, str]:
    if row is None:
        return "", "", ""
    spread = "" if row.spread is None else f" ± {number(row.spread, 2)}"
    verdict = f"[{STYLES[row.verdict]}]{row.verdict}[/]" if row.verdict else ""
    return f"{number(row.value)}{spread}", row.paper.text if row.paper else "–", verdict


def _show_speeds(out: Console, speeds: tuple[Speed, ...]) -> None:
    """A table of times; what is only of coarse to fine is left out where nothing is."""
    is_coarse = any(one.coarse is not None for one in speeds)
    kinds = ["ground", "lifted", "c2f"] if is_coarse else ["ground", "lifted"]
    table = Table("method", box=None, pad_edge=False, title="Seconds", title_justify="left")
    columns = ["to the end", "until near", "lifted faster by"]
    columns += ["c2f faster by"] if is_coarse else []
    ends = any(one.above_lowest is not None and any(one.above_lowest) for one in speeds)
    columns += ["ends above lowest"] if ends else []
    for column in [*columns, "classes"]:
        table.add_column(column, justify="right")
    for one in speeds:
        cells = [
            escape(", ".join(word for word in (one.method, one.instance) if word)),
            " / ".join(_seconds(timing.seconds) for timing in one.timings),
            " / ".join(_seconds(timing.near) for timing in one.timings),
            _times(one.by_lifting),
        ]
        cells += [_times(one.by_coarseness)] if is_coarse else []
        if ends:
            above = one.above_lowest or ()
            cells.append(" / ".join(number(value, 2) for value in above))
        table.add_row(*cells, " / ".join(_classes(timing) for timing in one.timings))
    out.print(table, highlight=False)
    out.print(f"Of {' / '.join(kinds)}.", highlight=False)
    for sentence in dict.fromkeys(one.nearness for one in speeds if one.nearness):
        out.print(f"Near: {sentence}", highlight=False, markup=False)


def _classes(timing: Timing) -> str:
    first = "" if timing.first_classes is None else f"{timing.first_classes:,}→"
    return f"{first}{timing.num_classes:,}"


def _times(ratio: float | None) -> str:
    return "" if ratio is None else f"{ratio:.3g}×"


def _seconds(value: float) -> str:
    return f"{value:.2g}" if math.isfinite(value) else "never"


def number(value: float, digits: int = 3) -> str:
    """A number as short as so many digits allow, in the paper's way of writing."""
    if value != 0 and not 1e-3 <= abs(value) < 1e5:
        return f"{value:.{digits - 1}e}".replace("e-0", "e-").replace("e+0", "e")
    return f"{value:.{digits}g}" if abs(value) < 1000 else f"{value:,.4f}"
