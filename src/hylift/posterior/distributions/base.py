"""Batches of distributions, evaluation in blocks, argument checks."""

import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar, Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hylift.components.family import FloatArray
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
    @abstractmethod
    def num_states(self) -> int:
        """Number of states; 0 of a real variable."""

    @property
    @abstractmethod
    def mode_number(self) -> Any:
        """The modes as numbers: reals, or indices of states."""

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
        """A copy with transformed arrays."""
        return self._with(
            **{
                name: transform(getattr(self, name), event_ndim)
                for name, event_ndim in self._event_ndims.items()
            }
        )

    def _with(self, **arrays: FloatArray) -> Self:
        """A copy with other arrays, which must be valid: they are not checked."""
        copy = object.__new__(type(self))
        for name in type(self).__match_args__:  # type: ignore[attr-defined]
            value = read_only(arrays[name]) if name in arrays else getattr(self, name)
            object.__setattr__(copy, name, value)
        return copy

    def _by_row(self, compute: Callable[[Self], FloatArray], width: int) -> FloatOrArray:
        """A value per row, computed on blocks of rows that need `width` elements each."""
        flat = self._flat()
        num_rows = flat.batch_shape[0]
        values = np.empty(num_rows)
        for _, rows in blocks(1, num_rows, width):
            values[rows] = compute(flat[rows])
        return unwrap(values.reshape(self.batch_shape))


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
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise ArgumentError(
            f"{name} must be a number or an array of numbers, not {values!r}"
        ) from None
    if array.size == 0:
        return array
    smallest, largest = array.min(), array.max()  # NaN if any element is
    if np.isnan(smallest):
        reject(name, array, np.isnan(array), "not NaN")
    if finite and not (np.isfinite(smallest) and np.isfinite(largest)):
        reject(name, array, ~np.isfinite(array), "finite")
    if smallest < low:
        reject(name, array, array < low, f"at least {low:g}")
    return array


def normalized(name: str, weights: FloatArray) -> FloatArray:
    """Weights that sum to 1 along the last axis, after checking that they almost do."""
    sums = weights.sum(axis=-1)
    error = np.abs(sums - 1.0)
    if (error > SUM_TOLERANCE).any():
        reject(f"the sum of {name}", np.asarray(sums), error > SUM_TOLERANCE, "1 within 1e-9")
    if (error <= SUM_ROUNDING).all():  # so that storing and loading changes no bit
        return weights
    return np.asarray(weights / sums[..., None])


def checked_components(weights: ArrayLike, **parameters: FloatArray) -> list[FloatArray]:
    """Weights and parameters (*batch, component) of a mixture; the weights may be shared."""
    (first, array), *others = parameters.items()
    shape = array.shape
    if not shape or not shape[-1]:
        raise ArgumentError(f"{first} must have shape (*batch, component), not {shape}")
    for name, other in others:
        if other.shape != shape:
            raise ArgumentError(
                f"{name} must have the shape of {first}, {shape}, not {other.shape}"
            )
    given = real_array("weights", weights, low=0.0)
    if given.shape not in (shape, shape[-1:]):
        raise ArgumentError(f"weights must have shape {shape} or {shape[-1:]}, not {given.shape}")
    return [np.broadcast_to(normalized("weights", given), shape), *parameters.values()]


def log_sum_exp(logs: FloatArray) -> FloatArray:
    """log Σ exp along the last axis, also where all or some terms are infinite."""
    if logs.shape[-1] == 1:
        return np.asarray(logs[..., 0])
    top = logs.max(axis=-1)
    shift = np.where(np.isfinite(top), top, 0.0)
    with np.errstate(over="ignore", divide="ignore"):
        return np.asarray(np.log(np.exp(logs - shift[..., None]).sum(axis=-1)) + shift)


def sample_arguments(size: int, seed: Seed) -> tuple[int, np.random.Generator]:
    """A checked sample size and the random generator of a seed."""
    size = operator.index(size)
    if size < 0:
        raise ArgumentError(f"size must be at least 0, but is {size}")
    if isinstance(seed, np.random.Generator):
        return size, seed
    if not isinstance(seed, int | np.integer):
        raise UnsupportedError(f"seed must be an int or a numpy.random.Generator, but is {seed!r}")
    return size, np.random.default_rng(seed)


def probability(name: str, values: ArrayLike) -> FloatArray:
    array = np.asarray(values, dtype=np.float64)
    outside = ~((array >= 0.0) & (array <= 1.0))
    if outside.any():
        reject(name, array, outside, "in [0, 1]")
    return array


def reject(name: str, array: FloatArray, wrong: NDArray[np.bool_], allowed: str) -> None:
    index = tuple(int(i) for i in np.argwhere(wrong)[0])
    where = f"[{', '.join(map(str, index))}]" if index else ""
    raise ArgumentError(f"{name}{where} must be {allowed}, but is {float(array[index])!r}")
