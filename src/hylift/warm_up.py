"""`python -m hylift.warm_up`: compiles all kernels, so that the first answer does not wait."""

import tempfile
from pathlib import Path

import numpy as np


def warm_up() -> None:
    """Runs every kernel once, on a model of a few variables."""
    import hylift as hl

    quadratic = hl.ConditionalQuadratic.linear_gaussian([1.0], 1.0)
    graph = hl.FactorGraph.build(
        {"a": hl.boolean, "b": hl.boolean, "x": hl.real, "y": hl.real},
        [
            (hl.Table.shared(np.zeros((2, 2))), ["a", "b"]),
            (hl.ConditionalQuadratic.switch([quadratic, quadratic]), ["a", "x", "y"]),
            (quadratic, ["x", "y"]),
            (hl.ConditionalQuadratic.square(-1.0), ["y"]),
        ],
    )
    hl.infer(graph, tasks=("marginals", "logz", "map"))
    chain = hl.Variables.uniform(hl.boolean, 64)
    links = np.stack([np.arange(63), np.arange(1, 64)], axis=1).astype(np.int32)
    for multiplicity in (1.0, 2.0):
        group = hl.FactorGroup(
            hl.Table.shared(np.eye(2)), links, multiplicity=np.full(63, multiplicity)
        )
        hl.lift(hl.FactorGraph(chain, (group,)))
    list(hl.coarse_to_fine(graph.observe({"x": 1.0})))
    hl.ground(hl.parse("P(thing)\n1 P(x) => P(y)"), {"thing": ["a", "b"]})
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.uai"
        path.write_text("MARKOV\n1\n2\n1\n1 0\n\n2\n 1 1\n")
        hl.infer(hl.read_uai(path))


if __name__ == "__main__":
    warm_up()
