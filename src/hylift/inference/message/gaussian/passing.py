"""The messages of a Gaussian graph, and what they say."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hylift.archive import Arrays
from hylift.graph import FactorGraph
from hylift.inference.message.gaussian.quadratics import Quadratics
from hylift.inference.message.kernels.gaussian import IMPROPER, gather, log_ratios, send
from hylift.inference.message.links import FloatArray
from hylift.numerics.threads import in_order
from hylift.potentials import ConditionalQuadratic

EPS = float(np.finfo(np.float64).eps)


@dataclass(slots=True, eq=False)
class Passing:
    """Messages on their way; every step replaces them, unless it leaves something improper."""

    quadratics: Quadratics
    message: FloatArray  # (link, 2): precision and linear part
    candidate: FloatArray  # (link, 2)
    total: FloatArray  # (variable, 4): also of its own; precision, linear part, mean, deviation
    next_total: FloatArray  # (variable, 4)

    @classmethod
    def start(cls, quadratics: Quadratics) -> Passing:
        """Before the first step: no factor says anything."""
        message, candidate = np.zeros((2, len(quadratics.links), 2))
        total, next_total = np.zeros((2, len(quadratics.own), 4))
        passing = cls(quadratics, message, candidate, total, next_total)
        passing._gather()
        passing._adopt()
        return passing

    def arrays(self) -> Arrays:
        """All that the next step depends on."""
        return {"message": self.message, "total": self.total}

    def step(self, damping: float) -> float | None:
        """Sends all messages; returns the largest change of one, or None where what they would
        say has no integral, and they stay as they are."""
        change = self._send(damping)
        if change == IMPROPER or not self._gather():
            return None
        self._adopt()
        return change

    def _adopt(self) -> None:
        self.message, self.candidate = self.candidate, self.message
        self.total, self.next_total = self.next_total, self.total

    def _send(self, damping: float) -> float:
        terms, room = self.quadratics.terms, self.quadratics.room

        def run(begin: int, end: int) -> float:
            return send(
                begin, end, room, terms.slot_ptr, terms.slots, terms.base, terms.theta,
                self.message, self.total, damping, self.candidate,
            )  # fmt: skip

        changes = list(in_order(run, self.quadratics.factor_blocks))
        return IMPROPER if IMPROPER in changes else max(changes)

    def _gather(self) -> bool:
        links, own = self.quadratics.links, self.quadratics.own

        def run(begin: int, end: int) -> bool:
            return gather(
                begin, end, links.variable_ptr, links.order, links.count, own, self.candidate,
                self.next_total,
            )  # fmt: skip

        return all(list(in_order(run, self.quadratics.variable_blocks)))

    @property
    def means(self) -> FloatArray:
        return self.total[:, 2].copy()

    @property
    def variances(self) -> FloatArray:
        return np.asarray(1.0 / self.total[:, 0])

    @property
    def size(self) -> float:
        """The largest distance of a mean from 0, in standard deviations."""
        return float(np.abs(self.total[:, 2] / self.total[:, 3]).max(initial=0.0))

    def rounding(self) -> float:
        """Rough size of what rounding does to log Z and, in standard deviations, to means.

        A belief's precision is what messages leave of its own terms, a mean what they leave of
        linear parts; log-densities are sums of numbers that may be much larger.
        """
        quadratics, total = self.quadratics, self.total
        lost = np.abs(quadratics.own[:, 0]) / total[:, 0]
        far = 1.0 + np.abs(total[:, 2]) / total[:, 3]
        belief = float((lost * far).max(initial=0.0))
        volume = float(quadratics.graph.variables.multiplicity @ lost)
        return EPS * (belief + volume + _sizes(quadratics.graph, self.means))

    def log_total(self) -> float:
        """Bethe's log Z of these messages.

        Σ n_v log Z_v + Σ n_c (log Z_c - Σ log Z_v of its slots). At a fixed point all beliefs have
        the same means, so this is the log-density there, and what remains are volumes, which means
        far from 0 do not drown. Away from one the belief of a factor may have no integral; it then
        counts for nothing.
        """
        quadratics, terms = self.quadratics, self.quadratics.terms
        ratio = np.zeros(len(terms))

        def run(begin: int, end: int) -> None:
            log_ratios(
                begin, end, quadratics.room, terms.slot_ptr, terms.slots, terms.base, terms.theta,
                self.message, self.total, ratio,
            )  # fmt: skip

        for _ in in_order(run, quadratics.factor_blocks):
            pass
        shared = float(terms.multiplicity @ np.nan_to_num(ratio))
        volume = 0.5 * np.log(2 * np.pi * self.variances)
        own = float(quadratics.graph.variables.multiplicity @ volume)
        return quadratics.graph.log_density(self.means) + own + shared


def _sizes(graph: FactorGraph, x: FloatArray) -> float:
    """The sum of the sizes of all terms of the log-density at x."""
    total = abs(graph.log_constant)
    size = np.abs(x)
    for group in graph.groups:
        if not len(group) or not group.arity:
            continue
        assert isinstance(group.potential, ConditionalQuadratic)
        quadratic = group.potential
        A, b, c = (np.abs(p)[group.row] for p in (quadratic.A, quadratic.b, quadratic.c))
        at = size[group.scope]
        values = np.einsum("fi,fij,fj->f", at, A, at) + (b * at).sum(axis=1) + c
        total += float(group.multiplicity @ values)
    return total
