"""Elimination of a graph: a greedy order, or the structure that a given order makes."""

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

HUB_DEGREE = 128
"""Variables with more neighbours are kept for later without counting the edges they would fill."""

ROUNDING = 1e-9
"""How far a sum of table sizes may pass its limit, relative to that, and still be within it."""

LINKED, RANKED, STEPS, LINKS, QUEUED, LEFT, PENDING = range(7)
"""Places in the counts of a `Greedy`: edges linked, variables with a priority, variables
eliminated, links used, entries of the heap, variables still to eliminate, and the variable whose
turn it is, or -1."""


class Greedy(NamedTuple):
    """All that a greedy elimination knows, so that it can stop and go on.

    Neighbours are linked lists, joined pairs an open-addressing set, priorities a heap whose
    outdated entries are passed over.
    """

    edges: NDArray[np.int32]  # (edge, 2)
    weights: NDArray[np.float64]  # (variable,): log of the number of states
    noise: NDArray[np.float64]  # (variable,)
    component: NDArray[np.int32]  # (variable,)
    log_limit: NDArray[np.float64]  # (component,): given up once its tables together pass this
    left: NDArray[np.int64]  # (component,): variables to eliminate
    share: NDArray[np.float64]  # (component,): of its limit, used
    counts: NDArray[np.int64]  # (7,): see above
    head: NDArray[np.int64]  # (variable,): its first link
    link: NDArray[np.int64]  # the next link
    to: NDArray[np.int32]  # (link,): the neighbour
    pairs: NDArray[np.int64]  # the set of joined pairs
    degree: NDArray[np.int64]  # (variable,)
    size: NDArray[np.float64]  # (variable,): log of the entries of its table, were it next
    done: NDArray[np.bool_]  # (variable,)
    priority: NDArray[np.float64]  # (variable,)
    heap: NDArray[np.float64]  # priorities
    owner: NDArray[np.int32]  # whose they are
    order: NDArray[np.int32]  # (step,)
    ptr: NDArray[np.int64]  # (step + 1,)
    later: NDArray[np.int32]  # neighbours left at each step
    around: NDArray[np.int32]  # scratch: the neighbours of the variable whose turn it is
    room: NDArray[np.int32]  # scratch: those of another


@njit(cache=True)
def _slot(table, key):
    """Where `key` is, or would go, in an open-addressing set."""
    mask = len(table) - 1
    at = (key * np.int64(-7046029254386353131) >> np.int64(20)) & mask
    while table[at] != -1 and table[at] != key:
        at = (at + 1) & mask
    return at


@njit(cache=True)
def _missing(neighbours, count, table, num):
    """How many pairs among the first `count` neighbours are not joined."""
    missing = 0
    for i in range(count):
        for j in range(i):
            a, b = neighbours[i], neighbours[j]
            key = np.int64(min(a, b)) * num + max(a, b)
            if table[_slot(table, key)] == -1:
                missing += 1
    return missing


@njit(cache=True)
def _alive(v, head, link, to, done, out):
    """Writes the remaining neighbours of v, and returns their number; forgets the others."""
    count = 0
    before, e = -1, head[v]
    while e != -1:
        if done[to[e]]:
            if before == -1:
                head[v] = link[e]
            else:
                link[before] = link[e]
        else:
            out[count] = to[e]
            count += 1
            before = e
        e = link[e]
    return count


@njit(cache=True)
def _priority(s, v, by_fill):
    """What is eliminated first is least: by edges to fill, then size of the table; or by size."""
    if not by_fill:
        return s.size[v] + 1e-3 * s.noise[v]
    if s.degree[v] > HUB_DEGREE:
        return 0.5 * s.degree[v] * (s.degree[v] - 1.0)
    count = _alive(v, s.head, s.link, s.to, s.done, s.room)
    missing = _missing(s.room, count, s.pairs, len(s.head))
    return missing + 0.9 * s.noise[v] + 1e-6 * s.size[v]


