"""Checks of formulas: truth values and numbers where they belong, valid densities."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from hylift.language.report import Problem, error
from hylift.language.syntax import (
    Atom,
    Call,
    Comparison,
    Expr,
    Gaussian,
    Model,
    Normal,
    Number,
    Operation,
    Quantified,
    Rule,
    Unary,
)
from hylift.language.text.formatter import shown
from hylift.language.types import call_fault, constant_or_problem
from hylift.language.walk import atoms, is_truth, nodes


def formula_problems(model: Model, rule: Rule) -> Iterator[Problem]:
    """The problems of a rule's formula, whose names are all known."""
    for node in nodes(rule.formula):
        match node:
            case Unary(op="!", operand=operand):
                yield from _truth_problems(model, rule, operand, "'!'")
            case Quantified(quantifier=quantifier, body=body):
                yield from _truth_problems(model, rule, body, quantifier)
            case Operation() if node.is_logic:
                yield from _logic_problems(model, rule, node)
            case Comparison():
                yield from _comparison_problems(model, node)
            case Call():
                if fault := call_fault(node):
                    yield error(fault, node)
            case Gaussian():
                yield from _gaussian_problems(model, node)
            case Normal():
                yield from _normal_problems(model, node)
    if rule.hard and not is_truth(model, rule.formula):
        yield _hard_number(rule.formula)
    for condition in rule.where:
        if isinstance(condition, Comparison) and condition.is_logical:
            yield from _slope_problems(model, condition)


# Truth values.


def _logic_problems(model: Model, rule: Rule, node: Operation) -> Iterator[Problem]:
    exponent = _leading(node.operands[1])
    if node.op == "^" and isinstance(exponent, Number):
        power = f"{shown(node.operands[0])}^{shown(exponent)}"
        message = (
            f"'^' with a space behind it is logical and, which needs truth values: "
            f"for a power write '{power}', without a space"
        )
        yield error(message, node)
        return
    for operand in node.operands:
        yield from _truth_problems(model, rule, operand, f"'{node.op}'")


def _leading(expr: Expr) -> Expr:
    """The first operand of a sum or a product."""
    while isinstance(expr, Operation) and not expr.is_logic:
        expr = expr.operands[0]
    return expr


def _truth_problems(model: Model, rule: Rule, expr: Expr, user: str) -> Iterator[Problem]:
    """The problem that `user` needs a truth value, but this is a number."""
    if is_truth(model, expr):
        return
    match expr:
        case Atom():
            message = (
                f"'{shown(expr)}' is real, but {user} needs a truth value: compare it with a "
                "number, and multiply by that comparison"
            )
        case Comparison():
            message = (
                f"'{shown(expr)}' is a soft comparison of numbers, but {user} needs a truth "
                "value: multiply by it instead, as in 'A(x) * (B(x) = 1)'"
            )
        case _:
            message = f"'{shown(expr)}' is a number, but {user} needs a truth value"
    if rule.hard and isinstance(expr, Atom | Comparison):
        message += f", and {_softened(expr)}"
    yield error(message, expr)


def _hard_number(formula: Expr) -> Problem:
    kind = "a soft comparison of numbers" if isinstance(formula, Comparison) else "a number"
    message = (
        f"'{shown(formula)}' is {kind}, but a hard rule needs a truth value: {_softened(formula)}"
    )
    return error(message, formula)


def _softened(expr: Expr) -> str:
    """How to make a hard rule soft, in text or in Python."""
    instead = (
        "with 'm.rule' in place of 'm.hard'" if expr.place is None else "in place of the period"
    )
    return f"give the rule a weight {instead}"


# Comparisons.


def _comparison_problems(model: Model, node: Comparison) -> Iterator[Problem]:
    yield from _slope_problems(model, node)
    if node.is_logical:
        return
    truths = [side for side in (node.left, node.right) if is_truth(model, side)]
    if node.op in ("=", "!=") and len(truths) == 2:
        same = f"{shown(node.left)} <=> {shown(node.right)}"
        instead = same if node.op == "=" else f"!({same})"
        message = f"'{shown(node)}' compares truth values: write '{instead}'"
        if meant := _declared_real(model, truths):
            message += f", or {meant}"
        yield error(message, node)
    elif node.op == "!=":
        message = (
            f"'{shown(node)}' compares numbers, which always differ: '!=' is for logical terms"
        )
        yield error(message, node)
    elif node.op != "=":
        for side in truths:
            message = f"'{node.op}' compares numbers, but '{shown(side)}' is a truth value"
            if meant := _declared_real(model, truths):
                message += f": {meant}"
            yield error(message, side)


