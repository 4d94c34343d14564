"""The statements of a model: declarations and rules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from hylift.graph.domains import Domain
from hylift.language.syntax import Atom, Expr, Node, WeightTable

if TYPE_CHECKING:
    from hylift.language.report import Problem


@dataclass(frozen=True, slots=True)
class Declaration(Node):
    """A statement that gives a name to a type, a predicate or a constant."""

    name: str


@dataclass(frozen=True, slots=True)
class TypeDeclaration(Declaration):
    """A type of constants, in their order; without a list they come from the data."""

    constants: Sequence[str] | None = None
    repeated: tuple[str, ...] = field(default=(), compare=False, repr=False, kw_only=True)
    """Those that the text lists more than once."""


@dataclass(frozen=True, slots=True)
class PredicateDeclaration(Declaration):
    """The types of a predicate's arguments, and the domain of its atoms."""

    arguments: tuple[str, ...]
    """Per argument: the name of its type."""
    domain: Domain
    """`boolean`, `real` or an interval. Boolean as well where an argument is unique."""
    unique: int | None = None
    """The argument marked `!`: exactly one of its constants holds for each choice of the others,
    so that there is one categorical variable per choice of the others."""

    def types_of(self, atom: Atom) -> tuple[str, ...]:
        """The types of the arguments that an atom has."""
        if not self.is_whole(atom):
            return self.arguments
        return self.arguments[: self.unique] + self.arguments[(self.unique or 0) + 1 :]

    def is_whole(self, atom: Atom) -> bool:
        """True for an atom without the unique argument: a variable, not one of its states."""
        return self.unique is not None and len(atom.arguments) == len(self.arguments) - 1


@dataclass(frozen=True, slots=True)
class ParameterDeclaration(Declaration):
    """`const Name = value`: arithmetic on numbers and constants declared before."""

    value: Expr


@dataclass(frozen=True, slots=True)
class TableDeclaration(Declaration):
    """`P: table`: a table of probabilities, which the data give."""


@dataclass(frozen=True, slots=True)
class Rule(Node):
    """A formula that holds for all values of its free variables, with a weight or hard.

    Its factors are weight * formula, with 1 for true and 0 for false.
    """

    formula: Expr
    weight: Expr | WeightTable | None = None
    """Arithmetic on numbers and constants. None: the formula is hard, or a number by itself."""
    hard: bool = False
    where: tuple[Expr, ...] = ()
    """All of them hold: comparisons of logical terms, and literals of closed-world predicates."""
    per_constant: tuple[str, ...] = ()
    """The variables marked `+`, in order of appearance: each combination of their constants has a
    weight of its own."""

    @property
    def expressions(self) -> tuple[Expr, ...]:
        """The formula and the conditions."""
        return (self.formula, *self.where)

    @property
    def weights(self) -> list[Expr]:
        """All the weights written for the rule; those of a table with its default last."""
        if isinstance(self.weight, WeightTable):
            given = [weight for _, weight in self.weight.entries]
            return given if self.weight.default is None else [*given, self.weight.default]
        return [] if self.weight is None else [self.weight]


@dataclass(frozen=True)
class Model:
    """Types, predicates, constants and rules, each in order of appearance."""

    types: tuple[TypeDeclaration, ...] = ()
    predicates: tuple[PredicateDeclaration, ...] = ()
    parameters: tuple[ParameterDeclaration, ...] = ()
    rules: tuple[Rule, ...] = ()
    tables: tuple[TableDeclaration, ...] = ()

    @cached_property
    def table_names(self) -> frozenset[str]:
        return frozenset(declared.name for declared in self.tables)

    @cached_property
    def type_by_name(self) -> dict[str, TypeDeclaration]:
        """All types, including those that only occur as arguments of predicates."""
        mentioned = [name for p in self.predicates for name in p.arguments]
        implied = {name: TypeDeclaration(name) for name in mentioned}
        return implied | {declared.name: declared for declared in self.types}

    @cached_property
    def predicate_by_name(self) -> dict[str, PredicateDeclaration]:
        return {declared.name: declared for declared in self.predicates}

    @cached_property
    def real_predicates(self) -> frozenset[str]:
        """The names of the predicates whose atoms are numbers."""
        return frozenset(d.name for d in self.predicates if not d.domain.is_discrete)

    @cached_property
    def propositions(self) -> frozenset[str]:
        """The names of the predicates without arguments."""
        return frozenset(d.name for d in self.predicates if not d.arguments)

    @cached_property
    def words(self) -> frozenset[str]:
        """The names that are expressions by themselves: constants and propositions."""
        return self.propositions.union(self.parameter_by_name)

    @cached_property
    def parameter_by_name(self) -> dict[str, ParameterDeclaration]:
        return {declared.name: declared for declared in self.parameters}

    @cached_property
    def parameter_values(self) -> Mapping[str, float | Problem]:
        """The value of each constant, or the error about it."""
        from hylift.language.types import parameter_values

        return parameter_values(self)

    def __str__(self) -> str:
        from hylift.language.text.formatter import show_model

        return show_model(self)
