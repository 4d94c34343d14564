"""Errors about rules that the grammar allows, but that can mean nothing."""

from __future__ import annotations

from itertools import pairwise

from lark import Token, Tree

from hylift.language.report import fail
from hylift.language.syntax import OPERATORS, Source
from hylift.language.text.tokens import Branch, bound_variables, chain, place, quoted, tokens_of

_DEVIATIONS = ("sd", "std", "sigma", "scale", "stddev")


def check_slips(tree: Tree[Token], source: Source) -> None:
    """Raise if brackets are missing around what a sum or count joins, or a parameter is named."""
    for branch in tree.iter_subtrees():
        match branch.data:
            case "binary" if _is_logic(branch.children[1]):
                for one, other in pairwise(chain(branch, str(branch.children[1]))):
                    if (counted := _at_the_end(one)) is not None:
                        _fail_reach(counted, str(branch.children[1]), other, source)
            case "unary" if branch.children[0] == "!":
                if (counted := _aggregate(branch.children[1])) is not None:
                    text = _text(counted, source)
                    fail(
                        f"'{text}' is a number, but '!' needs a truth value: put brackets around "
                        f"what it negates, as in '!({text} >= 2)'",
                        place(counted, source),
                    )
            case "normal":
                _check_variance(branch, source)


def _is_logic(operator: Branch) -> bool:
    return operator in [op for op, notation in OPERATORS.items() if notation.is_logic]


def _aggregate(branch: Branch) -> Tree[Token] | None:
    """The sum or count that a branch is, without brackets."""
    if isinstance(branch, Tree) and branch.data == "quantified":
        return branch if tokens_of(branch)[0].type == "AGGREGATE" else None
    return None


def _at_the_end(branch: Branch) -> Tree[Token] | None:
    """The sum or count with which a number ends."""
    while isinstance(branch, Tree) and branch.data == "binary":
        if _is_logic(branch.children[1]):
            return None
        branch = branch.children[2]
    return _aggregate(branch)


def _fail_reach(counted: Tree[Token], op: str, other: Branch, source: Source) -> None:
    rest = ""
    if isinstance(other, Tree) and other.data == "comparison":
        start = place(other.children[0], source).end - place(other, source).column
        rest = _text(other, source)[start:]
        other = other.children[0]
    names = ", ".join(map(str, bound_variables(counted)))
    joined = f"{_text(counted.children[-1], source)} {op} {_text(other, source)}"
    is_product = op == "^" and counted.children[0] != "COUNT"
    numbers = "; numbers are multiplied, 'A(x) * b(x)'" if is_product else ""
    fail(
        f"'{_text(counted, source)}' is a number, but '{op}' needs a truth value: put brackets "
        f"around what it joins, as in '{counted.children[0]} {names}: ({joined}){rest}'{numbers}",
        place(counted, source),
    )


def _check_variance(tree: Tree[Token], source: Source) -> None:
    """Raise if the variance is named, as in `normal(y | 0, sd=1)`."""
    var = tree.children[-1]
    if isinstance(var, Tree) and var.data == "comparison" and isinstance(var.children[0], Token):
        name, value = var.children[0], _text(var.children[-1], source)
        if name.type == "NAME" and name in (*_DEVIATIONS, "var", "variance"):
            meant = f"({value})^2" if name in _DEVIATIONS else value
            fail(
                f"{quoted(name)} is not a setting of normal, whose last number is the variance: "
                f"write '{meant}'",
                place(var, source),
            )


def _text(branch: Branch, source: Source) -> str:
    where = place(branch, source)
    return source.text.split("\n")[where.line - 1][where.column - 1 : where.end - 1]
