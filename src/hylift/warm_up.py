"""`python -m hylift.warm_up`: compile all kernels, so that the first answer does not wait."""

import contextlib
import logging
import multiprocessing
import os
import tempfile
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

import numpy as np


def warm_up() -> None:
    """Run every kernel once, on models of a few variables."""
    for part in PARTS:
        part()
    _run_each_method()


def compile_in_parallel() -> None:
    """Compile all kernels, the parts in processes of their own where there are several cores, and
    print a line when one is done."""
    _expect_compilation()
    if (cores := os.cpu_count() or 1) > 1:
        spawn = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(
            min(cores, len(PARTS)), mp_context=spawn, initializer=_expect_compilation
        ) as pool:
            parts = [pool.submit(part) for part in PARTS]
            for number, done in enumerate(as_completed(parts), start=1):
                done.result()
                print(f"  {number} of {len(parts)} parts compiled", flush=True)
    # Where two processes stored a kernel that they share at one time, one of them was lost.
    warm_up()


def _expect_compilation() -> None:
    """Turn off the notice that kernels are compiled first, and doubts about answers."""
    from hylift.errors import DoubtWarning

    warnings.simplefilter("ignore", DoubtWarning)
    logging.getLogger("hylift").setLevel(logging.ERROR)


def _run_each_method() -> None:
    """Run every method of the list on a discrete, a Gaussian and a hybrid model, if it takes it."""
    import hylift as hl
    from hylift.errors import UnsupportedError
    from hylift.inference.capabilities import METHODS
    from hylift.inference.method import method_by_key

    square, table = hl.ConditionalQuadratic.square(-1.0), hl.Table.shared(np.eye(2))
    states = hl.FactorGraph.build({"a": hl.boolean, "b": hl.boolean}, [(table, ["a", "b"])])
    reals = hl.FactorGraph.build({"x": hl.real, "y": hl.real}, [(square, [["x"], ["y"]])])
    both = hl.FactorGraph.build(
        {"a": hl.boolean, "x": hl.real}, [(square.times([0.5, 1.0]), ["a", "x"])]
    )
    for graph in (states, reals, both):
        for info in METHODS:
            with contextlib.suppress(UnsupportedError):
                method = method_by_key(info.key, **dict(info.quick))
                hl.infer(graph, method, tasks=info.answers)


def _solve_exactly() -> None:
    """Marginals, log Z and the maximum, of a model from each source; a filter along time."""
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
    hl.infer(graph, hl.Exact(), tasks=("marginals", "logz", "map")).sample(2, seed=0)
    # Variances that different reals depend on.
    levels = hl.parse("""
        x(thing): real
        mu: real
        v: real[0.1, 9]
        u: real[0.1, 9]
        w: real[0.1, 9]
        normal(1 | x(t), v)
        normal(x(t) | mu, u)
        normal(mu | 0, w)
    """)
    hl.infer(hl.ground(levels, {"thing": [str(i) for i in range(12)]}), hl.Exact(tolerance=0.1))
    # So many variables that orders of elimination are searched for.
    place = np.arange(1100, dtype=np.int32)
    links = np.stack([place[:-1], place[1:]], axis=1)
    steps = hl.Variables.uniform(hl.boolean, len(place))
    long = hl.FactorGraph(steps, (hl.FactorGroup(hl.Table.shared(np.eye(2)), links),))
    hl.infer(long, hl.Exact(), tasks=("logz",))
    chain = hl.FactorGraph.build(
        {"x": hl.real, "y": hl.real},
        [(quadratic, ["y", "x"]), (hl.ConditionalQuadratic.square(-1.0), [["x"], ["y"]])],
    )
    hl.kalman_filter(chain, np.array([0, 1]))
    hl.ground(hl.parse("P(thing)\n1 P(x) => P(y)"), {"thing": ["a", "b"]})
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.uai"
        path.write_text("MARKOV\n1\n2\n1\n1 0\n\n2\n 1 1\n")
        hl.infer(hl.read_uai(path), hl.Exact())


