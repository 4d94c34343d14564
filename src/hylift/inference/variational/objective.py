"""Free energies of mixtures of products, and their gradients."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from hylift.components import Betas
from hylift.components.kernels.integrals import (
    log_mixtures,
    log_overlaps,
    overlap_gradient,
    product_entropy,
)
from hylift.inference.variational.functions import add_functions
from hylift.inference.variational.joint import AtMixture, JointGaussians
from hylift.inference.variational.problem import FitProblem, FloatArray, Mixtures
from hylift.inference.variational.slots import Grid, run_all
from hylift.numerics import threads
from hylift.numerics.quadrature import Accuracy

Entropy = Literal["bethe", "jensen", "tracey"]
"""Bethe's approximation; lower bounds by Jensen's inequality, or by Kolchinsky and Tracey (Entropy
19:361, 2017): Σ_k w_k H_k - Σ_k w_k log Σ_j w_j B_kj with Bhattacharyya coefficients B_kj."""
ENTROPY_BOUNDS: tuple[Entropy, ...] = ("jensen", "tracey")
IntArray = NDArray[np.int64]

TOLERANCE = 1e-7
"""In nats."""
MOST_NUMBERS = 10**8
"""Numbers that the candidates of one portion may need."""


@dataclass(frozen=True, slots=True, eq=False)
class Evaluation:
    """The free energy of each start, and its gradient."""

    by_part: FloatArray  # (start, part); constants count in the first
    of_weights: FloatArray  # (start, part, component), up to what is the same for all components
    of_entries: FloatArray  # (start, entry, component)

    @property
    def value(self) -> FloatArray:
        """(start,)"""
        return np.asarray(self.by_part.sum(axis=1))

    def take(self, starts: NDArray[np.int64] | list[int]) -> Evaluation:
        return Evaluation(self.by_part[starts], self.of_weights[starts], self.of_entries[starts])


class Objective:
    """A free energy to be minimised; what it needs beside the parameters is laid out once."""

    def __init__(
        self,
        problem: FitProblem,
        entropy: Entropy,
        accuracy: Accuracy,
        hard: float = np.inf,
        tolerance: float = TOLERANCE,
        joint: JointGaussians | None = None,
    ) -> None:
        """hard: the energy of what is impossible. tolerance: a fall of the free energy per ground
        variable that counts as none. joint: of components with a joint Gaussian each, for
        'tracey' and one start."""
        self.problem, self.entropy, self.accuracy, self.hard = problem, entropy, accuracy, hard
        self.tolerance, self.joint = tolerance, joint
        self.grid: Grid | None = None
        """Of the Bethe entropy; a single product needs none."""

    def evaluate(self, q: Mixtures) -> Evaluation:
        """The free energy and its gradient at each of the candidates."""
        problem, weights = self.problem, q.weights
        value, is_single = np.zeros(weights.shape), weights.shape[2] == 1
        joint = None if self.joint is None else self.joint.at(q)
        gradient = self._add_energies(q if joint is None else joint.at_means, value)
        if joint is not None:
            joint.add_values(value)
            q = joint.of_states
        if problem.functions:
            add_functions(problem, q, self.accuracy, self.hard, gradient, value)
        value[:, 0] -= problem.log_constant
        of_weights: FloatArray | float = 0.0
        if self.entropy == "tracey" or (self.entropy == "bethe" and is_single):
            self._add_product_entropy(q, gradient, value)
        if self.entropy != "bethe":
            of_weights = self._add_overlaps(q, gradient, value, joint)
        elif not is_single:
            self._bethe().add(problem.layout, q.weights, q.entries, gradient, value)
        return Evaluation((weights * value).sum(axis=2), value + of_weights, gradient)

    def restricted(self, is_kept: NDArray[np.bool_]) -> Objective:
        """The same for some of the parts (part,), without constants."""
        problem = self.problem.restricted(is_kept)
        joint = None if self.joint is None else JointGaussians.of(problem)
        return Objective(problem, self.entropy, self.accuracy, self.hard, self.tolerance, joint)

    def portions(self, q: Mixtures) -> Iterator[Mixtures]:
        """The candidates, as many at a time as memory holds."""
        num_starts, _, size = q.weights.shape
        per_start = 8 * (q.entries[0].size + q.weights[0].size * size)
        if self.entropy == "bethe" and size > 1:
            per_start += int(self._bethe().row_start[-1]) * (size + 3) * size
        step = max(1, MOST_NUMBERS // max(1, per_start))
        for begin in range(0, num_starts, step):
            yield q.take(list(range(begin, min(begin + step, num_starts))))

    def _bethe(self) -> Grid:
        problem = self.problem
        if self.grid is None:
            assert problem.scopes is not None
            self.grid = problem.scopes.grid(problem.layout, problem.part, self.accuracy)
        return self.grid

    def _add_energies(self, q: Mixtures, value: FloatArray) -> FloatArray:
        """The gradient of the expected energies of terms; adds these to value (start, part,
        component)."""
        problem, terms, layout = self.problem, self.problem.terms, self.problem.layout
        gradient, moments = np.zeros(q.entries.shape), q.entries
        betas, at = problem.betas, layout.first[problem.betas]
        if len(betas):
            # Of all starts and components at once.
            parameters = (np.moveaxis(q.entries[:, at + place], 1, 0) for place in (0, 1))
            bounds = (bound[betas][:, None] for bound in (layout.lower, layout.upper))
            components = Betas(*parameters, *bounds)
            moments = q.entries.copy()
            for place, moment in enumerate(components.moments()):
                moments[:, at + place] = np.moveaxis(moment, 0, 1)

        problem.slots.add_energies(
            (terms.num_discrete, terms.base, terms.multiplicity, terms.theta), self.hard,
            layout.first, moments, q.weights, gradient, value,
        )  # fmt: skip
        if len(betas):
            slope = (np.moveaxis(gradient[:, at + place], 1, 0) for place in (0, 1))
            for place, part_of in enumerate(components.of_parameters(*slope)):
                gradient[:, at + place] = np.moveaxis(part_of, 0, 1)
        return gradient

    def _add_product_entropy(self, q: Mixtures, gradient: FloatArray, value: FloatArray) -> None:
        layout = self.problem.layout
        product_entropy(
            layout.family, layout.first, layout.lower, layout.upper, self.problem.multiplicity,
            self.problem.part, q.weights, q.entries, gradient, value,
        )  # fmt: skip

    def _add_overlaps(
        self, q: Mixtures, gradient: FloatArray, value: FloatArray, joint: AtMixture | None
    ) -> FloatArray:
        """Add log Σ_j w_j exp(S_kj) given each component k, and the gradient of their mean;
        returns what the weights are worth beyond that."""
        of_roots = self.entropy == "tracey"
        problem, layout, multiplicity = self.problem, self.problem.layout, self.problem.multiplicity
        size, part = len(multiplicity), problem.part
        count = q.weights.shape[2]
        overlaps = np.zeros((*q.weights.shape, count))
        num_blocks = 1 + size * count**2 // threads.BLOCK
        order = np.argsort(part, kind="stable")

        def overlap(begin: int, end: int) -> tuple[int, FloatArray]:
            if begin == end:
                return 0, overlaps[:, :0]
            low, high = int(part[order[begin]]), int(part[order[end - 1]]) + 1
            found = np.zeros((len(overlaps), high - low, *overlaps.shape[2:]))
            log_overlaps(
                begin, end, order, layout.family, layout.first, layout.lower, layout.upper,
                multiplicity, part, q.entries, of_roots, found,
            )  # fmt: skip
            return low, found

        def slope(begin: int, end: int) -> None:
            overlap_gradient(
                begin, end, layout.family, layout.first, multiplicity, part, q.entries, q.weights,
                share, of_roots, gradient,
            )  # fmt: skip

        for low, found in run_all(overlap, size, num_blocks):
            overlaps[:, low : low + found.shape[1]] += found
        if joint is not None:
            joint.add_overlaps(overlaps)
        share = np.empty(overlaps.shape)
        log_mixtures(overlaps, q.weights, problem.copies, value, share)
        run_all(slope, size, num_blocks)
        if joint is not None:
            joint.add_slopes(share, gradient)
        # ∂/∂w_k of Σ_l w_l log Σ_j w_j exp(S_lj) beyond the logarithm itself.
        beyond = np.einsum("spl,splk->spk", q.weights, share) / q.weights
        return np.asarray(problem.copies[:, None] * beyond)
