"""Alchemy's .db files: one ground atom a line, true, false, unknown, with a value or a probability.

PartOf(A1_2, LA1)     !PartOf(A1_2, LA2)     ?PartOf(A1_3, LA1)
Length(A1_1) 0.098    0.6 PartOf(A1_4, LA1)  recession 0.3
Ann = motherOf(Bob)   person = {Ann, Bob}
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import NoReturn

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hylift.errors import FormatError
from hylift.files import read_text

QUOTED = 80
"""Longest piece of a line that an error quotes."""

SCHEMA = pa.schema(
    [
        ("predicate", pa.string()),
        ("arguments", pa.list_(pa.string())),
        ("value", pa.float64()),
        ("sd", pa.float64()),
        ("form", pa.string()),
        ("line", pa.int64()),
    ]
)

NUMBER = r"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?"
NAME = r"[\pL_][\pL\pN_']*"
ATOM = (
    rf"^(?:[!?]\s*{NAME}(?:\s*\([^()]*\))?|{NUMBER}\s+{NAME}(?:\s*\([^()]*\))?|"
    rf"{NAME}(?:\s*\([^()]*\)\s*(?:{NUMBER})?|\s+{NUMBER})?)$"
)
"""A line without quotes, and without blanks around it."""

PARTS = (
    r"^(?:(?P<sign>[!?])\s*|(?P<before>[-+.0-9]\S*)\s+)?(?P<predicate>[^-+.0-9!?\s(][^\s(]*)\s*"
    r"(?:\((?P<words>[^)]*)\)\s*)?(?P<behind>[^\s(]*)$"
)
"""The parts of a line that is an atom; faster than one pattern for both, as it matches in only one
way."""

WORD = r'"(?:[^"\\]|\\.)*"|[^,()"\s\pZ\v\x1c-\x1f\x{85}]+'
"""An argument, quoted or without blanks."""

EQUATION = r'^(?:"(?:[^"\\]|\\.)*"|[^\s,(){}"=!?]+)\s*=\s*[^\s=]'
"""A line that gives the value of a function or lists the constants of a type."""

MOST_QUOTED = 8
"""Most arguments of lines with quotes that are read together."""

COMMENT = re.compile(r'"(?:[^"\\\n]|\\.)*"|//[^\n]*|/\*.*?(?:\*/|\Z)', re.DOTALL)
"""A comment; or a quoted text, in which nothing is a comment."""


def read_facts(path: str | Path) -> pa.Table:
    """The facts of a file, in order: predicate, arguments, value, sd, form, line.

    `form` says how a fact is written: `true`, `false`, `unknown`, `number` (behind the atom) or
    `probability` (before it). The value is 1 or 0 for the first two, null for the third; `sd` is 0.
    The value of a function is its last argument; and `constant` is the form of the constants of a
    type, whose name is in place of the predicate.
    """
    text = _without_comments(path, _without_zeros(path, read_text(path)))
    lines = pc.utf8_trim_whitespace(pc.split_pattern(pa.array([text]), "\n").flatten())
    number = np.flatnonzero(pc.not_equal(lines, "").to_numpy(zero_copy_only=False)) + 1
    lines = lines.filter(pc.not_equal(lines, ""))
    if "=" in text:
        is_equation = pc.match_substring_regex(lines, EQUATION).to_numpy(zero_copy_only=False)
        if is_equation.any():
            at = number[is_equation].tolist()
            equations = _equations(path, text.split("\n"), at)
            lines, number = lines.filter(pa.array(~is_equation)), number[~is_equation]
            facts = _facts(path, text, lines, number)
            return pa.concat_tables([facts, equations]).sort_by("line").combine_chunks()
    return _facts(path, text, lines, number)


def _facts(
    path: str | Path, text: str, lines: pa.StringArray, number: NDArray[np.int64]
) -> pa.Table:
    """The facts of lines that are atoms; number: (line,) their places in the text."""
    is_quoted = pc.match_substring(lines, '"').to_numpy(zero_copy_only=False)

    plain = lines.filter(pa.array(~is_quoted))
    facts, is_fact = _plain_facts(plain, number[~is_quoted])
    if is_fact.all() and not is_quoted.any():
        return facts
    all_lines = text.split("\n")
    for line in number[~is_quoted][~is_fact][:1].tolist():
        reader = _LineReader(path, all_lines[line - 1], line)
        reader.fact()  # says what is wrong
        reader.fail("expected a ground atom")
    quoted, rest = _quoted_facts(lines.filter(pa.array(is_quoted)), number[is_quoted])
    rows = [_LineReader(path, all_lines[line - 1], line).fact() for line in rest.tolist()]
    kinds = [pa.string(), pa.string(), pa.string(), pa.list_(pa.string()), pa.string()]
    sign, before, predicate, arguments, behind = (
        pa.array([row[at] for row in rows], kind) for at, kind in enumerate(kinds)
    )
    parts = [facts, *quoted, _table(sign, before, predicate, arguments, behind, rest)]
    return pa.concat_tables(parts).sort_by("line").combine_chunks()


def _equations(path: str | Path, lines: list[str], number: list[int]) -> pa.Table:
    """The facts of lines such as `Ann = motherOf(Bob)` and `person = {Ann, Bob}`."""
    rows: list[dict[str, object]] = []
    for line in number:
        form, found = _LineReader(path, lines[line - 1], line).equation()
        for predicate, arguments in found:
            rows.append({"predicate": predicate, "arguments": arguments, "value": 1.0})
            rows[-1] |= {"sd": 0.0, "form": form, "line": line}
    return pa.Table.from_pylist(rows, schema=SCHEMA)


def _without_zeros(path: str | Path, text: str) -> str:
    """The text without zero bytes at its end, with which some programs pad it."""
    text = text.rstrip("\0")
    at = text.find("\0")
    if at >= 0:
        line, column = text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at)
        message = "a zero byte: the file is damaged, or is not a text file"
        raise FormatError(path, message, line=line, column=column)
    return text


def _without_comments(path: str | Path, text: str) -> str:
    """The text with comments blanked out, so that lines and columns stay the same."""
    if "//" not in text and "/*" not in text:
        return text

    def blank(match: re.Match[str]) -> str:
        found = match.group()
        if found.startswith('"'):
            return found
        if found.startswith("/*") and (len(found) < 4 or not found.endswith("*/")):
            start = match.start()
            line = text.count("\n", 0, start) + 1
            column = start - text.rfind("\n", 0, start)
            raise FormatError(path, "the comment /* has no end */", line=line, column=column)
        return re.sub(r"[^\n]", " ", found)

    return COMMENT.sub(blank, text)


def _plain_facts(
    lines: pa.StringArray, number: NDArray[np.int64]
) -> tuple[pa.Table, NDArray[np.bool_]]:
    """The facts of lines without quotes; and (line,) whether each line is one."""
    is_atom = pc.match_substring_regex(lines, ATOM)
    parts = pc.extract_regex(pc.if_else(is_atom, lines, None), PARTS)
    sign, before, predicate, words, behind = (
        _not_empty(pc.struct_field(parts, name))
        for name in ("sign", "before", "predicate", "words", "behind")
    )
    arguments, is_fact = _split(words)
    is_fact &= is_atom.to_numpy(zero_copy_only=False)

    return _table(sign, before, predicate, arguments, behind, number), is_fact


def _quoted_facts(
    lines: pa.StringArray, number: NDArray[np.int64]
) -> tuple[list[pa.Table], NDArray[np.int64]]:
    """The facts of lines with quotes, by the number of their arguments; the numbers of the rest."""
    tables = []
    for count in range(1, MOST_QUOTED + 1):
        if not len(lines):
            break
        parts = pc.extract_regex(lines, _quoted_pattern(count))
        columns = [_not_empty(part) for part in parts.flatten()]
        sign, before, behind = columns[0], columns[1], columns[-1]
        says_more = pc.and_(behind.is_valid(), pc.or_(sign.is_valid(), before.is_valid()))
        is_fact = pc.and_not(parts.is_valid(), says_more)
        sign, before, predicate, *words, behind = (part.filter(is_fact) for part in columns)
        arguments = _rows([_unquoted(word) for word in words])
        keep = is_fact.to_numpy(zero_copy_only=False)
        tables.append(_table(sign, before, predicate, arguments, behind, number[keep]))
        lines, number = lines.filter(pa.array(~keep)), number[~keep]
    return tables, number


def _quoted_pattern(count: int) -> str:
    """The parts of a line with this many arguments, with or without quotes."""
    words = r"\s*,\s*".join(f"(?P<word{place}>{WORD})" for place in range(count))
    return (
        rf"^(?:(?P<sign>[!?])\s*|(?P<before>{NUMBER})\s+)?(?P<predicate>{NAME})\s*"
        rf"\(\s*{words}\s*\)\s*(?P<behind>{NUMBER})?$"
    )


def _unquoted(words: pa.StringArray) -> pa.StringArray:
    inner = pc.replace_substring_regex(pc.utf8_slice_codeunits(words, 1, -1), r"\\(.)", r"\1")
    return pc.if_else(pc.starts_with(words, '"'), inner, words)


def _rows(columns: list[pa.StringArray]) -> pa.ListArray:
    """Lists with one entry of each column."""
    count = len(columns[0])
    order = np.arange(len(columns) * count).reshape(len(columns), count).T.ravel()
    offsets = np.arange(count + 1) * len(columns)
    flat = pa.concat_arrays(columns).take(pa.array(order))
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), flat)


def _table(
    sign: pa.StringArray,
    before: pa.StringArray,
    predicate: pa.StringArray,
    arguments: pa.ListArray,
    behind: pa.StringArray,
    number: NDArray[np.int64],
) -> pa.Table:
    """The facts of lines from their parts, null where a line lacks one."""
    is_false, is_unknown = (pc.fill_null(pc.equal(sign, mark), False) for mark in "!?")
    digits = pc.utf8_ltrim(pc.coalesce(behind, before), "+")
    truth = pc.if_else(is_unknown, None, pc.if_else(is_false, 0.0, 1.0))
    form = pc.case_when(
        pc.make_struct(behind.is_valid(), before.is_valid(), is_false, is_unknown),
        "number",
        "probability",
        "false",
        "unknown",
        "true",
    )
    value = pc.coalesce(pc.cast(digits, pa.float64()), truth)
    sd = pa.array(np.zeros(len(number)))
    columns = [predicate, arguments, value, sd, form, pa.array(number, pa.int64())]
    return pa.table(columns, schema=SCHEMA)


def _split(words: pa.StringArray) -> tuple[pa.ListArray, NDArray[np.bool_]]:
    """The arguments between the brackets of each line; and (line,) whether they are words."""
    blank = pc.equal(pc.utf8_trim_whitespace(words), "")
    lists = pc.split_pattern(pc.if_else(blank, None, words), ",")
    counts = pc.fill_null(pc.list_value_length(lists), 0).to_numpy(zero_copy_only=False)
    offsets = np.concatenate([[0], np.cumsum(counts)])
    flat = pc.utf8_trim_whitespace(lists.flatten())
    is_word = pc.match_substring_regex(flat, r"^\S+$").to_numpy(zero_copy_only=False)
    is_fact = np.ones(len(words), dtype=bool)
    is_fact[np.searchsorted(offsets, np.flatnonzero(~is_word), side="right") - 1] = False
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), flat), is_fact


def _not_empty(part: pa.StringArray) -> pa.StringArray:
    return pc.if_else(pc.equal(part, ""), None, part)


class _LineReader:
    """A slow reader of one line, which says where the line is wrong."""

    def __init__(self, path: str | Path, text: str, line: int) -> None:
        self.path, self.line, self.text = path, line, text
        self.at = 0

    def fact(self) -> tuple[str | None, str | None, str, list[str], str | None]:
        """Sign, number before, predicate, arguments and number behind."""
        if re.fullmatch(r"\s*-{3,}\s*", self.text):
            self.fail("several databases in one file: write each to a file of its own")
        sign = self._take(r"[!?]")
        before = self._take(rf"{NUMBER}(?=\s)") if not sign else ""
        predicate = self._take(r"[^\W\d][\w']*") or self.fail("expected the name of a predicate")
        has_bracket = self._take(r"\(")
        arguments = self._words(")") if has_bracket else []
        apart = "" if has_bracket else r"(?<=\s)"
        behind = self._take(rf"{apart}{NUMBER}(?=\s|$)") if not sign and not before else ""
        if self.at < len(self.text.rstrip()):
            self.fail("expected the end of the line" if sign or before else "expected a number")
        return sign or None, before or None, predicate, arguments, behind or None

    def equation(self) -> tuple[str, list[tuple[str, list[str]]]]:
        """The form, and predicates with arguments or a type with each of its constants."""
        word = self._constant(r'[^\s,(){}"=]+')
        self._take("=")
        if self._take(r"\{"):
            form, found = "constant", [(word, [name]) for name in self._words("}")]
        else:
            name = self._take(r"[^\W\d][\w']*") or self.fail("expected a function or a list {…}")
            self._take(r"\(") or self.fail("expected '('")
            form, found = "true", [(name, [*self._words(")"), word])]
        if self.at < len(self.text.rstrip()):
            self.fail("expected the end of the line")
        return form, found

    def _words(self, end: str) -> list[str]:
        """The constants up to a closing bracket."""
        words: list[str] = []
        if self._take(re.escape(end)):
            return words
        while True:
            words.append(self._constant(r'[^\s,()"]+' if end == ")" else r'[^\s,(){}"]+'))
            if self._take(re.escape(end)):
                return words
            if not self._take(","):
                self.fail(f"expected ',' or '{end}'")

    def _constant(self, word: str) -> str:
        if quoted := self._take(r'"(?:[^"\\]|\\.)*"'):
            return re.sub(r"\\(.)", r"\1", quoted[1:-1])
        return self._take(word) or self.fail("expected a constant")

    def _take(self, pattern: str) -> str:
        """The match of a pattern after blanks here, or an empty string."""
        found = re.compile(rf"\s*({pattern})").match(self.text, self.at)
        if not found:
            return ""
        self.at = found.end()
        return found.group(1)

    def fail(self, expected: str) -> NoReturn:
        """Raise a `FormatError` where reading stopped."""
        rest = self.text[self.at :]
        column = self.at + len(rest) - len(rest.lstrip()) + 1
        line = self.text.strip()
        shown = line if len(line) <= QUOTED else line[: QUOTED - 1] + "…"
        raise FormatError(self.path, f"{expected}: '{shown}'", line=self.line, column=column)
