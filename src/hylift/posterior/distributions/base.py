"""Base classes of marginals: batches, evaluation in blocks, argument checks."""

import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields
from typing import Any, ClassVar, Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hylift.components.categorical import draw_states
from hylift.components.family import FloatArray, IntArray
from hylift.errors import ArgumentError, UnsupportedError

FloatOrArray: TypeAlias = float | FloatArray
Seed: TypeAlias = int | np.random.Generator

BLOCK_SIZE = 1 << 17  # elements of the largest temporary: 1 MB stays in the cache
SUM_TOLERANCE = 1e-9
SUM_ROUNDING = 1e-13


class BatchedDistribution(ABC):
    """One distribution per row of a batch, stored in arrays of shape ``(*batch, ...)``.

    A single distribution is a batch of shape ``()``. Subclasses are frozen dataclasses and name
    their array fields, with the number of axes that follow the batch axes, in `_event_ndims`.
    """

    __slots__ = ()
    _event_ndims: ClassVar[Mapping[str, int]]

    @property
    def batch_shape(self) -> tuple[int, ...]:
        name, event_ndim = next(iter(self._event_ndims.items()))
        shape: tuple[int, ...] = getattr(self, name).shape
        return shape[: len(shape) - event_ndim]

    def __getitem__(self, index: Any) -> Self:
        """The distributions at an int, slice, or int or bool array (or a tuple of them)."""
        if not self.batch_shape:
            raise UnsupportedError(f"a single {type(self).__name__} has no batch to index")
        leading = index if isinstance(index, tuple) else (index,)

        def take(array: FloatArray, event_ndim: int) -> FloatArray:
            return array[(*leading, Ellipsis, *(slice(None),) * event_ndim)]

        return self._rebuilt(take)

    def _flat(self) -> Self:
        """The same distributions with batch shape ``(row,)``."""
        num_rows = int(np.prod(self.batch_shape, dtype=np.int64))

        def flatten(array: FloatArray, event_ndim: int) -> FloatArray:
            return array.reshape(num_rows, *array.shape[array.ndim - event_ndim :])

        return self._rebuilt(flatten)

    def _rebuilt(self, transform: Callable[[FloatArray, int], FloatArray]) -> Self:
        """A copy with transformed arrays; skips the checks that the originals passed."""
        copy = object.__new__(type(self))
        for field in fields(self):  # type: ignore[arg-type]
            value = getattr(self, field.name)
            if field.name in self._event_ndims:
                value = read_only(transform(value, self._event_ndims[field.name]))
            object.__setattr__(copy, field.name, value)
        return copy

    def _by_row(self, compute: Callable[[Self], FloatArray], width: int) -> FloatOrArray:
        """A value per row, computed on blocks of rows that need `width` elements each."""
        flat = self._flat()
        num_rows = flat.batch_shape[0]
        values = np.empty(num_rows)
        for _, rows in blocks(1, num_rows, width):
            values[rows] = compute(flat[rows])
        return unwrap(values.reshape(self.batch_shape))


class RealDistribution(BatchedDistribution):
    """Distributions of real variables; results are floats for one, arrays for a batch.

    Arguments ``x`` and ``p`` are put to every row: results have shape ``np.shape(x) + batch``.
    The hooks `_pdf`, `_cdf` and `_quantile` see a batch of shape ``(row,)`` and an argument of
    shape ``(point, 1)`` or ``(point, row)``, in blocks whose ``point * row * _width`` is bounded.
    """

    __slots__ = ()

    @property
    @abstractmethod
    def mean(self) -> FloatOrArray: ...

    @property
    @abstractmethod
    def var(self) -> FloatOrArray: ...

    @property
    @abstractmethod
    def mode(self) -> FloatOrArray:
        """Where the density is largest."""

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
        return self._evaluate(type(self)._quantile, _probability("p", p))

    def interval(self, mass: float = 0.9) -> tuple[FloatOrArray, FloatOrArray]:
        """The central credible interval (low, high) of probability `mass`."""
        tail = (1.0 - float(_probability("mass", mass))) / 2.0
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


