"""Color passing at the speed of memory, beside NumPy and networkx."""

from __future__ import annotations

import functools
import multiprocessing
from collections.abc import Callable

import networkx as nx
import numpy as np

import hylift as hl
from benchmarks.measure import best_of, peak_gigabytes, timed
from benchmarks.setting import Setting
from hylift.lifting import Structure, stable_coloring
from hylift.lifting.coloring import next_colors
from hylift.lifting.kernels.coloring import pass_colors
from hylift.warm_up import warm_up

NUM_FACTORS = 10_000_000
NUM_VARIABLES = 1_000_000
SIDE = 1_000
REPEATS = 3
ALL_BITS = np.uint64(0xFFFF_FFFF_FFFF_FFFF)

PAIR = hl.Table.shared([[0.0, 1.0], [2.0, 0.0]])
TRIPLE = hl.Table.shared(np.arange(8.0).reshape(2, 2, 2))
ALIKE = hl.Table.shared([[1.0, 0.0], [0.0, 1.0]])


def run(setting: Setting) -> None:
    """ten million factors with and without symmetry, resumed, and rounds beside their peers"""
    for work in (symmetric, shuffled, relational, without_symmetry, torus, resumed, passes):
        # Each in a process of its own, so that peaks are its own.
        process = multiprocessing.get_context("spawn").Process(target=_warm, args=(work,))
        process.start()
        process.join()


def _warm(work: Callable[[], None]) -> None:
    """Work in a process that has loaded its kernels."""
    warm_up()
    work()


def symmetric() -> None:
    for potential in (PAIR, TRIPLE):
        _report(f"ring, {_slots(potential)} slots", _graph(NUM_VARIABLES, _ring(potential)))


def shuffled() -> None:
    """The same, with variables and factors in random order: every access misses the cache."""
    rng = np.random.default_rng(0)
    for potential in (PAIR, TRIPLE):
        name = rng.permutation(NUM_VARIABLES).astype(np.int32)
        scope = name[rng.permutation(_ring(potential))]
        _report(f"shuffled ring, {_slots(potential)} slots", _graph(NUM_VARIABLES, scope))


def relational() -> None:
    """P(x), R(x, y), P(y) for all x and y."""
    size = int(NUM_FACTORS**0.5)
    x, y = (axis.ravel().astype(np.int32) for axis in np.indices((size, size)))
    scope = np.stack([x, size + np.arange(size * size, dtype=np.int32), y], axis=1)[x != y]
    _report("P(x), R(x, y), P(y)", _graph(size + size * size, scope))


def without_symmetry() -> None:
    for num_variables in (NUM_VARIABLES, NUM_FACTORS):
        for potential in (PAIR, TRIPLE):
            graph = _graph(num_variables, _random(num_variables, NUM_FACTORS, potential))
            _report(f"random, {_slots(potential)} slots, {num_variables:,} variables", graph)


def torus() -> None:
    place = np.arange(SIDE * SIDE)
    row, column = place // SIDE, place % SIDE
    right = np.stack([place, row * SIDE + (column + 1) % SIDE], axis=1)
    below = np.stack([place, (row + 1) % SIDE * SIDE + column], axis=1)
    scope = np.concatenate([right, below]).astype(np.int32)
    graph = _graph(SIDE * SIDE, scope, ALIKE).observe(hl.Evidence.of([0], [1]))
    _report("torus with one observation, 1,000 rounds", graph)


