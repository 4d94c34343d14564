"""`hylift race`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast, get_args

from rich.console import Console
from rich.markup import escape

from hylift.cli import outputs
from hylift.cli.method import check_seconds, check_word
from hylift.cli.model import Given, as_text, read_graph
from hylift.cli.render import print_table, progress_bar
from hylift.cli.stderr import print_notes
from hylift.graph import FactorGraph
from hylift.inference import Lift
from hylift.inference.run import checked_seed
from hylift.plot import plot_race
from hylift.racing import Race, checked_name, race, text
from hylift.words import cli_text, counted


@dataclass(frozen=True, slots=True)
class RaceOptions:
    """What the options of the command say about who runs, and how."""

    methods: Sequence[str] = ()
    seconds: float = 30.0
    lift: str = "exact"
    seed: int = 0

    def __post_init__(self) -> None:
        """Finds all that is wrong with the options, before any work."""
        for name in self.names:
            checked_name(name)
        check_word("lift", self.lift, get_args(Lift))
        check_seconds(self.seconds)
        checked_seed(self.seed)

    @property
    def names(self) -> list[str]:
        """Empty where nobody is named, so that all run."""
        return [word.strip() for text in self.methods for word in text.split(",")]


def run(
    model: Path,
    *,
    given: Given,
    how: RaceOptions,
    figure: Path | None,
    output: str | None,
    quiet: bool,
) -> None:
    """Reads, lets the methods run, and shows or writes how they ended."""
    drawn, written = outputs.figure(figure), outputs.result(output, "a race")
    outputs.check_outputs([drawn, written], given.read(model))
    with progress_bar(quiet) as progress:
        graph, notes = read_graph(model, given, progress)
    if not quiet:
        print_notes(notes)
    with progress_bar(quiet) as progress:
        found = race(
            graph,
            how.names or None,
            seconds=how.seconds,
            lift=cast(Lift, how.lift),
            seed=how.seed,
            progress=progress,
        )
    answer = outputs.Answer(
        lambda out: _show(out, model.name, graph, found),
        lambda: {"model": as_text(model), "seed": how.seed, **found.to_dict()},
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
        out.print(escape(str(text.skipped(found, cli_text))), highlight=False)
