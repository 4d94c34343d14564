"""Free energies of mixtures of products, and their gradients."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from hylift.components import Betas, Layout
from hylift.components.kernels.integrals import (
    log_mixtures,
    log_overlaps,
    overlap_gradient,
    product_entropy,
    tabulate_betas,
    tabulate_gaussians,
)
from hylift.inference.variational.functions import add_functions
from hylift.inference.variational.kernels import bethe_block, energy_block, scatter
from hylift.inference.variational.problem import FitProblem, FloatArray, Mixtures
from hylift.numerics import threads
from hylift.numerics.quadrature import Accuracy, hermite_rule, nodes_per_slot
from hylift.numerics.segments import offsets

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

    value: FloatArray  # (start,)
    of_weights: FloatArray  # (start, component), up to what is the same for all components
    of_entries: FloatArray  # (start, entry, component)

    def take(self, starts: NDArray[np.int64] | list[int]) -> Evaluation:
        return Evaluation(self.value[starts], self.of_weights[starts], self.of_entries[starts])


class Objective:
    """A free energy to be minimised; what it needs beside the parameters is laid out once."""

    def __init__(
        self,
        problem: FitProblem,
        entropy: Entropy,
        accuracy: Accuracy,
        hard: float = np.inf,
        tolerance: float = TOLERANCE,
    ) -> None:
        """hard: the energy of what is impossible. tolerance: a fall of the free energy per ground
        variable that counts as none."""
        self.problem, self.entropy, self.accuracy, self.hard = problem, entropy, accuracy, hard
        self.tolerance = tolerance
        self.terms = Slots.of(problem.layout, problem.terms.slot_ptr, problem.terms.slots)
        self.grid: Grid | None = None
        """Of the Bethe entropy; a single product needs none."""
        # All terms, and all variables, are in one part.
        self._whole = np.zeros(max(len(problem.terms.base), len(problem.multiplicity)), np.int32)

    def evaluate(self, q: Mixtures) -> Evaluation:
        """The free energy and its gradient at each of the candidates."""
        problem, weights = self.problem, q.weights
        value = np.zeros((*weights.shape, 1))
        gradient = self._add_energies(q, self._whole, value)
        if problem.functions:
            add_functions(problem, q, self.accuracy, self.hard, gradient, value[:, :, 0])
        value -= problem.log_constant
        of_weights = np.zeros(weights.shape)
        is_single = weights.shape[1] == 1
        if self.entropy == "tracey" or (self.entropy == "bethe" and is_single):
            self._add_product_entropy(q, self._whole, gradient, value)
        if self.entropy != "bethe":
            of_weights = self._add_overlaps(q, gradient, value)
        elif not is_single:
            self._add_bethe(q, gradient, value)
        by_component = value[:, :, 0]
        return Evaluation((weights * by_component).sum(axis=1), by_component + of_weights, gradient)

    def by_part(self, q: Mixtures, part: NDArray[np.int32], num_parts: int) -> FloatArray:
        """(start, part): free energies of single products in each of the parts of a graph that no
        term connects, without functions and constants; part: (variable,)."""
        terms = self.problem.terms
        value = np.zeros((q.num_starts, 1, num_parts))
        gradient = self._add_energies(q, part[terms.slots[terms.slot_ptr[:-1]]], value)
        self._add_product_entropy(q, part, gradient, value)
        return value[:, 0]

    def portions(self, q: Mixtures) -> Iterator[Mixtures]:
        """The candidates, as many at a time as memory holds."""
        num_starts, size = q.weights.shape
        per_start = 8 * q.entries[0].size
        if self.entropy == "bethe" and size > 1:
            per_start += int(self._grid().row_start[-1]) * (size + 3) * size
        step = max(1, MOST_NUMBERS // max(1, per_start))
        for begin in range(0, num_starts, step):
            yield q.take(list(range(begin, min(begin + step, num_starts))))

    def _add_energies(self, q: Mixtures, part: NDArray[np.int32], value: FloatArray) -> FloatArray:
        """The gradient of the expected energies of terms; adds these to value (start, component,
        part). part: (term,)"""
        problem, slots = self.problem, self.terms
        terms, layout = problem.terms, problem.layout
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

        def run(
            begin: int, end: int, target: IntArray, shift: int, to: FloatArray, total: FloatArray
        ) -> None:
            energy_block(
                begin, end, terms.slot_ptr, terms.slots, terms.num_discrete, terms.base,
                terms.multiplicity, terms.theta, self.hard, part, layout.first, moments, q.weights,
                target, shift, *slots.scratch(), to, total,
            )  # fmt: skip

        slots.add_up(run, layout.first, gradient, value)
        if len(betas):
            slope = (np.moveaxis(gradient[:, at + place], 1, 0) for place in (0, 1))
            for place, part_of in enumerate(components.of_parameters(*slope)):
                gradient[:, at + place] = np.moveaxis(part_of, 0, 1)
        return gradient

    def _add_product_entropy(
        self, q: Mixtures, part: NDArray[np.int32], gradient: FloatArray, value: FloatArray
    ) -> None:
        layout = self.problem.layout
        product_entropy(
            layout.family, layout.first, layout.lower, layout.upper, self.problem.multiplicity,
            part, q.weights, q.entries, gradient, value,
        )  # fmt: skip

    def _grid(self) -> Grid:
        if self.grid is None:
            self.grid = Grid.of(self.problem, self.accuracy)
        return self.grid

    def _add_bethe(self, q: Mixtures, gradient: FloatArray, value: FloatArray) -> None:
        """Add the negative Bethe entropy given each component, and its gradient."""
        layout, scopes, grid = self.problem.layout, self.problem.scopes, self._grid()
        assert scopes is not None
        (starts, size), num_nodes = q.weights.shape, int(grid.row_start[-1])
        table = np.empty((starts, num_nodes * size**2))
        nodes = np.empty((starts, num_nodes * size * 3))

        rows = grid.row_variable, grid.row_set, grid.row_start, grid.set_nodes

        def fill_gaussians(begin: int, end: int) -> None:
            tabulate_gaussians(
                begin, end, grid.gaussian_rows, *rows, grid.hermite_z, grid.hermite_w,
                layout.first, q.entries, table, nodes,
            )  # fmt: skip

        def fill_betas(begin: int, end: int) -> None:
            tabulate_betas(
                begin, end, grid.beta_rows, *rows, layout.first, layout.lower, layout.upper,
                q.entries, *np.empty((2, grid.hermite_z.shape[1])), table, nodes,
            )  # fmt: skip

        def run(
            begin: int, end: int, target: IntArray, shift: int, to: FloatArray, total: FloatArray
        ) -> None:
            bethe_block(
                begin, end, scopes.slot_ptr, scopes.slots, scopes.num_reals, scopes.coefficient,
                grid.scope_set, grid.set_nodes, layout.first, q.entries, q.weights,
                grid.table_row, grid.row_start, table, nodes, target, shift, *grid.scratch(size),
                to, total,
            )  # fmt: skip

        for fill, count in (
            (fill_gaussians, len(grid.gaussian_rows)),
            (fill_betas, len(grid.beta_rows)),
        ):
            if count:
                _run_all(fill, count, 1 + count // 4096)
        grid.slots.add_up(run, layout.first, gradient, value)

    def _add_overlaps(self, q: Mixtures, gradient: FloatArray, value: FloatArray) -> FloatArray:
        """Add log Σ_j w_j exp(S_kj) given each component k, and the gradient of their mean;
        returns what the weights are worth beyond that."""
        of_roots = self.entropy == "tracey"
        layout, multiplicity = self.problem.layout, self.problem.multiplicity
        size, (num_starts, num_components) = len(multiplicity), q.weights.shape
        overlaps = np.zeros((num_starts, num_components, num_components))
        num_blocks = 1 + size * num_components**2 // threads.BLOCK

        def overlap(begin: int, end: int) -> FloatArray:
            part = np.zeros(overlaps.shape)
            log_overlaps(
                begin, end, layout.family, layout.first, layout.lower, layout.upper, multiplicity,
                q.entries, of_roots, part,
            )  # fmt: skip
            return part

        def slope(begin: int, end: int) -> None:
            overlap_gradient(
                begin, end, layout.family, layout.first, multiplicity, q.entries, q.weights, share,
                of_roots, gradient,
            )  # fmt: skip

        for part in _run_all(overlap, size, num_blocks):
            overlaps += part
        share = np.empty(overlaps.shape)
        log_mixtures(overlaps, q.weights, value, share)
        _run_all(slope, size, num_blocks)
        # ∂/∂w_k of Σ_l w_l log Σ_j w_j exp(S_lj) beyond the logarithm itself.
        return np.einsum("sl,slk->sk", q.weights, share) / q.weights


def _run_all(run: Callable[[int, int], threads.T], size: int, num_blocks: int) -> list[threads.T]:
    """The results of `run` for blocks of about equal size, in order."""
    if num_blocks == 1:
        return [run(0, size)]
    cuts = np.linspace(0, size, num_blocks + 1).astype(np.int64)
    return list(threads.in_order(run, pairwise(cuts.tolist())))


@dataclass(frozen=True, slots=True, eq=False)
class Slots:
    """The slots of terms or scopes, whose gradients are added up in blocks of whole terms."""

    slot_ptr: IntArray  # (term + 1,)
    slots: NDArray[np.int32]
    target: IntArray  # (slot,): first entry of its variable
    source: IntArray  # (slot + 1,): places of the gradients of slots, one behind the other
    cost: IntArray  # (term + 1,): work up to each term, for one component, about in grid points
    most: int
    """Slots of the largest term."""

    @classmethod
    def of(
        cls,
        layout: Layout,
        slot_ptr: IntArray,
        slots: NDArray[np.int32],
        cost: IntArray | None = None,
    ) -> Slots:
        source = offsets((layout.first[1:] - layout.first[:-1])[slots])
        cost = 4 * np.diff(source[slot_ptr]) if cost is None else cost
        most = int(np.diff(slot_ptr).max(initial=1))
        return cls(slot_ptr, slots, layout.first[slots], source, offsets(cost), most)

    def scratch(self) -> tuple[IntArray, FloatArray]:
        """For the slots of the largest term: a state of each, and one number more."""
        return np.empty(self.most, dtype=np.int64), np.empty(self.most + 1)

    def add_up(
        self,
        run: Callable[[int, int, IntArray, int, FloatArray, FloatArray], None],
        first: IntArray,
        gradient: FloatArray,
        value: FloatArray,
    ) -> None:
        """Run all blocks, and add their gradients and values in order.

        run: given a block, where the gradients of slots go, less a shift, and arrays to add to.
        """
        work = gradient.shape[0] * gradient.shape[2]
        if int(self.cost[-1]) * work < 2 * threads.BLOCK:
            run(0, len(self.slot_ptr) - 1, self.target, 0, gradient, value)
            return

        def run_block(begin: int, end: int) -> tuple[FloatArray, FloatArray]:
            low, high = self.source[self.slot_ptr[[begin, end]]].tolist()
            buffer = np.zeros((len(gradient), high - low, gradient.shape[2]))
            part = np.zeros(value.shape)
            run(begin, end, self.source, low, buffer, part)
            return buffer, part

        blocks = threads.cut(self.cost, work)
        found = threads.in_order(run_block, blocks)
        for (begin, end), (buffer, part) in zip(blocks, found, strict=True):
            scatter(begin, end, self.slot_ptr, self.slots, first, self.source, buffer, gradient)
            value += part


@dataclass(frozen=True, slots=True, eq=False)
class Grid:
    """Grids of the scopes of the Bethe entropy: sets of nodes, by number of reals.

    A row is a real with the nodes of a set: at these, the densities of all components are
    tabulated.
    """

    slots: Slots
    scope_set: NDArray[np.int32]  # (scope,)
    set_nodes: IntArray  # (set,)
    hermite_z: FloatArray  # (set, node)
    hermite_w: FloatArray  # (set, node)
    table_row: NDArray[np.int32]  # (set, variable); -1 where it is not needed
    row_variable: NDArray[np.int32]  # (row,)
    row_set: NDArray[np.int32]  # (row,)
    row_start: IntArray  # (row + 1,): nodes of the rows before
    gaussian_rows: IntArray
    beta_rows: IntArray
    longest: int
    """Most points of a slot."""
    most_points: int
    """Points of the largest grid."""

    @classmethod
    def of(cls, problem: FitProblem, accuracy: Accuracy) -> Grid:
        scopes, num_states = problem.scopes, problem.graph.variables.num_states
        assert scopes is not None
        counts, scope_set = np.unique(scopes.num_reals, return_inverse=True)
        set_nodes = np.array([nodes_per_slot(int(n), accuracy) for n in counts], dtype=np.int64)
        hermite = np.zeros((2, len(counts), int(set_nodes.max(initial=1))))
        for number, nodes in enumerate(set_nodes.tolist()):
            hermite[0, number, :nodes], hermite[1, number, :nodes] = hermite_rule(nodes)
        is_used = np.zeros((len(counts), len(num_states)), dtype=bool)
        is_used[np.repeat(scope_set, np.diff(scopes.slot_ptr)), scopes.slots] = True
        row_set, row_variable = np.nonzero(is_used & (num_states == 0))
        is_beta = problem.layout.has(Betas)[row_variable]
        table_row = np.full(is_used.shape, -1, dtype=np.int32)
        table_row[row_set, row_variable] = np.arange(len(row_set))
        points = scopes.points(problem.graph, accuracy).astype(np.int64)
        longest = max(int(set_nodes.max(initial=1)), int(num_states.max(initial=1)))
        return cls(
            Slots.of(problem.layout, scopes.slot_ptr, scopes.slots, points + 8),
            scope_set.astype(np.int32),
            set_nodes,
            hermite[0],
            hermite[1],
            table_row,
            row_variable.astype(np.int32),
            row_set.astype(np.int32),
            offsets(set_nodes[row_set]),
            np.flatnonzero(~is_beta),
            np.flatnonzero(is_beta),
            longest,
            int(points.max(initial=1)),
        )

    def scratch(self, size: int) -> tuple[IntArray, FloatArray, FloatArray, FloatArray]:
        """For the largest scope, and so many components."""
        local = np.empty((size + 2, self.slots.most, self.longest))
        room = np.empty(self.most_points), np.empty(self.most_points)
        return np.empty(self.slots.most, dtype=np.int64), local, *room
