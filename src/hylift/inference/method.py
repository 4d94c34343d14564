"""What a method of inference is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

from hylift.graph import FactorGraph
from hylift.posterior import Posterior
from hylift.progress import Progress

Task = Literal["marginals", "logz", "map"]


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
