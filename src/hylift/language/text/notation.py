"""Notation of names, numbers and lists of constants; hints for other notations."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence

from hylift.errors import did_you_mean
from hylift.language.ranges import INTEGER, NUMBERED, Constants, Range
from hylift.language.syntax import AGGREGATES, CATEGORICAL, DENSITIES, FUNCTIONS, Quantifier

QUANTIFIERS: dict[str, Quantifier] = {
    "EXIST": "EXIST",
    "Exist": "EXIST",
    "exist": "EXIST",
    "FORALL": "FORALL",
    "Forall": "FORALL",
    "forall": "FORALL",
}
"""The spellings of each quantifier; the formatter writes capitals."""

NUMERIC: dict[str, Quantifier] = {name: name for name in AGGREGATES}
"""Those that are numbers, and words like any other unless a variable follows."""

KEYWORDS = frozenset({"true", "false", "where", "const", *QUANTIFIERS})

MAX_CONSTANTS = 10_000_000
"""Maximum number of constants that a type may list."""

MAX_DIGITS = 15
"""Maximum number of digits at the ends of a range."""

MAX_SHIFT = 999_999_999
"""Maximum shift of a variable."""

SHORTEST_RANGE = 4
"""Minimum number of consecutive constants that are written as a range."""

_NAME = re.compile(r"[^\W\d][\w']*")
_NUMERAL = re.compile(r"-?([0-9]+(\.[0-9]+)?|\.[0-9]+)([eE][+-]?[0-9]+)?")
_ESCAPE = re.compile(r"\\(.)")
_ESCAPED = {"\\": "\\", '"': '"', "n": "\n", "r": "\r", "t": "\t"}


def is_name(text: str) -> bool:
    """True if the text may be the name of something."""
    return _NAME.fullmatch(text) is not None and text not in KEYWORDS


def is_numeral(text: str) -> bool:
    """True if the text is a number, signed or not."""
    return _NUMERAL.fullmatch(text) is not None


def is_capital(name: str) -> bool:
    """True if a word is a constant where variables may occur, too."""
    return name[0].isupper()


def quote(text: str) -> str:
    """The text in quotes."""
    for letter, meaning in _ESCAPED.items():
        text = text.replace(meaning, f"\\{letter}")
    return f'"{text}"'


def unquote(text: str) -> str:
    """The text between the quotes; a `ValueError` has the unknown escape sequence."""

    def meaning(found: re.Match[str]) -> str:
        if found[1] not in _ESCAPED:
            raise ValueError(found[0])
        return _ESCAPED[found[1]]

    return _ESCAPE.sub(meaning, text[1:-1])


def listed(name: str) -> str:
    """A constant as it is written in the list of a type."""
    return name if is_name(name) or is_numeral(name) else quote(name)


def number_text(value: float) -> str:
    """The shortest text that reads back as the same number."""
    text = "inf" if math.isinf(value) else repr(abs(float(value))).removesuffix(".0")
    return f"-{text}" if math.copysign(1.0, value) < 0 else text


def constants_between(first: str, last: str) -> Range:
    """All constants from `first` to `last`; raises `ValueError` if there is no such range."""
    prefix, lowest, highest, width = _range_ends(first, last)
    if lowest > highest:
        raise ValueError(f"{first!r} comes after {last!r}")
    if highest - lowest >= MAX_CONSTANTS:
        raise ValueError(
            f"it would have {highest - lowest + 1:,} constants; the maximum is {MAX_CONSTANTS:,}"
        )
    return Range(prefix, range(lowest, highest + 1), width)


def _range_ends(first: str, last: str) -> tuple[str, int, int, int]:
    """The common prefix, the first and last number, and the number of digits if padded."""
    if max(len(first), len(last)) > 100 or not (
        (low := NUMBERED.fullmatch(first)) and (high := NUMBERED.fullmatch(last))
    ):
        raise ValueError(f"{first!r} and {last!r} do not both end in a number")
    if max(len(low[2]), len(high[2])) > MAX_DIGITS:
        raise ValueError("its numbers are too long")
    if INTEGER.fullmatch(first) and INTEGER.fullmatch(last):
        return "", int(first), int(last), 0
    if low[1] != high[1]:
        raise ValueError(f"they begin with {low[1]!r} and {high[1]!r}")
    padded = [digits for digits in (low[2], high[2]) if len(digits) > 1 and digits[0] == "0"]
    if padded and len(low[2]) != len(high[2]):
        raise ValueError(f"{low[2]!r} and {high[2]!r} differ in their number of digits")
    return low[1], int(low[2]), int(high[2]), len(low[2]) if padded else 0


def constant_list(constants: Sequence[str]) -> str:
    """The constants between braces, consecutive ones as a range."""
    return f"{{{', '.join(_runs(constants))}}}"


def key_text(constants: Sequence[str]) -> str:
    """The constants as a key of a table of weights."""
    text = ", ".join(map(listed, constants))
    return text if len(constants) == 1 else f"({text})"


def _runs(constants: Sequence[str]) -> Iterator[str]:
    if isinstance(constants, Constants):
        for part in constants.parts:
            yield from _runs(part)
        return
    if isinstance(constants, Range):
        yield f"{listed(constants[0])}, ..., {listed(constants[-1])}"
        return
    start = 0
    while start < len(constants):
        stop = _end_of_run(constants, start)
        if stop - start >= SHORTEST_RANGE:
            yield f"{listed(constants[start])}, ..., {listed(constants[stop - 1])}"
        else:
            stop = start + 1
            yield listed(constants[start])
        start = stop


def _end_of_run(constants: Sequence[str], start: int) -> int:
    """One past the last of the consecutive constants from `start`."""
    try:
        prefix, number, _, width = _range_ends(constants[start], constants[start])
    except ValueError:
        return start + 1
    stop = start + 1
    longest = len(constants[start]) if width else len(prefix) + MAX_DIGITS
    while stop < len(constants) and len(constants[stop]) <= longest:
        if constants[stop] != f"{prefix}{number + stop - start:0{width}d}":
            break
        stop += 1
    return stop


# Hints about signs and words of other languages.

_AND, _OR, _NOT = "'and' is written '^'", "'or' is written 'v'", "'not' is written '!'"
_IMPLIES, _IFF = "'implies' is written '=>'", "'if and only if' is written '<=>'"
_EXIST, _FORALL = "'there is' is written 'EXIST x'", "'for all' is written 'FORALL x'"
_MINUS = "minus is written '-'"
_COMMENT = "comments begin with '//'"
_NORMAL = "'x ~ normal(m, v)' is written 'normal(x | m, v)', where v is the variance"

_SIGNS = {
    **dict.fromkeys("&∧", _AND),
    **dict.fromkeys(("∨", "||", "|"), _OR),
    "¬": _NOT,
    "~": f"{_NOT}, and {_NORMAL}",
    **dict.fromkeys("→⇒", _IMPLIES),
    **dict.fromkeys("↔⇔", _IFF),
    "∃": _EXIST,
    "∀": _FORALL,
    **dict.fromkeys("−–—", _MINUS),
    **dict.fromkeys("×·", "times is written '*'"),
    "≠": "'not equal' is written '!='",
    "≤": "'at most' is written '<='",
    "≥": "'at least' is written '>='",
    "'": 'quotes are written "',
    "#": f"{_COMMENT}, and '#include' and '#fixweight' are the only instructions",
    "%": _COMMENT,
    "$": "a named number is declared as in 'const N = 3', and written 'N'",
    "\\": f"{_EXIST}, and {_FORALL}",
    "?": "variables are marked as in 'Smokes(?x)', or not at all",
    "->": _IMPLIES,
    "==": "'equal' is written '=' between terms or numbers, and '<=>' between truth values",
    "<>": "'not equal' is written '!='",
    "=<": "'at most' is written '<='",
    "**": "powers are written 'x^2'",
}

_OVER = {"sum": "SUM", "mean": "AVG", "average": "AVG", "avg": "AVG", "count": "COUNT"}

_LOGIT = "a probability by its log-odds is written 'bernoulli_logit(A(x) | score)'"
_AT_LEAST = "'at least two' is written 'COUNT x: A(x) >= 2'"

_WORDS = {
    **dict.fromkeys(("logit", "sigmoid", "logistic", "expit", "inv_logit"), _LOGIT),
    **dict.fromkeys(("probit", "phi"), "a probit is written 'bernoulli_probit(A(x) | score)'"),
    **dict.fromkeys(("atleast", "least"), _AT_LEAST),
    **dict.fromkeys(("atmost", "most"), "'at most two' is written 'COUNT x: A(x) <= 2'"),
    "exactly": "'exactly two' is written 'EXACTLY 2 x: A(x)', or 'COUNT x: A(x) = K'",
    **{word: f"over constants it is written '{name} x: …'" for word, name in _OVER.items()},
    "and": _AND,
    "or": _OR,
    "not": _NOT,
    "implies": _IMPLIES,
    "iff": _IFF,
    "exists": _EXIST,
    "forall": _FORALL,
    "true": "truth values are written 'true' and 'false'",
    "false": "truth values are written 'true' and 'false'",
    "inf": "for a hard rule, end it with a period in place of the weight",
    "infinity": "for a hard rule, end it with a period in place of the weight",
}

_FOREIGN = {"sqrt", "sin", "cos", "tan", "tanh", "ln", "log10", "log2", "pow"}
_FOREIGN |= {"square", "sign", "floor", "ceil", "round", "prod"}

ALL_FUNCTIONS = "the functions of numbers are " + " and ".join(
    [", ".join(list(FUNCTIONS)[:-1]), list(FUNCTIONS)[-1]]
)

_DOMAINS = {"bool": "boolean", "binary": "boolean", "logical": "boolean"}
_DOMAINS |= dict.fromkeys(("float", "double", "int", "integer", "number", "continuous"), "real")


_INSTEAD = {
    "uniform": "declare the number on an interval, as in 'x: real[0, 1]'",
    "cauchy": "write 'student(value | m, v, 1)'",
    "binomial": "write a 'bernoulli' for each trial",
    "multinomial": "write a 'categorical' for each trial",
}


def distribution_hint(name: str) -> str:
    """The error about a word that names no distribution, before `|` in its brackets."""
    known = ("normal", *DENSITIES, CATEGORICAL)
    meant = _INSTEAD.get(name.lower(), "") or _WORDS.get(name.lower(), "")
    text = f"there is no distribution '{name}'"
    return f"{text}: {meant or 'there are ' + ', '.join(known)}.{did_you_mean(name, known)}"


def sign_hint(signs: str) -> str:
    """The hint for one or two signs of another language; empty if unknown."""
    return _SIGNS.get(signs, "")


def word_hint(word: str) -> str:
    """The hint for a word of another language; empty if unknown."""
    if word == "in":
        return "there are no sets in formulas: compare with each constant, or write several rules"
    return ALL_FUNCTIONS if word in _FOREIGN else _WORDS.get(word.lower(), "")


def meant_domain(word: str) -> str:
    """The domain that a word of another language stands for; empty if unknown."""
    word = word.lower()
    return word if word in ("boolean", "real") else _DOMAINS.get(word, "")
