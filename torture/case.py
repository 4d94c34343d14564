"""Cases, what they may show, and their addresses."""

from __future__ import annotations

import importlib
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Literal, NamedTuple, Protocol, get_args

from hylift.errors import HyliftError

Kind = Literal[
    "wrong and unflagged",
    "bound violation",
    "crash",
    "traceback",
    "hang",
    "non-finite",
    "nondeterminism",
]
KINDS: tuple[Kind, ...] = get_args(Kind)

OUTSIDE = ("site-packages", "/lib/python", "<")
"""Parts of the paths of code that is not ours."""


class Problem(NamedTuple):
    """A defect that a case shows."""

    kind: Kind
    text: str
    key: str = ""
    """Equal for two cases that show the same defect; empty where nothing is known of it."""


class Case(Protocol):
    """An input, and what must hold of it."""

    def problem(self) -> Problem | None: ...

    def smaller(self) -> Iterator[Case]:
        """Cases with less in them, always in the same order."""
        ...


TARGETS: dict[str, str] = {
    "answers": "torture.answers:answers",
    "default": "torture.answers:default",
    "exact": "torture.answers:exact",
    "scales": "torture.answers:scales",
    "bounds": "torture.answers:bounds",
    "numbers": "torture.answers:numbers",
    "resumed": "torture.runs:resumed",
    "threads": "torture.runs:threads",
    "budgets": "torture.runs:budgets",
    "interrupts": "torture.runs:interrupts",
    "models": "torture.texts:models",
    "facts": "torture.texts:facts",
    "uai": "torture.files:uai",
    "evid": "torture.files:evid",
    "csv": "torture.files:csv",
    "parquet": "torture.files:parquet",
    "arrow": "torture.files:arrow",
    "sqlite": "torture.files:sqlite",
    "duckdb": "torture.files:duckdb",
    "posteriors": "torture.files:posteriors",
    "checkpoints": "torture.files:checkpoints",
}
"""Functions from a seed to a case."""


def made(target: str, seed: int) -> Case:
    module, name = TARGETS.get(target, target).split(":")
    make: Callable[[int], Case] = getattr(importlib.import_module(module), name)
    return make(seed)


@dataclass(frozen=True, slots=True)
class Address:
    """A case by its target, its seed, and the cuts that made it smaller."""

    target: str
    seed: int
    cuts: tuple[int, ...] = ()

    @classmethod
    def parse(cls, text: str) -> Address:
        target, seed, *cuts = text.rsplit("@", 1)[0].split("/") + text.split("@")[1:]
        return cls(target, int(seed), tuple(int(cut) for cut in cuts for cut in cut.split(".")))

    def __str__(self) -> str:
        cuts = "@" + ".".join(map(str, self.cuts)) if self.cuts else ""
        return f"{self.target}/{self.seed}{cuts}"

    def cut(self, place: int) -> Address:
        return Address(self.target, self.seed, (*self.cuts, place))

    def case(self) -> Case | None:
        """The case; None if the last cut does not exist."""
        case: Case | None = made(self.target, self.seed)
        for place in self.cuts:
            case = next(islice(case.smaller(), place, None), None) if case is not None else None
        return case


def shown(case: Case) -> Problem | None:
    """The problem of a case; any exception but a `HyliftError` is one."""
    try:
        return case.problem()
    except HyliftError as error:
        return raised(error) if is_unclear(error) else None
    except Exception as error:
        return raised(error)


def raised(error: BaseException) -> Problem:
    """The problem that an exception is, known by its type and the innermost line of ours."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if not any(part in frame.filename for part in OUTSIDE)]
    at = own[-1] if own else frames[-1]
    place = f"{at.filename.rpartition('/src/')[2]}:{at.name}"
    name = type(error).__name__
    text = "".join(traceback.format_exception_only(error)).strip()
    return Problem("traceback", f"{place}, line {at.lineno}: {text[:600]}", f"{name} in {place}")


def is_unclear(error: HyliftError) -> bool:
    """True if a message is none that can be printed in a terminal as it is."""
    text = str(error)
    return not text or not all(line.isprintable() for line in text.split("\n"))
