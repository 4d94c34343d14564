"""What mixtures of real densities share, whatever family their components are of."""

from abc import abstractmethod

import numpy as np
from numpy.typing import ArrayLike

from hylift.posterior.distributions.base import (
    FloatArray,
    FloatOrArray,
    IntArray,
    RealDistribution,
    draw_states,
    normalized,
    real_array,
)


class RealMixture(RealDistribution):
    """A weighted sum of densities of one family.

    The hooks see a batch of shape ``(row,)``; their arrays end in a component axis.
    """

    __slots__ = ()
    weights: FloatArray  # (*batch, component)

    @property
    def num_components(self) -> int:
        return int(self.weights.shape[-1])

    @property
    def mean(self) -> FloatOrArray:
        return self._by_row(RealMixture._means, width=self.num_components)

    @property
    def var(self) -> FloatOrArray:
        return self._by_row(RealMixture._vars, width=self.num_components)

    def log_pdf(self, x: ArrayLike) -> FloatOrArray:
        """The log density at x, also where the density underflows."""
        return self._evaluate(RealMixture._log_pdf, real_array("x", x, finite=False))

    @abstractmethod
    def _component_moments(self) -> tuple[FloatArray, FloatArray]:
        """Means and variances of the components, (row, component)."""

    @abstractmethod
    def _log_terms(self, x: FloatArray) -> FloatArray:
        """Log of weight times density of each component, (point, row, component)."""

    @abstractmethod
    def _draw_from(self, component: IntArray, rng: np.random.Generator) -> FloatArray:
        """A draw from the given component (size, row) of each row."""

    @property
    def _width(self) -> int:
        return self.num_components

    def _means(self) -> FloatArray:
        return np.asarray((self.weights * self._component_moments()[0]).sum(axis=-1))

    def _vars(self) -> FloatArray:
        means, variances = self._component_moments()
        offsets = means - self._means()[:, None]
        offsets[self.weights == 0.0] = 0.0
        return np.asarray((self.weights * variances + self.weights * offsets**2).sum(axis=-1))

    def _log_pdf(self, x: FloatArray) -> FloatArray:
        return log_sum_exp(self._log_terms(x))

    def _draw(self, size: int, rng: np.random.Generator) -> FloatArray:
        return self._draw_from(draw_states(self.weights, size, rng), rng)


def log_sum_exp(logs: FloatArray) -> FloatArray:
    """log Σ exp along the last axis, also where all or some terms are infinite."""
    if logs.shape[-1] == 1:
        return np.asarray(logs[..., 0])
    top = logs.max(axis=-1)
    shift = np.where(np.isfinite(top), top, 0.0)
    with np.errstate(over="ignore", divide="ignore"):
        return np.asarray(np.log(np.exp(logs - shift[..., None]).sum(axis=-1)) + shift)


def checked_weights(weights: ArrayLike, shape: tuple[int, ...]) -> FloatArray:
    """Weights (*batch, component) of components with such a shape; they may be shared."""
    array = real_array("weights", weights, low=0.0)
    if array.shape not in (shape, shape[-1:]):
        raise ValueError(f"weights must have shape {shape} or {shape[-1:]}, but have {array.shape}")
    return np.broadcast_to(normalized("weights", array), shape)
