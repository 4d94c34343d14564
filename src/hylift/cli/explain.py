"""`hylift explain`."""

from __future__ import annotations

import time
from pathlib import Path

from rich.console import Console
from rich.markup import escape

from hylift.cli.model import (
    Given,
    as_text,
    check_not_read,
    ground_file,
    read_graph,
)
from hylift.cli.render import console, print_json, print_notes, progress_bar, worded
from hylift.errors import UnsupportedError
from hylift.files import check_figure, check_target
from hylift.graph import FactorGraph
from hylift.lifting import Lifting, lift
from hylift.lifting.explanation import Explanation, text
from hylift.posterior.export import write_json
from hylift.progress import Progress
from hylift.words import counted


def run(model: Path, given: Given, *, figure: Path | None, output: str | None, quiet: bool) -> None:
    """Lifts a model, and shows or writes what that saved and what stood against it."""
    if figure is not None:
        check_figure(figure)
        check_not_read(figure, model, given)
    if output is not None and output != "-":
        check_target(output)
        if Path(output).suffix.lower() != ".json":
            raise UnsupportedError(
                f"{output}: an explanation is written to a file in .json, or '-'"
            )
        check_not_read(output, model, given)
    with progress_bar(quiet) as progress:
        graph, notes, unmeasured = _read(model, given, progress)
    if not quiet:
        print_notes(notes)
    with progress_bar(quiet) as progress:
        start = time.perf_counter()
        lifting = lift(graph, progress=progress)
        seconds = time.perf_counter() - start
        explanation = lifting.explain(progress=progress)
    if figure is not None:
        from hylift.plot import plot_classes

        plot_classes(lifting, path=figure)
    result = {"model": as_text(model), **explanation.to_dict(), "notes": unmeasured}
    if output == "-":
        print_json(result)
        return
    if output is not None:
        write_json(result, output)
    if quiet:
        return
    out = console()
    _show(out, model.name, lifting, explanation, seconds)
    for line in unmeasured:
        out.print(escape(line), highlight=False)
    for what, path in (("Figure", figure), ("Explanation", output)):
        if path is not None:
            out.print(f"{what}: {escape(str(path))}", highlight=False, soft_wrap=True)


def _read(
    model: Path, given: Given, progress: Progress
) -> tuple[FactorGraph, tuple[str, ...], list[str]]:
    """The graph, notes on it, and which evidence is not judged because factors were made of it."""
    if model.suffix.lower() != ".mln":
        return *read_graph(model, given, progress), []
    grounding = ground_file(model, given, progress)
    closed, soft = sorted(grounding.world.closed), grounding.observed.groups
    unmeasured = []
    if closed:
        unmeasured.append(
            f"Not measured: closed-world evidence ({', '.join(closed)}), which shapes the ground "
            "graph itself."
        )
    if soft:
        labels = ", ".join(dict.fromkeys(group.label for group in soft))
        unmeasured.append(
            f"Not measured: {labels} that is a probability or excludes a state; it has become "
            "factors of the graph."
        )
    return grounding.graph, grounding.notes, unmeasured


def _show(
    out: Console, title: str, lifting: Lifting, explanation: Explanation, seconds: float
) -> None:
    out.print(
        f"{escape(title)}: {counted(lifting.source.num_variables, 'variable')}, "
        f"{explanation.num_observed:,} observed; lifted in {seconds:.2f} s",
        highlight=False,
    )
    out.print(worded(text.sizes(explanation)))
    if explanation.largest:
        out.print("\nThe largest classes:")
        out.print(worded(text.largest(explanation)))
        out.print(text.alone(explanation), highlight=False)
    if explanation.effects:
        out.print("\n" + text.evidence_title(explanation), highlight=False)
        out.print(worded(text.evidence(explanation)))
    out.print()
    for line in text.verdict(explanation):
        out.print(escape(line), highlight=False)
