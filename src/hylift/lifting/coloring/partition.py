"""Variables and factors sorted into classes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hylift.errors import ModelError
from hylift.lifting.coloring.structure import Structure
from hylift.lifting.kernels.coloring import group_factors, hash_factors
from hylift.numerics.kernels.grouping import first_members, group_pairs


@dataclass(frozen=True, slots=True, eq=False)
class Partition:
    """Classes of variables and of factors, numbered in the order of their first members."""

    variable: NDArray[np.int32]  # (variable,): its class
    factor: NDArray[np.int32]  # (factor,): its class
    first_variable: NDArray[np.int64]  # (variable class,): its first member
    first_factor: NDArray[np.int64]  # (factor class,): its first member
    kind: NDArray[np.int32]  # (factor,): the kinds by which factors were told apart

    @property
    def num_variable_classes(self) -> int:
        return len(self.first_variable)

    @property
    def num_factor_classes(self) -> int:
        return len(self.first_factor)


def tie(
    structure: Structure, variable: NDArray[Any], kind: NDArray[np.int32] | None = None
) -> Partition:
    """Any classes of variables, and the classes of factors that follow from them.

    Factors are in one class when they have one kind and the same classes of variables in their
    slots, exchangeable ones in any order. By default all factors of a group have one kind. Where
    the rows of a group's potential cannot be averaged, different rows are always told apart.
    """
    numbers = _checked(variable, structure.num_variables, "variables")
    classes, count = group_pairs(np.zeros(len(numbers), dtype=np.int32), numbers)
    by_group = _kinds_by_group(structure)
    if kind is not None:
        by_group, _ = group_pairs(by_group, _checked(kind, structure.num_factors, "factors"))
    return partition(structure, classes, count, by_group)


def _checked(numbers: NDArray[Any], size: int, what: str) -> NDArray[np.uint64]:
    numbers = np.asarray(numbers)
    if numbers.shape != (size,) or numbers.dtype.kind not in "iu":
        raise ModelError(
            f"a partition of {size} {what} has an integer for each, not an array of "
            f"{numbers.dtype} of shape {numbers.shape}"
        )
    return numbers.astype(np.uint64)


def partition(
    structure: Structure,
    variable: NDArray[np.int32],
    count: int,
    kind: NDArray[np.int32],
    signs: NDArray[np.uint64] | None = None,
) -> Partition:
    """Classes of variables, numbered in the order of their first members, with those of factors.

    signs: (factor,), hashes that are equal for factors of one class, if they are known.
    """
    walk = (structure.slots, structure.first, structure.orbit, kind, variable)
    signs = hash_factors(*walk) if signs is None else signs
    factor, first_factor = group_factors(*walk, signs, count)
    return Partition(variable, factor, first_members(variable, count), first_factor, kind)


def _kinds_by_group(structure: Structure) -> NDArray[np.int32]:
    """(factor,): the coarsest kinds there may be."""
    kind = structure.kind.copy()
    for group, averages in enumerate(structure.averages):
        if averages:
            begin, end = structure.offsets[group : group + 2]
            kind[begin:end] = structure.num_kinds + group
    return kind
