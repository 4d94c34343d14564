"""Marginals of bounded real variables under mixtures of Betas."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy import special

from hylift.components import Betas
from hylift.components.beta import peak
from hylift.components.family import FloatArray, IntArray
from hylift.errors import ArgumentError
from hylift.posterior.distributions.base import (
    BLOCK_SIZE,
    FloatOrArray,
    RealMixture,
    checked_weights,
    log_sum_exp,
    read_only,
    real_array,
    without_idle,
)
from hylift.posterior.distributions.univariate import (
    EPS,
    NODES,
    Intervals,
    find_maxima,
    integrate,
    mixture_quantiles,
)

LEVELS = np.array([0.001, 0.01, 0.03, *np.linspace(0.07, 0.93, 13), 0.97, 0.99, 0.999])
"""Quantiles of each component at which a mixture is sampled: less than half a deviation apart."""
SLACK = 0.3
"""How far, in logs, a sampled maximum may lie below the best one and still be climbed from."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class BetaMixture(RealMixture):
    """A weighted sum of Beta densities on one interval.

    Weights of shape ``(component,)`` are shared by the whole batch, and so are bounds of shape
    ``()``. Where alpha or beta is below 1, the density is infinite at an edge.
    """

    weights: FloatArray  # (*batch, component)
    alpha: FloatArray  # (*batch, component)
    beta: FloatArray  # (*batch, component)
    lower: FloatArray  # (*batch,)
    upper: FloatArray  # (*batch,)

    _event_ndims: ClassVar[dict[str, int]] = {
        "weights": 1, "alpha": 1, "beta": 1, "lower": 0, "upper": 0,
    }  # fmt: skip

    def __post_init__(self) -> None:
        alpha, beta = _positive("alpha", self.alpha), _positive("beta", self.beta)
        shape = alpha.shape
        if not shape or not shape[-1]:
            raise ArgumentError(f"alpha must have shape (*batch, component), but has shape {shape}")
        if beta.shape != shape:
            raise ArgumentError(f"beta must have the shape of alpha, {shape}, but has {beta.shape}")
        bounds = []
        for name in ("lower", "upper"):
            bound = real_array(name, getattr(self, name))
            if bound.shape not in (shape[:-1], ()):
                raise ArgumentError(
                    f"{name} must have shape {shape[:-1]} or (), but has shape {bound.shape}"
                )
            bounds.append(np.broadcast_to(bound, shape[:-1]))
        if not (bounds[0] < bounds[1]).all():
            raise ArgumentError("lower must be below upper")
        arrays = (checked_weights(self.weights, shape), alpha, beta, *bounds)
        for name, array in zip(self._event_ndims, arrays, strict=True):
            object.__setattr__(self, name, read_only(array))

    @property
    def mode(self) -> FloatOrArray:
        """Where the density is largest: an edge, where it is infinite there.

        The search samples every component finer than its own width and climbs from there.
        """

        def compute(rows: BetaMixture) -> FloatArray:
            if rows.num_components == 1:
                at = peak(rows.alpha[:, 0] - 1.0, rows.beta[:, 0] - 1.0)
            else:
                at = _modes(rows.weights, rows.alpha, rows.beta)
            return rows._betas().scaled(at)

        return self._by_row(compute, width=20 * self.num_components**2)

    @property
    def entropy(self) -> FloatOrArray:
        """Differential entropy in nats, by adaptive quadrature (to about 1e-9)."""
        return self._by_row(BetaMixture._entropies, width=self.num_components)

    def __repr__(self) -> str:
        if self.batch_shape:
            shown = f"batch_shape={self.batch_shape}"
        else:
            shown = f"mean={self.mean:.3g}, std={self.std:.3g}"
            shown += f", low={float(self.lower):.3g}, high={float(self.upper):.3g}"
        return f"BetaMixture({shown}, components={self.num_components})"

    def _betas(self) -> Betas:
        return Betas(self.alpha, self.beta, self.lower, self.upper)

    def _component_moments(self) -> tuple[FloatArray, FloatArray]:
        return self._betas().moments()

    def _pdf(self, x: FloatArray) -> FloatArray:
        return np.exp(self._log_pdf(x))

    def _log_terms(self, x: FloatArray) -> FloatArray:
        logs = self._betas().log_density(x)
        # A component of weight 0 must not matter, even where its density is infinite.
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(self.weights > 0, logs + np.log(self.weights), -np.inf)

    def _cdf(self, x: FloatArray) -> FloatArray:
        share = np.clip((x - self.lower) / (self.upper - self.lower), 0.0, 1.0)
        parts = self.weights * special.betainc(self.alpha, self.beta, share[..., None])
        return np.asarray(np.minimum(parts.sum(axis=-1), 1.0))

    def _quantile(self, p: FloatArray) -> FloatArray:
        shape = (len(p), len(self.alpha))
        p = np.broadcast_to(p, shape).ravel()
        row = np.arange(p.size) % len(self.alpha) if p.size else np.zeros(0, dtype=np.int64)
        # Upper tails are lower tails of the mirror image, where cdf and 1 - p lose no digits.
        mirrored = p > 0.5
        alpha, beta = self.alpha[row], self.beta[row]
        alpha, beta = (
            np.where(mirrored[:, None], beta, alpha),
            np.where(mirrored[:, None], alpha, beta),
        )
        share = _lower_quantiles(self.weights[row], alpha, beta, np.where(mirrored, 1.0 - p, p))
        width = (self.upper - self.lower)[row]
        values = np.where(
            mirrored, self.upper[row] - width * share, self.lower[row] + width * share
        )
        return values.reshape(shape)

    def _draw_from(self, component: IntArray, rng: np.random.Generator) -> FloatArray:
        row = np.arange(len(self.alpha))
        shares = rng.beta(self.alpha[row, component], self.beta[row, component])
        return self._betas().scaled(shares)

    def _entropies(self) -> FloatArray:
        log_width = np.log(self.upper - self.lower)
        alpha, beta = self.alpha, self.beta
        if self.num_components > 1:
            return log_width + _mixed_entropies(self.weights, alpha, beta)
        total = alpha + beta
        own = special.betaln(alpha, beta) + (total - 2.0) * special.digamma(total)
        own -= (alpha - 1.0) * special.digamma(alpha) + (beta - 1.0) * special.digamma(beta)
        return np.asarray(log_width + own[:, 0])


