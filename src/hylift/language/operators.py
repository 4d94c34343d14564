"""Formulas written in Python: operators and functions that build expressions.

`& | ~ >>` and `.iff()` are and, or, not, implies and if-and-only-if. Python binds them tighter than
comparisons, and `>>` tighter than `&`: put brackets around each part, as in
`(In(p, t) & In(q, t)) >> (Near(p, q))` and `In(p, t) * (Pop(p) == 1.0)`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from numbers import Integral, Real
from typing import Any, NoReturn, final

from hylift.errors import ModelError, check_word
from hylift.language.statements import PredicateDeclaration
from hylift.language.syntax import (
    CATEGORICAL,
    DENSITIES,
    Atom,
    BinaryOp,
    Call,
    Categorical,
    CompareOp,
    Comparison,
    Constant,
    Density,
    Expr,
    Gaussian,
    Normal,
    Number,
    Power,
    Quantified,
    Quantifier,
    Term,
    Truth,
    Unary,
    Variable,
    WeightTable,
    binary,
)
from hylift.language.text.formatter import shown
from hylift.language.text.notation import MAX_SHIFT
from hylift.language.types import arity_fault

_Operator = Callable[[Any, Any], "Expression"]


def _binary(op: BinaryOp, *, reflected: bool = False) -> _Operator:
    """The method of an operator; a reflected one has its left operand as the argument."""
    build = partial(binary, op)
    if reflected:
        return lambda self, other: _built(build, other, self)
    return lambda self, other: _built(build, self, other)


def _comparison(op: CompareOp) -> _Operator:
    return lambda self, other: self._compare(op, other)


class Operand(ABC):
    """Anything that Python's operators combine to formulas: an expression or a proposition."""

    __slots__ = ()
    __hash__ = None  # type: ignore[assignment]  # `==` makes a formula
    __array_ufunc__ = None  # NumPy's numbers leave their operators to us

    @abstractmethod
    def _parts(self) -> tuple[Expr, tuple[str, ...]]:
        """The expression, and the variables marked `+` in it."""

    def __bool__(self) -> NoReturn:
        raise ModelError(
            f"{self!r} is part of a model, and neither true nor false in Python: "
            "write & | ~ for and, or, not, and 'a < b < c' as two comparisons"
        )

    def __radd__(self, other: Value) -> Expression:
        if isinstance(other, int) and other == 0:  # where Python's `sum` starts
            return Expression(*self._parts())
        return _built(partial(binary, "+"), other, self)

    __add__ = _binary("+")
    __sub__, __rsub__ = _binary("-"), _binary("-", reflected=True)
    __mul__, __rmul__ = _binary("*"), _binary("*", reflected=True)
    __truediv__, __rtruediv__ = _binary("/"), _binary("/", reflected=True)
    __and__, __rand__ = _binary("^"), _binary("^", reflected=True)
    __or__, __ror__ = _binary("v"), _binary("v", reflected=True)
    __rshift__, __rrshift__ = _binary("=>"), _binary("=>", reflected=True)

    __eq__, __ne__ = _comparison("="), _comparison("!=")  # type: ignore[assignment]
    __lt__, __le__ = _comparison("<"), _comparison("<=")
    __gt__, __ge__ = _comparison(">"), _comparison(">=")

    def _compare(self, op: CompareOp, other: object) -> Expression:
        return _built(partial(Comparison, op), self, other)

    def __pow__(self, exponent: float) -> Expression:
        if not _is_number(exponent):
            raise ModelError(f"an exponent must be a number, not {exponent!r}")
        return _built(lambda base: Power(base, float(exponent)), self)

    def __neg__(self) -> Expression:
        return _built(partial(Unary, "-"), self)

    def __invert__(self) -> Expression:
        return _built(partial(Unary, "!"), self)

    def __abs__(self) -> Expression:
        return _called("abs", self)

    def iff(self, other: Value) -> Expression:
        """True where both sides are true, or both false."""
        return _built(partial(binary, "<=>"), self, other)


@final
class Expression(Operand):
    """A truth value or a number of a model."""

    __slots__ = ("expr", "marked")

    def __init__(self, expr: Expr, marked: tuple[str, ...] = ()) -> None:
        self.expr = expr
        self.marked = marked

    def _parts(self) -> tuple[Expr, tuple[str, ...]]:
        return self.expr, self.marked

    def __repr__(self) -> str:
        return f"<{shown(self.expr)}>"

    def with_slope(self, slope: Value) -> Expression:
        """The soft comparison of numbers with another slope than 1."""
        if not isinstance(self.expr, Comparison):
            raise ModelError(f"{self!r} has no slope: only comparisons have")
        return Expression(replace(self.expr, slope=parts(slope)[0]), self.marked)


