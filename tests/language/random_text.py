"""Random models, and texts that are almost models."""

from __future__ import annotations

import random
import re

from hylift.graph.domains import Domain, boolean, interval, real
from hylift.language.statements import (
    Model,
    ParameterDeclaration,
    PredicateDeclaration,
    Rule,
    TypeDeclaration,
)
from hylift.language.syntax import (
    AGGREGATES,
    Atom,
    Call,
    Comparison,
    Constant,
    Expr,
    Gaussian,
    Normal,
    Number,
    Parameter,
    Power,
    Quantified,
    Term,
    Truth,
    Unary,
    Variable,
    WeightTable,
    binary,
)
from hylift.language.walk import atoms

VARIABLES = ["x", "y", "t1", "v", "max", "_z", "élan"]
SHARED = "rate"  # a variable and a constant at once
CONSTANTS = ["Door", "V", "12", "-3", "0.5", "t0", "New York", 'a "b" \\', "two\nlines", "true", ""]
CONSTANTS += ["W", "Rain", "Place", "Été", "\r", "EXIST", "exist", "1e5", "ǆ", "\x00", "\u2028"]
TYPES = ["paper", "topic", "v", "Place", "log", "real"]
PREDICATES = {"In": 2, "x": 1, "v": 1, "Topic": 1, "Rain": 0, "gdp": 0, "Near": 3}
PARAMETERS = ["W", "K", SHARED, "inf"]
NUMBERS = [0.0, 1.0, 2.0, 0.1, 2.5, -3.0, -0.25, 1e22, 1e-7, 1 / 3, 123456789.0]
DOMAINS: list[Domain] = [boolean, boolean, real, interval(0, 10), interval(-1.5, float("inf"))]


