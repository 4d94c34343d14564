"""A graph of the same distribution as another, which is easier, and the way back."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hylift.graph.factor_graph import FactorGraph
from hylift.rewrite.state_map import WayBack


@dataclass(frozen=True, slots=True, eq=False)
class Rewritten:
    """A graph of the same distribution as another: log Z is the same, and answers about the
    variables of the other follow from answers about its own.

    One that was made to be maximised has the same maximum instead of the same log Z."""

    name: str
    graph: FactorGraph
    """Ground, without evidence."""
    back: WayBack
    summary: str
    """Sizes, for explanations: `12 variables in 4 clusters of up to 3 joint states`."""
    copies: NDArray[np.int64] | None = None
    """(variable of `graph`,): how many copies of its part there were, which are independent: log Z
    is that of each part times its copies, and the constant of the graph before. None for one each.
    No other rewrite follows."""
    keeps_maximum: bool = True
    """The best assignment to its variables leads back to the best one before."""
