"""Slow and obviously right: a model of rules evaluated grounding by grounding, in plain Python.

Uses nothing but the syntax tree: no planning, no database, no lowering.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence, Set

import numpy as np

from hylift.language.statements import Model, Rule
from hylift.language.syntax import (
    COMPARISONS,
    Apply,
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
    Quantified,
    Term,
    Truth,
    Unary,
    Variable,
    WeightTable,
)
from hylift.language.types import variable_types
from hylift.language.walk import free_variables, terms

Constants = Mapping[str, Sequence[str]]
World = Mapping[tuple[str, ...], float | bool]
"""Value of every ground atom, by predicate and arguments: ("In", "p0", "t1")."""


class MissingNeighbourError(Exception):
    """A neighbour t+1 that does not exist."""


class Evaluator:
    """Values of expressions under a binding of variables to constants."""

    def __init__(
        self, model: Model, constants: Constants, world: World, closed: Set[str] = frozenset()
    ) -> None:
        """closed: the predicates that choose the members of averages."""
        self.model, self.constants, self.world, self.closed = model, constants, world, closed

    def log_density(self) -> float:
        return sum(self.value_of(rule) for rule in self.model.rules)

    def value_of(self, rule: Rule) -> float:
        return sum(value for _, value in self.groundings(rule))

    def groundings(self, rule: Rule) -> Iterator[tuple[dict[str, str], float]]:
        """Every grounding, with weight * formula."""
        types = variable_types(self.model, rule)
        names = list(free_variables(rule.formula))
        names += [n for w in rule.where for n in free_variables(w) if n not in names]
        names = list(dict.fromkeys(names))
        for values in itertools.product(*(self.constants[types[name]] for name in names)):
            bound = dict(zip(names, values, strict=True))
            self.types = types
            try:
                if not all(self.value(part, bound) for part in rule.where):
                    continue
                value = self.value(rule.formula, bound)
            except MissingNeighbourError:
                continue
            yield bound, self.weighted(rule, bound, value)

    def weighted(self, rule: Rule, bound: dict[str, str], value: float) -> float:
        if rule.hard:
            return 0.0 if value else -math.inf
        weight = rule.weight
        if isinstance(weight, WeightTable):
            key = tuple(bound[name] for name in rule.per_constant)
            weight = dict(weight.entries).get(key, weight.default)
        return float(1.0 if weight is None else self.value(weight, bound)) * float(value)

    def term(self, term: Term, bound: dict[str, str], type_name: str) -> str:
        if isinstance(term, Constant):
            return term.name
        constants = self.constants[type_name]
        place = list(constants).index(bound[term.name]) + term.shift
        if not 0 <= place < len(constants):
            raise MissingNeighbourError
        return constants[place]

    def value(self, expr: Expr, bound: dict[str, str]):
        match expr:
            case Number(value=value) | Truth(value=value):
                return value
            case Parameter(name=name):
                return self.value(self.model.parameter_by_name[name].value, {})
            case Atom(predicate=name, arguments=arguments):
                types = self.model.predicate_by_name[name].arguments
                pairs = zip(arguments, types, strict=True)
                return self.world[(name, *(self.term(t, bound, type_) for t, type_ in pairs))]
            case Unary(op="!", operand=operand):
                return not self.value(operand, bound)
            case Unary(operand=operand):
                return -float(self.value(operand, bound))
            case Power(base=base, exponent=exponent):
                return float(self.value(base, bound)) ** exponent
            case Comparison() if expr.is_logical:
                return self.compare(expr, bound)
            case Comparison(op=op, left=left, right=right, slope=slope):
                if expr.is_exact:
                    sides = float(self.value(left, bound)), float(self.value(right, bound))
                    return COMPARISONS[op](*sides)
                slope = 1.0 if slope is None else self.value(slope, bound)
                difference = float(self.value(left, bound)) - float(self.value(right, bound))
                if op == "=":
                    return -(difference**2)
                score = slope * (difference if op in (">", ">=") else -difference)
                return -math.log1p(math.exp(-score)) if score > -30 else score
            case Quantified(quantifier=quantifier, variables=names, body=body):
                return self.quantified(quantifier, names, body, bound)
            case Normal(value=value, mean=mean, var=var):
                y, m, v = (float(self.value(part, bound)) for part in (value, mean, var))
                return -((y - m) ** 2) / (2 * v) - 0.5 * math.log(2 * math.pi * v)
            case Gaussian(values=values, mean=mean, cov=cov):
                z = np.array([float(self.value(v, bound)) for v in values])
                z = z - [float(self.value(m, bound)) for m in mean] if mean else z
                matrix = [[float(self.value(entry, bound)) for entry in row] for row in cov]
                return float(-0.5 * z @ np.linalg.solve(np.array(matrix), z))
            case Call(function=function, arguments=arguments):
                numbers = [float(self.value(a, bound)) for a in arguments]
                call = {"abs": abs, "exp": math.exp, "log": math.log, "min": min, "max": max}
                return call[function](*numbers)
            case Apply(function=function, arguments=arguments):
                return float(function(*(np.array([self.value(a, bound)]) for a in arguments))[0])
            case Operation():
                return self.binary(expr, bound)
        raise TypeError(expr)

    def compare(self, expr: Comparison, bound: dict[str, str]) -> bool:
        names = [side.name for side in (expr.left, expr.right) if isinstance(side, Variable)]
        constants = list(self.constants[self.types[names[0]]])
        left, right = (
            constants.index(self.term(side, bound, self.types[names[0]]))
            for side in (expr.left, expr.right)
        )
        outcome = {"=": left == right, "!=": left != right, "<": left < right}
        outcome |= {"<=": left <= right, ">": left > right, ">=": left >= right}
        return outcome[expr.op]

    def quantified(self, quantifier, names, body, bound) -> bool:
        for term in terms(body):
            is_outer = isinstance(term, Variable) and term.name not in names and term.name in bound
            if is_outer and term.shift:  # its end is the end of the whole grounding
                self.term(term, bound, self.types[term.name])
        found = []
        for values in itertools.product(*(self.constants[self.types[name]] for name in names)):
            chosen = bound | dict(zip(names, values, strict=True))
            try:
                if quantifier not in ("AVG", "MIN", "MAX") or self.is_member(body, chosen):
                    found.append(self.value(body, chosen))
            except MissingNeighbourError:
                continue
        if not found and quantifier in ("AVG", "MIN", "MAX"):
            raise MissingNeighbourError
        kinds = {"EXIST": any, "FORALL": all, "SUM": sum, "COUNT": sum, "AVG": np.mean}
        return (kinds | {"MIN": min, "MAX": max})[quantifier](found)

    def is_member(self, body: Expr, bound: dict[str, str]) -> bool:
        """True unless an atom of `closed` that multiplies the body is false."""
        if isinstance(body, Operation) and body.op == "*":
            return all(self.is_member(part, bound) for part in body.operands)
        literal = body.operand if isinstance(body, Unary) and body.op == "!" else body
        is_test = isinstance(literal, Comparison) and literal.is_logical
        is_test |= isinstance(literal, Atom) and literal.predicate in self.closed
        return not is_test or bool(self.value(body, bound))

    def binary(self, expr: Operation, bound: dict[str, str]):
        left, right, *others = (self.value(operand, bound) for operand in expr.operands)
        match expr.op:
            case "^":
                return all([left, right, *others])
            case "v":
                return any([left, right, *others])
            case "=>":
                return not left or right
            case "<=>":
                return bool(left) == bool(right)
            case "+":
                return math.fsum(map(float, [left, right, *others]))
            case "-":
                return float(left) - float(right)
            case "*":
                return float(left) * float(right)
        return float(left) / float(right)
