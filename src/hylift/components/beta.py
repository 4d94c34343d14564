"""Beta components on a bounded interval: parameters alpha and beta."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np
from numpy.typing import NDArray
from scipy import special

from hylift.components.family import BETA, MOST_BETA, Family, FloatArray, IntArray, Nodes
from hylift.components.gaussian import Gaussians
from hylift.errors import ModelError
from hylift.numerics.kernels.gauss_beta import gauss_betas

EDGE = 1e-9
"""Share of the interval at each end where `finite_log_density` is constant, so that a pole has a
finite weight among other densities."""
NEAREST = 1e-7
"""Share of the interval by which the mean of a matched Beta keeps off its ends."""
NARROW = 0.5 * MOST_BETA
"""alpha + beta from which a Beta may be wider than it should be."""
INNER = 1e4
"""alpha and beta from which a Beta is away from the ends of its interval."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class Betas(Family):
    code: ClassVar[int] = BETA
    is_discrete: ClassVar[bool] = False

    alpha: FloatArray  # (variable, component)
    beta: FloatArray  # (variable, component)
    lower: FloatArray  # (variable,)
    upper: FloatArray  # (variable,)

    @classmethod
    def of(cls, entries: FloatArray, lower: FloatArray, upper: FloatArray) -> Betas:
        return cls(entries[:, 0], entries[:, 1], lower, upper)

    @classmethod
    def neutral(cls, size: IntArray, lower: FloatArray, upper: FloatArray) -> FloatArray:
        return np.full(2 * len(lower), 2.0)

    @classmethod
    def matching(cls, gaussians: Gaussians, lower: FloatArray, upper: FloatArray) -> Betas:
        """Betas with the moments of Gaussians cut off at the bounds, as nearly as possible."""
        width = (upper - lower)[:, None]
        mean, var = _cut_off((gaussians.mean - lower[:, None]) / width, gaussians.var / width**2)
        mean = np.clip(mean, NEAREST, 1 - NEAREST)
        var = np.minimum(var, 0.5 * mean * (1 - mean))
        size = np.maximum(mean * (1 - mean) / var - 1, 1.0)
        alpha, beta = (np.clip(part * size, 1.0, MOST_BETA) for part in (mean, 1 - mean))
        return cls(alpha, beta, lower, upper)

    def check(self) -> None:
        for shape in (self.alpha, self.beta):
            if not (np.isfinite(shape) & (shape > 0)).all():
                raise ModelError("a Beta component needs positive alpha and beta")
        bounded = np.isfinite(self.lower) & np.isfinite(self.upper)
        if not (bounded & (self.lower < self.upper)).all():
            raise ModelError("a Beta component needs an interval with lower < upper")

    def is_too_narrow(self) -> NDArray[np.bool_]:
        """(variable, component): as narrow as alpha and beta allow, and away from the bounds."""
        return np.asarray(
            (self.alpha + self.beta >= NARROW) & (np.minimum(self.alpha, self.beta) >= INNER)
        )

    def log_density(self, values: FloatArray) -> FloatArray:
        """-inf outside the interval; infinite at an end where alpha or beta is below 1."""
        width = self.upper - self.lower
        near, far = (values - self.lower) / width, (self.upper - values) / width
        inside = (near >= 0.0) & (far >= 0.0)
        logs = self._log_unit_density(np.clip(near, 0.0, 1.0), np.clip(far, 0.0, 1.0))
        return np.where(inside[..., None], logs - np.log(width)[:, None], -np.inf)

    def finite_log_density(self, values: FloatArray) -> FloatArray:
        width = self.upper - self.lower
        near = np.clip((values - self.lower) / width, EDGE, 1.0 - EDGE)
        return np.asarray(self._log_unit_density(near, 1.0 - near) - np.log(width)[:, None])

    def modes(self) -> FloatArray:
        return self.scaled(peak(self.alpha - 1.0, self.beta - 1.0).T).T

    def best(self, share: FloatArray) -> FloatArray:
        near, far = (((shape - 1.0) * share).sum(axis=-1) for shape in (self.alpha, self.beta))
        return self.scaled(peak(near, far))

    def draw(self, component: int, size: int, rng: np.random.Generator) -> FloatArray:
        shape = (size, len(self.alpha))
        return self.scaled(rng.beta(self.alpha[:, component], self.beta[:, component], shape))

    def nodes(self, num_nodes: int) -> Nodes:
        shape = (*self.alpha.shape, num_nodes)
        u, weights = gauss_betas(self.alpha.ravel(), self.beta.ravel(), num_nodes)
        u = u.reshape(shape)
        points = self.lower[:, None, None] + (self.upper - self.lower)[:, None, None] * u
        both = special.digamma(self.alpha + self.beta)
        with np.errstate(divide="ignore"):
            scores = np.stack([np.log(u), np.log1p(-u)], axis=-1)
        for place, shape_parameter in enumerate((self.alpha, self.beta)):
            scores[..., place] -= (special.digamma(shape_parameter) - both)[..., None]
        return Nodes(points, weights.reshape(shape), scores)

    def moments(self) -> tuple[FloatArray, FloatArray]:
        total, width = self.alpha + self.beta, (self.upper - self.lower)[:, None]
        near, far = self.alpha / total, self.beta / total
        return self.lower[:, None] + width * near, width**2 * near * far / (total + 1.0)

    def of_parameters(self, of_mean: FloatArray, of_var: FloatArray) -> tuple[FloatArray, ...]:
        """Gradients with respect to alpha and beta, from those of mean and variance."""
        total, var = self.alpha + self.beta, self.moments()[1]
        along = (self.upper - self.lower)[:, None] * of_mean / total**2
        # d log var = da/a + db/b - (da + db) (2/n + 1/(n + 1))
        fall = 2.0 / total + 1.0 / (total + 1.0)
        return (
            along * self.beta + of_var * var * (1.0 / self.alpha - fall),
            -along * self.alpha + of_var * var * (1.0 / self.beta - fall),
        )

    def scaled(self, share: FloatArray) -> FloatArray:
        """Values in the interval from shares of it (…, variable), never beyond its ends."""
        values = self.lower + (self.upper - self.lower) * share
        return np.asarray(np.clip(values, self.lower, self.upper))

    def _log_unit_density(self, near: FloatArray, far: FloatArray) -> FloatArray:
        """Log densities on the unit interval, at distances (…, variable) from its ends."""
        logs = special.xlogy(self.alpha - 1.0, near[..., None])
        logs += special.xlogy(self.beta - 1.0, far[..., None])
        return np.asarray(logs - special.betaln(self.alpha, self.beta))


