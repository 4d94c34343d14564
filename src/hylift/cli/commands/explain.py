"""`hylift explain`."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pyarrow as pa
from rich.console import Console

from hylift.cli import outputs
from hylift.cli.model import Given, as_text, ground_file, read_graph
from hylift.cli.render import escape, print_table, progress_bar
from hylift.graph import FactorGraph
from hylift.graph.names import Predicates
from hylift.lifting import Explanation, Lifting, lift
from hylift.lifting import explanation_text as text
from hylift.plot import plot_classes
from hylift.words import counted


def run(
    model: Path,
    *,
    given: Given,
    figure: Path | None,
    output: str | None,
    quiet: bool,
) -> None:
    """Lift a model, and show or write what that saved and which evidence stood against it."""
    drawn, written = outputs.figure(figure), outputs.result(output, "an explanation")
    outputs.check_outputs([drawn, written], given.read(model))
    graph, unmeasured = _read(model, given, quiet=quiet)
    with progress_bar(quiet) as progress:
        start = time.perf_counter()
        lifting = lift(graph, progress=progress)
        seconds = time.perf_counter() - start
        explanation = lifting.explain(progress=progress)
    answer = outputs.CommandResult(
        lambda out: _show(out, model.name, lifting, explanation, seconds, unmeasured),
        lambda: {"model": as_text(model), **explanation.to_dict(), "notes": unmeasured},
        lambda: _table(lifting),
    )
    outputs.deliver(
        answer, written, [(drawn, lambda path: plot_classes(lifting, path=path))], quiet=quiet
    )


def _table(lifting: Lifting) -> pa.Table:
    """A row per hidden variable, with its class and how many are in it."""
    names = lifting.ground.variables.names
    predicates = Predicates.of(names)
    size = np.bincount(lifting.variable_to_class, minlength=lifting.num_classes)
    labels = pa.array(predicates.names, pa.string())
    return pa.table(
        {
            "atom": names.render(),
            "predicate": labels.take(pa.array(predicates.of_variable)),
            "class": lifting.variable_to_class,
            "class_size": lifting.spread(size),
        }
    )


def _read(model: Path, given: Given, *, quiet: bool) -> tuple[FactorGraph, list[str]]:
    """The graph, and which evidence is not judged because it became factors."""
    if model.suffix.lower() != ".mln":
        return read_graph(model, given, quiet=quiet)[0], []
    grounding = ground_file(model, given, quiet=quiet)
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
    return grounding.graph, unmeasured


def _show(
    out: Console,
    title: str,
    lifting: Lifting,
    explanation: Explanation,
    seconds: float,
    unmeasured: list[str],
) -> None:
    out.print(
        f"{escape(title)}: {counted(lifting.source.num_variables, 'variable')}, "
        f"{lifting.source.evidence.counts}; lifted in {seconds:.2f} s",
        highlight=False,
    )
    print_table(out, text.sizes(explanation))
    if explanation.largest:
        out.print("\nThe largest classes:")
        print_table(out, text.largest(explanation))
        out.print(text.alone(explanation), highlight=False)
    if explanation.effects:
        out.print("\n" + text.evidence_title(explanation), highlight=False)
        print_table(out, text.evidence(explanation))
    out.print()
    for line in [*text.verdict(explanation), *unmeasured]:
        out.print(escape(line), highlight=False)
