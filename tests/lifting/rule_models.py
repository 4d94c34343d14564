"""Random models of rules whose groundings look alike, with evidence on some atoms."""

from __future__ import annotations

import itertools
import re
from contextlib import suppress

import numpy as np
import pandas as pd

import hylift as hl
from hylift.errors import HyliftError

PREDICATES = {
    "On": (),
    "A": ("left",),
    "B": ("left",),
    "C": ("right",),
    "R": ("left", "left"),
    "S": ("left", "left"),
    "T": ("left", "right"),
    "U": ("right", "left"),
    "Known": ("left",),
    "Linked": ("left", "left"),
    "Crossed": ("right", "left"),
    "level": (),
    "size": ("left",),
    "speed": ("right",),
    "pull": ("left", "left"),
    "push": ("left", "right"),
}
CLOSED = ("Known", "Linked", "Crossed")
REALS = ("level", "size", "speed", "pull", "push")
COLORS = ("Red", "Green", "Blue")


class RandomModel:
    """A model as a text, its evidence and its closed predicates, drawn from a seed."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.num = {name: int(self.rng.integers(1, 8)) for name in ("left", "right")}
        self.rules = [self._rule() for _ in range(self.rng.integers(1, 5))]
        lines = [f"{name} = {{{', '.join(self._words(name))}}}" for name in self.num]
        for name, types in PREDICATES.items():
            arguments = f"({', '.join(types)})" if types else ""
            lines.append(f"{name}{arguments}" + (": real" if name in REALS else ""))
        lines += [f"color = {{{', '.join(COLORS)}}}", "Has(left, color!)"]
        self.declared = "\n".join(lines)
        self.evidence = {
            name: table
            for name in [*PREDICATES, "Has"]
            if (table := self._evidence(name)) is not None
        }
        self.closed = CLOSED

    def parsed(self) -> hl.Model:
        """The model of those rules that hold together."""
        found = []
        for rule in self.rules:
            with suppress(HyliftError):
                hl.check(hl.parse(f"{self.declared}\n{rule}"))
                found.append(rule)
        return hl.parse("\n".join([self.declared, *found]))

    def _words(self, name: str) -> list[str]:
        return [f"{name[0].upper()}{i}" for i in range(self.num[name])]

    def _chance(self, share: float) -> bool:
        return bool(self.rng.random() < share)

    def _pick(self, *choices: str) -> str:
        return str(self.rng.choice(choices))

    # Rules.

    def _term(self, name: str) -> str:
        if self._chance(0.05):
            return self._pick(*self._words(name))
        if name == "left":
            return self._pick("x", "x", "y") if self.shape == "left left" else "x"
        return "z"

    def _atom(self, *names: str) -> str:
        types = PREDICATES[name := self._pick(*names)]
        return f"{name}({', '.join(self._term(t) for t in types)})" if types else name

    def _truth(self) -> str:
        if self._chance(0.12):
            return f"Has({self._term('left')}, {self._pick(*COLORS)})"
        if self._chance(0.08) and self.shape == "left left":
            return self._pick("(x = y)", "(x != y)", "(x < y)")
        across = ("C", "T", "U", "T", "U", "Crossed") if self.shape == "left right" else ("R", "S")
        names = ("On", "A", "A", "B", "R", "S", "Known", "Linked", *across)
        return f"{'!' if self._chance(0.3) else ''}{self._atom(*names)}"

    def _rule(self) -> str:
        self.shape = self._pick("left left", "left left", "left right")
        truths = [self._truth() for _ in range(self.rng.integers(1, 4))]
        body = truths[0]
        for truth in truths[1:]:
            body = f"{body} {self._pick('v', '^', '=>', '<=>')} {truth}"
        where = []
        if {"x", "y"} <= set(re.findall(r"\b[xy]\b", body)) and self._chance(0.3):
            where.append("x != y")
        if self._chance(0.2):
            where.append(self._atom("Known", "Linked"))
        if where:
            body = f"{body} where {', '.join(where)}"
        if not self._chance(0.35):
            return f"{self._pick('0.7', '-0.4', '1.3')} {body}"
        wide = ("pull",) if self.shape == "left left" else ("push", "speed")
        first = self._atom("size", "level", *wide)
        other = self._pick(self._atom("size", "level", *wide), "1.5")
        return f"-{self._pick('0.3', '0.8')} ({truths[0]}) * ({first} - {other})^2"

    # Evidence.

    def _evidence(self, name: str) -> pd.DataFrame | None:
        types = PREDICATES.get(name, ("left",))
        if not types or (name not in CLOSED and self._chance(0.4)):
            return None
        share = self.rng.choice([0.05, 0.2, 0.5, 1.0], p=[0.4, 0.3, 0.2, 0.1])
        every = itertools.product(*map(self._words, types))
        rows = [row for row in every if self._chance(share)]
        if not rows:
            return None
        table = pd.DataFrame(rows, columns=[f"arg{i + 1}" for i in range(len(types))])
        if name == "Has":
            return table.assign(color=self.rng.choice(COLORS, len(rows)))
        if name in CLOSED:
            return table
        if name in REALS:
            table["value"] = self.rng.choice([0.5, 2.0], len(rows))
            return table.assign(sd=self.rng.choice([0.0, 0.5])) if self._chance(0.3) else table
        values = [0.0, 1.0] if self._chance(0.8) else [0.0, 1.0, 0.3]
        return table.assign(value=self.rng.choice(values, len(rows)))
