"""`hylift race`."""

from __future__ import annotations

from pathlib import Path
from typing import cast, get_args

from rich.console import Console

from hylift.cli import outputs
from hylift.cli.model import Given, as_text, read_graph
from hylift.cli.render import escape, print_table, progress_bar
from hylift.errors import check_word
from hylift.graph import FactorGraph
from hylift.inference import Lift
from hylift.inference.settings import checked_seconds, checked_seed
from hylift.plot import plot_race
from hylift.racing import Race, checked_name, race, text
from hylift.words import cli_text, counted


def run(
    model: Path,
    *,
    given: Given,
    methods: list[str] | None,
    seconds: float,
    lift: str,
    seed: int,
    figure: Path | None,
    output: str | None,
    quiet: bool,
) -> None:
    """Run the methods, and show or write how they ended."""
    names = [checked_name(word) for text in methods or () for word in text.split(",")]
    check_word("lift", lift, get_args(Lift))
    checked_seconds(seconds)
    checked_seed(seed)
    drawn, written = outputs.figure(figure), outputs.result(output, "a race")
    outputs.check_outputs([drawn, written], given.read(model))
    graph, _ = read_graph(model, given, quiet=quiet)
    with progress_bar(quiet) as progress:
        found = race(
            graph,
            names or None,
            seconds=seconds,
            lift=cast(Lift, lift),
            seed=seed,
            progress=progress,
        )
    answer = outputs.CommandResult(
        lambda out: _show(out, model.name, graph, found),
        lambda: {"model": as_text(model), "seed": seed, **found.to_dict()},
        found.table,
    )
    outputs.deliver(
        answer, written, [(drawn, lambda path: plot_race(found, path=path))], quiet=quiet
    )


def _show(out: Console, title: str, graph: FactorGraph, found: Race) -> None:
    out.print(
        f"[bold]{escape(title)}[/bold]: {counted(graph.num_variables, 'variable')}, "
        f"{graph.evidence.counts}; {found.seconds:g} s for each method",
        highlight=False,
    )
    print_table(out, text.results(found))
    for line in text.remarks(found):
        out.print(escape(cli_text(line)), highlight=False)
    if found.skipped:
        out.print("Skipped:")
        out.print(str(text.skipped(found, cli_text)), markup=False, highlight=False)
