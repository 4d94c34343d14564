"""What rounding may do to log Z where large terms cancel."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hylift.graph import FactorGraph, FactorGroup, conditioned
from hylift.inference.exact.integrate import NEGLIGIBLE, Outcome
from hylift.inference.exact.parts import Parts
from hylift.potentials import ConditionalQuadratic

EPS = float(np.finfo(np.float64).eps)


def rounding(graph: FactorGraph, parts: Parts, outcome: Outcome) -> float:
    """Rough size of what rounding does to log Z; graph: with its evidence.

    A term of a factor that is off by a share of eps moves log Z by that share of its value where
    the reals are, however much of it other terms take away again: so o²/r of an observed o, while
    evidence is absorbed, and when the factors are added up.
    """
    if not len(parts.real):
        return 0.0
    is_quadratic = [isinstance(group.potential, ConditionalQuadratic) for group in graph.groups]
    pairs = list(zip(graph.groups, is_quadratic, strict=True))
    # Of functions, and of soft evidence, what is left of them, which may be quadratic.
    others = (group for group, is_one in pairs if not is_one)
    rest = conditioned(FactorGraph.unchecked(graph.variables, others, graph.evidence, 0.0))
    value = np.zeros(graph.num_variables)
    value[rest.hidden[parts.real]] = _sizes(parts, outcome)
    hard = graph.evidence.is_hard
    value[graph.evidence.variable[hard]] = np.abs(graph.evidence.value[hard])
    total = sum(_absolute(group, value) for group, is_one in pairs if is_one)
    total += sum(_absolute(group, value[rest.hidden]) for group in rest.graph.groups)
    return EPS * total + outcome.rounding


def _sizes(parts: Parts, outcome: Outcome) -> NDArray[np.float64]:
    """(real,): how far from 0 it is, in the state of those that matter in which it is farthest."""
    grid, gaussian, components = (
        outcome.reals.grid,
        outcome.reals.gaussian,
        outcome.reals.components,
    )
    found = np.zeros(len(parts.real))
    count = np.diff(gaussian.state_ptr)[components.of_step]
    step = np.repeat(np.arange(len(count)), count)
    size = np.abs(gaussian.mean)
    if outcome.weights is not None:
        within = np.arange(len(step)) - gaussian.real_ptr[step]
        weight = outcome.weights[gaussian.state_ptr[components.of_step[step]] + within]
        size = np.where(weight > NEGLIGIBLE, size, 0.0)
    np.maximum.at(found, outcome.reals.of_step[step], size)
    if len(grid.real) and outcome.marginals is not None:
        probs = outcome.marginals[-grid.nodes.size :].reshape(grid.nodes.shape)
        found[grid.real] = np.sqrt((probs * grid.nodes**2).sum(axis=1))
    return found


def _absolute(group: FactorGroup, value: NDArray[np.float64]) -> float:
    """The sum of all terms of quadratics, as absolute numbers, at values ≥ 0 (variable,)."""
    potential = group.potential
    if not isinstance(potential, ConditionalQuadratic) or not len(group):
        return 0.0
    num_rows, num_reals = potential.num_rows, potential.num_reals
    reals = value[group.scope[:, potential.num_discrete :]]
    A = np.abs(potential.A).reshape(num_rows, -1, num_reals, num_reals)
    b = np.abs(potential.b).reshape(num_rows, -1, num_reals)
    c = np.abs(potential.c).reshape(num_rows, -1)
    total = np.where(np.isfinite(c), c, 0.0)[group.row]  # (factor, state)
    for i in range(num_reals):
        slope = b[..., i][group.row]
        for j in range(num_reals):
            slope += A[..., i, j][group.row] * reals[:, j, None]
        total += slope * reals[:, i, None]
    return float(group.multiplicity @ total.max(axis=1))
