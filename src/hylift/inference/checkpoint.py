"""Checkpoints: a run stored in a file from time to time, and resumed from it.

Runs of the same seed are the same. So only loops are stored: in the order of the run, each with the
arrays that its next step needs. A resumed run repeats everything else, with the same result.
"""

from __future__ import annotations

import hashlib
import os
import time
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from hylift.archive import Archive, Arrays
from hylift.errors import FormatError, HyliftError, HyliftWarning, UnsupportedError
from hylift.files import OutputError, clear_partial
from hylift.graph import FactorGraph, FactorGroup, Variables
from hylift.posterior import Result
from hylift.words import worded

FILE = Archive(
    "a checkpoint", "hylift checkpoint", 3, "delete it, or name another file, to start over"
)

MOST_STEPS = 2**53

NUM_POINTS = 4
"""Points at which the fingerprint evaluates functions."""

PAUSE = 2.0
"""Least seconds between two writes."""
STALE = 60.0
"""Seconds after which a partial file of a killed run is removed."""
SHARE = 0.05
"""Share of the time that writing may take."""


class Step(NamedTuple):
    """A step as the history and callbacks have it."""

    step: int
    """From 1."""
    seconds: float
    """Since the start of inference."""
    objective: float
    """The free energy of the best candidate so far; of message passing the largest change of a
    message, of a walk the least energy so far."""
    num_classes: int
    """Classes of variables; with coarse-to-fine lifting their number grows."""
    level: int
    """Of coarse-to-fine lifting, from 0."""


@dataclass(frozen=True, slots=True, eq=False)
class Stored:
    """The state of a loop between two steps."""

    arrays: Arrays
    num_steps: int
    """Steps that the run had recorded by then."""
    result: Result | None
    """The result of the loop; None if it goes on from here."""


@dataclass(slots=True, eq=False)
class Checkpoint:
    """A file and its content."""

    path: Path
    run: str
    """Fingerprint of the run."""
    loops: list[Stored] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    elapsed: float = 0.0
    next_write: float = 0.0
    has_failed: bool = False

    @classmethod
    def open(cls, path: str | Path, run: str) -> Checkpoint:
        """The checkpoint in a file, or a new one; raises if it cannot be written."""
        found = cls(Path(path), run)
        if os.path.exists(path) and not os.path.isfile(path):
            raise OutputError(f"{path}: is not a regular file, and a checkpoint must be one")
        clear_partial(path, STALE)
        if os.path.exists(path):
            # Checkpoints are not compressed, and are as large in memory as in the file.
            found = FILE.read(path, lambda header, arrays: _restored(Path(path), header, arrays))
            if found.run != run:
                raise UnsupportedError(
                    f"{path}: is a checkpoint of another run: the model, its evidence, the method, "
                    "its settings, the tasks or the seed were not the same. Name another file, or "
                    "delete this one to start over"
                )
        found._write()
        return found

    def try_to_write(self) -> None:
        """Write the file; if that fails, warn once and go on."""
        try:
            self._write()
        except OutputError as error:
            if not self.has_failed:
                text = worded(error.text, "; the run continues without")
                warnings.warn(text, HyliftWarning, stacklevel=2)
            self.has_failed = True

    def _write(self) -> None:
        began = time.perf_counter()
        header = {
            "run": self.run,
            "elapsed": self.elapsed,
            "loops": [[one.num_steps, one.result, list(one.arrays)] for one in self.loops],
        }
        steps = np.array(self.steps, dtype=np.float64).reshape(-1, len(Step._fields))
        arrays = {"steps": steps}
        for number, one in enumerate(self.loops):
            arrays |= {f"{number}/{name}": array for name, array in one.arrays.items()}
        try:
            FILE.write(self.path, header, arrays, compress=False)
        finally:
            now = time.perf_counter()
            self.next_write = now + max(PAUSE, (now - began) / SHARE)


