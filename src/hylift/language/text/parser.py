"""Text -> Model."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from lark import Token, Tree
from lark.exceptions import UnexpectedToken

from hylift.errors import FormatError, ModelError
from hylift.files import read_text
from hylift.graph.domains import Domain, boolean, interval, real
from hylift.language.ranges import Constants
from hylift.language.report import fail
from hylift.language.statements import (
    Declaration,
    Model,
    ParameterDeclaration,
    PredicateDeclaration,
    TableDeclaration,
    TypeDeclaration,
)
from hylift.language.syntax import BUILT_IN, Source
from hylift.language.text.notation import (
    MAX_CONSTANTS,
    constants_between,
    is_capital,
    meant_domain,
    unquote,
)
from hylift.language.text.slips import check_slips
from hylift.language.text.syntax_errors import unexpected
from hylift.language.text.tokens import (
    Branch,
    atom_words,
    constant,
    grammar,
    is_number,
    number,
    place,
    place_of,
    quoted,
    split_rule,
    statements,
)
from hylift.language.text.transform import expression, rule
from hylift.language.walk import numeric_predicates

SUFFIX = ".mln"
"""The suffix of included files."""

_PATH = re.compile(r"([\w:. ~-]|[/\\](?![/*]))+\.mln")

MAX_INCLUDES = 50
"""Maximum depth of nested includes."""


def parse(text: str, *, name: str = "<text>", folder: Path | None = None) -> Model:
    """The model that a text describes.

    Errors call the text `name`; included files are relative to `folder`.
    """
    if _PATH.fullmatch(text.strip()):
        file = quoted(text.strip())
        raise ModelError(f"{file} is the name of a file, not a model: read it with 'read_model'")
    reader = _Reader()
    reader.read(_source(name, text), folder)
    return reader.draft.model()


def read_model(path: str | Path) -> Model:
    """The model in a file. Included files are relative to the file that includes them.

    A file that several others include is read once, where it is included first.
    """
    reader = _Reader()
    reader.read_file(Path(path))
    return reader.draft.model()


def _source(name: str, text: str) -> Source:
    lines = text.removeprefix("\ufeff").rstrip("\0").replace("\r\n", "\n").replace("\r", "\n")
    return Source(name, lines)


class _Reader:
    """Reads the statements of a file and of those it includes, in order."""

    def __init__(self) -> None:
        self.draft = _Draft()
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
            fail(f"{file} cannot be included: its folder is unknown", where)
        try:
            path = folder / unquote(tokens[1])
            key = os.path.realpath(path)
        except ValueError as error:
            fail(f"{file} is not the name of a file: {error}", where)
        # Errors quote the text of a file, so not every file may be included.
        if not (path.name.endswith(SUFFIX) and key.endswith(SUFFIX)):
            fail(f"{file} cannot be included: only files that end in '{SUFFIX}' can", where)
        if key in self._open:
            fail(f"{file} includes itself, directly or through others", where)
        if key in included:
            fail(f"{file} is included twice", where)
        if len(self._open) >= MAX_INCLUDES:
            fail(f"includes are nested more than {MAX_INCLUDES} deep", where)
        if os.path.exists(path) and not os.path.isfile(path):
            fail(f"{file} is not a file", where)
        included.add(key)
        if key not in self._done:
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
    # After an error, the parser's stack is no longer the one before the token.
    parser = grammar().parse_interactive(start="start")
    for token in tokens:
        parser.feed_token(token)
    accepted: set[str] = parser.accepts()  # type: ignore[no-untyped-call]
    return accepted


# Statements.


class _Draft:
    """The statements of a model read so far.

    The meaning of a rule's words is only known after all declarations.
    """

    def __init__(self) -> None:
        self._declarations: list[Declaration] = []
        self._rules: list[tuple[Tree[Token], Source]] = []
        self._parameters: set[str] = set()
        self._predicates: set[str] = set()
        self._undecided: set[int] = set()  # ids of the predicates declared without a domain

    def add(self, tree: Tree[Token], source: Source) -> None:
        """Adds a statement that is not an include."""
        match tree.data:
            case "type_declaration":
                self._declarations.append(_type(tree, source))
            case "parameter":
                declared = _parameter(tree, source)
                self._parameters.add(declared.name)
                self._declarations.append(declared)
            case "domain_declaration":
                subject, *domain = tree.children
                if domain == ["table"]:
                    self._declarations.append(_table(subject, source))
                    return
                self._add_predicate(subject, domain, source)
            case _:
                self._add_rule(tree, source)

    def _add_rule(self, tree: Tree[Token], source: Source) -> None:
        check_slips(tree, source)
        (first, *others), where, is_hard = split_rule(tree)
        if self._is_function(first, *others) and not where and not is_hard:
            self._add_predicate(others[0], [], source, values=str(first))
        elif others or where or is_hard:
            self._rules.append((tree, source))
        elif isinstance(first, Token) and first.type == "NAME":
            declared = TypeDeclaration(str(first), place=place_of(first, source))
            self._declarations.append(declared)
        elif is_number(first):
            fail("expected a formula after the weight", place(first, source))
        elif isinstance(first, Tree) and first.data == "atom" and self._is_new(first):
            self._add_predicate(first, [], source)
        else:
            self._rules.append((tree, source))

    def _is_function(self, values: Branch, *others: Branch) -> bool:
        """True for `person motherOf(person)`: an undeclared function behind a word in small letters
        that is no weight."""
        is_type = isinstance(values, Token) and values.type == "NAME" and not is_capital(values)
        declared = others[0] if others else values
        if not isinstance(declared, Tree) or declared.data != "atom" or not is_type:
            return False
        return values not in self._parameters and self._is_new(declared)

    def _is_new(self, atom: Tree[Token]) -> bool:
        """True if an atom by itself declares its predicate."""
        predicate, *arguments = atom.children
        if any(isinstance(child, Tree) and child.data == "unique" for child in arguments):
            return True
        return predicate not in self._predicates and all(map(_is_word, arguments))

    def _add_predicate(
        self, subject: Branch, given: list[Branch], source: Source, values: str | None = None
    ) -> None:
        """given: the parts of the domain, if there is one; values: the type of a function's."""
        name, arguments, unique = _signature(subject, source)
        if values is not None:
            if unique is not None:
                fail("the arguments of a function are not marked '!'", place_of(name, source))
            unique, arguments = len(arguments), (*arguments, values)
        domain = _domain(given, source) if given else boolean
        where = place_of(name, source)
        declared = PredicateDeclaration(str(name), arguments, domain, unique, place=where)
        if not given and unique is None:
            self._undecided.add(id(declared))
        self._predicates.add(str(name))
        self._declarations.append(declared)

    def model(self) -> Model:
        """The model of all statements."""
        self._declarations = self._with_propositions()
        model = Model(
            tuple(d for d in self._declarations if isinstance(d, TypeDeclaration)),
            tuple(d for d in self._declarations if isinstance(d, PredicateDeclaration)),
            tuple(d for d in self._declarations if isinstance(d, ParameterDeclaration)),
            tables=tuple(d for d in self._declarations if isinstance(d, TableDeclaration)),
        )
        rules = tuple(rule(tree, source, model) for tree, source in self._rules)
        undecided = {d.name for d in model.predicates if id(d) in self._undecided}
        numeric = numeric_predicates(rules, undecided, model.real_predicates)
        predicates = tuple(
            replace(d, domain=real) if id(d) in self._undecided and d.name in numeric else d
            for d in model.predicates
        )
        return replace(model, predicates=predicates, rules=rules)

    def _with_propositions(self) -> list[Declaration]:
        """The declarations; a word on its own line is a proposition if a formula uses it as one."""
        taken = set(BUILT_IN)
        for declared in self._declarations:
            if isinstance(declared, PredicateDeclaration):
                taken |= {declared.name, *declared.arguments}
            elif not isinstance(declared, TypeDeclaration) or declared.constants is not None:
                taken.add(declared.name)
        used = {word for tree, _ in self._rules for word in atom_words(tree)} - taken
        found: list[Declaration] = []
        for declared in self._declarations:
            if isinstance(declared, TypeDeclaration) and declared.name in used:
                declared = PredicateDeclaration(declared.name, (), boolean, place=declared.place)
                self._undecided.add(id(declared))
            found.append(declared)
        return found


