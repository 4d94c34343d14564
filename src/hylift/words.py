"""Counts, lists and tables as text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


def counted(count: int, one: str, many: str | None = None) -> str:
    """`1 variable`, `2,500 variables`, `3 classes`."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def num_classes(count: int) -> str:
    """`1 class`, `3 classes`."""
    return counted(count, "class", "classes")


def observed_and_measured(num_observed: int, num_measured: int) -> str:
    """`300 observed`, or `300 observed, 10 measured` where values with errors leave some hidden."""
    measured = f", {num_measured:,} measured" if num_measured else ""
    return f"{num_observed:,} observed{measured}"


def listed(names: Sequence[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


@dataclass(frozen=True, slots=True)
class TextTable:
    """Rows of words; `right` says which columns are numbers."""

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    right: tuple[int, ...]

    def __str__(self) -> str:
        lines = [self.header, *self.rows]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        return "\n".join(
            "  ".join(
                word.rjust(width) if place in self.right else word.ljust(width)
                for place, (word, width) in enumerate(zip(line, widths, strict=True))
            ).rstrip()
            for line in lines
        )
