"""Gradients of expected log-potentials, in units of the beliefs themselves."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hylift.errors import ModelError
from hylift.graph import Variables
from hylift.numerics.quadrature import hermite_rule, nodes_per_slot
from hylift.potentials import REAL, ConditionalQuadratic, Potential
from hylift.potentials.base import along_axis, expectation_given

FloatArray = NDArray[np.float64]

MAX_POINTS = 1 << 17
"""Log-potentials that are evaluated at once: more of them leave the cache."""

IMPOSSIBLE = -1e6
"""Stands for a log-potential of -inf, from which nothing can be subtracted."""


@dataclass(frozen=True, slots=True, eq=False)
class Beliefs:
    """Σ_k w_k Π_i q_i^k over variables: the current state of a variational solver."""

    weights: FloatArray  # (component,)
    mean: FloatArray  # (component, variable), of reals
    var: FloatArray  # (component, variable), of reals
    probs: FloatArray  # (component, variable, state), 0 beyond the last state

    def check(self, variables: Variables) -> None:
        """Raises unless these are beliefs about these variables."""
        for name in ("weights", "mean", "var", "probs"):
            if not np.isfinite(getattr(self, name)).all():
                raise ModelError(f"beliefs are finite numbers, but some of their {name} are not")
        shape = (len(self.weights), len(variables))
        most = int(variables.num_states.max(initial=0))
        shapes = self.mean.shape, self.var.shape, self.probs.shape[:2]
        if any(found != shape for found in shapes) or self.probs.shape[2] < most:
            raise ModelError(
                f"{shape[0]} components of beliefs about {shape[1]} variables have means and "
                f"variances of shape {shape} and probabilities of shape {(*shape, most)}, not of "
                f"{self.mean.shape}, {self.var.shape} and {self.probs.shape}"
            )


@dataclass(frozen=True, slots=True, eq=False)
class SlotPoints:
    """One component's beliefs about the variables in one slot, as weighted points."""

    points: NDArray[Any]  # (factor, point): nodes, or states
    weights: FloatArray  # (factor, point)
    directions: FloatArray | None  # (point, 2), of a real

    def gradient(self, at_points: FloatArray) -> FloatArray:
        """(factor, direction): the gradient of the expectation of f, of which E[f | point] is
        given for each point, in coordinates in which the Fisher information is the identity.

        Of a Gaussian these are E[f z] = σ ∂/∂μ and E[f (z² - 1)] / √2 = √2 σ² ∂/∂σ². Of
        probabilities p they are √p (E[f | state] - E[f]).
        """
        if self.directions is not None:
            return at_points @ self.directions
        mean = (self.weights * at_points).sum(axis=1, keepdims=True)
        return np.asarray(np.sqrt(self.weights) * (at_points - mean))


def gradients(
    potential: Potential,
    row: NDArray[np.int32],
    scope: NDArray[np.int32],
    variables: Variables,
    beliefs: Beliefs,
    component: int,
) -> Iterator[tuple[slice, list[FloatArray]]]:
    """Factors, batch by batch, and per slot the gradients (factor, direction) of their expected
    log-potentials under one component, divided by its weight.

    scope: (factor, slot), of variables that the beliefs are about.
    """
    num_states = variables.num_states
    sizes = [int(num_states[column].max(initial=0)) for column in scope.T]
    num_reals = sizes.count(REAL)
    # Three nodes are exact for quadratics: with the score it is degree 4 that is integrated.
    quadratic = isinstance(potential, ConditionalQuadratic)
    num_nodes = 3 if quadratic else nodes_per_slot(num_reals)
    num_points = np.prod([size or num_nodes for size in sizes])
    step = max(1, int(MAX_POINTS // num_points))
    for begin in range(0, len(row), step):
        batch = slice(begin, begin + step)
        slots = [
            _slot_points(beliefs, component, column, num_states[column], size, num_nodes)
            for column, size in zip(scope[batch].T, sizes, strict=True)
        ]
        values = _values(potential, row[batch], slots)
        weights = [slot.weights for slot in slots]
        yield (
            batch,
            [
                slot.gradient(expectation_given(values, weights, at))
                for at, slot in enumerate(slots)
            ],
        )


def _slot_points(
    beliefs: Beliefs,
    component: int,
    variable: NDArray[np.int32],
    num_states: NDArray[np.int32],
    size: int,
    num_nodes: int,
) -> SlotPoints:
    if size:
        # Where a function takes variables of any size, the states beyond the last have no weight.
        states = np.minimum(np.arange(size), num_states[:, None] - 1)
        return SlotPoints(states, beliefs.probs[component, variable, :size], None)
    nodes, weights = hermite_rule(num_nodes)
    sd = np.sqrt(beliefs.var[component, variable])
    points = beliefs.mean[component, variable][:, None] + sd[:, None] * nodes
    scores = np.stack([nodes, (nodes**2 - 1) / np.sqrt(2)], axis=1)
    return SlotPoints(points, np.broadcast_to(weights, points.shape), weights[:, None] * scores)


def _values(
    potential: Potential, row: NDArray[np.int32], slots: Sequence[SlotPoints]
) -> FloatArray:
    """(factor, point of slot 0, point of slot 1, …): log-potentials."""
    arity = len(slots)
    grid = [
        slot.points.reshape(along_axis(axis, arity, len(row))) for axis, slot in enumerate(slots)
    ]
    values = potential.log_value(row.reshape((-1,) + (1,) * arity), grid)
    values = np.broadcast_to(values, (len(row), *(slot.points.shape[1] for slot in slots)))
    return np.where(values == -np.inf, IMPOSSIBLE, values)