def _is_word(argument: Branch) -> bool:
    return (
        isinstance(argument, Tree)
        and argument.data == "variable"
        and [child.type for child in argument.children if isinstance(child, Token)] == ["NAME"]
    )


def _signature(subject: Branch, source: Source) -> tuple[Token, tuple[str, ...], int | None]:
    """The name of a predicate, the types of its arguments, and the position of the `!` mark."""
    arguments: list[Branch] = []
    if isinstance(subject, Tree) and subject.data == "atom":
        subject, *arguments = subject.children
    if not isinstance(subject, Token) or subject.type not in ("NAME", "PREDICATE"):
        message = "only a predicate is allowed before ':'"
        if is_number(subject):
            message += "; write a weight before its formula without a colon"
        fail(message, place(subject, source))
    if subject in BUILT_IN:
        fail(f"{quoted(subject)} is a function and cannot be declared", place_of(subject, source))
    unique: int | None = None
    for position, argument in enumerate(arguments):
        if isinstance(argument, Tree) and argument.data == "unique":
            if unique is not None:
                fail("only one argument may be marked '!'", place(argument, source))
            unique = position
        elif not _is_word(argument):
            fail("the arguments of a declaration must be names of types", place(argument, source))
    names = (argument.children[0] for argument in arguments if isinstance(argument, Tree))
    return subject, tuple(map(str, names)), unique


