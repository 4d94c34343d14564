"""Free energies of mixtures of products, and their gradients."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from hylift.components.kernels.nodes import chain_moments, moments_of
from hylift.components.kernels.products import product_entropy
from hylift.inference.variational.kernels.energy import energy_block
from hylift.inference.variational.kernels.evaluate import energy_at_once
from hylift.inference.variational.objective.bethe import Grid
from hylift.inference.variational.objective.blocks import Slots
from hylift.inference.variational.objective.functions import add_functions
from hylift.inference.variational.objective.jensen import add_jensen
from hylift.inference.variational.problem import FloatArray, Mixtures, Problem
from hylift.numerics.quadrature import Accuracy

Entropy = Literal["bethe", "jensen"]

TOLERANCE = 1e-7
"""In nats."""

MOST_NUMBERS = 10**8
"""Numbers that the candidates of one portion may need."""


@dataclass(frozen=True, slots=True, eq=False)
class Evaluation:
    """The free energy of each start, and its gradient."""

    value: FloatArray  # (start,)
    of_weights: FloatArray  # (start, component), up to what is the same for all components
    of_entries: FloatArray  # (start, entry, component)

    def take(self, starts: NDArray[np.int64] | list[int]) -> Evaluation:
        return Evaluation(self.value[starts], self.of_weights[starts], self.of_entries[starts])


class Objective:
    """A free energy to be minimised; what it needs beside the parameters is laid out once."""

    def __init__(
        self,
        problem: Problem,
        entropy: Entropy,
        accuracy: Accuracy,
        hard: float = np.inf,
        tolerance: float = TOLERANCE,
    ) -> None:
        """hard: the energy of what is impossible. tolerance: a fall of the free energy per ground
        variable that counts as none."""
        self.problem, self.entropy, self.accuracy, self.hard = problem, entropy, accuracy, hard
        self.tolerance = tolerance
        self._energy = Slots.of(problem, problem.terms.slot_ptr, problem.terms.slots)
        self._grid: Grid | None = None

    def evaluate(self, q: Mixtures) -> Evaluation:
        """The free energy and its gradient at each of the candidates."""
        problem = self.problem
        value, gradient = self._energies(q)
        if problem.functions:
            add_functions(problem, q, self.accuracy, self.hard, gradient, value)
        value -= problem.log_constant
        of_weights = self._entropies(q, gradient, value)
        return Evaluation((q.weights * value).sum(axis=1), value + of_weights, gradient)

    def portions(self, q: Mixtures) -> Iterator[Mixtures]:
        """The candidates, as many at a time as memory holds."""
        per_start = 8 * q.entries[0].size
        if self.entropy == "bethe" and q.num_components > 1:
            nodes = int(self._scopes().row_start[-1])
            per_start += nodes * (q.num_components + 3) * q.num_components
        step = max(1, MOST_NUMBERS // max(1, per_start))
        for begin in range(0, q.num_starts, step):
            yield q.take(list(range(begin, min(begin + step, q.num_starts))))

    def _scopes(self) -> Grid:
        """The grids of the Bethe entropy, which a single product does not need."""
        if self._grid is None:
            self._grid = Grid.of(self.problem, self.accuracy)
        return self._grid

    def _energies(self, q: Mixtures) -> tuple[FloatArray, FloatArray]:
        """Expected energies (start, component), and their gradient."""
        terms, layout, betas = self.problem.terms, self.problem.layout, self.problem.betas
        value, gradient = np.zeros(q.weights.shape), np.zeros(q.entries.shape)
        moments = np.empty(q.entries.shape) if len(betas) else q.entries
        slots, work = self._energy, q.num_starts * q.num_components
        blocks = slots.blocks(work)
        if len(blocks) <= 1:
            buffer = np.empty((q.num_starts, slots.num_entries, q.num_components))
            energy_at_once(
                terms.slot_ptr, terms.slots, terms.num_discrete, terms.base, terms.multiplicity,
                terms.theta, self.hard, layout.family, layout.first, layout.lower, layout.upper,
                betas, q.entries, q.weights, slots.grad_ptr, buffer, moments, gradient, value,
            )  # fmt: skip
            return value, gradient
        if len(betas):
            moments_of(layout.family, layout.first, layout.lower, layout.upper, q.entries, moments)

        def run(begin: int, end: int) -> tuple[FloatArray, FloatArray]:
            buffer = slots.buffer(begin, end, q)
            part = np.zeros(q.weights.shape)
            energy_block(
                begin, end, terms.slot_ptr, terms.slots, terms.num_discrete, terms.base,
                terms.multiplicity, terms.theta, self.hard, layout.first, moments, q.weights,
                slots.grad_ptr, buffer, part,
            )  # fmt: skip
            return buffer, part

        slots.add_up(blocks, run, layout.first, gradient, value)
        if len(betas):
            chain_moments(betas, layout.first, layout.lower, layout.upper, q.entries, gradient)
        return value, gradient

    def _entropies(self, q: Mixtures, gradient: FloatArray, value: FloatArray) -> FloatArray:
        """Adds the negative entropy given each component; returns what else weights are worth."""
        layout, multiplicity = self.problem.layout, self.problem.multiplicity
        if self.entropy == "jensen":
            return add_jensen(self.problem, q, gradient, value)
        if q.num_components == 1:
            product_entropy(
                layout.family, layout.first, layout.lower, layout.upper, multiplicity, q.entries,
                gradient, value,
            )  # fmt: skip
        else:
            self._scopes().add(self.problem, q, gradient, value)
        return np.zeros(q.weights.shape)
