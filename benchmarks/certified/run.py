"""Times, stated and true errors of exact inference, beside an approximation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

import hylift as hl
from benchmarks import uai
from benchmarks.certified import truth
from benchmarks.certified.families import FAMILIES, drawn
from benchmarks.certified.models import COUNTED, Hamilton, Regimes, Rooms, Sensors, Walk
from benchmarks.certified.truth import Apart, Truth
from benchmarks.measure import best_of, timed
from benchmarks.messages import grid as discrete_grid
from benchmarks.setting import Setting
from hylift.inference.method import Method
from hylift.inference.prepared import Prepared
from tests.fine_grid import on_grid
from tests.oracle import Answer

NUM_RANDOM = 500
LIMIT = 30.0
"""Seconds for a peer."""


@dataclass(frozen=True, slots=True)
class Case:
    """A model with its true answer, and an approximation to set beside it."""

    name: str
    graph: Callable[[], hl.FactorGraph]
    truth: Callable[[], Truth]
    peer: Method | None = None


def run(setting: Setting) -> None:
    """error stated and true, and time, of models with many discrete neighbours of a real"""
    header = (
        "model", "hidden", "prepare", "infer", "stated", "log Z off", "P off", "mean off",
        "sd off", "kind", "peer", "ratio", "its P off",
    )  # fmt: skip
    print(_row(header))
    for case in _cases(setting):
        print(_row(_measured(case)), flush=True)
    _random_models()
    _predictions()
    uai.run(setting)


def _row(columns: tuple[str, ...]) -> str:
    widths = (30, 7, 9, 9, 8, 9, 8, 8, 8, 9, 9, 7, 9)
    first, *others = (f"{c:>{w}}" for c, w in zip(columns, widths, strict=True))
    return " ".join([f"{first.strip():30}", *others])


def _cases(setting: Setting) -> Iterator[Case]:
    bvi, gibbs = hl.BVI(3), hl.Gibbs()
    sensors = Sensors.drawn()
    yield Case("1,000 sensors in 25 rooms", sensors.graph, lambda: truth.sensors(sensors), bvi)
    for num in (3, 8, 30, 1000):
        rooms = Rooms(num) if num == 3 else Rooms(num, truth.weight_for(num))
        peer = bvi if num < 1000 else None
        yield Case(f"{num:,} rooms", rooms.graph, lambda rooms=rooms: truth.rooms(rooms), peer)
    regimes = Regimes.drawn()
    yield Case("regimes, 1,000 days", regimes.graph, lambda: truth.regimes(regimes), gibbs)
    learning = setting.published("learning")
    if learning is not None:
        gnp = Hamilton.read(learning)
        yield Case("Hamilton's AR(4) of US GNP", gnp.graph, lambda: truth.hamilton(gnp), gibbs)
    walk = Walk.drawn()
    yield Case("walk of 200 days", walk.graph, lambda: truth.walk(walk), gibbs)
    for alike in (True, False):
        copies = Sensors.in_pairs(10_000, alike=alike)
        name = f"10,000 copies, {'equal' if alike else 'different'}"
        yield Case(name, copies.graph, lambda copies=copies: truth.copies(copies), bvi)
    for name, text in COUNTED.items():
        graph = hl.ground(hl.parse(text))
        yield Case(f"{name}, default", lambda g=graph: g, lambda n=name: truth.counted(n), None)


def _measured(case: Case) -> tuple[str, ...]:
    graph = case.graph()
    answer = case.truth().answer(graph)
    method = None if case.name.endswith("default") else hl.Exact()
    hidden = f"{np.count_nonzero(graph.is_hidden):,}"
    try:
        found = hl.infer(graph, method)
    except (hl.HyliftError, MemoryError) as error:
        return (case.name, hidden, "refused", *[""] * 9, str(error)[:200])
    prepare = best_of(3, lambda: Prepared.of(graph))
    seconds = best_of(3, lambda: hl.infer(graph, method))
    apart, log_z = Apart.of(found, answer), found.log_partition
    return (
        case.name, hidden, f"{1e3 * prepare:.1f} ms", f"{1e3 * seconds:.1f} ms",
        f"{log_z.error:.1e}", f"{apart.log_z:.1e}", f"{apart.prob:.0e}", f"{apart.mean:.0e}",
        f"{apart.std:.0e}", log_z.kind, *_beside(case, graph, answer, seconds),
    )  # fmt: skip


def _beside(
    case: Case, graph: hl.FactorGraph, answer: Answer, seconds: float
) -> tuple[str, str, str]:
    if case.peer is None:
        return "", "", ""
    hl.infer(graph, case.peer, seconds=0.1)
    found, its_seconds = timed(lambda: hl.infer(graph, case.peer, seconds=LIMIT))
    name = case.peer.name
    return name, f"{its_seconds / seconds:.0f}", f"{Apart.of(found, answer).prob:.2f}"


def _random_models(num_models: int = NUM_RANDOM) -> None:
    """Error stated and true of random models against a grid of its own, family by family."""
    print(
        "random models       number  exact  refused  certificate  largest error  over it  seconds"
    )
    for family in FAMILIES:
        kinds: Counter[str] = Counter()
        stated, off, over, spent = 0.0, 0.0, 0, 0.0
        count = -(-num_models // len(FAMILIES))
        for seed in range(count):
            model = drawn(family, seed, size=3 + seed % 18)
            answer = on_grid(model.graph, model.low, model.high)
            try:
                found, seconds = timed(lambda graph=model.graph: hl.infer(graph, hl.Exact()))
            except (hl.HyliftError, MemoryError):
                kinds["refused"] += 1
                continue
            spent += seconds
            log_z = found.log_partition
            kinds[log_z.kind] += 1
            if log_z.kind != "exact":
                continue
            error = abs(log_z.value - answer.log_z)
            stated, off = max(stated, log_z.error), max(off, error)
            over += error > log_z.error + rounding(model.graph)
        print(
            f"{family:18} {count:7} {kinds['exact']:6} {kinds['refused']:8} {stated:12.1e} "
            f"{off:14.1e} {over:8} {spent:8.2f}",
            flush=True,
        )


def _predictions(num_models: int = 100) -> None:
    """Seconds that plans predict and take, on random models of all sizes, discrete grids, and the
    models above."""
    families = list(FAMILIES)
    graphs = [discrete_grid(side, 2)[0] for side in range(7, 17)]
    graphs += [model.graph() for model in (Walk.drawn(), Regimes.drawn(), Sensors.drawn())]
    graphs += [Sensors.in_pairs(num, alike=False).graph() for num in (100, 1000, 10_000)]
    graphs += [Rooms(num).graph() for num in (3, 30, 1000)]
    graphs += [
        drawn(families[seed % len(families)], seed, size=4 + seed // 2).graph
        for seed in range(num_models - len(graphs))
    ]
    ratio, taken = [], []
    for graph in graphs:
        found = hl.infer(graph, hl.Exact())
        taken.append(best_of(3, lambda graph=graph: hl.infer(graph, hl.Exact())))
        ratio.append((found.solution.predicted_seconds or np.nan) / taken[-1])
    share = np.mean(np.abs(np.log(ratio)) <= np.log(3))
    low, median, high = np.nanquantile(ratio, [0.0, 0.5, 1.0])
    print(
        f"predicted seconds: {share:.0%} of {num_models} models within a factor of 3; predicted to "
        f"taken {low:.2f} to {high:.2f}, median {median:.2f}; {1e3 * min(taken):.1f} ms to "
        f"{max(taken):.2f} s"
    )


def rounding(graph: hl.FactorGraph) -> float:
    """What the independent computation may round: a unit in the last place of every constant."""
    constants = [
        potential.log_table if isinstance(potential, hl.Table) else potential.c
        for potential in (group.potential for group in graph.groups)
    ]
    return float(np.finfo(float).eps) * sum(
        float(np.abs(c[np.isfinite(c)]).sum()) for c in constants
    )
