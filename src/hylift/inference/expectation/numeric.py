"""Sites without closed form: functions of the user's own, and bounds of reals, by quadrature."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hylift.graph import FactorGroup
from hylift.inference.expectation.joint import FloatArray, Ids
from hylift.numerics.quadrature import legendre_rule

BLOCK = 1 << 20
"""Values of functions that are computed at a time."""
MOST_COORDINATES = 3
SPACING = {1: 0.25, 2: 0.55, 3: 0.8}
"""Distance of nodes, in standard deviations, by number of coordinates."""
REACH = 7.0
"""Of nodes, in standard deviations."""
LEGENDRE = {1: 64, 2: 32, 3: 16}
"""Nodes between bounds, by number of coordinates."""
NEGLIGIBLE = 40.0
"""A log-density lower than its largest value by this much does not count."""
LOG_TWO_PI = float(np.log(2 * np.pi))

States = tuple[FloatArray, FloatArray, FloatArray]
"""Log-weights (site, joint state), means (…, coordinate) and covariances (…, coordinate,
coordinate) of a tilted distribution, relative to the means of the Gaussian."""


@dataclass(frozen=True, slots=True, eq=False)
class Current:
    """The Gaussian and site of some sites of one shape."""

    mean: FloatArray  # (site, coordinate)
    covariance: FloatArray  # (site, coordinate, coordinate)
    precision: FloatArray  # (site, coordinate, coordinate)
    linear: FloatArray  # (site, coordinate)
    reals: FloatArray  # (site, real slot): means

    @property
    def pull(self) -> FloatArray:
        """(site, coordinate): the linear part of the site, relative to the mean."""
        return self.linear - np.einsum("fij,fj->fi", self.precision, self.mean)

    def take(self, some: slice) -> Current:
        return Current(
            self.mean[some], self.covariance[some], self.precision[some], self.linear[some],
            self.reals[some],
        )  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class FunctionSites:
    """Functions of one group, whose sites have as many coordinates."""

    group: FactorGroup
    sizes: tuple[int, ...]
    """States of its discrete slots."""
    embedding: FloatArray | None  # (site, real slot, coordinate): a change of coordinates in reals
    lower: FloatArray  # (site, coordinate): bounds
    upper: FloatArray
    bounds: tuple[FloatArray, FloatArray]  # (site, real slot): of reals
    rough: tuple[FloatArray, FloatArray]  # (site, coordinate): center and scale

    def start(self, is_weak: NDArray[np.bool_]) -> tuple[FloatArray, FloatArray]:
        """Natural parameters to begin with: of uniform distributions between bounds; and, of weak
        sites (site,), which nothing else confines, of the rough moments."""
        (center, scale), width = self.rough, self.upper - self.lower
        is_closed = np.isfinite(width)
        with np.errstate(invalid="ignore"):
            center = np.where(is_closed, self.lower / 2 + self.upper / 2, center)
        own = np.where(is_closed, 12 / width**2, np.where(is_weak[:, None], scale**-2, 0.0))
        return own[:, :, None] * np.eye(own.shape[1]), own * center

    @property
    def is_bounded(self) -> bool:
        return bool((np.isfinite(self.lower) | np.isfinite(self.upper)).any())

    def tilted(self, some: Ids, current: Current) -> States:
        """Some of the sites, with the current Gaussian of each."""
        dim, num_joint = current.mean.shape[1], math.prod(self.sizes)
        num_nodes = LEGENDRE[dim] ** dim if self.is_bounded else len(normal_nodes(dim)[0])
        step = max(1, BLOCK // (num_joint * num_nodes))
        parts = [
            self._tilted(some[at : at + step], current.take(slice(at, at + step)))
            for at in range(0, len(some), step)
        ]
        logs, means, spreads = (np.concatenate(each) for each in zip(*parts, strict=True))
        return logs, means, spreads

    def _tilted(self, some: Ids, current: Current) -> States:
        return matched(*self._at_nodes(some, current))

    def _at_nodes(self, some: Ids, current: Current) -> tuple[FloatArray, FloatArray]:
        """Log-weights (site, joint state, node), and steps (site, node, coordinate) from means."""
        root = np.asarray(np.linalg.cholesky(current.covariance), dtype=np.float64)
        if self.is_bounded:
            low, high = self.lower[some] - current.mean, self.upper[some] - current.mean
            away, logs = _between(root, low, high)
        else:
            nodes, logs = normal_nodes(current.mean.shape[1])
            away = np.einsum("fij,kj->fki", root, nodes)
        site = np.einsum("fi,fki->fk", current.pull, away)
        site -= 0.5 * np.einsum("fki,fij,fkj->fk", away, current.precision, away, optimize=True)
        return self.log_values(some, current.reals, away) + (logs - site)[:, None], away

    def densities(
        self, some: Ids, current: Current, log_states: FloatArray, coordinate: int
    ) -> tuple[FloatArray, FloatArray]:
        """The ends (site, 2) of a coordinate with bounds, and its tilted density (site, node) at
        Gauss-Legendre nodes; log_states: (site, joint state), weights of joint states."""
        logs, away = self._at_nodes(some, current)
        logs = np.logaddexp.reduce(logs + log_states[:, :, None], axis=1)
        dim = away.shape[2]
        nodes, weights = legendre_rule(LEGENDRE[dim])
        mass = np.exp(logs - logs.max(axis=1, keepdims=True)).reshape(-1, *[len(nodes)] * dim)
        mass = mass.sum(axis=tuple(1 + i for i in range(dim) if i != coordinate))
        low, high = away[:, 0, coordinate], away[:, -1, coordinate]
        middle, half = 0.5 * (low + high), (high - low) / (nodes[-1] - nodes[0])
        ends = middle[:, None] + half[:, None] * np.array([-1.0, 1.0])
        return ends + current.mean[:, [coordinate]], mass / weights

    def log_values(self, some: Ids, reals: FloatArray, away: FloatArray) -> FloatArray:
        """(site, joint state, node): values at steps (site, node, coordinate) from these reals,
        within their bounds."""
        if self.embedding is not None:
            away = np.einsum("fia,fka->fki", self.embedding[some], away)
        x = np.clip(reals[:, None] + away, self.bounds[0][some, None], self.bounds[1][some, None])
        ones = (1,) * len(self.sizes)
        grid = np.ix_(*(np.arange(size) for size in self.sizes)) if ones else ()
        slots: list[NDArray[Any]] = [states[None, ..., None] for states in grid]
        slots += [x[:, :, i].reshape(len(x), *ones, -1) for i in range(x.shape[2])]
        row = self.group.row[some].reshape(-1, *ones, 1)
        values = self.group.potential.log_value(row, slots)
        values = np.broadcast_to(values, (len(x), *self.sizes, x.shape[1]))
        values = values.reshape(len(x), -1, x.shape[1])
        power = self.group.multiplicity[some][:, None, None]
        return values if (power == 1).all() else np.where(values > -np.inf, values * power, values)


def _between(root: FloatArray, low: FloatArray, high: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Steps (site, node, coordinate) from means of Gaussians with these Cholesky factors, within
    bounds (site, coordinate) of each coordinate, and logarithms of their weights (site, node)."""
    dim = root.shape[1]
    reach = REACH * np.sqrt((root**2).sum(axis=2))
    middle = np.clip(0.0, low, high)
    begin, end = np.maximum(low, middle - reach), np.minimum(high, middle + reach)
    nodes, weights = legendre_rule(LEGENDRE[dim])
    line = 0.5 * (begin + end)[:, :, None] + 0.5 * (end - begin)[:, :, None] * nodes
    place = np.stack(np.meshgrid(*[np.arange(len(nodes))] * dim, indexing="ij")).reshape(dim, -1)
    away = np.stack([line[:, i, place[i]] for i in range(dim)], axis=-1)
    scaled = np.linalg.solve(root, np.swapaxes(away, 1, 2))
    volume = np.log(0.5 * (end - begin)).sum(axis=1) - 0.5 * dim * LOG_TWO_PI
    volume -= np.log(np.diagonal(root, axis1=1, axis2=2)).sum(axis=1)
    logs = np.log(weights)[place].sum(axis=0) - 0.5 * (scaled**2).sum(axis=1)
    return away, logs + volume[:, None]


