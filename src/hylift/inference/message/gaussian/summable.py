"""Walk-summability, which makes Gaussian belief propagation converge."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hylift.inference.message.gaussian.quadratics import Quadratics
from hylift.inference.message.kernels.gaussian import gather, stretch
from hylift.inference.message.links import FloatArray
from hylift.numerics.threads import in_order

MOST_SWEEPS = 100
CLOSE = 1e-3
"""Relative distance of the bounds on a radius at which it is known well enough."""
ROUNDING = 1e-12
"""Distance from 1 that is taken for none."""


@dataclass(frozen=True, slots=True)
class Radius:
    """Bounds on the spectral radius of |R|, R = I - D^-½ J D^-½, factor by factor.

    Below 1 the model is walk-summable (Malioutov, Johnson & Willsky 2006): it is a distribution,
    and Gaussian belief propagation converges. The couplings of several factors between the same
    two reals count by their sizes; merged factors have none such where all have two slots.
    """

    lower: float
    upper: float

    @classmethod
    def of(cls, quadratics: Quadratics) -> Radius:
        """By power iteration from above and below: the largest (Mx)_v / x_v of a positive x is an
        upper bound, and Rayleigh's quotient a lower one, here for M = D^-1 |off-diagonal J|.

        Classes are equitable, so M takes what is constant on them to such again: the lifted graph
        has the radius of the ground graph.
        """
        precision = quadratics.own[:, 0]
        if not (precision > 0).all():
            return cls(0.0, np.inf)
        if not len(quadratics.links):
            return cls(0.0, 0.0)
        weight = quadratics.graph.variables.multiplicity * precision
        x = 1 / np.sqrt(precision)
        lower, upper = 0.0, np.inf
        for _ in range(MOST_SWEEPS):
            image = _walked(quadratics, x) / precision
            lower = max(lower, float((weight * x) @ image) / float((weight * x) @ x))
            upper = min(upper, float((image / x).max()))
            if upper < 1 or (lower >= 1 and upper - lower <= CLOSE * upper):
                break
            # The mean with x itself does not swing to and fro between two sides of a graph.
            x = x + image
            x *= 1 / np.sqrt(float((weight * x) @ x))
        return cls(lower, upper)

    @property
    def is_below_one(self) -> bool:
        return self.upper < 1 - ROUNDING

    @property
    def is_above_one(self) -> bool:
        return self.lower >= 1 + ROUNDING


def _walked(quadratics: Quadratics, x: FloatArray) -> FloatArray:
    """(variable,): the sums over its links of the sizes of couplings times x at their ends."""
    terms, links = quadratics.terms, quadratics.links
    steps = np.zeros((len(links), 2))
    total, nothing = np.zeros((len(x), 4)), np.zeros((len(x), 2))

    def run(begin: int, end: int) -> None:
        stretch(begin, end, terms.slot_ptr, terms.slots, terms.base, terms.theta, x, steps)

    def collect(begin: int, end: int) -> None:
        gather(
            begin, end, links.variable_ptr, links.order, links.count, nothing, steps, total
        )  # fmt: skip

    for work, blocks in ((run, quadratics.factor_blocks), (collect, quadratics.variable_blocks)):
        for _ in in_order(work, blocks):
            pass
    return np.ascontiguousarray(total[:, 0])