def peak(near: FloatArray, far: FloatArray) -> FloatArray:
    """The maximiser of near log u + far log(1 - u) in [0, 1]; 1/2 where that is flat.

    Where both ends are infinite, that of the stronger pole.
    """
    inside = (near > 0) & (far > 0)
    safe = np.where(inside, near + far, 1.0)
    edge = np.where(near <= far, 0.0, 1.0)
    flat = (near == 0) & (far == 0)
    return np.where(inside, near / safe, np.where(flat, 0.5, edge))


def _cut_off(mean: FloatArray, var: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Moments of Gaussians truncated to [0, 1]; unchanged where almost no mass is left."""
    sd = np.sqrt(var)
    low, high = -mean / sd, (1 - mean) / sd
    left = special.ndtr(high) - special.ndtr(low)
    some = np.maximum(left, 1e-3)
    at_low, at_high = (np.exp(-0.5 * z**2) / np.sqrt(2 * np.pi) for z in (low, high))
    shift = (at_low - at_high) / some
    shrunk = 1 + (low * at_low - high * at_high) / some - shift**2
    is_cut = (left > 1e-3) & (shrunk > 0)
    return (
        np.where(is_cut, mean + sd * shift, mean),
        np.where(is_cut, var * np.where(is_cut, shrunk, 1.0), var),
    )
