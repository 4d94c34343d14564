"""Tokens of a text, split into statements and typed by their neighbours; trees of statements."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

from lark import Lark, Token, Tree

from hylift.language.report import fail
from hylift.language.syntax import CATEGORICAL, DENSITIES, FUNCTIONS, Constant, Place, Source
from hylift.language.text.dialects import (
    is_marked,
    settle_brackets,
    with_reversed_arrow,
    without_marks,
)
from hylift.language.text.notation import NUMERIC, QUANTIFIERS, is_capital, sign_hint, unquote

MAX_BRACKETS = 1000
"""Maximum depth of nested brackets."""

_CALLED = {"gaussian": "GAUSSIAN", "normal": "NORMAL"} | dict.fromkeys(FUNCTIONS, "FUNCTION")

BRACKETS = {"(": ")", "[": "]", "{": "}"}

_ENDS_OPERAND = {"NAME", "MARKED", "NUMBER", "STRING", "TRUE", "FALSE", "POWER", "RPAR", "RSQB"}
_CONTINUES = {"IFF", "IMPLIES", "OR", "AND", "EQUALS", "COMPARE", "PLUS", "MINUS", "STAR", "SLASH"}
_CONTINUES |= {"BANG", "BAR", "COMMA", "COLON", "SEMICOLON", "WHERE"}

_LONGEST_QUOTE = 40


Branch = Tree[Token] | Token

_OF_EXPRESSIONS = {"binary", "unary", "power", "group", "call", "comparison"}
_OF_EXPRESSIONS |= {"density", "quantified", "exactly", "normal", "gaussian", "rule", "where"}
_OF_EXPRESSIONS |= {"implied"}
_OF_WEIGHTS = {"binary", "unary", "power", "group", "call"}
_OF_ARITHMETIC = {"PLUS", "MINUS", "STAR", "SLASH", "NAME", "NUMBER", "POWER", "FUNCTION"}


@cache
def grammar() -> Lark:
    """The parser of single statements, with its lexer; its tables are cached with the bytecode."""
    here = Path(__file__).parent
    return Lark(
        (here / "grammar.lark").read_text(encoding="utf-8"),
        cache=str(here / "__pycache__" / f"grammar.{sys.implementation.cache_tag}.lark"),
        parser="lalr",
        lexer="basic",
        start=["start", "unparsed"],
        propagate_positions=True,
        maybe_placeholders=False,
    )


def quoted(text: str) -> str:
    """A piece of the user's text for error messages: on one line, and not too long."""
    shown = str(text) if len(text) <= _LONGEST_QUOTE else f"{text[:_LONGEST_QUOTE]}…"
    return f"'{shown}'" if shown.isprintable() else ascii(shown)


def place_of(token: Token, source: Source) -> Place:
    """The place of a token; no token spans several lines."""
    line, column = token.line or 1, token.column or 1
    return Place(source, line, column, column + max(1, len(token)))


def statements(source: Source, consts: set[str]) -> Iterator[list[Token]]:
    """The tokens of each statement.

    consts: the names declared by `const` so far; new ones are added.
    """
    statement: list[Token] = []
    is_complete = False
    open_brackets: list[Token] = []
    tokens, has_marks = _tokens(source), False
    if "?" in source.text:
        tokens = list(tokens)
        has_marks = is_marked(tokens)

    def whole(statement: list[Token]) -> list[Token]:
        return _retyped(without_marks(statement, source) if has_marks else statement, consts)

    for token in tokens:
        if token.type == "NEWLINE":
            is_complete = not open_brackets and not _continues(statement)
            continue
        if is_complete and statement and token.type != "WHERE":
            yield whole(statement)
            statement = []
        is_complete = False
        _check_spacing(statement, token, source)
        if token == "v" and statement and _ends_operand(statement[-1]):
            token.type = "OR"
        _match_brackets(open_brackets, token, source)
        statement.append(token)
    if open_brackets:
        opened = open_brackets[-1]
        fail(f"{quoted(opened)} is never closed", place_of(opened, source))
    if statement:
        yield whole(statement)


