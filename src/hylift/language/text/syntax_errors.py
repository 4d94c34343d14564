"""Error messages about tokens that the grammar does not allow."""

from __future__ import annotations

from lark import Token

from hylift.language.syntax import CATEGORICAL, DENSITIES
from hylift.language.text.notation import ALL_FUNCTIONS, distribution_hint, sign_hint, word_hint
from hylift.language.text.tokens import BRACKETS, grammar, quoted
from hylift.words import Wording, worded

_OPERATORS = {"IFF", "IMPLIES", "OR", "AND", "EQUALS", "COMPARE", "PLUS", "MINUS", "STAR", "SLASH"}
_OPERATORS |= {"POWER", "LIST_EQUALS", "IF"}
_OPERANDS = {"NAME", "NUMBER", "STRING", "TRUE", "FALSE", "PREDICATE", "FUNCTION", "GAUSSIAN"}
_OPERANDS |= {"NORMAL", "DENSITY", "LPAR", "MINUS", "BANG"}
_OPERANDS |= {"EXIST", "FORALL", "AGGREGATE", "EXACTLY"}
_CONSTANTS = {"NAME", "STRING", "NUMBER", "MINUS"}

_IN_WORDS = {"NAME": "a name", "NUMBER": "a number", "STRING": "a text in quotes"}
_IN_WORDS |= {"$END": "the end of the line"}


def unexpected(statement: list[Token], position: int, accepted: set[str]) -> str:
    """The error about the token at a position, or about the end of the statement."""
    before, token = statement[:position], (*statement, None)[position]
    found = "the end of the line" if token is None else quoted(token)
    message = f"expected {_either(_in_words(accepted))}{_after(before)}, not {found}"
    message += _context(before, token)
    if token is None:
        return message
    advice = _instead(before, token) or _advice(statement, position, accepted)
    return worded(message, "; ", advice) if advice else message


def _context(before: list[Token], token: Token | None) -> str:
    """The bracket that is still open, and what it belongs to."""
    opened = _innermost(before)
    if opened is None:
        return ""
    bracket, text = before[opened], ""
    if opened and (name := before[opened - 1]).type == "PREDICATE":
        text = f", in the arguments of {quoted(name)}"
        if name.end_pos != bracket.start_pos:
            text += f"; a weight {quoted(name)} needs its 'const' above this line"
    if token is not None and token.line != bracket.line:
        text += f"; {quoted(bracket)} of line {bracket.line} is still open"
    return text


def _instead(before: list[Token], token: Token) -> str:
    """The hint for a sign or word of another language."""
    is_pair = before and before[-1].end_pos == token.start_pos
    found = (is_pair and sign_hint(before[-1] + token)) or sign_hint(token)
    opened = _innermost(before)
    called = before[opened - 1 : opened] if opened else []
    if token.type == "BAR" and called and called[0].type == "PREDICATE":
        return distribution_hint(called[0])
    words = [token, *reversed(before[-2:]), *called]
    hints = (word_hint(word) for word in words if word.type in ("NAME", "PREDICATE"))
    return found or next(filter(None, hints), "")


def _advice(statement: list[Token], position: int, accepted: set[str]) -> str:
    before, token = statement[:position], statement[position]
    if not before and token.type in _OPERATORS:
        after = statement[position + 1 : position + 2]
        if token == "*" and after and after[0].start_pos == token.end_pos:
            return worded(
                f"Alchemy's '*{after[0]}(x)' stands for the atom and for its negation, each with a "
                "weight of its own: write a rule for each; name closed-world predicates when "
                "grounding, by ",
                Wording("closed=…", "--closed"),
            )
        return "to continue a line, put the operator at its end, not at the start of the next"
    if token.type in ("EQUALS", "COMPARE") and "STAR" in accepted:
        return "comparisons cannot be chained: put one in brackets, or join two by '^'"
    if token.type == "WHERE" and _innermost(before) is not None:
        return "conditions are at the end of a rule: multiply by a relation, as in 'A(x) * …'"
    if bound := _unbound(before):
        return f"write '{bound}'"
    is_second = token.type == "NUMBER" and before and before[-1].type == "NUMBER"
    if is_second and [other.type for other in before[:2]] == ["PREDICATE", "LPAR"]:
        advice = f"declare '{before[0]}' alone and add the rule 'log({before[-1]} / {token}) …'"
        return f"Forclift's weights of true and false are one weight here: {advice}"
    if before and before[-1] == ":" and _innermost(before) is None:
        return _after_colon(before, token)
    return _in_brackets(before, token)


