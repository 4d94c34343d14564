"""Rules and expressions -> text, with as few brackets as possible."""

from __future__ import annotations

import math
import re
from collections.abc import Collection
from dataclasses import dataclass, field

from hylift.errors import UnsupportedError
from hylift.language.syntax import (
    Apply,
    Atom,
    Binary,
    Call,
    Comparison,
    Constant,
    Expr,
    Gaussian,
    Model,
    Normal,
    Number,
    Parameter,
    Power,
    Quantified,
    Rule,
    Term,
    Truth,
    Unary,
    Variable,
    WeightTable,
)
from hylift.language.text.notation import (
    CALLED,
    is_capital,
    is_name,
    is_numeral,
    listed,
    number_text,
    quote,
)
from hylift.language.walk import LONGEST_SPINE, balanced_operands, nodes, spine

# How tightly operators bind, loosest first.
_LOOSEST, _IFF, _IMPLIES, _OR, _AND, _COMPARISON = range(6)
_SUM, _PRODUCT, _UNARY, _POWER, _PRIMARY = range(6, 11)

_LEVELS = {"<=>": _IFF, "=>": _IMPLIES, "v": _OR, "^": _AND}
_LEVELS |= {"+": _SUM, "-": _SUM, "*": _PRODUCT, "/": _PRODUCT}

_STARTS_WITH_OPERATOR = re.compile(r"-|v\b")
_STARTS_WITH_V = re.compile(r"v\b")


@dataclass(frozen=True, slots=True)
class Known:
    """What is declared in the text before the rules."""

    parameters: frozenset[str] = frozenset()
    predicates: frozenset[str] = frozenset()
    atoms: frozenset[str] = frozenset()
    """Predicates without arguments."""
    types: frozenset[str] = frozenset()

    @classmethod
    def of(cls, model: Model) -> Known:
        return cls(
            frozenset(declared.name for declared in model.parameters),
            frozenset(declared.name for declared in model.predicates),
            frozenset(declared.name for declared in model.predicates if not declared.arguments),
            frozenset(declared.name for declared in model.types),
        )


def checked(name: str, role: str) -> str:
    """The name, if it can be written."""
    if not is_name(name) or (role != "type" and name in CALLED):
        raise UnsupportedError(f"the {role} {name!r} cannot be written: its name is not a word")
    return name


def variables_of(expressions: Collection[Expr]) -> frozenset[str]:
    """The variables that stand in atoms, or that quantifiers bind."""
    found: set[str] = set()
    for node in (node for expr in expressions for node in nodes(expr)):
        if isinstance(node, Atom):
            found |= {term.name for term in node.arguments if isinstance(term, Variable)}
        elif isinstance(node, Quantified):
            found |= set(node.variables)
    return frozenset(found)


