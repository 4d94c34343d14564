"""A run kept in a file now and then, and taken up where it was left.

Runs of the same seed are the same. So only the loops that take long are kept: in the order in which
they come, each with the arrays that its next step needs. A run that is taken up does everything
else again, and finds what it found before.
"""

from __future__ import annotations

import hashlib
import os
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hylift.archive import Archive, Arrays
from hylift.errors import FormatError, HyliftError, UnsupportedError
from hylift.files import OutputError, clear_partial
from hylift.graph import FactorGraph, FactorGroup, Variables
from hylift.potentials import Function
from hylift.words import worded

FILE = Archive(
    "a checkpoint", "hylift checkpoint", 1, "delete it, or name another file, to begin anew"
)

NUM_POINTS = 4
"""At which functions of the user's own are looked at, to tell them apart."""

PAUSE = 2.0
"""Seconds from one writing to the next, at least."""
STALE = 60.0
"""Seconds after which what a killed run has left half-written is removed."""
SHARE = 0.05
"""Of the time, that writing may take."""

Rows = list[tuple[float, float, int, int]]


@dataclass(frozen=True, slots=True, eq=False)
class Kept:
    """Where a loop was."""

    arrays: Arrays
    num_rows: int
    """Steps that the run had recorded by then."""
    is_done: bool


@dataclass(slots=True, eq=False)
class Checkpoint:
    """A file, and what it holds or is to hold."""

    path: Path
    run: str
    """Tells runs apart that have different answers."""
    loops: list[Kept] = field(default_factory=list)
    rows: Rows = field(default_factory=list)
    elapsed: float = 0.0
    next_write: float = 0.0
    has_failed: bool = False

    @classmethod
    def open(cls, path: str | Path, run: str) -> Checkpoint:
        """What an earlier run has left in a file, or a new one; raises if it cannot be written."""
        found = cls(Path(path), run)
        if os.path.exists(path) and not os.path.isfile(path):
            raise OutputError(f"{path}: is no plain file, and a checkpoint is one")
        clear_partial(path, STALE)
        if os.path.exists(path):
            found = FILE.read(path, lambda header, arrays: _restored(Path(path), header, arrays))
            if found.run != run:
                raise UnsupportedError(
                    f"{path}: is a checkpoint of another run: the model, its evidence, the method, "
                    "its settings, the tasks or the seed were not the same. Name another file, or "
                    "delete this one to begin anew"
                )
        found._write()
        return found

    def is_due(self) -> bool:
        return time.perf_counter() >= self.next_write

    def put(self, number: int, kept: Kept, rows: Rows, elapsed: float) -> None:
        """Keeps a loop in place of what was kept of it, and forgets those after it."""
        self.loops[number:] = [kept]
        self.rows, self.elapsed = rows, elapsed

    def try_to_write(self) -> None:
        """Writes what is kept; a disk that is full is no reason to lose the run."""
        try:
            self._write()
        except OutputError as error:
            if not self.has_failed:
                text = worded(error.text, "; the run goes on without")
                warnings.warn(text, UserWarning, stacklevel=2)
            self.has_failed = True

    def _write(self) -> None:
        began = time.perf_counter()
        header = {
            "run": self.run,
            "elapsed": self.elapsed,
            "loops": [[kept.num_rows, kept.is_done, list(kept.arrays)] for kept in self.loops],
        }
        arrays = {"rows": np.array(self.rows, dtype=np.float64).reshape(-1, 4)}
        for number, kept in enumerate(self.loops):
            arrays |= {f"{number}/{name}": array for name, array in kept.arrays.items()}
        try:
            FILE.write(self.path, header, arrays, compress=False)
        finally:
            now = time.perf_counter()
            self.next_write = now + max(PAUSE, (now - began) / SHARE)


