"""`hylift ground`."""

from __future__ import annotations

import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console

from hylift.cli.model import Given, as_text, ground_file
from hylift.cli.outputs import CommandResult, check_outputs, deliver, result
from hylift.cli.render import escape, print_table
from hylift.formats.uai import write_uai
from hylift.grounding import Grounding
from hylift.grounding.sizes import GroundStatistics
from hylift.words import TextTable, observed_and_measured


def run(
    model: Path,
    *,
    given: Given,
    stats: bool,
    output: str | None,
    quiet: bool,
) -> None:
    """Ground a model, show its sizes, and write it or its sizes if asked to."""
    written = result(output, "a ground model", ".uai")
    check_outputs([written], given.read(model))
    start = time.perf_counter()
    grounding = ground_file(model, given, quiet=quiet)
    seconds = time.perf_counter() - start
    found = grounding.statistics()
    answer = CommandResult(
        lambda out: _show(out, model.name, grounding, found, seconds, stats=stats),
        lambda: {"model": as_text(model), **_counts(found), "notes": list(grounding.notes)},
        found.to_arrow,
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
        print_table(out, _predicates(found))
        print_table(out, _rules(found))


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


def _predicates(found: GroundStatistics) -> TextTable:
    measured = ("measured",) if found.num_measured else ()
    header = ("predicate", "atoms", "observed", *measured, "world")
    rows = []
    for predicate in found.predicates:
        world = "closed" if predicate.is_closed else "open"
        counts = [predicate.num_atoms, predicate.num_observed]
        counts += [predicate.num_measured] if measured else []
        rows.append((predicate.name, *(f"{count:,}" for count in counts), world))
    return TextTable(header, tuple(rows), tuple(range(1, len(header) - 1)))


def _rules(found: GroundStatistics) -> TextTable:
    rows = []
    for rule in found.rules:
        counts = (rule.num_groundings, rule.num_factors, rule.num_groundings - rule.num_factors)
        rows.append((*(f"{count:,}" for count in counts), rule.label))
    return TextTable(("groundings", "factors", "constant", "rule"), tuple(rows), (0, 1, 2))