def matched(logs: FloatArray, away: FloatArray) -> States:
    """Log-sums, means and covariances of nodes (site, node, coordinate) with log-weights (site,
    joint state, node)."""
    top = logs.max(axis=2, keepdims=True)
    top = np.where(np.isfinite(top), top, 0.0)
    weight = np.exp(logs - top)
    total = weight.sum(axis=2)
    with np.errstate(divide="ignore"):
        log_total = top[:, :, 0] + np.log(total)
    weight /= np.where(total > 0, total, 1.0)[:, :, None]
    means = np.einsum("fsk,fki->fsi", weight, away)
    square = np.einsum("fsk,fki,fkj->fsij", weight, away, away, optimize=True)
    return log_total, means, square - means[:, :, :, None] * means[:, :, None, :]


@lru_cache
def normal_nodes(dim: int) -> tuple[FloatArray, FloatArray]:
    """Nodes (node, coordinate) of a lattice, and logarithms of their weights under a standard
    normal. Sums over a lattice of smooth functions that vanish far out converge exponentially."""
    spacing = SPACING[dim]
    line = spacing * np.arange(-int(REACH / spacing), int(REACH / spacing) + 1)
    nodes = np.stack(np.meshgrid(*[line] * dim, indexing="ij"), axis=-1).reshape(-1, dim)
    nodes = nodes[(nodes**2).sum(axis=1) <= REACH**2]
    logs = -0.5 * (nodes**2).sum(axis=1) + dim * (np.log(spacing) - 0.5 * LOG_TWO_PI)
    return nodes, logs


