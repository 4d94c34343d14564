"""Grounding at the speed of the database that does it."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable

import duckdb
import numpy as np
import pyarrow as pa

import hylift as hl
from benchmarks.measure import peak_gigabytes, timed

NUM_PAPERS, NUM_TOPICS, NUM_PAIRS = 1_000_000, 1_000, 3_000_000

SPARSE = f"""
paper = {{p0, ..., p{NUM_PAPERS - 1}}}
topic = {{t0, ..., t{NUM_TOPICS - 1}}}
In(paper, topic)
PaperPopularity(paper): real[0, 10]
TopicPopularity(topic): real[0, 10]
0.5  In(p, t) * (PaperPopularity(p) = TopicPopularity(t))
"""

NUM_NODES, NUM_PLACES, NUM_SEATS = 300_000, 90_000, 950_000

TERNARY = """
person
place
At(person, place)
Happy(person)
Quiet(place)
0.1  At(a, x) ^ At(b, x) => (Happy(a) ^ Happy(b)) v Quiet(x)  where a != b
"""


def run() -> None:
    """3M true pairs of 10⁹ possible ones, and ten million groundings of a ternary rule"""
    for work in (sparse, ternary):  # each in a process of its own, so that peaks are its own
        process = multiprocessing.get_context("spawn").Process(target=work)
        process.start()
        process.join()


def sparse() -> None:
    rng = np.random.default_rng(0)
    pairs = _distinct_pairs(rng, NUM_PAPERS, NUM_TOPICS, NUM_PAIRS)
    names = pa.table(
        {
            "paper": _names("p", NUM_PAPERS).take(pa.array(pairs[0])),
            "topic": _names("t", NUM_TOPICS).take(pa.array(pairs[1])),
        }
    )
    model = hl.parse(SPARSE)
    connection = duckdb.connect()
    connection.execute("SET threads = 1")
    ids = pa.table({"a0": pairs[0].astype(np.int32), "a1": pairs[1].astype(np.int32)})
    connection.register("ids", ids)
    connection.execute("CREATE TABLE held AS SELECT * FROM ids")
    _compare("sparse", model, names, connection, "SELECT a0, a1 FROM held")


def ternary() -> None:
    rng = np.random.default_rng(0)
    seats = _distinct_pairs(rng, NUM_NODES, NUM_PLACES, NUM_SEATS)
    table = pa.table({"person": seats[0], "place": seats[1]})
    connection = duckdb.connect()
    connection.execute("SET threads = 1")
    ids = pa.table({"a0": seats[0].astype(np.int32), "a1": seats[1].astype(np.int32)})
    connection.register("ids", ids)
    connection.execute("CREATE TABLE held AS SELECT * FROM ids")
    join = "SELECT g.a0, g.a1, h.a0 FROM held g, held h WHERE g.a1 = h.a1 AND g.a0 <> h.a0"
    _compare("ternary", hl.parse(TERNARY), table, connection, join)


def _compare(
    name: str,
    model: hl.Model,
    table: pa.Table,
    connection: duckdb.DuckDBPyConnection,
    join: str,
) -> None:
    """Loading, then grounding beside DuckDB's own time for the same join into NumPy arrays."""
    closed = [model.predicates[0].name]
    _, seconds_join = timed(_fetch(connection, join))
    world, seconds_load = timed(lambda: hl.World.of(model, {closed[0]: table}, closed=closed))
    grounding, seconds_ground = timed(lambda: hl.ground_world(world))
    rows = grounding.graph.num_factors
    query, seconds_query = timed(_fetch(world.connection, _same_join(world, join)))
    del query
    print(f"{name}: {grounding.graph}")
    print(f"  evidence encoded in {seconds_load:.2f} s, grounded in {seconds_ground:.2f} s")
    print(f"  {rows / seconds_ground / 1e6:.1f} M factors/s; the join alone in pure DuckDB")
    print(f"  {rows / seconds_join / 1e6:.1f} M rows/s ({seconds_query:.2f} s in this world)")
    print(f"  {peak_gigabytes():.2f} GB at most")


def _fetch(connection: duckdb.DuckDBPyConnection, sql: str) -> Callable[[], object]:
    return lambda: connection.execute(sql).fetchnumpy()


def _same_join(world: hl.World, join: str) -> str:
    table = next(iter(world.evidence.values())).table
    return join.replace("held", table)


def _distinct_pairs(
    rng: np.random.Generator, first: int, second: int, count: int
) -> tuple[np.ndarray, np.ndarray]:
    code = np.unique(rng.integers(0, first * second, count + count // 50))
    code = rng.permutation(code)[:count]
    return code // second, code % second


def _names(prefix: str, count: int) -> pa.StringArray:
    return pa.array([f"{prefix}{i}" for i in range(count)], pa.string())
