"""Time limits and Ctrl-C on models of 100,000 variables, where much happens before a first step.

Seconds are those of one core of the processor, which the clock of a run counts here, too: figures
do not depend on what else the machine does.
"""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

import hylift as hl
from benchmarks.setting import Setting
from hylift.graph import Domain
from hylift.graph.names import Names
from hylift.inference.capabilities import METHOD_BY_KEY
from hylift.potentials.base import FloatArray

Ids = NDArray[np.int32]

SIZE = 99_000
LIMIT, PRESSED = 3.0, 1.0
"""Seconds that a run may take; seconds after which one without a limit is interrupted."""
MOST = 90
"""Seconds after which a process is ended."""
AUTO = "auto"


class Timing(NamedTuple):
    """What was measured of a run."""

    seconds: float
    """Until the limit is to be kept: all of them, or those after Ctrl-C."""
    silence: float
    """The longest time between two reports of progress."""
    is_backward: bool
    """True if progress went back."""
    result: str

    def __str__(self) -> str:
        back = "  progress went back" if self.is_backward else ""
        return f"{self.seconds:5.1f} s  silent {self.silence:4.1f} s  {self.result}{back}"


def run(setting: Setting) -> None:
    """seconds that each method takes where it may take three, and its delay after Ctrl-C"""
    for model in MODELS:
        for key in setting.methods or (*METHOD_BY_KEY, AUTO):
            print(f"{model:10} {key:13} {_in_process(key, model)}", flush=True)


def _in_process(key: str, model: str) -> str:
    """The lines of one method on one model, measured in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.budgets", key, model]
    alone = {"NUMBA_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    found = subprocess.run(
        command, stdout=subprocess.PIPE, text=True, env=os.environ | alone, check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (MOST, MOST)),
    )  # fmt: skip
    return found.stdout.strip() + (f"  ended after {MOST} s" if found.returncode else "")


@dataclass(slots=True)
class Reports:
    """The times and shares of reports of progress."""

    clock: Callable[[], float]
    times: list[float] = field(default_factory=list)
    shares: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.times.append(self.clock())

    def report(self, share: float, what: str) -> None:
        self.times.append(self.clock())
        self.shares.append(share)

    @property
    def silence(self) -> float:
        times = [*self.times, self.clock()]
        return max(later - earlier for earlier, later in pairwise(times))

    @property
    def is_backward(self) -> bool:
        return any(later < earlier for earlier, later in pairwise(self.shares))


def limited(key: str, graph: hl.FactorGraph) -> Timing:
    """A run with a limit."""
    began = time.perf_counter()
    result, reports = _result(key, graph, LIMIT)
    return Timing(time.perf_counter() - began, reports.silence, reports.is_backward, result)


def interrupted(key: str, graph: hl.FactorGraph) -> Timing:
    """A run without a limit, which is interrupted."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGPROF, lambda *_: signal.raise_signal(signal.SIGINT))
    began = time.perf_counter()
    signal.setitimer(signal.ITIMER_PROF, PRESSED)
    try:
        result, reports = _result(key, graph, None)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)
    seconds = max(time.perf_counter() - began - PRESSED, 0.0)
    return Timing(seconds, reports.silence, reports.is_backward, result)


def _result(key: str, graph: hl.FactorGraph, seconds: float | None) -> tuple[str, Reports]:
    method = None if key == AUTO else key
    tasks = ("marginals", "logz", "map") if key == AUTO else METHOD_BY_KEY[key].answers
    reports = Reports(time.perf_counter)
    try:
        found = hl.infer(graph, method, tasks=tasks, seconds=seconds, progress=reports.report)
    except hl.HyliftError as error:
        return f"refused: {str(error).splitlines()[0][:70]}", reports
    except KeyboardInterrupt:
        return "no answer", reports
    return found.solution.result, reports


def tree(size: int) -> hl.FactorGraph:
    """Reals of a random tree, each near its parent, and weakly near 0."""
    rng = np.random.default_rng(0)
    child = np.arange(1, size, dtype=np.int32)
    pairs = np.stack([(rng.random(size - 1) * child).astype(np.int32), child], axis=1)
    near = hl.ConditionalQuadratic.squared_distance(
        0.5 + rng.random(size - 1), [1.0, -1.0], rng.normal(size=size - 1)
    )
    groups = hl.FactorGroup(near, pairs), _weak(rng, size, np.arange(size, dtype=np.int32))
    return hl.FactorGraph(hl.Variables.uniform(hl.real, size), groups)


