"""The sets of variables whose entropies the Bethe approximation adds up."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hylift.errors import UnsupportedError
from hylift.graph import FactorGraph
from hylift.inference.terms import same_slots
from hylift.numerics.grouping import class_sums, first_members
from hylift.numerics.quadrature import Accuracy, nodes_per_slot

LARGEST_GRID = 2**22
"""Most points at which the density of one scope is evaluated, per component."""


@dataclass(frozen=True, slots=True, eq=False)
class Scopes:
    """Σ coefficient * E[log q] over these scopes is the negative Bethe entropy.

    Each set of variables stands here once, whatever the number of factors over it.
    """

    slot_ptr: NDArray[np.int64]  # (scope + 1,)
    slots: NDArray[np.int32]  # (slot,): variables
    num_reals: NDArray[np.int32]  # (scope,)
    coefficient: NDArray[np.float64]  # (scope,)

    @classmethod
    def of(cls, graph: FactorGraph) -> Scopes:
        """The scopes of all factors, and the variables with their counting numbers."""
        num_variables = graph.num_variables
        # Reals stand last, which have the most points: kernels go over those together.
        rank = np.where(graph.variables.num_states == 0, num_variables, 0)
        by_arity: dict[int, list[tuple[NDArray[np.int32], NDArray[np.float64]]]] = {}
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
            alike, count = same_slots(scope)
            total = class_sums(weight, alike, count)
            # What cancels up to rounding is left out.
            size = class_sums(np.abs(weight), alike, count)
            kept = np.abs(total) > 1e-12 * size
            scopes.append(scope[first_members(alike)[kept]])
            coefficients.append(total[kept])
        arities = np.repeat([s.shape[1] for s in scopes], [len(s) for s in scopes])
        slot_ptr = np.concatenate([[0], np.cumsum(arities, dtype=np.int64)])
        slots = np.concatenate([scope.ravel() for scope in scopes])
        is_real = (graph.variables.num_states == 0)[slots]
        num_reals = np.add.reduceat(is_real, slot_ptr[:-1]) if len(slots) else np.zeros(0)
        return cls(slot_ptr, slots, num_reals.astype(np.int32), np.concatenate(coefficients))

    def __len__(self) -> int:
        return len(self.coefficient)

    def take(self, scopes: NDArray[np.int64]) -> Scopes:
        """Some of the scopes."""
        arity = np.diff(self.slot_ptr)[scopes]
        slot_ptr = np.concatenate([[0], np.cumsum(arity)])
        within = np.arange(slot_ptr[-1]) - np.repeat(slot_ptr[:-1], arity)
        slots = self.slots[np.repeat(self.slot_ptr[scopes], arity) + within]
        return Scopes(slot_ptr, slots, self.num_reals[scopes], self.coefficient[scopes])

    def num_points(self, graph: FactorGraph, accuracy: Accuracy) -> float:
        """Points of all grids together, for one component."""
        return float(np.exp(self._log_points(graph, accuracy)).sum())

    def check_size(self, graph: FactorGraph) -> None:
        """Raises if the grid of a scope would be too large."""
        log_points = self._log_points(graph, "check")
        if log_points.max(initial=0.0) > np.log(LARGEST_GRID):
            at = int(np.argmax(log_points))
            names = graph.variables.names
            scope = [names[int(v)] for v in self.slots[self.slot_ptr[at] : self.slot_ptr[at + 1]]]
            listed = ", ".join(f"'{name}'" for name in scope[:4]) + (", …" if scope[4:] else "")
            raise UnsupportedError(
                f"the Bethe entropy needs the joint density of each factor's variables on a grid, "
                f"and that of {listed} has {np.exp(log_points[at]):.2g} points, more than "
                f"{LARGEST_GRID}: use NPVI or MeanField, which need no grid, or smaller factors"
            )

    def _log_points(self, graph: FactorGraph, accuracy: Accuracy) -> NDArray[np.float64]:
        """(scope,): logarithm of the points of its grid."""
        if not len(self):
            return np.zeros(0)
        per_count = [nodes_per_slot(n, accuracy) for n in range(int(self.num_reals.max()) + 1)]
        nodes = np.repeat(np.array(per_count)[self.num_reals], np.diff(self.slot_ptr))
        num_states = graph.variables.num_states[self.slots]
        per_slot = np.where(num_states > 0, num_states, nodes)
        return np.asarray(np.add.reduceat(np.log(per_slot), self.slot_ptr[:-1]))
