"""What posteriors of graphs know of the model behind them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hylift.graph import Evidence, FactorGraph
from hylift.posterior import Assignment, Mixture, Target


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
