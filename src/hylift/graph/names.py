"""Names of variables, by id and by name, without a Python string per variable.

Names are rendered on demand from blocks: a counted prefix, the constants of a predicate's
arguments, or strings packed in one Arrow array.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hylift.errors import (
    ArgumentError,
    ModelError,
    UnknownNameError,
    UnsupportedError,
    did_you_mean,
)
from hylift.graph.class_names import ClassAtoms
from hylift.graph.name_blocks import (
    MAX_SUGGESTIONS,
    NO_VARIABLE,
    Atoms,
    Listed,
    NameBlock,
    Numbered,
    regex_of,
    split_atom,
)
from hylift.numerics.segments import inverse, offsets

LEFT_OUT = " It is observed or otherwise left out here."


@dataclass(frozen=True, slots=True, eq=False)
class Selected(NameBlock):
    """Some of the names of others, such as those of the variables that evidence left hidden."""

    names: Names
    ids: NDArray[np.int64]  # increasing

    def __len__(self) -> int:
        return len(self.ids)

    def render(self, index: NDArray[np.int64]) -> pa.StringArray:
        return self.names.render(self.ids[index])

    @property
    def label(self) -> str:
        return ""

    @property
    def has_members(self) -> bool:
        return self.names.has_members

    def find(self, names: Sequence[str]) -> NDArray[np.int64]:
        wanted = self.names.find(names)
        if not len(self.ids):
            return np.full(len(names), -1, dtype=np.int64)
        position = np.minimum(np.searchsorted(self.ids, wanted), len(self.ids) - 1)
        return np.where(self.ids[position] == wanted, position, -1)

    def suggest(self, name: str) -> str:
        if self.names.find([name])[0] >= 0:
            return LEFT_OUT
        return self.names.suggest(name)


@dataclass(frozen=True, slots=True, eq=False)
class Names:
    """The names of all variables of a graph: blocks, one after the other."""

    blocks: tuple[NameBlock, ...]

    def __post_init__(self) -> None:
        labels = [block.label for block in self.blocks if block.label]
        for label in labels:
            if labels.count(label) > 1:
                raise ModelError(f"two blocks of names have the prefix '{label}'")

    @classmethod
    def numbered(cls, count: int, prefix: str = "x") -> Names:
        return cls((Numbered(prefix, count),))

    @classmethod
    def listed(cls, names: Iterable[str] | pa.StringArray) -> Names:
        if not isinstance(names, pa.StringArray):
            names = list(names)
            for name in names:
                if not isinstance(name, str):
                    raise ModelError(f"a variable name must be a string, not {name!r}")
        strings = names if isinstance(names, pa.StringArray) else pa.array(names, pa.string())
        if len(pc.unique(strings)) < len(strings):
            counts = pc.value_counts(strings)
            twice = counts.filter(pc.greater(counts.field("counts"), 1))[0]["values"].as_py()
            raise ModelError(f"two variables are named '{twice}'")
        return cls((Listed(strings),))

    def __len__(self) -> int:
        return sum(len(block) for block in self.blocks)

    @property
    def offsets(self) -> NDArray[np.int64]:
        """(block + 1,): the first id of each block, and the number of names."""
        return offsets([len(block) for block in self.blocks])

    def __getitem__(self, variable: int) -> str:
        if not 0 <= variable < len(self):
            raise UnknownNameError(f"there is no variable {variable}: there are {len(self)}")
        return str(self.render(np.array([variable]))[0].as_py())

    def __iter__(self) -> Iterator[str]:
        """All names, in the order of the variables."""
        for begin in range(0, len(self), MAX_SUGGESTIONS):
            end = min(begin + MAX_SUGGESTIONS, len(self))
            yield from self.render(np.arange(begin, end)).to_pylist()

    def render(self, ids: NDArray[Any] | None = None) -> pa.StringArray:
        """The names of these variables (all of them by default) as one Arrow array."""
        index = np.arange(len(self)) if ids is None else np.asarray(ids, dtype=np.int64)
        if len(self.blocks) == 1:
            return self.blocks[0].render(index)
        offsets = self.offsets
        which = np.searchsorted(offsets, index, side="right") - 1
        order = np.argsort(which, kind="stable")
        parts = [
            block.render(index[which == place] - offsets[place])
            for place, block in enumerate(self.blocks)
        ]
        back = inverse(order, len(order))
        return pa.concat_arrays(parts).take(pa.array(back)) if parts else pa.array([], pa.string())

    def find(self, names: Sequence[str]) -> NDArray[np.int64]:
        """The ids of names, -1 where there is none."""
        found = np.full(len(names), -1, dtype=np.int64)
        for block, offset in zip(self.blocks, self.offsets, strict=False):
            left = np.flatnonzero(found < 0)
            if not len(left):
                break
            position = block.find([names[at] for at in left.tolist()])
            found[left] = np.where(position >= 0, offset + position, -1)
        return found

    def ids(
        self, names: Sequence[str], advise: Callable[[str], str] | None = None
    ) -> NDArray[np.int64]:
        """The ids of names; an unknown one is an error that suggests the closest.

        advise: returns a hint for an unknown name, or nothing.
        """
        _check_texts(names)
        found = self.find(names)
        if (found < 0).any():
            name = names[int(np.argmax(found < 0))]
            advice = advise(name) if advise else ""
            raise UnknownNameError(f"there is no variable '{name}'.{advice or self.suggest(name)}")
        return found

    def predicate(self, name: str) -> tuple[NDArray[np.int64], Atoms]:
        """The ids of all atoms of a predicate, and their names; an error if it has none."""
        if not isinstance(name, str):
            raise ArgumentError(f"a predicate is a name, such as 'temperature', not {name!r}")
        for block, offset in zip(self.blocks, self.offsets, strict=False):
            if isinstance(block, Atoms) and block.predicate == name:
                if not len(block):
                    raise UnknownNameError(f"'{name}' has no variables.{NO_VARIABLE}")
                return offset + np.arange(len(block)), block
            if isinstance(block, Selected) and name in block.names.predicates:
                inner, atoms = block.names.predicate(name)
                first = np.searchsorted(block.ids, inner[0])
                chosen = block.ids[first : np.searchsorted(block.ids, inner[-1], side="right")]
                if not len(chosen):
                    raise UnknownNameError(f"'{name}' has no variables.{LEFT_OUT}")
                return offset + first + np.arange(len(chosen)), atoms.take(chosen - inner[0])
        close = did_you_mean(split_atom(name)[0], self.predicates)
        raise UnknownNameError(f"there is no predicate '{name}'.{close}")

    def common_predicate(self, ids: NDArray[Any]) -> tuple[NDArray[np.int64], Atoms]:
        """The `predicate` of these variables; an error unless all are of one."""
        name = split_atom(self[int(ids[0])])[0]
        every, block = self.predicate(name)
        others = ids[(ids < every[0]) | (ids > every[-1])]
        if len(others):
            raise UnsupportedError(
                f"a column per argument needs atoms of one predicate: '{self[int(others[0])]}' is "
                f"not of '{name}'. Ask for one predicate at a time"
            )
        return every, block

    def arguments_of(self, ids: NDArray[Any]) -> dict[str, pa.Array]:
        """A column per argument of some atoms of one predicate, by label, each of its type."""
        every, block = self.common_predicate(ids)
        columns = block.argument_columns()
        return {label: column.take(pa.array(ids - every[0])) for label, column in columns.items()}

    @property
    def predicates(self) -> tuple[str, ...]:
        """Predicates whose atoms are variables here, or were before some were left out."""
        found: list[str] = []
        for block in self.blocks:
            found += [block.predicate] if isinstance(block, Atoms) else []
            found += block.names.predicates if isinstance(block, Selected) else ()
        return tuple(found)

    def id(self, name: str) -> int:
        """The id of one name."""
        return int(self.ids([name])[0])

    def matching(
        self,
        patterns: str | Iterable[str],
        observed: NDArray[np.bool_] | None = None,
        advise: Callable[[str], str] | None = None,
    ) -> NDArray[np.int64]:
        """Ids of variables by name, predicate, or pattern with * and ?, in the order given.

        A predicate alone, unless a variable has just this name, stands for its atoms that are not
        `observed` (variable,), or for all if all are. An unknown name and a pattern without a match
        are errors; `advise` is that of `ids`.
        """
        each = [patterns] if isinstance(patterns, str) else list(patterns)
        _check_texts(each)
        several = {text: self._matching(text) for text in each if "*" in text or "?" in text}
        alone = sorted(set(self.predicates).intersection(each))
        for name, variable in zip(alone, self.find(alone), strict=True):
            if variable < 0:
                ids, _ = self.predicate(name)
                several[name] = ids if observed is None else hidden_or_all(ids, observed)
        # Names are looked up together: one alone takes about as long as all of them.
        named = iter(self.ids([text for text in each if text not in several], advise)[:, None])
        chosen = [several[text] if text in several else next(named) for text in each]
        return np.concatenate([np.zeros(0, dtype=np.int64), *chosen])

    def _matching(self, pattern: str) -> NDArray[np.int64]:
        """Ids of the names that match a pattern, with or without the quotes of their constants; an
        error if there are none."""
        if self.has_members:
            return self.ids(self.members(pattern).to_pylist())
        regex = regex_of(pattern)
        names = self.render()
        spelt = [names]
        if pc.any(pc.match_substring(names, '"')).as_py():
            bare = pc.replace_substring_regex(names, r'"((?:[^"\\]|\\.)*)"', r"\1")
            spelt.append(pc.replace_substring_regex(bare, r"\\(.)", r"\1"))
        found = [pc.match_substring_regex(text, regex) for text in spelt]
        ids = np.flatnonzero(pc.or_(found[0], found[-1]).to_numpy(zero_copy_only=False))
        if not len(ids):
            raise UnknownNameError(f"no variable matches '{pattern}'")
        return ids

    @property
    def has_members(self) -> bool:
        """True if a name stands for a class of atoms, and theirs are found, too."""
        return any(block.has_members for block in self.blocks)

    def members(self, pattern: str) -> pa.StringArray:
        """The names that match a pattern, of all members of classes; an error if there are none."""
        found = [pa.array([], pa.string())]
        for block in self.blocks:
            if isinstance(block, ClassAtoms):
                found.append(block.members(pattern))
            elif isinstance(block, Selected):
                names = block.names.members(pattern)
                found.append(names.filter(pa.array(block.find(names.to_pylist()) >= 0)))
        if not sum(map(len, found)):
            raise UnknownNameError(f"no variable matches '{pattern}'")
        return pa.concat_arrays(found)

    def spelt(self, patterns: str | Iterable[str], observed: NDArray[np.bool_]) -> pa.StringArray:
        """The names that were asked for, as of `matching`: of members of classes their own, for a
        predicate those that stand for its classes."""
        each = [patterns] if isinstance(patterns, str) else list(patterns)
        _check_texts(each)
        found = [pa.array([], pa.string())]
        for text in each:
            if "*" in text or "?" in text:
                found.append(self.members(text))
            elif self.find([text])[0] < 0 and text in self.predicates:
                found.append(self.render(hidden_or_all(self.predicate(text)[0], observed)))
            else:
                found.append(pa.array([text], pa.string()))
        return pc.unique(pa.concat_arrays(found))

    def suggest(self, name: str) -> str:
        own = split_atom(name)[0]
        same = [b for b in self.blocks if isinstance(b, Atoms) and b.predicate == own]
        if same:
            return same[0].suggest(name)
        predicates = [b.predicate for b in self.blocks if isinstance(b, Atoms)]
        close = did_you_mean(own, predicates)
        others = (b.suggest(name) for b in self.blocks if not isinstance(b, Atoms))
        return next((text for text in (close, *others) if text), "")

    def take(self, ids: NDArray[Any]) -> Names:
        """The names of some variables, given by increasing ids."""
        return Names((Selected(self, np.asarray(ids, dtype=np.int64)),))


def hidden_or_all(ids: NDArray[np.int64], observed: NDArray[np.bool_]) -> NDArray[np.int64]:
    """The atoms that a predicate stands for: those not observed, or all if all are."""
    hidden = ids[~observed[ids]]
    return hidden if len(hidden) else ids


def _check_texts(names: Iterable[object]) -> None:
    for name in names:
        if not isinstance(name, str):
            raise UnknownNameError(f"a variable name must be a string, not {name!r}")


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
