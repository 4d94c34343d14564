"""Marginals of real variables under mixtures of Gaussians."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy import special

from hylift.components import Gaussians
from hylift.components.family import FloatArray, IntArray
from hylift.errors import ArgumentError
from hylift.posterior.distributions.base import (
    BLOCK_SIZE,
    checked_components,
    log_sum_exp,
    read_only,
    real_array,
)
from hylift.posterior.distributions.reals import (
    BoolArray,
    RealMixture,
)
from hylift.posterior.distributions.univariate import NODES, Intervals

ROOT_TWO_PI = float(np.sqrt(2.0 * np.pi))
TINY = 1e-290  # densities below lose digits
VANISHING = 750.0
"""A component whose log density is lower than another's by this much does not count."""
LARGEST = 1e153
"""Largest mean, whose square does not overflow."""


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
    _positions: ClassVar[tuple[str, ...]] = ("means",)
    # A density is convex where it is more than a deviation away from all means.
    _levels: ClassVar[FloatArray] = special.ndtr([-1.0, -0.5, 0.5, 1.0])

    def __post_init__(self) -> None:
        means = real_array("means", self.means)
        variances = real_array("variances", self.variances, low=0.0)
        arrays = checked_components(self.weights, means=means, variances=variances)
        if variances.size and variances.min() == 0.0 and (arrays[0][variances == 0.0] > 0).any():
            raise ArgumentError(
                "a component of positive weight has variance 0; an observed value is a PointMass"
            )
        if (np.abs(arrays[1])[arrays[0] > 0] > LARGEST).any():
            raise ArgumentError(f"a mean is larger than {LARGEST:g}, and its square overflows")
        for name, array in zip(self._event_ndims, arrays, strict=True):
            object.__setattr__(self, name, read_only(array))

    def _ends(self) -> tuple[FloatArray, ...]:
        return ()

    def _components(self) -> Gaussians:
        return Gaussians(self.means, self.variances)

    @property
    def _sds(self) -> FloatArray:
        # A variance of 0 has weight 0, where it must not matter.
        return np.sqrt(np.where(self.variances > 0, self.variances, 1.0))

    def _component_entropies(self) -> FloatArray:
        return np.asarray(0.5 * np.log(2.0 * np.pi * np.e * self.variances[:, 0]))

    def _component_cdf(self, x: FloatArray) -> FloatArray:
        return np.asarray(special.ndtr((x[..., None] - self.means) / self._sds))

    def _pdf(self, x: FloatArray) -> FloatArray:
        sds = self._sds
        with np.errstate(over="ignore"):
            bells = np.exp(-0.5 * ((x[..., None] - self.means) / sds) ** 2)
        return np.asarray(np.einsum("rk,prk->pr", self.weights / (sds * ROOT_TWO_PI), bells))

    def _component_quantiles(self, p: FloatArray) -> FloatArray:
        return np.asarray(self.means + self._sds * special.ndtri(p))

    def _component_slopes(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        return (self.means - x[:, None]) / self.variances, -1.0 / self.variances

    def _known_modes(self) -> FloatArray:
        is_single = self.num_components == 1
        return self.means[:, 0].copy() if is_single else np.full(len(self.means), np.nan)

    def _draw_from(self, component: IntArray, rng: np.random.Generator) -> FloatArray:
        row = np.arange(len(self.means))
        noise = rng.standard_normal(component.shape)
        return np.asarray(
            self.means[row, component] + np.sqrt(self.variances[row, component]) * noise
        )

    def _lower_tail(self, is_upper: BoolArray) -> "GaussianMixture":
        mirrored = np.where(is_upper[:, None], -self.means, self.means)
        return self._with(means=mirrored)

    def _from_lower_tail(self, x: FloatArray, is_upper: BoolArray) -> FloatArray:
        return np.where(is_upper, -x, x)

    def _newton_step(
        self, x: FloatArray, cdf: FloatArray, pdf: FloatArray, p: FloatArray
    ) -> FloatArray:
        # On the probit scale the cdf of a single Gaussian is a straight line.
        score = special.ndtri(cdf)
        return np.asarray(
            (special.ndtri(p) - score) * np.exp(-0.5 * score**2) / (ROOT_TWO_PI * pdf)
        )

    def _knots(self) -> FloatArray:
        """Each component's middle and ends, snapped to a grid as coarse as its standard deviation.

        Snapping merges the knots of components that overlap, so that their number grows with the
        range in standard deviations, not with the number of components.
        """
        rows = self._without_idle()
        sds = rows._sds
        _, exponent = np.frexp(sds)
        grid = np.ldexp(1.0, exponent - 1)
        ends = [rows.means + reach * sds for reach in (-9.0, 0.0, 9.0)]
        return np.concatenate([grid * np.round(end / grid) for end in ends], axis=1)

    def _log_densities(self, spans: Intervals) -> FloatArray:
        width = spans.high - spans.low
        found = np.empty((len(width), len(NODES)))
        for block, rows in self._blocks(spans):
            sds = rows._sds
            # From the ends, which are exact: far from 0 the nodes lose digits.
            start = (spans.low[block, None] - rows.means) / sds
            z = width[block, None, None] / sds[:, :, None] * (0.5 + 0.5 * NODES)
            z += start[:, :, None]  # (interval, component, node)
            with np.errstate(over="ignore", divide="ignore"):
                z *= z
                z *= -0.5
                density = ((rows.weights / (sds * ROOT_TWO_PI))[:, None] @ np.exp(z))[:, 0]
                found[block] = np.log(density)
                if density.min() < TINY:
                    heights = np.log(rows.weights) - np.log(sds * ROOT_TWO_PI)
                    logs = log_sum_exp(np.swapaxes(z + heights[:, :, None], 1, 2))
                    found[block] = np.where(density < TINY, logs, found[block])
        return found

    def _blocks(self, spans: Intervals) -> Iterator[tuple[slice, "GaussianMixture"]]:
        """Blocks of intervals with the mixtures there, of a single one the parts that count."""
        is_single = len(self.means) == 1
        # The shorter the block, the fewer components of a single mixture count there.
        most = BLOCK_SIZE // 8 if is_single else BLOCK_SIZE
        pending = [(slice(0, len(spans.row)), self)]
        while pending:
            block, rows = pending.pop()
            size = block.stop - block.start
            if is_single and size:
                rows = rows._near(spans.take(block))
            if size > 1 and size * rows.num_components * len(NODES) > most:
                middle = block.start + size // 2
                pending += [
                    (slice(middle, block.stop), rows),
                    (slice(block.start, middle), rows),
                ]
            elif size:
                yield block, rows if is_single else rows[spans.row[block]]

    def _near(self, spans: Intervals) -> "GaussianMixture":
        """A single mixture without the components that vanish among the others on intervals."""
        low, high, sds = spans.low.min(), spans.high.max(), self._sds
        with np.errstate(over="ignore", divide="ignore"):
            log_heights = np.log(self.weights) - np.log(sds)
            farthest = np.maximum(np.abs(low - self.means), np.abs(high - self.means)) / sds
            closest = (np.clip(self.means, low, high) - self.means) / sds
            least = (log_heights - 0.5 * farthest**2).max()
            counts = log_heights - 0.5 * closest**2 >= least - VANISHING
        return self._with_components(np.flatnonzero(counts[0])[None])
