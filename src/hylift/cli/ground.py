"""`hylift ground`."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from rich.markup import escape
from rich.table import Table

from hylift.cli.model import Given, check_not_read, ground_file
from hylift.cli.render import console, print_notes, progress_bar
from hylift.errors import UnsupportedError
from hylift.files import check_target
from hylift.formats.uai import write_uai


def run(model: Path, given: Given, *, stats: bool, output: Path | None, quiet: bool) -> None:
    """Grounds a model, shows what came of it, and writes it as a UAI file if asked to."""
    if output is not None:
        check_target(output)
        if output.suffix.lower() != ".uai":
            raise UnsupportedError(f"{output}: a ground model is written to a file in .uai")
        check_not_read(output, model, given)
    start = time.perf_counter()
    with progress_bar(quiet) as progress:
        grounding = ground_file(model, given, progress)
    seconds = time.perf_counter() - start
    if output is not None:
        write_uai(grounding.graph, output)
    if quiet:
        return
    print_notes(grounding.notes)
    found = grounding.statistics()
    out = console()
    out.print(
        f"{escape(model.name)}: {found.num_variables:,} variables and {found.num_groundings:,} "
        f"factors, grounded in {seconds:.2f} s",
        highlight=False,
    )
    out.print(
        f"observed: {found.num_observed:,} variables; kept: {grounding.graph.size_estimate()}",
        highlight=False,
    )
    if stats:
        out.print(_predicates(found))
        out.print(_rules(found))
    if output is not None:
        out.print(f"Ground model: {escape(str(output))}", highlight=False)


def _predicates(found: Any) -> Table:
    table = Table("predicate", "atoms", "observed", "world", box=None, pad_edge=False)
    for predicate in found.predicates:
        world = "closed" if predicate.is_closed else "open"
        counts = (f"{predicate.num_atoms:,}", f"{predicate.num_observed:,}")
        table.add_row(escape(predicate.name), *counts, world)
    return _right(table, 1, 2)


def _rules(found: Any) -> Table:
    table = Table("groundings", "factors", "constant", "rule", box=None, pad_edge=False)
    for rule in found.rules:
        constant = rule.num_groundings - rule.num_factors
        counts = (f"{n:,}" for n in (rule.num_groundings, rule.num_factors, constant))
        table.add_row(*counts, escape(rule.label))
    return _right(table, 0, 1, 2)


def _right(table: Table, *columns: int) -> Table:
    for column in columns:
        table.columns[column].justify = "right"
    return table