@dataclass(frozen=True, slots=True, eq=False)
class BoundSites:
    """Bounds of single reals."""

    lower: FloatArray  # (site,)
    upper: FloatArray

    def start(self, precision: FloatArray, linear: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Natural parameters to begin with: of the uniform distribution between two bounds, of the
        exponential one behind one, where the rest (site,) has no precision of its own."""
        width = self.upper - self.lower
        is_closed = np.isfinite(width)
        with np.errstate(invalid="ignore"):
            middle = np.where(is_closed, self.lower / 2 + self.upper / 2, 0.0)
            rate = np.where(linear != 0, np.abs(linear), 1.0)
            behind = np.where(np.isfinite(self.lower), self.lower + 1 / rate, self.upper - 1 / rate)
        flat = np.where(precision > 0, 0.0, rate**2)
        own = np.where(is_closed, 12 / width**2, flat)
        center = np.where(is_closed, middle, np.where(np.isfinite(behind), behind, 0.0))
        return own, own * center

    def tilted(self, some: Ids, current: Current) -> States:
        """Some of the sites: exp(-½ J y² + l y) between the bounds, by Gauss-Legendre nodes where
        it is not negligible."""
        own, mean = current.covariance[:, 0, 0], current.mean[:, 0]
        precision, pull = 1.0 / own - current.precision[:, 0, 0], -current.pull[:, 0]
        low, high = self.lower[some] - mean, self.upper[some] - mean
        begin, end = _window(precision, pull, low, high)
        nodes, weights = legendre_rule(LEGENDRE[1])
        half = 0.5 * (end - begin)
        y = 0.5 * (begin + end)[:, None] + half[:, None] * nodes
        logs = -0.5 * precision[:, None] * y**2 + pull[:, None] * y
        with np.errstate(divide="ignore"):
            logs += np.log(half[:, None] * weights) - 0.5 * (LOG_TWO_PI + np.log(own))[:, None]
        logs[~np.isfinite(half)] = -np.inf
        return matched(logs[:, None], np.where(np.isfinite(y), y, 0.0)[:, :, None])


def _window(
    precision: FloatArray, pull: FloatArray, low: FloatArray, high: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Where exp(-½ J y² + l y) is not negligible between bounds; infinite where it has no limit.

    From its largest value, with the slope g there, it has lost e^-40 after
    80 / (|g| + sqrt(g² + 80 J)).
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        top = np.where(precision > 0, pull / precision, np.where(pull > 0, np.inf, -np.inf))
        top = np.clip(top, low, high)
        slope = np.abs(pull - precision * top)
        reach = 2 * NEGLIGIBLE / (slope + np.sqrt(slope**2 + 2 * NEGLIGIBLE * precision))
        reach = np.where(precision > 0, reach, np.inf)
        begin, end = np.maximum(low, top - reach), np.minimum(high, top + reach)
    return np.where(np.isnan(begin), -np.inf, begin), np.where(np.isnan(end), np.inf, end)