def blocks(num_points: int, num_rows: int, width: int) -> Iterator[tuple[slice, slice]]:
    """Slices of points and of rows, with at most about `BLOCK_SIZE` points * rows * width."""
    row_step = max(1, min(num_rows, BLOCK_SIZE // width))
    point_step = max(1, BLOCK_SIZE // (width * row_step))
    for row in range(0, num_rows, row_step):
        for point in range(0, num_points, point_step):
            yield slice(point, point + point_step), slice(row, row + row_step)


def unwrap(values: FloatArray) -> FloatOrArray:
    """A Python float for a 0-d array, otherwise the array."""
    return float(values) if values.ndim == 0 else values


def read_only(array: FloatArray) -> FloatArray:
    """A read-only view; the array itself stays as it is."""
    view = np.asarray(array).view()
    view.flags.writeable = False
    return view


def real_array(
    name: str, values: ArrayLike, *, low: float = -np.inf, finite: bool = True
) -> FloatArray:
    """The values as float64, at least `low` and never NaN; not copied if they are already."""
    array = np.asarray(values, dtype=np.float64)
    if array.size == 0:
        return array
    smallest, largest = array.min(), array.max()  # NaN if any element is
    if np.isnan(smallest):
        _reject(name, array, np.isnan(array), "not NaN")
    if finite and not (np.isfinite(smallest) and np.isfinite(largest)):
        _reject(name, array, ~np.isfinite(array), "finite")
    if smallest < low:
        _reject(name, array, array < low, f"at least {low:g}")
    return array


def normalized(name: str, weights: FloatArray) -> FloatArray:
    """Weights that sum to 1 along the last axis, after checking that they almost do."""
    sums = weights.sum(axis=-1)
    error = np.abs(sums - 1.0)
    if (error > SUM_TOLERANCE).any():
        _reject(f"the sum of {name}", np.asarray(sums), error > SUM_TOLERANCE, "1 within 1e-9")
    if (error <= SUM_ROUNDING).all():  # so that storing and loading changes no bit
        return weights
    return np.asarray(weights / sums[..., None])


def without_idle(weights: FloatArray, *parameters: FloatArray) -> tuple[FloatArray, ...]:
    """Parameters (row, component), those of weight 0 replaced by those of the heaviest."""
    heaviest = np.argmax(weights, axis=1)[:, None]
    return tuple(
        np.where(weights > 0, values, np.take_along_axis(values, heaviest, 1))
        for values in parameters
    )


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
        raise ArgumentError(
            f"weights must have shape {shape} or {shape[-1:]}, but have {array.shape}"
        )
    return np.broadcast_to(normalized("weights", array), shape)


def sample_arguments(size: int, seed: Seed) -> tuple[int, np.random.Generator]:
    """A checked sample size and the generator that a seed stands for."""
    size = operator.index(size)
    if size < 0:
        raise ArgumentError(f"size must be at least 0, but is {size}")
    if isinstance(seed, np.random.Generator):
        return size, seed
    if not isinstance(seed, int | np.integer):
        raise UnsupportedError(f"seed must be an int or a numpy.random.Generator, but is {seed!r}")
    return size, np.random.default_rng(seed)


def _probability(name: str, values: ArrayLike) -> FloatArray:
    array = np.asarray(values, dtype=np.float64)
    outside = ~((array >= 0.0) & (array <= 1.0))
    if outside.any():
        _reject(name, array, outside, "in [0, 1]")
    return array


def _reject(name: str, array: FloatArray, wrong: NDArray[np.bool_], allowed: str) -> None:
    index = tuple(int(i) for i in np.argwhere(wrong)[0])
    where = f"[{', '.join(map(str, index))}]" if index else ""
    raise ArgumentError(f"{name}{where} must be {allowed}, but is {float(array[index])!r}")