def _positive(name: str, values: FloatArray) -> FloatArray:
    array = real_array(name, values, low=0.0)
    if array.size and array.min() == 0.0:
        raise ArgumentError(f"{name} must be positive, but is 0")
    return array


def log_heights(weights: FloatArray, alpha: FloatArray, beta: FloatArray) -> FloatArray:
    """Log of what multiplies u^(alpha - 1) (1 - u)^(beta - 1) in each weighted component."""
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(weights) - special.betaln(alpha, beta))


def _lower_quantiles(
    weights: FloatArray, alpha: FloatArray, beta: FloatArray, p: FloatArray
) -> FloatArray:
    """The quantile p of each row as a share of the interval, 0 ≤ p ≤ 1/2.

    Newton of log p as a function of the log share, a straight line near the edge.
    """
    if weights.shape[1] == 1:
        return np.asarray(special.betaincinv(alpha[:, 0], beta[:, 0], p))
    heights = log_heights(weights, alpha, beta)
    noise = 8.0 * EPS * p

    def evaluate(u: FloatArray, which: IntArray) -> tuple[FloatArray, FloatArray]:
        a, b = alpha[which], beta[which]
        cdf = np.einsum("ik,ik->i", weights[which], special.betainc(a, b, u[:, None]))
        logs = heights[which] + special.xlogy(a, u[:, None]) + special.xlog1py(b - 1.0, -u[:, None])
        slope = np.exp(log_sum_exp(logs)) / cdf  # of log cdf against log u
        residual = cdf - p[which]
        residual[np.abs(residual) <= noise[which]] = 0.0
        return residual, u * np.expm1(np.log(p[which] / cdf) / slope)

    def ppf(level: FloatArray) -> FloatArray:
        return np.asarray(special.betaincinv(alpha, beta, level))

    found = mixture_quantiles(evaluate, weights, p, ppf, slack=1e-12)
    return np.where(p > 0, np.minimum(found, 1.0), 0.0)


