"""Damaged and random models and facts: what is read must be a model, and all else refused."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import hylift as hl
from formats.test_damaged_files import FACTS, MARKED, MODEL, damaged, read_and_check
from grounding.random_rules import RandomRules
from hylift.formats.alchemy_db import read_facts
from hylift.language.text.formatter import format_model
from language.random_text import RandomModels, Vandal
from language.test_language_fuzz import EXAMPLE, SOUND, is_grounded, is_read
from torture.case import Problem, raised

PIECES = re.compile(r"\w+|\s+|.", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Text:
    """A text, and functions that read it or refuse it."""

    text: str
    checks: tuple[Callable[[str], object], ...]

    def problem(self) -> Problem | None:
        for check in self.checks:
            try:
                check(self.text)
            except hl.HyliftError:
                continue
            except Exception as error:
                return raised(error)
        return None

    def smaller(self) -> Iterator[Text]:
        """Without some of its lines, or of its words."""
        for pieces in (self.text.splitlines(keepends=True), PIECES.findall(self.text)):
            size = len(pieces) // 2
            while size:
                for first in range(0, len(pieces), size):
                    yield replace(self, text="".join(pieces[:first] + pieces[first + size :]))
                size //= 2

    def __str__(self) -> str:
        return f"{self.text!r}"


def in_file(name: str, read: Callable[[Path], object]) -> Callable[[str], object]:
    """A function that reads a text as a file."""

    def check(text: str) -> None:
        with TemporaryDirectory() as folder:
            path = Path(folder) / name
            path.write_bytes(text.encode(errors="surrogateescape"))
            read(path)

    return check


def models(seed: int) -> Text:
    pick, vandal = random.Random(seed), Vandal(seed)
    checks = (is_read, is_grounded, in_file("x.mln", read_and_check))
    match pick.randrange(6):
        case 0:
            text = format_model(RandomModels(seed).model())
        case 1:
            text = vandal.damaged(format_model(RandomModels(seed).model()))
        case 2:
            text = vandal.damaged(format_model(RandomRules(seed).case().model))
        case 3:
            text = vandal.damaged(pick.choice([EXAMPLE, SOUND]))
        case 4:
            text = damaged(pick.choice([MODEL, MARKED]), pick).decode(errors="surrogateescape")
        case _:
            text = vandal.noise()
    # A lone surrogate stands for no text that a file could hold.
    return Text(text, checks[:2] if re.search("[\ud800-\udfff]", text) else checks)


PEOPLE = hl.parse("""
    person = {Ann, Bob, "Cid", "Ann, the first"}
    Friends(person, person)
    Feels(person, feeling!)
    Happy(person)
    age(person): real
    motherOf(person, person!)
    1  Friends(x, y) ^ Happy(x) => Happy(y)
    -0.1  age(x)^2
    0.5  Feels(x, Good) ^ Happy(x)
""")


def grounded_facts(path: Path) -> None:
    hl.ground(PEOPLE, path, unmatched="ignore")


def facts(seed: int) -> Text:
    text = damaged(FACTS, random.Random(seed)).decode(errors="surrogateescape")
    return Text(text, (in_file("x.db", read_facts), in_file("x.db", grounded_facts)))
