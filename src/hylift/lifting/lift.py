"""Lifting: look-alike variables and factors merged into classes."""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hylift.errors import ModelError
from hylift.graph import FactorGraph
from hylift.lifting.coloring import Partition, stable_coloring
from hylift.lifting.quotient import factor_classes, quotient
from hylift.lifting.structure import LiftingInput
from hylift.potentials.alike import TOLERANCE
from hylift.progress import Progress, silent
from hylift.words import counted, num_classes

if TYPE_CHECKING:
    from hylift.lifting.explanation import Explanation


@dataclass(frozen=True, slots=True, eq=False)
class Lifting:
    """A graph, its classes of look-alikes, and the graph of these classes.

    Members of classes are variables of `ground`, which has only the hidden ones: its variable i is
    variable `hidden[i]` of `source`.
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
    """True if members of a class are equal to the tolerance; False for coarse liftings."""
    tolerance: float
    """Relative difference up to which parameters count as equal."""

    @classmethod
    def of(cls, given: LiftingInput, partition: Partition, *, is_exact: bool) -> Lifting:
        """From a partition of a conditioned graph."""
        hidden, structure = given.conditioned, given.structure
        return cls(
            given.source,
            hidden.graph,
            hidden.hidden,
            quotient(hidden.graph, structure, partition),
            partition.variable,
            factor_classes(structure, partition),
            is_exact,
            given.tolerance,
        )

    @property
    def num_classes(self) -> int:
        """Number of classes of variables."""
        return self.graph.num_variables

    def spread(self, values: NDArray[Any]) -> NDArray[Any]:
        """Values of classes (class, …) repeated for all variables of `ground` (variable, …)."""
        values = np.asarray(values)
        if values.ndim == 0 or len(values) != self.num_classes:
            raise ModelError(
                f"expected one value per class, {self.num_classes} in all, not values of shape "
                f"{values.shape}"
            )
        return values[self.variable_to_class]

    def members(self, number: int) -> NDArray[np.int64]:
        """Ids, in `ground`, of the variables of a class; those in `source` are `hidden[ids]`."""
        try:
            place = operator.index(number)
        except TypeError:
            place = -1
        if not 0 <= place < self.num_classes:
            known = f"classes are 0 to {self.num_classes - 1}"
            known = known if self.num_classes else "there are no classes"
            raise ModelError(f"class {number!r} does not exist: {known}")
        return np.flatnonzero(self.variable_to_class == place)

    def member_names(self, number: int) -> pa.StringArray:
        """Names of the variables of a class."""
        return self.ground.variables.names.render(self.members(number))

    def class_of(self, name: str) -> int:
        """The class of a hidden variable."""
        return int(self.variable_to_class[self.ground.variables.id(name)])

    def explain(self, progress: Progress = silent) -> Explanation:
        """The savings of lifting, the largest classes, and the evidence that breaks symmetry."""
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
    """The graph with look-alike variables and factors merged, without loss.

    Evidence is absorbed first. Variables are in one class when they have the same domain and the
    same kinds of factors to the same classes, equally often. Parameters are compared to a relative
    tolerance; above the default, parameters that differ count as equal.
    """
    progress(0.0, "absorbing evidence")
    given = LiftingInput.of(graph, tolerance)
    progress(0.4, "passing colors")
    partition = stable_coloring(given.structure)
    progress(0.9, "merging")
    found = Lifting.of(given, partition, is_exact=True)
    progress(1.0, "lifted")
    return found
