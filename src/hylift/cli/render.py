"""Results in a terminal."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich import markup
from rich.console import Console
from rich.table import Column, Table

from hylift import progress
from hylift.cli.stderr import tell
from hylift.graph import Evidence
from hylift.inference.method import Task
from hylift.posterior import Categorical, LogPartition, Posterior
from hylift.posterior.answers import ENDS
from hylift.words import TextTable, cli_text, counted, num_classes, printable

NARROW = 80
"""Columns below which bars are short."""

MAX_ROWS = 20
"""Variables that are listed before the rest is only counted."""

WIDE = 10_000
"""Width of what is not a terminal, so that no line is broken."""

MARKS = {"certified": "✓", "checked": "✓", "unchecked": "", "doubtful": "?"}
"""At the end of the row of a variable."""

OBSERVED = "observed"
"""The last word in the row of an observed atom."""

BARS = " ▁▂▃▄▅▆▇█"
SPARK_WIDTH, NARROW_SPARK = 24, 8


@contextmanager
def progress_bar(quiet: bool) -> Iterator[progress.Progress]:
    """A bar on a terminal's error stream, gone when the work is done; no notices when quiet."""
    logger = logging.getLogger("hylift")
    if quiet:
        level = logger.level
        logger.setLevel(logging.ERROR)
        try:
            yield progress.silent
        finally:
            logger.setLevel(level)
        return
    if not sys.stderr.isatty():
        yield progress.silent
        return
    with progress.progress_bar() as bar:
        yield bar


def show(
    out: Console,
    posterior: Posterior,
    tasks: list[Task],
    *,
    title: str,
    evidence: Evidence,
    ids: NDArray[np.int64],
    most: int = MAX_ROWS,
) -> None:
    """Print the answers to the tasks, with long lists cut."""
    solution = posterior.solution
    out.print(
        f"[bold]{escape(title)}[/bold]: {counted(len(posterior.variables), 'variable')}, "
        f"{evidence.counts}; method {solution.method}, {solution.seconds:.3g} s"
    )
    if posterior.mixture is not None or solution.history is not None:
        size = num_classes_of(posterior)
        of_classes = "" if size is None else f", {num_classes(size)} of variables"
        out.print(f"{ENDS[solution.result]} after {counted(solution.steps, 'step')}{of_classes}")
    if "logz" in tasks and posterior.log_partition is not None:
        out.print(_log_z(posterior.log_partition))
    out.print(f"[bold]{posterior.trust.verdict}[/bold]: {escape(verdict_words(posterior))}")
    if "marginals" in tasks:
        spark_width = SPARK_WIDTH if out.width >= NARROW else NARROW_SPARK
        for table in _marginals(posterior, ids[:most], spark_width):
            out.print(table)
        _cut(out, len(ids) - most)
    if "map" in tasks:
        found = posterior.map()
        lower = f", others at most {found.gap:.1g} lower" if 0 < found.gap < np.inf else ""
        out.print(f"MAP energy = [bold]{found.energy:.10g}[/bold] ({found.kind}{lower})")
        table = Table(_names(), "value", box=None, header_style="bold")
        shown = found.to_dict(ids[:most]).items()
        for (name, value), is_seen in zip(shown, posterior.observed[ids], strict=False):
            text = escape(value) if isinstance(value, str) else f"{value:.6g}"
            table.add_row(escape(name), f"{text}  {OBSERVED}" if is_seen else text)
        out.print(table)
        _cut(out, len(ids) - most)
    for note in solution.notes:
        out.print(f"Note: {escape(cli_text(note))}")


def verdict_words(posterior: Posterior) -> str:
    """The reason of the verdict, and what to do about a doubtful one, in terms of options."""
    trust = posterior.trust
    return f"{cli_text(trust.why)} {cli_text(trust.advice)}".strip()


def num_classes_of(posterior: Posterior) -> int | None:
    """Classes of variables that a method has solved; None for methods without classes."""
    history = posterior.solution.history
    # Members of a class may differ by a shift in the mixture; the history counts what was solved.
    if history is not None and len(history) and history.num_classes[-1]:
        return int(history.num_classes[-1])
    return None if posterior.mixture is None else len(posterior.mixture.layout)


def _log_z(log_z: LogPartition) -> str:
    """The value, its kind, and where it is not exact also its numerical error."""
    off = log_z.kind not in ("exact", "interval") and log_z.error > 0
    error = f", numerical error about {log_z.error:.2g}" if off else ""
    return f"log Z = [bold]{log_z.shown(10)}[/bold] ({log_z.kind}{error})"