def _sum_over_lattices() -> None:
    """Two coupled reals with twenty sensors each, with and without a third that has none."""
    import hylift as hl

    near = hl.ConditionalQuadratic.linear_gaussian([1.0], 1.0)
    own = hl.ConditionalQuadratic.gaussian([1e4], [[1.0]])  # so far that reals are centred
    sensor = own.times([0.1, 1.0])
    broken = [f"{real}{i}" for real in "xy" for i in range(20)]
    weights = hl.Table(np.stack([np.zeros(40), np.linspace(-3, -1, 40)], axis=1))
    for free in ([], ["z"]):
        graph = hl.FactorGraph.build(
            dict.fromkeys(broken, hl.boolean) | dict.fromkeys(["x", "y", *free], hl.real),
            [
                (weights, [[name] for name in broken]),
                (sensor, [[name, name[0]] for name in broken]),
                (near, [["x", "y"], *([real, "x"] for real in free)]),
                (own, [["x"], *([real] for real in free)]),
            ],
        )
        hl.infer(graph, hl.Exact(), tasks=("marginals", "logz", "map"))


def _lift() -> None:
    """Exactly, by distance, and from coarse to fine with hard and soft evidence; explained."""
    import hylift as hl
    from hylift.lifting import Beliefs, Level, by_disagreement, by_distance

    chain = hl.Variables.uniform(hl.boolean, 64)
    links = np.stack([np.arange(63), np.arange(1, 64)], axis=1).astype(np.int32)
    for multiplicity in (1.0, 2.0):
        group = hl.FactorGroup(
            hl.Table.shared(np.eye(2)), links, multiplicity=np.full(63, multiplicity)
        )
        list(by_distance(hl.FactorGraph(chain, (group,))))
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
        hl.lift(hl.ground_lifted(model, {"Near": [("t0", "t1", True)]}))
        list(hl.coarse_to_fine(graph, choose=by_disagreement(beliefs)))


def _fit() -> None:
    """Both entropies, all families and optimisers, from a few starts and by coordinates."""
    import hylift as hl

    place = hl.ConditionalQuadratic.gaussian([[-1.0], [0.0], [2.0]], [[[0.5]], [[1.0]], [[2.0]]])
    closed = hl.FactorGraph.build(
        {"a": hl.boolean, "b": hl.boolean, "s": hl.categorical(3), "x": hl.real, "y": hl.real},
        [
            (hl.Table.shared([[0.0, -np.inf], [1.0, 0.0]]), ["a", "b"]),
            (place, [["s", "x"], ["s", "y"]]),
            (hl.ConditionalQuadratic.product(0.2), ["x", "y"]),
        ],
    )
    wave = hl.Function(lambda on, u, height: height * on * np.cos(u), 1, 1, np.ones((1, 1)))
    bounded = hl.FactorGraph.build(
        {"on": hl.boolean, "u": hl.interval(0, 1), "x": hl.real},
        [
            (wave, ["on", "u"]),
            (hl.ConditionalQuadratic.square(-1.0), [["u"], ["x"]]),
            (hl.ConditionalQuadratic.product(0.2), ["u", "x"]),
        ],
    )
    for graph in (closed, bounded):
        for method in (
            hl.BVI(2, restarts=2, max_steps=3),
            hl.NPVI(2, restarts=2, max_steps=3),
            hl.MeanField(),
        ):
            hl.infer(graph, method, lift="none")
    hl.infer(closed, hl.BVI(2, hl.Adam(), restarts=2, max_steps=3), lift="none")
    _fit_in_blocks()


