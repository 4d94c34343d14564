"""The end of every method: from its answer to a posterior."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from hylift.graph import Evidence, FactorGraph
from hylift.inference.control import Control
from hylift.inference.method import Request
from hylift.inference.prepared import Prepared
from hylift.posterior import (
    Assignment,
    LogPartition,
    Marginals,
    Mixture,
    Posterior,
    Result,
    Solution,
    Target,
)
from hylift.posterior.counts import Expect
from hylift.posterior.draws import Draws
from hylift.posterior.mapped import Joint, MappedMixture
from hylift.posterior.marginals import Batches
from hylift.posterior.target import Draw


class FindAssignment(Protocol):
    """A search for the best assignment, from a mixture where there is one, in limited time."""

    def __call__(
        self,
        mixture: Mixture | None = None,
        seconds: float | None = None,
        go_on: Callable[[], bool] | None = None,
    ) -> Assignment: ...


@dataclass(frozen=True, slots=True, eq=False)
class Answer:
    """The findings of a method about the hidden variables."""

    result: Result
    objective: float | None
    """By default the energy of the assignment, where one was asked for."""
    notes: Sequence[str]
    find: FindAssignment
    log_partition: LogPartition | None = None
    marginals: Marginals | Batches | None = None
    """Of the hidden variables: all of them, or positions among them and their distributions."""
    mixture: Mixture | None = None
    draws: Draws | None = None
    assignment: Assignment | None = None
    """The best one, where the method knows it anyway."""
    expect: Expect | None = None
    """Expected log-values of factors, where there is neither a mixture nor draws."""
    draw: Draw | None = None
    """Independent draws of the hidden variables, where they can be had without a mixture."""
    draws_states: bool = True
    """See `Target.draws_states`."""
    steps: int | None = None
    """Work that was done, where it is not the steps that `Control` has recorded."""
    predicted_seconds: float | None = None
    marginal_error: float | None = None


def finish(
    name: str, prepared: Prepared, request: Request, control: Control, answer: Answer
) -> Posterior:
    """The posterior of all variables, with what was asked for."""
    marginals = None
    if answer.marginals is not None:
        marginals = prepared.marginals(answer.marginals)
    assignment, objective = answer.assignment, answer.objective
    if "map" in request.tasks and assignment is None:
        assignment = answer.find(
            answer.mixture, control.remaining_seconds(), control.not_interrupted
        )
    draw, draw_ground = None, answer.draw
    if draw_ground is not None:

        def draw(size: int, rng: np.random.Generator) -> NDArray[np.float64]:
            return prepared.uncentred(draw_ground(size, rng))

    solution = Solution(
        name,
        request.seed,
        answer.result,
        len(control.steps) if answer.steps is None else answer.steps,
        control.total_seconds,
        assignment.energy if objective is None and assignment else objective,
        tuple(answer.notes),
        control.history() if control.steps or answer.steps is None else None,
        answer.predicted_seconds,
        answer.marginal_error,
        answer.log_partition is not None and answer.log_partition.kind == "exact",
    )
    return Posterior(
        prepared.source.variables,
        prepared.observed,
        solution,
        answer.log_partition if "logz" in request.tasks else None,
        marginals,
        assignment,
        answer.mixture,
        GraphTarget(prepared, answer.find, answer.expect, draw, answer.draws_states),
        answer.draws,
    )


@dataclass(frozen=True, slots=True, eq=False)
class GraphTarget(Target):
    """The model behind a posterior, and a way to its best assignment."""

    prepared: Prepared
    find: FindAssignment
    expect: Expect | None
    draw: Draw | None
    draws_states: bool

    @property
    def graph(self) -> FactorGraph:
        return self.prepared.source

    @property
    def evidence(self) -> Evidence:
        return self.prepared.source.evidence

    @property
    def origin(self) -> NDArray[np.float64] | None:
        return self.prepared.origin

    def energy(self, values: NDArray[np.float64]) -> float:
        return self.prepared.energy(values)

    def map(self, mixture: Joint | None) -> Assignment:
        assert not isinstance(mixture, MappedMixture)
        return self.find(mixture)
