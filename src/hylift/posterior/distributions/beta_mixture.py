"""Marginals of bounded real variables under mixtures of Betas."""

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np
from scipy import special

from hylift.components import Betas
from hylift.components.beta import peak
from hylift.components.family import FloatArray, IntArray
from hylift.errors import ArgumentError
from hylift.posterior.distributions.base import (
    blocks,
    checked_components,
    log_sum_exp,
    read_only,
    real_array,
)
from hylift.posterior.distributions.reals import (
    BoolArray,
    Density,
    RealMixture,
    log_densities_in_blocks,
)
from hylift.posterior.distributions.univariate import NODES, Intervals


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
    _positions: ClassVar[tuple[str, ...]] = ("lower", "upper")
    _levels: ClassVar[FloatArray] = np.array(
        [0.0, 0.001, 0.01, 0.03, *np.linspace(0.07, 0.93, 13), 0.97, 0.99, 0.999, 1.0]
    )

    def __post_init__(self) -> None:
        alpha, beta = _positive("alpha", self.alpha), _positive("beta", self.beta)
        arrays = checked_components(self.weights, alpha=alpha, beta=beta)
        batch = alpha.shape[:-1]
        for name in ("lower", "upper"):
            bound = real_array(name, getattr(self, name))
            if bound.shape not in (batch, ()):
                raise ArgumentError(f"{name} must have shape {batch} or (), not {bound.shape}")
            arrays.append(np.broadcast_to(bound, batch))
        if not (arrays[-2] < arrays[-1]).all():
            raise ArgumentError("lower must be below upper")
        for name, array in zip(self._event_ndims, arrays, strict=True):
            object.__setattr__(self, name, read_only(array))

    def _ends(self) -> tuple[FloatArray, FloatArray]:
        return self.lower, self.upper

    def _components(self) -> Betas:
        return Betas(self.alpha, self.beta, self.lower, self.upper)

    def _component_entropies(self) -> FloatArray:
        alpha, beta = self.alpha[:, 0], self.beta[:, 0]
        total = alpha + beta
        own = special.betaln(alpha, beta) + (total - 2.0) * special.digamma(total)
        own -= (alpha - 1.0) * special.digamma(alpha) + (beta - 1.0) * special.digamma(beta)
        return np.asarray(own + np.log(self.upper - self.lower))

    def _component_cdf(self, x: FloatArray) -> FloatArray:
        share = np.clip((x - self.lower) / (self.upper - self.lower), 0.0, 1.0)
        return np.asarray(special.betainc(self.alpha, self.beta, share[..., None]))

    def _component_quantiles(self, p: FloatArray) -> FloatArray:
        share = special.betaincinv(self.alpha, self.beta, p)
        return np.asarray(self.lower[:, None] + (self.upper - self.lower)[:, None] * share)

    def _component_slopes(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        near, far = (x - self.lower)[:, None], (self.upper - x)[:, None]
        left, right = (self.alpha - 1.0) / near, (self.beta - 1.0) / far
        return left - right, -left / near - right / far

    def _known_modes(self) -> FloatArray:
        """A pole, the middle of a uniform density, or the mode of a single component."""
        rows = self._without_idle()
        near, far = rows.alpha - 1.0, rows.beta - 1.0
        at = self._components().scaled(peak(near.min(axis=1), far.min(axis=1)))
        is_flat = ((near == 0.0) & (far == 0.0)).all(axis=1)
        is_known = (near < 0).any(axis=1) | (far < 0).any(axis=1) | is_flat
        return at if self.num_components == 1 else np.where(is_known, at, np.nan)

    def _draw_from(self, component: IntArray, rng: np.random.Generator) -> FloatArray:
        row = np.arange(len(self.alpha))
        shares = rng.beta(self.alpha[row, component], self.beta[row, component])
        return self._components().scaled(shares)

    def _lower_tail(self, is_upper: BoolArray) -> "BetaMixture":
        """On the unit interval."""
        mirrored = is_upper[:, None]
        return self._with(
            alpha=np.where(mirrored, self.beta, self.alpha),
            beta=np.where(mirrored, self.alpha, self.beta),
            lower=np.zeros(len(self.lower)),
            upper=np.ones(len(self.upper)),
        )

    def _from_lower_tail(self, x: FloatArray, is_upper: BoolArray) -> FloatArray:
        step = (self.upper - self.lower) * np.minimum(x, 1.0)
        return np.where(is_upper, self.upper - step, self.lower + step)

    def _newton_step(
        self, x: FloatArray, cdf: FloatArray, pdf: FloatArray, p: FloatArray
    ) -> FloatArray:
        # The log of the cdf is a straight line in log x near the edge.
        return np.asarray(x * np.expm1(np.log(p / cdf) * cdf / (x * pdf)))

    def _knots(self) -> FloatArray:
        means, variances = self._components().moments()
        sds = np.sqrt(variances)
        flanks = np.concatenate([means + share * sds for share in (-3.0, 0.0, 3.0)], axis=1)
        ends = np.stack([self.lower, self.upper], axis=1)
        return np.concatenate([np.clip(flanks, ends[:, :1], ends[:, 1:]), ends], axis=1)

    def _log_densities(self, spans: Intervals) -> FloatArray:
        return log_densities_in_blocks(self, spans)

    def _logit_log_pdf(self, log_near: FloatArray, log_far: FloatArray) -> FloatArray:
        """Log densities of y = log u/(1 - u), of the share u of the interval, at (row, node).

        log_near, log_far: log u and log(1 - u)
        """
        with np.errstate(divide="ignore"):
            heights = np.log(self.weights) - special.betaln(self.alpha, self.beta)
        logs = self.alpha[:, None] * log_near[..., None] + self.beta[:, None] * log_far[..., None]
        return log_sum_exp(logs + heights[:, None])


@final
@dataclass(frozen=True, slots=True, eq=False)
class LogitLine:
    """y = log u/(1 - u) of the share u of an interval: a line on which Betas have no poles."""

    lower: FloatArray  # (row,)
    upper: FloatArray  # (row,)

    def knots(self, p: BetaMixture) -> FloatArray:
        """Middle, flanks and ends of components, whose tails are exp(alpha y) and exp(-beta y)."""
        rows = p._without_idle()
        middle = special.digamma(rows.alpha) - special.digamma(rows.beta)
        sd = np.sqrt(special.polygamma(1, rows.alpha) + special.polygamma(1, rows.beta))
        flanks = [middle + share * sd for share in (-3.0, 0.0, 3.0)]
        ends = [middle - 9.0 * sd - 40.0 / rows.alpha, middle + 9.0 * sd + 40.0 / rows.beta]
        return np.concatenate([*flanks, *ends], axis=1)

    def of_reals(self, x: FloatArray) -> FloatArray:
        """The places of reals (row, knot) on the line."""
        with np.errstate(divide="ignore", invalid="ignore"):
            near = np.maximum(x - self.lower[:, None], 0.0)
            far = np.maximum(self.upper[:, None] - x, 0.0)
            return np.asarray(np.log(near) - np.log(far))

    def log_densities(self, some: Density | None, spans: Intervals) -> FloatArray:
        """Log densities along the line at the nodes, of Lebesgue's measure if there is none."""
        found = np.empty((len(spans.row), len(NODES)))
        width = 1 if some is None else some._width
        for part, _ in blocks(len(found), 1, width * len(NODES)):
            found[part] = self._log_densities(some, spans.take(part))
        return found

    def _log_densities(self, some: Density | None, spans: Intervals) -> FloatArray:
        y, row = spans.nodes, spans.row
        low, high = self.lower[row, None], self.upper[row, None]
        log_near, log_far = _log_shares(y)
        if some is None:
            return self._log_slope(row, log_near, log_far)
        rows = some[row]
        if isinstance(rows, BetaMixture):
            ends = np.stack([rows.lower, rows.upper], axis=1)
            if (ends == np.concatenate([low, high], axis=1)).all():
                return rows._logit_log_pdf(log_near, log_far)
        width = high - low
        x = np.where(y < 0, low + width * np.exp(log_near), high - width * np.exp(log_far))
        return rows._log_pdf(x.T).T + self._log_slope(row, log_near, log_far)

    def _log_slope(self, row: IntArray, log_near: FloatArray, log_far: FloatArray) -> FloatArray:
        """Of reals along the line."""
        log_width = np.log(self.upper - self.lower)[row, None]
        return np.asarray(log_width + log_near + log_far)


def _log_shares(y: FloatArray) -> tuple[FloatArray, FloatArray]:
    """log u and log(1 - u) where y = log u/(1 - u)."""
    rest = np.log1p(np.exp(-np.abs(y)))
    return np.minimum(y, 0.0) - rest, -np.maximum(y, 0.0) - rest


def _positive(name: str, values: FloatArray) -> FloatArray:
    array = real_array(name, values, low=0.0)
    if array.size and array.min() == 0.0:
        raise ArgumentError(f"{name} must be positive, but is 0")
    return array
