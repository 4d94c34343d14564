"""Where the objective's gradient disagrees within a class: evidence worth telling apart first."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hylift.errors import ModelError
from hylift.graph import FactorGroup
from hylift.lifting.coarse.kernels.sums import add_rows, squared_norms
from hylift.lifting.coarse.levels import Choose, Level
from hylift.lifting.coloring.kernels.grouping import group_pairs
from hylift.potentials import REAL, Potential
from hylift.potentials.base import along_axis
from hylift.potentials.quadrature import nodes_per_slot

FloatArray = NDArray[np.float64]

MAX_POINTS = 1 << 20
"""Log-potentials that are evaluated at once."""

IMPOSSIBLE = -1e6
"""Stands for -inf, which has no differences."""


@dataclass(frozen=True, slots=True, eq=False)
class Beliefs:
    """Σ_k w_k Π_i q_i^k over the classes of a level, as a solver left it."""

    weights: FloatArray  # (component,)
    mean: FloatArray  # (component, class), of reals
    var: FloatArray  # (component, class), of reals
    probs: FloatArray  # (component, class, state), 0 beyond the last state

    def check(self, level: Level) -> None:
        """Raises unless these are beliefs about the classes of this level."""
        variables = level.lifting.graph.variables
        shape = (len(self.weights), len(variables))
        most = int(variables.num_states.max(initial=0))
        shapes = self.mean.shape, self.var.shape, self.probs.shape[:2]
        if any(found != shape for found in shapes) or self.probs.shape[2] < most:
            raise ModelError(
                f"beliefs of {shape[0]} components about {shape[1]} classes have means and "
                f"variances of shape {shape} and probabilities of shape {(*shape, most)}, not "
                f"{self.mean.shape}, {self.var.shape} and {self.probs.shape}"
            )


def disagreement(level: Level, beliefs: Beliefs) -> FloatArray:
    """(cluster,): how much members of a class would gain by leaving it, for what is in the cluster.

    At beliefs that are the same for all members of a class, the gradients of the objective with
    respect to the beliefs about single members differ only by evidence that its factors have
    absorbed. A cluster's disagreement is the squared length of its share in these differences,
    summed over members: the gain of a short step along the natural gradient, which no change of
    the beliefs about classes can make.
    """
    beliefs.check(level)
    groups = [group for group in _unlike_factors(level) if len(group.row)]
    pairs = _Pairs.of(level, groups)
    found = np.zeros(len(level.clusters))
    for component, weight in enumerate(beliefs.weights):
        total = np.zeros(int(pairs.begin[-1]))
        for place, group in enumerate(groups):
            pairs.add(total, place, *_gradients(level, group, beliefs, component))
        found += weight * pairs.by_cluster(total, len(found))
    return found
