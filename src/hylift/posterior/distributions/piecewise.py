"""Marginals of real variables with arbitrary densities on bounded intervals."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.polynomial import legendre
from numpy.typing import ArrayLike, NDArray
from scipy import special

from hylift.components.family import FloatArray, IntArray
from hylift.errors import ArgumentError
from hylift.numerics.quadrature import checked_edges, legendre_coefficients
from hylift.posterior.distributions.base import (
    FloatOrArray,
    normalized,
    read_only,
    real_array,
    unwrap,
)
from hylift.posterior.distributions.reals import (
    Density,
    described,
    log_densities_in_blocks,
)
from hylift.posterior.distributions.univariate import EPS, Intervals, find_modes, find_roots


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class PiecewiseDensity(Density):
    """A density on a bounded interval: a Legendre series on each of its panels.

    On panel p, with t running from -1 to 1, the density is ``Σ_d coefficients[p, d] P_d(t)``.
    Edges of shape ``(panel + 1,)`` are shared by the whole batch.
    """

    edges: FloatArray  # (*batch, panel + 1), increasing
    coefficients: FloatArray  # (*batch, panel, degree)

    _event_ndims: ClassVar[dict[str, int]] = {"edges": 1, "coefficients": 2}
    _positions: ClassVar[tuple[str, ...]] = ("edges",)

    def __post_init__(self) -> None:
        edges = checked_edges(real_array("edges", self.edges))
        coefficients = real_array("coefficients", self.coefficients)
        edges = _shared_edges("coefficients", edges, coefficients)
        masses = real_array("panel masses", np.diff(edges) * coefficients[..., 0], low=-1e-12)
        if normalized("panel masses", masses) is not masses:
            coefficients = coefficients / masses.sum(axis=-1)[..., None, None]
        object.__setattr__(self, "edges", read_only(edges))
        object.__setattr__(self, "coefficients", read_only(coefficients))

    @classmethod
    def from_gauss_legendre(cls, edges: ArrayLike, values: ArrayLike) -> "PiecewiseDensity":
        """The density that is proportional to values (*batch, panel, node) at the nodes.

        The nodes are those of `gauss_legendre_nodes`: as many in each panel as the last axis.
        """
        values = real_array("values", values, low=0.0)
        edges = _shared_edges("values", checked_edges(real_array("edges", edges)), values)
        peaks = values.max(axis=(-2, -1), keepdims=True, initial=0.0)
        if (peaks == 0.0).any():
            raise ArgumentError("values must not all be 0: there is no density to normalize")
        coefficients = legendre_coefficients(values / peaks)
        totals = (np.diff(edges) * coefficients[..., 0]).sum(axis=-1)
        return cls(edges, coefficients / totals[..., None, None])

    @property
    def low(self) -> FloatOrArray:
        """The left end of the interval."""
        return unwrap(self.edges[..., 0])

    @property
    def high(self) -> FloatOrArray:
        """The right end of the interval."""
        return unwrap(self.edges[..., -1])

    @property
    def mean(self) -> FloatOrArray:
        return self._by_row(PiecewiseDensity._means, width=self._width)

    @property
    def var(self) -> FloatOrArray:
        return self._by_row(PiecewiseDensity._vars, width=self._width)

    @property
    def mode(self) -> FloatOrArray:
        """The point of largest density."""
        num_panels, degree = self.coefficients.shape[-2:]
        return self._by_row(PiecewiseDensity._modes, width=num_panels * (4 * degree + 1))

    @property
    def entropy(self) -> FloatOrArray:
        """Differential entropy in nats, by quadrature."""
        num_panels, degree = self.coefficients.shape[-2:]
        nodes, weights = legendre.leggauss(max(2 * degree, 16))
        basis = legendre.legvander(nodes, degree - 1).T

        def compute(rows: PiecewiseDensity) -> FloatArray:
            terms = special.entr(np.maximum(rows.coefficients @ basis, 0.0)) @ weights
            return np.asarray((0.5 * np.diff(rows.edges) * terms).sum(axis=-1))

        return self._by_row(compute, width=num_panels * len(nodes))

    def __repr__(self) -> str:
        ends = self.edges[..., 0], self.edges[..., -1]
        return described(self, f"panels={self.coefficients.shape[-2]}", ends)

    @property
    def _width(self) -> int:
        num_panels, degree = self.coefficients.shape[-2:]
        return int(num_panels + 2 * degree)

    def _means(self) -> FloatArray:
        # About the likeliest panel: far from 0 widths of panels, and so masses, are rounded.
        masses = np.diff(self.edges) * self.coefficients[..., 0]
        likeliest = np.argmax(masses, axis=-1)[:, None]
        center = np.take_along_axis(self.edges, likeliest, axis=-1)[:, 0]
        return np.asarray(center + self._moments(center)[0])

    def _vars(self) -> FloatArray:
        return np.asarray(self._moments(self._means())[1])

    def _moments(self, center: FloatArray) -> tuple[FloatArray, FloatArray]:
        """First and second moment about a center (row,), exact for the series."""
        half = 0.5 * np.diff(self.edges)
        middle = 0.5 * (self.edges[:, 1:] + self.edges[:, :-1]) - center[:, None]
        c0, c1, c2 = (
            self.coefficients[..., d] if d < self.coefficients.shape[-1] else 0.0 for d in range(3)
        )
        # ∫ P_0 = 2, ∫ t P_1 = 2/3, and t² = (P_0 + 2 P_2) / 3.
        first = half * (2.0 * middle * c0 + 2.0 / 3.0 * half * c1)
        spread = half**2 * (2.0 / 3.0 * c0 + 4.0 / 15.0 * c2)
        second = half * (2.0 * middle**2 * c0 + 4.0 / 3.0 * middle * half * c1 + spread)
        return first.sum(axis=-1), second.sum(axis=-1)

    def _pdf(self, x: FloatArray) -> FloatArray:
        panel, _, t = self._locate(x)
        values = np.maximum(_series(self._gather(panel), t), 0.0)
        return np.where((x < self.edges[:, 0]) | (x > self.edges[:, -1]), 0.0, values)

    def _cdf(self, x: FloatArray) -> FloatArray:
        panel, half, t = self._locate(x)
        below = self._cumulative()[np.arange(len(self.edges)), panel]
        values = below + half * _series(_integrated(self._gather(panel)), t)
        values = np.where(x <= self.edges[:, 0], 0.0, np.clip(values, 0.0, 1.0))
        return np.where(x >= self.edges[:, -1], 1.0, values)

    def _quantile(self, p: FloatArray) -> FloatArray:
        rows = np.arange(len(self.edges))
        cumulative = self._cumulative()
        panel = (cumulative[:, 1:-1] < p[..., None]).sum(axis=-1)
        low, high = self.edges[rows, panel], self.edges[rows, panel + 1]
        half = 0.5 * (high - low)
        mass = p - cumulative[rows, panel]
        coefficients = self._gather(panel)
        t = _inverted(coefficients * half[..., None], mass)
        values = np.clip(0.5 * (low + high) + half * t, low, high)
        values = np.where(p == 0.0, self.edges[:, 0], values)
        return np.where(p == 1.0, self.edges[:, -1], values)

    def _draw(self, size: int, rng: np.random.Generator) -> FloatArray:
        draws = rng.random((size, len(self.edges)))
        return self._in_blocks(PiecewiseDensity._quantile, draws)

    def _modes(self) -> FloatArray:
        num_rows, _, degree = self.coefficients.shape
        t = -np.cos(np.linspace(0.0, np.pi, 4 * degree + 1))
        low, high = self.edges[:, :-1, None], self.edges[:, 1:, None]
        # The right end of a panel belongs to the next one, where the density may be another.
        inside = np.nextafter(high, low)
        grid = np.clip(0.5 * (low + high) + 0.5 * (high - low) * t, low, inside)
        values = self.coefficients @ legendre.legvander(t, degree - 1).T

        def derivatives(x: FloatArray, row: IntArray) -> tuple[FloatArray, FloatArray, FloatArray]:
            rows = self[row]
            panel, half, t = rows._locate(x[None])
            series = rows._gather(panel)[0]
            slopes = legendre.legder(series, axis=-1)
            value = _series(series, t[0])
            slope = _series(slopes, t[0]) / half[0] / value
            bend = _series(legendre.legder(slopes, axis=-1), t[0]) / half[0] ** 2 / value
            return np.log(value), slope, bend - slope**2

        with np.errstate(divide="ignore"):
            logs = np.log(np.maximum(values, 0.0)).reshape(num_rows, -1)
        return find_modes(grid.reshape(num_rows, -1), logs, derivatives)

    def _knots(self) -> FloatArray:
        return self.edges

    def _log_pdf(self, x: FloatArray) -> FloatArray:
        """-inf only beyond the panels and on those that are 0.

        A series may fall below 0 between its nodes, where the true density is small but positive.
        There, and where it is lost in rounding, its density counts as 4 EPS Σ |coefficients|, which
        is a small share of the panel's mean.
        """
        panel = self._locate(x)[0]
        least = 4.0 * EPS * np.abs(self._gather(panel)).sum(axis=-1)
        beyond = (x < self.edges[:, 0]) | (x > self.edges[:, -1])
        with np.errstate(divide="ignore"):
            return np.log(np.maximum(self._pdf(x), np.where(beyond, 0.0, least)))

    def _log_densities(self, spans: Intervals) -> FloatArray:
        return log_densities_in_blocks(self, spans)

    def _cumulative(self) -> FloatArray:
        """The probability left of each edge, (row, panel + 1)."""
        sums = np.cumsum(np.diff(self.edges) * self.coefficients[..., 0], axis=-1)
        return np.concatenate([np.zeros((len(sums), 1)), sums], axis=-1)

    def _locate(self, x: FloatArray) -> tuple[IntArray, FloatArray, FloatArray]:
        """Panel, half of its width and local coordinate of each x (point, 1 or row)."""
        rows = np.arange(len(self.edges))
        panel = (x[..., None] >= self.edges[:, 1:-1]).sum(axis=-1)
        low, high = self.edges[rows, panel], self.edges[rows, panel + 1]
        half = 0.5 * (high - low)
        inside = np.clip(x, self.edges[:, 0], self.edges[:, -1])
        return panel, half, np.clip((inside - 0.5 * (low + high)) / half, -1.0, 1.0)

    def _gather(self, panel: IntArray) -> FloatArray:
        """Coefficients of a panel (point, row) in each row: (point, row, degree)."""
        return self.coefficients[np.arange(len(self.edges)), panel]


def _shared_edges(name: str, edges: FloatArray, panels: FloatArray) -> FloatArray:
    """Edges (*batch, panel + 1) that fit an array (*batch, panel, degree)."""
    num_panels = edges.shape[-1] - 1
    if panels.ndim < 2 or panels.shape[-2] != num_panels or not panels.shape[-1]:
        raise ArgumentError(
            f"{name} must have shape (*batch, {num_panels}, degree) to fit the edges, "
            f"but have shape {panels.shape}"
        )
    shape = (*panels.shape[:-2], num_panels + 1)
    if edges.shape not in (shape, shape[-1:]):
        raise ArgumentError(
            f"edges must have shape {shape} or {shape[-1:]}, but have {edges.shape}"
        )
    return np.broadcast_to(edges, shape)


def _series(coefficients: NDArray[np.floating], t: FloatArray) -> FloatArray:
    """The Legendre series with coefficients (..., degree) at t (...)."""
    return np.asarray(legendre.legval(t, np.moveaxis(coefficients, -1, 0), tensor=False))


def _integrated(coefficients: FloatArray) -> FloatArray:
    """Coefficients of the integral from -1."""
    return np.asarray(legendre.legint(coefficients, lbnd=-1, axis=-1))


def _inverted(coefficients: FloatArray, mass: FloatArray) -> FloatArray:
    """The t (...) up to which the series with coefficients (..., degree) has integral `mass`."""
    series = coefficients.reshape(-1, coefficients.shape[-1])
    integral = _integrated(series)
    target = mass.ravel()
    noise = 2.0 * EPS * np.abs(integral).sum(axis=-1)

    def evaluate(t: FloatArray, which: IntArray) -> tuple[FloatArray, FloatArray]:
        residual = _series(integral[which], t) - target[which]
        residual[np.abs(residual) <= noise[which]] = 0.0
        return residual, -residual / np.maximum(_series(series[which], t), 0.0)

    ends = np.ones(len(target))
    with np.errstate(all="ignore"):
        start = np.nan_to_num(target / series[:, 0] - 1.0, nan=0.0)
        return find_roots(evaluate, -ends, ends, start).reshape(mass.shape)
