"""Names of variables in a file, as blocks: words once, however many atoms are made of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hylift.graph import Atoms, NameBlock, Names, Numbered
from hylift.graph.name_blocks import TEXT, has_own_type, read_as


def store_names(names: Names, arrays: dict[str, NDArray[Any]]) -> list[dict[str, Any]]:
    """A description of each block for the header; its words go to `arrays`."""
    numbers: dict[int, int] = {}  # of lists of words, by identity: arguments share them

    def number(words: pa.StringArray) -> int:
        if id(words) not in numbers:
            numbers[id(words)] = len(numbers)
            kept.append(words)
            _store_words(words, f"words{numbers[id(words)]}", arrays)
        return numbers[id(words)]

    kept: list[pa.StringArray] = []  # so that no identity is used twice
    described: list[dict[str, Any]] = []
    for place, (block, first) in enumerate(zip(names.blocks, names.offsets, strict=False)):
        if isinstance(block, Numbered):
            described.append({"kind": "numbered", "prefix": block.prefix, "count": block.count})
        elif isinstance(block, Atoms):
            if block.arguments is not None:
                arrays[f"arguments{place}"] = block.arguments
            described.append(
                {
                    "kind": "atoms",
                    "predicate": block.predicate,
                    "constants": [number(words) for words in block.constants],
                    "labels": list(block.labels),
                    "types": [_type_text(kind) for kind in block.types],
                }
            )
        else:
            text = names.render(np.arange(first, first + len(block)))
            described.append({"kind": "listed", "words": number(text)})
    return described


def restore_names(described: list[dict[str, Any]], arrays: dict[str, NDArray[Any]]) -> Names:
    """What `store_names` stored; raises where that does not hold together."""
    restored: dict[int, pa.StringArray] = {}

    def words(number: int) -> pa.StringArray:
        if number not in restored:
            restored[number] = _restore_words(f"words{number}", arrays)
        return restored[number]

    blocks: list[NameBlock] = []
    for place, block in enumerate(described):
        if block["kind"] == "numbered":
            blocks.append(Numbered(_text(block["prefix"]), _count(block["count"])))
        elif block["kind"] == "atoms":
            constants = tuple(words(number) for number in block["constants"])
            arguments = arrays.get(f"arguments{place}")
            if arguments is not None and arguments.dtype != np.int32:
                raise ValueError(f"arguments of {arguments.dtype}")
            labels = tuple(_text(label) for label in block["labels"])
            if labels and len(labels) != len(constants):
                raise ValueError("labels that do not fit the arguments")
            types = tuple(_type_of(text) for text in block["types"])
            for column, kind in zip(constants, types, strict=False):
                read_as(column, kind)  # raises if they are not of the type
            predicate = _text(block["predicate"])
            blocks.append(Atoms(predicate, constants, arguments, labels=labels, types=types))
        elif block["kind"] == "listed":
            blocks += Names.listed(words(block["words"])).blocks
        else:
            raise ValueError(f"a block of names of kind {block['kind']!r}")
    return Names(tuple(blocks))


def _store_words(words: pa.StringArray, name: str, arrays: dict[str, NDArray[Any]]) -> None:
    offsets = np.frombuffer(words.buffers()[1], dtype=np.int32)[words.offset :][: len(words) + 1]
    data = words.buffers()[2]
    arrays[f"{name}_offsets"] = offsets if len(words) else np.zeros(1, np.int32)
    letters = np.frombuffer(data, dtype=np.uint8) if data is not None else np.zeros(0, np.uint8)
    arrays[f"{name}_letters"] = letters


def _restore_words(name: str, arrays: dict[str, NDArray[Any]]) -> pa.StringArray:
    offsets, letters = arrays[f"{name}_offsets"], arrays[f"{name}_letters"]
    if offsets.dtype != np.int32 or letters.dtype != np.uint8 or offsets.ndim != 1:
        raise ValueError(f"words of {offsets.dtype} and {letters.dtype}")
    words = pa.StringArray.from_buffers(
        len(offsets) - 1, pa.py_buffer(offsets), pa.py_buffer(letters)
    )
    words.validate(full=True)
    return words


def _type_text(kind: pa.DataType) -> list[str | None]:
    """The name of a type, and the time zone of moments that have one."""
    if pa.types.is_timestamp(kind):
        return [str(pa.timestamp(kind.unit)), kind.tz]
    return [str(kind), None]


def _type_of(text: list[str | None]) -> pa.DataType:
    name, zone = text
    kind = pa.type_for_alias(_text(name))
    if zone is not None:
        kind = pa.timestamp(kind.unit, _text(zone))
    if kind != TEXT and not has_own_type(kind):
        raise ValueError(f"constants of the type {kind}")
    return kind


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is not a text")
    return value


def _count(value: Any) -> int:
    if not isinstance(value, int) or value < 0:
        raise TypeError(f"{value!r} is not a number of names")
    return value