@final
class Predicate(Operand):
    """A predicate: call it with its arguments for an atom; without any, it is one by itself."""

    __slots__ = ("declared",)

    def __init__(self, declared: PredicateDeclaration) -> None:
        self.declared = declared

    def __call__(self, *arguments: LogicalVariable | str | int) -> Expression:
        terms = tuple(_term(argument, f"'{self.declared.name}'") for argument in arguments)
        is_whole = self.declared.is_whole(Atom(self.declared.name, terms))  # for `categorical`
        if not is_whole and (fault := arity_fault(self.declared, len(arguments))):
            raise ModelError(fault)
        marked = (a.name for a in arguments if isinstance(a, LogicalVariable) and a.per_constant)
        return Expression(Atom(self.declared.name, terms), tuple(dict.fromkeys(marked)))

    def __repr__(self) -> str:
        return f"<predicate {self.declared.name}>"

    def _parts(self) -> tuple[Expr, tuple[str, ...]]:
        return self().expr, ()


@final
@dataclass(frozen=True, eq=False, repr=False, slots=True)
class LogicalVariable:
    """A variable over the constants of a type; `t + 1` is the next one in the order of the type.

    `+t` asks for one weight per constant.
    """

    name: str
    shift: int = 0
    per_constant: bool = False

    __hash__ = None  # type: ignore[assignment]

    def __add__(self, shift: int) -> LogicalVariable:
        return self._shifted(shift, 1)

    def __sub__(self, shift: int) -> LogicalVariable:
        return self._shifted(shift, -1)

    def _shifted(self, shift: int, sign: int) -> LogicalVariable:
        if not _is_integer(shift):
            raise ModelError(f"{self!r} cannot be shifted by {shift!r}: a shift must be an integer")
        total = self.shift + sign * int(shift)
        if abs(total) > MAX_SHIFT:
            raise ModelError(f"{self!r} is shifted too far: the maximum is {MAX_SHIFT:,}")
        return replace(self, shift=total)

    def __pos__(self) -> LogicalVariable:
        return replace(self, per_constant=True)

    __eq__, __ne__ = _comparison("="), _comparison("!=")  # type: ignore[assignment]
    __lt__, __le__ = _comparison("<"), _comparison("<=")
    __gt__, __ge__ = _comparison(">"), _comparison(">=")

    def _compare(self, op: CompareOp, other: object) -> Expression:
        if isinstance(other, Operand):
            raise ModelError(f"{self!r} is a logical variable, and {other!r} is not: {_APART}")
        return Expression(Comparison(op, _term(self, ""), _term(other, f"{self!r} {op}")))

    def __bool__(self) -> NoReturn:
        raise ModelError(f"{self!r} is a logical variable, and neither true nor false in Python")

    def __repr__(self) -> str:
        return f"<{'+' * self.per_constant}{shown(Variable(self.name, self.shift))}>"


@final
@dataclass(frozen=True, slots=True)
class ProbabilityTable:
    """A table of probabilities that the data give, by its name."""

    name: str


Value = Operand | float
"""A formula or part of one, or a number or truth value of Python."""

_APART = "variables are compared with variables and constants, numbers with numbers"


def parts(value: object) -> tuple[Expr, tuple[str, ...]]:
    """The expression of a formula or a number, and the variables marked `+` in it."""
    if isinstance(value, Operand):
        return value._parts()
    if isinstance(value, bool):
        return Truth(value), ()
    if _is_number(value):
        return Number(float(value)), ()  # type: ignore[arg-type]
    if isinstance(value, LogicalVariable):
        raise ModelError(
            f"{value!r} is a logical variable, where a number or a truth value belongs: {_APART}"
        )
    raise ModelError(f"{value!r} is neither a formula nor a number")


def _built(build: Callable[..., Expr], *values: object) -> Expression:
    """The node built from the expressions of some values, with all their marked variables."""
    pieces = [parts(value) for value in values]
    marked = dict.fromkeys(name for _, names in pieces for name in names)
    return Expression(build(*(expr for expr, _ in pieces)), tuple(marked))


def _called(function: str, *arguments: object) -> Expression:
    return _built(lambda *exprs: Call(function, exprs), *arguments)


def _is_number(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def _is_integer(value: object) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)


def _term(value: object, user: str) -> Term:
    if isinstance(value, LogicalVariable):
        return Variable(value.name, value.shift)
    return Constant(constant_name(value, f"{user} takes logical variables and constants"))


def constant_name(value: object, rule: str) -> str:
    """The name of a constant given as text or as an integer; `rule` starts the error message."""
    if isinstance(value, str) or _is_integer(value):
        return str(value)
    raise ModelError(f"{rule} (text or integers), not {value!r}")


# Functions.


def exp(value: Value) -> Expression:
    """The exponential."""
    return _called("exp", value)


def log(value: Value) -> Expression:
    """The natural logarithm."""
    return _called("log", value)