@dataclass(slots=True)
class Writer:
    """The writing of one rule, from left to right."""

    known: Known
    variables: frozenset[str]
    shows_functions: bool = False
    """Whether Python's functions are shown by their names, which cannot be read back."""
    unmarked: list[str] = field(default_factory=list)
    """Variables whose `+` is still to be written, the next one last."""

    @classmethod
    def for_rule(cls, rule: Rule, known: Known, shows_functions: bool = False) -> Writer:
        variables = variables_of([rule.formula, *rule.where])
        unmarked = list(reversed(rule.per_constant))
        return cls(known, variables, shows_functions, unmarked)

    def rule(self, rule: Rule) -> str:
        formula = self.text(rule.formula)
        if self.unmarked:
            name = self.unmarked[-1]
            raise UnsupportedError(f"'+{name}' cannot be written: no atom has it in this order")
        is_alone = rule.weight is None and not rule.where and not rule.hard
        if (is_alone and self._would_declare(rule.formula)) or (
            isinstance(rule.weight, Expr) and _STARTS_WITH_OPERATOR.match(formula)
        ):
            formula = f"({formula})"
        text = self._weight(rule.weight, formula) + formula
        if rule.where:
            text += f" where {', '.join(map(self._condition, rule.where))}"
        return f"{text}." if rule.hard else text

    def _would_declare(self, formula: Expr) -> bool:
        """Whether a formula that stands alone would be read as a declaration, or as a weight."""
        if not isinstance(formula, Atom):
            return isinstance(formula, Parameter | Number)
        return not formula.arguments or formula.predicate not in self.known.predicates

    def _condition(self, expr: Expr) -> str:
        # What `^` joins would be read as several conditions.
        is_conjunction = isinstance(expr, Binary) and expr.op == "^"
        return self.text(expr, _PRIMARY if is_conjunction else _LOOSEST)

    def _weight(self, weight: Expr | WeightTable | None, formula: str) -> str:
        """The weight and the space behind it."""
        if weight is None:
            return ""
        if isinstance(weight, WeightTable):
            return f"{self._table(weight)} "
        text = self.text(weight, _UNARY, is_last=False)
        # A word before brackets is a predicate, unless it is declared.
        word = text.lstrip("-!")
        if formula.startswith("(") and is_name(word) and word not in self.known.parameters:
            return f"({text}) "
        return f"{text} "

    def _table(self, table: WeightTable) -> str:
        entries = [f"{_key(names)}: {self.text(value)}" for names, value in table.entries]
        if table.default is not None:
            entries.append(f"*: {self.text(table.default)}")
        return f"{{{', '.join(entries)}}}"

    def text(self, expr: Expr, level: int = _LOOSEST, is_last: bool = True) -> str:
        """The expression, in brackets where it binds more loosely than its place asks for.

        `is_last` says whether nothing follows that a quantifier would draw in.
        """
        if isinstance(expr, Quantified):
            return self._quantified(expr) if is_last else f"({self._quantified(expr)})"
        own = _level(expr)
        if own < level:
            return f"({self._open_text(expr, own, True)})"
        return self._open_text(expr, own, is_last)

    def _open_text(self, expr: Expr, own: int, is_last: bool) -> str:
        match expr:
            case Truth(value=truth):
                return "true" if truth else "false"
            case Number(value=value) | Power(exponent=value) if not math.isfinite(value):
                raise UnsupportedError(f"the number {value} cannot be written")
            case Number(value=value):
                return number_text(value)
            case Parameter(name=name):
                return checked(name, "constant")
            case Variable() | Constant():
                return self._term(expr, in_atom=False)
            case Atom():
                return self._atom(expr)
            case Unary(op="-", operand=Number(value=value)) if not _is_negative(value):
                return f"-({number_text(value)})"  # without brackets it is a number
            case Unary(op=op, operand=operand):
                return f"{op}{self.text(operand, _UNARY, is_last)}"
            case Binary():
                return self._binary(expr, own, is_last)
            case Power(base=base, exponent=exponent):
                return f"{self.text(base, _PRIMARY, is_last=False)}^{number_text(exponent)}"
            case Comparison():
                return self._comparison(expr, is_last)
            case Call(function=function, arguments=arguments):
                return f"{function}({self._list(arguments)})"
            case Gaussian():
                return self._gaussian(expr)
            case Normal(value=subject, mean=mean, var=var):
                return f"normal({self.text(subject)} | {self.text(mean)}, {self.text(var)})"
            case Apply():
                return self._function(expr)
        raise TypeError(f"not an expression: {expr!r}")

    def _function(self, expr: Apply) -> str:
        name = getattr(expr.function, "__name__", repr(expr.function))
        if not self.shows_functions:
            raise UnsupportedError(f"the function {name!r} of a rule cannot be written as text")
        return f"<function {name}>({self._list(expr.arguments)})"

    def _list(self, expressions: tuple[Expr, ...]) -> str:
        return ", ".join(map(self.text, expressions))

    def _quantified(self, expr: Quantified) -> str:
        names = ", ".join(map(_variable, expr.variables))
        body = self.text(expr.body)
        if _STARTS_WITH_V.match(body):
            body = f"({body})"
        return f"{expr.quantifier} {names} {body}"

    def _binary(self, expr: Binary, own: int, is_last: bool) -> str:
        if (operands := balanced_operands(expr)) is not None:
            *others, last = operands
            texts = [self.text(operand, own + 1, is_last=False) for operand in others]
            return f" {expr.op} ".join([*texts, self.text(last, own + 1, is_last)])
        is_right = expr.op == "=>"
        # Without brackets, a chain that is too long to lean to the left would not.
        is_cut = len(spine(expr)) > LONGEST_SPINE
        left = self.text(expr.left, own + (is_right or is_cut), is_last=False)
        right = self.text(expr.right, own + (not is_right), is_last)
        return f"{left} {expr.op} {right}"

    def _comparison(self, expr: Comparison, is_last: bool) -> str:
        is_last = is_last or expr.slope is not None
        left = self._side(expr.left)
        right = self._side(expr.right, is_last)
        if expr.is_logical:
            if is_numeral(left) and is_numeral(right):
                left = quote(left)
        elif self._looks_logical(expr.left, expr.right):
            left = f"({left})"
        text = f"{left} {expr.op} {right}"
        return text if expr.slope is None else f"({text}; slope={self.text(expr.slope)})"

    def _side(self, expr: Expr, is_last: bool = False) -> str:
        return self.text(expr, _SUM, is_last)

    def _looks_logical(self, left: Expr, right: Expr) -> bool:
        """Whether a comparison of numbers could be taken for one of logical terms."""
        are_numbers = isinstance(left, Number) and isinstance(right, Number)
        return not are_numbers and self._may_be_term(left) and self._may_be_term(right)

    def _may_be_term(self, expr: Expr) -> bool:
        """Whether a side of a comparison looks like a logical term."""
        match expr:
            case Variable() | Constant() | Number():
                return True
            case Parameter(name=name) | Atom(predicate=name, arguments=()):
                is_declared = name in self.known.parameters | self.known.atoms
                return name in self.variables or not is_declared
            case Binary(op="+" | "-", left=left, right=Number(value=value)):
                is_word = isinstance(left, Variable | Parameter | Atom)
                return is_word and value >= 0 and value.is_integer() and self._may_be_term(left)
        return False

    def _atom(self, atom: Atom) -> str:
        name = checked(atom.predicate, "predicate")
        if atom.arguments:
            terms = (self._term(term, in_atom=True) for term in atom.arguments)
            return f"{name}({', '.join(terms)})"
        is_word = name in self.known.atoms or name not in self.variables
        return name if is_word and name not in self.known.parameters else f"{name}()"

    def _term(self, term: Term, in_atom: bool) -> str:
        if isinstance(term, Constant):
            return self._constant(term.name, in_atom)
        text = _variable(term.name)
        if in_atom and self.unmarked and self.unmarked[-1] == term.name:
            self.unmarked.pop()
            text = f"+{text}"
        sign = " - " if term.shift < 0 else " + "
        if in_atom:
            sign = sign.strip()
        return f"{text}{sign}{abs(term.shift)}" if term.shift else text

    def _constant(self, name: str, in_atom: bool) -> str:
        known = self.known
        is_taken = not in_atom and name in known.parameters | known.atoms | known.types
        is_bare = is_name(name) and is_capital(name) and not is_taken
        return name if is_bare or is_numeral(name) else quote(name)

    def _gaussian(self, expr: Gaussian) -> str:
        values = self._list(expr.values)
        mean = f"mean=[{self._list(expr.mean)}], " if expr.mean else ""
        rows = ", ".join(f"[{self._list(row)}]" for row in expr.cov)
        return f"gaussian({values}; {mean}cov=[{rows}])"


def _level(expr: Expr) -> int:
    """How tightly an expression holds together."""
    match expr:
        case Binary(op=op):
            return _LEVELS[op]
        case Comparison(slope=None):
            return _COMPARISON
        case Unary():
            return _UNARY
        case Number(value=value) if _is_negative(value):
            return _UNARY
        case Power():
            return _POWER
        case Variable(shift=shift) if shift:
            return _SUM
    return _PRIMARY


def _is_negative(value: float) -> bool:
    return math.copysign(1.0, value) < 0


def _variable(name: str) -> str:
    if not is_name(name) or is_capital(name):
        raise UnsupportedError(
            f"the variable {name!r} cannot be written: variables begin with a small letter"
        )
    return name


def _key(names: tuple[str, ...]) -> str:
    text = ", ".join(map(listed, names))
    return text if len(names) == 1 else f"({text})"
