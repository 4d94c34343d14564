"""The world of a model: the constants of its types, and the evidence on its atoms."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hylift.errors import EvidenceError, ModelError, UnknownNameError, did_you_mean
from hylift.graph.domains import boolean
from hylift.graph.name_blocks import positions
from hylift.grounding.constants import (
    WordColumn,
    as_integers,
    closest,
    in_order,
    not_among,
    type_of,
)
from hylift.grounding.engine import Engine, Relation, open_engine
from hylift.grounding.evidence.facts import Facts, match_facts, refuse
from hylift.grounding.evidence.observed import ObservedAtoms, rows_of
from hylift.grounding.evidence.probabilities import GivenTable, given_constants
from hylift.grounding.evidence.sources import gather
from hylift.language.checks.check import check
from hylift.language.checks.rules import names_of_constants
from hylift.language.report import Problem
from hylift.language.statements import Model, PredicateDeclaration
from hylift.language.syntax import Atom, Comparison, Constant, Variable, WeightTable
from hylift.language.types import variable_types
from hylift.language.walk import (
    logical_comparisons,
    nodes,
    terms,
    used_predicates,
    with_exact_comparisons,
)
from hylift.words import Wording, counted, option, worded
from hylift.words import listed as listed_words

LONGEST_VARIABLE = 2
"""Letters of a capitalised word that was probably meant as a variable."""


@dataclass(frozen=True, eq=False)
class World:
    """A model together with all constants of its types and all that is observed."""

    model: Model
    variable_types: tuple[Mapping[str, str], ...]
    """Per rule: the type of each of its variables."""
    engine: Engine
    """The database that joins relations."""
    constants: Mapping[str, pa.StringArray]
    """By type, in order: the id of a constant is its position."""
    constant_types: Mapping[str, pa.DataType]
    """By type: the Arrow type of its constants in results: integers, dates, timestamps or text."""
    evidence: Mapping[str, ObservedAtoms]
    """By open predicate, where there is any."""
    relations: Mapping[str, Relation]
    """By closed-world predicate."""
    tables: Mapping[str, GivenTable]
    """Tables of probabilities."""
    closed: frozenset[str]
    """Predicates whose atoms are false unless the evidence says otherwise."""
    only_rows: Mapping[str, PredicateDeclaration]
    """By predicate whose atoms exist only where its table has rows: the relation of these."""
    notes: tuple[str, ...]
    """Rows and tables that were left out."""
    warnings: tuple[Problem, ...] = ()
    """Warnings about the model."""
    compared: frozenset[str] = frozenset()
    """Predicates whose numbers decide comparisons."""

    @classmethod
    def of(
        cls,
        model: Model,
        evidence: object = None,
        *,
        closed: Iterable[str] = (),
        only_rows: Iterable[str] = (),
        unmatched: Literal["error", "ignore"] = "error",
        engine: str = "duckdb",
    ) -> World:
        """From evidence in files, tables or mappings, for a model without errors.

        unmatched: what to do with rows about unknown predicates, or about constants that are not
            in the list of their type.
        engine: the database that joins the tables; a key of `ENGINES`.
        """
        if not isinstance(model, Model):
            raise ModelError(
                "a model is what hl.parse(text), hl.read_model(path) or ModelBuilder.build() "
                f"makes, not a value of type '{type(model).__name__}'"
            )
        closed = _closed(model, closed)
        warnings = list(check(model, closed))
        model = with_exact_comparisons(model)
        own_rows = _only_rows(model, only_rows, closed)
        if unmatched not in ("error", "ignore"):
            raise EvidenceError(
                worded(option("unmatched"), f" must be 'error' or 'ignore', not {unmatched!r}")
            )
        database = open_engine(engine)
        gathered = gather(model, evidence, database.databases)
        listed = {
            name: pa.array(declared.constants, pa.string())
            for name, declared in model.type_by_name.items()
            if declared.constants is not None
        }
        types = tuple(variable_types(model, rule) for rule in model.rules)
        states = given_constants(model, types, gathered.tables)
        facts, wrong_facts = match_facts(gathered.facts, listed)
        lists, wrong_lists = match_facts([*gathered.constants, *states], listed)
        left_out = [*gathered.unmatched, *wrong_facts, *wrong_lists]
        if unmatched == "error":
            refuse(left_out)
        given = _Given(model, types, listed, [*facts, *lists], _in_rules(model, types))
        constants = given.constants()
        constant_types = {
            name: type_of(constants[name], (column.given for column in given.columns(name)))
            for name in constants
        }
        observed = _observed(facts, constants, closed)
        doubts = (found.doubt for found in observed.values() if found.doubt is not None)
        texts = [
            *given.doubtful_constants(constants),
            *given.similar_constants(constants),
            *doubts,
        ]
        warnings += [*given.doubtful_variables(constants), *(Problem("warning", t) for t in texts)]
        names = [p.name for p in model.predicates]
        rows = _row_relations(own_rows, facts, constants, database)
        complete = _observed_completely(
            model, constants, observed, {own: rows[d.name].num_rows for own, d in own_rows.items()}
        )
        return cls(
            replace(model, predicates=(*model.predicates, *own_rows.values())),
            types,
            database,
            constants,
            constant_types,
            {name: observed[name] for name in names if name in observed and name not in closed},
            {
                name: _relation(model.predicate_by_name[name], observed, database, f"relation_{i}")
                for i, name in enumerate(names)
                if name in closed
            }
            | rows,
            gathered.tables,
            closed.union(rows),
            own_rows,
            (*gathered.notes, *map(str, left_out), *_without_values(model, observed)),
            tuple(warning for warning in warnings if warning.subject not in complete),
        )

    def size(self, type_name: str) -> int:
        """The number of constants of a type."""
        return len(self.constants[type_name])

    def constant_id(self, type_name: str, constant: str) -> int:
        """The position of a constant among those of its type."""
        return int(self.constant_ids(type_name, [constant])[0])

    def constant_ids(self, type_name: str, words: Sequence[str]) -> NDArray[np.int64]:
        """The positions of constants among those of their type."""
        constants = self.constants[type_name]
        found = positions(constants, words)
        if (found < 0).any():
            word = words[int(np.argmax(found < 0))]
            hint = closest(word, constants)
            raise UnknownNameError(f"{not_among(word, type_name, constants)}.{hint}")
        return found


def _closed(model: Model, names: Iterable[str]) -> frozenset[str]:
    if isinstance(names, str):
        raise EvidenceError(
            f"closed must be a list of predicates, such as ['{names}'], not a string"
        )
    closed = frozenset(names)
    for name in sorted(closed, key=str):
        predicate = model.predicate_by_name.get(name)
        if predicate is None:
            raise EvidenceError(
                worded(
                    option("closed"),
                    f" names '{name}', which is not a predicate of the model."
                    f"{did_you_mean(str(name), model.predicate_by_name)}",
                )
            )
        if not predicate.domain.is_discrete:
            raise EvidenceError(f"'{name}' is real and cannot be closed: it is not true or false")
        if predicate.unique is not None:
            raise EvidenceError(
                f"'{name}' has a `!` and cannot be closed: one of its atoms is always true"
            )
    return closed


def _only_rows(
    model: Model, names: Iterable[str], closed: frozenset[str]
) -> dict[str, PredicateDeclaration]:
    """By predicate whose atoms exist only where its table has rows: the relation of its rows."""
    if isinstance(names, str):
        raise EvidenceError(
            f"only_rows must be a list of predicates, such as ['{names}'], not a string"
        )
    found = {}
    for name in names:
        declared = model.predicate_by_name.get(name)
        if declared is None:
            raise EvidenceError(
                worded(
                    option("only_rows"),
                    f" names '{name}', which is not a predicate of the model."
                    f"{did_you_mean(str(name), model.predicate_by_name)}",
                )
            )
        if name in closed:
            raise EvidenceError(f"'{name}' is closed, so that its other atoms are false already")
        places = enumerate(declared.arguments)
        own = tuple(type_name for place, type_name in places if place != declared.unique)
        found[name] = PredicateDeclaration(f"rows of {name}", own, boolean)
    return found


def _row_relations(
    own_rows: Mapping[str, PredicateDeclaration],
    facts: Sequence[Facts],
    constants: Mapping[str, pa.StringArray],
    engine: Engine,
) -> dict[str, Relation]:
    found = {}
    for place, (name, declared) in enumerate(own_rows.items()):
        own = [part for part in facts if part.predicate.name == name and len(part)]
        if not own:
            raise EvidenceError(
                worded(option("only_rows"), f" names '{name}', but no table has rows of it")
            )
        found[declared.name] = _stored(rows_of(own, constants), engine, f"rows_{place}")
    return found


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


@dataclass(frozen=True, slots=True)
class _Given:
    """All that names constants: the model's lists, its rules, and data."""

    model: Model
    variable_types: tuple[Mapping[str, str], ...]
    listed: Mapping[str, pa.StringArray]
    """By type, the constants that the model lists."""
    facts: Sequence[Facts]
    in_rules: set[tuple[str, str]]
    """Type and name."""

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
            for name in self.model.type_by_name
        }

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

    def doubtful_constants(self, constants: Mapping[str, pa.StringArray]) -> Iterator[str]:
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

    def similar_constants(self, constants: Mapping[str, pa.StringArray]) -> Iterator[str]:
        """Warnings about constants of the data that differ only in case or spaces."""
        for type_name, words in constants.items():
            if type_name in self.listed or as_integers(words) is not None:
                continue
            folded = pc.utf8_lower(pc.utf8_trim_whitespace(words))
            folded = pc.replace_substring_regex(folded, r"\s+", " ")
            counts = pc.value_counts(folded)
            more = counts.filter(pc.greater(counts.field("counts"), 1)).field("values")
            if len(more):
                alike = words.filter(pc.equal(folded, more[0])).to_pylist()
                others = f", and {counted(len(more) - 1, 'other')} like it" if len(more) > 1 else ""
                yield (
                    f"the type '{type_name}' has constants that differ only in case or spaces: "
                    f"{listed_words([repr(word) for word in alike])}{others}; if they are the "
                    "same, write them the same in all tables, as with df[column].str.strip()"
                )

    def doubtful_variables(self, constants: Mapping[str, pa.StringArray]) -> Iterator[Problem]:
        """Warnings about variables that were probably meant as constants of the data."""

        def in_data(type_name: str, word: str) -> bool:
            return type_name not in self.listed and positions(constants[type_name], [word])[0] >= 0

        for rule, types in zip(self.model.rules, self.variable_types, strict=True):
            yield from names_of_constants(rule, types, in_data)