def _mixed_entropies(weights: FloatArray, alpha: FloatArray, beta: FloatArray) -> FloatArray:
    """Entropies on the unit interval, as integrals over y = log u/(1 - u), smooth at the edges."""
    alpha, beta = without_idle(weights, alpha, beta)
    heights = log_heights(weights, alpha, beta)

    def values(spans: Intervals) -> FloatArray:
        y = spans.nodes
        log_density = np.empty_like(y)  # of y
        step = max(1, BLOCK_SIZE // (len(NODES) * weights.shape[1]))
        for first in range(0, len(y), step):
            some = slice(first, first + step)
            row = spans.row[some]
            log_density[some] = logit_log_density(heights[row], alpha[row], beta[row], y[some])
        log_near, log_far = log_shares(y)
        density = np.exp(log_density)
        return np.where(density > 0, -density * (log_density - log_near - log_far), 0.0)

    with np.errstate(invalid="ignore"):
        return integrate(values, logit_knots(alpha, beta))


def log_shares(y: FloatArray) -> tuple[FloatArray, FloatArray]:
    """log u and log(1 - u) where y = log u/(1 - u)."""
    return -np.logaddexp(0.0, -y), -np.logaddexp(0.0, y)


def logit_log_density(
    heights: FloatArray, alpha: FloatArray, beta: FloatArray, y: FloatArray
) -> FloatArray:
    """The log density of y = log u/(1 - u) in each row, at y (row, node)."""
    log_near, log_far = log_shares(y)
    logs = alpha[:, None] * log_near[..., None] + beta[:, None] * log_far[..., None]
    return log_sum_exp(logs + heights[:, None])


def logit_knots(alpha: FloatArray, beta: FloatArray) -> FloatArray:
    """Middle, flanks and ends of each component, whose tails are exp(alpha y) and exp(-beta y)."""
    middle = special.digamma(alpha) - special.digamma(beta)
    sd = np.sqrt(special.polygamma(1, alpha) + special.polygamma(1, beta))
    flanks = [middle + share * sd for share in (-3.0, 0.0, 3.0)]
    ends = [middle - 9.0 * sd - 40.0 / alpha, middle + 9.0 * sd + 40.0 / beta]
    return np.sort(np.concatenate([*flanks, *ends], axis=1), axis=1)


def _modes(weights: FloatArray, alpha: FloatArray, beta: FloatArray) -> FloatArray:
    """The mode of each mixture (row, component)."""
    alpha, beta = without_idle(weights, alpha, beta)
    near, far = (alpha - 1.0).min(axis=1), (beta - 1.0).min(axis=1)
    infinite = (near < 0) | (far < 0)
    result = peak(near, far)
    flat = ((alpha == 1.0) & (beta == 1.0)).all(axis=1)
    bounded = np.flatnonzero(~infinite & ~flat)
    result[flat] = 0.5
    if len(bounded):
        result[bounded] = _bounded_modes(weights[bounded], alpha[bounded], beta[bounded])
    return result


def _bounded_modes(weights: FloatArray, alpha: FloatArray, beta: FloatArray) -> FloatArray:
    """Modes where no density is infinite: samples, then Newton from the best of them."""
    num_rows = len(weights)
    heights = log_heights(weights, alpha, beta)
    samples = special.betaincinv(alpha[..., None], beta[..., None], LEVELS).reshape(num_rows, -1)
    ends = np.broadcast_to([0.0, 1.0], (num_rows, 2))
    grid = np.concatenate([samples, peak(alpha - 1.0, beta - 1.0), ends], axis=1)
    grid = np.sort(grid, axis=1)
    logs = log_sum_exp(_log_terms(heights[:, None], alpha[:, None], beta[:, None], grid))
    best = np.argmax(logs, axis=1)
    rows = np.arange(num_rows)
    top, at = logs[rows, best], grid[rows, best]

    padded = np.pad(logs, ((0, 0), (1, 1)), constant_values=-np.inf)
    local = (logs >= padded[:, :-2]) & (logs >= padded[:, 2:]) & (logs >= top[:, None] - SLACK)
    row, place = np.nonzero(local)
    low = grid[row, np.maximum(place - 1, 0)]
    high = grid[row, np.minimum(place + 1, grid.shape[1] - 1)]
    heights, alpha, beta = heights[row], alpha[row], beta[row]

    def derivatives(u: FloatArray, which: IntArray) -> tuple[FloatArray, FloatArray]:
        logs = _log_terms(heights[which], alpha[which], beta[which], u)
        share = np.exp(logs - log_sum_exp(logs)[:, None])
        left = (alpha[which] - 1.0) / u[:, None]
        right = (beta[which] - 1.0) / (1.0 - u)[:, None]
        slopes = np.where(share > 0, left - right, 0.0)
        bends = np.where(share > 0, -left / u[:, None] - right / (1.0 - u)[:, None], 0.0)
        slope = np.einsum("ik,ik->i", share, slopes)
        return slope, np.einsum("ik,ik->i", share, bends + slopes**2) - slope**2

    with np.errstate(all="ignore"):
        climbed = find_maxima(derivatives, low, high, 0.5 * low + 0.5 * high)
    found = log_sum_exp(_log_terms(heights, alpha, beta, climbed))
    order = np.lexsort((found, row))
    last = np.searchsorted(row[order], rows, side="right") - 1
    chosen = order[last]
    better = found[chosen] > top
    return np.where(better, climbed[chosen], at)


def _log_terms(
    heights: FloatArray, alpha: FloatArray, beta: FloatArray, u: FloatArray
) -> FloatArray:
    """Log of weight times density of each component at u (…,): (…, component)."""
    near = special.xlogy(alpha - 1.0, u[..., None])
    return np.asarray(heights + near + special.xlog1py(beta - 1.0, -u[..., None]))
