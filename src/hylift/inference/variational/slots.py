"""Sums over terms and over the scopes of the Bethe entropy, added up in blocks of whole ones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hylift.components import Betas, Layout
from hylift.components.kernels.integrals import tabulate_betas, tabulate_gaussians
from hylift.errors import UnsupportedError
from hylift.graph import FactorGraph, Variables
from hylift.inference.variational.kernels import bethe_block, energy_block, scatter
from hylift.numerics import threads
from hylift.numerics.grouping import class_sums, first_members, group_rows
from hylift.numerics.quadrature import Accuracy, hermite_rule, nodes_per_slot
from hylift.numerics.segments import offsets, ranges

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]

LARGEST_GRID = 2**22
"""Most points at which the density of one scope is evaluated, per component."""


class Target(NamedTuple):
    """Arrays to add the gradients and values of a block to."""

    gradient: FloatArray  # (start, entry, component)
    value: FloatArray  # (start, part, component), from `first_part` on
    slots: IntArray
    """(slot,): less `shift`, the first entry of its gradient."""
    shift: int
    first_part: int


@dataclass(frozen=True, slots=True, eq=False)
class Slots:
    """The slots of terms or scopes, whose gradients are added up in blocks of whole terms."""

    slot_ptr: IntArray  # (term + 1,)
    slots: NDArray[np.int32]
    target: IntArray  # (slot,): first entry of its variable
    source: IntArray  # (slot + 1,): places of the gradients of slots, one behind the other
    cost: IntArray  # (term + 1,): work up to each term, for one component, about in grid points
    part: NDArray[np.int32]  # (term,): increasing
    most: int
    """Slots of the largest term."""

    @classmethod
    def of(
        cls,
        layout: Layout,
        part: NDArray[np.int32],
        slot_ptr: IntArray,
        slots: NDArray[np.int32],
        cost: IntArray | None = None,
    ) -> Slots:
        source = offsets((layout.first[1:] - layout.first[:-1])[slots])
        cost = 4 * np.diff(source[slot_ptr]) if cost is None else cost
        most = int(np.diff(slot_ptr).max(initial=1))
        of = part[slots[slot_ptr[:-1]]]
        return cls(slot_ptr, slots, layout.first[slots], source, offsets(cost), of, most)

    def add_energies(
        self,
        terms: tuple[NDArray[np.int32], IntArray, FloatArray, FloatArray],
        hard: float,
        first: IntArray,
        moments: FloatArray,
        weights: FloatArray,
        gradient: FloatArray,
        value: FloatArray,
    ) -> None:
        """Add the expected energies of terms, and their slopes.

        terms: their discrete slots, where the parameters of each begin, its multiplicity, and all
        parameters. hard: the energy of what is impossible.
        """

        def run(begin: int, end: int, to: Target) -> None:
            energy_block(
                begin, end, self.slot_ptr, self.slots, *terms, hard, self.part, first, moments,
                weights, to.slots, to.shift, to.first_part, *self.scratch(), to.gradient, to.value,
            )  # fmt: skip

        self.add_up(run, first, gradient, value)

    def scratch(self) -> tuple[IntArray, FloatArray]:
        """For the slots of the largest term: a state of each, and one number more."""
        return np.empty(self.most, dtype=np.int64), np.empty(self.most + 1)

    def add_up(
        self,
        run: Callable[[int, int, Target], None],
        first: IntArray,
        gradient: FloatArray,
        value: FloatArray,
    ) -> None:
        """Run all blocks, and add their gradients and values in order."""
        work = gradient.shape[0] * gradient.shape[2]
        if int(self.cost[-1]) * work < 2 * threads.BLOCK:
            run(0, len(self.slot_ptr) - 1, Target(gradient, value, self.target, 0, 0))
            return
        starts, _, size = gradient.shape

        def run_block(begin: int, end: int) -> Target:
            low, high = self.source[self.slot_ptr[[begin, end]]].tolist()
            first_part, last_part = self.part[[begin, end - 1]].tolist()
            buffer = np.zeros((starts, high - low, size))
            total = np.zeros((starts, last_part + 1 - first_part, size))
            to = Target(buffer, total, self.source, low, first_part)
            run(begin, end, to)
            return to

        blocks = threads.cut(self.cost, work)
        found = threads.in_order(run_block, blocks)
        for (begin, end), to in zip(blocks, found, strict=True):
            scatter(
                begin, end, self.slot_ptr, self.slots, first, self.source, to.gradient, gradient
            )
            value[:, to.first_part : to.first_part + to.value.shape[1]] += to.value


def run_all(run: Callable[[int, int], threads.T], size: int, num_blocks: int) -> list[threads.T]:
    """The results of `run` for blocks of about equal size, in order."""
    if num_blocks == 1:
        return [run(0, size)]
    cuts = np.linspace(0, size, num_blocks + 1).astype(np.int64)
    return list(threads.in_order(run, pairwise(cuts.tolist())))


@dataclass(frozen=True, slots=True, eq=False)
class Scopes:
    """Σ coefficient * E[log q] over these scopes is the negative Bethe entropy.

    Each set of variables stands here once, whatever the number of factors over it.
    """

    slot_ptr: NDArray[np.int64]  # (scope + 1,)
    slots: NDArray[np.int32]  # (slot,): variables, reals behind discrete ones
    num_reals: NDArray[np.int64]  # (scope,)
    coefficient: FloatArray  # (scope,)
    num_states: NDArray[np.int32]  # (variable,)

    @classmethod
    def of(cls, graph: FactorGraph) -> Scopes:
        """The scopes of all factors, and the variables with their counting numbers."""
        num_variables = graph.num_variables
        # Reals have the most points: kernels go over those together.
        rank = np.where(graph.variables.num_states == 0, num_variables, 0)
        by_arity: dict[int, list[tuple[NDArray[np.int32], FloatArray]]] = {}
        for group in graph.groups:
            if len(group) and group.arity:
                scope = group.scope
                if group.arity > 1:
                    ranked = np.sort(scope + rank[scope], axis=1)
                    scope = (ranked % num_variables).astype(np.int32)
                by_arity.setdefault(group.arity, []).append((scope, group.multiplicity))
        counting = graph.variables.multiplicity * (1.0 - graph.degree)
        alone = np.arange(num_variables, dtype=np.int32)[:, None]
        by_arity.setdefault(1, []).append((alone, counting))
        scopes, coefficients = [], []
        for arity in sorted(by_arity):
            scope = np.concatenate([part for part, _ in by_arity[arity]])
            weight = np.concatenate([part for _, part in by_arity[arity]])
            alike, count = group_rows(scope)
            total = class_sums(weight, alike, count)
            # What cancels up to rounding is left out.
            size = class_sums(np.abs(weight), alike, count)
            kept = np.abs(total) > 1e-12 * size
            scopes.append(scope[first_members(alike)[kept]])
            coefficients.append(total[kept])
        arities = np.repeat([s.shape[1] for s in scopes], [len(s) for s in scopes])
        slots = np.concatenate([scope.ravel() for scope in scopes])
        is_real = graph.variables.num_states[slots] == 0
        slot_ptr = offsets(arities)
        reals = offsets(is_real)
        return cls(
            slot_ptr, slots, np.diff(reals[slot_ptr]), np.concatenate(coefficients),
            graph.variables.num_states,
        )  # fmt: skip

    def take(self, scopes: NDArray[np.int64]) -> Scopes:
        """Some of the scopes."""
        arity = np.diff(self.slot_ptr)[scopes]
        slot_ptr = offsets(arity)
        slots = self.slots[ranges(self.slot_ptr[scopes], arity)]
        own = self.num_reals[scopes], self.coefficient[scopes]
        return Scopes(slot_ptr, slots, *own, self.num_states)

    def points(self, accuracy: Accuracy) -> FloatArray:
        """(scope,): points of its grid, for one component; an infinite number if too large."""
        counts, which = np.unique(self.num_reals, return_inverse=True)
        per_count = np.array([nodes_per_slot(n, accuracy) for n in counts.tolist()], dtype=np.int64)
        nodes = np.repeat(per_count[which], np.diff(self.slot_ptr))
        num_states = self.num_states[self.slots]
        per_slot = np.where(num_states > 0, num_states, nodes).astype(np.float64)
        with np.errstate(over="ignore"):
            return np.asarray(np.multiply.reduceat(per_slot, self.slot_ptr[:-1]))

    def check_size(self, variables: Variables) -> None:
        """Raise if the grid of a scope would be too large."""
        points = self.points("check")
        if points.max(initial=0.0) > LARGEST_GRID:
            at = int(np.argmax(points))
            scope = [
                variables.names[int(v)]
                for v in self.slots[self.slot_ptr[at] : self.slot_ptr[at + 1]]
            ]
            listed = ", ".join(f"'{name}'" for name in scope[:4]) + (", …" if scope[4:] else "")
            raise UnsupportedError(
                f"the Bethe entropy needs the joint density of each factor's variables on a grid, "
                f"and that of {listed} has {points[at]:.2g} points, more than {LARGEST_GRID}: use "
                "NPVI or MeanField, which need no grid, or smaller factors"
            )

    def grid(self, layout: Layout, part: NDArray[np.int32], accuracy: Accuracy) -> Grid:
        """The grids of all scopes."""
        counts, scope_set = np.unique(self.num_reals, return_inverse=True)
        set_nodes = np.array([nodes_per_slot(int(n), accuracy) for n in counts], dtype=np.int64)
        hermite = np.zeros((2, len(counts), int(set_nodes.max(initial=1))))
        for number, nodes in enumerate(set_nodes.tolist()):
            hermite[0, number, :nodes], hermite[1, number, :nodes] = hermite_rule(nodes)
        is_used = np.zeros((len(counts), len(self.num_states)), dtype=bool)
        is_used[np.repeat(scope_set, np.diff(self.slot_ptr)), self.slots] = True
        row_set, row_variable = np.nonzero(is_used & (self.num_states == 0))
        is_beta = layout.has(Betas)[row_variable]
        table_row = np.full(is_used.shape, -1, dtype=np.int32)
        table_row[row_set, row_variable] = np.arange(len(row_set))
        points = self.points(accuracy).astype(np.int64)
        longest = max(int(set_nodes.max(initial=1)), int(self.num_states.max(initial=1)))
        return Grid(
            self,
            Slots.of(layout, part, self.slot_ptr, self.slots, points + 8),
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


@dataclass(frozen=True, slots=True, eq=False)
class Grid:
    """Grids of the scopes of the Bethe entropy: sets of nodes, by number of reals.

    A row is a real with the nodes of a set: at these, the densities of all components are
    tabulated.
    """

    scopes: Scopes
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

    def add(
        self,
        layout: Layout,
        weights: FloatArray,
        q: FloatArray,
        gradient: FloatArray,
        value: FloatArray,
    ) -> None:
        """Add the negative Bethe entropy given each component, and its gradient; weights, q: the
        parameters of mixtures."""
        scopes, (starts, _, size), num_nodes = self.scopes, q.shape, int(self.row_start[-1])
        table = np.empty((starts, num_nodes * size**2))
        nodes = np.empty((starts, num_nodes * size * 3))
        rows = self.row_variable, self.row_set, self.row_start, self.set_nodes

        def fill_gaussians(begin: int, end: int) -> None:
            tabulate_gaussians(
                begin, end, self.gaussian_rows, *rows, self.hermite_z, self.hermite_w,
                layout.first, q, table, nodes,
            )  # fmt: skip

        def fill_betas(begin: int, end: int) -> None:
            tabulate_betas(
                begin, end, self.beta_rows, *rows, layout.first, layout.lower, layout.upper, q,
                *np.empty((2, self.hermite_z.shape[1])), table, nodes,
            )  # fmt: skip

        def run(begin: int, end: int, to: Target) -> None:
            bethe_block(
                begin, end, scopes.slot_ptr, scopes.slots, scopes.num_reals, scopes.coefficient,
                self.slots.part, self.scope_set, self.set_nodes, layout.first, q, weights,
                self.table_row, self.row_start, table, nodes, to.slots, to.shift, to.first_part,
                *self.scratch(size), to.gradient, to.value,
            )  # fmt: skip

        for fill, count in (
            (fill_gaussians, len(self.gaussian_rows)),
            (fill_betas, len(self.beta_rows)),
        ):
            if count:
                run_all(fill, count, 1 + count // 4096)
        self.slots.add_up(run, layout.first, gradient, value)

    def scratch(self, size: int) -> tuple[IntArray, FloatArray, FloatArray, FloatArray]:
        """For the largest scope, and so many components."""
        local = np.empty((size + 2, self.slots.most, self.longest))
        room = np.empty(self.most_points), np.empty(self.most_points)
        return np.empty(self.slots.most, dtype=np.int64), local, *room