def _observed_completely(
    model: Model,
    constants: Mapping[str, pa.StringArray],
    observed: Mapping[str, ObservedAtoms],
    num_rows: Mapping[str, int],
) -> set[str]:
    """The predicates of which every atom is observed without error; num_rows: those that exist."""
    sizes = {
        declared.name: math.prod(len(constants[t]) for t in declared.arguments)
        for declared in model.predicates
    }
    return {
        name
        for name, found in observed.items()
        if not found.sd.any() and len(found) == num_rows.get(name, sizes[name])
    }


def _without_values(model: Model, observed: Mapping[str, ObservedAtoms]) -> Iterator[str]:
    """Notes on rows that observe nothing."""
    for name, found in observed.items():
        if found.num_unknown:
            is_unique = model.predicate_by_name[name].unique is not None
            lacking = "value or state" if is_unique else "value"
            count = found.num_unknown
            yield f"{name}: {count} of its rows observe nothing, as the {lacking} is missing"
        if found.num_repeated:
            are = "repeats another and is" if found.num_repeated == 1 else "repeat others and are"
            yield f"{name}: {found.num_repeated:,} of its rows {are} left out"


def _observed(
    given: Sequence[Facts], constants: Mapping[str, pa.StringArray], closed: frozenset[str]
) -> dict[str, ObservedAtoms]:
    """The observed atoms of each predicate that has facts."""
    by_predicate: dict[str, list[Facts]] = {}
    for facts in given:
        if len(facts):
            by_predicate.setdefault(facts.predicate.name, []).append(facts)
    return {
        name: ObservedAtoms.of(facts, constants, closed=name in closed)
        for name, facts in by_predicate.items()
    }


def _relation(
    predicate: PredicateDeclaration,
    observed: Mapping[str, ObservedAtoms],
    engine: Engine,
    table: str,
) -> Relation:
    """The true atoms of a closed-world predicate, stored in the engine."""
    num_arguments = len(predicate.arguments)
    ids = np.zeros((0, num_arguments), dtype=np.int32)
    if predicate.name in observed:
        ids = observed[predicate.name].ids
    return _stored(ids, engine, table)


def _stored(ids: NDArray[np.int32], engine: Engine, table: str) -> Relation:
    """The rows (row, argument) in the engine."""
    columns = {f"a{place}": pa.array(column) for place, column in enumerate(ids.T)}
    engine.load(table, pa.table(columns or {"holds": pa.array(np.ones(len(ids), dtype=bool))}))
    return Relation(table, len(ids))
