"""The layout of the parameters of a mixture of products in flat arrays."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from hylift.components.beta import Betas
from hylift.components.categorical import Categoricals
from hylift.components.family import Family, FloatArray, IntArray
from hylift.components.gaussian import Gaussians
from hylift.errors import ModelError
from hylift.graph import Variables
from hylift.numerics.segments import offsets, ranges

FAMILIES: tuple[type[Family], ...] = (Gaussians, Betas, Categoricals)
"""All families, by their codes."""
IS_DISCRETE = np.array([family.is_discrete for family in FAMILIES])


@final
@dataclass(frozen=True, slots=True, eq=False)
class Layout:
    """The family of each variable, and the position of its parameters among those of all.

    Parameters are arrays (…, entry, component): variable i has entries first[i] to first[i + 1].
    """

    family: NDArray[np.int8]  # (variable,): codes
    first: NDArray[np.int64]  # (variable + 1,)
    lower: FloatArray  # (variable,)
    upper: FloatArray  # (variable,)

    @classmethod
    def of(cls, variables: Variables, is_beta: NDArray[np.bool_]) -> Layout:
        """Beta for these reals, which must be bounded; Gaussian for all others."""
        num_states, lower, upper = variables.num_states, variables.lower, variables.upper
        wrong = is_beta & ~((num_states == 0) & np.isfinite(lower) & np.isfinite(upper))
        if wrong.any():
            name = variables.names[int(np.argmax(wrong))]
            raise ModelError(f"'{name}' is not bounded on both sides and cannot be a Beta")
        real = np.where(is_beta, Betas.code, Gaussians.code)
        family = np.where(num_states > 0, Categoricals.code, real)
        return cls(
            family.astype(np.int8), offsets(np.where(num_states, num_states, 2)), lower, upper
        )

    def __len__(self) -> int:
        return len(self.family)

    @property
    def num_entries(self) -> int:
        return int(self.first[-1])

    @property
    def size(self) -> IntArray:
        """(variable,): its number of parameters."""
        return np.diff(self.first)

    @property
    def is_discrete(self) -> NDArray[np.bool_]:
        """(variable,)"""
        return IS_DISCRETE[self.family]

    @property
    def discrete(self) -> IntArray:
        """The discrete variables."""
        return np.flatnonzero(self.is_discrete)

    @property
    def reals(self) -> IntArray:
        """The real variables."""
        return np.flatnonzero(~self.is_discrete)

    def has(self, family: type[Family]) -> NDArray[np.bool_]:
        """(variable,): whether it belongs to the family."""
        return np.asarray(self.family == family.code)

    def moments_or_probs(self, scope: NDArray[Any], entries: FloatArray) -> list[FloatArray] | None:
        """Per slot of factors, what `Potential.expected` takes: (factor and column, entry).

        None if a real has other components than Gaussians. scope: (factor, slot); entries:
        (entry, column).
        """
        if not (self.is_discrete | self.has(Gaussians))[scope].all():
            return None
        slots = []
        for variable in scope.T:
            own = entries[self.first[variable][:, None] + np.arange(self.size[variable[0]])]
            slots.append(np.moveaxis(own, 2, 1).reshape(len(scope) * entries.shape[1], -1))
        return slots

    def entries_of(self, variables: NDArray[Any]) -> IntArray:
        """(entry,): positions of the parameters of some variables, one variable after another."""
        return ranges(self.first[variables], self.size[variables])

    def take(self, variables: NDArray[Any]) -> Layout:
        """The layout of some variables."""
        bounds = self.lower[variables], self.upper[variables]
        return Layout(self.family[variables], offsets(self.size[variables]), *bounds)

    def with_gaussians(self, lower: FloatArray, upper: FloatArray) -> Layout:
        """This layout with Gaussian variables of such bounds appended."""
        size = np.full(len(lower), 2)
        return self._with(Gaussians.code, size, lower, upper)

    def with_categoricals(self, size: NDArray[Any]) -> Layout:
        """This layout with discrete variables of so many states appended."""
        return self._with(Categoricals.code, size, *np.full((2, len(size)), [[-np.inf], [np.inf]]))

    def _with(self, code: int, size: NDArray[Any], lower: FloatArray, upper: FloatArray) -> Layout:
        return Layout(
            np.concatenate([self.family, np.full(len(size), code, dtype=np.int8)]),
            np.concatenate([self.first, self.num_entries + offsets(size)[1:]]),
            np.concatenate([self.lower, lower]),
            np.concatenate([self.upper, upper]),
        )

    def neutral(self) -> FloatArray:
        """(entry,): uninformative parameters of every variable."""
        entries = np.empty(self.num_entries)
        for family in FAMILIES:
            ids = np.flatnonzero(self.has(family))
            if not len(ids):
                continue
            bounds = self.lower[ids], self.upper[ids]
            entries[self.entries_of(ids)] = family.neutral(self.size[ids], *bounds)
        return entries

    def normalize(self, entries: FloatArray, discrete: IntArray) -> None:
        """Scale the probabilities of discrete variables, in entries (start, entry, …), to sum 1."""
        if not len(discrete):
            return
        at, size = self.entries_of(discrete), self.size[discrete]
        total = np.add.reduceat(entries[:, at], offsets(size)[:-1], axis=1)
        entries[:, at] /= np.repeat(total, size, axis=1)

    def batches(
        self, entries: FloatArray, variables: NDArray[Any], *, width: int | None = None
    ) -> Iterator[tuple[IntArray, Family]]:
        """Positions in `variables`, and the parameters there: by family and number of parameters.

        entries: (entry, component). With a width, in blocks of about that many numbers.
        """
        code = len(FAMILIES) * self.size + self.family
        kinds = np.unique(code)
        code = code[variables]
        for kind in kinds.tolist():
            place = np.flatnonzero(code == kind)
            size, family = divmod(kind, len(FAMILIES))
            step = len(place) if width is None else width // (size * entries.shape[1])
            for begin in range(0, len(place), max(1, step)):
                some = slice(begin, begin + max(1, step))
                ids = variables[place[some]]
                parameters = entries[self.first[ids][:, None] + np.arange(size)]
                yield place[some], FAMILIES[family].of(parameters, self.lower[ids], self.upper[ids])

    def check(self, entries: FloatArray, num_components: int) -> None:
        """Raise a ModelError unless these are valid parameters of every variable."""
        family, first = self.family, self.first
        shapes = {family.shape, self.lower.shape, self.upper.shape, (len(family),)}
        if len(shapes) > 1 or first.shape != (len(family) + 1,) or not first[0] == 0:
            raise ModelError("the arrays of a layout have different lengths")
        known = (family >= 0) & (family < len(FAMILIES)) & (self.size > 0)
        if not known.all():
            raise ModelError("a class has an unknown family, or no parameters")
        if not (self.size[self.reals] == 2).all():
            raise ModelError("a Gaussian and a Beta have two parameters each")
        if entries.shape != (first[-1], num_components):
            raise ModelError(
                f"{first[-1]} parameters of {num_components} components must have shape "
                f"({first[-1]}, {num_components}), not {entries.shape}"
            )
        for _, batch in self.batches(entries, np.arange(len(self)), width=1 << 20):
            batch.check()