def _restored(path: Path, header: dict[str, Any], arrays: Arrays) -> Checkpoint:
    seconds, objective, num_classes, level = arrays["rows"].T
    rows = list(
        zip(
            seconds.tolist(),
            objective.tolist(),
            num_classes.astype(np.int64).tolist(),
            level.astype(np.int64).tolist(),
            strict=True,
        )
    )
    loops = []
    for number, (num_rows, is_done, names) in enumerate(header["loops"]):
        if not 0 <= num_rows <= len(rows):
            raise FormatError(path, "is a damaged checkpoint: its steps are not all there")
        kept = {name: arrays[f"{number}/{name}"] for name in names}
        loops.append(Kept(kept, int(num_rows), bool(is_done)))
    return Checkpoint(path, str(header["run"]), loops, rows, float(header["elapsed"]))


@dataclass(frozen=True, slots=True, eq=False)
class Loop:
    """A stretch of a run, by its number; without a checkpoint nothing of it is kept."""

    checkpoint: Checkpoint | None
    number: int
    rows: Rows
    """Of the run, so far."""
    elapsed: Callable[[], float]
    earlier: Kept | None
    """Where an earlier run has left it."""

    @property
    def is_over(self) -> bool:
        """Whether an earlier run has finished it."""
        return self.earlier is not None and self.earlier.is_done

    def keep(self, arrays: Callable[[], Arrays]) -> None:
        """Keeps what the next step needs, if it is time to."""
        if self.checkpoint is not None and self.checkpoint.is_due():
            self._put(arrays(), is_done=False)
            self.checkpoint.try_to_write()

    def leave(self, arrays: Callable[[], Arrays]) -> None:
        """Keeps what the next step needs, of a loop that ends before its time."""
        if self.checkpoint is not None:
            self._put(arrays(), is_done=False)

    def finish(self, arrays: Callable[[], Arrays]) -> None:
        """Keeps what a loop has come to."""
        if self.checkpoint is not None:
            self._put(arrays(), is_done=True)

    def _put(self, arrays: Arrays, *, is_done: bool) -> None:
        assert self.checkpoint is not None
        # The solver goes on changing its arrays.
        kept = Kept({name: np.array(a) for name, a in arrays.items()}, len(self.rows), is_done)
        self.checkpoint.put(self.number, kept, self.rows, self.elapsed())


def put_back(arrays: Arrays, kept: Kept) -> None:
    """Fills arrays with what was kept of them; raises if their shapes are others."""
    for name, array in arrays.items():
        stored = kept.arrays[name]
        if stored.shape != array.shape or stored.dtype != array.dtype:
            raise UnsupportedError(
                f"the checkpoint has '{name}' in the shape {stored.shape}, and this run needs "
                f"{array.shape}: it was written by another version"
            )
        array[...] = stored


def arrays_in(value: Any, name: str) -> Arrays:
    """The arrays of a mapping or named tuple, and of those within it, as they are, by name."""
    if isinstance(value, np.ndarray):
        return {name: value}
    fields = value if isinstance(value, dict) else value._asdict()
    found: Arrays = {}
    for field_name, part in fields.items():
        found |= arrays_in(part, f"{name} {field_name}")
    return found


def place_of(rng: np.random.Generator) -> NDArray[np.uint64]:
    """(6,): where a generator stands in its sequence."""
    found: Any = rng.bit_generator.state
    half = 2**64
    numbers = [found["state"]["state"], found["state"]["inc"]]
    halves = [part for number in numbers for part in divmod(number, half)]
    return np.array([*halves, found["has_uint32"], found["uinteger"]], dtype=np.uint64)


def go_to_place(rng: np.random.Generator, place: NDArray[np.uint64]) -> None:
    """Sets a generator to where it stood."""
    high, low, inc_high, inc_low, has_uint32, uinteger = (int(part) for part in place)
    found: Any = rng.bit_generator.state
    found["state"] = {"state": (high << 64) | low, "inc": (inc_high << 64) | inc_low}
    found["has_uint32"], found["uinteger"] = has_uint32, uinteger
    rng.bit_generator.state = found


def fingerprint(graph: FactorGraph, settings: str) -> str:
    """A text that differs for graphs with other factors or evidence, and for other settings.

    Functions of the user's own are told apart by their parameters, and values at some points.
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
        if isinstance(group.potential, Function):
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
