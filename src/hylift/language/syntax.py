"""What a model is once it has been read: immutable nodes, equal when they say the same.

Every node knows the place in the text it came from; places play no part in equality. A model made
in Python has none.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

from hylift.graph.domains import Domain


@dataclass(frozen=True, slots=True)
class Source:
    """A text that was read, and what errors call it: the path of a file, or `<text>`."""

    name: str
    text: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Place:
    """A stretch of one line; lines and columns count from 1, `end` is one past the last column."""

    source: Source
    line: int
    column: int
    end: int


def _place() -> Any:
    return field(default=None, compare=False, repr=False, kw_only=True)


# Logical terms: the arguments of atoms.


@dataclass(frozen=True, slots=True)
class Variable:
    """A logical variable, `x`; or a neighbour in the order of its type, `t+1`."""

    name: str
    shift: int = 0
    place: Place | None = _place()


@dataclass(frozen=True, slots=True)
class Constant:
    """A constant of a type, by its name without quotes: `Door`, `12`, `"New York"`."""

    name: str
    place: Place | None = _place()


Term = Variable | Constant

# Expressions: truth values and numbers.


@dataclass(frozen=True, slots=True)
class Truth:
    """`true` or `false`."""

    value: bool
    place: Place | None = _place()


@dataclass(frozen=True, slots=True)
class Number:
    """A number that is written out."""

    value: float
    place: Place | None = _place()


@dataclass(frozen=True, slots=True)
class Parameter:
    """A named number, declared with `const`."""

    name: str
    place: Place | None = _place()


@dataclass(frozen=True, slots=True)
class Atom:
    """A predicate applied to terms: a truth value or a number, as the predicate is declared."""

    predicate: str
    arguments: tuple[Term, ...] = ()
    place: Place | None = _place()


@dataclass(frozen=True, slots=True)
class Unary:
    """`-a`, or `!a`."""

    op: Literal["-", "!"]
    operand: Expr
    place: Place | None = _place()


BinaryOp = Literal["+", "-", "*", "/", "^", "v", "=>", "<=>"]


@dataclass(frozen=True, slots=True)
class Binary:
    """Arithmetic (+ - * /) of numbers, where truth counts as 0 or 1; logic (^ v => <=>) of truths.

    `^` is logical and; powers are `Power`.
    """

    op: BinaryOp
    left: Expr
    right: Expr
    place: Place | None = _place()


@dataclass(frozen=True, slots=True)
class Power:
    """`base^exponent`, with a number written out as the exponent."""

    base: Expr
    exponent: float
    place: Place | None = _place()


CompareOp = Literal["=", "!=", "<", "<=", ">", ">="]


@dataclass(frozen=True, slots=True)
class Comparison:
    """Between logical terms: a truth value that every grounding decides (`x != y`, `t < 3`).

    Between numbers: soft, a number. `a = b` is -(a - b)²; `a < b` and `a <= b` are
    log sigmoid(slope * (b - a)), and likewise the other way round, with slope 1 unless stated.
    """

    op: CompareOp
    left: Expr
    right: Expr
    slope: Expr | None = None
    place: Place | None = _place()

    @property
    def is_logical(self) -> bool:
        """Whether both sides are logical terms."""
        return isinstance(self.left, Term) and isinstance(self.right, Term)


@dataclass(frozen=True, slots=True)
class Quantified:
    """`EXIST x, y body` or `FORALL x, y body`."""

    quantifier: Literal["EXIST", "FORALL"]
    variables: tuple[str, ...]
    body: Expr
    place: Place | None = _place()


FUNCTIONS: dict[str, tuple[int, int | None]] = {
    "abs": (1, 1),
    "exp": (1, 1),
    "log": (1, 1),
    "min": (2, None),
    "max": (2, None),
}
"""Functions of numbers, with the least and the greatest number of arguments (None: any)."""


@dataclass(frozen=True, slots=True)
class Call:
    """One of `FUNCTIONS` applied to numbers."""

    function: str
    arguments: tuple[Expr, ...]
    place: Place | None = _place()


@dataclass(frozen=True, slots=True)
class Gaussian:
    """`gaussian(a, b; mean=[m, n], cov=[[p, q], [q, r]])`: -½ zᵀ cov⁻¹ z with z = (a, b) - mean.

    Not normalised. The entries of `mean` (empty: zeros) and `cov` are arithmetic on constants.
    """

    values: tuple[Expr, ...]
    mean: tuple[Expr, ...]
    cov: tuple[tuple[Expr, ...], ...]
    place: Place | None = _place()


@dataclass(frozen=True, slots=True)
class Normal:
    """`normal(y | mean, var)`: the normalised log-density of y, log N(y; mean, var)."""

    value: Expr
    mean: Expr
    var: Expr
    place: Place | None = _place()


@dataclass(frozen=True, slots=True)
class Apply:
    """A user's own vectorised function of the values of atoms; only Python can make one."""

    function: Callable[..., Any]
    arguments: tuple[Atom, ...]
    place: Place | None = _place()