def _restored(path: Path, header: dict[str, Any], arrays: Arrays) -> Checkpoint:
    stored = arrays["steps"]
    elapsed, whole = float(header["elapsed"]), stored[:, [0, 3, 4]]
    seconds = np.append(stored[:, 1], elapsed)
    is_time = np.isfinite(seconds) & (seconds >= 0)
    is_count = (whole >= 0) & (whole == np.floor(whole)) & (whole < MOST_STEPS)
    if stored.dtype != np.float64 or not (is_time.all() and is_count.all()):
        raise ValueError("its steps have numbers or times that are none")
    steps = [
        Step(int(step), seconds, objective, int(num_classes), int(level))
        for step, seconds, objective, num_classes, level in stored.tolist()
    ]
    loops = []
    for number, (num_steps, result, names) in enumerate(header["loops"]):
        if type(num_steps) is not int or not 0 <= num_steps <= len(steps):
            raise FormatError(path, "is a damaged checkpoint: its steps are not all there")
        if result not in (None, *get_args(Result)):
            raise ValueError("a loop has no such result")
        own = {name: arrays.pop(f"{number}/{name}") for name in names}
        loops.append(Stored(own, num_steps, result))
    if set(arrays) != {"steps"}:
        raise ValueError("it has arrays of no loop")
    return Checkpoint(path, str(header["run"]), loops, steps, elapsed)


@dataclass(frozen=True, slots=True, eq=False)
class Section:
    """The part of a checkpoint that belongs to one loop."""

    checkpoint: Checkpoint
    number: int
    """Of the loop, in the order of the run."""

    @property
    def stored(self) -> Stored | None:
        """The state that an earlier run stored, if it came this far."""
        found = self.checkpoint.loops[self.number : self.number + 1]
        return found[0] if found else None

    @property
    def is_due(self) -> bool:
        """True when enough time has passed since the file was written."""
        return time.perf_counter() >= self.checkpoint.next_write

    def store(
        self, arrays: Arrays, result: Result | None, steps: list[Step], seconds: float
    ) -> None:
        """Replace what was stored of this loop, and forget the loops after it."""
        # The solver goes on changing its arrays.
        copies = {name: np.array(array) for name, array in arrays.items()}
        self.checkpoint.loops[self.number :] = [Stored(copies, len(steps), result)]
        self.checkpoint.steps, self.checkpoint.elapsed = steps, seconds


def fingerprint(graph: FactorGraph, settings: str) -> str:
    """A hash of the factors and evidence of a graph, and of the settings.

    Functions are hashed by their parameters and their values at some points.
    """
    digest = hashlib.blake2b(settings.encode(), digest_size=16)
    rng = np.random.default_rng(0)
    points = [_point(graph.variables, rng) for _ in range(NUM_POINTS)]
    variables, evidence = graph.variables, graph.evidence
    arrays: list[NDArray[Any]] = [variables.num_states, variables.lower, variables.upper]
    arrays += [variables.multiplicity, evidence.variable, evidence.value, evidence.var]
    arrays.append(np.array(graph.log_constant))
    for group in graph.groups:
        digest.update(type(group.potential).__name__.encode())
        arrays += [group.scope, group.row, group.multiplicity, group.potential.flat]
        if group.potential.quadratic() is None:
            arrays += [_values(group, point) for point in points]
    for array in arrays:
        digest.update(repr(array.shape).encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def _point(variables: Variables, rng: np.random.Generator) -> NDArray[np.float64]:
    """(variable,): a state or real of each, within its bounds."""
    states = rng.integers(0, np.maximum(variables.num_states, 1))
    reals = np.clip(rng.normal(size=len(variables)), variables.lower, variables.upper)
    return np.where(variables.num_states > 0, states, reals)


def _values(group: FactorGroup, point: NDArray[np.float64]) -> NDArray[np.float64]:
    """(factor,): log-values of functions; none where one is not defined there."""
    try:
        return group.log_values(point)
    except HyliftError:
        return np.zeros(0)