def _unbound(before: list[Token]) -> str:
    """The form of a sum or count whose colon is still missing; empty if there is none."""
    for token in reversed(before[-4:]):
        if token.type == "COLON":
            return ""
        if token.type in ("AGGREGATE", "EXACTLY"):
            return "EXACTLY 2 x: A(x)" if token.type == "EXACTLY" else f"{token} x: …"
    return ""


def _after_colon(before: list[Token], token: Token) -> str:
    if token == "real":
        return "write an interval as 'real[0, 1]'"
    if before[-2].type == "NUMBER":
        return "write a weight before its formula without a colon; utilities are not supported"
    return ""


def _in_brackets(before: list[Token], token: Token) -> str:
    """Advice that depends on what the innermost bracket belongs to."""
    opened = _innermost(before)
    if opened is None:
        return ""
    owner = before[opened - 1].type if opened else ""
    if before[opened] == "[" and owner == "BAR":
        return "probabilities are written with their states, '{A: 0.2, B: 0.8}'"
    if before[opened] == "{" and not opened and token == ",":
        return "put several constants in brackets, as in '{(A, B): 0.5}'"
    if owner == "NORMAL":
        return "write 'normal(value | mean, variance)'"
    if owner == "DENSITY":
        name = before[opened - 1]
        if name == CATEGORICAL:
            return "write 'categorical(A(x) | table, conditions)'"
        return f"write '{name}(value | {', '.join(DENSITIES[name])})'"
    if owner == "GAUSSIAN":
        return "write 'gaussian(a, b; mean=[0, 0], cov=[[1, 0], [0, 1]])'"
    if owner == "PREDICATE" and token.type in ("PREDICATE", "FUNCTION"):
        return f"the arguments of atoms are variables and constants, and {ALL_FUNCTIONS}"
    return ""


def _in_words(accepted: set[str]) -> list[str]:
    words = []
    if "STAR" in accepted and "PLUS" in accepted:
        # Another operand may follow as well, after a weight; but what is missing is an operator.
        words.append("an operator")
        accepted = accepted - _OPERATORS - _OPERANDS
    elif "CONST" in accepted:
        return ["a statement"]
    elif {"PREDICATE", "LPAR"} <= accepted:
        words.append("a formula")
        accepted = accepted - _OPERANDS
    elif accepted >= _CONSTANTS:
        words += ["a variable", "a constant"] if "PLUS" in accepted else ["a constant"]
        accepted = accepted - _CONSTANTS - {"PLUS", "PREDICATE"}
    elif "BANG" in accepted:
        accepted = accepted - {"BANG", "PLUS", "MINUS"}  # rare behind an argument
    return words + sorted(map(_word, accepted))


def _word(terminal: str) -> str:
    if terminal in _IN_WORDS:
        return _IN_WORDS[terminal]
    return quoted(grammar().get_terminal(terminal).pattern.value)


def _either(words: list[str]) -> str:
    return " or ".join(filter(None, [", ".join(words[:-1]), words[-1]]))


def _after(before: list[Token]) -> str:
    if not before:
        return ""
    is_table = before[0] == "{" and before[-1] == "}"
    return " after the weight" if is_table else f" after {quoted(before[-1])}"


def _innermost(tokens: list[Token]) -> int | None:
    """The position of the bracket that was opened last and is still open."""
    opened: list[int] = []
    for position, token in enumerate(tokens):
        if token in BRACKETS:
            opened.append(position)
        elif token in BRACKETS.values():
            opened.pop()
    return opened[-1] if opened else None
