"""The most probable joint assignment."""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import NDArray

from hylift.inference.exact.bounds import (
    grid_check,
    improper_but_closed,
    in_functions,
)
from hylift.inference.exact.elimination import connected, scope_edges
from hylift.inference.exact.grid import make_grid
from hylift.inference.exact.integrate import Outcome, integrate_reals, sum_states
from hylift.inference.exact.panels import halved, resolving_edges
from hylift.inference.exact.parts import Parts
from hylift.inference.method import Progress
from hylift.posterior.answers import Kind


def maximise(
    parts: Parts, *, max_entries: int, progress: Progress
) -> tuple[NDArray[np.float64], float, Kind]:
    """Values of all hidden variables, their energy, and whether they are surely the best.

    They are where every bounded real has its unbounded optimum inside its interval. Otherwise
    bounded reals are searched on a grid, and polished given the best discrete states.
    """
    gridded = in_functions(parts)
    while True:
        grid_check(parts, gridded)
        grid = make_grid(parts, gridded, halved(resolving_edges(parts, gridded)))
        reals = integrate_reals(parts, grid, max_entries, maximise=True)
        outside = improper_but_closed(parts, reals)
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
        gridded[outside] = True
    if gridded.any():
        component = real_components(parts)
        values = _polish(parts, values, np.flatnonzero(np.isin(component, component[gridded])))
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
    joint = components.joint_states(outcome.state, grid.num_states)
    at = gaussian.real_ptr[:-1] + joint[components.of_step]
    values[parts.real[outcome.reals.of_step]] = gaussian.mean[at]
    return values


def real_components(parts: Parts) -> NDArray[np.int32]:
    """(real,): the component of each real, where factors couple all their reals."""
    num_reals = len(parts.real)
    edges = scope_edges([f.real for f in (*parts.quadratics, *parts.functions)], num_reals)
    return connected(num_reals, edges)


def _polish(
    parts: Parts, values: NDArray[np.float64], reals: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Climbs the true log-density over some reals, everything else fixed."""
    from scipy.optimize import minimize  # slow to import, and rarely needed

    ids = parts.real[reals]

    def energy(x: NDArray[np.float64]) -> float:
        trial = values.copy()
        trial[ids] = x
        return -parts.graph.log_density(trial)

    box = list(zip(parts.lower[reals], parts.upper[reals], strict=True))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # differences of infinite energies
        found = minimize(
            energy, values[ids], method="L-BFGS-B", bounds=box, options={"ftol": 1e-15}
        )
    better = values.copy()
    better[ids] = found.x
    return better if found.fun < energy(values[ids]) else values
