"""Gaussian components: parameters mean and variance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, final

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from hylift.components.family import GAUSSIAN, Family, FloatArray, IntArray, Nodes
from hylift.errors import ModelError
from hylift.numerics.quadrature import hermite_rule

if TYPE_CHECKING:
    from hylift.components.layout import Layout

LEAK = 1e-3
"""Mass of a Gaussian beyond the bounds from which on they matter."""
LOG_TWO_PI = float(np.log(2.0 * np.pi))
WIDEST = 1e250
"""A variance that stands for infinity."""
FAR = 1e12
"""Largest ratio of a variance to that of the first product, and of that to it."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class Gaussians(Family):
    code: ClassVar[int] = GAUSSIAN
    is_discrete: ClassVar[bool] = False

    mean: FloatArray  # (variable, component)
    var: FloatArray  # (variable, component)

    @classmethod
    def of(cls, entries: FloatArray, lower: FloatArray, upper: FloatArray) -> Gaussians:
        return cls(entries[:, 0], entries[:, 1])

    @classmethod
    def neutral(cls, size: IntArray, lower: FloatArray, upper: FloatArray) -> FloatArray:
        """The middle of the interval and a sixth of its width; N(0, 1) on the real line."""
        closed = np.isfinite(upper - lower)
        with np.errstate(invalid="ignore"):
            mean = np.clip(np.where(closed, lower / 2 + upper / 2, 0.0), lower, upper)
        var = np.where(closed, ((upper - lower) / 6) ** 2, 1.0)
        return np.stack([mean, var], axis=1).ravel()

    def check(self) -> None:
        if not (np.isfinite(self.mean) & np.isfinite(self.var) & (self.var > 0)).all():
            raise ModelError("a Gaussian component needs a finite mean and a positive variance")

    def log_density(self, values: FloatArray) -> FloatArray:
        square = (values[..., None] - self.mean) ** 2 / self.var
        return np.asarray(-0.5 * (LOG_TWO_PI + np.log(self.var) + square))

    def finite_log_density(self, values: FloatArray) -> FloatArray:
        return self.log_density(values)

    def modes(self) -> FloatArray:
        return self.mean

    def best(self, share: FloatArray) -> FloatArray:
        precision = share / self.var
        return np.asarray((precision * self.mean).sum(axis=-1) / precision.sum(axis=-1))

    def draw(self, component: int, size: int, rng: np.random.Generator) -> FloatArray:
        noise = rng.standard_normal((size, len(self.mean)))
        return self.mean[:, component] + np.sqrt(self.var[:, component]) * noise

    def nodes(self, num_nodes: int) -> Nodes:
        z, weights = hermite_rule(num_nodes)
        var = self.var[..., None]
        points = self.mean[..., None] + np.sqrt(var) * z
        scores = np.stack([z / np.sqrt(var), (z**2 - 1) / (2 * var)], axis=-1)
        return Nodes(points, np.broadcast_to(weights, points.shape), scores)

    def moments(self) -> tuple[FloatArray, FloatArray]:
        return self.mean, self.var


@final
@dataclass(frozen=True, slots=True, eq=False)
class Limits:
    """The variances that Gaussian components may have."""

    least: FloatArray  # (variable,)
    most: FloatArray  # (variable,)

    @classmethod
    def of(cls, layout: Layout) -> Limits:
        """Those that follow from the bounds alone, before the scale of a real is known."""
        width = layout.upper - layout.lower
        most = np.where(np.isfinite(width), width**2 / 12, WIDEST)
        return cls(np.full(len(width), 1.0 / WIDEST), most)

    def take(self, variables: NDArray[Any]) -> Limits:
        return Limits(self.least[variables], self.most[variables])

    def scaled(self, var: FloatArray) -> Limits:
        """Limits around the variances (variable,) of a first product."""
        return Limits(var / FAR, np.where(self.most < WIDEST, self.most, var * FAR))


def mass_beyond(
    lower: FloatArray, upper: FloatArray, mean: FloatArray, sd: FloatArray
) -> FloatArray:
    """The mass of Gaussians beyond bounds; all arguments broadcast."""
    return np.asarray(ndtr((lower - mean) / sd) + ndtr((mean - upper) / sd))
