"""The order in which variables are eliminated, and the cliques that this makes.

The same structure serves tables (the buckets of variable elimination) and Gaussians (the columns
of a sparse Cholesky factor). A variable is called by its *step*: its position in the order.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, diags_array
from scipy.sparse.csgraph import connected_components, reverse_cuthill_mckee
from scipy.sparse.linalg import splu

from hylift.inference.exact.kernels import elimination as kernels

SMALL_TABLES = 100_000
"""Total number of table entries below which no better order is searched for."""

HOPELESS = float(np.log(2.0**30))
"""How far tables may exceed their limit, in logs, for further orders to be worth a try."""

MAX_BAND = 64
"""Widest band of an order that is tried as it is."""

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


def eliminate_tables(
    log_states: NDArray[np.float64],
    edges: NDArray[np.int32],
    *,
    seed: int = 0,
    log_limit: float = np.inf,
) -> Elimination:
    """An order that keeps the tables of discrete variables small; log_states: (variable,).

    Every connected component gets the best of several orders: as numbered, by bandwidth, and
    greedy ones (mostly fewest edges filled, every fourth time smallest table first), with ties
    broken at random as long as its tables are large, yet not hopelessly beyond the limit (log of
    the entries of all tables).
    """
    num_variables = len(log_states)
    component = connected(num_variables, edges)
    num_components = int(component.max(initial=-1)) + 1
    cost = np.full(num_components, np.inf)
    rank = np.arange(num_variables)
    for tried, found in enumerate(_orders(log_states, edges, np.random.default_rng(seed))):
        by_step = log_states[found.order]
        size = by_step + found.separator_sums(by_step)
        found_cost = np.full(num_components, -np.inf)
        np.logaddexp.at(found_cost, component[found.order], size)
        better = (found_cost < cost)[component]
        rank[better] = found.step[better]
        cost = np.minimum(cost, found_cost)
        total = float(np.logaddexp.reduce(cost)) if num_components else -np.inf
        if total < np.log(SMALL_TABLES) or (tried >= 2 and total > log_limit + HOPELESS):
            break
    return _eliminate_by(np.lexsort((rank, component)).astype(np.int32), edges)


def _orders(
    log_states: NDArray[np.float64], edges: NDArray[np.int32], rng: np.random.Generator
) -> Iterator[Elimination]:
    """Orders worth trying, the likeliest first."""
    num = len(log_states)
    tries = int(np.clip(MAX_TRIED_VARIABLES // max(num, 1), 1, MAX_TRIES))
    yield _in_steps(*kernels.greedy(num, edges, log_states, np.zeros(num), True))
    banded = reverse_cuthill_mckee(_links(num, edges).tocsr(), symmetric_mode=True)
    for order in (np.arange(num, dtype=np.int32), banded.astype(np.int32)):
        if _bandwidth(order, edges) <= MAX_BAND:
            yield _eliminate_by(order, edges)
    for attempt in range(1, tries):
        noise = rng.random(num)
        yield _in_steps(*kernels.greedy(num, edges, log_states, noise, attempt % 4 != 3))


def _bandwidth(order: NDArray[np.int32], edges: NDArray[np.int32]) -> int:
    """The largest distance of two neighbours in an order."""
    step = _inverse(order)
    return int(np.abs(step[edges[:, 0]] - step[edges[:, 1]]).max(initial=0))


def eliminate_reals(num_variables: int, edges: NDArray[np.int32]) -> Elimination:
    """An order that keeps the factor of a sparse matrix sparse: SciPy's minimum degree, with
    variables of very many neighbours last."""
    degree = np.bincount(edges.reshape(-1), minlength=num_variables)
    hub = degree > max(64.0, 10 * np.sqrt(num_variables))
    rank = np.where(hub, num_variables, 0)
    plain = np.flatnonzero(~hub)
    number = np.cumsum(~hub, dtype=np.int32) - np.int32(1)
    inner = edges[~hub[edges].any(axis=1)]
    if len(inner):
        # Any dominant matrix with this pattern will do: only the order of its columns is used.
        links = _links(len(plain), number[inner])
        total = np.asarray(links.sum(axis=1)).reshape(-1)
        factor = splu(
            (diags_array(total + 1.0) - links).tocsc(),
            permc_spec="MMD_AT_PLUS_A",
            diag_pivot_thresh=0.0,
            options={"SymmetricMode": True},
        )
        rank[plain] = factor.perm_c
    return _eliminate_by(np.argsort(rank, kind="stable").astype(np.int32), edges)


def _eliminate_by(order: NDArray[np.int32], edges: NDArray[np.int32]) -> Elimination:
    """The elimination in a given order."""
    step = _inverse(order)
    low, high = np.sort(step[edges], axis=1).T
    start = np.searchsorted(np.sort(low), np.arange(len(order) + 1))
    ptr, later = kernels.symbolic(start, high[np.argsort(low, kind="stable")])
    return _sorted(order, step, ptr, later)


def connected(num_variables: int, edges: NDArray[np.int32]) -> NDArray[np.int32]:
    """(variable,): the connected component of each."""
    return connected_components(_links(num_variables, edges), directed=False)[1]


def _links(num_variables: int, edges: NDArray[np.int32]) -> coo_array:
    """The symmetric matrix with a 1 for every edge."""
    both = np.concatenate([edges, edges[:, ::-1]])
    return coo_array((np.ones(len(both)), (both[:, 0], both[:, 1])), (num_variables,) * 2)


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
    """The elimination, from the variables that are left beside each in turn."""
    step = _inverse(order)
    return _sorted(order, step, ptr, step[later])


def _sorted(
    order: NDArray[np.int32],
    step: NDArray[np.int32],
    ptr: NDArray[np.int64],
    later: NDArray[np.int32],
) -> Elimination:
    owner = np.repeat(np.arange(len(order)), np.diff(ptr))
    return Elimination(order, step, ptr, later[np.lexsort((later, owner))])


def _inverse(order: NDArray[np.int32]) -> NDArray[np.int32]:
    """(variable,): its place in an order."""
    step = np.empty_like(order)
    step[order] = np.arange(len(order), dtype=np.int32)
    return step
