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
    _fit_in_all_ways()
    _fit_in_blocks()
    _search_in_all_ways()
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


def _fit_in_all_ways() -> None:
    """Both entropies, all families and optimisers, from a few starts and by coordinates."""
    import hylift as hl
    from hylift.inference import Lift

    wave = hl.Function(lambda on, u, height: height * on * np.cos(u), 1, 1, np.ones((1, 1)))
    place = hl.ConditionalQuadratic.gaussian([[-1.0], [0.0], [2.0]], [[[0.5]], [[1.0]], [[2.0]]])
    closed = hl.FactorGraph.build(
        {"a": hl.boolean, "b": hl.boolean, "s": hl.categorical(3), "x": hl.real, "y": hl.real},
        [
            (hl.Table.shared([[0.0, -np.inf], [1.0, 0.0]]), ["a", "b"]),
            (place, [["s", "x"], ["s", "y"]]),
            (hl.ConditionalQuadratic.product(0.2), ["x", "y"]),
        ],
    )
    open_form = hl.FactorGraph.build(
        {"on": hl.boolean, "u": hl.interval(0, 1), "x": hl.real},
        [
            (wave, ["on", "u"]),
            (hl.ConditionalQuadratic.square(-1.0), [["u"], ["x"]]),
            (hl.ConditionalQuadratic.product(0.2), ["u", "x"]),
        ],
    )
    bvi = hl.BVI(2, restarts=2, max_steps=3)
    for graph in (closed, open_form):
        for method in (bvi, hl.NPVI(2, restarts=2, max_steps=3), hl.MeanField()):
            hl.infer(graph, method, tasks=("marginals", "logz", "map"))
    hl.infer(closed, hl.BVI(2, hl.Adam(), restarts=2, max_steps=3), lift="none")
    gaussian = hl.FactorGraph.build(
        {f"x{i}": hl.real for i in range(30)},
        [
            (hl.ConditionalQuadratic.square(-1.0), [[f"x{i}"] for i in range(30)]),
            (hl.ConditionalQuadratic.product(0.2), [[f"x{i}", f"x{i + 1}"] for i in range(29)]),
        ],
    ).observe({"x3": 1.0})
    levels: tuple[Lift, ...] = ("exact", "coarse-to-fine", "none")
    for lift in levels:
        hl.infer(gaussian, bvi, lift=lift)


def _fit_in_blocks() -> None:
    """A chain long enough that threads share it."""
    import hylift as hl

    place = np.arange(3000, dtype=np.int32)
    links = np.stack([place[:-1], place[1:]], axis=1)
    groups = (
        hl.FactorGroup(hl.ConditionalQuadratic.square(-1.0), place[:, None]),
        hl.FactorGroup(hl.ConditionalQuadratic.product(0.2), links),
    )
    graph = hl.FactorGraph(hl.Variables.uniform(hl.interval(-2, 2), 3000), groups)
    hl.infer(graph, hl.BVI(2, restarts=1, max_steps=1), lift="none", seconds=0.01)


def _search_in_all_ways() -> None:
    """With reals and without, from where hard constraints are broken."""
    import hylift as hl
    from hylift.inference.search import polish

    names = [f"a{i}" for i in range(8)]
    differ = hl.Table.shared([[-np.inf, 0.0], [0.0, -np.inf]])
    graph = hl.FactorGraph.build(
        dict.fromkeys(names, hl.boolean) | {"x": hl.real},
        [
            (differ, [[names[i], names[i + 1]] for i in range(7)]),
            (hl.ConditionalQuadratic.square(-1.0).times([0.5, 1.0]), ["a0", "x"]),
        ],
    )
    polish(graph, np.zeros((2, 9)))


if __name__ == "__main__":
    warm_up()
