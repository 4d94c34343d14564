"""Distributions of real variables, and mixtures of a family of components."""

from abc import abstractmethod
from collections.abc import Callable
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hylift.components import Family
from hylift.components.categorical import draw_states
from hylift.components.family import FloatArray, IntArray
from hylift.posterior.distributions.base import (
    BatchedDistribution,
    FloatOrArray,
    Seed,
    blocks,
    log_sum_exp,
    probability,
    real_array,
    sample_arguments,
    unwrap,
)
from hylift.posterior.distributions.univariate import (
    EPS,
    NODES,
    Intervals,
    find_modes,
    find_roots,
)

MOST_SAMPLED = 64
"""With more than twice as many components, a search for the mode begins at so many of the highest
and so many others spread over the range."""
BoolArray = NDArray[np.bool_]
QUANTILE_SLACK = 1e-12  # relative, of the quantiles of components


class RealDistribution(BatchedDistribution):
    """Distributions of real variables; results are floats for one, arrays for a batch.

    Arguments ``x`` and ``p`` are put to every row: results have shape ``np.shape(x) + batch``.
    The hooks `_log_pdf`, `_cdf` and `_quantile` see a batch of shape ``(row,)`` and an argument of
    shape ``(point, 1)`` or ``(point, row)``, in blocks whose ``point * row * _width`` is bounded.
    """

    __slots__ = ()
    _positions: ClassVar[tuple[str, ...]]
    """Arrays that move with the distribution."""

    @property
    def num_states(self) -> int:
        return 0

    def shifted(self, by: FloatArray) -> Self:
        """The distributions of x plus by (*batch,)."""
        own = {name: self._event_ndims[name] for name in self._positions}
        return self._with(
            **{
                name: getattr(self, name) + np.expand_dims(by, tuple(range(-ndim, 0)))
                for name, ndim in own.items()
            }
        )

    @property
    def mode_number(self) -> FloatOrArray:
        return self.mode

    @property
    @abstractmethod
    def mean(self) -> FloatOrArray: ...

    @property
    @abstractmethod
    def var(self) -> FloatOrArray: ...

    @property
    @abstractmethod
    def mode(self) -> FloatOrArray:
        """The point of largest density."""

    @property
    @abstractmethod
    def entropy(self) -> FloatOrArray:
        """Differential entropy in nats."""

    @property
    def std(self) -> FloatOrArray:
        return unwrap(np.sqrt(np.asarray(self.var)))

    def pdf(self, x: ArrayLike) -> FloatOrArray:
        """The density at x."""
        return self._evaluate(type(self)._pdf, real_array("x", x, finite=False))

    def cdf(self, x: ArrayLike) -> FloatOrArray:
        """The probability of values up to x."""
        return self._evaluate(type(self)._cdf, real_array("x", x, finite=False))

    def quantile(self, p: ArrayLike) -> FloatOrArray:
        """The value below which lies probability p."""
        return self._evaluate(type(self)._quantile, probability("p", p))

    def interval(self, mass: float = 0.9) -> tuple[FloatOrArray, FloatOrArray]:
        """The central credible interval (low, high) of probability `mass`."""
        tail = (1.0 - float(probability("mass", mass))) / 2.0
        return self.quantile(tail), self.quantile(1.0 - tail)

    def sample(self, size: int, *, seed: Seed) -> FloatArray:
        """`size` independent draws from every row, shape ``(size, *batch)``."""
        size, rng = sample_arguments(size, seed)
        return self._flat()._draw(size, rng).reshape(size, *self.batch_shape)

    @property
    @abstractmethod
    def _width(self) -> int:
        """Elements of the temporaries that one point in one row needs."""

    @abstractmethod
    def _pdf(self, x: FloatArray) -> FloatArray: ...

    @abstractmethod
    def _cdf(self, x: FloatArray) -> FloatArray: ...

    @abstractmethod
    def _quantile(self, p: FloatArray) -> FloatArray: ...

    @abstractmethod
    def _draw(self, size: int, rng: np.random.Generator) -> FloatArray:
        """Draws from a batch of shape ``(row,)``, shape ``(size, row)``."""

    def _evaluate(
        self, evaluate: Callable[[Self, FloatArray], FloatArray], points: FloatArray
    ) -> FloatOrArray:
        values = self._flat()._in_blocks(evaluate, points.reshape(-1, 1))
        return unwrap(values.reshape(points.shape + self.batch_shape))

    def _in_blocks(
        self, evaluate: Callable[[Self, FloatArray], FloatArray], points: FloatArray
    ) -> FloatArray:
        """`evaluate` of points (point, 1 or row) on a batch of shape (row,): (point, row)."""
        num_rows = self.batch_shape[0]
        values = np.empty((len(points), num_rows))
        for some, rows in blocks(len(points), num_rows, self._width):
            columns = rows if points.shape[1] > 1 else slice(None)
            values[some, rows] = evaluate(self[rows], points[some, columns])
        return values