def _table(subject: Branch, source: Source) -> TableDeclaration:
    name, arguments, _ = _signature(subject, source)
    if arguments:
        message = f"a table is declared without arguments, as '{name}: table'"
        fail(f"{message}: its columns say what it is about", place(subject, source))
    return TableDeclaration(str(name), place=place_of(name, source))


def _domain(parts: list[Branch], source: Source) -> Domain:
    name, *bounds = parts
    assert isinstance(name, Token)
    if name not in ("real", "boolean") or (name == "boolean" and bounds):
        message = f"a domain must be boolean, real or real[lower, upper], not {quoted(name)}"
        if meant := meant_domain(name):
            message += f". Did you mean '{meant}'?"
        fail(message, place_of(name, source))
    if not bounds:
        return boolean if name == "boolean" else real
    lower, upper = (_bound(bound, source) for bound in bounds)
    if not lower < upper:
        fail(f"the lower bound {lower:g} is not below {upper:g}", place(bounds[0], source))
    try:
        return interval(lower, upper)
    except ModelError as error:
        fail(str(error), place(bounds[0], source))


def _bound(bound: Branch, source: Source) -> float:
    assert isinstance(bound, Tree)
    *sign, token = bound.children
    assert isinstance(token, Token)
    if token.type == "NAME" and token != "inf":
        fail(f"a bound must be a number or 'inf', not {quoted(token)}", place_of(token, source))
    size = math.inf if token == "inf" else number(token, source)
    return -size if sign else size


def _parameter(tree: Tree[Token], source: Source) -> ParameterDeclaration:
    name, value = tree.children
    assert isinstance(name, Token)
    if name in BUILT_IN:
        fail(f"{quoted(name)} is a function and cannot be declared", place_of(name, source))
    value_read = expression(value, source)
    return ParameterDeclaration(str(name), value_read, place=place_of(name, source))


def _type(tree: Tree[Token], source: Source) -> TypeDeclaration:
    name, _, *items = tree.children
    assert isinstance(name, Token)
    parts = _listed_constants(items, source)
    try:
        constants, repeated = Constants.of(parts)
    except ValueError as error:
        fail(f"the type {quoted(str(name))} {error}", place_of(name, source))
    return TypeDeclaration(str(name), constants, place=place_of(name, source), repeated=repeated)


def _listed_constants(items: list[Branch], source: Source) -> list[Sequence[str]]:
    """Words and ranges."""
    names = [constant(item, source).name if isinstance(item, Tree) else None for item in items]
    constants: list[Sequence[str]] = []
    count, is_end = 0, False
    for item, before, name, after in zip(
        items, [None, *names], names, [*names[1:], None], strict=False
    ):
        if name is not None:
            if not is_end:
                constants.append((name,))
                count += 1
            is_end = False
        elif before is None or after is None:
            fail(
                "a range needs a first and a last constant, as in {t0, ..., t9}",
                place(item, source),
            )
        else:
            try:
                both = constants_between(before, after)
            except ValueError as error:
                ends = f"{quoted(before)} to {quoted(after)}"
                fail(f"there is no range from {ends}: {error}", place(item, source))
            # Of {t0, ..., t5, ..., t9}, t5 is in the first range.
            constants[-1:] = [both] if len(constants[-1]) == 1 else [constants[-1], both[1:]]
            is_end = True
            count += len(both) - 1
        if count > MAX_CONSTANTS:
            fail(f"a type lists at most {MAX_CONSTANTS:,} constants", place(item, source))
    return constants
