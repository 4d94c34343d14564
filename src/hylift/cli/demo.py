"""`hylift demo`: the hybrid Markov logic network of boxes and attraction, solved exactly."""

from __future__ import annotations

from pathlib import Path

from hylift.cli.render import show
from hylift.files import check_figure
from hylift.grounding import ground
from hylift.inference import infer
from hylift.language import parse

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


def run(figure: Path | None) -> None:
    """Solves the model, and shows marginals, log Z and the MAP assignment."""
    if figure is not None:
        check_figure(figure)
    print(STORY)
    print(MODEL)
    posterior = infer(ground(parse(MODEL, name="demo")), tasks=("marginals", "logz", "map"))
    atoms = ["pos*", "attractedTo(a0,*)", "AInBox(a0,box0)"]
    show(
        posterior,
        ["logz", "marginals", "map"],
        title="boxes",
        ids=posterior.select(atoms),
    )
    if figure is not None:
        from hylift.plot import plot_marginals

        plot_marginals(posterior, ["posA(a0)", "posB(b0)", "attractedTo(a0,b0)"], path=figure)
        print(f"Figure: {figure}")
