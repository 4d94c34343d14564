"""The world of a model: the constants of its types, and the evidence on its atoms."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hylift.errors import EvidenceError, ModelError, UnknownNameError, did_you_mean
from hylift.graph.domains import boolean
from hylift.graph.name_blocks import positions
from hylift.grounding.constants import closest, not_among, words_of
from hylift.grounding.engine import Engine, Relation, open_engine
from hylift.grounding.evidence.facts import Facts, match_facts, refuse
from hylift.grounding.evidence.observed import ObservedAtoms, rows_of
from hylift.grounding.evidence.probabilities import GivenTable, given_constants
from hylift.grounding.evidence.sources import gather
from hylift.grounding.named import NamedConstants
from hylift.language.checks.check import check
from hylift.language.report import Problem
from hylift.language.statements import Model, PredicateDeclaration
from hylift.language.types import variable_types
from hylift.language.walk import with_exact_comparisons
from hylift.words import option, worded


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
        used = {one.predicate.name for one in gathered.constants}
        used.update(*(declared.arguments for declared in model.predicates))
        listed = {
            name: words_of(declared.constants)
            for name, declared in model.type_by_name.items()
            if declared.constants is not None and name in used
        }
        types = tuple(variable_types(model, rule) for rule in model.rules)
        states = given_constants(model, types, gathered.tables)
        facts, wrong_facts = match_facts(gathered.facts, listed)
        lists, wrong_lists = match_facts([*gathered.constants, *states], listed)
        left_out = [*gathered.unmatched, *wrong_facts, *wrong_lists]
        if unmatched == "error":
            refuse(left_out)
        given = NamedConstants.of(model, types, listed, [*facts, *lists])
        constants = given.constants()
        observed = _observed(facts, constants, closed)
        doubts = (found.doubt for found in observed.values() if found.doubt is not None)
        warnings += [*given.warnings(constants), *(Problem("warning", text) for text in doubts)]
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
            given.arrow_types(constants),
            {name: observed[name] for name in names if name in observed and name not in closed},
            _relations(model, closed, observed, database) | rows,
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


def _named(model: Model, names: Iterable[str], argument: str) -> dict[str, PredicateDeclaration]:
    """The predicates that an argument names."""
    if isinstance(names, str):
        raise EvidenceError(
            f"{argument} must be a list of predicates, such as ['{names}'], not a string"
        )
    found = {}
    for name in names:
        declared = model.predicate_by_name.get(name)
        if declared is None:
            raise EvidenceError(
                worded(
                    option(argument),
                    f" names '{name}', which is not a predicate of the model."
                    f"{did_you_mean(str(name), model.predicate_by_name)}",
                )
            )
        found[name] = declared
    return found


def _closed(model: Model, names: Iterable[str]) -> frozenset[str]:
    if not isinstance(names, str):
        names = sorted(set(names), key=str)
    closed = _named(model, names, "closed")
    for name, predicate in closed.items():
        if not predicate.domain.is_discrete:
            raise EvidenceError(f"'{name}' is real and cannot be closed: it is not true or false")
        if predicate.unique is not None:
            raise EvidenceError(
                f"'{name}' has a `!` and cannot be closed: one of its atoms is always true"
            )
    return frozenset(closed)


def _only_rows(
    model: Model, names: Iterable[str], closed: frozenset[str]
) -> dict[str, PredicateDeclaration]:
    """By predicate whose atoms exist only where its table has rows: the relation of its rows."""
    found = {}
    for name, declared in _named(model, names, "only_rows").items():
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
            verb = "observes" if count == 1 else "observe"
            yield f"{name}: {count} of its rows {verb} nothing, as the {lacking} is missing"
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


def _relations(
    model: Model,
    closed: frozenset[str],
    observed: Mapping[str, ObservedAtoms],
    engine: Engine,
) -> dict[str, Relation]:
    """The true atoms of closed-world predicates, stored in the engine."""
    found = {}
    for place, predicate in enumerate(model.predicates):
        if predicate.name in closed:
            ids = np.zeros((0, len(predicate.arguments)), dtype=np.int32)
            if predicate.name in observed:
                ids = observed[predicate.name].ids
            found[predicate.name] = _stored(ids, engine, f"relation_{place}")
    return found


def _stored(ids: NDArray[np.int32], engine: Engine, table: str) -> Relation:
    """The rows (row, argument) in the engine."""
    columns = {f"a{place}": pa.array(column) for place, column in enumerate(ids.T)}
    engine.load(table, pa.table(columns or {"holds": pa.array(np.ones(len(ids), dtype=bool))}))
    return Relation(table, len(ids))
