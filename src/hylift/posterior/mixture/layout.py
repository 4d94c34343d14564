"""Where the parameters of a mixture of products stand in flat arrays."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hylift.errors import ModelError
from hylift.graph import Variables

GAUSSIAN, BETA, CATEGORICAL = 0, 1, 2
"""Families of the factors of a component: parameters mean and variance; alpha and beta on an
interval; a probability for each state."""


@dataclass(frozen=True, slots=True, eq=False)
class Layout:
    """The family of each variable, and the place of its parameters among those of all.

    Parameters are arrays (…, entry, component): variable i has entries first[i] to first[i + 1].
    """

    family: NDArray[np.int8]  # (variable,)
    first: NDArray[np.int64]  # (variable + 1,)
    lower: NDArray[np.float64]  # (variable,): bounds of a Beta
    upper: NDArray[np.float64]  # (variable,)

    @classmethod
    def of(cls, variables: Variables, is_beta: NDArray[np.bool_]) -> Layout:
        """Beta for these reals, which are bounded; Gaussian for all others."""
        num_states, lower, upper = variables.num_states, variables.lower, variables.upper
        wrong = is_beta & ~((num_states == 0) & np.isfinite(lower) & np.isfinite(upper))
        if wrong.any():
            name = variables.names[int(np.argmax(wrong))]
            raise ModelError(f"'{name}' is not bounded on both sides and cannot be a Beta")
        family = np.where(num_states > 0, CATEGORICAL, np.where(is_beta, BETA, GAUSSIAN))
        width = np.where(num_states > 0, num_states, 2)
        first = np.concatenate([[0], np.cumsum(width, dtype=np.int64)])
        return cls(family.astype(np.int8), first, lower, upper)

    def __len__(self) -> int:
        return len(self.family)

    @property
    def num_entries(self) -> int:
        return int(self.first[-1])
