"""Free energies of mixtures of products, and their gradients."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, TypeVar

import numpy as np
from numba import get_num_threads
from numpy.typing import NDArray

from hylift.inference.variational.functions import add_functions
from hylift.inference.variational.kernels.bethe import bethe_block, product_entropy
from hylift.inference.variational.kernels.energy import energy_block, scatter
from hylift.inference.variational.kernels.evaluate import bethe_at_once, energy_at_once
from hylift.inference.variational.kernels.jensen import (
    jensen_gradient,
    log_mixtures,
    log_overlaps,
)
from hylift.inference.variational.kernels.nodes import chain_moments, moments_of, tabulate
from hylift.inference.variational.problem import FloatArray, Mixtures, Problem
from hylift.potentials import REAL
from hylift.potentials.quadrature import Accuracy, hermite_rule, nodes_per_slot

Entropy = Literal["bethe", "jensen"]

BLOCK = 1 << 18
"""Work of one block, about in grid points: what one thread does at a time."""

MOST_NUMBERS = 10**8
"""Numbers that the candidates of one portion may need."""

T = TypeVar("T")


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
        self, problem: Problem, entropy: Entropy, accuracy: Accuracy, hard: float = np.inf
    ) -> None:
        """hard: the energy of what is impossible."""
        self.problem, self.entropy, self.accuracy, self.hard = problem, entropy, accuracy, hard
        self._energy = _Slots.of(problem, problem.terms.slot_ptr, problem.terms.slots)
        self._grid = _Grid.of(problem, accuracy) if entropy == "bethe" and problem.scopes else None
        self._function_nodes = [
            nodes_per_slot(group.potential.slot_states.count(REAL), accuracy)
            for group in problem.functions
        ]

    def evaluate(self, q: Mixtures) -> Evaluation:
        """The free energy and its gradient at each of the candidates."""
        problem = self.problem
        value, gradient = self._energies(q)
        if problem.functions:
            add_functions(problem, q, self._function_nodes, self.hard, gradient, value)
        value -= problem.log_constant
        of_weights = self._entropies(q, gradient, value)
        return Evaluation((q.weights * value).sum(axis=1), value + of_weights, gradient)

    def portions(self, q: Mixtures) -> Iterator[Mixtures]:
        """The candidates, as many at a time as memory holds."""
        per_start = 8 * q.entries[0].size
        if self._grid is not None:
            per_start += int(self._grid.row_start[-1]) * (q.num_components + 3) * q.num_components
        step = max(1, MOST_NUMBERS // max(1, per_start))
        for begin in range(0, q.num_starts, step):
            yield q.take(list(range(begin, min(begin + step, q.num_starts))))

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
            return _jensen(self.problem, q, gradient, value)
        if q.num_components == 1:
            product_entropy(
                layout.family, layout.first, layout.lower, layout.upper, multiplicity, q.entries,
                gradient, value,
            )  # fmt: skip
        else:
            assert self._grid is not None
            self._grid.add(self.problem, q, gradient, value)
        return np.zeros(q.weights.shape)


@dataclass(frozen=True, slots=True, eq=False)
class _Slots:
    """Where the gradients of slots stand in a buffer, and blocks of whole terms."""

    slot_ptr: NDArray[np.int64]
    slots: NDArray[np.int32]
    grad_ptr: NDArray[np.int64]  # (slot + 1,)
    cost: NDArray[np.int64]  # (term + 1,): work up to each term, for one component

    @classmethod
    def of(
        cls,
        problem: Problem,
        slot_ptr: NDArray[np.int64],
        slots: NDArray[np.int32],
        cost: NDArray[np.int64] | None = None,
    ) -> _Slots:
        width = np.diff(problem.layout.first)[slots]
        grad_ptr = np.concatenate([[0], np.cumsum(width)])
        if cost is None:
            cost = 4 * np.diff(grad_ptr[slot_ptr])
        return cls(slot_ptr, slots, grad_ptr, np.concatenate([[0], np.cumsum(cost)]))

    @property
    def num_entries(self) -> int:
        return int(self.grad_ptr[-1])

    def blocks(self, work: int) -> list[tuple[int, int]]:
        """Stretches of terms of about equal work; they depend on the problem alone, not on the
        threads, and so does the order in which numbers are added."""
        count = max(1, int(self.cost[-1]) * work // BLOCK)
        if count == 1 or len(self.cost) <= 2:
            return [(0, len(self.cost) - 1)]
        marks = np.linspace(0, self.cost[-1], count + 1)
        cuts = np.unique(np.searchsorted(self.cost, marks))
        cuts[0], cuts[-1] = 0, len(self.cost) - 1
        return list(pairwise(np.unique(cuts).tolist()))

    def buffer(self, begin: int, end: int, q: Mixtures) -> FloatArray:
        low, high = self.grad_ptr[self.slot_ptr[[begin, end]]]
        return np.empty((q.num_starts, int(high - low), q.num_components))

    def add_up(
        self,
        blocks: list[tuple[int, int]],
        run: Callable[[int, int], tuple[FloatArray, FloatArray]],
        first: NDArray[np.int64],
        gradient: FloatArray,
        value: FloatArray,
    ) -> None:
        """Runs all blocks, and adds their gradients and values in order."""
        for (begin, end), (buffer, part) in zip(blocks, in_order(run, blocks), strict=True):
            scatter(begin, end, self.slot_ptr, self.slots, first, self.grad_ptr, buffer, gradient)
            value += part


@dataclass(frozen=True, slots=True, eq=False)
class _Grid:
    """How the scopes of the Bethe entropy are integrated: sets of nodes, by number of reals."""

    slots: _Slots
    scope_set: NDArray[np.int32]  # (scope,)
    set_nodes: NDArray[np.int64]  # (set,)
    hermite_z: FloatArray  # (set, node)
    hermite_w: FloatArray  # (set, node)
    table_row: NDArray[np.int32]  # (set, variable); -1 where it is not needed
    row_variable: NDArray[np.int32]  # (row,)
    row_set: NDArray[np.int32]  # (row,)
    row_start: NDArray[np.int64]  # (row + 1,): nodes of the rows before

    @classmethod
    def of(cls, problem: Problem, accuracy: Accuracy) -> _Grid:
        scopes, graph = problem.scopes, problem.graph
        assert scopes is not None
        counts = np.unique(scopes.num_reals)
        scope_set = np.searchsorted(counts, scopes.num_reals).astype(np.int32)
        set_nodes = np.array([nodes_per_slot(int(n), accuracy) for n in counts], dtype=np.int64)
        scopes.check_size(graph, set_nodes[scope_set])
        most = int(set_nodes.max(initial=1))
        hermite = np.zeros((2, len(counts), most))
        num_states = graph.variables.num_states
        of_slot = np.repeat(scope_set, np.diff(scopes.slot_ptr))
        table_row = np.full((len(counts), graph.num_variables), -1, dtype=np.int32)
        rows: list[NDArray[np.int32]] = []
        sets: list[NDArray[np.int32]] = []
        for number, nodes in enumerate(set_nodes):
            hermite[0, number, :nodes], hermite[1, number, :nodes] = hermite_rule(int(nodes))
            used = np.zeros(graph.num_variables, dtype=bool)
            used[scopes.slots[of_slot == number]] = True
            reals = np.flatnonzero(used & (num_states == 0)).astype(np.int32)
            table_row[number, reals] = sum(len(row) for row in rows) + np.arange(len(reals))
            rows.append(reals)
            sets.append(np.full(len(reals), number, dtype=np.int32))
        row_set = np.concatenate([np.zeros(0, np.int32), *sets])
        per_slot = np.where(num_states[scopes.slots] > 0, num_states[scopes.slots], 0)
        per_slot = np.where(per_slot > 0, per_slot, set_nodes[of_slot])
        points = np.multiply.reduceat(per_slot, scopes.slot_ptr[:-1]) if len(scopes) else per_slot
        return cls(
            _Slots.of(problem, scopes.slot_ptr, scopes.slots, points + 8),
            scope_set,
            set_nodes,
            hermite[0],
            hermite[1],
            table_row,
            np.concatenate([np.zeros(0, np.int32), *rows]),
            row_set,
            np.concatenate([[0], np.cumsum(set_nodes[row_set])]),
        )

    def add(self, problem: Problem, q: Mixtures, gradient: FloatArray, value: FloatArray) -> None:
        """Adds the negative Bethe entropy given each component, and its gradient."""
        layout, scopes, slots = problem.layout, problem.scopes, self.slots
        assert scopes is not None
        starts, size = q.num_starts, q.num_components
        table = np.empty((starts, int(self.row_start[-1]) * size**2))
        has_betas = len(problem.betas) > 0
        extra = np.empty((starts, int(self.row_start[-1]) * size * 3 if has_betas else 0))
        blocks = slots.blocks(starts * size)
        if len(blocks) <= 1:
            buffer = np.empty((starts, slots.num_entries, size))
            bethe_at_once(
                self.row_variable, self.row_set, self.row_start, self.set_nodes, self.hermite_z,
                self.hermite_w, self.table_row, scopes.slot_ptr, scopes.slots, scopes.coefficient,
                self.scope_set, layout.family, layout.first, layout.lower, layout.upper,
                q.entries, q.weights, table, extra, slots.grad_ptr, buffer, gradient, value,
            )  # fmt: skip
            return

        def fill(begin: int, end: int) -> None:
            tabulate(
                begin, end, self.row_variable, self.row_set, self.row_start, self.set_nodes,
                self.hermite_z, layout.family, layout.first, layout.lower, layout.upper,
                q.entries, table, extra,
            )  # fmt: skip

        def run(begin: int, end: int) -> tuple[FloatArray, FloatArray]:
            buffer = slots.buffer(begin, end, q)
            part = np.zeros(q.weights.shape)
            bethe_block(
                begin, end, scopes.slot_ptr, scopes.slots, scopes.coefficient, self.scope_set,
                self.set_nodes, self.hermite_z, self.hermite_w, layout.family, layout.first,
                q.entries, q.weights, self.table_row, self.row_start, table, extra,
                slots.grad_ptr, buffer, part,
            )  # fmt: skip
            return buffer, part

        cuts = np.linspace(0, len(self.row_set), 2 + len(self.row_set) // 4096).astype(np.int64)
        for _ in in_order(fill, list(pairwise(cuts.tolist()))):
            pass
        slots.add_up(blocks, run, layout.first, gradient, value)


def _jensen(problem: Problem, q: Mixtures, gradient: FloatArray, value: FloatArray) -> FloatArray:
    """Adds log Σ_j w_j exp(S_kj) given each component k, and the gradient of their mean."""
    layout, multiplicity = problem.layout, problem.multiplicity
    size = len(layout)
    cuts = np.linspace(0, size, 2 + size * q.num_components**2 // BLOCK).astype(np.int64)
    blocks = list(pairwise(cuts.tolist()))
    overlaps = np.zeros((q.num_starts, q.num_components, q.num_components))

    def overlap(begin: int, end: int) -> FloatArray:
        part = np.zeros(overlaps.shape)
        log_overlaps(
            begin, end, layout.family, layout.first, layout.lower, layout.upper, multiplicity,
            q.entries, part,
        )  # fmt: skip
        return part

    for part in in_order(overlap, blocks):
        overlaps += part
    share = np.empty(overlaps.shape)
    log_mixtures(overlaps, q.weights, value, share)

    def slope(begin: int, end: int) -> None:
        jensen_gradient(
            begin, end, layout.family, layout.first, multiplicity, q.entries, q.weights, share,
            gradient,
        )  # fmt: skip

    for _ in in_order(slope, blocks):
        pass
    # ∂/∂w_k of Σ_l w_l log Σ_j w_j exp(S_lj) beyond the logarithm itself.
    return np.einsum("sl,slk->sk", q.weights, share) / q.weights


def in_order(run: Callable[[int, int], T], blocks: Iterable[tuple[int, int]]) -> Iterator[T]:
    """What `run` returns for each block, in order, with as many threads as Numba has.

    Few results wait at any time.
    """
    blocks = list(blocks)
    num_threads = min(get_num_threads(), len(blocks))
    if num_threads <= 1:
        for block in blocks:
            yield run(*block)
        return
    with ThreadPoolExecutor(num_threads) as pool:
        waiting: list[Future[T]] = []
        for block in blocks:
            waiting.append(pool.submit(run, *block))
            if len(waiting) > 2 * num_threads:
                yield waiting.pop(0).result()
        for future in waiting:
            yield future.result()
