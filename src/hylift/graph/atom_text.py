"""Atoms as text: `loss(c3,b1)`."""

from __future__ import annotations

import re

import pyarrow as pa
import pyarrow.compute as pc


def split_atom(name: str) -> tuple[str, list[str]]:
    """`loss(c3, b1)` -> ('loss', ['c3', 'b1']); a name without arguments has none."""
    predicate, bracket, rest = name.partition("(")
    if not bracket:
        return name.strip(), []
    words = ARGUMENT.findall(rest.rstrip().removesuffix(")") + ",")
    return predicate.strip(), [
        plain.strip() if plain or not inside else re.sub(r"\\(.)", r"\1", inside)
        for inside, plain in words
    ]


ARGUMENT = re.compile(r'\s*(?:"((?:[^"\\]|\\.)*)"\s*|([^,]*)),')
"""A quoted or a plain argument, with the comma behind it."""


def quoted(words: pa.StringArray) -> pa.StringArray:
    """Words as they stand in an atom: in quotes where they would be misread without."""
    doubtful = pc.match_substring_regex(words, r'[,()"\\]|^\s|\s$|[[:cntrl:]]|^$')
    if not pc.any(doubtful).as_py():
        return words
    escaped = pc.replace_substring_regex(words, r'(["\\])', r"\\\1")
    return pc.if_else(doubtful, pc.binary_join_element_wise('"', escaped, '"', ""), words)