def resumed() -> None:
    """Clusters of evidence split in two: coloring resumed, beside coloring from scratch."""
    for name, graph in (("series", _series()), ("hubs", _hubs())):
        print(f"{name}: {graph}; seconds to go from n to 2n clusters of evidence")
        levels = hl.coarse_to_fine(graph)
        level, seconds = timed(lambda: next(levels))  # noqa: B023
        print(f"  first level {seconds:.2f} (evidence absorbed and compared, colored)")
        assert level.structure.links  # a resumed coloring has them at hand
        for _ in range(8):
            start = level.coloring
            level, seconds = timed(lambda: next(levels))  # noqa: B023
            kind = level.coloring.kind
            again, resumed = timed(lambda: stable_coloring(level.structure, kind, start))  # noqa: B023
            fresh, scratch = timed(lambda: stable_coloring(level.structure, kind))  # noqa: B023
            same = all(
                (mine == other).all()
                for mine, other in (
                    (again.variable, fresh.variable),
                    (again.factor, fresh.factor),
                    (level.coloring.variable, fresh.variable),
                )
            )
            print(
                f"  {len(level.clusters):5} clusters, {fresh.num_variable_classes:,} classes: "
                f"resumed {resumed:.2f}, from scratch {scratch:.2f}, ratio "
                f"{resumed / scratch:.2f}; the whole level with its quotient {seconds:.2f}; "
                f"{'identical' if same else 'DIFFERENT'} classes"
            )
    print(f"  {peak_gigabytes():.2f} GB at most")


def _series(num_series: int = 1_000_000, length: int = 10) -> hl.FactorGraph:
    """Many short time series, the last value of each observed."""
    place = np.arange(num_series * length, dtype=np.int32).reshape(num_series, length)
    scope = np.stack([place[:, :-1].ravel(), place[:, 1:].ravel()], axis=1)
    near = hl.ConditionalQuadratic.squared_distance(1.0, [1.0, -0.9])
    return _observed([hl.FactorGroup(near, scope)], place[:, -1], place.size)


def _hubs(num_variables: int = 1_000_000, num_hubs: int = 9) -> hl.FactorGraph:
    """Many variables, each measured, that hang together through a few others."""
    variable = np.arange(num_variables, dtype=np.int32)
    hub = num_variables + np.arange(num_hubs, dtype=np.int32)
    scope = np.stack([np.repeat(variable, num_hubs), np.tile(hub, num_variables)], axis=1)
    near = hl.ConditionalQuadratic.squared_distance(1.0, [1.0, -1.0])
    return _observed([hl.FactorGroup(near, scope)], variable, num_variables + num_hubs)


def _observed(groups: list[hl.FactorGroup], measured: np.ndarray, num_hidden: int):
    """The graph with a measurement of some variables, each by an observed neighbour."""
    seen = num_hidden + np.arange(len(measured), dtype=np.int32)
    link = hl.ConditionalQuadratic.squared_distance(0.5, [1.0, -1.0])
    groups = [*groups, hl.FactorGroup(link, np.stack([measured, seen], axis=1))]
    variables = hl.Variables.uniform(hl.real, num_hidden + len(measured))
    values = np.random.default_rng(0).normal(size=len(measured))
    return hl.FactorGraph(variables, tuple(groups)).observe(hl.Evidence.of(seen, values))


