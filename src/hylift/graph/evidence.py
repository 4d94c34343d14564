"""Observed values of variables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hylift.errors import EvidenceError
from hylift.graph.domains import as_float
from hylift.graph.variables import Variables, set_frozen
from hylift.words import observed_and_measured


@dataclass(frozen=True, slots=True)
class Soft:
    """A real that was measured as `value` with error variance `var`."""

    value: float
    var: float


@dataclass(frozen=True, slots=True, eq=False)
class Evidence:
    """Observed variables with a state, a value, or a value and a variance.

    A variance of 0 is an observation without error. A positive one is a measurement of a real x,
    with the likelihood N(value; x, var): x stays hidden, and gains a factor.
    """

    variable: NDArray[np.int32]  # (observation,)
    value: NDArray[np.float64]  # (observation,): a state's index, or a real
    var: NDArray[np.float64]  # (observation,)

    def __post_init__(self) -> None:
        set_frozen(
            self,
            variable=(self.variable, np.int32),
            value=(self.value, np.float64),
            var=(self.var, np.float64),
        )
        if not self.variable.shape == self.value.shape == self.var.shape == (len(self.variable),):
            raise EvidenceError(
                f"evidence on {len(self.variable)} variables needs as many values and variances, "
                f"not {len(self.value)} and {len(self.var)}"
            )

    @classmethod
    def none(cls) -> Evidence:
        return cls.of([], [])

    @classmethod
    def of(cls, variable: Any, value: Any, var: Any = 0.0) -> Evidence:
        """From ids and values; `var` is one variance for all, or one each."""
        ids = np.asarray(variable, dtype=np.int32 if np.size(variable) == 0 else None)
        return cls(ids, value, np.broadcast_to(np.asarray(var, dtype=np.float64), ids.shape))

    @classmethod
    def from_mapping(cls, variables: Variables, observed: Mapping[str, object]) -> Evidence:
        """From names to states, values or `Soft` values."""
        ids = variables.ids(list(observed))
        values, variances = [], []
        for (name, given), variable in zip(observed.items(), ids.tolist(), strict=True):
            soft = given if isinstance(given, Soft) else Soft(given, 0.0)  # type: ignore[arg-type]
            # A measurement with error may lie outside the domain of what it measures.
            domain = variables.domain(variable)
            exact = domain.is_discrete or soft.var == 0
            values.append(domain.encode(soft.value, name) if exact else as_float(soft.value, name))
            variances.append(as_float(soft.var, f"the variance of {name}"))
        return cls.of(ids, np.array(values, dtype=np.float64), np.array(variances))

    def __len__(self) -> int:
        return len(self.variable)

    @property
    def is_hard(self) -> NDArray[np.bool_]:
        """(observation,): whether it is without error."""
        return self.var == 0

    @property
    def num_observed(self) -> int:
        """Variables that are observed without error, and so are not hidden."""
        return int(np.count_nonzero(self.is_hard))

    @property
    def num_measured(self) -> int:
        """Variables that are measured with an error, and stay hidden."""
        return len(self) - self.num_observed

    @property
    def counts(self) -> str:
        """`300 observed, 10 measured`."""
        return observed_and_measured(self.num_observed, self.num_measured)

    def joined(self, later: Evidence) -> Evidence:
        """This evidence and more; of two observations of one variable the later one holds."""
        keep = ~np.isin(self.variable, later.variable)
        return Evidence(
            np.concatenate([self.variable[keep], later.variable]),
            np.concatenate([self.value[keep], later.value]),
            np.concatenate([self.var[keep], later.var]),
        )

    def check(self, variables: Variables) -> None:
        """Raises unless each observation fits its variable, and no variable is observed twice."""
        if not len(self):
            return
        outside = (self.variable < 0) | (self.variable >= len(variables))
        if outside.any():
            at = int(np.argmax(outside))
            raise EvidenceError(
                f"observation {at} is of variable {self.variable[at]}, "
                f"but the graph has {len(variables)} variables"
            )
        seen = np.zeros(len(variables), dtype=bool)
        seen[self.variable] = True
        if np.count_nonzero(seen) < len(self):
            ids, counts = np.unique(self.variable, return_counts=True)
            twice = variables.names[int(ids[np.argmax(counts > 1)])]
            raise EvidenceError(f"'{twice}' is observed more than once")
        self._check_values(variables)

    def _check_values(self, variables: Variables) -> None:
        num_states = variables.num_states[self.variable]
        lower, upper = variables.lower[self.variable], variables.upper[self.variable]
        is_real = num_states == 0
        inside = np.where(
            is_real,
            np.isfinite(self.value)
            & ((self.var > 0) | (lower <= self.value) & (self.value <= upper)),
            (self.value >= 0) & (self.value < num_states) & (self.value == np.floor(self.value)),
        )
        if not inside.all():
            at = int(np.argmin(inside))
            name = variables.names[int(self.variable[at])]
            domain = variables.domain(int(self.variable[at]))
            allowed = (
                f"its states are 0 to {domain.num_states - 1}"
                if domain.is_discrete
                else f"its domain is [{domain.lower:g}, {domain.upper:g}]"
            )
            raise EvidenceError(f"'{name}' cannot be {self.value[at]:g}: {allowed}")
        fine = (self.var == 0) | (is_real & (self.var > 0) & np.isfinite(self.var))
        if not fine.all():
            at = int(np.argmin(fine))
            name = variables.names[int(self.variable[at])]
            raise EvidenceError(
                f"'{name}' is observed with variance {self.var[at]}: a variance is 0 for a "
                "discrete variable, and 0 or positive for a real"
            )