class Density(RealDistribution):
    """Distributions with densities, which can be integrated."""

    __slots__ = ()

    @abstractmethod
    def _log_pdf(self, x: FloatArray) -> FloatArray: ...

    @abstractmethod
    def _knots(self) -> FloatArray:
        """(row, knot): points between which the density is smooth, and beyond which it vanishes."""

    @abstractmethod
    def _log_densities(self, spans: Intervals) -> FloatArray:
        """Log densities at the nodes of intervals, (interval, node)."""


class RealMixture(Density):
    """A weighted sum of densities of one family.

    The hooks see a batch of shape ``(row,)``; their arrays end in a component axis.
    """

    __slots__ = ()
    weights: FloatArray  # (*batch, component)

    _levels: ClassVar[FloatArray]
    """Quantiles of each component near which, or near its own mode, those of mixtures may lie:
    about half a deviation apart."""

    @property
    def num_components(self) -> int:
        return int(self.weights.shape[-1])

    @property
    def mean(self) -> FloatOrArray:
        return self._by_row(RealMixture._means, width=self.num_components)

    @property
    def var(self) -> FloatOrArray:
        return self._by_row(RealMixture._vars, width=self.num_components)

    @property
    def mode(self) -> FloatOrArray:
        """The point of largest density; an end of the interval if it is infinite there.

        Every component, up to 128 of them, is sampled more finely than its own width, and the best
        samples are refined by Newton's method.
        """
        size = min(self.num_components, 2 * MOST_SAMPLED) * len(self._levels)
        return self._by_row(RealMixture._modes, width=size * self.num_components)

    @property
    def entropy(self) -> FloatOrArray:
        """Differential entropy in nats, by adaptive quadrature (to about 1e-9)."""
        from hylift.posterior.distributions.divergence import entropies

        if self.num_components == 1:
            return self._by_row(type(self)._component_entropies, width=1)
        return unwrap(entropies(self._flat()).reshape(self.batch_shape))

    def log_pdf(self, x: ArrayLike) -> FloatOrArray:
        """The log density at x, also where the density underflows."""
        return self._evaluate(type(self)._log_pdf, real_array("x", x, finite=False))

    def __repr__(self) -> str:
        return described(self, f"components={self.num_components}", self._ends())

    @abstractmethod
    def _ends(self) -> tuple[FloatArray, ...]:
        """Lower and upper bounds of the values, if there are any."""

    @abstractmethod
    def _components(self) -> Family:
        """The components (row, component)."""

    @abstractmethod
    def _component_entropies(self) -> FloatArray:
        """(row,): entropies of mixtures of a single component."""

    @abstractmethod
    def _component_cdf(self, x: FloatArray) -> FloatArray:
        """(point, row, component)"""

    @abstractmethod
    def _component_quantiles(self, p: FloatArray) -> FloatArray:
        """Quantiles p (…, row, 1 or component) of each component, (…, row, component)."""

    @abstractmethod
    def _component_slopes(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """First and second derivatives of the log densities at x (row,), (row, component)."""

    @abstractmethod
    def _known_modes(self) -> FloatArray:
        """(row,): the modes that need no search, else NaN."""

    @abstractmethod
    def _draw_from(self, component: IntArray, rng: np.random.Generator) -> FloatArray:
        """A draw from the given component (size, row) of each row."""

    @abstractmethod
    def _lower_tail(self, is_upper: BoolArray) -> Self:
        """These mixtures in a standard form; where `is_upper`, their mirror images."""

    @abstractmethod
    def _from_lower_tail(self, x: FloatArray, is_upper: BoolArray) -> FloatArray:
        """The values (row,) of points of the standard form."""

    @abstractmethod
    def _newton_step(
        self, x: FloatArray, cdf: FloatArray, pdf: FloatArray, p: FloatArray
    ) -> FloatArray:
        """The Newton step from x (row,) to the quantile p, on a scale where that is near."""

    @property
    def _width(self) -> int:
        return self.num_components

    def _means(self) -> FloatArray:
        return np.asarray((self.weights * self._components().moments()[0]).sum(axis=-1))

    def _vars(self) -> FloatArray:
        means, variances = self._components().moments()
        offsets = means - self._means()[:, None]
        offsets[self.weights == 0.0] = 0.0
        return np.asarray((self.weights * variances + self.weights * offsets**2).sum(axis=-1))

    def _log_terms(self, x: FloatArray) -> FloatArray:
        """Log of weight times density of each component, (point, row, component)."""
        # A component of weight 0 must not matter, even where its density is infinite.
        with np.errstate(all="ignore"):
            logs = self._components().log_density(x) + np.log(self.weights)
        return np.where(self.weights > 0, logs, -np.inf)

    def _log_pdf(self, x: FloatArray) -> FloatArray:
        return log_sum_exp(self._log_terms(x))

    def _pdf(self, x: FloatArray) -> FloatArray:
        return np.exp(self._log_pdf(x))

    def _cdf(self, x: FloatArray) -> FloatArray:
        with np.errstate(over="ignore"):
            parts = self.weights * self._component_cdf(x)
        return np.asarray(np.minimum(parts.sum(axis=-1), 1.0))

    def _draw(self, size: int, rng: np.random.Generator) -> FloatArray:
        return self._draw_from(draw_states(self.weights, size, rng), rng)

    def _quantile(self, p: FloatArray) -> FloatArray:
        shape = (len(p), len(self.weights))
        p = np.broadcast_to(p, shape).ravel()
        row = np.tile(np.arange(shape[1]), shape[0])
        # Upper tails are lower tails of the mirror image, where cdf and 1 - p lose no digits.
        is_upper = p > 0.5
        rows = self[row]
        tail = rows._lower_tail(is_upper)
        with np.errstate(all="ignore"):
            found = tail._lower_quantiles(np.where(is_upper, 1.0 - p, p))
            return rows._from_lower_tail(found, is_upper).reshape(shape)

    def _lower_quantiles(self, p: FloatArray) -> FloatArray:
        """The quantile p (row,) of each row, 0 ≤ p ≤ 1/2."""
        own, is_used = self._component_quantiles(p[:, None]), self.weights > 0
        if self.num_components == 1:
            return own[:, 0]
        # Every component has less than p below `low` and more than p below `high`; and where
        # one component alone has p, the mixture has no less.
        low = np.where(is_used, own, np.inf).min(axis=1)
        high = np.where(is_used, own, -np.inf).max(axis=1)
        alone = self._component_quantiles(np.minimum(p[:, None] / self.weights, 1.0))
        high = np.maximum(np.minimum(high, np.where(is_used, alone, np.inf).min(axis=1)), low)
        inner = np.flatnonzero(p > 0.0)
        all_rows = self[inner]
        noise = 8.0 * EPS * p * (1.0 - 2.0 * np.log(p))  # of the cdf, from rounding of x

        def evaluate(x: FloatArray, which: IntArray) -> tuple[FloatArray, FloatArray]:
            rows = all_rows if len(which) == len(inner) else all_rows[which]
            which = inner[which]
            cdf = rows._cdf(x[None])[0]
            residual = cdf - p[which]
            residual[np.abs(residual) <= noise[which]] = 0.0
            return residual, rows._newton_step(x, cdf, rows._pdf(x[None])[0], p[which])

        low[inner] = find_roots(
            evaluate,
            (low - QUANTILE_SLACK * np.abs(low))[inner],
            (high + QUANTILE_SLACK * np.abs(high))[inner],
            np.where(is_used, self.weights * own, 0.0).sum(axis=1)[inner],
        )
        return low

    def _modes(self) -> FloatArray:
        modes = self._known_modes()
        searched = np.flatnonzero(np.isnan(modes))
        if len(searched):
            rows = self[searched]._without_idle()
            grid = np.sort(rows._sampled(), axis=1)
            log_heights = rows._in_blocks(type(self)._log_pdf, grid.T).T
            modes[searched] = find_modes(
                grid, log_heights, lambda x, row: rows[row]._log_derivatives(x)
            )
        return modes

    def _sampled(self) -> FloatArray:
        """(row, point): points near which modes may lie."""
        if self.num_components <= 2 * MOST_SAMPLED:
            levels = self._component_quantiles(self._levels[:, None, None])
            return np.concatenate([*levels, self._components().modes()], axis=1)
        means, variances = self._components().moments()
        highest = np.argsort(-self.weights / np.sqrt(variances), axis=1)[:, :MOST_SAMPLED]
        places = np.linspace(0, self.num_components - 1, MOST_SAMPLED).astype(np.int64)
        spread = np.argsort(means, axis=1)[:, places]
        some = self._with_components(np.concatenate([highest, spread], axis=1))
        return some._components().modes()

    def _log_derivatives(self, x: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """The log density at x (row,), its slope and its second derivative."""
        logs = self._log_terms(x[None])[0]
        total = log_sum_exp(logs)
        share = np.exp(logs - total[:, None])
        slopes, bends = (np.where(share > 0, d, 0.0) for d in self._component_slopes(x))
        slope = np.einsum("ik,ik->i", share, slopes)
        return total, slope, np.einsum("ik,ik->i", share, bends + slopes**2) - slope**2

    def _without_idle(self) -> Self:
        """Components of weight 0 replaced by copies, of weight 0, of the heaviest."""
        if (self.weights > 0).all():
            return self
        own = np.broadcast_to(np.arange(self.num_components), self.weights.shape)
        index = np.where(self.weights > 0, own, np.argmax(self.weights, axis=1)[:, None])
        return self._with_components(index)._with(weights=self.weights)

    def _with_components(self, index: IntArray) -> Self:
        """The components (row, chosen) of each row, with their weights."""

        def take(array: FloatArray, event_ndim: int) -> FloatArray:
            return np.take_along_axis(array, index, axis=1) if event_ndim else array

        return self._rebuilt(take)


def described(some: RealDistribution, size: str, ends: tuple[FloatArray, ...] = ()) -> str:
    """A short text: moments and ends of a single distribution, and its size."""
    shown = f"batch_shape={some.batch_shape}"
    if not some.batch_shape:
        bounds = zip(("low", "high"), ends, strict=False)
        numbers = {"mean": some.mean, "std": some.std, **dict(bounds)}
        shown = ", ".join(f"{name}={float(number):.3g}" for name, number in numbers.items())
    return f"{type(some).__name__}({shown}, {size})"


def log_densities_in_blocks(some: Density, spans: Intervals) -> FloatArray:
    """Log densities at the nodes of intervals, (interval, node)."""
    found = np.empty((len(spans.row), len(NODES)))
    for part, _ in blocks(len(found), 1, some._width * len(NODES)):
        found[part] = some[spans.row[part]]._log_pdf(spans.take(part).nodes.T).T
    return found
