"""The order in which variables are eliminated, and the cliques that this makes.

The same structure serves tables (the buckets of variable elimination) and Gaussians (the columns
of a sparse Cholesky factor). A variable is called by its *step*: its position in the order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csc_array
from scipy.sparse.csgraph import reverse_cuthill_mckee

from hylift.errors import IntractableError
from hylift.inference.exact.kernels import elimination as kernels
from hylift.inference.exact.meter import (
    OBSERVE_MORE,
    SECONDS_PER_ENTRY,
    SECONDS_PER_TRY,
    check_bound,
    limit_of,
)
from hylift.numerics.segments import inverse, offsets
from hylift.numerics.sparse import connected, minimum_degree, num_products

FloatArray = NDArray[np.float64]
Ids = NDArray[np.int64]
Ids32 = NDArray[np.int32]
Flags = NDArray[np.bool_]

SMALL_TABLES = 100_000
"""Table entries, in total, below which no better order is searched for."""

HOPELESS = float(np.log(2.0**30))
"""Log excess of tables over their limit beyond which no further orders are tried."""

MAX_BAND = 64
"""Widest band of a given order that is tried."""

MAX_TRIES = 64
MAX_TRIED_VARIABLES = 200_000
MAX_WORK = 2**28
"""Limits of that search: passes, passes times variables, and pairs of neighbours visited."""

CHUNK = 2**23
"""Pairs of neighbours visited before the user can interrupt: some tenths of a second."""

FEW_TO_FACTORISE = 1000
"""Graphs up to this size are first eliminated by minimum degree, which SciPy finds at once."""

MOST_PRODUCTS = 20_000_000_000
"""Products of a factorisation of reals, which cannot be interrupted: some tens of seconds."""

SAMPLE = 500_000
"""Factors of each group that a first bound considers."""


def never() -> None:
    """Look at no clock."""


class DenselyCoupledError(IntractableError):
    """The joint Gaussian of the reals is too costly, for each method that needs one."""


@dataclass(frozen=True, slots=True, eq=False)
class Elimination:
    """An elimination order with the neighbours that each variable has when its turn comes."""

    order: Ids32  # (step,): the variable eliminated
    step: Ids32  # (variable,): when it is eliminated
    ptr: Ids  # (step + 1,)
    later: Ids32  # steps of the remaining neighbours, increasing within each step

    @property
    def parent(self) -> Ids32:
        """(step,): the first of the later neighbours, or -1."""
        padded = np.append(self.later, np.int32(-1))
        return np.where(np.diff(self.ptr) > 0, padded[self.ptr[:-1]], np.int32(-1))

    @property
    def num_products(self) -> float:
        """Products that it takes to factorise a matrix of reals."""
        width = np.diff(self.ptr).astype(np.float64)
        return float(width @ (width + 1))

    def separator_sums(self, per_step: FloatArray) -> FloatArray:
        """(step,): sum of a number per step over the later neighbours of each."""
        sums = np.zeros(len(self.order))
        some = np.diff(self.ptr) > 0
        sums[some] = np.add.reduceat(per_step[self.later], self.ptr[:-1][some])
        return sums


def eliminate_tables(
    log_states: FloatArray,
    edges: Ids32,
    *,
    log_limit: float = np.inf,
    effort: float = 1.0,
    look: Callable[[], None] = never,
) -> Elimination:
    """An order that keeps the tables of discrete variables small; log_states: (variable,).

    Every connected component gets the best of several orders: by minimum degree, as numbered, by
    bandwidth, and greedy ones (mostly fewest edges filled, every fourth time smallest table first),
    with ties broken at random, until that takes longer than the tables, times `effort`. Raises
    where all orders would be, or are, hopelessly beyond the limit (log of the entries of tables).
    look: called from time to time; it may raise.
    """
    check_bound(log_states, edges, log_limit)
    num_variables = len(log_states)
    component = connected(num_variables, edges)
    num_components = int(component.max(initial=-1)) + 1
    cost = np.full(num_components, log_limit + HOPELESS)
    rank = np.full(num_variables, -1)
    # Of a forest each pair of neighbours is a table: no order can do better.
    least = np.logaddexp.reduce(log_states[edges].sum(axis=1)) if len(edges) else -np.inf
    orders = _orders(log_states, edges, component, cost, np.random.default_rng(0), look)
    for tried, (found, given_up) in enumerate(orders):
        by_step = log_states[found.order]
        size = by_step + found.separator_sums(by_step)
        found_cost = np.full(num_components, -np.inf)
        np.logaddexp.at(found_cost, component[found.order], size)
        found_cost[given_up] = np.inf
        better = (found_cost < cost)[component]
        rank[better] = found.step[better]
        np.minimum(cost, found_cost, out=cost)
        total = float(np.logaddexp.reduce(cost)) if num_components else -np.inf
        if total < np.log(SMALL_TABLES) or total <= least + np.log(2):
            break
        spent = (tried + 1) * num_variables * SECONDS_PER_TRY
        most = min(log_limit, 700.0) if effort < 1 else 700.0
        worth = effort * SECONDS_PER_ENTRY * np.exp(min(total, most))
        if tried >= 3 and (spent > worth or total >= log_limit + HOPELESS):
            break
    if (rank < 0).any():
        raise IntractableError(
            f"exact elimination of these {num_variables} variables has tables of more than "
            f"2^{(log_limit + HOPELESS) / np.log(2):.0f} entries in every order tried. "
            f"{limit_of(np.exp(log_limit))}",
            OBSERVE_MORE,
        )
    return _eliminate_by(np.lexsort((rank, component)).astype(np.int32), edges)


def num_tries(num_variables: int) -> int:
    """Orders that are tried, at most, where tables are large."""
    return int(np.clip(MAX_TRIED_VARIABLES // max(num_variables, 1), 1, MAX_TRIES))


def _orders(
    log_states: FloatArray,
    edges: Ids32,
    component: Ids32,
    log_limit: FloatArray,
    rng: np.random.Generator,
    look: Callable[[], None],
) -> Iterator[tuple[Elimination, Flags]]:
    """Orders worth trying, the likeliest first, each with the components (component,) for which
    it was given up, because its tables pass the limit: log_limit (component,), read at every try.
    """
    num, none = len(log_states), np.zeros(len(log_limit), dtype=bool)
    if num <= FEW_TO_FACTORISE:
        yield eliminate_reals(num, edges), none
    tries = num_tries(num)
    graph = (log_states, edges, component, log_limit)
    first, passed, work = _greedy(*graph, np.zeros(num), True, look)
    yield first, passed
    banded = reverse_cuthill_mckee(_links(num, edges).tocsr(), symmetric_mode=True)
    for order in (np.arange(num, dtype=np.int32), banded.astype(np.int32)):
        if _bandwidth(order, edges) <= MAX_BAND:
            yield _eliminate_by(order, edges), none
    for attempt in range(1, tries):
        if work > MAX_WORK:
            return
        elimination, given_up, more = _greedy(*graph, rng.random(num), attempt % 4 != 3, look)
        work += more
        yield elimination, given_up


def greedy_order(log_states: FloatArray, edges: Ids32, log_limit: float) -> Ids32:
    """(step,): an order by fewest edges filled; from where the tables of a connected part pass the
    limit on, as numbered."""
    component = connected(len(log_states), edges)
    limits = np.full(int(component.max(initial=-1)) + 1, log_limit)
    graph = (log_states, edges, component, limits)
    return _greedy(*graph, np.zeros(len(log_states)), True, never)[0].order


def _greedy(
    log_states: FloatArray,
    edges: Ids32,
    component: Ids32,
    log_limit: FloatArray,
    noise: FloatArray,
    by_fill: bool,
    look: Callable[[], None],
) -> tuple[Elimination, Flags, int]:
    """A greedy order, the components (component,) for which it was given up, and the work done."""
    state = _start(log_states, edges, component, log_limit, noise)
    work = 0
    while state.counts[kernels.LEFT] > 0:
        left, short = kernels.greedy(state, by_fill, CHUNK)
        work += CHUNK - left
        look()
        if short:
            state = _with_room(state, short)
    step = int(state.counts[kernels.STEPS])
    state.order[step:] = np.flatnonzero(state.variable["done"] == 0)
    state.ptr[step:] = state.ptr[step]
    later = state.later[: state.ptr[step]]
    given_up = state.component["share"] > 1 + kernels.ROUNDING
    place = inverse(state.order, len(state.order), np.int32)
    return _sorted(state.order, state.ptr, place[later]), given_up, work


def _start(
    log_states: FloatArray, edges: Ids32, component: Ids32, log_limit: FloatArray, noise: FloatArray
) -> kernels.Greedy:
    """The initial state of a greedy elimination."""
    num, room = len(log_states), 2 * len(edges) + 16
    counts = np.zeros(7, dtype=np.int64)
    counts[kernels.LEFT], counts[kernels.PENDING] = num, -1
    variable = np.zeros(num, dtype=kernels.VARIABLE)
    variable["weight"] = variable["size"] = log_states
    variable["noise"], variable["component"] = noise, component
    variable["head"], variable["priority"] = -1, np.nan
    parts = np.zeros(len(log_limit), dtype=kernels.COMPONENT)
    parts["log_limit"], parts["left"] = log_limit, np.bincount(component, minlength=len(log_limit))
    return kernels.Greedy(
        edges,
        variable,
        parts,
        counts,
        link=np.empty(room, dtype=kernels.LINK),
        pairs=np.full(1 << (2 * room - 1).bit_length(), -1, dtype=np.int64),
        heap=np.empty(num + 16, dtype=kernels.ENTRY),
        order=np.empty(num, dtype=np.int32),
        ptr=np.zeros(num + 1, dtype=np.int64),
        later=np.empty(room, dtype=np.int32),
        around=np.empty(num, dtype=np.int64),
        room=np.empty(num, dtype=np.int64),
    )


def _with_room(state: kernels.Greedy, short: int) -> kernels.Greedy:
    """The same elimination, with room for a variable of so many neighbours."""
    counts = state.counts
    links = int(counts[kernels.LINKS]) + short * (short - 1)
    pairs = state.pairs
    if links > len(pairs):
        pairs = np.full(1 << (2 * links - 1).bit_length(), -1, dtype=np.int64)
        kernels.rehash(state.pairs, pairs)
    return state._replace(
        link=_resized(state.link, links),
        pairs=pairs,
        heap=_resized(state.heap, int(counts[kernels.QUEUED]) + short),
        later=_resized(state.later, int(state.ptr[counts[kernels.STEPS]]) + short),
    )


def _resized(array: NDArray[Any], room: int) -> NDArray[Any]:
    """The array, or one with the same beginning that is twice as long, or as long as is needed."""
    if room <= len(array):
        return array
    larger = np.empty(max(room, 2 * len(array)), dtype=array.dtype)
    larger[: len(array)] = array
    return larger


def _bandwidth(order: Ids32, edges: Ids32) -> int:
    """The largest distance of two neighbours in an order."""
    step = inverse(order, len(order), np.int32)
    return int(np.abs(step[edges[:, 0]] - step[edges[:, 1]]).max(initial=0))


def eliminate_reals(num_variables: int, edges: Ids32, num_last: int = 0) -> Elimination:
    """The elimination of reals in an order that keeps the factor of a sparse matrix sparse, and
    after them of `num_last` more in their own order; raises where any would take too long."""
    first = order_of_reals(num_variables, edges[(edges < num_variables).all(axis=1)])
    order = np.append(first, num_variables + np.arange(num_last, dtype=np.int32))
    if len(order) > FEW_TO_FACTORISE:
        pattern = _pattern(len(order), edges)
        step = inverse(order, len(order), np.int32)
        if num_products(pattern, step, MOST_PRODUCTS) > MOST_PRODUCTS:
            raise DenselyCoupledError(
                f"the joint Gaussian of {len(order):,} reals takes more than {MOST_PRODUCTS:.0e} "
                "products: its reals are coupled too densely",
                OBSERVE_MORE,
            )
    return _eliminate_by(order, edges)


def order_of_reals(num_variables: int, edges: Ids32) -> Ids32:
    """SciPy's minimum degree, with variables of very many neighbours last."""
    degree = np.bincount(edges.reshape(-1), minlength=num_variables)
    hub = degree > max(64.0, 10 * np.sqrt(num_variables))
    rank = np.where(hub, num_variables, 0)
    plain = np.flatnonzero(~hub)
    number = np.cumsum(~hub, dtype=np.int32) - np.int32(1)
    inner = edges[~hub[edges].any(axis=1)]
    if len(inner):
        rank[plain] = minimum_degree(_pattern(len(plain), number[inner]))
    return np.argsort(rank, kind="stable").astype(np.int32)


