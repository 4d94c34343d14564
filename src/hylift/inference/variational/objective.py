"""Free energies of mixtures of products, and their gradients."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from hylift.components import Betas
from hylift.components.kernels.integrals import (
    log_mixtures,
    log_overlaps,
    overlap_gradient,
    product_entropy,
    tabulate_betas,
    tabulate_gaussians,
)
from hylift.inference.variational.functions import add_functions
from hylift.inference.variational.joint import AtMixture, JointGaussians
from hylift.inference.variational.kernels import bethe_block, energy_block
from hylift.inference.variational.problem import FitProblem, FloatArray, Mixtures
from hylift.inference.variational.slots import Slots, Target
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
        slots = problem.terms.slot_ptr, problem.terms.slots
        self.terms = Slots.of(problem.layout, problem.part, *slots)
        self.grid: Grid | None = None
        """Of the Bethe entropy; a single product needs none."""

    def evaluate(self, q: Mixtures) -> Evaluation:
        """The free energy and its gradient at each of the candidates."""
        problem, weights = self.problem, q.weights
        value = np.zeros(weights.shape)
        joint = None if self.joint is None else self.joint.at(q)
        gradient = self._add_energies(q if joint is None else joint.at_means, value)
        if joint is not None:
            joint.add_values(value)
            q = joint.of_states
        if problem.functions:
            add_functions(problem, q, self.accuracy, self.hard, gradient, value)
        value[:, 0] -= problem.log_constant
        of_weights: FloatArray | float = 0.0
        is_single = q.num_components == 1
        if self.entropy == "tracey" or (self.entropy == "bethe" and is_single):
            self._add_product_entropy(q, gradient, value)
        if self.entropy != "bethe":
            of_weights = self._add_overlaps(q, gradient, value, joint)
        elif not is_single:
            self._add_bethe(q, gradient, value)
        return Evaluation((weights * value).sum(axis=2), value + of_weights, gradient)

    def restricted(self, is_kept: NDArray[np.bool_]) -> Objective:
        """The same for some of the parts (part,), without constants."""
        problem = self.problem.restricted(is_kept)
        joint = None if self.joint is None else JointGaussians.of(problem)
        return Objective(problem, self.entropy, self.accuracy, self.hard, self.tolerance, joint)

    def portions(self, q: Mixtures) -> Iterator[Mixtures]:
        """The candidates, as many at a time as memory holds."""
        num_starts, size = q.num_starts, q.num_components
        per_start = 8 * (q.entries[0].size + q.weights[0].size * size)
        if self.entropy == "bethe" and size > 1:
            per_start += int(self._grid().row_start[-1]) * (size + 3) * size
        step = max(1, MOST_NUMBERS // max(1, per_start))
        for begin in range(0, num_starts, step):
            yield q.take(list(range(begin, min(begin + step, num_starts))))

    def _add_energies(self, q: Mixtures, value: FloatArray) -> FloatArray:
        """The gradient of the expected energies of terms; adds these to value (start, part,
        component)."""
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

        def run(begin: int, end: int, to: Target) -> None:
            energy_block(
                begin, end, terms.slot_ptr, terms.slots, terms.num_discrete, terms.base,
                terms.multiplicity, terms.theta, self.hard, slots.part, layout.first, moments,
                q.weights, to.slots, to.shift, to.first_part, *slots.scratch(), to.gradient,
                to.value,
            )  # fmt: skip

        slots.add_up(run, layout.first, gradient, value)
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

    def _grid(self) -> Grid:
        if self.grid is None:
            self.grid = Grid.of(self.problem, self.accuracy)
        return self.grid

    def _add_bethe(self, q: Mixtures, gradient: FloatArray, value: FloatArray) -> None:
        """Add the negative Bethe entropy given each component, and its gradient."""
        layout, scopes, grid = self.problem.layout, self.problem.scopes, self._grid()
        assert scopes is not None
        starts, size, num_nodes = q.num_starts, q.num_components, int(grid.row_start[-1])
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

        def run(begin: int, end: int, to: Target) -> None:
            bethe_block(
                begin, end, scopes.slot_ptr, scopes.slots, scopes.num_reals, scopes.coefficient,
                grid.slots.part, grid.scope_set, grid.set_nodes, layout.first, q.entries, q.weights,
                grid.table_row, grid.row_start, table, nodes, to.slots, to.shift, to.first_part,
                *grid.scratch(size), to.gradient, to.value,
            )  # fmt: skip

        for fill, count in (
            (fill_gaussians, len(grid.gaussian_rows)),
            (fill_betas, len(grid.beta_rows)),
        ):
            if count:
                _run_all(fill, count, 1 + count // 4096)
        grid.slots.add_up(run, layout.first, gradient, value)

    def _add_overlaps(
        self, q: Mixtures, gradient: FloatArray, value: FloatArray, joint: AtMixture | None
    ) -> FloatArray:
        """Add log Σ_j w_j exp(S_kj) given each component k, and the gradient of their mean;
        returns what the weights are worth beyond that."""
        of_roots = self.entropy == "tracey"
        problem, layout, multiplicity = self.problem, self.problem.layout, self.problem.multiplicity
        size, part = len(multiplicity), problem.part
        overlaps = np.zeros((*q.weights.shape, q.num_components))
        num_blocks = 1 + size * q.num_components**2 // threads.BLOCK
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

        for low, found in _run_all(overlap, size, num_blocks):
            overlaps[:, low : low + found.shape[1]] += found
        if joint is not None:
            joint.add_overlaps(overlaps)
        share = np.empty(overlaps.shape)
        log_mixtures(overlaps, q.weights, problem.copies, value, share)
        _run_all(slope, size, num_blocks)
        if joint is not None:
            joint.add_slopes(share, gradient)
        # ∂/∂w_k of Σ_l w_l log Σ_j w_j exp(S_lj) beyond the logarithm itself.
        beyond = np.einsum("spl,splk->spk", q.weights, share) / q.weights
        return np.asarray(problem.copies[:, None] * beyond)


def _run_all(run: Callable[[int, int], threads.T], size: int, num_blocks: int) -> list[threads.T]:
    """The results of `run` for blocks of about equal size, in order."""
    if num_blocks == 1:
        return [run(0, size)]
    cuts = np.linspace(0, size, num_blocks + 1).astype(np.int64)
    return list(threads.in_order(run, pairwise(cuts.tolist())))


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
            Slots.of(problem.layout, problem.part, scopes.slot_ptr, scopes.slots, points + 8),
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
