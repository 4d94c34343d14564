"""What may have been meant by signs and words that other languages have and this one has not."""

from __future__ import annotations

from hylift.language.syntax import FUNCTIONS

_AND, _OR, _NOT = "'and' is written '^'", "'or' is written 'v'", "'not' is written '!'"
_IMPLIES, _IFF = "'implies' is written '=>'", "'if and only if' is written '<=>'"
_EXIST, _FORALL = "'there is' is written 'EXIST x'", "'for all' is written 'FORALL x'"
_MINUS = "minus is written '-'"
_COMMENT = "comments begin with '//'"
_NORMAL = "'x ~ normal(m, v)' is written 'normal(x | m, v)', where v is the variance"

_SIGNS = {
    **dict.fromkeys("&∧", _AND),
    **dict.fromkeys("|∨", _OR),
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
    **dict.fromkeys("#%", _COMMENT),
}

_PAIRS = {
    "->": _IMPLIES,
    "==": "'equal' is written '=' between terms or numbers, and '<=>' between truth values",
    "<>": "'not equal' is written '!='",
    "=<": "'at most' is written '<='",
    "**": "powers are written 'x^2'",
}

_WORDS = {
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

_FOREIGN = {"sqrt", "sin", "cos", "tan", "tanh", "ln", "log10", "log2", "pow", "sum", "mean"}
_FOREIGN |= {"sigmoid", "logistic", "square", "sign", "floor", "ceil", "round", "prod", "count"}

_NO_SETS = "there are no sets in formulas: compare with each constant, or write several rules"

ALL_FUNCTIONS = "the functions of numbers are " + " and ".join(
    [", ".join(list(FUNCTIONS)[:-1]), list(FUNCTIONS)[-1]]
)

_DOMAINS = {"bool": "boolean", "binary": "boolean", "logical": "boolean"}
_DOMAINS |= dict.fromkeys(("float", "double", "int", "integer", "number", "continuous"), "real")


def sign_hint(sign: str) -> str:
    """What to write in place of a sign; empty where nothing is known."""
    return _SIGNS.get(sign, "")


def pair_hint(signs: str) -> str:
    """What to write in place of two signs in a row."""
    return _PAIRS.get(signs, "")


def word_hint(word: str) -> str:
    """What to write in place of a word; capitals matter where predicates may well have its name."""
    if word == "in":
        return _NO_SETS
    return ALL_FUNCTIONS if word in _FOREIGN else _WORDS.get(word.lower(), "")


def meant_domain(word: str) -> str:
    """The domain that another word for it stands for; empty where nothing is known."""
    word = word.lower()
    return word if word in ("boolean", "real") else _DOMAINS.get(word, "")