@njit(cache=True)
def _push(heap, owner, size, key, v):
    """Adds an entry to a binary heap of `size` entries that has room for it."""
    at = size
    while at > 0 and heap[(at - 1) // 2] > key:
        heap[at], owner[at] = heap[(at - 1) // 2], owner[(at - 1) // 2]
        at = (at - 1) // 2
    heap[at], owner[at] = key, v


@njit(cache=True)
def _pop(heap, owner, size):
    """Removes the least entry of a binary heap of `size` entries, and returns it."""
    key, v = heap[0], owner[0]
    size -= 1
    last, last_owner = heap[size], owner[size]
    at = 0
    while 2 * at + 1 < size:
        child = 2 * at + 1
        if child + 1 < size and heap[child + 1] < heap[child]:
            child += 1
        if heap[child] >= last:
            break
        heap[at], owner[at] = heap[child], owner[child]
        at = child
    heap[at], owner[at] = last, last_owner
    return key, v


@njit(cache=True)
def _prioritise(s, v, by_fill):
    """Puts a variable in its place on the heap, and returns how many pairs that has looked at."""
    priority = _priority(s, v, by_fill)
    if priority != s.priority[v]:
        s.priority[v] = priority
        _push(s.heap, s.owner, s.counts[QUEUED], priority, np.int32(v))
        s.counts[QUEUED] += 1
    degree = min(s.degree[v], HUB_DEGREE)
    return 1 + degree * degree // 2


@njit(cache=True)
def _join(s, a, b):
    """Links two variables, unless they are."""
    low, high = min(a, b), max(a, b)
    pair = np.int64(low) * len(s.head) + high
    at = _slot(s.pairs, pair)
    if s.pairs[at] == pair:
        return
    s.pairs[at] = pair
    for u, w in ((low, high), (high, low)):
        used = s.counts[LINKS]
        s.link[used], s.to[used], s.head[u] = s.head[u], w, used
        s.degree[u] += 1
        s.size[u] += s.weights[w]
        s.counts[LINKS] += 1


@njit(cache=True)
def _next(s):
    """The variable whose turn it is; those of components that were given up have none."""
    v = s.counts[PENDING]
    while v == -1:
        key, v = _pop(s.heap, s.owner, s.counts[QUEUED])
        s.counts[QUEUED] -= 1
        if s.done[v] or key != s.priority[v] or s.share[s.component[v]] > 1 + ROUNDING:
            v = -1
    return v


@njit(cache=True)
def _eliminate(s, v, by_fill):
    """Joins the neighbours of a variable, and returns how many pairs that has looked at."""
    count = _alive(v, s.head, s.link, s.to, s.done, s.around)
    step = s.counts[STEPS]
    s.done[v] = True
    s.order[step] = v
    s.ptr[step + 1] = s.ptr[step] + count
    s.counts[STEPS] += 1
    s.counts[LEFT] -= 1
    s.left[s.component[v]] -= 1
    for i in range(count):
        u = s.around[i]
        s.later[s.ptr[step] + i] = u
        s.degree[u] -= 1
        s.size[u] -= s.weights[v]
        for j in range(i):
            _join(s, u, s.around[j])
    work = 1 + count * count // 2
    for i in range(count):
        work += _prioritise(s, s.around[i], by_fill)
    return work


@njit(cache=True)
def greedy(s, by_fill, work):
    """Eliminates the variable of least priority, again and again, for a while.

    That is until `work` pairs have been looked at, no variable is left, or room is short. Returns
    the work left, and the number of neighbours that there was no room for.
    """
    while s.counts[LINKED] < len(s.edges) and work > 0:
        _join(s, s.edges[s.counts[LINKED], 0], s.edges[s.counts[LINKED], 1])
        s.counts[LINKED] += 1
        work -= 1
    while s.counts[RANKED] < len(s.head) and work > 0:
        work -= _prioritise(s, np.int32(s.counts[RANKED]), by_fill)
        s.counts[RANKED] += 1
    while s.counts[LEFT] > 0 and work > 0:
        v = _next(s)
        s.counts[PENDING] = -1
        part = s.component[v]
        share = s.share[part] + np.exp(s.size[v] - s.log_limit[part])
        if share > 1 + ROUNDING:
            s.share[part] = share
            s.counts[LEFT] -= s.left[part]
            continue
        links = s.counts[LINKS] + s.degree[v] * (s.degree[v] - 1)
        if (
            links > min(len(s.to), len(s.pairs))
            or s.counts[QUEUED] + s.degree[v] > len(s.heap)
            or s.ptr[s.counts[STEPS]] + s.degree[v] > len(s.later)
        ):
            s.counts[PENDING] = v
            return work, s.degree[v]
        s.share[part] = share
        work -= _eliminate(s, v, by_fill)
    return work, 0


@njit(cache=True)
def rehash(pairs, larger):
    """Fills a larger open-addressing set with the pairs of one."""
    for pair in pairs:
        if pair != -1:
            larger[_slot(larger, pair)] = pair


@njit(cache=True)
def symbolic(start, after):
    """Later neighbours of each step, from those that share an edge with it: start, after as CSR.

    They are not sorted. A step inherits those of the steps whose first later neighbour it is.
    """
    num = len(start) - 1
    ptr = np.zeros(num + 1, dtype=np.int64)
    later = np.empty(2 * len(after) + 16, dtype=np.int32)
    first_child = np.empty(num, dtype=np.int64)
    sibling = np.empty(num, dtype=np.int64)
    seen = np.empty(num, dtype=np.int64)
    found = np.empty(num, dtype=np.int32)
    for step in range(num):
        first_child[step] = sibling[step] = seen[step] = -1
    for step in range(num):
        count = 0
        for e in range(start[step], start[step + 1]):
            seen[after[e]] = step
            found[count] = after[e]
            count += 1
        child = first_child[step]
        while child != -1:
            for e in range(ptr[child], ptr[child + 1]):
                if later[e] != step and seen[later[e]] != step:
                    seen[later[e]] = step
                    found[count] = later[e]
                    count += 1
            child = sibling[child]
        ptr[step + 1] = ptr[step] + count
        if ptr[step + 1] > len(later):
            larger = np.empty(2 * ptr[step + 1], dtype=np.int32)
            for e in range(ptr[step]):
                larger[e] = later[e]
            later = larger
        parent = num
        for i in range(count):
            later[ptr[step] + i] = found[i]
            parent = min(parent, found[i])
        if count:
            sibling[step] = first_child[parent]
            first_child[parent] = step
    return ptr, later[: ptr[num]]
