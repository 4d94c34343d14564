"""Models written in Python."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from hylift.errors import ModelError, did_you_mean
from hylift.graph.domains import Domain, boolean
from hylift.language.checks.check import check
from hylift.language.operators import (
    Expression,
    LogicalVariable,
    Operand,
    Predicate,
    ProbabilityTable,
    Value,
    constant_name,
    parts,
    table_key,
)
from hylift.language.report import ModelWarning
from hylift.language.statements import (
    Model,
    ParameterDeclaration,
    PredicateDeclaration,
    Rule,
    TableDeclaration,
    TypeDeclaration,
)
from hylift.language.syntax import Apply, Atom, Expr, Parameter, WeightTable
from hylift.language.text.notation import KEYWORDS, is_capital, is_name

Key = str | int | tuple[str | int, ...]
Weight = Value | Mapping[Key, Value] | None
Conditions = Operand | Iterable[Operand]


@dataclass(frozen=True, slots=True)
class Type:
    """A type of constants, by its name."""

    name: str


class ModelBuilder:
    """Builds a model; `build` checks it.

    m = ModelBuilder()
    paper, topic = m.type("paper"), m.type("topic", ["t0", "t1"])
    In = m.predicate("In", paper, topic)
    Pop = m.predicate("Pop", paper, domain=interval(0, 10))
    p, t = m.variables("p t")
    m.rule(0.5, In(p, t) * (Pop(p) == 1.0))
    m.rule({"t0": 0.1, "*": 0.4}, In(p, +t))
    model = m.build()
    """

    def __init__(self) -> None:
        self._types: list[TypeDeclaration] = []
        self._predicates: list[PredicateDeclaration] = []
        self._parameters: list[ParameterDeclaration] = []
        self._rules: list[Rule] = []
        self._tables: list[TableDeclaration] = []

    def type(self, name: str, constants: Iterable[str | int] | None = None) -> Type:
        """A type with its constants in order; without them, they come from the data."""
        named = None
        if constants is not None:
            if isinstance(constants, str):
                raise ModelError(
                    f"the constants of type '{name}' must be a list, not the string {constants!r}"
                )
            named = tuple(constant_name(c, f"type '{name}' has constants") for c in constants)
        self._types.append(TypeDeclaration(_valid(name, "type"), named))
        return Type(name)

    def predicate(
        self,
        name: str,
        *arguments: Type | str,
        domain: Domain = boolean,
        unique: Type | str | int | None = None,
    ) -> Predicate:
        """A predicate over types, with the values its atoms take.

        `unique` is an argument, by type or position: exactly one of its constants holds for each
        choice of the others.
        """
        types = tuple(_type_name(argument, name) for argument in arguments)
        if not isinstance(domain, Domain):
            raise ModelError(
                f"the domain of '{name}' must be boolean, real or an interval, not {domain!r}"
            )
        position = None if unique is None else _position(unique, types, name)
        declared = PredicateDeclaration(_valid(name, "predicate"), types, domain, position)
        self._predicates.append(declared)
        return Predicate(declared)

    def variable(self, name: str) -> LogicalVariable:
        """A logical variable."""
        if is_capital(_valid(name, "variable")):
            raise ModelError(
                f"'{name}' is capitalized like a constant: variables begin with a small letter"
            )
        return LogicalVariable(name)

    def variables(self, names: str) -> tuple[LogicalVariable, ...]:
        """Logical variables, from their names with spaces between."""
        return tuple(self.variable(name) for name in names.replace(",", " ").split())

    def const(self, name: str, value: Value) -> Expression:
        """A named number."""
        self._parameters.append(ParameterDeclaration(_valid(name, "constant"), parts(value)[0]))
        return Expression(Parameter(name))

    def table(self, name: str) -> ProbabilityTable:
        """A table of probabilities whose rows are evidence, for `hl.density("categorical", …)`."""
        self._tables.append(TableDeclaration(_valid(name, "table")))
        return ProbabilityTable(name)

    def rule(self, weight: Weight, formula: Value, *, where: Conditions = ()) -> None:
        """A formula for all values of its variables, with a weight.

        A number needs no weight (None). A dictionary has one weight per constant of the variable
        marked `+`, or per tuple of constants; "*" is the weight of all others.
        """
        self._add(formula, _weight(weight), where)

    def hard(self, formula: Value, *, where: Conditions = ()) -> None:
        """A formula that must hold for all values of its variables."""
        self._add(formula, None, where, hard=True)

    def _add(
        self,
        formula: Value,
        weight: Expr | WeightTable | None,
        where: Conditions,
        hard: bool = False,
    ) -> None:
        expr, marked = parts(formula)
        self._rules.append(Rule(expr, weight, hard, _conditions(where), marked))

    def potential(
        self,
        function: Callable[..., Any],
        *atoms: Operand,
        weight: Weight = 1.0,
        where: Conditions = (),
    ) -> None:
        """A function of the values of atoms: a log-density up to a constant, times the weight.

        The function takes one array per atom, in that order, and returns an array of their shape.
        """
        if not callable(function):
            raise ModelError(
                f"a potential must be a function of the atoms' values, not {function!r}"
            )
        pieces = [parts(atom) for atom in atoms]
        for atom, (expr, _) in zip(atoms, pieces, strict=True):
            if not isinstance(expr, Atom):
                raise ModelError(f"the arguments of a potential must be atoms, not {atom!r}")
        arguments = tuple(expr for expr, _ in pieces if isinstance(expr, Atom))
        marked = tuple(dict.fromkeys(name for _, names in pieces for name in names))
        formula = Expression(Apply(function, arguments), marked)
        self._add(formula, _weight(weight), where)

    def build(self) -> Model:
        """The model, checked: raises all errors together, and warns."""
        model = Model(
            tuple(self._types),
            tuple(self._predicates),
            tuple(self._parameters),
            tuple(self._rules),
            tuple(self._tables),
        )
        for problem in check(model):
            warnings.warn(str(problem), ModelWarning, stacklevel=2)
        return model


def _valid(name: object, kind: str) -> str:
    if isinstance(name, str) and is_name(name):
        return name
    if name in KEYWORDS:
        raise ModelError(f"'{name}' is a keyword: give the {kind} another name")
    raise ModelError(
        f"the name of a {kind} must be a word of letters, digits and underscores, not {name!r}"
    )


def _type_name(argument: object, predicate: str) -> str:
    if isinstance(argument, Type):
        return argument.name
    if isinstance(argument, str):
        return _valid(argument, "type")
    raise ModelError(f"the arguments of '{predicate}' must be types, not {argument!r}")


def _position(unique: Type | str | int, types: tuple[str, ...], predicate: str) -> int:
    if isinstance(unique, int):
        if 0 <= unique < len(types):
            return unique
        allowed = f"arguments 0 to {len(types) - 1}" if types else "no arguments"
        raise ModelError(f"unique={unique}: '{predicate}' has {allowed}")
    name = _type_name(unique, predicate)
    if name not in types:
        raise ModelError(
            f"unique='{name}': '{predicate}' has no argument of that type; "
            f"its arguments are ({', '.join(types)}).{did_you_mean(name, types)}"
        )
    if types.count(name) > 1:
        raise ModelError(
            f"unique='{name}': '{predicate}' has more than one argument of that type: "
            "give its position"
        )
    return types.index(name)


def _weight(weight: Weight) -> Expr | WeightTable | None:
    if weight is None:
        return None
    if not isinstance(weight, Mapping):
        return parts(weight)[0]
    default = weight.get("*")
    entries = tuple(
        (table_key(key), parts(value)[0]) for key, value in weight.items() if key != "*"
    )
    return WeightTable(entries, None if default is None else parts(default)[0])


def _conditions(where: Conditions) -> tuple[Expr, ...]:
    pieces = [parts(condition) for condition in ([where] if isinstance(where, Operand) else where)]
    for _, marked in pieces:
        if marked:
            raise ModelError(f"'+{marked[0]}' is only allowed in the formula, not in where")
    return tuple(expr for expr, _ in pieces)