Expr = (
    Truth
    | Number
    | Parameter
    | Atom
    | Unary
    | Binary
    | Power
    | Comparison
    | Quantified
    | Call
    | Gaussian
    | Normal
    | Apply
    | Variable  # only as a side of a comparison between logical terms
    | Constant  # likewise
)

# Statements.


@dataclass(frozen=True, slots=True)
class TypeDeclaration:
    """A type of constants, in their order; without a list they come from the data."""

    name: str
    constants: tuple[str, ...] | None = None
    place: Place | None = _place()


@dataclass(frozen=True, slots=True)
class PredicateDeclaration:
    """What a predicate's arguments are, and what values its atoms take."""

    name: str
    arguments: tuple[str, ...]
    """Per argument: the name of its type."""
    domain: Domain
    """`boolean`, `real` or an interval. Boolean as well where an argument is unique."""
    unique: int | None = None
    """The argument marked `!`: exactly one of its constants holds for each choice of the others,
    so that there is one categorical variable per choice of the others."""
    place: Place | None = _place()


@dataclass(frozen=True, slots=True)
class ParameterDeclaration:
    """`const Name = value`: arithmetic on numbers and constants declared before."""

    name: str
    value: Expr
    place: Place | None = _place()


@dataclass(frozen=True, slots=True)
class WeightTable:
    """`{T1: 0.5, T2: 0.7, *: 0}`: a weight per combination of the rule's `+` variables."""

    entries: tuple[tuple[tuple[str, ...], Expr], ...]
    """Constants, one per `+` variable, with their weight."""
    default: Expr | None = None
    place: Place | None = _place()
    key_places: tuple[Place, ...] = field(default=(), compare=False, repr=False, kw_only=True)
    """Where the constants of each entry stand, if the table was read."""


@dataclass(frozen=True, slots=True)
class Rule:
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
    place: Place | None = _place()


@dataclass(frozen=True)
class Model:
    """Types, predicates, constants and rules, each in order of appearance."""

    types: tuple[TypeDeclaration, ...] = ()
    predicates: tuple[PredicateDeclaration, ...] = ()
    parameters: tuple[ParameterDeclaration, ...] = ()
    rules: tuple[Rule, ...] = ()

    @cached_property
    def type_by_name(self) -> dict[str, TypeDeclaration]:
        """All types, those that only the arguments of predicates mention included."""
        mentioned = [name for p in self.predicates for name in p.arguments]
        implied = {name: TypeDeclaration(name) for name in mentioned}
        return implied | {declared.name: declared for declared in self.types}

    @cached_property
    def predicate_by_name(self) -> dict[str, PredicateDeclaration]:
        return {declared.name: declared for declared in self.predicates}

    @cached_property
    def parameter_by_name(self) -> dict[str, ParameterDeclaration]:
        return {declared.name: declared for declared in self.parameters}

    def __str__(self) -> str:
        from hylift.language.text.formatter import show_model

        return show_model(self)