def absolute(value: Value) -> Expression:
    """The absolute value; `abs(value)` is the same."""
    return _called("abs", value)


def minimum(*values: Value) -> Expression:
    """The least of two or more numbers."""
    return _called("min", *values)


def maximum(*values: Value) -> Expression:
    """The greatest of two or more numbers."""
    return _called("max", *values)


def normal(value: Value, mean: Value, var: Value) -> Expression:
    """The normalised log-density log N(value; mean, var)."""
    return _built(Normal, value, mean, var)


def density(name: str, value: Value, *parameters: Any) -> Expression:
    """The normalised log-density of a value by the name of its distribution, such as "student"
    with its parameters m, v and nu; the language page lists them.

    "categorical" takes `m.table(name)`, or a dictionary whose keys are states of the conditions and
    then of the value; conditions follow.
    """
    check_word("distribution", name, (*DENSITIES, CATEGORICAL))
    if name == CATEGORICAL:
        return _categorical(value, *parameters)
    return _built(lambda own, *others: Density(name, own, others), value, *parameters)


def _categorical(value: Value, table: object, *conditions: Value | LogicalVariable) -> Expression:
    given: str | WeightTable
    if isinstance(table, ProbabilityTable):
        given = table.name
    elif isinstance(table, Mapping):
        given = WeightTable(tuple((table_key(k), parts(v)[0]) for k, v in table.items()))
    else:
        raise ModelError(
            f"the table of categorical is m.table(name), or a dictionary, not {table!r}"
        )
    terms = [_term(c, "") if isinstance(c, LogicalVariable) else parts(c)[0] for c in conditions]
    return _built(lambda own: Categorical(own, given, tuple(terms)), value)


def table_key(key: object) -> tuple[str, ...]:
    """The constants of a key in a table, with Python's truth values as words."""
    constants = key if isinstance(key, tuple) else (key,)
    return tuple(
        str(constant).lower()
        if isinstance(constant, bool)
        else constant_name(constant, "the keys of a weight table are constants")
        for constant in constants
    )


def gaussian(
    values: Sequence[Value], *, cov: Sequence[Sequence[Value]], mean: Sequence[Value] | None = None
) -> Expression:
    """-½ zᵀ cov⁻¹ z with z = values - mean, not normalised; without a mean it is zero."""
    means = tuple(parts(entry)[0] for entry in (() if mean is None else mean))
    rows = tuple(tuple(parts(entry)[0] for entry in row) for row in cov)
    return _built(lambda *exprs: Gaussian(exprs, means, rows), *values)


def exists(variables: LogicalVariable | Sequence[LogicalVariable], formula: Value) -> Expression:
    """True where the formula holds for at least one choice of the variables."""
    return _quantified("EXIST", variables, formula)


def forall(variables: LogicalVariable | Sequence[LogicalVariable], formula: Value) -> Expression:
    """True where the formula holds for every choice of the variables."""
    return _quantified("FORALL", variables, formula)


def sum_over(variables: LogicalVariable | Sequence[LogicalVariable], value: Value) -> Expression:
    """The sum of a number over all choices of the variables; closed-world atoms that multiply it
    choose them."""
    return _quantified("SUM", variables, value)


def avg_over(variables: LogicalVariable | Sequence[LogicalVariable], value: Value) -> Expression:
    """The average, as `sum_over`; groundings in which nothing is chosen do not exist."""
    return _quantified("AVG", variables, value)


def min_over(variables: LogicalVariable | Sequence[LogicalVariable], value: Value) -> Expression:
    """The least one, as `avg_over`."""
    return _quantified("MIN", variables, value)


def max_over(variables: LogicalVariable | Sequence[LogicalVariable], value: Value) -> Expression:
    """The greatest one, as `avg_over`."""
    return _quantified("MAX", variables, value)


def count_over(variables: LogicalVariable | Sequence[LogicalVariable], truth: Value) -> Expression:
    """The number of choices for which a formula holds; compared with a number it is true or
    false."""
    return _quantified("COUNT", variables, truth)


def exactly(
    count: int, variables: LogicalVariable | Sequence[LogicalVariable], truth: Value
) -> Expression:
    """True where a formula holds for exactly so many choices of the variables."""
    return count_over(variables, truth) == count


def _quantified(
    quantifier: Quantifier,
    variables: LogicalVariable | Sequence[LogicalVariable],
    formula: object,
) -> Expression:
    chosen = [variables] if isinstance(variables, LogicalVariable) else list(variables)
    for variable in chosen:
        if not isinstance(variable, LogicalVariable) or variable.shift or variable.per_constant:
            raise ModelError(f"a quantifier takes plain logical variables, not {variable!r}")
    names = tuple(variable.name for variable in chosen)
    return _built(partial(Quantified, quantifier, names), formula)