def print_table(out: Console, rows: TextTable) -> None:
    """A table of words; where the terminal is too narrow for it, a sentence for each row."""
    least = _least_widths(rows)
    if sum(least) + 2 * (len(least) - 1) > out.width:
        for first, *rest in rows.rows:
            named = zip(rows.header[1:], rest, strict=True)
            words = ", ".join(f"{name} {cell.strip()}" for name, cell in named if cell.strip())
            out.print(f"{first.strip()}: {words}", markup=False, highlight=False)
        return
    columns = [
        Column(name, min_width=width, justify="right" if place in rows.right else "left")
        for place, (name, width) in enumerate(zip(rows.header, least, strict=True))
    ]
    table = Table(*columns, box=None, pad_edge=False)
    for row in rows.rows:
        table.add_row(*map(escape, row))
    out.print(table, highlight=False)


def _least_widths(rows: TextTable) -> list[int]:
    """(column,): letters that it needs; headers may be broken, and text in the last column."""
    last = len(rows.header) - 1
    widths = []
    for place, (name, *cells) in enumerate(zip(rows.header, *rows.rows, strict=True)):
        can_break = place == last and place not in rows.right
        words = [word for cell in cells for word in (cell.split() if can_break else [cell])]
        widths.append(max(map(len, [*name.split(), *words]), default=0))
    return widths


def escape(text: str) -> str:
    """Words of a user as Rich prints them: without markup, and without effect on the terminal."""
    return markup.escape(printable(text, one_line=True))


class Screen(Console):
    """A console on which the words of users do nothing to the terminal."""

    def print(self, *objects: Any, **options: Any) -> None:
        shown = [printable(one) if isinstance(one, str) else one for one in objects]
        super().print(*shown, **options)


def console() -> Console:
    """The console for results: as wide as the terminal; without line breaks in a file or pipe."""
    wide = None if sys.stdout.isatty() else WIDE
    return Screen(width=wide, emoji=False)


def _cut(out: Console, more: int) -> None:
    if more > 0:
        out.print(f"… and {more} more (--query or --top choose some, --output has all)")


def tell_drawn(what: str) -> None:
    """Print what a figure shows that has no room for everything."""
    tell(f"the figure has {what}; choose with --query")


def _names() -> Column:
    """Names are broken where they must, and never cut."""
    return Column("atom", overflow="fold")


def _marginals(posterior: Posterior, ids: NDArray[np.int64], spark_width: int) -> list[Table]:
    """A table of the discrete variables and one of the reals, where there are any.

    That with the first variable comes first.
    """
    discrete = Table(_names(), "probabilities", "", box=None, header_style="bold")
    numbers = [Column(name, no_wrap=True) for name in ("density", "mean", "std", "90 %", "")]
    real = Table(_names(), *numbers, box=None, header_style="bold")
    names = posterior.variables.names.render(ids).to_pylist()
    verdicts = posterior.trust.verdicts_of(ids).tolist()
    for name, is_seen, verdict in zip(names, posterior.observed[ids], verdicts, strict=True):
        marginal, mark = posterior.marginal(name), MARKS.get(verdict, "")
        if isinstance(marginal, Categorical):
            states = _states(marginal)
            discrete.add_row(escape(name), f"{states}  {OBSERVED}" if is_seen else states, mark)
            continue
        low, high = marginal.interval(0.9)
        real.add_row(
            escape(name),
            _spark(marginal, spark_width),
            f"{marginal.mean:.4g}",
            f"{marginal.std:.4g}",
            OBSERVED if is_seen else f"{low:.4g} to {high:.4g}",
            mark,
        )
    begins_real = len(ids) and posterior.variables.num_states[ids[0]] == 0
    tables = (real, discrete) if begins_real else (discrete, real)
    return [table for table in tables if table.row_count]


def _states(marginal: Categorical) -> str:
    """The probabilities of the likeliest states, each with a bar."""
    order = np.argsort(-marginal.probs, kind="stable")[:4]
    shown = sorted(order.tolist())
    words = [
        f"{escape(marginal.states[s])} {_bar(float(marginal.probs[s]))} {marginal.probs[s]:.4f}"
        for s in shown
    ]
    rest = len(marginal.states) - len(shown)
    return "  ".join(words) + (f"  (+{rest} states)" if rest else "")


def _bar(share: float) -> str:
    return BARS[round(share * (len(BARS) - 1))]


def _spark(marginal: Any, width: int) -> str:
    """The density between extreme quantiles, as a line of bars."""
    low, high = marginal.quantile(0.001), marginal.quantile(0.999)
    if not high > low:
        return ""
    density = np.asarray(marginal.pdf(np.linspace(low, high, width)))
    return "".join(_bar(float(share)) for share in density / density.max())
