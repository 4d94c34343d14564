"""The order in which variables are eliminated, and the cliques that this makes.

The same structure serves tables (the buckets of variable elimination) and Gaussians (the columns
of a sparse Cholesky factor). A variable is called by its *step*: its position in the order.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hylift.infer.exact.kernels.elimination import greedy

SMALL_TABLES = 100_000
"""Total number of table entries below which no better order is searched for."""

MAX_TRIES = 64
MAX_TRIED_VARIABLES = 200_000
"""Limits of that search: passes, and passes times variables."""


@dataclass(frozen=True, slots=True, eq=False)
class Elimination:
    """An elimination order with the neighbours that each variable has when its turn comes."""

    order: NDArray[np.int32]  # (step,): the variable eliminated
    step: NDArray[np.int32]  # (variable,): when it is eliminated
    ptr: NDArray[np.int64]  # (step + 1,)
    later: NDArray[np.int32]  # steps of the remaining neighbours, increasing within each step

    @property
    def parent(self) -> NDArray[np.int32]:
        """(step,): the first of the later neighbours, or -1."""
        padded = np.append(self.later, np.int32(-1))
        return np.where(np.diff(self.ptr) > 0, padded[self.ptr[:-1]], np.int32(-1))

    def separator_sums(self, per_step: NDArray[np.float64]) -> NDArray[np.float64]:
        """(step,): sum of a number per step over the later neighbours of each."""
        sums = np.zeros(len(self.order))
        some = np.diff(self.ptr) > 0
        sums[some] = np.add.reduceat(per_step[self.later], self.ptr[:-1][some])
        return sums

    def log_cost(self, log_states: NDArray[np.float64]) -> float:
        """Log of the number of entries of all tables together; log_states: (variable,)."""
        by_step = log_states[self.order]
        sizes = by_step + self.separator_sums(by_step)
        return float(np.logaddexp.reduce(sizes)) if len(sizes) else -np.inf


def eliminate(
    num_variables: int,
    edges: NDArray[np.int32],
    *,
    log_states: NDArray[np.float64] | None = None,
    seed: int = 0,
) -> Elimination:
    """A greedy elimination of the graph with these edges (edge, 2).

    Without `log_states`, one pass of minimum degree, as for a Cholesky factorisation. With them,
    cost is the total size of the tables, and where that is large the cheapest of many passes is
    kept: mostly min-fill, every fourth time smallest table first, ties broken at random.
    """
    edges = np.ascontiguousarray(edges, dtype=np.int32)
    if log_states is None:
        ones, zeros = np.ones(num_variables), np.zeros(num_variables)
        return _in_steps(*greedy(num_variables, edges, ones, zeros, False))
    rng = np.random.default_rng(seed)
    max_tries = int(np.clip(MAX_TRIED_VARIABLES // max(num_variables, 1), 1, MAX_TRIES))
    best, best_cost = None, np.inf
    for attempt in range(max_tries):
        noise = rng.random(num_variables) if attempt else np.zeros(num_variables)
        found = _in_steps(*greedy(num_variables, edges, log_states, noise, attempt % 4 != 3))
        cost = found.log_cost(log_states)
        if best is None or cost < best_cost:
            best, best_cost = found, cost
        if best_cost < np.log(SMALL_TABLES):
            break
    assert best is not None
    return best


def scope_edges(scopes: list[NDArray[np.int32]], num_variables: int) -> NDArray[np.int32]:
    """(edge, 2): the pairs of variables that share a factor, each once."""
    codes = [np.zeros(0, dtype=np.int64)]
    for scope in scopes:
        for a in range(scope.shape[1]):
            for b in range(a):
                low = np.minimum(scope[:, a], scope[:, b]).astype(np.int64)
                high = np.maximum(scope[:, a], scope[:, b])
                codes.append(np.unique(low * num_variables + high))
    code = np.unique(np.concatenate(codes))
    return np.stack([code // num_variables, code % num_variables], axis=1).astype(np.int32)


def _in_steps(
    order: NDArray[np.int32], ptr: NDArray[np.int64], later: NDArray[np.int32]
) -> Elimination:
    step = np.empty(len(order), dtype=np.int32)
    step[order] = np.arange(len(order), dtype=np.int32)
    renamed = step[later]
    owner = np.repeat(np.arange(len(order)), np.diff(ptr))
    renamed = renamed[np.lexsort((renamed, owner))]
    return Elimination(order, step, ptr, renamed)
