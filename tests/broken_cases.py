"""Cases that break on purpose, for the tests of what finds them."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from torture.case import Problem


@dataclass(frozen=True, slots=True)
class Numbers:
    """Numbers of which some break something."""

    numbers: tuple[int, ...]
    check: Callable[[tuple[int, ...]], object]

    def problem(self) -> Problem | None:
        self.check(self.numbers)
        return None

    def smaller(self) -> Iterator[Numbers]:
        for at in range(len(self.numbers)):
            yield replace(self, numbers=self.numbers[:at] + self.numbers[at + 1 :])


def _crash(numbers: tuple[int, ...]) -> None:
    if 3 in numbers and 5 in numbers:
        ctypes.string_at(0)


def _hang(numbers: tuple[int, ...]) -> None:
    if 3 in numbers:
        time.sleep(600)


def _divide(numbers: tuple[int, ...]) -> None:
    if 3 in numbers:
        print(1 // (3 - 3))


def crash(seed: int) -> Numbers:
    return Numbers(tuple(range(seed)), _crash)


def hang(seed: int) -> Numbers:
    return Numbers(tuple(range(seed)), _hang)


def divide(seed: int) -> Numbers:
    return Numbers(tuple(range(seed)), _divide)
