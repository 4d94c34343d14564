"""A posterior in one file: dataclasses by their fields, arrays by themselves."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields, is_dataclass
from pathlib import Path
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hylift.archive import Archive, Arrays
from hylift.components import Layout
from hylift.graph import Atoms, Domain, Evidence, NameBlock, Names, Numbered, Variables
from hylift.graph.class_names import ClassAtoms, TupleClasses
from hylift.graph.name_blocks import TEXT, Listed, has_own_type, read_as
from hylift.posterior.answers import Assignment, History, LogPartition, Solution
from hylift.posterior.distributions import (
    BetaMixture,
    Categorical,
    GaussianMixture,
    PiecewiseDensity,
    PointMass,
)
from hylift.posterior.draws import Draws
from hylift.posterior.mapped import MappedMixture
from hylift.posterior.marginals import Marginals
from hylift.posterior.mixture import Mixture
from hylift.posterior.posterior import Posterior
from hylift.posterior.trust import Trust
from hylift.rewrite.rewritten import StateMap
from hylift.words import Doubt, doubt

FILE = Archive("a saved posterior", "hylift posterior", 6, "infer again and save it")

NAMES = (Names, Atoms, ClassAtoms, TupleClasses, Listed, Numbered)
ANSWERS = (Posterior, Variables, Domain, Solution, History, LogPartition, Assignment)
FOUND = (Trust, Marginals, Mixture, MappedMixture, StateMap, Layout, Draws)
FAMILIES = (BetaMixture, Categorical, GaussianMixture, PiecewiseDensity, PointMass)
KINDS: dict[str, type] = {kind.__name__: kind for kind in (*NAMES, *ANSWERS, *FOUND, *FAMILIES)}
"""Dataclasses that are stored, field by field."""
NOT_STORED = {
    (Posterior, "target"),
    (Posterior, "again"),
    (Atoms, "distinct"),
    (ClassAtoms, "distinct"),
}
"""Fields that have their default when loaded."""


def save(posterior: Posterior, path: str | Path) -> None:
    """Write the posterior; an existing file is replaced only when the new one is complete."""
    writer = _Writer()
    header = {"posterior": writer.described(posterior, "posterior")}
    # Draws of reals take long to compress, and do not get smaller.
    has_real_draws = any(name.endswith(".reals") and a.size for name, a in writer.arrays.items())
    FILE.write(path, header, writer.arrays, compress=not has_real_draws)


def load(path: str | Path, max_bytes: int | None = None) -> Posterior:
    """Read a file written by `save`."""
    return FILE.read(path, _loaded, max_bytes)


def _loaded(header: dict[str, Any], arrays: Arrays) -> Posterior:
    posterior = _Reader(arrays).restored(header["posterior"], Posterior, "posterior")
    assert isinstance(posterior, Posterior)
    variables, hidden = posterior.variables, np.flatnonzero(~posterior.observed)
    if posterior.observed.shape != (len(variables),):
        raise ValueError("observed variables that do not exist")
    if posterior.assignment is not None:
        everything = np.arange(len(variables))
        Evidence.of(everything, posterior.assignment.values).check(variables)
    if posterior.checked is not None and not np.array_equal(posterior.checked.ids, hidden):
        raise ValueError("trust in variables that are not the hidden ones")
    if posterior.draws is not None and not np.array_equal(posterior.draws.ids, hidden):
        raise ValueError("draws of variables that are not the hidden ones")
    return posterior


@dataclass(frozen=True, slots=True)
class _Writer:
    """Values as JSON, with their arrays apart; what occurs twice is stored once."""

    arrays: Arrays = field(default_factory=dict)
    places: dict[int, tuple[str, Any]] = field(default_factory=dict)
    """The place of a stored object by its id, and the object, so that the id is not reused."""

    def described(self, value: Any, place: str) -> Any:
        if isinstance(value, Doubt):
            return {"doubt": value.python}
        if isinstance(value, tuple):
            return [self.described(one, f"{place}.{at}") for at, one in enumerate(value)]
        if isinstance(value, pa.DataType):
            is_zoned = pa.types.is_timestamp(value) and value.tz is not None
            plain = pa.timestamp(value.unit) if is_zoned else value
            return {"type": [str(plain), value.tz if is_zoned else None]}
        if not is_dataclass(value) and not isinstance(value, np.ndarray | pa.StringArray):
            return value
        known, _ = self.places.setdefault(id(value), (place, value))
        if isinstance(value, np.ndarray):
            self.arrays[known] = value
            return {"array": known}
        if isinstance(value, pa.StringArray):
            self.arrays.update(zip(_word_arrays(known), _packed(value), strict=True))
            return {"words": known}
        if known != place:
            return {"same": known}
        return {type(value).__name__: dict(self._fields(value, place))}

    def _fields(self, value: Any, place: str) -> Iterator[tuple[str, Any]]:
        parts = {
            one.name: getattr(value, one.name)
            for one in fields(value)
            if (type(value), one.name) not in NOT_STORED
        }
        if isinstance(value, Names):
            parts["blocks"] = tuple(_stored_blocks(value))
        elif isinstance(value, Draws):
            del parts["values"]
            parts["reals"], parts["states"] = _split_draws(value)
        for name, part in parts.items():
            yield name, self.described(part, f"{place}.{name}")


@dataclass(frozen=True, slots=True)
class _Reader:
    """Values from JSON and arrays, checked against the annotations of the fields they are in."""

    arrays: Arrays
    known: dict[str, Any] = field(default_factory=dict)
    """Restored objects by place."""

    def restored(self, described: Any, hint: Any, place: str) -> Any:
        value = self._restored(described, hint, place)
        if not _fits(value, hint):
            raise TypeError(f"{place} is {value!r}")
        return value

    def _restored(self, described: Any, hint: Any, place: str) -> Any:
        if isinstance(described, list):
            (inner,) = (get_args(one)[0] for one in _choices(hint) if get_origin(one) is tuple)
            return tuple(
                self.restored(one, inner, f"{place}.{at}") for at, one in enumerate(described)
            )
        if not isinstance(described, dict):
            return described
        ((kind, content),) = described.items()
        if kind == "array":
            return self.arrays[content]
        if kind == "same":
            return self.known[content]
        if kind == "type":
            return _type_of(*content)
        if kind == "doubt":
            return doubt(content)
        if kind != "words":
            self.known[place] = self._object(KINDS[kind], content, place)
        elif content not in self.known:  # arguments share their words
            self.known[content] = _unpacked(*(self.arrays[name] for name in _word_arrays(content)))
        return self.known[place if kind != "words" else content]

    def _object(self, kind: type, described: dict[str, Any], place: str) -> Any:
        hints = get_type_hints(kind)
        parts = {
            name: self.restored(part, hints.get(name, Any), f"{place}.{name}")
            for name, part in described.items()
        }
        if kind is Draws:
            parts["values"] = _joined_draws(parts.pop("reals"), parts.pop("states"), **parts)
        made = kind(**parts)
        if isinstance(made, Atoms):
            if made.labels and len(made.labels) != len(made.constants):
                raise ValueError("labels that do not fit the arguments")
            for words, one in zip(made.constants, made.types, strict=False):
                read_as(words, one)  # raises if they are not of the type
        return made


def _choices(hint: Any) -> tuple[Any, ...]:
    """The types that an annotation allows."""
    return get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)


def _fits(value: Any, hint: Any) -> bool:
    """Return whether a value is of an annotated type; arrays may have wider integers."""
    origin, inner = get_origin(hint), get_args(hint)
    if len(_choices(hint)) > 1:
        return any(_fits(value, one) for one in _choices(hint))
    if origin is Literal:
        return value in inner
    if origin is tuple:
        return isinstance(value, tuple) and all(_fits(one, inner[0]) for one in value)
    if origin is np.ndarray:
        (dtype,) = get_args(inner[1])
        wanted = np.signedinteger if issubclass(dtype, np.signedinteger) else dtype
        return isinstance(value, np.ndarray) and np.issubdtype(value.dtype, wanted)
    if hint is float:
        return isinstance(value, int | float)
    return hint is Any or isinstance(value, hint)


def _stored_blocks(names: Names) -> Iterator[NameBlock]:
    """The blocks of names; those of other kinds one by one."""
    for block, first in zip(names.blocks, names.offsets, strict=False):
        is_stored = type(block).__name__ in KINDS
        yield block if is_stored else Listed(names.render(np.arange(first, first + len(block))))


def _split_draws(draws: Draws) -> tuple[NDArray[np.float64], NDArray[Any]]:
    """Draws of reals and, since these need a byte or two each, of states."""
    num_states = draws.variables.num_states[draws.ids]
    is_real = num_states == 0
    small = np.min_scalar_type(max(int(num_states.max(initial=0)) - 1, 0))
    return draws.values[:, :, is_real], draws.values[:, :, ~is_real].astype(small)


def _joined_draws(
    reals: NDArray[Any],
    states: NDArray[Any],
    variables: Variables,
    ids: NDArray[np.int64],
    **others: Any,
) -> NDArray[np.float64]:
    num_states = variables.num_states[ids]
    is_real = num_states == 0
    values = np.empty((*reals.shape[:2], len(ids)))
    if states.shape[:2] != reals.shape[:2] or reals.shape[2] + states.shape[2] != len(ids):
        raise ValueError(f"draws of shapes {reals.shape} and {states.shape}")
    if not np.issubdtype(states.dtype, np.unsignedinteger) or reals.dtype != np.float64:
        raise ValueError(f"draws of {states.dtype} and {reals.dtype}")
    if not (states < num_states[~is_real]).all() or not np.isfinite(reals).all():
        raise ValueError("draws of a state or a number that is none")
    values[:, :, is_real], values[:, :, ~is_real] = reals, states
    return values


def _word_arrays(place: str) -> tuple[str, str]:
    """Names of the arrays of a list of words."""
    return f"{place}.offsets", f"{place}.letters"


def _packed(words: pa.StringArray) -> tuple[NDArray[np.int32], NDArray[np.uint8]]:
    offsets = np.frombuffer(words.buffers()[1], dtype=np.int32)[words.offset :][: len(words) + 1]
    data = words.buffers()[2]
    letters = np.frombuffer(data, dtype=np.uint8) if data is not None else np.zeros(0, np.uint8)
    return offsets if len(words) else np.zeros(1, np.int32), letters


def _unpacked(offsets: NDArray[Any], letters: NDArray[Any]) -> pa.StringArray:
    if offsets.dtype != np.int32 or letters.dtype != np.uint8 or offsets.ndim != 1:
        raise ValueError(f"words of {offsets.dtype} and {letters.dtype}")
    words = pa.StringArray.from_buffers(
        len(offsets) - 1, pa.py_buffer(offsets), pa.py_buffer(letters)
    )
    words.validate(full=True)
    return words


def _type_of(name: str, zone: str | None) -> pa.DataType:
    kind = pa.type_for_alias(name)
    if zone is not None:
        kind = pa.timestamp(kind.unit, zone)
    if kind != TEXT and not has_own_type(kind):
        raise ValueError(f"constants of the type {kind}")
    return kind