def _tokens(source: Source) -> Iterable[Token]:
    lexer = grammar().parse_interactive(source.text, start="start").lexer_thread
    for token in lexer.lex(None):  # type: ignore[no-untyped-call]
        match token.type:
            case "UNCLOSED_STRING":
                fail("the text in quotes does not end on its line", place_of(token, source))
            case "UNCLOSED_COMMENT":
                fail("the comment is never closed: '*/' is missing", place_of(token, source))
            case "UNKNOWN":
                hint = sign_hint(token)
                message = f"{quoted(token)} is not allowed here{hint and f'; {hint}'}"
                fail(message, place_of(token, source))
            case "UNEQUAL":
                token = token.update(type="COMPARE", value="!=")
            case "NAME" if token in QUANTIFIERS:
                token.type = QUANTIFIERS[token]
        yield token


def _ends_operand(token: Token) -> bool:
    """True if an operator may follow a token; behind SUM and the like is a variable."""
    return token.type in _ENDS_OPERAND and token not in NUMERIC


def _continues(statement: list[Token]) -> bool:
    return bool(statement) and statement[-1].type in _CONTINUES


def _check_spacing(statement: list[Token], token: Token, source: Source) -> None:
    """Raise if letters or digits directly follow a number."""
    if statement and token.type in ("NAME", "NUMBER"):
        before = statement[-1]
        if before.type in ("NUMBER", "POWER") and before.end_pos == token.start_pos:
            whole = before.update(value=before + token)
            fail(f"{quoted(whole)} is not a number", place_of(whole, source))


def _match_brackets(open_brackets: list[Token], token: Token, source: Source) -> None:
    if token in BRACKETS:
        open_brackets.append(token)
        if len(open_brackets) > MAX_BRACKETS:
            message = f"brackets are nested more than {MAX_BRACKETS} deep"
            fail(message, place_of(token, source))
    elif token in BRACKETS.values():
        if not open_brackets:
            fail(f"{quoted(token)} closes no bracket", place_of(token, source))
        opened = open_brackets.pop()
        if BRACKETS[opened] != token:
            message = f"{quoted(token)} cannot close {quoted(opened)} of line {opened.line}"
            fail(message, place_of(token, source))


def _retyped(statement: list[Token], consts: set[str]) -> list[Token]:
    """The tokens with the types that depend on their neighbours."""
    is_binding = False  # between a quantifier and the last of its variables
    for place, (token, after) in enumerate(zip(statement, [*statement[1:], None], strict=True)):
        if token.type in ("EXIST", "FORALL"):
            is_binding = True
        elif is_binding:
            is_binding = after is not None and "COMMA" in (token.type, after.type)
        elif after is None:
            continue
        elif token in NUMERIC and after.type == "NAME" and token not in consts:
            token.type, is_binding = "AGGREGATE", True
        elif token == "EXACTLY" and after.type == "NUMBER" and token not in consts:
            token.type = "EXACTLY"
        elif token == "logx" and place == 0 and _is_weight_of_one_number(statement):
            token.type = "FUNCTION"
        elif token.type == "NAME" and after.type == "LPAR":
            # `W (x = 1)` is a weight before a formula, `In (p, t)` an atom.
            if token.end_pos == after.start_pos or token not in consts:
                token.type = _CALLED.get(token, "PREDICATE")
                if token in (*DENSITIES, CATEGORICAL) and _has_bar(statement, place + 1):
                    token.type = "DENSITY"
        elif token.type == "EQUALS" and after.type == "LBRACE":
            token.type = "LIST_EQUALS"
        elif token.type == "CONST" and after.type == "NAME":
            consts.add(str(after))
    settle_brackets(statement)
    return with_reversed_arrow(statement)


