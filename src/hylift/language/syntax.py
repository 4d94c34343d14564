"""The syntax of expressions: immutable nodes, equal when they say the same."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Source:
    """A text and its name in errors: the path of a file, or `<text>`."""

    name: str
    text: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Place:
    """A span within one line; lines and columns count from 1, `end` is one past the last column."""

    source: Source
    line: int
    column: int
    end: int


@dataclass(frozen=True, slots=True)
class Node:
    """Anything that has a place in the text; a node made in Python has none.

    Places do not take part in equality.
    """

    place: Place | None = field(default=None, compare=False, repr=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class Expr(Node):
    """A truth value or a number; or a logical term, as a side of a comparison of two terms.

    The parts of an expression are its fields annotated with `Expr` or `Atom` (see `walk`).
    """


# Logical terms: the arguments of atoms.


@dataclass(frozen=True, slots=True)
class Variable(Expr):
    """A logical variable, `x`; or a neighbour in the order of its type, `t+1`."""

    name: str
    shift: int = 0


@dataclass(frozen=True, slots=True)
class Constant(Expr):
    """A constant of a type, by its name without quotes: `Door`, `12`, `"New York"`."""

    name: str


Term = Variable | Constant

# Expressions: truth values and numbers.


@dataclass(frozen=True, slots=True)
class Truth(Expr):
    """`true` or `false`."""

    value: bool


@dataclass(frozen=True, slots=True)
class Number(Expr):
    """A number that is written out."""

    value: float


@dataclass(frozen=True, slots=True)
class Parameter(Expr):
    """A named number, declared with `const`."""

    name: str


@dataclass(frozen=True, slots=True)
class Atom(Expr):
    """A predicate applied to terms: a truth value or a number, as the predicate is declared."""

    predicate: str
    arguments: tuple[Term, ...] = ()


@dataclass(frozen=True, slots=True)
class Unary(Expr):
    """`-a`, or `!a`."""

    op: Literal["-", "!"]
    operand: Expr


BinaryOp = Literal["+", "-", "*", "/", "^", "v", "=>", "<=>"]


@dataclass(frozen=True, slots=True)
class Operator:
    """The notation of an operator between expressions."""

    level: int
    """A higher level binds tighter; comparisons are at `COMPARISON_LEVEL`."""
    is_logic: bool = False
    """True if it joins truth values, False for numbers, where truth counts as 0 or 1."""
    is_chain: bool = False
    """True if `a + b + c` is one operation on three operands."""
    is_right: bool = False
    """True if `a => b => c` is `a => (b => c)`."""


OPERATORS: dict[BinaryOp, Operator] = {
    "<=>": Operator(1, is_logic=True),
    "=>": Operator(2, is_logic=True, is_right=True),
    "v": Operator(3, is_logic=True, is_chain=True),
    "^": Operator(4, is_logic=True, is_chain=True),
    "+": Operator(6, is_chain=True),
    "-": Operator(6),
    "*": Operator(7),
    "/": Operator(7),
}
"""The operators of `Operation`; `evaluate` has their values, `fold` their simplifications."""

COMPARISON_LEVEL = 5


@dataclass(frozen=True, slots=True)
class Operation(Expr):
    """Two operands joined by an operator, or a chain of more: `a + b + c`.

    `^` is logical and; powers are `Power`.
    """

    op: BinaryOp
    operands: tuple[Expr, ...]

    def __post_init__(self) -> None:
        first = self.operands[0]
        if OPERATORS[self.op].is_chain and isinstance(first, Operation) and first.op == self.op:
            object.__setattr__(self, "operands", (*first.operands, *self.operands[1:]))

    @property
    def is_logic(self) -> bool:
        return OPERATORS[self.op].is_logic


def binary(op: BinaryOp, left: Expr, right: Expr) -> Operation:
    """The operation on two operands; a chain on the left becomes longer."""
    return Operation(op, (left, right))


@dataclass(frozen=True, slots=True)
class Power(Expr):
    """`base^exponent`, with a number written out as the exponent."""

    base: Expr
    exponent: float


CompareOp = Literal["=", "!=", "<", "<=", ">", ">="]

COMPARISONS: dict[CompareOp, Callable[[Any, Any], Any]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
"""The comparisons of logical terms, by the positions of constants."""


@dataclass(frozen=True, slots=True)
class Comparison(Expr):
    """Between logical terms: a truth value that every grounding decides (`x != y`, `t < 3`).

    Between numbers: soft, a number. `a = b` is -(a - b)²; `a < b` and `a <= b` are
    log sigmoid(slope * (b - a)), and likewise the other way round, with slope 1 unless stated.
    With a count on one side: a truth value.
    """

    op: CompareOp
    left: Expr
    right: Expr
    slope: Expr | None = None
    is_exact: bool = False
    """True for a comparison of numbers that is true or false, as those of counts are."""

    def __post_init__(self) -> None:
        if compares_counts(self):
            object.__setattr__(self, "is_exact", True)

    @property
    def is_logical(self) -> bool:
        """True if both sides are logical terms."""
        return isinstance(self.left, Term) and isinstance(self.right, Term)


Quantifier = Literal["EXIST", "FORALL", "SUM", "AVG", "COUNT", "MIN", "MAX"]

AGGREGATES: tuple[Quantifier, ...] = ("SUM", "AVG", "COUNT", "MIN", "MAX")
"""The quantifiers that are numbers, and whose body is a product: `SUM x: A(x) * y(x)`."""


@dataclass(frozen=True, slots=True)
class Quantified(Expr):
    """`EXIST x, y body`, `FORALL x, y body`, or a number such as `SUM x, y: body`."""

    quantifier: Quantifier
    variables: tuple[str, ...]
    body: Expr

    @property
    def is_truth(self) -> bool:
        return self.quantifier not in AGGREGATES


def compares_counts(node: Comparison) -> bool:
    """True for a comparison with a count on one side."""
    return _has_count(node.left) or _has_count(node.right)


def _has_count(expr: Expr) -> bool:
    """True for a count, and for arithmetic on one."""
    match expr:
        case Quantified(quantifier=quantifier):
            return quantifier == "COUNT"
        case Unary(op="-", operand=operand):
            return _has_count(operand)
        case Operation(operands=operands) if not expr.is_logic:
            return any(map(_has_count, operands))
    return False


FUNCTIONS: dict[str, tuple[int, int | None]] = {
    "abs": (1, 1),
    "exp": (1, 1),
    "log": (1, 1),
    "min": (2, None),
    "max": (2, None),
}
"""Functions of numbers, with the least and the greatest number of arguments (None: any)."""

BUILT_IN = (*FUNCTIONS, "gaussian", "normal")
"""The words that are not predicates where brackets follow."""


@dataclass(frozen=True, slots=True)
class Call(Expr):
    """One of `FUNCTIONS` applied to numbers."""

    function: str
    arguments: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Gaussian(Expr):
    """`gaussian(a, b; mean=[m, n], cov=[[p, q], [q, r]])`: -½ zᵀ cov⁻¹ z with z = (a, b) - mean.

    Not normalised. The entries of `mean` (empty: zeros) and `cov` are arithmetic on constants.
    """

    values: tuple[Expr, ...]
    mean: tuple[Expr, ...]
    cov: tuple[tuple[Expr, ...], ...]


@dataclass(frozen=True, slots=True)
class Normal(Expr):
    """`normal(y | mean, var)`: the normalised log-density of y, log N(y; mean, var)."""

    value: Expr
    mean: Expr
    var: Expr


DENSITIES: dict[str, tuple[str, ...]] = {
    "bernoulli": ("p",),
    "bernoulli_logit": ("score",),
    "bernoulli_probit": ("score",),
    "poisson": ("rate",),
    "exponential": ("rate",),
    "gamma": ("shape", "rate"),
    "beta": ("a", "b"),
    "lognormal": ("m", "v"),
    "student": ("m", "v", "nu"),
}
"""The names of other distributions, with their parameters; words like any other unless `|` follows
in their brackets."""

CATEGORICAL = "categorical"
"""The name of the distribution by a table, `Categorical`; a word like those of `DENSITIES`."""

OF_TRUTHS = ("bernoulli", "bernoulli_logit", "bernoulli_probit")
"""Those of truth values."""

POSITIVE = ("rate", "shape", "a", "b", "v", "nu")
"""The names of parameters that are positive numbers."""


@dataclass(frozen=True, slots=True)
class Density(Expr):
    """`student(y | m, v, nu)`: the normalised log-density of a value, by a name of `DENSITIES`."""

    name: str
    value: Expr
    parameters: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class WeightTable(Node):
    """`{T1: 0.5, T2: 0.7, *: 0}`: a weight per combination of the rule's `+` variables."""

    entries: tuple[tuple[tuple[str, ...], Expr], ...]
    """Constants, one per `+` variable, with their weight."""
    default: Expr | None = None
    key_places: tuple[Place, ...] = field(default=(), compare=False, repr=False, kw_only=True)
    """The places of the constants of each entry, if the table was read from text."""


@dataclass(frozen=True, slots=True, eq=False)
class Probabilities:
    """The numbers of a table: log-probabilities (condition..., value), an axis of states each."""

    log: NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Categorical(Expr):
    """`categorical(Kind(s) | P, Old(s))`: the log-probability of a state, looked up in a table.

    Atoms of a predicate with an argument marked `!` leave that argument out.
    """

    value: Expr
    table: str | WeightTable | Probabilities
    """The name of a table of the data, or the table itself; keys are states of the conditions, then
    of the value. `Probabilities` once the states are known."""
    conditions: tuple[Expr, ...] = ()

    @property
    def subjects(self) -> tuple[Expr, ...]:
        """The conditions and the value: an axis of the table each."""
        return (*self.conditions, self.value)


@dataclass(frozen=True, slots=True)
class Apply(Expr):
    """A user's own vectorised function of the values of atoms; only Python can make one."""

    function: Callable[..., Any]
    arguments: tuple[Atom, ...]
