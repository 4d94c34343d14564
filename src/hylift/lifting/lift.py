"""Look-alike parts of a graph, found and merged."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hylift.errors import ModelError
from hylift.graph import FactorGraph
from hylift.lifting.coloring import TOLERANCE, Partition, stable_coloring
from hylift.lifting.prepared import Prepared
from hylift.lifting.quotient import factor_classes, quotient
from hylift.progress import Progress, silent

if TYPE_CHECKING:
    from hylift.lifting.explanation import Explanation


@dataclass(frozen=True, slots=True, eq=False)
class Lifting:
    """A graph, its classes of look-alikes, and the graph of these classes."""

    source: FactorGraph
    """As it was given, with its evidence."""
    ground: FactorGraph
    """Of the hidden variables, with the evidence in its factors."""
    hidden: NDArray[np.int64]  # (ground variable,): its id in `source`
    graph: FactorGraph
    """Lifted: a variable per class, named like the first member, with its multiplicity."""
    variable_to_class: NDArray[np.int32]  # (ground variable,)
    factor_to_class: tuple[NDArray[np.int32], ...]  # per group of `ground` (factor,)
    is_exact: bool
    """Whether members of a class differ in nothing; not so in coarse liftings."""

    tolerance: float
    """Relative difference up to which parameters were taken for equal."""

    @classmethod
    def of(cls, prepared: Prepared, partition: Partition, *, is_exact: bool) -> Lifting:
        """From a partition of a conditioned graph."""
        hidden, structure = prepared.conditioned, prepared.structure
        return cls(
            prepared.source,
            hidden.graph,
            hidden.hidden,
            quotient(hidden.graph, structure, partition),
            partition.variable,
            factor_classes(structure, partition),
            is_exact,
            prepared.tolerance,
        )

    @property
    def num_classes(self) -> int:
        """Number of classes of variables."""
        return self.graph.num_variables

    def spread(self, values: NDArray[Any]) -> NDArray[Any]:
        """What is known of classes (class, …) told of all ground variables (variable, …)."""
        values = np.asarray(values)
        if values.ndim == 0 or len(values) != self.num_classes:
            raise ModelError(
                f"there are {self.num_classes} classes, not as many as values of shape "
                f"{values.shape}"
            )
        return values[self.variable_to_class]

    def members(self, number: int) -> NDArray[np.int64]:
        """Ids, in the ground graph, of the variables of a class."""
        if not 0 <= number < self.num_classes:
            raise ModelError(f"there is no class {number}: there are {self.num_classes}")
        return np.flatnonzero(self.variable_to_class == number)

    def class_of(self, name: str) -> int:
        """The class of a hidden variable."""
        return int(self.variable_to_class[self.ground.variables.names.id(name)])

    def explain(self, progress: Progress = silent) -> Explanation:
        """How much was saved, by which classes, and what evidence stood against it."""
        from hylift.lifting.explanation import explain

        return explain(self, progress)

    def __repr__(self) -> str:
        exact = "exact" if self.is_exact else "coarse"
        return (
            f"Lifting({self.ground.num_variables} hidden variables in {self.num_classes} classes, "
            f"{self.ground.num_factors} factors in {self.graph.num_factors}, {exact})"
        )


def lift(
    graph: FactorGraph, *, tolerance: float = TOLERANCE, progress: Progress = silent
) -> Lifting:
    """The graph with look-alike variables and factors merged, without any loss.

    Evidence is absorbed first. Variables are in one class when no chain of factors tells them
    apart: same domain, and the same kinds of factors to the same classes, equally often. Parameters
    are equal to a relative tolerance.
    """
    progress(0.0, "absorbing evidence")
    prepared = Prepared.of(graph, tolerance)
    progress(0.4, "passing colors")
    partition = stable_coloring(prepared.structure, links=prepared.links)
    progress(0.9, "merging")
    found = Lifting.of(prepared, partition, is_exact=True)
    progress(1.0, "lifted")
    return found
