"""Sites without closed form: functions of the user's own, and bounds of reals, by quadrature."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hylift.graph import FactorGroup
from hylift.inference.expectation.joint import FloatArray, Ids
from hylift.inference.expectation.lines import DEGREE, PANELS, moments_along
from hylift.inference.expectation.rules import (
    LEGENDRE,
    REACH,
    SPACING,
    Rule,
    every_other,
    lattice_nodes,
    legendre_nodes,
)

BLOCK = 1 << 20
"""Values of functions that are computed at a time."""
MOST_COORDINATES = 3
FAR_REACH = 16.0
"""Of lines: what is behind a step may be narrower than its tail."""
MOST_ZOOMS = 30
"""Times that nodes are placed anew where a density is narrow."""
ROUGH = {1: 1e-7, 2: 1e-5, 3: 1e-4}
"""Relative change of an integral with every other node left out, by number of coordinates, from
which on a density is integrated along lines."""
RIDGE = 4.0
"""Nodes, in effect, across a density between bounds below which it is integrated along lines."""
OUTER = {1: 0.25, 2: 0.8}
"""Distance of such lines, in standard deviations, by the number of other coordinates."""
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
    copies: FloatArray  # (site,)

    @property
    def pull(self) -> FloatArray:
        """(site, coordinate): the linear part of the site, relative to the mean."""
        return self.linear - np.einsum("fij,fj->fi", self.precision, self.mean)

    def take(self, some: slice | Ids) -> Current:
        return Current(
            self.mean[some], self.covariance[some], self.precision[some], self.linear[some],
            self.reals[some], self.copies[some],
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
    def kind(self) -> NDArray[Any]:
        """(site,): equal for sites of the same function and power."""
        return np.unique(
            np.stack([self.group.row, self.group.multiplicity], axis=1), axis=0, return_inverse=True
        )[1].reshape(-1)

    @property
    def is_bounded(self) -> bool:
        return bool((np.isfinite(self.lower) | np.isfinite(self.upper)).any())

    def tilted(self, some: Ids, current: Current) -> States:
        """Some of the sites, with the current Gaussian of each."""
        dim, num_joint = current.mean.shape[1], math.prod(self.sizes)
        step = max(1, BLOCK // (num_joint * len(self._rule(dim).nodes)))
        parts = [
            self._tilted(some[at : at + step], current.take(slice(at, at + step)))
            for at in range(0, len(some), step)
        ]
        logs, means, spreads = (np.concatenate(each) for each in zip(*parts, strict=True))
        return logs, means, spreads

    def _rule(self, dim: int) -> Rule:
        return legendre_nodes(dim) if self.is_bounded else lattice_nodes(dim)

    def _tilted(self, some: Ids, current: Current) -> States:
        """Moments at nodes, then of steps = shift + spread · node."""
        dim, rule = current.mean.shape[1], self._rule(current.mean.shape[1])
        monomials = rule.monomials
        shift, spread = self._placed(some, current)
        logs = self._at_nodes(some, current, shift, spread, rule)
        for _ in range(0 if self.is_bounded else MOST_ZOOMS):
            narrow = _narrow(logs, monomials, shift, spread)
            if not len(narrow):
                break
            logs[narrow] = self._at_nodes(
                some[narrow], current.take(narrow), shift[narrow], spread[narrow], rule
            )
        log_total, moments = matched(logs, monomials)
        rough = self._rough(logs, rule)
        if len(rough) and not self.is_bounded:
            log_total[rough], moments[rough], still = self._at_finer_nodes(
                some[rough], current.take(rough), shift[rough], spread[rough]
            )
            rough = rough[still]
        if len(rough):
            log_total[rough], moments[rough] = self._along_lines(
                some[rough], current.take(rough), shift[rough], spread[rough]
            )
        mean, square = moments[..., :dim], moments[..., dim:].reshape(*moments.shape[:2], dim, dim)
        square = square - mean[..., :, None] * mean[..., None, :]
        wide = spread[:, None]
        means = shift[:, None] + (wide @ mean[..., None])[..., 0]
        return log_total, means, wide @ square @ np.swapaxes(wide, 2, 3)

    def _at_finer_nodes(
        self, some: Ids, current: Current, shift: FloatArray, spread: FloatArray
    ) -> tuple[FloatArray, FloatArray, Ids]:
        """Log-sums and means of monomials, as `matched`, by nodes at half the distance; and the
        sites for which these are not enough."""
        dim = current.mean.shape[1]
        rule = lattice_nodes(dim, SPACING[dim] / 2)
        block, parts = max(1, BLOCK // (math.prod(self.sizes) * len(rule.nodes))), []
        for at in range(0, len(some), block):
            own = slice(at, at + block)
            logs = self._at_nodes(some[own], current.take(own), shift[own], spread[own], rule)
            parts.append((*matched(logs, rule.monomials), at + self._rough(logs, rule)))
        log_total, moments, rough = (np.concatenate(each) for each in zip(*parts, strict=True))
        return log_total, moments, rough

    @property
    def _inner(self) -> int:
        """The coordinate that lines go along: one without bounds, if there is any."""
        free = np.flatnonzero((np.isinf(self.lower) & np.isinf(self.upper)).all(axis=0))
        return int(free[0]) if len(free) else self.lower.shape[1] - 1

    def _rough(self, logs: FloatArray, rule: Rule) -> Ids:
        """Sites whose densities (site, joint state, node) have steps, or ridges between nodes."""
        dim = rule.nodes.shape[1]
        top = logs.max(axis=(1, 2), keepdims=True)
        weight = np.exp(logs - np.where(np.isfinite(top), top, 0.0)).sum(axis=1)
        total = weight.sum(axis=1)
        if not self.is_bounded:
            even = (np.rint(rule.nodes / rule.spacing).astype(np.int64) % 2 == 0).all(axis=1)
            coarse = 2**dim * weight[:, even].sum(axis=1)
            return np.flatnonzero(~(np.abs(coarse - total) <= ROUGH[dim] * total))
        if dim == 1:
            coarse = weight[:, ::2] @ every_other(LEGENDRE[1])
            return np.flatnonzero(~(np.abs(coarse - total) <= ROUGH[1] * total))
        grid = np.moveaxis(weight.reshape(-1, *[LEGENDRE[dim]] * dim), 1 + self._inner, -1)
        mass = grid.sum(axis=-1)
        nodes = mass**2 / np.maximum((grid**2).sum(axis=-1), 1e-300)
        is_ridge = (nodes < RIDGE) & (mass > 1e-6 * total.reshape(-1, *[1] * (dim - 1)))
        return np.flatnonzero(is_ridge.any(axis=tuple(range(1, dim))) | ~(total > 0))

    def _along_lines(
        self, some: Ids, current: Current, shift: FloatArray, spread: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Log-sums (site, joint state) and means of monomials, as `matched`, of densities that are
        integrated along one coordinate by panels, and over the others at nodes."""
        dim, inner, num_joint = shift.shape[1], self._inner, math.prod(self.sizes)
        outer = [i for i in range(dim) if i != inner]
        rule, reach = Rule(np.zeros((1, 0)), np.zeros(1)), 1.0 if self.is_bounded else FAR_REACH
        if outer and self.is_bounded:
            rule = legendre_nodes(dim - 1, LEGENDRE[dim])
        elif outer:
            rule = lattice_nodes(dim - 1, OUTER[dim - 1])
        lines = len(rule.nodes)
        block = max(1, BLOCK // (2 * PANELS * DEGREE * lines * num_joint))
        parts = []
        for at in range(0, len(some), block):
            own = slice(at, at + block)
            site = np.repeat(np.arange(len(some))[own], lines)

            def values(line: Ids, x: FloatArray, site: Ids = site) -> FloatArray:
                u = np.empty((len(line), dim, x.shape[1]))
                u[:, inner] = x
                u[:, outer] = rule.nodes[line % lines][:, :, None]
                at = site[line]
                steps = shift[at][..., None] + spread[at] @ u
                return self._log_density(some[at], current.take(at), steps)

            logs, along = moments_along(values, len(site), -reach, reach)
            logs = logs.reshape(-1, lines, num_joint) + rule.log_weights[:, None]
            along = along.reshape(-1, lines, num_joint, 2)
            x = np.empty((*logs.shape, dim))
            x[..., inner] = along[..., 0]
            x[..., outer] = rule.nodes[:, None]
            square = x[..., :, None] * x[..., None, :]
            square[..., inner, inner] = along[..., 1]
            monomials = np.concatenate([x, square.reshape(*x.shape[:-1], -1)], axis=-1)
            top = logs.max(axis=1, keepdims=True)
            top = np.where(np.isfinite(top), top, 0.0)
            weight = np.exp(logs - top)
            total = weight.sum(axis=1)
            mean = np.einsum("slj,sljm->sjm", weight, monomials)
            with np.errstate(divide="ignore"):
                log_total = top[:, 0] + np.log(total)
            parts.append((log_total, mean / np.where(total > 0, total, 1.0)[..., None]))
        log_total, moments = (np.concatenate(each) for each in zip(*parts, strict=True))
        log_total += np.linalg.slogdet(spread)[1][:, None]
        return log_total, moments

    def _log_density(self, some: Ids, current: Current, steps: FloatArray) -> FloatArray:
        """(site, joint state, node): with the function in place of the site, at steps (site,
        coordinate, node) from the means."""
        curved = np.linalg.inv(current.covariance) - current.precision
        logs = -(steps * (0.5 * curved @ steps + current.pull[..., None])).sum(axis=1)
        logs -= (
            0.5 * (np.linalg.slogdet(current.covariance)[1] + steps.shape[1] * LOG_TWO_PI)[:, None]
        )
        return self.at_steps(some, current, steps) + logs[:, None]

    def _placed(self, some: Ids, current: Current) -> tuple[FloatArray, FloatArray]:
        """Shift (site, coordinate) and spread (site, coordinate, coordinate) that make steps from
        the means of the nodes of the rule: within bounds, or in standard deviations."""
        if not self.is_bounded:
            root = np.asarray(np.linalg.cholesky(current.covariance), dtype=np.float64)
            return np.zeros(current.mean.shape), root
        low, high = self.lower[some] - current.mean, self.upper[some] - current.mean
        reach = REACH * np.sqrt(np.diagonal(current.covariance, axis1=1, axis2=2))
        middle = np.clip(0.0, low, high)
        begin, end = np.maximum(low, middle - reach), np.minimum(high, middle + reach)
        return 0.5 * (begin + end), 0.5 * (end - begin)[:, :, None] * np.eye(low.shape[1])

    def _at_nodes(
        self, some: Ids, current: Current, shift: FloatArray, spread: FloatArray, rule: Rule
    ) -> FloatArray:
        """(site, joint state, node): log-weights of nodes that make these steps."""
        dim, pull = current.mean.shape[1], current.pull[..., None]
        curved = np.linalg.inv(current.covariance) - current.precision
        size = np.linalg.slogdet(spread)[1] - 0.5 * np.linalg.slogdet(current.covariance)[1]
        # -½ yᵀ M y - lᵀ y at y = shift + spread · node, in monomials of the node
        turned, at = np.swapaxes(spread, 1, 2), curved @ shift[..., None]
        constant = size - 0.5 * dim * LOG_TWO_PI
        constant -= (shift * (0.5 * at + pull)[..., 0]).sum(axis=1)
        slope = -(turned @ (at + pull))[..., 0]
        square = -0.5 * (turned @ curved @ spread).reshape(len(some), -1)
        logs = np.concatenate([slope, square], axis=1) @ rule.monomials.T
        logs += rule.log_weights + constant[:, None]
        values = self.at_steps(some, current, shift[..., None] + spread @ rule.nodes.T)
        return values + logs[:, None]

    def at_steps(self, some: Ids, current: Current, away: FloatArray) -> FloatArray:
        """(site, joint state, node): values of a copy at steps (site, coordinate, node) from the
        means."""
        change = away if self.embedding is None else self.embedding[some] @ away
        values = self.log_values(some, current.reals[:, :, None] + change)
        return values / current.copies[:, None, None]

    def log_marginals(
        self, some: Ids, current: Current, log_states: FloatArray, coordinate: int, x: FloatArray
    ) -> FloatArray:
        """(site, node): tilted log-densities of a coordinate, of at most two, at steps (site, node)
        from its mean; log_states: (site, joint state), weights of joint states."""
        if x.size and current.mean.shape[1] == 1:
            logs = self._log_density(some, current, x[:, None])
            return np.asarray(np.logaddexp.reduce(logs + log_states[:, :, None], axis=1))
        inner, count = 1 - coordinate, x.shape[1]
        shift, spread = self._placed(some, current)
        middle, half = shift[:, inner], spread[:, inner, inner]

        def values(line: Ids, u: FloatArray) -> FloatArray:
            site = line // count
            steps = np.empty((len(line), 2, u.shape[1]))
            steps[:, inner] = middle[site][:, None] + half[site][:, None] * u
            steps[:, coordinate] = x.ravel()[line][:, None]
            logs = self._log_density(some[site], current.take(site), steps)
            return np.logaddexp.reduce(logs + log_states[site][:, :, None], axis=1)[:, None]

        return moments_along(values, x.size, -1.0, 1.0)[0].reshape(x.shape)

    def log_values(self, some: Ids, x: FloatArray) -> FloatArray:
        """(site, joint state, node): values at reals (site, real slot, node), moved within their
        bounds."""
        if np.isfinite(self.bounds[0]).any() or np.isfinite(self.bounds[1]).any():
            x = np.clip(x, self.bounds[0][some, :, None], self.bounds[1][some, :, None])
        ones = (1,) * len(self.sizes)
        grid = np.ix_(*(np.arange(size) for size in self.sizes)) if ones else ()
        slots: list[NDArray[Any]] = [states[None, ..., None] for states in grid]
        slots += [x[:, i].reshape(len(x), *ones, -1) for i in range(x.shape[1])]
        row = self.group.row[some].reshape(-1, *ones, 1)
        with np.errstate(all="ignore"):
            values = self.group.potential.log_value(row, slots)
        values = np.broadcast_to(values, (len(x), *self.sizes, x.shape[2]))
        values = values.reshape(len(x), -1, x.shape[2])
        power = self.group.multiplicity[some][:, None, None]
        return values if (power == 1).all() else np.where(values > -np.inf, values * power, values)


def _narrow(logs: FloatArray, monomials: FloatArray, shift: FloatArray, spread: FloatArray) -> Ids:
    """Sites whose densities are too narrow for the spacing of nodes, with nodes placed anew."""
    dim = shift.shape[1]
    _, moments = matched(np.logaddexp.reduce(logs, axis=1)[:, None], monomials)
    mean, square = moments[:, 0, :dim], moments[:, 0, dim:].reshape(-1, dim, dim)
    size, turned = np.linalg.eigh(square - mean[:, :, None] * mean[:, None, :])
    narrow = np.flatnonzero(size[:, 0] < 0.8 * SPACING[dim] ** 2)
    root = np.sqrt(np.maximum(size[narrow], 0.25 * SPACING[dim] ** 2))
    shift[narrow] += (spread[narrow] @ mean[narrow][..., None])[..., 0]
    spread[narrow] = spread[narrow] @ (turned[narrow] * root[:, None, :])
    return narrow


def matched(logs: FloatArray, monomials: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Log-sums (site, joint state) of log-weights (site, joint state, node), and the means of
    monomials (node, monomial)."""
    top = logs.max(axis=2, keepdims=True)
    top = np.where(np.isfinite(top), top, 0.0)
    weight = np.exp(logs - top)
    total = weight.sum(axis=2)
    with np.errstate(divide="ignore"):
        log_total = top[:, :, 0] + np.log(total)
    return log_total, (weight @ monomials) / np.where(total > 0, total, 1.0)[:, :, None]


@dataclass(frozen=True, slots=True, eq=False)
class BoundSites:
    """Bounds of single reals."""

    lower: FloatArray  # (site,)
    upper: FloatArray

    @property
    def kind(self) -> NDArray[Any]:
        """(site,): the classes of reals tell their bounds apart."""
        return np.zeros(len(self.lower), dtype=np.int64)

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
        rule, half = legendre_nodes(1), 0.5 * (end - begin)
        is_open = np.isfinite(half)
        half, shift = np.where(is_open, half, 1.0), np.where(is_open, 0.5 * (begin + end), 0.0)
        y = shift[:, None] + half[:, None] * rule.nodes[:, 0]
        logs = -0.5 * precision[:, None] * y**2 + pull[:, None] * y + rule.log_weights
        logs += (np.log(half) - 0.5 * (LOG_TWO_PI + np.log(own)))[:, None]
        logs[~is_open] = -np.inf
        log_total, moments = matched(logs[:, None], rule.monomials)
        mean = moments[..., :1]
        spread = (moments[..., 1:] - mean**2) * half[:, None, None] ** 2
        return log_total, shift[:, None, None] + half[:, None, None] * mean, spread[..., None]


def _window(
    precision: FloatArray, pull: FloatArray, low: FloatArray, high: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """The interval in which exp(-½ J y² + l y) is not negligible; infinite where it has no limit.

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
