"""What posteriors of graphs know of the model behind them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hylift.graph import Evidence, FactorGraph
from hylift.posterior import Assignment, Mixture, Target
from hylift.posterior.answers import Kind


def assignment_of(
    graph: FactorGraph,
    hidden: NDArray[Any],
    values: NDArray[np.float64],
    energy: float,
    kind: Kind = "estimate",
) -> Assignment:
    """Values of all variables: these of the hidden ones, and what was observed.

    hidden: ids, or a mask of all variables.
    """
    whole = np.zeros(graph.num_variables)
    whole[graph.evidence.variable] = graph.evidence.value
    whole[hidden] = values
    observed = np.ones(graph.num_variables, dtype=bool)
    observed[hidden] = False
    return Assignment(graph.variables, whole, observed, energy, kind)


@dataclass(frozen=True, slots=True, eq=False)
class GraphTarget(Target):
    """A graph, and a way to its best assignment."""

    graph: FactorGraph
    conditioned: FactorGraph
    hidden: NDArray[np.bool_]  # (variable,)
    find_assignment: Callable[[], Assignment]

    @property
    def evidence(self) -> Evidence:
        return self.graph.evidence

    def energy(self, values: NDArray[np.float64]) -> float:
        return -self.conditioned.log_density(values[self.hidden])

    def map(self, mixture: Mixture | None) -> Assignment:
        return self.find_assignment()
