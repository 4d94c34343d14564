"""`hylift demo`: a hybrid Markov logic network of boxes, solved exactly and by BVI."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
from rich.console import Console
from rich.table import Table

from hylift.cli import outputs
from hylift.cli.render import progress_bar, show
from hylift.graph import FactorGraph
from hylift.grounding import ground
from hylift.inference import BVI, Exact, Method, Task, infer
from hylift.inference.settings import checked_seed
from hylift.language import parse
from hylift.plot import plot_marginals
from hylift.posterior import Categorical, Posterior
from hylift.posterior.export import to_dict
from hylift.progress import part_of

STORY = """Two objects A and three objects B may lie in two boxes. An A and a B in one box attract
each other; an A that is attracted is near -7, a B that nothing attracts is near 2.
"""

MODEL = """A = {a0, a1}
B = {b0, b1, b2}
Box = {box0, box1}
AInBox(A, Box)
BInBox(B, Box)
attractedTo(A, B)
posA(A): real[-15, 15]
posB(B): real[-15, 15]

0.1    AInBox(a, x) ^ BInBox(b, x) => attractedTo(a, b)
0.2    !attractedTo(a, b) * (posB(b) = 2) + attractedTo(a, b) * (posA(a) = -7)
-0.04  posB(b)^2 + posA(a)^2
"""


ATOMS = ("posA(a0)", "posB(b0)", "attractedTo(a0,b0)", "AInBox(a0,box0)")
"""One of each class but that of BInBox: all the others are like them."""


TASKS: list[Task] = ["marginals", "logz", "map"]


def run(*, figure: Path | None, output: str | None, seed: int, quiet: bool) -> None:
    """Solve the model, and show marginals, log Z and the MAP assignment."""
    drawn, written = outputs.figure(figure), outputs.result(output, "a result")
    outputs.check_outputs([drawn, written], [])
    checked_seed(seed)
    with progress_bar(quiet) as progress:
        graph = ground(parse(MODEL, name="demo"))
        posteriors = {}
        methods: list[Method] = [Exact(), BVI(components=3)]
        for number, method in enumerate(methods):
            part = part_of(progress, method.name, number, len(methods))
            posteriors[method.name] = infer(graph, method, tasks=TASKS, seed=seed, progress=part)
    exact = posteriors["exact"]
    answer = outputs.CommandResult(
        lambda out: _show(out, graph, posteriors),
        lambda: {
            "seed": seed,
            "results": [to_dict(found, TASKS, model="demo") for found in posteriors.values()],
        },
        lambda: _table(posteriors),
    )
    outputs.deliver(
        answer,
        written,
        [(drawn, lambda path: plot_marginals(exact, ATOMS[:3], path=path))],
        quiet=quiet,
    )


def _show(out: Console, graph: FactorGraph, posteriors: dict[str, Posterior]) -> None:
    exact, approximate = posteriors.values()
    out.print(STORY, highlight=False)
    out.print(MODEL, markup=False, highlight=False)
    show(out, exact, TASKS, title="boxes", evidence=graph.evidence, ids=exact.select(ATOMS))
    out.print(
        "\nThe same by BVI, which solves look-alikes once and goes where exact inference cannot:"
    )
    ids = approximate.select(ATOMS)
    show(out, approximate, ["logz"], title="boxes", evidence=graph.evidence, ids=ids)
    out.print(_side_by_side(posteriors))


def _table(posteriors: dict[str, Posterior]) -> pa.Table:
    """The marginals of all methods, with a column for the method."""
    tables = []
    for name, found in posteriors.items():
        table = found.marginals()
        tables.append(table.append_column("method", pa.array([name] * len(table))))
    return pa.concat_tables(tables)


def _side_by_side(posteriors: dict[str, Posterior]) -> Table:
    """A column of marginals for each method."""
    table = Table("atom", *posteriors, box=None, header_style="bold")
    for atom in ATOMS:
        table.add_row(atom, *(_short(found.marginal(atom)) for found in posteriors.values()))
    return table


def _short(marginal: Any) -> str:
    if isinstance(marginal, Categorical):
        return f"true {marginal.prob('true'):.4f}"
    return f"{marginal.mean:.3f} ± {marginal.std:.3f}"
