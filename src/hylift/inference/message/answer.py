"""From beliefs of classes to a posterior of the user's variables."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hylift.inference.control import LEAST_SECONDS, Control
from hylift.inference.finish import Answer, finish
from hylift.inference.method import Request
from hylift.inference.prepared import View
from hylift.inference.search import polish
from hylift.inference.terms import has_repeats
from hylift.posterior import (
    Assignment,
    LogPartition,
    Marginals,
    Mixture,
    Posterior,
    Result,
)
from hylift.posterior.distributions import BatchedDistribution

SETTLED = 1e-9
"""Largest change of a message at which an answer on a forest is exact; on one they end by
themselves."""
EQUAL = 1e-11
"""Relative difference of energies that rounding makes."""


@dataclass(frozen=True, slots=True, eq=False)
class Decoded:
    """An assignment that messages speak for."""

    values: NDArray[np.float64]  # (start, variable of the view's graph)
    least_energy: float | None = None
    """What no assignment can fall below, where that is known."""


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """What message passing found in a view."""

    result: Result
    log_partition: LogPartition | None
    beliefs: Sequence[tuple[NDArray[Any], BatchedDistribution]]
    """Variables of the view's graph, and their marginals; none where they were not asked for."""
    decode: Callable[[float | None], Decoded]
    """Looks for the best assignment, in so many seconds."""
    notes: tuple[str, ...] = ()


def notes_on_loops(name: str, view: View, *, is_settled: bool) -> list[str]:
    """What the user should know of a graph that is not known to be a forest."""
    if not (view.ground.variables.multiplicity == 1).all():
        return [
            "Whether the ground graph has loops cannot be seen in a lifted one: log Z is called an "
            "estimate."
        ]
    notes = []
    if is_settled:
        notes.append("The graph has loops: the answers are those of Bethe's approximation.")
    if has_repeats(view.ground):
        notes.append(
            "Several factors have the same variables, which is a loop between them: "
            f"{name}(merge_factors=True) makes them one."
        )
    return notes


def posterior_of(
    name: str, view: View, outcome: Outcome, control: Control, request: Request
) -> Posterior:
    """The posterior of all variables of the user's graph."""
    prepared, marginals = view.prepared, None
    if "marginals" in request.tasks:
        classes = Marginals.assemble(view.graph.num_variables, outcome.beliefs)
        marginals = classes.spread(view.variable_to_class)

    def find(
        mixture: Mixture | None = None,
        seconds: float | None = None,
        go_on: Callable[[], bool] | None = None,
    ) -> Assignment:
        began = time.perf_counter()
        decoded = outcome.decode(seconds)
        if seconds is not None:
            seconds = max(seconds - (time.perf_counter() - began), LEAST_SECONDS)
        starts = decoded.values[:, view.variable_to_class]
        best = polish(view.ground, starts, seconds=seconds, go_on=go_on, progress=request.progress)
        energy, least = -best.log_density, decoded.least_energy
        is_least = least is not None and energy - least <= EQUAL * (1 + abs(energy))
        return prepared.assignment(best.values, energy, "exact" if is_least else "estimate")

    log_z = outcome.log_partition
    objective = None if log_z is None else -log_z.value
    answer = Answer(outcome.result, objective, outcome.notes, find, log_z, marginals)
    return finish(name, prepared, request, control, answer)
