"""Moments of densities along lines, by panels that are halved where they are not accurate."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from hylift.inference.expectation.joint import FloatArray, Ids
from hylift.numerics.quadrature import legendre_rule

PANELS, DEGREE = 8, 8
"""Of a line at first, and Gauss-Legendre nodes of each."""
ROUNDS, UNSEEN = 44, 6
"""Times that a panel is halved; and those where nothing but zeros was found."""
ERROR = 1e-11
"""Change of a moment, relative to the whole, at which a panel is accurate."""

Values = Callable[[Ids, FloatArray], FloatArray]
"""Log-densities (row, joint state, node) of some lines (row,) at points (row, node)."""


def moments_along(
    values: Values, num_lines: int, low: float, high: float
) -> tuple[FloatArray, FloatArray]:
    """(line, joint state): logarithms of integrals between two ends; and means of x and x²."""
    edges = np.linspace(low, high, PANELS + 1)
    line = np.repeat(np.arange(num_lines), PANELS)
    begin, end = np.tile(edges[:-1], num_lines), np.tile(edges[1:], num_lines)
    nodes, weights = legendre_rule(DEGREE)
    top = np.full(num_lines, -np.inf)

    def integrals(line: Ids, begin: FloatArray, end: FloatArray) -> tuple[FloatArray, FloatArray]:
        """(panel, joint state, moment), relative to the largest value of a line so far; and the
        factor (line,) by which what was found before is to be multiplied."""
        half = 0.5 * (end - begin)
        x = 0.5 * (begin + end)[:, None] + half[:, None] * nodes
        logs = values(line, x)
        before = top.copy()
        np.maximum.at(top, line, logs.max(axis=(1, 2)))
        base = np.where(np.isfinite(top), top, 0.0)
        weight = np.exp(logs - base[line][:, None, None]) * (weights * half[:, None])[:, None]
        powers = np.stack([np.ones_like(x), x, x * x], axis=2)
        with np.errstate(invalid="ignore"):
            factor = np.where(before == top, 1.0, np.exp(before - top))
        return weight @ powers, factor

    found, _ = integrals(line, begin, end)
    total = np.zeros((num_lines, *found.shape[1:]))
    np.add.at(total, line, found)
    for number in range(ROUNDS):
        middle = 0.5 * (begin + end)
        sides = np.stack([begin, middle], axis=1).ravel(), np.stack([middle, end], axis=1).ravel()
        halves, factor = integrals(np.repeat(line, 2), *sides)
        total *= factor[:, None, None]
        found = found * factor[line][:, None, None]
        change = halves[::2] + halves[1::2] - found
        np.add.at(total, line, change)
        whole = np.maximum(total[:, :, 0].sum(axis=1), 0.0)
        is_open = np.abs(change).sum(axis=1).max(axis=1) > ERROR * whole[line]
        is_open |= (whole[line] == 0) & (number < UNSEEN)
        if not is_open.any():
            break
        again = np.repeat(is_open, 2)
        line, found = np.repeat(line, 2)[again], halves[again]
        begin, end = sides[0][again], sides[1][again]
    mass = total[:, :, 0]
    with np.errstate(divide="ignore"):
        logs = np.log(np.maximum(mass, 0.0)) + np.where(np.isfinite(top), top, 0.0)[:, None]
    return logs, total[:, :, 1:] / np.where(mass > 0, mass, 1.0)[:, :, None]
