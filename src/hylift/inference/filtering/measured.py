"""Observed reals whose values a model predicts one step ahead."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hylift.inference.filtering.forms import Forms
from hylift.inference.filtering.times import FloatArray, IntArray


@dataclass(frozen=True, slots=True, eq=False)
class Measurements:
    """Reals that were measured as coefficientsᵀ y + offset, with an error of variance var."""

    ids: IntArray  # (measurement,)
    value: FloatArray  # (measurement,)
    origin: IntArray  # (measurement,): number of the factor, soft evidence behind all factors
    scope: NDArray[np.int32]  # (measurement, other): hidden variables, -1 where there is none
    coefficients: FloatArray  # (measurement, other)
    offset: FloatArray  # (measurement,)
    var: FloatArray  # (measurement,)

    def take(self, some: NDArray[Any]) -> Measurements:
        """Some of them."""
        return Measurements(*(getattr(self, name)[some] for name in self.__slots__))


def measurements_of(forms: list[Forms]) -> list[Measurements]:
    """Of each factor, the first measured real that it is a density of, given the others."""
    return [_measurements(form) for form in forms]


def _measurements(form: Forms) -> Measurements:
    own = (form.seen >= 0) & (form.diagonal < 0)
    some = form.take(np.flatnonzero(own.any(axis=1)))
    slot = np.argmax(own[own.any(axis=1)], axis=1)
    parts, rest = some.split(slot)
    row = np.arange(len(slot))
    whole = Measurements(
        some.seen[row, slot],
        some.known[row, slot],
        some.origin,
        rest.scope,
        parts.coefficients,
        parts.offset + (parts.coefficients * rest.known).sum(axis=1),
        parts.var,
    )
    return whole.take(np.flatnonzero(parts.is_density))
