"""The messages of a Gaussian graph, their damping, and the beliefs they make."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hylift.inference.held import WIDEST, State, held
from hylift.inference.message.gaussian.couplings import Couplings
from hylift.inference.message.kernels.gaussian import IMPROPER, gather, send
from hylift.inference.message.layout import FloatArray, in_blocks

EPS = float(np.finfo(np.float64).eps)
DAMPING = 0.5
"""Default for messages that oscillate."""
PATIENCE = 20
"""Steps within which the largest change falls where messages converge."""
FALLEN = 0.9
"""Share of the least change so far below which it has fallen."""


@dataclass(slots=True, eq=False)
class GaussianMessages:
    """The messages; a step replaces them, unless that would make a belief improper."""

    couplings: Couplings
    message: FloatArray  # (slot, 2): precision and linear part
    candidate: FloatArray  # (slot, 2)
    total: FloatArray  # (variable, 4): also of its own; precision, linear part, mean, deviation
    next_total: FloatArray  # (variable, 4)

    @classmethod
    def start(cls, couplings: Couplings) -> GaussianMessages:
        """Before the first step: all messages are flat."""
        message, candidate = np.zeros((2, len(couplings.terms.slots), 2))
        total, next_total = np.zeros((2, len(couplings.own), 4))
        passing = cls(couplings, message, candidate, total, next_total)
        passing._gather()
        passing._adopt()
        return passing

    def arrays(self) -> State:
        """All that the next step depends on."""
        return held({"message": self.message, "total": self.total}, -WIDEST, WIDEST)

    def step(self, damping: float) -> float | None:
        """Send all messages, and return the largest change; None where a belief would be
        improper, and messages stay as they are."""
        couplings, terms = self.couplings, self.couplings.terms
        changes = in_blocks(
            send, couplings.term_blocks, couplings.room, terms.slot_ptr, terms.slots,
            terms.base, terms.theta, self.message, self.total, damping, self.candidate,
        )  # fmt: skip
        change = IMPROPER if IMPROPER in changes else max(changes)
        if change == IMPROPER or not self._gather():
            return None
        self._adopt()
        return change

    def _adopt(self) -> None:
        self.message, self.candidate = self.candidate, self.message
        self.total, self.next_total = self.next_total, self.total

    def _gather(self) -> bool:
        couplings, incidence = self.couplings, self.couplings.terms.incidence
        at = (incidence.ptr, incidence.slot, couplings.count, couplings.own)
        blocks = couplings.variable_blocks
        return all(in_blocks(gather, blocks, *at, self.candidate, self.next_total))

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
        """Rough size of the rounding error of log Z and, in standard deviations, of means.

        Precisions, means and log-densities are what is left of terms that may be much larger.
        """
        graph, total = self.couplings.graph, self.total
        lost = np.abs(self.couplings.own[:, 0]) / total[:, 0]
        far = 1.0 + np.abs(total[:, 2]) / total[:, 3]
        size = abs(graph.log_constant) + float(graph.variables.multiplicity @ lost)
        for group in graph.groups:
            if len(group) and group.arity and (form := group.potential.quadratic()):
                terms = form.magnitude(group.row, self.means[group.scope])
                size += float(group.multiplicity @ terms)
        return EPS * (float((lost * far).max(initial=0.0)) + size)

    def log_total(self) -> float:
        """Bethe's log Z of these messages.

        Σ n_v log Z_v + Σ n_c (log Z_c - Σ log Z_v of its slots). At a fixed point all beliefs have
        the same means, so this is the log-density there plus volumes, which do not drown in means
        far from 0. Away from one the belief of a factor may be improper; it then counts as 0.
        """
        graph, shared = self.couplings.graph, 0.0
        for term, slot, A in self.couplings.by_arity:
            told = self.total[self.couplings.terms.slots[slot]]
            size = slot.shape[1]
            joint = np.where(np.eye(size, dtype=bool), 0.0, -2 * A)
            joint[:, range(size), range(size)] = told[..., 0] - self.message[slot, 0]
            ratio = 0.5 * np.log(told[..., 0]).sum(axis=1) - _half_log_determinants(joint)
            shared += float(self.couplings.terms.multiplicity[term] @ np.nan_to_num(ratio))
        volume = 0.5 * np.log(2 * np.pi * self.variances)
        own = float(graph.variables.multiplicity @ volume)
        return graph.log_density(self.means) + own + shared


def _half_log_determinants(matrices: FloatArray) -> FloatArray:
    """Half the logarithms of determinants (..., row, row); NaN where not positive definite."""
    left, half = matrices.copy(), np.zeros(len(matrices))
    for k in range(left.shape[-1]):
        pivot = np.where(left[:, k, k] > 0, left[:, k, k], np.nan)
        half += 0.5 * np.log(pivot)
        left -= left[:, :, k, None] * left[:, None, k] / pivot[:, None, None]
    return half


@dataclass(slots=True, eq=False)
class Damping:
    """The share of its old value that a message keeps: given, or `DAMPING` once messages oscillate.

    On forests messages converge without, and elsewhere damping halves the speed where it is not
    needed.
    """

    is_fixed: bool
    state: FloatArray
    """The share, the least change so far, and the number of steps since it fell."""

    @classmethod
    def of(cls, given: float | None, *, on_forest: bool) -> Damping:
        return cls(given is not None or on_forest, np.array([given or 0.0, np.inf, 0.0]))

    @property
    def share(self) -> float:
        return float(self.state[0])

    def follow(self, change: float) -> None:
        """Take account of the largest change of a step."""
        if self.is_fixed:
            return
        _, least, steps = self.state.tolist()
        if change < FALLEN * least:
            self.state[1:] = change, 0.0
        elif steps + 1 < PATIENCE:
            self.state[2] += 1
        else:
            self.state[0] = DAMPING
