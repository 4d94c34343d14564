"""Marginals of real variables under mixtures of Gaussians."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy import special

from hylift.components.family import FloatArray, IntArray
from hylift.errors import ArgumentError
from hylift.posterior.distributions.base import (
    FloatOrArray,
    RealMixture,
    checked_weights,
    read_only,
    real_array,
)
from hylift.posterior.distributions.gaussian_intervals import SortedMixtures, entropies, modes
from hylift.posterior.distributions.univariate import EPS, mixture_quantiles

ROOT_TWO_PI = float(np.sqrt(2.0 * np.pi))


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class GaussianMixture(RealMixture):
    """A weighted sum of Gaussian densities.

    Weights of shape ``(component,)`` are shared by the whole batch. A component of weight 0 may
    have any finite mean and any finite variance, 0 included.
    """

    weights: FloatArray  # (*batch, component)
    means: FloatArray  # (*batch, component)
    variances: FloatArray  # (*batch, component)

    _event_ndims: ClassVar[dict[str, int]] = {"weights": 1, "means": 1, "variances": 1}

    def __post_init__(self) -> None:
        means = real_array("means", self.means)
        variances = real_array("variances", self.variances, low=0.0)
        shape = means.shape
        if not shape or not shape[-1]:
            raise ArgumentError(
                f"means must have shape (*batch, component), but have shape {shape}"
            )
        if variances.shape != shape:
            raise ArgumentError(
                f"variances must have the shape of means, {shape}, but have {variances.shape}"
            )
        weights = checked_weights(self.weights, shape)
        if variances.size and variances.min() == 0.0 and (weights[variances == 0.0] > 0).any():
            raise ArgumentError(
                "a component of positive weight has variance 0; an observed value is a PointMass"
            )
        for name, array in (("weights", weights), ("means", means), ("variances", variances)):
            object.__setattr__(self, name, read_only(array))

    @property
    def mode(self) -> FloatOrArray:
        """Where the density is largest.

        Found by branch and bound, so it is the global maximum up to 64 components. With more,
        the search keeps only the most promising intervals at each level.
        """
        if self.num_components == 1:
            return self.mean
        return self._by_row(
            lambda rows: modes(SortedMixtures.of(*rows._components())), width=self.num_components
        )

    @property
    def entropy(self) -> FloatOrArray:
        """Differential entropy in nats, by adaptive quadrature (to about 1e-8)."""
        if self.num_components == 1:
            return self._by_row(
                lambda rows: 0.5 * np.log(2.0 * np.pi * np.e * rows.variances[:, 0]), width=1
            )
        return self._by_row(
            lambda rows: entropies(SortedMixtures.of(*rows._components())),
            width=self.num_components,
        )

    def __repr__(self) -> str:
        if self.batch_shape:
            shown = f"batch_shape={self.batch_shape}"
        else:
            shown = f"mean={self.mean:.3g}, std={self.std:.3g}"
        return f"GaussianMixture({shown}, components={self.num_components})"

    def _components(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Weights, means and standard deviations; the latter 1 where the variance is 0."""
        sds = np.sqrt(self.variances)
        sds[sds == 0.0] = 1.0  # only at weight 0, where it must not matter
        return self.weights, self.means, sds

    def _component_moments(self) -> tuple[FloatArray, FloatArray]:
        return self.means, self.variances

    def _pdf(self, x: FloatArray) -> FloatArray:
        weights, means, sds = self._components()
        with np.errstate(over="ignore"):
            z = (x[..., None] - means) / sds
            return np.asarray((weights / (sds * ROOT_TWO_PI) * np.exp(-0.5 * z**2)).sum(axis=-1))

    def _log_terms(self, x: FloatArray) -> FloatArray:
        weights, means, sds = self._components()
        with np.errstate(over="ignore", divide="ignore"):
            z = (x[..., None] - means) / sds
            return np.asarray(np.log(weights) - np.log(sds * ROOT_TWO_PI) - 0.5 * z**2)

    def _cdf(self, x: FloatArray) -> FloatArray:
        weights, means, sds = self._components()
        with np.errstate(over="ignore"):
            parts = weights * special.ndtr((x[..., None] - means) / sds)
        return np.asarray(np.minimum(parts.sum(axis=-1), 1.0))

    def _quantile(self, p: FloatArray) -> FloatArray:
        weights, means, sds = self._components()
        if self.num_components == 1:
            return np.asarray(means[:, 0] + sds[:, 0] * special.ndtri(p))
        shape = (len(p), len(means))
        p = np.broadcast_to(p, shape).ravel()
        values = np.where(p > 0.5, np.inf, -np.inf)
        inner = np.flatnonzero((p > 0.0) & (p < 1.0))
        row, p = inner % len(means), p[inner]
        # Upper tails are lower tails of the mirror image, where cdf and 1 - p lose no digits.
        sign = np.where(p > 0.5, -1.0, 1.0)
        tail = np.where(p > 0.5, 1.0 - p, p)
        mirrored = sign[:, None] * means[row]
        values[inner] = sign * _lower_quantiles(weights[row], mirrored, sds[row], tail)
        return values.reshape(shape)

    def _draw_from(self, component: IntArray, rng: np.random.Generator) -> FloatArray:
        row = np.arange(len(self.means))
        noise = rng.standard_normal(component.shape)
        return np.asarray(
            self.means[row, component] + np.sqrt(self.variances[row, component]) * noise
        )


def _lower_quantiles(
    weights: FloatArray, means: FloatArray, sds: FloatArray, p: FloatArray
) -> FloatArray:
    """The quantile p of each row, 0 < p ≤ 1/2.

    Newton on the probit scale, where the cdf of a single Gaussian is a straight line.
    """
    probit = special.ndtri(p)
    heights = weights / (sds * ROOT_TWO_PI)
    noise = 8.0 * EPS * p * (1.0 + probit**2)  # of the cdf, from rounding of z

    def evaluate(x: FloatArray, which: IntArray) -> tuple[FloatArray, FloatArray]:
        z = (x[:, None] - means[which]) / sds[which]
        cdf = np.einsum("ik,ik->i", weights[which], special.ndtr(z))
        pdf = np.einsum("ik,ik->i", heights[which], np.exp(-0.5 * z**2))
        score = special.ndtri(np.minimum(cdf, 1.0))
        residual = cdf - p[which]
        residual[np.abs(residual) <= noise[which]] = 0.0
        return residual, (probit[which] - score) * np.exp(-0.5 * score**2) / (ROOT_TWO_PI * pdf)

    def ppf(level: FloatArray) -> FloatArray:
        return np.asarray(means + sds * special.ndtri(level))

    return mixture_quantiles(evaluate, weights, p, ppf)
