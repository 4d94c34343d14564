"""The constants of a model: of its lists, its rules and its data, and doubts about them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from hylift.errors import EvidenceError
from hylift.graph.name_blocks import positions
from hylift.grounding.constants import WordColumn, as_integers, closest, in_order, type_of
from hylift.grounding.evidence.facts import Facts
from hylift.language.checks.rules import names_of_constants
from hylift.language.report import Problem
from hylift.language.statements import Model
from hylift.language.syntax import Atom, Comparison, Constant, Variable, WeightTable
from hylift.language.walk import logical_comparisons, nodes, terms, used_predicates
from hylift.words import Wording, counted, listed, worded

LONGEST_VARIABLE = 2
"""Letters of a capitalised word that was probably meant as a variable."""


@dataclass(frozen=True, slots=True)
class NamedConstants:
    """All that names constants: the model's lists, its rules, and data."""

    model: Model
    variable_types: tuple[Mapping[str, str], ...]
    listed: Mapping[str, pa.StringArray]
    """By type, the constants that the model lists."""
    facts: Sequence[Facts]
    in_rules: set[tuple[str, str]]
    """Type and name."""

    @classmethod
    def of(
        cls,
        model: Model,
        variable_types: tuple[Mapping[str, str], ...],
        listed: Mapping[str, pa.StringArray],
        facts: Sequence[Facts],
    ) -> NamedConstants:
        """variable_types: per rule, the types of its variables."""
        return cls(model, variable_types, listed, facts, _in_rules(model, variable_types))

    def columns(self, type_name: str, *, lists_only: bool = False) -> list[WordColumn]:
        """The columns of data that name constants of a type, and have some."""
        return [
            column
            for facts in self.facts
            for column, of_type in zip(facts.arguments, facts.predicate.arguments, strict=True)
            if of_type == type_name and column.stated.null_count < len(column.stated)
            if facts.is_list or not lists_only
        ]

    def _mentioned(self, type_name: str) -> pa.StringArray:
        """The constants of a type in rules."""
        return pa.array(sorted(n for t, n in self.in_rules if t == type_name), pa.string())

    def constants(self) -> dict[str, pa.StringArray]:
        """The constants of each type, in order."""
        ordered = _ordered_types(self.model, self.variable_types)
        return {
            name: self.listed[name]
            if name in self.listed
            else self._from_data(name, name in ordered)
            for name, declared in self.model.type_by_name.items()
            if name in self.listed or declared.constants is None
        }

    def arrow_types(self, constants: Mapping[str, pa.StringArray]) -> dict[str, pa.DataType]:
        """By type: the Arrow type of its constants in results."""
        return {
            name: type_of(words, (column.given for column in self.columns(name)))
            for name, words in constants.items()
        }

    def warnings(self, constants: Mapping[str, pa.StringArray]) -> Iterator[Problem]:
        """Warnings about names that may be meant otherwise."""
        yield from self._doubtful_variables(constants)
        for text in (*self._doubtful_constants(constants), *self._similar_constants(constants)):
            yield Problem("warning", text)

    def _from_data(self, type_name: str, order_matters: bool) -> pa.StringArray:
        """The constants of a type that data and rules mention."""
        constants = in_order(
            [column.used for column in self.columns(type_name, lists_only=True)],
            [*(column.used for column in self.columns(type_name)), self._mentioned(type_name)],
            order_matters=order_matters,
        )
        users = [p.name for p in self.model.predicates if type_name in p.arguments]
        if not len(constants) and used_predicates(self.model).intersection(users):
            raise EvidenceError(
                f"the type '{type_name}' has no constants",
                worded(
                    f"list them in the model ({type_name} = {{…}}), pass ",
                    Wording(f"evidence={{'{type_name}': […]}}", f"--evidence {type_name}=FILE"),
                    f", or evidence on {' or '.join(users)}",
                ),
            )
        return constants

    def _doubtful_constants(self, constants: Mapping[str, pa.StringArray]) -> Iterator[str]:
        """Warnings about constants that are in rules only, and may be variables or misspelt."""
        states = {p.arguments[p.unique] for p in self.model.predicates if p.unique is not None}
        for type_name, word in sorted(self.in_rules):
            in_data = [column.used for column in self.columns(type_name)]
            if type_name in self.listed or not in_data:
                continue
            if any(positions(array, [word])[0] >= 0 for array in in_data):
                continue
            is_in_rule = pc.is_in(constants[type_name], value_set=self._mentioned(type_name))
            close = closest(word, constants[type_name].filter(pc.invert(is_in_rule)))
            where = "is in a rule, but in no table"
            if close:
                yield f"the constant '{word}' of type '{type_name}' {where}.{close}"
            elif type_name not in states and word[:1].isupper() and len(word) <= LONGEST_VARIABLE:
                yield (
                    f"the constant '{word}' of type '{type_name}' {where}: variables begin with a "
                    f"small letter, '{word[0].lower()}{word[1:]}'"
                )

    def _similar_constants(self, constants: Mapping[str, pa.StringArray]) -> Iterator[str]:
        """Warnings about constants of the data that differ only in case or spaces."""
        for type_name, words in constants.items():
            if type_name in self.listed or as_integers(words) is not None:
                continue
            yield from _dates_in_two_notations(type_name, words)
            is_ascii = pc.all(pc.string_is_ascii(words)).as_py()
            composed = words if is_ascii else pc.utf8_normalize(words, "NFKC")
            folded = pc.utf8_lower(pc.utf8_trim_whitespace(composed))
            folded = pc.replace_substring_regex(folded, r"\s+", " ")
            counts = pc.value_counts(folded)
            more = counts.filter(pc.greater(counts.field("counts"), 1)).field("values")
            if len(more):
                alike = words.filter(pc.equal(folded, more[0]))
                alike_composed = composed.filter(pc.equal(folded, more[0]))
                is_form = not is_ascii and len(pc.unique(alike_composed)) < len(alike)
                shown = listed([(ascii if is_form else repr)(word) for word in alike.to_pylist()])
                others = f", and {counted(len(more) - 1, 'other')} like it" if len(more) > 1 else ""
                differ, mended = (
                    ("in how Unicode composes their letters", "normalize('NFKC')")
                    if is_form
                    else ("in case or spaces", "strip()")
                )
                yield (
                    f"the type '{type_name}' has constants that differ only {differ}: "
                    f"{shown}{others}; if they are the "
                    f"same, write them the same in all tables, as with df[column].str.{mended}"
                )

    def _doubtful_variables(self, constants: Mapping[str, pa.StringArray]) -> Iterator[Problem]:
        """Warnings about variables that were probably meant as constants of the data."""

        def in_data(type_name: str, word: str) -> bool:
            return type_name not in self.listed and positions(constants[type_name], [word])[0] >= 0

        for rule, types in zip(self.model.rules, self.variable_types, strict=True):
            yield from names_of_constants(rule, types, in_data)


def _dates_in_two_notations(type_name: str, words: pa.StringArray) -> Iterator[str]:
    """A warning about dates as in ISO 8601 beside others, which are never the same constants."""
    iso, other = (
        words.filter(pc.match_substring_regex(words, pattern))
        for pattern in (r"^\d{4}-\d\d-\d\d", r"^\d{1,2}([./-])\d{1,2}[./-](\d\d|\d{4})$")
    )
    if len(iso) and len(other):
        yield (
            f"the type '{type_name}' has dates in two notations, such as '{iso[0]}' and "
            f"'{other[0]}': write all as the first"
        )


def _in_rules(model: Model, types: Sequence[Mapping[str, str]]) -> set[tuple[str, str]]:
    """Type and name of the constants in rules, their conditions and their weight tables.

    types: per rule, the types of its variables.
    """
    found = set()
    for rule, type_of_variable in zip(model.rules, types, strict=True):
        for node in nodes(*rule.expressions):
            if isinstance(node, Atom):
                arguments = model.predicate_by_name[node.predicate].types_of(node)
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


def _ordered_types(model: Model, types: Sequence[Mapping[str, str]]) -> set[str]:
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
