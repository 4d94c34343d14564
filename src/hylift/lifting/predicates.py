"""The predicate of each variable, found without rendering names."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hylift.graph import Atoms, Listed, NameBlock, Names, Numbered
from hylift.graph.names import Selected

UNNAMED = "variables"
"""Label of variables whose names follow no pattern."""

MAX_LISTED = 100
"""Most predicates that are parsed from listed names."""


@dataclass(frozen=True, slots=True, eq=False)
class Predicates:
    """The predicates of a graph, and the one of each variable."""

    names: tuple[str, ...]
    of_variable: NDArray[np.int32]  # (variable,): index into `names`

    @classmethod
    def of(cls, names: Names) -> Predicates:
        """The predicates of blocks of names; listed names are parsed."""
        labels: list[str] = []
        columns = []
        for block in names.blocks:
            block_labels, column = _of_block(block)
            place = np.array([_index(labels, label) for label in block_labels], dtype=np.int32)
            columns.append(place[column])
        return cls(tuple(labels), np.concatenate([np.zeros(0, dtype=np.int32), *columns]))

    def take(self, ids: NDArray[np.int64]) -> Predicates:
        """The same predicates, of some of the variables."""
        return Predicates(self.names, self.of_variable[ids])


def _index(labels: list[str], label: str) -> int:
    if label not in labels:
        labels.append(label)
    return labels.index(label)


def _of_block(block: NameBlock) -> tuple[tuple[str, ...], NDArray[np.int32]]:
    """Labels, and the index of each name's label."""
    if isinstance(block, Selected):
        inner = Predicates.of(block.names).take(block.ids)
        return inner.names, inner.of_variable
    if isinstance(block, Listed):
        return _of_listed(block.strings)
    label = block.predicate if isinstance(block, Atoms) else UNNAMED
    if isinstance(block, Numbered) and block.prefix:
        label = block.prefix
    return (label,), np.zeros(len(block), dtype=np.int32)


def _of_listed(strings: pa.StringArray) -> tuple[tuple[str, ...], NDArray[np.int32]]:
    """Stems of names, without the bracket or the digits at the end: `posA(a1)`, `x12`."""
    stems = pc.replace_substring_regex(strings, r"(\(.*|\d+)$", "")
    coded = pc.dictionary_encode(stems)
    labels = coded.dictionary.to_pylist()
    if len(labels) > min(MAX_LISTED, max(1, len(strings) // 2)) or "" in labels:
        return (UNNAMED,), np.zeros(len(strings), dtype=np.int32)
    return tuple(labels), coded.indices.to_numpy().astype(np.int32)
