"""`hylift demo`: the hybrid Markov logic network of boxes and attraction, solved exactly."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from hylift.cli.render import show
from hylift.errors import UnsupportedError
from hylift.files import check_target
from hylift.graph import Atoms, FactorGraph, FactorGroup, Variables, boolean, interval
from hylift.inference import infer
from hylift.potentials import ConditionalQuadratic, Table

FIGURES = (".png", ".pdf", ".svg")

STORY = """Two objects A and three objects B may lie in two boxes. An A and a B in one box attract
each other (weight 0.1). An A that is attracted is near -7; a B that nothing attracts is near 2.
16 Booleans and 5 reals: the positions' exact marginals are mixtures over all joint states.
"""


def boxes(num_a: int = 2, num_b: int = 3, num_boxes: int = 2) -> FactorGraph:
    """AInBox, BInBox, attractedTo (Boolean), posA, posB (real): built from arrays of ids."""
    a_names, b_names, x_names = (
        [f"{letter}{i}" for i in range(count)]
        for letter, count in (("a", num_a), ("b", num_b), ("box", num_boxes))
    )
    position = interval(-15, 15)
    variables = Variables.in_blocks(
        [
            (Atoms("AInBox", (a_names, x_names)), boolean),
            (Atoms("BInBox", (b_names, x_names)), boolean),
            (Atoms("attractedTo", (a_names, b_names)), boolean),
            (Atoms("posA", (a_names,)), position),
            (Atoms("posB", (b_names,)), position),
        ]
    )
    a_in, b_in, attracted, pos_a, pos_b, _ = variables.names.offsets

    a, b, x = (i.reshape(-1) for i in np.indices((num_a, num_b, num_boxes)))
    in_box = [a_in + a * num_boxes + x, b_in + b * num_boxes + x, attracted + a * num_b + b]
    a, b = (i.reshape(-1) for i in np.indices((num_a, num_b)))
    pair = [attracted + a * num_b + b, pos_a + a, pos_b + b]

    implies = np.ones((2, 2, 2), dtype=bool)
    implies[1, 1, 0] = False
    near = ConditionalQuadratic.switch(
        [
            ConditionalQuadratic.squared_distance(0.2, [0.0, 1.0], 2.0),
            ConditionalQuadratic.squared_distance(0.2, [1.0, 0.0], -7.0),
        ]
    )
    prior = ConditionalQuadratic.shared(-0.04 * np.eye(2), [0.0, 0.0])
    groups = (
        FactorGroup(Table.weighted(0.1, implies), np.stack(in_box, 1), label="same box attracts"),
        FactorGroup(near, np.stack(pair, 1), label="attraction moves"),
        FactorGroup(prior, np.stack(pair[1:], 1), label="prior"),
    )
    return FactorGraph(variables, groups)


def run(figure: Path | None) -> None:
    """Solves the model, and shows marginals, log Z and the MAP assignment."""
    if figure is not None:
        check_target(figure)
        if figure.suffix.lower() not in FIGURES:
            raise UnsupportedError(f"{figure}: a figure's name ends in {', '.join(FIGURES)}")
    print(STORY)
    graph = boxes()
    posterior = infer(graph, tasks=("marginals", "logz", "map"))
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
