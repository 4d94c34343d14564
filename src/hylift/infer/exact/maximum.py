"""The most probable joint assignment."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from hylift.infer.exact.bounds import (
    grid_check,
    improper_but_bounded,
    in_functions,
    real_components,
    resolving_panels,
)
from hylift.infer.exact.grid import make_grid
from hylift.infer.exact.integrate import Outcome, integrate_reals, sum_states
from hylift.infer.exact.parts import Parts
from hylift.infer.method import Progress
from hylift.posterior.answers import Kind

PANELS = 16
"""Panels of the grid on which bounded reals are searched before they are polished."""


def maximise(
    parts: Parts, *, max_entries: int, progress: Progress
) -> tuple[NDArray[np.float64], float, Kind]:
    """Values of all hidden variables, their energy, and whether they are surely the best.

    They are where every bounded real has its unbounded optimum inside its interval. Otherwise
    bounded reals are searched on a grid, and polished given the best discrete states.
    """
    component = real_components(parts)
    gridded = in_functions(parts, component)
    while True:
        grid_check(parts, gridded)
        grid = make_grid(parts, gridded, max(PANELS, resolving_panels(parts, gridded)))
        reals = integrate_reals(parts, grid, max_entries, maximise=True)
        outside = improper_but_bounded(parts, reals, component)
        if not len(outside):
            outcome = sum_states(
                parts, reals, max_entries, maximise=True, marginals=False,
                advance=lambda share: progress(share, "maximising"),
            )  # fmt: skip
            values = _values(parts, outcome)
            x = values[parts.real]
            outside = np.flatnonzero((x < parts.lower) | (x > parts.upper))
            if not len(outside):
                break
        gridded = gridded | np.isin(component, component[outside])
    if gridded.any():
        values = _polish(parts, values, np.flatnonzero(gridded))
    kind: Kind = "estimate" if gridded.any() else "exact"
    return values, -parts.graph.log_density(values), kind


def _values(parts: Parts, outcome: Outcome) -> NDArray[np.float64]:
    """The assignment (variable,) that a maximising pass has found."""
    assert outcome.state is not None
    values = np.empty(parts.graph.num_variables)
    states = outcome.state[: len(parts.discrete)]
    values[parts.discrete] = states
    grid = outcome.reals.grid
    nodes = outcome.state[len(parts.discrete) :]
    values[parts.real[grid.real]] = grid.nodes[np.arange(len(grid.real)), nodes]
    components, gaussian = outcome.reals.components, outcome.reals.gaussian
    joint = components.joint_states(states, parts.num_states)
    at = gaussian.real_ptr[:-1] + joint[components.of_step]
    reals = outcome.reals.number[components.elimination.order]
    values[parts.real[reals]] = gaussian.mean[at]
    return values


def _polish(
    parts: Parts, values: NDArray[np.float64], reals: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Climbs the true log-density over some bounded reals, everything else fixed."""
    ids = parts.real[reals]

    def energy(x: NDArray[np.float64]) -> float:
        trial = values.copy()
        trial[ids] = x
        return -parts.graph.log_density(trial)

    box = list(zip(parts.lower[reals], parts.upper[reals], strict=True))
    found = minimize(energy, values[ids], method="L-BFGS-B", bounds=box, options={"ftol": 1e-15})
    better = values.copy()
    better[ids] = found.x
    return better if found.fun < energy(values[ids]) else values
