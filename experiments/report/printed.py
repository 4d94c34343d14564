"""Figures that others have found."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Self

NUMBER = re.compile(r"-?\d+(?:\.(\d+))?(?:e(-?\d+))?")


@dataclass(frozen=True, slots=True)
class Printed:
    """A mean with its spread, and how finely it is printed."""

    text: str
    value: float
    unit: float
    """Of the last digit."""
    spread: float = 0.0
    source: str = "paper"
    """Where it stands; it heads the column."""

    @classmethod
    def of(cls, text: str, source: str = "paper") -> Self:
        """A figure such as '0.004 ± 0.001' or '3.32e-9'."""
        first, _, second = (part.strip() for part in text.partition("±"))
        found = NUMBER.fullmatch(first)
        if found is None:
            raise ValueError(f"'{text}' is no printed figure such as '0.004 ± 0.001'")
        digits, exponent = found.groups()
        unit = 10.0 ** (int(exponent or 0) - len(digits or ""))
        return cls(text, float(first), unit, float(second) if second else 0.0, source)
