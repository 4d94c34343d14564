"""Look-alike parts of a graph, found and merged."""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hylift.errors import ModelError
from hylift.graph import FactorGraph
from hylift.lifting.coloring import TOLERANCE, Partition, stable_coloring
from hylift.lifting.prepared import Prepared
from hylift.lifting.quotient import factor_classes, quotient
from hylift.progress import Progress, silent
from hylift.words import counted, num_classes

if TYPE_CHECKING:
    from hylift.lifting.explanation import Explanation


@dataclass(frozen=True, slots=True, eq=False)
class Lifting:
    """A graph, its classes of look-alikes, and the graph of these classes.

    Members of classes are variables of `ground`, which has the hidden ones only, and numbers them
    anew: its variable i is variable `hidden[i]` of `source`.
    """

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
    """Whether members of a class are equal to the tolerance; not so in coarse liftings."""
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
        """What is known of classes (class, …) told of all variables of `ground` (variable, …)."""
        values = np.asarray(values)
        if values.ndim == 0 or len(values) != self.num_classes:
            raise ModelError(
                f"there must be one value per class, {self.num_classes} in all, not values of "
                f"shape {values.shape}"
            )
        return values[self.variable_to_class]

    def members(self, number: int) -> NDArray[np.int64]:
        """Ids, in `ground`, of the variables of a class; those in `source` are `hidden[ids]`."""
        try:
            place = operator.index(number)
        except TypeError:
            place = -1
        if not 0 <= place < self.num_classes:
            there = f"0 to {self.num_classes - 1}" if self.num_classes else "and there are none"
            raise ModelError(f"classes are whole numbers, {there}, not {number!r}")
        return np.flatnonzero(self.variable_to_class == place)

    def member_names(self, number: int) -> pa.StringArray:
        """Names of the variables of a class."""
        return self.ground.variables.names.render(self.members(number))

    def class_of(self, name: str) -> int:
        """The class of a hidden variable."""
        return int(self.variable_to_class[self.ground.variables.id(name)])

    def explain(self, progress: Progress = silent) -> Explanation:
        """How much was saved, by which classes, and what evidence stood against it."""
        from hylift.lifting.explanation import explain

        return explain(self, progress)

    def __repr__(self) -> str:
        ground = self.ground
        exact = "exact" if self.tolerance <= TOLERANCE else f"equal to {self.tolerance:g}"
        return (
            f"Lifting({counted(ground.num_variables, 'hidden variable')} in "
            f"{num_classes(self.num_classes)}, {counted(ground.num_factors, 'factor')} in "
            f"{self.graph.num_factors:,}, {exact if self.is_exact else 'coarse'})"
        )


def lift(
    graph: FactorGraph, *, tolerance: float = TOLERANCE, progress: Progress = silent
) -> Lifting:
    """The graph with look-alike variables and factors merged, without any loss.

    Evidence is absorbed first. Variables are in one class when no chain of factors tells them
    apart: same domain, and the same kinds of factors to the same classes, equally often. Parameters
    are equal to a relative tolerance: one above the default takes for equal what is not.
    """
    progress(0.0, "absorbing evidence")
    prepared = Prepared.of(graph, tolerance)
    progress(0.4, "passing colors")
    partition = stable_coloring(prepared.structure, links=prepared.links)
    progress(0.9, "merging")
    found = Lifting.of(prepared, partition, is_exact=True)
    progress(1.0, "lifted")
    return found
