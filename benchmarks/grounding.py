"""Grounding at the speed of the database that does it."""

from __future__ import annotations

import multiprocessing

import duckdb
import numpy as np
import pyarrow as pa

import hylift as hl
from benchmarks.measure import best_of, peak_gigabytes, timed
from benchmarks.setting import Setting

REPEATS = 3

NUM_PAPERS, NUM_TOPICS, NUM_PAIRS = 1_000_000, 1_000, 3_000_000

SPARSE = f"""
paper = {{p0, ..., p{NUM_PAPERS - 1}}}
topic = {{t0, ..., t{NUM_TOPICS - 1}}}
In(paper, topic)
PaperPopularity(paper): real[0, 10]
TopicPopularity(topic): real[0, 10]
0.5  In(p, t) * (PaperPopularity(p) = TopicPopularity(t))
"""

NUM_PEOPLE, NUM_PLACES, NUM_VISITS = 300_000, 90_000, 950_000

TERNARY = """
person
place
At(person, place)
Happy(person)
Quiet(place)
0.1  At(a, x) ^ At(b, x) => (Happy(a) ^ Happy(b)) v Quiet(x)  where a != b
"""


NUM_DELIVERIES, NUM_SEGMENTS, NUM_USED = 1_000_000, 100_000, 10

SUMS = """
Uses(delivery, segment)
time(delivery): real
duration(segment): real
normal(duration(s) | 5, 4)
normal(time(d) | SUM s: Uses(d, s) * duration(s), 1)
"""


def run(setting: Setting) -> None:
    """3M true pairs of 10⁹ possible ones, ten million groundings of a ternary rule, sums over 10⁷
    rows"""
    for work in (sparse, ternary, sums):  # each in a process of its own, so that peaks are its own
        process = multiprocessing.get_context("spawn").Process(target=work)
        process.start()
        process.join()


def sparse() -> None:
    papers, topics = _names("p", NUM_PAPERS), _names("t", NUM_TOPICS)
    paper, topic = _distinct_pairs(NUM_PAPERS, NUM_TOPICS, NUM_PAIRS)
    pairs = pa.table({"paper": papers.take(pa.array(paper)), "topic": topics.take(pa.array(topic))})
    world = _load("sparse", SPARSE, pairs)
    _compare(world, "SELECT a0, a1 FROM {0}")
    for place in range(2):
        world.engine.store(
            f"atoms_{place}",
            "SELECT c AS a, row_number() OVER (ORDER BY c) AS id "
            f"FROM (SELECT DISTINCT a{place} AS c FROM relation_0)",
        )
    _compare(
        world,
        "SELECT p.id AS p, t.id AS t FROM {0} h JOIN atoms_0 p ON h.a0 = p.a "
        "JOIN atoms_1 t ON h.a1 = t.a",
    )
    connection = duckdb.connect(config={"threads": 1})
    connection.register("pairs", pairs)
    for name, words in (("papers", papers), ("topics", topics)):
        connection.register(name, pa.table({"name": words, "id": np.arange(len(words))}))
    join = (
        "SELECT papers.id AS a0, topics.id AS a1 FROM pairs "
        "JOIN papers ON pairs.paper = papers.name JOIN topics ON pairs.topic = topics.name"
    )
    seconds = best_of(REPEATS, lambda: connection.execute(join).fetchnumpy())
    print(f"  pure DuckDB from names to ids, without any check: {seconds:.2f} s")


def ternary() -> None:
    person, place = _distinct_pairs(NUM_PEOPLE, NUM_PLACES, NUM_VISITS)
    world = _load("ternary", TERNARY, pa.table({"person": person, "place": place}))
    columns, condition = "g.a0 AS a, g.a1 AS x, h.a0 AS b", "g.a1 = h.a1 AND g.a0 <> h.a0"
    _compare(world, f"SELECT {columns} FROM {{0}} g, {{0}} h WHERE {condition}")


def sums() -> None:
    rng = np.random.default_rng(0)
    delivery = np.repeat(np.arange(NUM_DELIVERIES), NUM_USED)
    first = rng.integers(0, NUM_SEGMENTS, NUM_DELIVERIES)[:, None]
    segment = ((first + 7 * np.arange(NUM_USED)) % NUM_SEGMENTS).ravel()
    evidence = {
        "Uses": pa.table({"delivery": delivery, "segment": segment}),
        "time": pa.table(
            {"delivery": np.arange(NUM_DELIVERIES), "value": rng.normal(50, 3, NUM_DELIVERIES)}
        ),
    }
    graph, seconds = timed(lambda: hl.ground(hl.parse(SUMS), evidence, closed=["Uses"]))
    print(f"sums over {len(delivery):,} rows: {graph} in {seconds:.2f} s with their evidence")


def _load(name: str, text: str, table: pa.Table) -> hl.World:
    model = hl.parse(text)
    closed = model.predicates[0].name
    world, seconds = timed(lambda: hl.World.of(model, {closed: table}, closed=[closed]))
    print(f"{name}: {table.num_rows:,} rows of evidence encoded and checked in {seconds:.2f} s")
    return world


def _compare(world: hl.World, join: str) -> None:
    """Grounding beside the time that DuckDB alone takes for a join into NumPy arrays."""
    sql = join.format(world.relations[world.model.predicates[0].name].table)
    grounding, seconds = timed(lambda: hl.ground_world(world))
    num_factors = grounding.graph.num_factors
    print(f"  {grounding.graph} in {seconds:.2f} s, {peak_gigabytes():.2f} GB at most")
    del grounding
    alone = best_of(REPEATS, lambda: world.engine.fetch(sql))
    again = best_of(REPEATS, lambda: hl.ground_world(world))
    ours, theirs = num_factors / again / 1e6, num_factors / alone / 1e6
    print(f"  {sql}")
    print(f"  {ours:.1f} M factors/s; this alone {theirs:.1f} M rows/s; ratio {ours / theirs:.2f}")


def _distinct_pairs(first: int, second: int, count: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    code = np.unique(rng.integers(0, first * second, count + count // 50))
    code = rng.permutation(code)[:count]
    return code // second, code % second


def _names(prefix: str, count: int) -> pa.StringArray:
    return pa.array([f"{prefix}{i}" for i in range(count)], pa.string())
