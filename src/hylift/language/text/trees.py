"""What the trees of the grammar say by themselves, whatever their words mean."""

from __future__ import annotations

import math

from lark import Token, Tree

from hylift.language.syntax import Constant, Place, Source
from hylift.language.text.notation import is_capital, unquote
from hylift.language.text.tokens import fail, place_of, quoted

Branch = Tree[Token] | Token

_OF_EXPRESSIONS = {"binary", "unary", "power", "group", "call", "comparison", "quantified"}
_OF_EXPRESSIONS |= {"normal", "gaussian", "rule", "where"}
_OF_WEIGHTS = {"binary", "unary", "power", "group", "call"}
_OF_ARITHMETIC = {"PLUS", "MINUS", "STAR", "SLASH", "NAME", "NUMBER", "POWER", "FUNCTION"}


def place(branch: Branch, source: Source) -> Place:
    """Where a branch stands, or where it begins if it reaches over several lines."""
    if isinstance(branch, Token):
        return place_of(branch, source)
    meta = branch.meta
    end = meta.end_column
    if meta.end_line > meta.line:
        line_end = source.text.find("\n", meta.start_pos)
        end = meta.column + len(source.text[meta.start_pos : line_end].rstrip())
    return Place(source, meta.line, meta.column, end)


def number(token: Token, source: Source) -> float:
    """The value of a numeral, or of the exponent of a power."""
    value = float(token.removeprefix("^"))
    if math.isinf(value):
        fail(f"{quoted(token)} is too large for a number", place_of(token, source))
    return value


def tokens_of(tree: Tree[Token]) -> list[Token]:
    """The children that are tokens."""
    return [child for child in tree.children if isinstance(child, Token)]


def trees_of(tree: Tree[Token]) -> list[Tree[Token]]:
    """The children that are trees themselves."""
    return [child for child in tree.children if isinstance(child, Tree)]


def constant(branch: Branch, source: Source) -> Constant:
    """A constant that is given by its name, in quotes or as a number."""
    *sign, token = [branch] if isinstance(branch, Token) else tokens_of(branch)
    where = place(branch, source)
    if token.type != "STRING":
        return Constant("".join([*sign, token]), place=where)
    try:
        return Constant(unquote(token), place=where)
    except ValueError as error:
        fail(
            f'{quoted(str(error))} means nothing in quotes: only \\" \\\\ \\n \\r and \\t do', where
        )


def rule_variables(tree: Tree[Token]) -> set[str]:
    """The variables of a rule: the arguments of its atoms, and what its quantifiers bind."""
    names: set[str] = set()
    for branch in tree.iter_subtrees():
        if branch.data == "variable":
            names |= {str(token) for token in tokens_of(branch) if token.type == "NAME"}
        elif branch.data == "quantified":
            names |= set(map(str, bound_variables(branch)))
    return {name for name in names if not is_capital(name)}


def bound_variables(tree: Tree[Token]) -> list[Token]:
    """The variables that a quantifier names, before the formula it is about."""
    return [child for child in tree.children[1:-1] if isinstance(child, Token)]


def atom_words(tree: Tree[Token]) -> set[str]:
    """The words of a rule that may be predicates without arguments."""
    variables = rule_variables(tree)
    found = set()
    for branch in Tree("rule", _formula_and_where(tree)).iter_subtrees():
        if branch.data == "atom" and len(branch.children) == 1:
            found.add(str(branch.children[0]))
        elif branch.data in _OF_EXPRESSIONS:
            is_quantified = branch.data == "quantified"
            operands = branch.children[-1:] if is_quantified else branch.children
            found |= {str(word) for word in operands if _is_word(word)} - variables
    return found


def _is_word(branch: Branch) -> bool:
    return isinstance(branch, Token) and branch.type == "NAME"


def _formula_and_where(tree: Tree[Token]) -> list[Branch]:
    is_weighted = len(split_rule(tree)[0]) == 2
    return tree.children[is_weighted:]


def split_rule(tree: Tree[Token]) -> tuple[list[Branch], Tree[Token] | None, bool]:
    """The formula of a rule with the weight before it, the conditions, and whether it is hard."""
    children: list[Branch] = list(tree.children)
    is_hard = isinstance(children[-1], Token) and children[-1].type == "PERIOD"
    if is_hard:
        children.pop()
    last = children[-1]
    if isinstance(last, Tree) and last.data == "where":
        return children[:-1], last, is_hard
    return children, None, is_hard


def conjuncts(branch: Branch) -> list[Branch]:
    """The parts that `^` joins, without looking into brackets."""
    is_joined = isinstance(branch, Tree) and branch.data == "binary" and branch.children[1] == "^"
    return chain(branch) if is_joined else [branch]


def chain(branch: Branch) -> list[Branch]:
    """The parts that the operator of a binary branch joins, without looking into brackets."""
    assert isinstance(branch, Tree)
    op, parts = branch.children[1], []
    while isinstance(branch, Tree) and branch.data == "binary" and branch.children[1] == op:
        branch, _, last = branch.children
        parts.append(last)
    return [branch, *reversed(parts)]


def is_number(branch: Branch) -> bool:
    """Whether a branch is a number that is written out, with a sign or without."""
    if isinstance(branch, Tree) and branch.data == "unary" and branch.children[0] == "-":
        branch = branch.children[1]
    return isinstance(branch, Token) and branch.type == "NUMBER"


def is_weight(branch: Branch) -> bool:
    """Whether a branch is arithmetic on numbers and words."""
    if isinstance(branch, Token):
        return branch.type in ("NAME", "NUMBER")
    parts = list(branch.iter_subtrees())
    tokens = (token for part in parts for token in tokens_of(part))
    return all(part.data in _OF_WEIGHTS for part in parts) and all(
        token.type in _OF_ARITHMETIC for token in tokens
    )
