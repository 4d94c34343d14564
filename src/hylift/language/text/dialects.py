"""Notation of other systems' files that differs from ours in tokens only.

In pracmln's files variables are marked, `?x`, and every other word in an atom is a constant. `|` is
"or", as in WFOMC's. Square brackets around a formula, which keep Alchemy from splitting it into
clauses, are brackets like any other, as no formula is split here.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NoReturn

from lark import Token

from hylift.language.report import fail
from hylift.language.syntax import FUNCTIONS, Place, Source
from hylift.language.text.notation import is_capital, quote

_WITH_BARS = [["NORMAL"], ["DENSITY"], ["PREDICATE"], ["FUNCTION"]]
"""The owners of brackets in which a bar is not "or": distributions, or what should be one."""

_COMPARISONS = ("EQUALS", "COMPARE")


def is_marked(tokens: Iterable[Token]) -> bool:
    """True if a file marks its variables: `?x`."""
    return any(token.type == "MARKED" for token in tokens)


def without_marks(statement: list[Token], source: Source) -> list[Token]:
    """A statement of a file with marked variables: its other words in atoms as quoted constants."""
    if _is_declaration(statement):
        return statement
    owners: list[Token | None] = []
    result = []
    for before, token, after in zip(
        [None, *statement], statement, [*statement[1:], None], strict=False
    ):
        if token == "(":
            owners.append(before if before is not None and before.type == "NAME" else None)
        elif token == ")" and owners:
            owners.pop()
        elif token.type == "MARKED":
            token = _variable(token, source)
        elif token.type == "NAME" and not is_capital(token):
            if before is not None and before.type in ("EXIST", "FORALL"):
                _fail(f"the variables of this file are marked: write '?{token}'", token, source)
            owner = owners[-1] if owners else None
            is_argument = owner is not None and owner not in FUNCTIONS and after != "("
            beside = [other.type for other in (before, after) if other is not None]
            if is_argument or any(kind in _COMPARISONS for kind in beside):
                token = token.update(type="STRING", value=quote(token))
        result.append(token)
    return result


def _is_declaration(statement: list[Token]) -> bool:
    """True for a list of constants, an include, and a predicate with the names of its types."""
    kinds = [token.type for token in statement]
    if kinds[0] in ("CONST", "INCLUDE") or kinds[1:3] == ["EQUALS", "LBRACE"]:
        return True
    is_atom = kinds[:2] == ["NAME", "LPAR"] and kinds[-1] == "RPAR"
    return is_atom and set(kinds[2:-1]) <= {"NAME", "BANG", "COMMA"}


def _variable(token: Token, source: Source) -> Token:
    name = token[1:]
    if is_capital(name):
        small = name[0].lower() + name[1:]
        _fail(
            f"'{token}' is a variable, which begins with a small letter: '?{small}'", token, source
        )
    start, column = (token.start_pos or 0) + 1, (token.column or 0) + 1
    return Token(
        "NAME", name, start, token.line, column, token.end_line, token.end_column, token.end_pos
    )


def _fail(message: str, token: Token, source: Source) -> NoReturn:
    line, column = token.line or 1, token.column or 1
    fail(message, Place(source, line, column, column + len(token)))


def settle_brackets(statement: list[Token]) -> None:
    """Retypes bars outside distributions, and square brackets around formulas."""
    owners: list[str] = []
    opened: list[str] = []
    for place, token in enumerate(statement):
        if token in ("(", "[", "{"):
            is_bound = place > 1 and statement[place - 2].type == "COLON"  # real[0, 1]
            if token == "[" and "GAUSSIAN" not in owners and not is_bound:
                token.type = "LPAR"
            owners.append(statement[place - 1].type if place else "")
            opened.append(token.type)
        elif token in (")", "]", "}"):
            owners.pop()
            if opened.pop() == "LPAR":
                token.type = "RPAR"
        elif token == "|" and owners[-1:] not in _WITH_BARS:
            is_double = token in statement[place + 1 : place + 2]  # '||' is refused with a hint
            statement[place] = token if is_double else token.update(type="OR", value="v")


def with_reversed_arrow(statement: list[Token]) -> list[Token]:
    """The statement with `:-` as one token, LoMRF's `a :- b` for `b => a`."""
    kinds = [token.type for token in statement]
    if "COLON" not in kinds or not {"AGGREGATE", "EXACTLY", "LBRACE"}.isdisjoint(kinds):
        return statement
    at = kinds.index("COLON")
    if kinds[at + 1 : at + 2] != ["MINUS"] or statement[at].end_pos != statement[at + 1].start_pos:
        return statement
    arrow = statement[at].update(type="IF", value=":-")
    return [*statement[:at], arrow, *statement[at + 2 :]]
