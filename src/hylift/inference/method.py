"""What a method of inference is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Protocol

from hylift.graph import FactorGraph
from hylift.posterior import Posterior

Task = Literal["marginals", "logz", "map"]
Progress = Callable[[float, str], None]
"""Told how much of the work is done, from 0 to 1, and what is being done."""


@dataclass(frozen=True, slots=True)
class Request:
    """What is asked of a method beside the graph."""

    tasks: frozenset[Task]
    seed: int
    progress: Progress


class Method(Protocol):
    """Frozen settings, and a way from a graph with evidence to a posterior."""

    @property
    def name(self) -> str: ...

    def solve(self, graph: FactorGraph, request: Request) -> Posterior: ...