def _eliminate_by(order: Ids32, edges: Ids32) -> Elimination:
    """The elimination in a given order."""
    step = inverse(order, len(order), np.int32)
    low, high = np.sort(step[edges], axis=1).T
    start = np.searchsorted(np.sort(low), np.arange(len(order) + 1))
    ptr, later = kernels.symbolic(start, high[np.argsort(low, kind="stable")])
    return _sorted(order, ptr, later)


def _pattern(num_variables: int, edges: Ids32) -> csc_array:
    """The symmetric matrix with a 1 for every edge, and on its diagonal."""
    own = np.arange(num_variables, dtype=np.int32)
    row, column = np.concatenate([edges.T, edges.T[::-1], [own, own]], axis=1)
    order = np.lexsort((row, column))
    start = offsets(np.bincount(column, minlength=num_variables))
    return csc_array((np.ones(len(row)), row[order], start), (num_variables,) * 2)


def _links(num_variables: int, edges: Ids32) -> coo_array:
    """The symmetric matrix with a 1 for every edge."""
    both = np.concatenate([edges, edges[:, ::-1]])
    return coo_array((np.ones(len(both)), (both[:, 0], both[:, 1])), (num_variables,) * 2)


def check_tables(num_states: Ids32, scopes: list[Ids32], max_entries: int) -> None:
    """Raise if some of the tables alone make one beyond the limit in any order.

    num_states: (variable,), 0 of reals
    """
    number, sizes = number_axes(num_states)
    sample = scope_edges([number[scope[:SAMPLE]] for scope in scopes], len(sizes))
    check_bound(np.log(sizes), sample, float(np.log(max_entries)))


