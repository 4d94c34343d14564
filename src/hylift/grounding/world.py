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
from hylift.graph.name_blocks import positions
from hylift.grounding.constants import (
    closest,
    in_order,
    in_rules,
    not_among,
    ordered_types,
    type_of,
)
from hylift.grounding.engine import Engine, Relation, open_engine
from hylift.grounding.evidence.columns import WordColumn
from hylift.grounding.evidence.facts import Facts, match_constants, match_facts, refuse
from hylift.grounding.evidence.observed import Observed
from hylift.grounding.evidence.sources import Gathered, gather
from hylift.language.checks.check import check
from hylift.language.checks.rules import names_of_constants
from hylift.language.report import Problem
from hylift.language.syntax import Model, PredicateDeclaration
from hylift.language.types import variable_types
from hylift.language.walk import used_predicates
from hylift.words import Wording, option, worded


@dataclass(frozen=True, eq=False)
class World:
    """A model together with all constants of its types and all that is observed."""

    model: Model
    engine: Engine
    """The database that joins relations."""
    constants: Mapping[str, pa.StringArray]
    """By type, in order: the id of a constant is its position."""
    constant_types: Mapping[str, pa.DataType]
    """By type: the Arrow type of its constants in results: integers, dates, timestamps or text."""
    evidence: Mapping[str, Observed]
    """By open predicate, where there is any."""
    relations: Mapping[str, Relation]
    """By closed-world predicate."""
    closed: frozenset[str]
    """Predicates whose atoms are false unless the evidence says otherwise."""
    notes: tuple[str, ...]
    """What was left out."""
    warnings: tuple[Problem, ...] = ()
    """What is worth a second look in the model."""

    @classmethod
    def of(
        cls,
        model: Model,
        evidence: object = None,
        *,
        closed: Iterable[str] = (),
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
        warnings = [*check(model, closed)]
        if unmatched not in ("error", "ignore"):
            raise EvidenceError(
                worded(option("unmatched"), f" must be 'error' or 'ignore', not {unmatched!r}")
            )
        database = open_engine(engine)
        listed = {
            name: pa.array(declared.constants, pa.string())
            for name, declared in model.type_by_name.items()
            if declared.constants is not None
        }
        gathered = _matched(gather(model, evidence, database.databases), listed)
        if unmatched == "error":
            refuse(gathered.unmatched)
        in_model = set(in_rules(model))
        columns = {name: _columns(gathered, name) for name in model.type_by_name}
        constants = {
            name: listed[name] if name in listed else _from_data(gathered, found, in_model, name)
            for name, found in columns.items()
        }
        constant_types = {
            name: type_of(constants[name], (column.given for column in found))
            for name, found in columns.items()
        }
        observed = _observed(gathered, constants, closed)
        warnings += _doubtful_constants(in_model, columns, listed, constants)
        warnings += _doubtful_variables(model, listed, constants)
        doubts = (found.doubt for found in observed.values())
        warnings += [Problem("warning", doubt) for doubt in doubts if doubt is not None]
        complete = _observed_completely(model, constants, observed)
        relations = {
            predicate.name: _relation(predicate, observed, database, f"relation_{number}")
            for number, predicate in enumerate(model.predicates)
            if predicate.name in closed
        }
        return cls(
            model,
            database,
            constants,
            constant_types,
            {
                p.name: observed[p.name]
                for p in model.predicates
                if p.name in observed.keys() - closed
            },
            relations,
            closed,
            (*gathered.notes, *map(str, gathered.unmatched), *_without_values(model, observed)),
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
        raise EvidenceError(f"closed must be a list of predicates, such as ['{names}'], not a text")
    closed = frozenset(names)
    for name in sorted(closed, key=str):
        predicate = model.predicate_by_name.get(name)
        if predicate is None:
            raise EvidenceError(
                worded(
                    option("closed"),
                    f" names '{name}', which is no predicate of the model."
                    f"{did_you_mean(str(name), model.predicate_by_name)}",
                )
            )
        if not predicate.domain.is_discrete:
            raise EvidenceError(f"'{name}' is real and cannot be closed: it is not true or false")
        if predicate.unique is not None:
            raise EvidenceError(
                f"'{name}' has a `!` and cannot be closed: one of its atoms is true in any case"
            )
    return closed


def _matched(gathered: Gathered, listed: Mapping[str, pa.StringArray]) -> Gathered:
    """Without the facts that speak of constants which are not in the list of their type."""
    pairs = [match_facts(facts, listed) for facts in gathered.facts]
    unmatched = [rows for _, found in pairs for rows in found]
    unmatched += [rows for given in gathered.constants for rows in match_constants(given, listed)]
    return replace(
        gathered,
        facts=[facts for facts, _ in pairs],
        unmatched=[*gathered.unmatched, *unmatched],
    )


def _columns(gathered: Gathered, type_name: str) -> list[WordColumn]:
    """The columns that name constants of a type, and have some."""
    columns = [
        column
        for facts in gathered.facts
        for column, of_type in zip(facts.arguments, facts.predicate.arguments, strict=True)
        if of_type == type_name
    ]
    columns += [given.words for given in gathered.constants if given.type_name == type_name]
    return [column for column in columns if column.stated.null_count < len(column)]


def _from_data(
    gathered: Gathered, columns: list[WordColumn], in_model: set[tuple[str, str]], type_name: str
) -> pa.StringArray:
    """The constants of a type that data and rules mention."""
    model = gathered.model
    listed = [
        given.words.used
        for given in gathered.constants
        if given.type_name == type_name and given.is_ordered
    ]
    in_rule = sorted(name for of_type, name in in_model if of_type == type_name)
    mentioned = [*(column.used for column in columns), pa.array(in_rule, pa.string())]
    constants = in_order(listed, mentioned, order_matters=type_name in ordered_types(model))
    users = [p.name for p in model.predicates if type_name in p.arguments]
    if not len(constants) and used_predicates(model).intersection(users):
        raise EvidenceError(
            f"the type '{type_name}' has no constants",
            worded(
                f"list them in the model ({type_name} = {{…}}), pass ",
                Wording(f"evidence={{'{type_name}': […]}}", f"--evidence {type_name}=FILE"),
                f", or evidence on {' or '.join(users)}",
            ),
        )
    return constants


def _observed_completely(
    model: Model,
    constants: Mapping[str, pa.StringArray],
    observed: Mapping[str, Observed],
) -> set[str]:
    """The predicates of which every atom is observed without error."""
    return {
        name
        for name, found in observed.items()
        if not found.sd.any()
        and len(found)
        == math.prod(len(constants[t]) for t in model.predicate_by_name[name].arguments)
    }


def _without_values(model: Model, observed: Mapping[str, Observed]) -> Iterator[str]:
    """Notes on rows that observe nothing."""
    for name, found in observed.items():
        if found.num_unknown:
            is_unique = model.predicate_by_name[name].unique is not None
            lacking = "value or state" if is_unique else "value"
            count = found.num_unknown
            yield f"{name}: {count} of its rows observe nothing, as the {lacking} is missing"


def _doubtful_constants(
    in_model: set[tuple[str, str]],
    columns: Mapping[str, list[WordColumn]],
    listed: Mapping[str, pa.StringArray],
    constants: Mapping[str, pa.StringArray],
) -> Iterator[Problem]:
    """Constants that only a rule mentions, and that look like one of the data."""
    for type_name, word in sorted(in_model):
        in_data = [] if type_name in listed else [column.used for column in columns[type_name]]
        if not in_data or any(positions(array, [word])[0] >= 0 for array in in_data):
            continue
        in_rule = pa.array([name for of_type, name in in_model if of_type == type_name])
        is_in_rule = pc.is_in(constants[type_name], value_set=in_rule)
        close = closest(word, constants[type_name].filter(pc.invert(is_in_rule)))
        if close:
            text = f"the constant '{word}' of type '{type_name}' is in a rule, but in no table."
            yield Problem("warning", text + close)


def _doubtful_variables(
    model: Model, listed: Mapping[str, pa.StringArray], constants: Mapping[str, pa.StringArray]
) -> Iterator[Problem]:
    """Variables that were probably meant as constants of the data."""

    def in_data(type_name: str, word: str) -> bool:
        return type_name not in listed and positions(constants[type_name], [word])[0] >= 0

    for rule in model.rules:
        yield from names_of_constants(rule, variable_types(model, rule), in_data)


def _observed(
    gathered: Gathered, constants: Mapping[str, pa.StringArray], closed: frozenset[str]
) -> dict[str, Observed]:
    """What is observed, by predicate, where any facts speak of it."""
    by_predicate: dict[str, list[Facts]] = {}
    for facts in gathered.facts:
        if len(facts):
            by_predicate.setdefault(facts.predicate.name, []).append(facts)
    return {
        name: Observed.of(facts, constants, closed=name in closed)
        for name, facts in by_predicate.items()
    }


def _relation(
    predicate: PredicateDeclaration,
    observed: Mapping[str, Observed],
    engine: Engine,
    table: str,
) -> Relation:
    """The true atoms of a closed-world predicate, stored in the engine."""
    num_arguments = len(predicate.arguments)
    ids = np.zeros((0, num_arguments), dtype=np.int32)
    if predicate.name in observed:
        ids = observed[predicate.name].ids
    columns = {f"a{place}": pa.array(column) for place, column in enumerate(ids.T)}
    engine.load(table, pa.table(columns or {"holds": pa.array(np.ones(len(ids), dtype=bool))}))
    return Relation(table, len(ids))
