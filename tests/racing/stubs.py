"""Methods that answer, refuse or fail as they are told."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from hylift.graph import FactorGraph, boolean
from hylift.inference import Request
from hylift.inference.prepared import Prepared
from hylift.posterior import Assignment, Categorical, LogPartition, Marginals, Posterior, Solution
from hylift.posterior.answers import Kind, Result
from hylift.potentials import Table


@dataclass(frozen=True, slots=True)
class Stub:
    """A method that answers one Boolean with a given probability, or as told."""

    name: str = "stub"
    prob: float | None = 0.5
    log_z: float | None = None
    kind: Kind = "estimate"
    energy: float | None = None
    result: Result = "converged"
    error: Exception | None = None
    sleep: float = 0.0
    asked: Callable[[Request], object] | None = None
    notes: tuple[str, ...] = ()

    def solve(self, prepared: Prepared, request: Request) -> Posterior:
        graph = prepared.source
        if self.asked is not None:
            self.asked(request)
        if self.error is not None:
            raise self.error
        time.sleep(self.sleep)
        request.progress(0.5, "thinking")
        observed = np.zeros(graph.num_variables, dtype=bool)
        marginals = assignment = None
        if self.prob is not None:
            found = Categorical(np.array([[1 - self.prob, self.prob]]), ("false", "true"))
            marginals = Marginals.assemble(1, [(np.zeros(1, dtype=np.int64), found)])
        if self.energy is not None:
            values = np.ones(graph.num_variables)
            assignment = Assignment(graph.variables, values, observed, self.energy, "estimate")
        log_z = None if self.log_z is None else LogPartition(self.log_z, self.kind)
        solution = Solution(
            self.name, request.seed, self.result, 3, self.sleep, None, notes=self.notes
        )
        return Posterior(graph.variables, observed, solution, log_z, marginals, assignment)


@dataclass(frozen=True, slots=True)
class Given:
    """A method that always has the same answer."""

    posterior: Posterior
    name: str = "given"

    def solve(self, prepared: Prepared, request: Request) -> Posterior:
        return self.posterior


class Empty:
    """A method that forgets to return its answer."""

    name = "empty"

    def solve(self, prepared: Prepared, request: Request) -> None:
        return None


class Nameless:
    def solve(self, prepared: Prepared, request: Request) -> Posterior:
        raise NotImplementedError

    def __repr__(self) -> str:
        return "Nameless()"


def coin() -> FactorGraph:
    """One Boolean that is true with probability 3/4."""
    return FactorGraph.build({"a": boolean}, [(Table.from_values([1, 3]), ["a"])])