def _is_weight_of_one_number(statement: list[Token]) -> bool:
    """True for `logx(0.9) f`, pracmln's weight of a probability."""
    kinds = [token.type for token in statement[1:5]]
    return kinds[:3] == ["LPAR", "NUMBER", "RPAR"] and not {*kinds[3:], "PERIOD"} <= {
        *_CONTINUES - {"BANG"},
        "PERIOD",
    }


def _has_bar(statement: list[Token], opened: int) -> bool:
    """True if a bar follows in the brackets that are opened here, and in none within them."""
    depth = 0
    for token in statement[opened:]:
        depth += (token in BRACKETS) - (token in BRACKETS.values())
        if depth == 0 or (depth == 1 and token.type == "BAR"):
            return depth == 1
    return False


# Parse trees.


def place(branch: Branch, source: Source) -> Place:
    """The place of a branch; its first line if it spans several."""
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
    """A constant given by its name, in quotes or as a number."""
    *sign, token = [branch] if isinstance(branch, Token) else tokens_of(branch)
    where = place(branch, source)
    if token.type != "STRING":
        return Constant("".join([*sign, token]), place=where)
    try:
        return Constant(unquote(token), place=where)
    except ValueError as error:
        fail(f'{quoted(str(error))} is not an escape sequence: use \\" \\\\ \\n \\r or \\t', where)


def rule_variables(tree: Tree[Token]) -> set[str]:
    """The variables in the atoms and quantifiers of a rule."""
    names: set[str] = set()
    for branch in tree.iter_subtrees():
        if branch.data == "variable":
            names |= {str(token) for token in tokens_of(branch) if token.type == "NAME"}
        elif branch.data in ("quantified", "exactly"):
            names |= set(map(str, bound_variables(branch)))
    return {name for name in names if not is_capital(name)}


def bound_variables(tree: Tree[Token]) -> list[Token]:
    """The variables of a quantifier."""
    tokens = (child for child in tree.children[1:-1] if isinstance(child, Token))
    return [token for token in tokens if token.type == "NAME"]


def atom_words(tree: Tree[Token]) -> set[str]:
    """The words of a rule that may be predicates without arguments."""
    variables = rule_variables(tree)
    found = set()
    is_weighted = len(split_rule(tree)[0]) == 2
    for branch in Tree("rule", tree.children[is_weighted:]).iter_subtrees():
        if branch.data == "atom" and len(branch.children) == 1:
            found.add(str(branch.children[0]))
        elif branch.data in _OF_EXPRESSIONS:
            is_quantified = branch.data in ("quantified", "exactly")
            operands = branch.children[-1:] if is_quantified else branch.children
            found |= {str(word) for word in operands if _is_word(word)} - variables
    return found


def _is_word(branch: Branch) -> bool:
    return isinstance(branch, Token) and branch.type == "NAME"


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


def chain(branch: Branch, op: str) -> list[Branch]:
    """The parts that an operator joins outside brackets; any other branch by itself."""
    parts = []
    while isinstance(branch, Tree) and branch.data == "binary" and branch.children[1] == op:
        branch, _, last = branch.children
        parts.append(last)
    return [branch, *reversed(parts)]


def is_number(branch: Branch) -> bool:
    """True if a branch is a number literal, signed or not."""
    if isinstance(branch, Tree) and branch.data == "unary" and branch.children[0] == "-":
        branch = branch.children[1]
    return isinstance(branch, Token) and branch.type == "NUMBER"


def is_weight(branch: Branch) -> bool:
    """True if a branch is arithmetic on numbers and words."""
    if isinstance(branch, Token):
        return branch.type in ("NAME", "NUMBER")
    parts = list(branch.iter_subtrees())
    tokens = (token for part in parts for token in tokens_of(part))
    return all(part.data in _OF_WEIGHTS for part in parts) and all(
        token.type in _OF_ARITHMETIC for token in tokens
    )
