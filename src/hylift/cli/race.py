"""`hylift race`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast, get_args

from rich.console import Console
from rich.markup import escape

from hylift.cli.method import check_word
from hylift.cli.model import Given, as_text, check_not_read, read_graph
from hylift.cli.render import console, print_json, print_notes, progress_bar, worded
from hylift.errors import UnsupportedError
from hylift.files import check_figure, check_target
from hylift.graph import FactorGraph
from hylift.inference import Lift
from hylift.posterior.export import write_json, write_table
from hylift.racing import Race, checked_name, race, text
from hylift.words import counted

ENDINGS = (".csv", ".json", ".parquet")


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
        if not self.seconds > 0:
            raise UnsupportedError(f"--seconds is a positive number, not {self.seconds:g}")
        if self.seed < 0:
            raise UnsupportedError(
                f"a seed is a whole number that is not negative, not {self.seed}"
            )

    @property
    def names(self) -> list[str]:
        return [word for text in self.methods for word in text.split(",") if word.strip()]


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
    _check_files(model, given, figure, output)
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
    if figure is not None:
        from hylift.plot import plot_race

        plot_race(found, path=figure)
    result = {"model": as_text(model), "seed": how.seed, **found.to_dict()}
    if output == "-":
        print_json(result)
        return
    if output is not None and Path(output).suffix.lower() == ".json":
        write_json(result, output)
    elif output is not None:
        write_table(found.table(), output)
    if quiet:
        return
    out = console()
    _show(out, model.name, graph, found)
    for what, path in (("Figure:", figure), ("Written to", output)):
        if path is not None:
            out.print(f"{what} {escape(str(path))}", highlight=False, soft_wrap=True)


def _show(out: Console, title: str, graph: FactorGraph, found: Race) -> None:
    num_observed = int(graph.evidence.is_hard.sum())
    out.print(
        f"[bold]{escape(title)}[/bold]: {counted(graph.num_variables, 'variable')}, "
        f"{num_observed:,} observed; {found.seconds:g} s for each method",
        highlight=False,
    )
    out.print(worded(text.results(found)), highlight=False)
    for line in text.remarks(found):
        out.print(escape(line), highlight=False)
    if found.skipped:
        out.print("Skipped:")
        out.print(escape(str(text.skipped(found))), highlight=False)


def _check_files(model: Path, given: Given, figure: Path | None, output: str | None) -> None:
    """Raises if a file cannot be written, or would replace what is read."""
    if figure is not None:
        check_figure(figure)
        check_not_read(figure, model, given)
    if output is None or output == "-":
        return
    check_target(output)
    if Path(output).suffix.lower() not in ENDINGS:
        raise UnsupportedError(
            f"{output}: a race is written to a file in {', '.join(ENDINGS)}, or '-'"
        )
    check_not_read(output, model, given)
