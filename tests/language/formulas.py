"""Random formulas, and their values computed the slow way: one point, plain Python numbers."""

import math
from collections.abc import Callable
from functools import reduce

import numpy as np

from hylift.language.syntax import (
    Atom,
    Call,
    Comparison,
    Constant,
    Expr,
    Gaussian,
    Normal,
    Number,
    Operation,
    Parameter,
    Power,
    Truth,
    Unary,
    Variable,
    binary,
)

A = Atom("A", (Variable("p"),))
B = Atom("B", (Variable("p"), Variable("q")))
DOOR = Atom("Kind", (Variable("s"), Constant("Door")))
WALL = Atom("Kind", (Variable("s"), Constant("Wall")))
X = Atom("X", (Variable("p"),))
Y = Atom("Y")
UNLIKE = Comparison("!=", Variable("p"), Variable("q"))
W = Parameter("W")

TRUTHS: list[Expr] = [A, B, DOOR, WALL, UNLIKE]
REALS: list[Expr] = [X, Y]

Values = dict[Expr, bool | float]


def value_at(expr: Expr, values: Values) -> bool | float:
    """The value at one point; `values` has those of atoms, parameters and logical comparisons."""
    if expr in values:
        return values[expr]
    match expr:
        case Truth(value=value) | Number(value=value):
            return value
        case Unary(op="!"):
            return not value_at(expr.operand, values)
        case Unary(op="-"):
            return -value_at(expr.operand, values)
        case Operation():
            return reduce(OPERATORS[expr.op], (value_at(o, values) for o in expr.operands))
        case Power():
            return float(value_at(expr.base, values)) ** expr.exponent
        case Comparison():
            left, right = value_at(expr.left, values), value_at(expr.right, values)
            if expr.op == "=":
                return -((left - right) ** 2)
            slope = 1.0 if expr.slope is None else value_at(expr.slope, values)
            difference = right - left if expr.op in ("<", "<=") else left - right
            return -math.log(1 + math.exp(-slope * difference))
        case Call():
            arguments = [float(value_at(argument, values)) for argument in expr.arguments]
            return FUNCTIONS[expr.function](*arguments)
        case Gaussian():
            mean = [value_at(entry, values) for entry in expr.mean] or [0.0] * len(expr.values)
            cov = [[float(value_at(entry, values)) for entry in row] for row in expr.cov]
            z = np.array([value_at(v, values) - m for v, m in zip(expr.values, mean, strict=True)])
            return float(-0.5 * z @ np.linalg.solve(np.array(cov), z))
        case Normal():
            y, mean, var = (value_at(e, values) for e in (expr.value, expr.mean, expr.var))
            return -((y - mean) ** 2) / (2 * var) - 0.5 * math.log(2 * math.pi * var)
    raise AssertionError(expr)


OPERATORS: dict[str, Callable[[float, float], bool | float]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / b,
    "^": lambda a, b: bool(a and b),
    "v": lambda a, b: bool(a or b),
    "=>": lambda a, b: bool(not a or b),
    "<=>": lambda a, b: a == b,
}
FUNCTIONS: dict[str, Callable[..., float]] = {
    "abs": abs,
    "exp": math.exp,
    "log": math.log,
    "min": min,
    "max": max,
}


class Formulas:
    """A stream of random formulas that have a finite value wherever their atoms have one."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)

    def pick(self, choices: list[Expr]) -> Expr:
        return choices[self.rng.integers(len(choices))]

    def number(self) -> Number:
        return Number(float(np.round(self.rng.normal(), 2)))

    def truth(self, depth: int) -> Expr:
        """A formula that is true or false."""
        if depth == 0:
            return Truth(bool(self.rng.integers(2))) if self.rng.random() < 0.1 else self.leaf()
        if self.rng.random() < 0.2:
            return Unary("!", self.truth(depth - 1))
        op = str(self.rng.choice(["^", "v", "=>", "<=>"]))
        return binary(op, self.truth(depth - 1), self.truth(depth - 1))  # type: ignore[arg-type]

    def leaf(self) -> Expr:
        return self.pick(TRUTHS)

    def constant(self, depth: int) -> Expr:
        """A number that depends on truths alone."""
        if depth == 0:
            return self.pick([self.number(), W, self.leaf(), self.truth(1)])
        a, b = self.constant(depth - 1), self.constant(depth - 1)
        two = Number(2.0)
        return self.pick(
            [
                *(binary(op, a, b) for op in ("+", "-", "*")),
                binary("/", a, binary("+", two, Call("abs", (b,)))),
                Power(a, 2.0),
                Comparison("<", a, b, self.pick([two, W])),
                Comparison("=", a, b),
                Call("max", (a, b, two)),
                Call("log", (binary("+", two, Call("abs", (a,))),)),
                Unary("-", a),
            ]
        )

    def linear(self, depth: int) -> Expr:
        """A number that is linear in the reals in every state of the rest."""
        if depth == 0:
            return self.pick([*REALS, self.number()])
        a, b, scale = self.linear(depth - 1), self.linear(depth - 1), self.constant(1)
        return self.pick(
            [
                binary("+", a, b),
                binary("-", a, b),
                binary("*", scale, a),
                binary("*", a, scale),
                binary("/", a, self.pick([W, Number(-3.0)])),
                Power(a, 1.0),
            ]
        )

    def quadratic(self, depth: int) -> Expr:
        """A number that is quadratic in the reals in every state of the rest."""
        a, b = self.linear(1), self.linear(1)
        if depth == 0:
            cov = ((Number(2.0), W), (W, Number(3.0)))
            return self.pick(
                [
                    Power(a, 2.0),
                    binary("*", a, b),
                    Comparison("=", a, b),
                    Gaussian((a, b), (), cov),
                    Gaussian((a, b), (self.number(), W), cov),
                    Normal(a, b, self.pick([W, Number(0.3), binary("+", Number(1.0), A)])),
                ]
            )
        c, d = self.quadratic(depth - 1), self.quadratic(depth - 1)
        return self.pick(
            [
                binary("+", c, d),
                binary("-", c, d),
                binary("*", self.truth(1), c),
                binary("*", c, self.constant(1)),
                binary("/", c, W),
                Unary("-", c),
            ]
        )

    def wild(self, depth: int) -> Expr:
        """A number that need not be quadratic in anything."""
        if depth == 0:
            return self.pick([self.quadratic(0), self.linear(1), self.constant(1)])
        a, b = self.wild(depth - 1), self.wild(depth - 1)
        bounded = Call("min", (Call("max", (a, Number(-4.0))), Number(2.0)))
        return self.pick(
            [
                binary("+", a, b),
                binary("-", a, b),
                binary("*", self.truth(1), b),
                Comparison(">=", bounded, self.number(), Number(3.0)),
                Call("exp", (bounded,)),
                Power(bounded, 3.0),
                Call("log", (binary("+", Number(1.0), Call("abs", (a,))),)),
                binary("/", bounded, binary("+", Number(2.0), Power(b, 2.0))),
            ]
        )
