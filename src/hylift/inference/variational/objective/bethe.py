"""The Bethe entropy of a mixture: scopes integrated on grids of nodes and states."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from hylift.components.kernels.nodes import tabulate
from hylift.inference.variational.kernels.bethe import bethe_block
from hylift.inference.variational.kernels.evaluate import bethe_at_once
from hylift.inference.variational.objective.blocks import Slots
from hylift.inference.variational.problem import FloatArray, Mixtures, Problem
from hylift.numerics.quadrature import Accuracy, hermite_rule, nodes_per_slot
from hylift.numerics.threads import in_order


@dataclass(frozen=True, slots=True, eq=False)
class Grid:
    """How the scopes of the Bethe entropy are integrated: sets of nodes, by number of reals."""

    slots: Slots
    scope_set: NDArray[np.int32]  # (scope,)
    set_nodes: NDArray[np.int64]  # (set,)
    hermite_z: FloatArray  # (set, node)
    hermite_w: FloatArray  # (set, node)
    table_row: NDArray[np.int32]  # (set, variable); -1 where it is not needed
    row_variable: NDArray[np.int32]  # (row,)
    row_set: NDArray[np.int32]  # (row,)
    row_start: NDArray[np.int64]  # (row + 1,): nodes of the rows before

    @classmethod
    def of(cls, problem: Problem, accuracy: Accuracy) -> Grid:
        scopes, graph = problem.scopes, problem.graph
        assert scopes is not None
        counts = np.unique(scopes.num_reals)
        scope_set = np.searchsorted(counts, scopes.num_reals).astype(np.int32)
        set_nodes = np.array([nodes_per_slot(int(n), accuracy) for n in counts], dtype=np.int64)
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
            Slots.of(problem, scopes.slot_ptr, scopes.slots, points + 8),
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