def _weak(rng: np.random.Generator, size: int, ids: Ids) -> hl.FactorGroup:
    own = hl.ConditionalQuadratic(
        np.full((size, 1, 1), -0.5), rng.normal(size=(size, 1)), np.zeros(size)
    )
    return hl.FactorGroup(own, ids[:, None])


def _pairs(rng: np.random.Generator, size: int, count: int) -> Ids:
    first = rng.integers(size, size=count, dtype=np.int32)
    return np.stack(
        [first, (first + rng.integers(1, size, size=count, dtype=np.int32)) % size], axis=1
    )


def hybrid(size: int) -> hl.FactorGraph:
    """A sparse random graph of Booleans and reals, with twice as many factors; the matrix of its
    reals has much fill-in."""
    rng = np.random.default_rng(0)
    half, links, ties = size // 2, 3 * size // 4, size // 4 - 6
    real = half + np.arange(half, dtype=np.int32)
    mean, var = 3 * rng.normal(size=(half, 2)), np.exp(0.5 * rng.normal(size=(half, 2)))
    switched = hl.ConditionalQuadratic(
        (-0.5 / var)[..., None, None], (mean / var)[..., None], -0.5 * (mean**2 / var + np.log(var))
    )
    near = hl.ConditionalQuadratic.squared_distance(
        1.5 * rng.random(links), [1.0, -1.0], rng.normal(size=links)
    )
    states = hl.Table(1.5 * rng.normal(size=(ties, 2, 2)))
    groups = (
        _weak(rng, half, real),
        hl.FactorGroup(near, half + _pairs(rng, half, links)),
        hl.FactorGroup(states, _pairs(rng, half, ties)),
        hl.FactorGroup(
            switched,
            np.stack(
                [rng.permutation(half).astype(np.int32), half + np.arange(half, dtype=np.int32)],
                axis=1,
            ),
        ),
    )
    return hl.FactorGraph(_halves((hl.boolean, hl.real), half), groups)


def _halves(domains: tuple[Domain, Domain], half: int) -> hl.Variables:
    names = Names.numbered(2 * half)
    return hl.Variables(
        domains, np.repeat(np.array([0, 1], dtype=np.int32), half), names, np.ones(2 * half)
    )


def network(size: int) -> hl.FactorGraph:
    """Booleans, each with a table of its own, and tables of random pairs."""
    rng, every = np.random.default_rng(0), np.arange(size, dtype=np.int32)
    groups = (
        hl.FactorGroup(hl.Table(rng.normal(size=(size, 2))), every[:, None]),
        hl.FactorGroup(hl.Table(rng.normal(size=(2 * size, 2, 2))), _pairs(rng, size, 2 * size)),
    )
    return hl.FactorGraph(hl.Variables.uniform(hl.boolean, size), groups)


def functions(size: int) -> hl.FactorGraph:
    """Booleans of a random network, and a bounded real beside each by a function of both."""
    rng = np.random.default_rng(0)
    half = size // 2
    place = np.arange(half, dtype=np.int32)
    beside = hl.Function(_beside, num_discrete=1, num_reals=1)
    groups = (
        hl.FactorGroup(hl.Table(rng.normal(size=(half, 2, 2))), _pairs(rng, half, half)),
        hl.FactorGroup(beside, np.stack([place, half + place], axis=1)),
    )
    domains = hl.boolean, hl.interval(0.0, 1.0)
    return hl.FactorGraph(_halves(domains, half), groups)


def _beside(state: FloatArray, value: FloatArray) -> FloatArray:
    return -3.0 * np.abs(value - 0.3 - 0.4 * state)


MODELS: dict[str, Callable[[int], hl.FactorGraph]] = {
    "tree": tree,
    "hybrid": hybrid,
    "network": network,
    "functions": functions,
}


def _measure(key: str, model: str) -> None:
    warnings.simplefilter("ignore")
    time.perf_counter = time.monotonic = time.process_time
    make = MODELS[model]
    limited(key, make(60))  # kernels are loaded
    graph = make(SIZE)
    print(f"limit {limited(key, graph)}", flush=True)
    print(f"{'':24} Ctrl-C {interrupted(key, graph)}", flush=True)


if __name__ == "__main__":
    _measure(*sys.argv[1:])
