"""Text -> Model."""

from __future__ import annotations

import os
import re
from pathlib import Path

from lark import Token, Tree
from lark.exceptions import UnexpectedToken

from hylift.errors import FormatError, ModelError
from hylift.files import read_text
from hylift.language.syntax import Model, Place, Source
from hylift.language.text.notation import unquote
from hylift.language.text.statements import Draft
from hylift.language.text.syntax_errors import unexpected
from hylift.language.text.tokens import fail, grammar, place_of, quoted, statements

SUFFIX = ".mln"
"""How the names of included files end."""

_PATH = re.compile(r"([\w:. ~-]|[/\\](?![/*]))+\.mln")

MAX_INCLUDES = 50
"""Most files that may include one another in a row."""


def parse(text: str, *, name: str = "<text>", folder: Path | None = None) -> Model:
    """The model that a text describes.

    Errors call the text `name`; files it includes are looked for in `folder`.
    """
    if _PATH.fullmatch(text.strip()):
        file = quoted(text.strip())
        raise ModelError(f"{file} is the name of a file, not a model: read it with 'read_model'")
    reader = _Reader()
    reader.read(_source(name, text), folder)
    return reader.draft.model()


def read_model(path: str | Path) -> Model:
    """The model in a file. Files it includes are looked for beside the file that includes them.

    A file that several others include is taken in once, where it is included first.
    """
    reader = _Reader()
    reader.read_file(Path(path))
    return reader.draft.model()


def _source(name: str, text: str) -> Source:
    lines = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    return Source(name, lines)


class _Reader:
    """Reads statements in order, those of included files where they are included."""

    def __init__(self) -> None:
        self.draft = Draft()
        self._consts: set[str] = set()
        self._open: list[str] = []  # files being read, each included by the one before
        self._done: set[str] = set()

    def read_file(self, path: Path) -> None:
        source = _source(str(path), read_text(path))
        self._open.append(os.path.realpath(path))
        self.read(source, path.parent)
        self._done.add(self._open.pop())

    def read(self, source: Source, folder: Path | None) -> None:
        included: set[str] = set()
        for tokens in statements(source, self._consts):
            tree = _statement(tokens, source)
            if tree.data == "include":
                self._include(tokens, source, folder, included)
            else:
                self.draft.add(tree, source)

    def _include(
        self, tokens: list[Token], source: Source, folder: Path | None, included: set[str]
    ) -> None:
        where, file = place_of(tokens[1], source), quoted(tokens[1][1:-1])
        if folder is None:
            fail(f"{file} cannot be included: say in which folder it is", where)
        try:
            path = folder / unquote(tokens[1])
            key = os.path.realpath(path)
        except ValueError as error:
            fail(f"{file} is not the name of a file: {error}", where)
        # Errors quote the text that is read, which must not be that of just any file.
        if not (path.name.endswith(SUFFIX) and key.endswith(SUFFIX)):
            fail(f"{file} cannot be included: only files that end in '{SUFFIX}' can", where)
        if key in self._open:
            fail(f"{file} includes itself, directly or through others", where)
        if key in included:
            fail(f"{file} is included twice", where)
        if len(self._open) >= MAX_INCLUDES:
            fail(f"more than {MAX_INCLUDES} files include one another in a row", where)
        if os.path.exists(path) and not os.path.isfile(path):
            fail(f"{file} is not a file", where)
        included.add(key)
        if key not in self._done:
            self._read_included(path, file, where)

    def _read_included(self, path: Path, file: str, where: Place) -> None:
        try:
            self.read_file(path)
        except FormatError as error:
            fail(f"{file} cannot be included: {error.message}", where)


def _statement(tokens: list[Token], source: Source) -> Tree[Token]:
    """The tree of one statement."""
    parser = grammar().parse_interactive(start="start")
    end = Token("$END", "", line=tokens[-1].line, column=tokens[-1].end_column)
    for position, token in enumerate([*tokens, end]):
        try:
            tree = parser.feed_token(token)
        except UnexpectedToken:
            message = unexpected(tokens, position, _accepted_after(tokens[:position]))
            fail(message, place_of(token, source))
    statement: Tree[Token] = tree.children[0]
    return statement


def _accepted_after(tokens: list[Token]) -> set[str]:
    # A parser that has refused a token has already given up some of what it would have accepted.
    parser = grammar().parse_interactive(start="start")
    for token in tokens:
        parser.feed_token(token)
    accepted: set[str] = parser.accepts()  # type: ignore[no-untyped-call]
    return accepted