def _fit_in_blocks() -> None:
    """Chains so long that threads share them, and that their means are found step by step."""
    import hylift as hl

    size = 20_010
    place = np.arange(size, dtype=np.int32)
    links = np.stack([place[:-1], place[1:]], axis=1)
    for domain in (hl.real, hl.interval(-1, 1)):
        groups = (
            hl.FactorGroup(hl.ConditionalQuadratic.square(-1.0), place[:, None]),
            hl.FactorGroup(hl.ConditionalQuadratic.product(0.2), links),
        )
        graph = hl.FactorGraph(hl.Variables.uniform(domain, size), groups)
        method = hl.BVI(2, restarts=1, max_steps=1)
        graph = graph.observe(hl.Evidence.of([0], [0.5]))
        hl.infer(graph, method, lift="none", seconds=0.001)


def _search() -> None:
    """Discrete variables and reals, from where hard constraints are broken, with functions."""
    import hylift as hl
    from hylift.inference.search import polish

    names = [f"a{i}" for i in range(12)]
    only_all = np.full((2,) * 12, -np.inf)  # no few moves reach it: the search walks at random
    only_all[(1,) * 12] = 0.0
    wave = hl.Function(lambda on, u, height: height * on * np.cos(u), 1, 1, np.ones((1, 1)))
    graph = hl.FactorGraph.build(
        dict.fromkeys(names, hl.boolean) | {"x": hl.real, "u": hl.interval(0, 1)},
        [
            (hl.Table.shared(only_all), names),
            (hl.ConditionalQuadratic.square(-1.0).times([0.5, 1.0]), ["a0", "x"]),
            (wave, ["a1", "u"]),
        ],
    )
    polish(graph, np.zeros((2, 14)))
    hl.infer(graph, hl.MaxWalkSAT(flips=100, restarts=1))


def _pass_messages() -> None:
    """Between discrete variables by sums and maxima, between reals, and between particles."""
    import hylift as hl

    switched = hl.ConditionalQuadratic.product(0.2).times([0.0, 1.0])
    states = hl.FactorGraph.build(
        {"a": hl.boolean, "b": hl.boolean}, [(hl.Table.shared(np.eye(2)), ["a", "b"])]
    )
    reals = hl.FactorGraph.build(
        {"x": hl.real, "y": hl.real},
        [
            (hl.ConditionalQuadratic.product(0.2), ["x", "y"]),
            (hl.ConditionalQuadratic.square(-1.0), [["x"], ["y"]]),
        ],
    )
    both = hl.FactorGraph.build(
        {"a": hl.boolean, "b": hl.boolean, "x": hl.interval(-2, 2), "y": hl.interval(-2, 2)},
        [
            (hl.Table.shared(np.eye(2)), ["a", "b"]),
            (switched, ["a", "x", "y"]),
            (hl.Function(lambda on, u: on * np.cos(u), 1, 1), ["a", "x"]),
        ],
    )
    hl.infer(states, hl.BP(), lift="none", tasks=("marginals", "logz", "map"))
    hl.infer(states, hl.BP(schedule="residual"), lift="none")
    hl.infer(reals, hl.GaBP(), lift="none")
    for method in (hl.EPBP(8, max_steps=4), hl.EP(max_steps=4)):
        hl.infer(both, method, lift="none")


def _sample() -> None:
    """States, and reals with bounds and without."""
    import hylift as hl

    switched = hl.ConditionalQuadratic.product(0.2).times([0.0, 1.0])
    graph = hl.FactorGraph.build(
        {"a": hl.boolean, "b": hl.boolean, "x": hl.interval(-2, 2), "y": hl.real},
        [
            (hl.Table.shared([[0.0, -np.inf], [-np.inf, 0.0]]), ["a", "b"]),
            (switched, ["a", "x", "y"]),
            (hl.ConditionalQuadratic.square(-1.0), [["x"], ["y"]]),
        ],
    )
    hl.infer(graph, hl.Gibbs(draws=10, warm_up=10))


PARTS: tuple[Callable[[], None], ...] = (
    _search,
    _fit,
    _sample,
    _pass_messages,
    _lift,
    _solve_exactly,
    _sum_over_lattices,
)
"""The longest first."""


if __name__ == "__main__":
    # From the module by its name: other processes do not know what was run as a script.
    from hylift.warm_up import compile_in_parallel

    compile_in_parallel()
