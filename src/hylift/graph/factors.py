"""Factors that share one potential."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hylift.errors import ModelError
from hylift.graph.variables import check_multiplicity, set_frozen
from hylift.numerics.segments import offsets
from hylift.potentials import Potential


@dataclass(frozen=True, slots=True, eq=False)
class FactorGroup:
    """Factors that share one potential, stacked so that one kernel call serves them all."""

    potential: Potential
    scope: NDArray[np.int32]  # (factor, slot): variable ids
    row: NDArray[np.int32] = None  # type: ignore[assignment]
    """(factor,): parameter row of the potential. By default row 0 if there is only one, and
    otherwise one row per factor."""
    multiplicity: NDArray[np.float64] = None  # type: ignore[assignment]
    """(factor,): ground factors each row of `scope` stands for, 1 by default."""
    label: str = ""
    """The origin of the factors, such as a rule; errors quote it."""

    def __post_init__(self) -> None:
        set_frozen(self, scope=(self.scope, np.int32))
        scope, given, row = self.scope, self.multiplicity, self.row
        arity = len(self.potential.slot_states)
        if scope.ndim != 2 or scope.shape[1] != arity:
            raise ModelError(
                f"{self.named()}: the potential has {arity} slots, so its scope is an array "
                f"(factor, {arity}), not one of shape {scope.shape}"
            )
        set_frozen(
            self,
            row=(self._default_row(len(scope)) if row is None else row, np.int32),
            multiplicity=(np.ones(len(scope)) if given is None else given, np.float64),
        )
        row = self.row
        for what, array in (("row", row), ("multiplicity", self.multiplicity)):
            if array.shape != (len(scope),):
                raise ModelError(
                    f"{self.named()}: {len(scope)} factors need one {what} each, "
                    f"not an array of shape {array.shape}"
                )
        if len(row) and (row.min() < 0 or row.max() >= self.potential.num_rows):
            wrong = (row < 0) | (row >= self.potential.num_rows)
            at = int(np.argmax(wrong))
            raise ModelError(
                f"{self.named(at)} uses parameter row {row[at]}, "
                f"but the potential has {self.potential.num_rows}"
            )
        if given is not None:
            check_multiplicity(self.multiplicity, self.named)

    @classmethod
    def unchecked(
        cls,
        potential: Potential,
        scope: NDArray[np.int32],
        row: NDArray[np.int32],
        multiplicity: NDArray[np.float64],
        label: str,
    ) -> FactorGroup:
        """A group of parts that are known to fit, without checks."""
        group = object.__new__(cls)
        object.__setattr__(group, "potential", potential)
        object.__setattr__(group, "label", label)
        set_frozen(
            group,
            scope=(scope, np.int32),
            row=(row, np.int32),
            multiplicity=(multiplicity, np.float64),
        )
        return group

    def _default_row(self, num_factors: int) -> NDArray[np.int32]:
        num_rows = self.potential.num_rows
        if num_rows == 1:
            return np.zeros(num_factors, dtype=np.int32)
        if num_rows != num_factors:
            raise ModelError(
                f"{self.named()}: {num_factors} factors and {num_rows} parameter "
                "rows: give one row for all, one per factor, or say with `row` which factor uses "
                "which"
            )
        return np.arange(num_factors, dtype=np.int32)

    def __len__(self) -> int:
        return len(self.scope)

    @property
    def arity(self) -> int:
        return int(self.scope.shape[1])

    @property
    def reals(self) -> NDArray[np.int32]:
        """(factor, real slot): variables of the real slots, which come last."""
        return self.scope[:, self.potential.num_discrete_slots :]

    def named(self, factor: int | None = None) -> str:
        """Name of this group, or of one of its factors, in errors."""
        group = f"group '{self.label}'" if self.label else "a group without label"
        return group if factor is None else f"factor {factor} of {group}"

    def take(self, factors: NDArray[Any]) -> FactorGroup:
        """Some of the factors, with the same potential."""
        some = self.scope[factors], self.row[factors], self.multiplicity[factors]
        return FactorGroup.unchecked(self.potential, *some, self.label)

    def changed(
        self,
        *,
        potential: Potential | None = None,
        scope: NDArray[Any] | None = None,
        row: NDArray[Any] | None = None,
        multiplicity: NDArray[np.float64] | None = None,
    ) -> FactorGroup:
        """The group with other parts that are known to fit, without checks."""
        return FactorGroup.unchecked(
            self.potential if potential is None else potential,
            self.scope if scope is None else scope,
            self.row if row is None else row,
            self.multiplicity if multiplicity is None else multiplicity,
            self.label,
        )

    def log_sum(self, values: NDArray[np.float64]) -> float:
        """The log-potentials of all factors together at an assignment (variable,)."""
        return float((self.multiplicity * self.log_values(values)).sum())

    def log_values(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """(factor,): log-potential of each factor at an assignment (variable,)."""
        slots = [values[self.scope[:, slot]] for slot in range(self.arity)]
        return self.potential.log_value(self.row, slots)


WIDE = 62
"""Slots of which any set is a number of 64 bits."""


def by_slots(flag: NDArray[np.bool_]) -> list[tuple[tuple[int, ...], NDArray[np.int64]]]:
    """Factors sorted by which of their slots are flagged: the slots, and the factors.

    flag: (factor, slot).
    """
    num_factors, arity = flag.shape
    if not num_factors:
        return []
    if arity > WIDE:
        patterns, code = np.unique(np.packbits(flag, axis=1), axis=0, return_inverse=True)
        code = code.reshape(-1)
        first = np.unpackbits(patterns, axis=1, count=arity).astype(bool)
        return [
            (tuple(np.flatnonzero(slots).tolist()), np.flatnonzero(code == place))
            for place, slots in enumerate(first)
        ]
    small = arity <= 8
    code = np.zeros(num_factors, dtype=np.uint8 if small else np.int64)
    for slot in range(arity):
        code |= flag[:, slot].astype(code.dtype) << slot
    present = np.flatnonzero(np.bincount(code)) if small else np.unique(code)
    return [
        (
            tuple(slot for slot in range(arity) if pattern >> slot & 1),
            np.flatnonzero(code == pattern),
        )
        for pattern in present.tolist()
    ]


def merge_groups(groups: Sequence[FactorGroup]) -> tuple[FactorGroup, ...]:
    """Groups whose potentials have one signature become one group, in order of appearance."""
    return tuple(join_groups([groups[at] for at in same]) for same in by_signature(groups))


def by_signature(groups: Sequence[FactorGroup]) -> list[list[int]]:
    """Positions of groups whose potentials have one signature, in order of appearance."""
    alike: dict[Any, list[int]] = {}
    for at, group in enumerate(groups):
        alike.setdefault(group.potential.signature, []).append(at)
    return list(alike.values())


def join_groups(groups: Sequence[FactorGroup]) -> FactorGroup:
    """One group of the factors of all, in order; their potentials have one signature."""
    first = groups[0]
    if len(groups) == 1:
        return first
    start = offsets([group.potential.num_rows for group in groups])
    if start[-1] > np.iinfo(np.int32).max:
        raise ModelError(f"{start[-1]} parameter rows are too many for one group")
    ends = start.astype(np.int32)
    return FactorGroup.unchecked(
        first.potential.stack([group.potential for group in groups[1:]]),
        np.concatenate([group.scope for group in groups]),
        np.concatenate([group.row + at for group, at in zip(groups, ends, strict=False)]),
        np.concatenate([group.multiplicity for group in groups]),
        " + ".join(dict.fromkeys(group.label for group in groups if group.label)),
    )
