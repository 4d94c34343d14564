"""The lifted graph: one variable per class of variables, one factor per class of factors."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hylift.errors import ModelError
from hylift.graph import FactorGraph, FactorGroup, Variables
from hylift.lifting.coloring import Partition
from hylift.lifting.structure import Structure, check_conditioned
from hylift.numerics.grouping import average_rows, class_sums
from hylift.numerics.segments import inverse
from hylift.potentials import Potential


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
