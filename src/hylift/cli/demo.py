"""`hylift demo`: a hybrid Markov logic network of boxes, solved exactly and by BVI."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rich.table import Table

from hylift.cli.render import console, show
from hylift.files import check_figure
from hylift.grounding import ground
from hylift.inference import BVI, Exact, infer
from hylift.language import parse
from hylift.posterior import Categorical, Posterior

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


def run(figure: Path | None) -> None:
    """Solves the model, and shows marginals, log Z and the MAP assignment."""
    if figure is not None:
        check_figure(figure)
    print(STORY)
    print(MODEL)
    graph = ground(parse(MODEL, name="demo"))
    exact = infer(graph, Exact(), tasks=("marginals", "logz", "map"))
    show(exact, ["logz", "marginals", "map"], title="boxes", ids=exact.select(ATOMS))
    print("\nThe same by BVI, which solves look-alikes once and goes where exact inference cannot:")
    approximate = infer(graph, BVI(components=3))
    show(approximate, ["logz"], title="boxes", ids=approximate.select(ATOMS))
    console().print(_side_by_side({"exact": exact, "BVI(3)": approximate}))
    if figure is not None:
        from hylift.plot import plot_marginals

        plot_marginals(exact, ATOMS[:3], path=figure)
        print(f"Figure: {figure}")


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
