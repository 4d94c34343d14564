"""Observed real values."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from hylift.components.family import FloatArray
from hylift.errors import ArgumentError
from hylift.posterior.distributions.base import FloatOrArray, read_only, real_array, unwrap
from hylift.posterior.distributions.reals import RealDistribution


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class PointMass(RealDistribution):
    """All probability at one value, as of an observed variable."""

    value: FloatArray  # (*batch,)

    _event_ndims: ClassVar[dict[str, int]] = {"value": 0}
    _positions: ClassVar[tuple[str, ...]] = ("value",)

    def __post_init__(self) -> None:
        object.__setattr__(self, "value", read_only(real_array("value", self.value)))

    @property
    def mean(self) -> FloatOrArray:
        return unwrap(self.value)

    @property
    def var(self) -> FloatOrArray:
        return unwrap(np.zeros(self.batch_shape))

    @property
    def mode(self) -> FloatOrArray:
        return unwrap(self.value)

    @property
    def entropy(self) -> FloatOrArray:
        return unwrap(np.full(self.batch_shape, -np.inf))

    def __repr__(self) -> str:
        if self.batch_shape:
            return f"PointMass(batch_shape={self.batch_shape})"
        return f"PointMass({float(self.value):.6g})"

    @property
    def _width(self) -> int:
        return 1

    def _pdf(self, x: FloatArray) -> FloatArray:
        raise ArgumentError("an observed value has no density")

    def _cdf(self, x: FloatArray) -> FloatArray:
        return (x >= self.value).astype(np.float64)

    def _quantile(self, p: FloatArray) -> FloatArray:
        return np.broadcast_to(self.value, (len(p), len(self.value)))

    def _draw(self, size: int, rng: np.random.Generator) -> FloatArray:
        return np.tile(self.value, (size, 1))
