"""Errors: one base class, and a few subclasses that also subclass the fitting builtin."""

import difflib
from collections.abc import Collection, Iterable
from functools import partial
from pathlib import Path
from typing import Any, Self

from hylift.words import Wording, cli_text, printable, worded


class HyliftError(Exception):
    """Any error that hylift raises deliberately: what is wrong, and perhaps what to do about it.

    `str(error)` speaks of Python, `error.cli` of the options of the command line.
    """

    has_lines = False
    """True where the message has several lines, and names in it are escaped already."""

    def __init__(self, message: str = "", remedy: Wording | None = None) -> None:
        super().__init__(message)
        self.remedy = remedy

    @property
    def text(self) -> str:
        """The message and the remedy, in both wordings."""
        message: str = self.args[0] if self.args else ""
        if self.remedy is None:
            return message
        return worded(message, " " if message.endswith((".", "?")) else ": ", self.remedy)

    @property
    def cli(self) -> str:
        return cli_text(printable(self.text, one_line=not self.has_lines))

    def __str__(self) -> str:
        return str(printable(self.text, one_line=not self.has_lines))

    def in_lines(self) -> Self:
        """The error, as one whose message has several lines."""
        self.has_lines = True
        return self


class HyliftWarning(UserWarning):
    """Any warning that hylift gives deliberately."""

    def __str__(self) -> str:
        return str(printable(self.args[0] if self.args else ""))


class DoubtWarning(HyliftWarning):
    """An answer that may be wrong, with the reason and what to do."""


class ModelError(HyliftError, ValueError):
    """A graph, potential or domain that does not hold together."""

    problems: tuple[Any, ...] = ()
    """Of a model of rules: its errors and warnings, each with its place in the text."""


class EvidenceError(HyliftError, ValueError):
    """Evidence that does not fit the variables it is about."""


class UnknownNameError(HyliftError, KeyError):
    """A name that does not exist."""


class FormatError(HyliftError, ValueError):
    """A file that is not what its format promises."""

    def __init__(
        self,
        path: str | Path,
        message: str,
        *,
        line: int | None = None,
        column: int | None = None,
        remedy: Wording | None = None,
    ) -> None:
        place = "".join(f":{number}" for number in (line, column) if number is not None)
        super().__init__(f"{path}{place}: {message}", remedy)
        self.path = Path(path)
        self.line = line
        self.column = column
        self.message = message

    def __reduce__(self) -> tuple[Any, ...]:
        rebuild = partial(FormatError, line=self.line, column=self.column, remedy=self.remedy)
        return rebuild, (self.path, self.message)


class DivergentModelError(ModelError):
    """A model whose integral is infinite, so that there is no distribution to infer."""


class ImpossibleEvidenceError(EvidenceError):
    """Evidence and hard constraints that leave no state with positive probability."""


class IntractableError(HyliftError, RuntimeError):
    """A request that the chosen method cannot answer within its limits."""


class UnsupportedError(HyliftError, TypeError):
    """A request that a method does not support."""


class ArgumentError(HyliftError, ValueError):
    """An argument of a function that it cannot take."""


class MethodError(HyliftError, TypeError):
    """A user's own method that breaks the protocol of methods."""


def did_you_mean(name: str, candidates: Iterable[str]) -> str:
    """` Did you mean 'x'?`, or nothing when no candidate comes close."""
    names = list(candidates)
    same = [other for other in names if other.casefold() == name.casefold()]
    close = same or difflib.get_close_matches(name, names, n=1, cutoff=0.6)
    return f" Did you mean '{close[0]}'?" if close else ""


def check_word(what: str, word: object, allowed: Collection[str]) -> None:
    """Raise unless a word is one of those that are allowed."""
    if word not in allowed:
        raise UnsupportedError(
            f"there is no {what} '{word}': choose among {', '.join(allowed)}."
            f"{did_you_mean(str(word).lower(), allowed)}"
        )


def proper_rule(name: str) -> str:
    """A rule that makes a density proper in a real, or in the atoms of a predicate."""
    return f"add a rule such as '-0.01 {name}^2'"


def proper_remedy(name: str) -> str:
    """The remedy for a density that is improper in a real, or in the atoms of a predicate."""
    return f"give it bounds or {proper_rule(name)}"


def too_narrow(name: str) -> UnsupportedError:
    """The error for a real whose bounds or density are too narrow for floating point."""
    return UnsupportedError(
        f"'{name}' varies by less than floating-point numbers of its size can resolve: "
        "give it another origin or unit"
    )