def _declared_real(model: Model, truths: list[Expr]) -> str:
    """The advice if two compared atoms were meant to be numbers."""
    names = dict.fromkeys(side.predicate for side in truths if isinstance(side, Atom))
    declared = (model.predicate_by_name[name] for name in names)
    are_atoms = len(truths) == 2 and all(isinstance(side, Atom) for side in truths)
    if not are_atoms or any(predicate.unique is not None for predicate in declared):
        return ""
    they = "it is a number" if len(names) == 1 else "they are numbers"
    return f"declare {' and '.join(map(repr, names))} with ': real' if {they}"


def _slope_problems(model: Model, node: Comparison) -> Iterator[Problem]:
    if node.slope is None:
        return
    if node.is_logical or node.op in ("=", "!="):
        message = (
            "a slope belongs to <, <=, > or >= between numbers, "
            f"not to '{shown(replace(node, slope=None))}'"
        )
        yield error(message, node)
        return
    slope = constant_or_problem(model, node.slope, "a slope")
    if isinstance(slope, Problem):
        yield slope
    elif slope <= 0:
        yield error(f"a slope must be positive, not {slope:g}", node.slope)


# Densities.


def _gaussian_problems(model: Model, node: Gaussian) -> Iterator[Problem]:
    for value in node.values:
        if is_truth(model, value):
            message = f"the values of gaussian are real, but '{shown(value)}' is a truth value"
            yield error(message, value)
    size = len(node.values)
    if size == 0:
        yield error("gaussian needs at least one value", node)
        return
    if node.mean and len(node.mean) != size:
        message = (
            f"gaussian of {size} value{_s(size)} needs {size} mean{_s(size)}, not {len(node.mean)}"
        )
        yield Problem("error", message, node.mean[0].place or node.place)
    means = [constant_or_problem(model, entry, "a mean of gaussian") for entry in node.mean]
    yield from (mean for mean in means if isinstance(mean, Problem))
    if len(node.cov) != size or any(len(row) != size for row in node.cov):
        message = (
            f"gaussian of {size} value{_s(size)} needs a cov of {size} row{_s(size)} of {size}"
        )
        yield error(message, node)
    else:
        yield from _cov_problems(model, node)


def _cov_problems(model: Model, node: Gaussian) -> Iterator[Problem]:
    entries = [constant_or_problem(model, e, "an entry of cov") for row in node.cov for e in row]
    wrong = [entry for entry in entries if isinstance(entry, Problem)]
    yield from wrong
    if wrong:
        return
    size = len(node.cov)
    cov = np.array(entries, dtype=float).reshape(size, size)
    unlike = np.argwhere(~np.isclose(cov, cov.T, rtol=1e-9, atol=0))
    if len(unlike):
        i, j = unlike[0]
        message = (
            f"cov of gaussian must be symmetric, but entry ({i + 1}, {j + 1}) is {cov[i, j]:g} "
            f"and entry ({j + 1}, {i + 1}) is {cov[j, i]:g}"
        )
        yield Problem("error", message, node.cov[j][i].place or node.place)
        return
    spectrum = np.linalg.eigvalsh(cov)
    if spectrum[0] <= size * np.finfo(float).eps * abs(spectrum[-1]):
        message = (
            "cov of gaussian must be positive definite, but its least eigenvalue is "
            f"{spectrum[0]:.3g}"
        )
        yield Problem("error", message, node.cov[0][0].place or node.place)


def _normal_problems(model: Model, node: Normal) -> Iterator[Problem]:
    if is_truth(model, node.value):
        message = f"the value of normal is real, but '{shown(node.value)}' is a truth value"
        yield error(message, node.value)
    if atoms(node.var):
        return
    variance = constant_or_problem(model, node.var, "the variance of normal")
    if isinstance(variance, Problem):
        yield variance
    elif variance <= 0:
        yield error(f"the variance of normal must be positive, not {variance:g}", node.var)


def _s(count: int) -> str:
    return "" if count == 1 else "s"