def number_axes(num_states: Ids32) -> tuple[Ids32, Ids32]:
    """(variable,): numbers from 0 of those with states; and (number,): their states."""
    has = num_states > 0
    return np.cumsum(has, dtype=np.int32) - np.int32(1), num_states[has]


def scope_edges(scopes: list[Ids32], num_variables: int) -> Ids32:
    """(edge, 2): the pairs of variables that share a factor, each once."""
    codes = [np.zeros(0, dtype=np.int64)]
    for scope in scopes:
        for a in range(scope.shape[1]):
            for b in range(a):
                low = np.minimum(scope[:, a], scope[:, b]).astype(np.int64)
                high = np.maximum(scope[:, a], scope[:, b])
                codes.append(_distinct(low * num_variables + high))
    code = _distinct(np.concatenate(codes))
    low = code // num_variables
    return np.stack([low, code - low * num_variables], axis=1, dtype=np.int32, casting="unsafe")


def scopes_by_arity(start: Ids, arity: Ids, slots: Ids32) -> list[Ids32]:
    """The runs of `slots` of length `arity` from `start` on, as arrays (term, slot)."""
    return [slots[start[arity == size][:, None] + np.arange(size)] for size in np.unique(arity)]


def _distinct(codes: Ids) -> Ids:
    """Each number once, in order; sorted, since NumPy's own hashing is slow on many numbers."""
    codes = np.sort(codes)
    return codes[np.append(True, codes[1:] != codes[:-1])[: len(codes)]]


def _sorted(order: Ids32, ptr: Ids, later: Ids32) -> Elimination:
    """The elimination, with the steps of the later neighbours sorted."""
    owner = np.repeat(np.arange(len(order)), np.diff(ptr))
    step = inverse(order, len(order), np.int32)
    return Elimination(order, step, ptr, later[np.lexsort((later, owner))])