def passes() -> None:
    """Edges per second of one round: hashes collected, and colors numbered anew."""
    print("edges per second in one round of color passing, hashing alone and with numbering:")
    for name, num_variables, num_factors in (
        ("colors in cache", NUM_VARIABLES // 100, NUM_FACTORS // 2),
        ("random access", NUM_FACTORS, NUM_FACTORS),
    ):
        scope = _random(num_variables, num_factors, PAIR)
        hashing, numbering = _rounds(scope, num_variables)
        print(
            f"  {name}, {len(scope):,} factors: {_edges_per_second(scope, hashing) / 1e6:.1f} M, "
            f"{_edges_per_second(scope, numbering) / 1e6:.1f} M"
        )
    scope = _random(NUM_VARIABLES // 10, NUM_FACTORS // 20, PAIR)
    ours = _edges_per_second(scope, _rounds(scope, NUM_VARIABLES // 10)[1])
    lexsort = _edges_per_second(scope, lambda: _lexsort_round(scope, NUM_VARIABLES // 10), 1)
    names = _edges_per_second(scope, _networkx_round(scope), 1)
    print(
        f"  {len(scope):,} factors: {ours / 1e6:.1f} M; NumPy lexsort {lexsort / 1e6:.2f} M "
        f"({ours / lexsort:.0f}x); networkx {names / 1e6:.3f} M ({ours / names:.0f}x)"
    )


def _rounds(scope: np.ndarray, num_variables: int) -> tuple[Callable[[], object], ...]:
    structure = Structure.of(_graph(num_variables, scope))
    color = stable_coloring(structure).variable  # as many colors as there will ever be
    walk = (structure.slots, structure.first, structure.orbit, structure.kind, structure.weight)
    hashes = (np.uint64(0), ALL_BITS)
    empty = functools.partial(np.zeros, dtype=np.uint64)
    return (
        lambda: pass_colors(*walk, color, *hashes, *map(empty, (num_variables, len(scope)))),
        lambda: next_colors(structure, structure.kind, color),
    )


def _lexsort_round(scope: np.ndarray, num_variables: int) -> np.ndarray:
    """Exact, with sorting: signatures of factors, then sorted lists of them per variable."""
    color = np.arange(num_variables)
    order = np.lexsort((color[scope[:, 1]], color[scope[:, 0]]))
    pairs = color[scope[order]]
    change = np.concatenate([[False], (pairs[1:] != pairs[:-1]).any(axis=1)])
    factor = np.empty(len(scope), dtype=np.int64)
    factor[order] = np.cumsum(change)
    variable = scope.ravel()
    code = (2 * factor[:, None] + np.arange(2)).ravel()
    order = np.lexsort((code, variable))
    variable, code = variable[order], code[order]
    degree = np.bincount(variable, minlength=num_variables)
    place = np.arange(len(variable)) - np.repeat(np.cumsum(degree) - degree, degree)
    # Ranks of the lists, entry by entry: equal so far, and the next entry equal.
    rank = color
    for entry in range(degree.max()):
        column = np.full(num_variables, -1)
        at = place == entry
        column[variable[at]] = code[at]
        order = np.lexsort((column, rank))
        change = (rank[order][1:] != rank[order][:-1]) | (column[order][1:] != column[order][:-1])
        rank = np.empty(num_variables, dtype=np.int64)
        rank[order] = np.concatenate([[0], np.cumsum(change)])
    return rank


def _networkx_round(scope: np.ndarray) -> Callable[[], object]:
    """One round at variables and one at factors, which are nodes of their own."""
    graph = nx.Graph()
    for factor, (first, second) in enumerate(scope.tolist()):
        graph.add_edge(("f", factor), first, slot="0")
        graph.add_edge(("f", factor), second, slot="1")
    return lambda: nx.weisfeiler_lehman_subgraph_hashes(graph, edge_attr="slot", iterations=2)


def _edges_per_second(scope: np.ndarray, work: Callable[[], object], repeats: int = 5) -> float:
    return scope.size / best_of(repeats, work)


def _report(name: str, graph: hl.FactorGraph) -> None:
    lifting, seconds = timed(lambda: hl.lift(graph))
    seconds = min(seconds, best_of(REPEATS - 1, lambda: hl.lift(graph)))
    print(f"{name}: {lifting}, {seconds:.2f} s, {peak_gigabytes():.2f} GB at most")


def _graph(num_variables: int, scope: np.ndarray, potential: hl.Table | None = None):
    potential = potential or (PAIR if scope.shape[1] == 2 else TRIPLE)
    variables = hl.Variables.uniform(hl.boolean, num_variables)
    return hl.FactorGraph(variables, (hl.FactorGroup(potential, scope),))


def _slots(potential: hl.Table) -> int:
    return len(potential.slot_states)


def _ring(potential: hl.Table) -> np.ndarray:
    """Each variable with others a few steps on."""
    place = np.arange(NUM_VARIABLES, dtype=np.int32)
    steps = range(1, NUM_FACTORS // NUM_VARIABLES + 1)
    slots = range(_slots(potential))
    scopes = [np.stack([(place + k * (k + s)) % NUM_VARIABLES if s else place for s in slots], 1)
              for k in steps]  # fmt: skip
    return np.concatenate(scopes).astype(np.int32)


def _random(num_variables: int, num_factors: int, potential: hl.Table) -> np.ndarray:
    rng = np.random.default_rng(0)
    scope = rng.integers(0, num_variables, (num_factors, _slots(potential)), dtype=np.int32)
    ordered = np.sort(scope, axis=1)
    return scope[(ordered[:, 1:] != ordered[:, :-1]).all(axis=1)]
