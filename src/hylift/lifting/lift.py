"""Lifting: look-alike variables and factors merged into classes."""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hylift.errors import ModelError
from hylift.graph import FactorGraph, FactorGroup, Variables
from hylift.lifting.coloring import Partition, stable_coloring
from hylift.lifting.structure import LiftingInput, Structure, check_conditioned
from hylift.numerics.grouping import average_rows, class_sums
from hylift.numerics.segments import inverse
from hylift.potentials import Potential
from hylift.potentials.alike import TOLERANCE
from hylift.progress import Progress, silent
from hylift.words import counted, num_classes


def quotient(graph: FactorGraph, structure: Structure, partition: Partition) -> FactorGraph:
    """The graph of the classes; its multiplicities sum to those of the graph.

    For any partition its energy, and every objective that is a sum over factors and variables, is
    that of the graph when all members of a class have the same value: factors of a class with
    different parameters are replaced by their mean.
    """
    check_conditioned(graph)
    sizes = (graph.num_variables, graph.num_factors)
    if sizes != (len(partition.variable), len(partition.factor)):
        raise ModelError(
            f"a partition of {len(partition.variable)} variables and {len(partition.factor)} "
            f"factors does not fit a graph of {sizes[0]} and {sizes[1]}"
        )
    groups = []
    for group, factors, to_class in _classes(graph, structure, partition):
        size = len(factors)
        potential, row = _parameters(group, factors, to_class)
        groups.append(
            FactorGroup.unchecked(
                potential,
                partition.variable[group.scope[factors]],
                row,
                class_sums(group.multiplicity, to_class, size),
                group.label,
            )
        )
    return FactorGraph.unchecked(
        _variables(graph.variables, partition), groups, graph.evidence, graph.log_constant
    )


def factor_classes(structure: Structure, partition: Partition) -> tuple[NDArray[np.int32], ...]:
    """Per group (factor,): the factor of the quotient's group that stands for each."""
    found = []
    for begin, end in zip(structure.offsets[:-1], structure.offsets[1:], strict=True):
        part = partition.factor[begin:end]
        found.append(part - part[0] if len(part) else part)
    return tuple(found)


def _classes(
    graph: FactorGraph, structure: Structure, partition: Partition
) -> list[tuple[FactorGroup, NDArray[np.int64], NDArray[np.int32]]]:
    """Each group, the first factors of its classes, and the class of each of its factors.

    No class has factors of two groups, so the classes of a group have consecutive numbers.
    """
    found, done = [], 0
    for place, (group, to_class) in enumerate(
        zip(graph.groups, factor_classes(structure, partition), strict=True)
    ):
        count = int(to_class.max(initial=-1)) + 1
        first = partition.first_factor[done : done + count] - structure.offsets[place]
        found.append((group, first, to_class))
        done += count
    return found


def _parameters(
    group: FactorGroup, first: NDArray[np.int64], to_class: NDArray[np.int32]
) -> tuple[Potential, NDArray[np.int32]]:
    """The potential of the classes' factors, and the row of each.

    A row that all members of a class share is kept and stays shared.
    """
    own = group.row[first]
    mixed = np.zeros(len(first), dtype=bool)
    if group.potential.averages:
        mixed[to_class[group.row != own[to_class]]] = True
    kept, row = _used(own[~mixed], group.potential.num_rows)
    all_kept = len(kept) == group.potential.num_rows
    potential = group.potential if all_kept else group.potential.take(kept)
    new_row = np.empty(len(first), dtype=np.int32)
    new_row[~mixed] = row
    num_mixed = int(np.count_nonzero(mixed))
    if num_mixed:
        target = inverse(np.flatnonzero(mixed), len(first), np.int32)
        means = average_rows(
            group.potential.flat, group.row, group.multiplicity, target[to_class], own[mixed]
        )
        averaged = group.potential.with_flat(means)
        potential = potential.stack([averaged]) if len(kept) else averaged
        new_row[mixed] = len(kept) + np.arange(num_mixed)
    return potential, new_row


def _used(row: NDArray[np.int32], num_rows: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The rows that occur, and the place of each row among them."""
    occurs = np.zeros(num_rows, dtype=bool)
    occurs[row] = True
    return np.flatnonzero(occurs), (np.cumsum(occurs) - 1)[row]


def _variables(variables: Variables, partition: Partition) -> Variables:
    """One variable per class, named like its first member."""
    first = partition.first_variable
    if len(first) == len(variables):
        return variables
    alike = partition.variable
    domain = variables.domain_number
    different = domain != domain[first][alike]
    if different.any():
        at = int(np.argmax(different))
        one, other = (variables.names[int(v)] for v in (at, first[alike[at]]))
        raise ModelError(f"'{one}' and '{other}' have different domains and cannot be in one class")
    taken = variables.take(first)
    size = class_sums(variables.multiplicity, alike, len(first))
    return Variables(taken.domains, taken.domain_id, taken.names, size)


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
