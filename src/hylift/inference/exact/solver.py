"""Exact inference: settings and solution."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hylift.errors import UnsupportedError
from hylift.inference.control import Control
from hylift.inference.exact.bounds import Integral, integrate
from hylift.inference.exact.elimination import check_factors
from hylift.inference.exact.maximum import maximise
from hylift.inference.exact.parts import Parts, take_apart
from hylift.inference.finish import Answer, categoricals, finish
from hylift.inference.method import Request
from hylift.inference.prepared import Prepared
from hylift.inference.settings import refuse_start
from hylift.posterior import Assignment, GaussianMixture, LogPartition, PiecewiseDensity, Posterior
from hylift.posterior.distributions import BatchedDistribution

LEAST_TOLERANCE = 1e-13


@dataclass(frozen=True, slots=True)
class Exact:
    """Exact marginals, log Z and MAP, or an error that names the obstacle.

    Answers are estimates, and say so, only with a user's own functions and where rounding errors
    are large.

    Discrete variables are eliminated in tables, Gaussian reals by sparse factorisation; reals
    that depend on discrete variables come out as exact Gaussian mixtures. Reals on an interval
    are integrated numerically where their bounds matter.
    """

    max_entries: int = 2**28
    """Largest table (or set of Gaussians) that may be built, in numbers of eight bytes."""
    tolerance: float = 1e-9
    """Error allowed to log Z, and to any probability, where reals have bounds."""
    map_seconds: float = 60.0
    """Time that MAP may spend on branch and bound, where tables would not fit."""

    def __post_init__(self) -> None:
        if not self.max_entries >= 1:
            raise UnsupportedError(f"max_entries must be at least 1, not {self.max_entries}")
        if not self.tolerance >= LEAST_TOLERANCE:
            raise UnsupportedError(
                f"tolerance must be at least {LEAST_TOLERANCE:g}, not {self.tolerance}: "
                "rounding allows no less"
            )
        if not self.map_seconds > 0:
            raise UnsupportedError(f"map_seconds must be positive, not {self.map_seconds}")

    @property
    def name(self) -> str:
        return "exact"

    def solve(self, prepared: Prepared, request: Request) -> Posterior:
        refuse_start("Exact", request.start)
        control = Control(request)
        parts = take_apart(prepared.ground)
        log_partition, marginals, objective = None, None, None
        notes: tuple[str, ...] = ()
        settled = True
        if request.tasks & {"marginals", "logz"}:
            scopes = [group.scope for group in parts.tables]
            check_factors(np.log(parts.num_states), scopes, float(np.log(self.max_entries)))
            integral = integrate(
                prepared.source,
                parts,
                max_entries=self.max_entries,
                tolerance=self.tolerance,
                marginals="marginals" in request.tasks,
                progress=request.progress,
            )
            notes, settled = integral.notes, integral.settled
            log_partition = LogPartition(integral.outcome.log_total, integral.kind, integral.error)
            if "marginals" in request.tasks:
                marginals = _marginals(parts, integral)
            objective = -log_partition.value

        @functools.cache
        def best() -> Assignment:
            values, energy, kind = maximise(
                parts,
                max_entries=self.max_entries,
                seconds=self.map_seconds,
                progress=request.progress,
            )
            return prepared.assignment(values, energy, kind)

        answer = Answer(
            "converged" if settled else "max_steps",
            objective,
            notes,
            lambda *_: best(),
            log_partition,
            marginals,
            steps=parts.graph.num_variables,
        )
        return finish(self.name, prepared, request, control, answer)


def _marginals(parts: Parts, integral: Integral) -> list[tuple[NDArray[Any], BatchedDistribution]]:
    """Batches of one family and size each, with the positions of their variables."""
    outcome = integral.outcome
    assert outcome.marginals is not None
    assert outcome.weights is not None
    num_states = parts.graph.variables.num_states.astype(np.int64)  # 0 of reals
    start = np.cumsum(num_states) - num_states
    batches = categoricals(parts.graph.variables, start, outcome.marginals)
    grid = outcome.reals.grid
    if len(grid.real):
        first = int(num_states.sum())
        density = outcome.marginals[first:].reshape(grid.nodes.shape) / grid.weights
        panels = density.reshape(len(grid.real), grid.edges.shape[1] - 1, -1)
        batches.append(
            (parts.real[grid.real], PiecewiseDensity.from_gauss_legendre(grid.edges, panels))
        )

    components, gaussian = outcome.reals.components, outcome.reals.gaussian
    count = np.diff(gaussian.state_ptr)[components.of_step]
    for size in np.unique(count):
        steps = np.flatnonzero(count == size)
        own = gaussian.real_ptr[steps][:, None] + np.arange(size)
        shared = gaussian.state_ptr[components.of_step[steps]][:, None] + np.arange(size)
        mixture = GaussianMixture(outcome.weights[shared], gaussian.mean[own], gaussian.var[own])
        batches.append((parts.real[outcome.reals.of_step[steps]], mixture))
    return batches
