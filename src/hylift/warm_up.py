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
    _lift_in_all_ways()
    hl.ground(hl.parse("P(thing)\n1 P(x) => P(y)"), {"thing": ["a", "b"]})
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.uai"
        path.write_text("MARKOV\n1\n2\n1\n1 0\n\n2\n 1 1\n")
        hl.infer(hl.read_uai(path))


def _lift_in_all_ways() -> None:
    """From coarse to fine with hard and soft evidence, and explained."""
    import hylift as hl
    from hylift.lifting import Beliefs, Level, by_disagreement

    model = hl.parse("""
        thing = {t0, ..., t9}
        Near(thing, thing)
        On(thing)
        level(thing): real
        1 On(x) ^ On(y) => Near(x, y)
        -1 level(x)^2
        -0.1 Near(x, y) * (level(x) - level(y))^2
    """)
    hard = {f"level(t{i})": float(i**2) for i in range(4)}
    soft = {f"level(t{i})": hl.Soft(float(i), 0.5) for i in range(4, 8)}
    said = {"On(t0)": True, "Near(t0,t1)": True, "Near(t2,t3)": False}

    def beliefs(level: Level) -> Beliefs:
        count = level.lifting.num_classes
        return Beliefs(
            np.ones(1), np.zeros((1, count)), np.ones((1, count)), np.full((1, count, 2), 0.5)
        )

    for evidence in (hard | said, hard | soft):
        graph = hl.ground(model).observe(evidence)
        hl.lift(graph).explain()
        list(hl.coarse_to_fine(graph, choose=by_disagreement(beliefs)))


if __name__ == "__main__":
    warm_up()
