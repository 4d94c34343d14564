"""Constants of types: their order, their Arrow type, and those that rules mention."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hylift.graph.name_blocks import TEXT, read_as
from hylift.grounding.evidence.columns import WordColumn
from hylift.language.syntax import Atom, Comparison, Constant, Model, Variable, WeightTable
from hylift.language.walk import logical_comparisons, nodes, terms

INTEGER = r"^(0|-?[1-9][0-9]{0,17})$"
"""An integer without leading zeros or a plus."""

NUMBER = r"-?[0-9]{1,15}(\.[0-9]{1,15})?"

UNITS = ("s", "ms", "us", "ns")


def in_order(
    listed: Iterable[pa.StringArray],
    mentioned: Iterable[pa.StringArray],
    *,
    order_matters: bool = False,
) -> pa.StringArray:
    """All words, each once, given arrays of distinct words: by number if all are integers.

    Otherwise listed words come first, in their order, then those only mentioned, bytewise. Where
    rules compare constants or use neighbours, decimals and words that differ only in a number at
    their end are ordered by number, too.
    """
    lists, others = list(listed), list(mentioned)
    distinct = _distinct([*lists, *others])
    numbers = as_integers(distinct)
    if numbers is not None:
        return distinct.take(pa.array(np.argsort(numbers)))
    first = _distinct(lists)
    rest = distinct.slice(len(first))
    trailing = _trailing_numbers(rest) if order_matters else None
    order = pc.sort_indices(rest) if trailing is None else pa.array(np.argsort(trailing))
    return pa.concat_arrays([first, rest.take(order)])


def _trailing_numbers(words: pa.StringArray) -> NDArray[np.float64] | None:
    """The number that each word is, or has behind a shared prefix; None if some have none."""
    if not len(words):
        return None
    first = str(words[0])
    prefix = "" if re.fullmatch(NUMBER, first) else first.rstrip("0123456789.")
    rest = pc.utf8_slice_codeunits(words, len(prefix))
    same = pc.all(pc.starts_with(words, prefix)).as_py()
    if not (same and pc.all(pc.match_substring_regex(rest, f"^{NUMBER}$")).as_py()):
        return None
    return np.asarray(pc.cast(rest, pa.float64()).to_numpy(zero_copy_only=False))


def _distinct(arrays: list[pa.StringArray]) -> pa.StringArray:
    filled = [array for array in arrays if len(array)]
    return filled[0] if len(filled) == 1 else pc.unique(pa.chunked_array(filled, pa.string()))


def as_integers(words: pa.StringArray) -> NDArray[np.int64] | None:
    """The words as integers, or None if one is none."""
    if not (_are_integers(words.slice(0, 1)) and _are_integers(words)):
        return None
    return np.asarray(pc.cast(words, pa.int64()).to_numpy(zero_copy_only=False))


def _are_integers(words: pa.StringArray) -> bool:
    return bool(pc.all(pc.match_substring_regex(words, INTEGER)).as_py())


def type_of(constants: pa.StringArray, given: Iterable[pa.DataType]) -> pa.DataType:
    """The Arrow type of constants in the tables that name them; text where tables differ.

    Constants of the model have the type of the tables if reading and writing them as such gives
    the same words.
    """
    kind = _shared(list(dict.fromkeys(given)))
    try:
        column = pa.chunked_array([read_as(constants, kind)])
    except pa.ArrowException:
        return TEXT
    same = WordColumn.of(column, "").stated.cast(TEXT).equals(pa.chunked_array([constants]))
    return kind if same else TEXT


def _shared(kinds: list[pa.DataType]) -> pa.DataType:
    """The common type of columns of these types."""
    if len(kinds) == 1:
        return kinds[0]
    if kinds and all(pa.types.is_integer(kind) for kind in kinds):
        return pa.int64()
    if kinds and all(pa.types.is_timestamp(kind) and kind.tz == kinds[0].tz for kind in kinds):
        return max(kinds, key=lambda kind: UNITS.index(kind.unit))
    return TEXT


def in_rules(model: Model, types: Sequence[Mapping[str, str]]) -> set[tuple[str, str]]:
    """Type and name of the constants in rules, their conditions and their weight tables.

    types: per rule, the types of its variables.
    """
    found = set()
    for rule, type_of_variable in zip(model.rules, types, strict=True):
        for node in nodes(*rule.expressions):
            if isinstance(node, Atom):
                arguments = model.predicate_by_name[node.predicate].arguments
                pairs = zip(node.arguments, arguments, strict=True)
                found |= {(name, term.name) for term, name in pairs if isinstance(term, Constant)}
            elif isinstance(node, Comparison):
                for one, other in ((node.left, node.right), (node.right, node.left)):
                    if isinstance(one, Variable) and isinstance(other, Constant):
                        found.add((type_of_variable[one.name], other.name))
        if isinstance(rule.weight, WeightTable):
            for key, _ in rule.weight.entries:
                found |= set(
                    zip((type_of_variable[n] for n in rule.per_constant), key, strict=True)
                )
    return found


def ordered_types(model: Model, types: Sequence[Mapping[str, str]]) -> set[str]:
    """The types of which rules use the order: t+1, or t < u."""
    found = set()
    for rule, type_of_variable in zip(model.rules, types, strict=True):
        used = [
            term for term in terms(*rule.expressions) if isinstance(term, Variable) and term.shift
        ]
        for node in logical_comparisons(*rule.expressions):
            if node.op not in ("=", "!="):
                used += [side for side in (node.left, node.right) if isinstance(side, Variable)]
        found |= {type_of_variable[term.name] for term in used}
    return found
