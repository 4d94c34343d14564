"""Bounds of reals as factors: functions that are at least 0 within the bounds.

An integral over an interval is at most that over all reals with a factor exp(c f(x)), where c ≥ 0
and f is at least 0 inside: (x - l)(u - x), x - l, u - x. Each c is chosen along with costs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hylift.graph import Variables
from hylift.inference.exact.elimination import FloatArray, Ids

SIDES = 0.1
"""Value of c at first, for functions of one bound, in units of their real's width."""


@dataclass(frozen=True, slots=True, eq=False)
class Boxes:
    """Functions -½ curvature y² + slope y + constant of reals, y measured from their centre."""

    real: Ids  # (function,): the variable
    curvature: FloatArray  # (function,)
    slope: FloatArray  # (function,)
    constant: FloatArray  # (function,)
    start: FloatArray  # (function,): the logarithm of c

    @classmethod
    def of(cls, variables: Variables, centre: FloatArray, precision: FloatArray) -> Boxes:
        """Three functions of each real with two bounds, one of each with one.

        centre, precision: (variable,); what the factors confine well needs little of the bounds.
        """
        lower, upper = variables.lower, variables.upper
        closed = np.flatnonzero(np.isfinite(lower) & np.isfinite(upper))
        half = 0.5 * upper[closed] - 0.5 * lower[closed]
        off = centre[closed] - lower[closed] - half
        own = precision[closed] * half**2
        need = 0.5 / (1 + np.maximum(own, 0.0)) + np.maximum(-own, 0.0)
        # 1 - (y + off)² / half²
        inside = (closed, 2 / half**2, -2 * off / half**2, 1 - off**2 / half**2, need)
        parts = [inside]
        unit = 1 / np.sqrt(np.where(precision > 0, precision, 1.0))
        unit[closed] = half
        for sign, bound in ((1.0, lower), (-1.0, upper)):
            some = np.flatnonzero(np.isfinite(bound))
            far, one = sign * (centre[some] - bound[some]) / unit[some], np.ones(len(some))
            parts.append((some, 0.0 * one, sign / unit[some], far, SIDES * one))
        joined = [np.concatenate(part) for part in zip(*parts, strict=True)]
        real, curvature, slope, constant, start = joined
        return cls(real, curvature, slope, constant, np.log(start))

    def __len__(self) -> int:
        return len(self.real)

    def costs(self, logs: FloatArray, num_variables: int) -> tuple[FloatArray, FloatArray, float]:
        """(variable,): curvatures and slopes; and the sum of constants."""
        c, total = np.exp(np.minimum(logs, 300.0)), np.zeros((2, num_variables))
        np.add.at(total[0], self.real, c * self.curvature)
        np.add.at(total[1], self.real, c * self.slope)
        return total[0], total[1], float(c @ self.constant)

    def slopes(self, logs: FloatArray, of_costs: FloatArray) -> FloatArray:
        """(function,): slopes of the bound in the logs of c, given those in curvatures and in
        slopes (2, variable)."""
        of_curvature, of_slope = of_costs[:, self.real]
        inside = self.curvature * of_curvature + self.slope * of_slope
        return np.asarray(np.exp(np.minimum(logs, 300.0)) * (inside + self.constant))
