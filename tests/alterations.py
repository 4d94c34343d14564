"""Damaged and forged copies of archives; forged ones carry the digest of what was put in."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from hylift.archive import DIGEST, HEADER, digest_of

Arrays = dict[str, np.ndarray]


def unpacked(content: bytes) -> Arrays:
    with np.load(io.BytesIO(content)) as stored:
        return {name: stored[name] for name in stored.files if name != DIGEST}


def sealed(arrays: Arrays) -> bytes:
    """A file with these arrays, and their digest."""
    stream = io.BytesIO()
    np.savez(stream, **arrays, **{DIGEST: digest_of(arrays)})
    return stream.getvalue()


def header_of(arrays: Arrays) -> Any:
    return json.loads(arrays[HEADER].tobytes())


def with_header(arrays: Arrays, header: Any) -> Arrays:
    return {**arrays, HEADER: np.frombuffer(json.dumps(header).encode(), dtype=np.uint8)}


def altered(content: bytes, other: bytes, rng: np.random.Generator) -> Iterator[tuple[str, bytes]]:
    """One alteration of each kind, with its name; other: a file of another model or moment."""
    cut = int(rng.integers(len(content)))
    yield "truncated", content[:cut]
    yield "bits flipped in the file", _flipped(content, rng)
    arrays, foreign = unpacked(content), unpacked(other)
    names = [name for name in arrays if name != HEADER and arrays[name].size]
    if len(names) < 2:
        return
    for kind, change in CHANGES.items():
        name = str(rng.choice(names))
        yield f"{kind}: {name}", sealed({**arrays, name: change(arrays[name], rng)})
    first, second = (str(name) for name in rng.choice(names, 2, replace=False))
    swapped = {**arrays, first: arrays[second], second: arrays[first]}
    yield f"swapped: {first}, {second}", sealed(swapped)
    yield f"dropped: {first}", sealed({n: a for n, a in arrays.items() if n != first})
    yield "added", sealed({**arrays, "0/other": np.zeros(3)})
    taken = {name: foreign.get(name, array) for name, array in arrays.items() if name != HEADER}
    yield "arrays of another", sealed({**taken, HEADER: arrays[HEADER]})
    yield "edited header", sealed(with_header(arrays, _edited(header_of(arrays), rng)))


def _flipped(content: bytes, rng: np.random.Generator) -> bytes:
    found = np.frombuffer(content, dtype=np.uint8).copy()
    found[rng.integers(len(found))] ^= np.uint8(1 << rng.integers(8))
    return found.tobytes()


def _bits(array: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    found = np.frombuffer(bytearray(array.tobytes()), dtype=np.uint8)
    for _ in range(3):
        found[rng.integers(len(found))] ^= np.uint8(1 << rng.integers(8))
    return np.frombuffer(found.tobytes(), dtype=array.dtype).reshape(array.shape)


def _extreme(array: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    found = array.copy()
    if array.dtype.kind == "f":
        values = np.array([np.nan, np.inf, -np.inf, 1e308, -1e308, 1e18, -1.0, 0.5])
    elif array.dtype.kind in "iu":
        limits = np.iinfo(array.dtype)
        values = np.array([limits.min, limits.max, limits.max // 2]).astype(array.dtype)
    else:
        values = ~array.reshape(-1)[:1]
    found.reshape(-1)[rng.integers(found.size)] = rng.choice(values)
    return found


CHANGES: dict[str, Callable[[np.ndarray, np.random.Generator], np.ndarray]] = {
    "bits flipped": _bits,
    "extreme": _extreme,
    "other extreme": _extreme,
    "longer": lambda array, rng: np.concatenate([np.atleast_1d(array)] * 2),
    "empty": lambda array, rng: np.atleast_1d(array)[:0],
    "flat": lambda array, rng: array.reshape(-1, 1),
    "single precision": lambda array, rng: array.astype(np.float32),
    "other byte order": lambda array, rng: array.astype(array.dtype.newbyteorder(">")),
    "by columns": lambda array, rng: np.asfortranarray(array),
}


def _edited(header: Any, rng: np.random.Generator) -> Any:
    """The header with one of its values replaced by another kind of value."""
    places: list[tuple[Any, Any]] = []

    def visit(value: Any) -> None:
        items = list(value.items()) if isinstance(value, dict) else list(enumerate(value))
        for key, part in items:
            places.append((value, key))
            if isinstance(part, dict | list):
                visit(part)

    visit(header)
    own, key = places[rng.integers(len(places))]
    values: list[Any] = [None, -1, 10**9, 1.5, "other", [], {}, [[1, 2, 3]], True, "converged"]
    own[key] = values[rng.integers(len(values))]
    return header
