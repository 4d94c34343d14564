"""Lifting without grounding: smokers of up to 10¹² ground factors, from tables to marginals."""

from __future__ import annotations

import multiprocessing
from time import process_time

import numpy as np
import pandas as pd

import hylift as hl
from benchmarks.measure import peak_gigabytes
from benchmarks.setting import Setting

SIZES = (1_000, 10_000, 100_000, 1_000_000)
FEW_OBSERVED, FEW_FRIENDS = 100, 30

SMOKERS = """
    person = {{p0, ..., p{last}}}
    Smokes(person)
    Cancer(person)
    Friends(person, person)
    -1.4   Smokes(x)
    -2.3   Cancer(x)
    -{prior}  Friends(x, y)
    1.5    Smokes(x) => Cancer(x)
    1.1    Friends(x, y) => (Smokes(x) <=> Smokes(y))  where x != y
"""


def run(setting: Setting) -> None:
    """smokers with 10³ to 10⁶ people, without grounding: with the same evidence, and with more"""
    print("    people  observed  friends   kinds  variables (classes)  s: graph  marginals     GB")
    for size in SIZES:
        _in_process(size, FEW_OBSERVED, FEW_FRIENDS)
    for size in SIZES:
        _in_process(size, size // 10, size // 100)


def _in_process(*numbers: int) -> None:
    """In a process of its own, so that the peak is its own."""
    process = multiprocessing.get_context("spawn").Process(target=_measure, args=numbers)
    process.start()
    process.join()


def _measure(size: int, num_observed: int, num_friends: int) -> None:
    """Prints CPU seconds and peak, once the kernels are loaded."""
    _solve(1_000, FEW_OBSERVED, FEW_FRIENDS)
    graph, making, solving = _solve(size, num_observed, num_friends)
    kinds = len(graph.variables.names.predicate("Cancer")[0])
    classes = f"({hl.lift(graph).num_classes:,})"
    print(
        f"{size:10,} {num_observed:9,} {num_friends:8,} {kinds:7,} {graph.num_variables:10,} "
        f"{classes:>9} {making:9.2f} {solving:10.2f} {peak_gigabytes():6.2f}",
        flush=True,
    )


def _solve(size: int, num_observed: int, num_friends: int) -> tuple[hl.FactorGraph, float, float]:
    """The graph, and seconds to make it and to find the marginals."""
    rng = np.random.default_rng(0)
    names = np.char.add("p", np.arange(size).astype(str))
    known = rng.choice(size, num_observed, replace=False)
    smokes = pd.DataFrame({"person": names[known], "value": rng.integers(0, 2, num_observed)})
    pairs = np.unique(rng.integers(0, size, (num_friends, 2)), axis=0)
    friends = pd.DataFrame({"one": names[pairs[:, 0]], "other": names[pairs[:, 1]], "value": 1})
    began = process_time()
    model = hl.parse(SMOKERS.format(last=size - 1, prior=np.log(size).round(2)))
    graph = hl.ground_lifted(model, {"Smokes": smokes, "Friends": friends})
    made = process_time()
    hl.infer(graph, hl.BP()).marginals("Smokes")
    return graph, made - began, process_time() - made
