"""Runs that are killed, cut short, interrupted, or on other numbers of threads."""

from __future__ import annotations

import signal
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numba
import numpy as np

import hylift as hl
from benchmarks.budgets import MODELS, Reports
from benchmarks.families.practice import PRACTICE, written
from hylift.inference import checkpoint
from hylift.inference.capabilities import METHODS
from hylift.numerics import threads as blocks
from tests.hybrid_models import random_hybrid
from torture.answers import ALL, Run, some_run
from torture.case import Problem
from torture.graphs import SOURCES, Rng, described, smaller_graphs, some_graph
from torture.judge import EVERYTHING, difference

SILENCE = 1.5
"""Seconds of the processor between reports of progress, for which the target is one second."""
TIMED = tuple(info.key for info in METHODS if info.is_timed)


class KilledError(Exception):
    """Stands for the end of the process."""


@contextmanager
def replaced(module: Any, **values: Any) -> Iterator[None]:
    """Within it, names of a module have other values."""
    before = {name: getattr(module, name) for name in values}
    for name, value in values.items():
        setattr(module, name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            setattr(module, name, value)


@dataclass(frozen=True, slots=True, eq=False)
class Resumed:
    """A run that is killed at some steps, beside one that is not."""

    graph: hl.FactorGraph
    run: Run
    steps: tuple[int, ...]

    def problem(self) -> Problem | None:
        whole = self.run.infer(self.graph)
        with (
            tempfile.TemporaryDirectory() as folder,
            replaced(checkpoint, PAUSE=0.0, SHARE=np.inf),
        ):
            path = Path(folder) / "run.ckpt"
            for step in self.steps:
                try:
                    self.run.infer(self.graph, checkpoint=path, callback=killer(step))
                except KilledError:
                    continue
                path.unlink()
            found = self.run.infer(self.graph, checkpoint=path)
        text = difference(whole, found)
        key = f"resumed {self.run.key}"
        return None if text is None else Problem("nondeterminism", f"resumed: {text}", key)

    def smaller(self) -> Iterator[Resumed]:
        for at in range(len(self.steps) if len(self.steps) > 1 else 0):
            yield replace(self, steps=self.steps[:at] + self.steps[at + 1 :])
        for graph in smaller_graphs(self.graph):
            yield replace(self, graph=graph)
        for run in self.run.simpler():
            yield replace(self, run=run)

    def __str__(self) -> str:
        return f"{self.run}, killed at steps {self.steps}\n{described(self.graph)}"


def killer(step: int) -> Callable[[Any], None]:
    def callback(found: Any) -> None:
        if found.step == step:
            raise KilledError

    return callback


def untimed(run: Run) -> Run:
    """The run without a time limit, which ends at other steps each time."""
    return replace(run, arguments={n: v for n, v in run.arguments.items() if n != "seconds"})


def resumed(seed: int) -> Resumed:
    rng = np.random.default_rng(seed)
    steps = tuple(sorted({int(10 ** rng.uniform(0, 2.2)) for _ in range(rng.integers(1, 4))}))
    return Resumed(some_graph(rng, SOURCES), untimed(some_run(rng, TIMED)), steps)


@dataclass(frozen=True, slots=True, eq=False)
class Threads:
    """A run on one thread, beside one on two, whose blocks of work are small."""

    graph: hl.FactorGraph
    run: Run

    def problem(self) -> Problem | None:
        found = []
        with replaced(blocks, BLOCK=1000):
            for count in (1, min(2, numba.config.NUMBA_NUM_THREADS)):
                numba.set_num_threads(count)
                found.append(self.run.infer(self.graph))
        numba.set_num_threads(1)
        text = difference(*found)
        key = f"threads {self.run.key}"
        return None if text is None else Problem("nondeterminism", f"two threads: {text}", key)

    def smaller(self) -> Iterator[Threads]:
        for graph in smaller_graphs(self.graph):
            yield replace(self, graph=graph)
        for run in self.run.simpler():
            yield replace(self, run=run)

    def __str__(self) -> str:
        return f"{self.run}\n{described(self.graph)}"


def threads(seed: int) -> Threads:
    rng = np.random.default_rng(seed)
    return Threads(some_graph(rng, SOURCES), untimed(some_run(rng, ALL)))


def some_large_graph(rng: Rng) -> hl.FactorGraph:
    """Hundreds or thousands of variables that most methods cannot solve in a second."""
    if rng.random() < 0.2:
        make = MODELS[str(rng.choice(list(MODELS)))]
        return make(4 * int(10 ** rng.uniform(2.0, 3.5)))
    if rng.random() < 0.4:
        family = str(rng.choice(list(PRACTICE)))
        return written(family, int(rng.integers(10**6))).graph()
    return random_hybrid(int(rng.integers(2**31)), 3.0, int(10 ** rng.uniform(1.5, 2.8)))


@dataclass(frozen=True, slots=True, eq=False)
class Cut:
    """A run with a time limit, or one that is interrupted after a while.

    It is measured in seconds of the processor, of which it has no more than of the clock.
    """

    graph: hl.FactorGraph
    run: Run
    seconds: float
    is_interrupted: bool

    def problem(self) -> Problem | None:
        """A limit that does not hold twice: the first time a kernel may have been compiled."""
        return self._late() and self._late()

    def _late(self) -> Problem | None:
        began, reports = time.process_time(), Reports(time.process_time)
        most = self.seconds + 1.0 if self.is_interrupted else 1.2 * self.seconds + 1.0
        try:
            if self.is_interrupted:
                with interrupted_after(self.seconds):
                    self.run.infer(self.graph, progress=reports.report)
            else:
                self.run.infer(self.graph, seconds=self.seconds, progress=reports.report)
        except (KeyboardInterrupt, hl.HyliftError):
            pass
        taken, what = time.process_time() - began, f"progress of {self.run.key}"
        if reports.is_backward:
            return Problem("hang", f"{what} went back: {reports.shares}", f"back {what}")
        if reports.silence > SILENCE:
            return Problem("hang", f"no {what} for {reports.silence:.2f} s", f"no {what}")
        if taken <= most:
            return None
        what = "Ctrl-C after" if self.is_interrupted else "a limit of"
        text = f"{what} {self.seconds:.2f} s, taken {taken:.2f} s"
        return Problem("hang", text, f"{what} {self.run.key}")

    def smaller(self) -> Iterator[Cut]:
        for run in self.run.simpler():
            yield replace(self, run=run)

    def __str__(self) -> str:
        return f"{self.run}\n{self.graph!r}"


@contextmanager
def interrupted_after(seconds: float) -> Iterator[None]:
    """Ctrl-C once after so many seconds, if the block has not ended by then."""
    signal.signal(signal.SIGALRM, lambda *_: signal.raise_signal(signal.SIGINT))
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)


def _cut(seed: int, *, is_interrupted: bool) -> Cut:
    rng = np.random.default_rng(seed)
    graph, run = some_large_graph(rng), untimed(some_run(rng, ALL))
    if rng.random() < 0.3:
        run = Run(None, {}, {"tasks": EVERYTHING})
    return Cut(graph, run, float(rng.uniform(0.1, 1.5)), is_interrupted)


def budgets(seed: int) -> Cut:
    return _cut(seed, is_interrupted=False)


def interrupts(seed: int) -> Cut:
    return _cut(seed, is_interrupted=True)