class RandomModels:
    """Models of every construct there is, each written by nobody."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def _chance(self, probability: float) -> bool:
        return self._random.random() < probability

    def model(self) -> Model:
        pick = self._random
        types = tuple(self._type(name) for name in pick.sample(TYPES, pick.randrange(3)))
        names = pick.sample(list(PREDICATES), pick.randrange(1, 5))
        predicates = [self._predicate(name) for name in names]
        if self._chance(0.1):
            predicates.append(self._predicate(names[0]))
        parameters = tuple(
            ParameterDeclaration(name, self._constant_expression(2))
            for name in pick.sample(PARAMETERS, pick.randrange(4))
        )
        known = [parameter.name for parameter in parameters]
        rules = tuple(self._rule(known) for _ in range(pick.randrange(3)))
        return Model(types, tuple(predicates), parameters, rules)

    def _type(self, name: str) -> TypeDeclaration:
        pick = self._random
        if name not in VARIABLES and self._chance(0.3):
            return TypeDeclaration(name)
        constants = pick.sample(CONSTANTS, pick.randrange(4))
        if self._chance(0.5):
            start, prefix = pick.randrange(-3, 12), pick.choice(["t", "", "no. ", "x_0"])
            first = abs(start) if prefix else start
            width = pick.choice([0, 0, 3]) if prefix else 0
            numbers = range(first, first + pick.randrange(2, 15))
            constants += [f"{prefix}{number:0{width}d}" for number in numbers]
        return TypeDeclaration(name, tuple(dict.fromkeys(constants)))

    def _predicate(self, name: str) -> PredicateDeclaration:
        arguments = tuple(self._random.choices(TYPES, k=PREDICATES[name]))
        if arguments and self._chance(0.2):
            unique = self._random.randrange(len(arguments))
            return PredicateDeclaration(name, arguments, boolean, unique)
        return PredicateDeclaration(name, arguments, self._random.choice(DOMAINS))

    def _rule(self, parameters: list[str]) -> Rule:
        pick = self._random
        formula = self._expression(pick.randrange(5), parameters)
        where = tuple(self._condition(parameters) for _ in range(pick.choice([0, 0, 1, 2])))
        weight: Expr | WeightTable | None = None
        per_constant: tuple[str, ...] = ()
        if self._chance(0.7):
            weight = self._constant_expression(pick.randrange(3))
        variables = [
            term.name
            for atom in atoms(formula)
            for term in atom.arguments
            if isinstance(term, Variable)
        ]
        if variables and self._chance(0.3):
            names = dict.fromkeys(variables)
            per_constant = tuple(name for name in names if self._chance(0.7))
            weight = self._table(max(1, len(per_constant)))
        return Rule(formula, weight, self._chance(0.2), where, per_constant)

    def _table(self, width: int) -> WeightTable:
        pick = self._random
        entries = tuple(
            (tuple(pick.choices(CONSTANTS, k=width)), self._constant_expression(1))
            for _ in range(pick.randrange(1, 3))
        )
        default = self._constant_expression(1) if self._chance(0.5) else None
        return WeightTable(entries, default)

    def _condition(self, parameters: list[str]) -> Expr:
        if self._chance(0.2):
            return self._expression(2, parameters)
        condition = self._atom() if self._chance(0.5) else self._logical_comparison()
        return Unary("!", condition) if self._chance(0.2) else condition

    def _variable(self) -> Variable:
        shift = self._random.choice([0, 0, 0, 1, -2])
        return Variable(self._random.choice(VARIABLES), shift)

    def _term(self) -> Term:
        if self._chance(0.3):
            return Constant(self._random.choice(CONSTANTS))
        return Variable(SHARED) if self._chance(0.1) else self._variable()

    def _atom(self) -> Atom:
        name = self._random.choice(list(PREDICATES))
        return Atom(name, tuple(self._term() for _ in range(PREDICATES[name])))

    def _logical_comparison(self) -> Comparison:
        sides = [
            self._variable() if self._chance(0.6) else Constant(self._random.choice(CONSTANTS))
            for _ in range(2)
        ]
        op = self._random.choice(["=", "!=", "<", "<=", ">", ">="])
        return Comparison(op, *sides)  # type: ignore[arg-type]

    def _constant_expression(self, depth: int) -> Expr:
        """Arithmetic on constants."""
        pick = self._random
        if depth == 0 or self._chance(0.3):
            is_number = self._chance(0.7)
            return Number(pick.choice(NUMBERS)) if is_number else Parameter(pick.choice(PARAMETERS))
        parts = [self._constant_expression(depth - 1) for _ in range(2)]
        match pick.randrange(4):
            case 0:
                return Unary("-", parts[0])
            case 1:
                return Power(parts[0], pick.choice([2.0, 0.5, -1.0]))
            case 2:
                return Call(pick.choice(["min", "max", "exp"]), tuple(parts))
        return binary(pick.choice(["+", "-", "*", "/"]), parts[0], parts[1])

    def _expression(self, depth: int, parameters: list[str]) -> Expr:
        pick = self._random
        if depth == 0:
            return self._leaf(parameters)
        parts = [self._expression(depth - 1, parameters) for _ in range(2)]
        match pick.choice("bbbbbbcccluuqqpfgn"):
            case "b":
                op = pick.choice(["+", "-", "*", "/", "^", "v", "=>", "<=>"])
                return binary(op, parts[0], parts[1])
            case "c":
                slope = self._constant_expression(1) if self._chance(0.2) else None
                op = pick.choice(["=", "!=", "<", "<=", ">", ">="])
                return Comparison(op, parts[0], parts[1], slope)
            case "l":
                return self._logical_comparison()
            case "u":
                return Unary(pick.choice(["-", "!"]), parts[0])
            case "q":
                names = pick.sample(VARIABLES, pick.choice([1, 1, 2]))
                return Quantified(
                    pick.choice(["EXIST", "FORALL", *AGGREGATES]), tuple(names), parts[0]
                )
            case "p":
                return Power(parts[0], pick.choice([2.0, 0.5, -1.0, 3.0]))
            case "f":
                arguments = tuple(parts[: pick.randrange(3)])
                return Call(pick.choice(["abs", "exp", "log", "min", "max"]), arguments)
            case "g":
                return self._gaussian(parts)
        return Normal(parts[0], parts[1], self._leaf(parameters))

    def _gaussian(self, values: list[Expr]) -> Gaussian:
        size = self._random.randrange(1, 3)
        rows = [[self._constant_expression(1) for _ in range(size)] for _ in range(size)]
        mean = tuple(self._constant_expression(1) for _ in range(size))
        cov = tuple(map(tuple, rows))
        return Gaussian(tuple(values[:size]), mean if self._chance(0.5) else (), cov)

    def _leaf(self, parameters: list[str]) -> Expr:
        pick = self._random
        match pick.randrange(6):
            case 0:
                return Number(pick.choice(NUMBERS))
            case 1 if parameters:
                return Parameter(pick.choice(parameters))
            case 2:
                return Truth(self._chance(0.5))
        return self._atom()


_PIECE = re.compile(r'\s+|\w+|"[^"\n]*"|<=>|=>|!=|<=|>=|\.\.\.|.', re.DOTALL)

_SPLINTERS = ["(", ")", "[", "]", "{", "}", ",", ";", ":", ".", "...", "=", "!=", "<", "<=>", "=>"]
_SPLINTERS += [
    "+",
    "-",
    "*",
    "/",
    "^",
    "^2",
    "^ ",
    "!",
    "|",
    '"',
    "\\",
    "//",
    "/*",
    "*/",
    "\n",
    " ",
]
_SPLINTERS += ["v", " v ", "x", "W", "In", "In(", "1", "0.5", "1e999", "true", "where", "const "]
_SPLINTERS += [
    "EXIST x ",
    "FORALL ",
    "exist ",
    "Forall y ",
    "real",
    ": real",
    "#include ",
    "max(",
    "normal(",
    "gaussian(",
]
_SPLINTERS += [
    "\x00",
    "\ud800",
    "\u2028",
    "\r",
    "\t",
    "é",
    "∧",
    "\ufeff",
    "slope=",
    "mean=[",
    "inf",
]


class Vandal:
    """Texts in which something has been lost, doubled, swapped or put where it does not belong."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def damaged(self, text: str) -> str:
        """The text with a few mutations of its words, or of its letters."""
        pieces = _PIECE.findall(text) if self._random.random() < 0.7 else list(text)
        for _ in range(self._random.choice([1, 1, 1, 2, 4])):
            self._mutate(pieces)
        return "".join(pieces)

    def _mutate(self, pieces: list[str]) -> None:
        pick = self._random
        if not pieces:
            return
        here, there = pick.randrange(len(pieces)), pick.randrange(len(pieces))
        match pick.randrange(5):
            case 0:
                del pieces[here : here + pick.choice([1, 1, 3])]
            case 1:
                pieces.insert(there, pieces[here])
            case 2:
                pieces[here], pieces[there] = pieces[there], pieces[here]
            case 3:
                pieces.insert(here, pick.choice(_SPLINTERS))
            case 4:
                pieces[here] = pick.choice(_SPLINTERS)

    def noise(self) -> str:
        """A text of no meaning."""
        pick = self._random
        size = pick.randrange(60)
        match pick.randrange(3):
            case 0:
                return bytes(pick.randrange(256) for _ in range(size)).decode("latin-1")
            case 1:
                return "".join(chr(pick.randrange(0x110000)) for _ in range(size))
        return "".join(pick.choice(_SPLINTERS) for _ in range(size))
