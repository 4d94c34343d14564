"""What a solver sees of a graph: all of it, or its lifting."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hylift.graph import FactorGraph, conditioned
from hylift.lifting import Lifting


@dataclass(frozen=True, slots=True, eq=False)
class View:
    """A graph to infer in, and how the variables of the user's graph stand in it."""

    graph: FactorGraph
    """Without evidence; lifted or not."""
    ground: FactorGraph
    """Without evidence, not lifted."""
    hidden: NDArray[np.int64]  # (ground variable,): its id in the user's graph
    variable_to_class: NDArray[np.int32]  # (ground variable,): its variable in `graph`
    parent: NDArray[np.int32] | None = None
    """(variable of `graph`,): where it was before, in the coarser view."""
    is_last: bool = True
    shift: NDArray[np.float64] | None = None
    """(ground variable,): what is to be added to it; None where that is 0."""

    @classmethod
    def whole(cls, graph: FactorGraph) -> View:
        """The graph itself, not lifted."""
        hidden = conditioned(graph)
        same = np.arange(hidden.graph.num_variables, dtype=np.int32)
        return cls(hidden.graph, hidden.graph, hidden.hidden, same)

    @classmethod
    def lifted(
        cls, lifting: Lifting, parent: NDArray[np.int32] | None = None, *, is_last: bool = True
    ) -> View:
        return cls(
            lifting.graph,
            lifting.ground,
            lifting.hidden,
            lifting.variable_to_class,
            parent,
            is_last,
        )
