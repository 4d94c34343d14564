"""`hylift ground`."""

from __future__ import annotations

import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pyarrow as pa
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from hylift.cli.model import Given, as_text, ground_file
from hylift.cli.outputs import Answer, check_outputs, deliver, result
from hylift.cli.render import progress_bar
from hylift.cli.stderr import print_notes
from hylift.formats.uai import write_uai
from hylift.grounding import Grounding
from hylift.grounding.sizes import GroundStatistics
from hylift.words import observed_and_measured

SCHEMA = pa.schema(
    [
        ("kind", pa.string()),
        ("name", pa.string()),
        ("atoms", pa.int64()),
        ("observed", pa.int64()),
        ("measured", pa.int64()),
        ("is_closed", pa.bool_()),
        ("groundings", pa.int64()),
        ("factors", pa.int64()),
    ]
)


def run(model: Path, given: Given, *, stats: bool, output: str | None, quiet: bool) -> None:
    """Grounds a model, shows what came of it, and writes it or its sizes if asked to."""
    written = result(output, "a ground model", ".uai")
    check_outputs([written], given.read(model))
    start = time.perf_counter()
    with progress_bar(quiet) as progress:
        grounding = ground_file(model, given, progress)
    seconds = time.perf_counter() - start
    if not quiet:
        print_notes(grounding.notes)
    found = grounding.statistics()
    answer = Answer(
        lambda out: _show(out, model.name, grounding, found, seconds, stats=stats),
        lambda: {"model": as_text(model), **_counts(found), "notes": list(grounding.notes)},
        lambda: _table(found),
        {".uai": lambda path: write_uai(grounding.graph, path)},
    )
    deliver(answer, written, quiet=quiet)


def _show(
    out: Console,
    title: str,
    grounding: Grounding,
    found: GroundStatistics,
    seconds: float,
    *,
    stats: bool,
) -> None:
    out.print(
        f"{escape(title)}: {found.num_variables:,} variables and {found.num_groundings:,} "
        f"factors, grounded in {seconds:.2f} s",
        highlight=False,
    )
    out.print(
        f"{observed_and_measured(found.num_observed, found.num_measured)}; "
        f"kept: {grounding.graph.size_estimate()}",
        highlight=False,
    )
    if stats:
        out.print(_predicates(found))
        out.print(_rules(found))


def _counts(found: GroundStatistics) -> dict[str, Any]:
    """The statistics for JSON."""
    return {
        "num_variables": found.num_variables,
        "num_observed": found.num_observed,
        "num_measured": found.num_measured,
        "num_groundings": found.num_groundings,
        "num_factors": found.num_factors,
        "predicates": [asdict(predicate) for predicate in found.predicates],
        "rules": [asdict(rule) for rule in found.rules],
    }


def _table(found: GroundStatistics) -> pa.Table:
    """A row per predicate and per rule."""
    rows: list[dict[str, object]] = [
        {
            "kind": "predicate",
            "name": predicate.name,
            "atoms": predicate.num_atoms,
            "observed": predicate.num_observed,
            "measured": predicate.num_measured,
            "is_closed": predicate.is_closed,
        }
        for predicate in found.predicates
    ]
    rows += [
        {
            "kind": "rule",
            "name": rule.label,
            "groundings": rule.num_groundings,
            "factors": rule.num_factors,
        }
        for rule in found.rules
    ]
    return pa.Table.from_pylist(rows, schema=SCHEMA)


def _predicates(found: GroundStatistics) -> Table:
    measured = ["measured"] if found.num_measured else []
    header = ["predicate", "atoms", "observed", *measured, "world"]
    table = Table(*header, box=None, pad_edge=False)
    for predicate in found.predicates:
        world = "closed" if predicate.is_closed else "open"
        counts = [predicate.num_atoms, predicate.num_observed]
        counts += [predicate.num_measured] if measured else []
        table.add_row(escape(predicate.name), *(f"{count:,}" for count in counts), world)
    return _right(table, *range(1, len(header) - 1))


def _rules(found: GroundStatistics) -> Table:
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
