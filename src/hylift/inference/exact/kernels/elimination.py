"""Elimination of a graph: a greedy order, or the structure that a given order makes."""

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

HUB_DEGREE = 128
"""Variables with more neighbours are kept for later without counting the edges they would fill."""

ROUNDING = 1e-9
"""Relative amount by which a sum of table sizes may pass its limit, because of rounding."""

LINKED, RANKED, STEPS, LINKS, QUEUED, LEFT, PENDING = range(7)
"""Places in the counts of a `Greedy`: edges linked, variables with a priority, variables
eliminated, links used, entries of the heap, variables still to eliminate, and the variable whose
turn it is, or -1."""

VARIABLE = np.dtype(
    [
        ("weight", np.float64),  # log of the number of states
        ("noise", np.float64),
        ("component", np.int64),
        ("head", np.int64),  # its first link
        ("degree", np.int64),
        ("size", np.float64),  # log of the entries of its table, were it next
        ("priority", np.float64),
        ("done", np.int64),
    ],
    align=True,
)
COMPONENT = np.dtype(
    [
        ("log_limit", np.float64),  # given up once its tables together pass this
        ("share", np.float64),  # of its limit, used
        ("left", np.int64),  # variables to eliminate
    ],
    align=True,
)
LINK = np.dtype([("next", np.int64), ("to", np.int64)], align=True)
ENTRY = np.dtype([("priority", np.float64), ("variable", np.int64)], align=True)


class Greedy(NamedTuple):
    """All that a greedy elimination knows, so that it can stop and go on.

    Neighbours are linked lists, joined pairs an open-addressing set, priorities a heap whose
    outdated entries are passed over.
    """

    edges: NDArray[np.int32]  # (edge, 2)
    variable: NDArray[Any]  # (variable,): `VARIABLE`
    component: NDArray[Any]  # (component,): `COMPONENT`
    counts: NDArray[np.int64]  # (7,): see above
    link: NDArray[Any]  # `LINK`
    pairs: NDArray[np.int64]  # the set of joined pairs
    heap: NDArray[Any]  # `ENTRY`
    order: NDArray[np.int32]  # (step,)
    ptr: NDArray[np.int64]  # (step + 1,)
    later: NDArray[np.int32]  # neighbours left at each step
    around: NDArray[np.int64]  # scratch: the neighbours of the variable whose turn it is
    room: NDArray[np.int64]  # scratch: those of another


@njit(cache=True)
def _slot(table, key):
    """The place of `key`, or for it, in an open-addressing set."""
    mask = len(table) - 1
    at = (key * np.int64(-7046029254386353131) >> np.int64(20)) & mask
    while table[at] != -1 and table[at] != key:
        at = (at + 1) & mask
    return at


@njit(cache=True)
def _alive(v, variable, link, out):
    """Writes the remaining neighbours of v, and returns their number; forgets the others."""
    count = 0
    before, e = -1, variable[v].head
    while e != -1:
        u, after = link[e].to, link[e].next
        if not variable[u].done:
            out[count] = u
            count += 1
            before = e
        elif before == -1:
            variable[v].head = after
        else:
            link[before].next = after
        e = after
    return count


@njit(cache=True)
def _push(heap, size, priority, v):
    """Adds an entry to a binary heap of `size` entries that has room for it."""
    at = size
    while at > 0 and heap[(at - 1) // 2].priority > priority:
        heap[at].priority = heap[(at - 1) // 2].priority
        heap[at].variable = heap[(at - 1) // 2].variable
        at = (at - 1) // 2
    heap[at].priority, heap[at].variable = priority, v


@njit(cache=True)
def _pop(heap, size):
    """Removes the least entry of a binary heap of `size` entries, and returns it."""
    priority, v = heap[0].priority, heap[0].variable
    size -= 1
    last, last_owner = heap[size].priority, heap[size].variable
    at = 0
    while 2 * at + 1 < size:
        child = 2 * at + 1
        if child + 1 < size and heap[child + 1].priority < heap[child].priority:
            child += 1
        if heap[child].priority >= last:
            break
        heap[at].priority, heap[at].variable = heap[child].priority, heap[child].variable
        at = child
    heap[at].priority, heap[at].variable = last, last_owner
    return priority, v


@njit(cache=True)
def _prioritise(s, v, by_fill):
    """Puts a variable in its place on the heap, and returns how many pairs that has looked at.

    What is eliminated first is least: by edges to fill, then size of the table; or by size.
    """
    own = s.variable[v]
    if not by_fill:
        priority = own.size + 1e-3 * own.noise
    elif own.degree > HUB_DEGREE:
        priority = 0.5 * own.degree * (own.degree - 1.0)
    else:
        missing = 0
        for i in range(_alive(v, s.variable, s.link, s.room)):
            for j in range(i):
                a, b = s.room[i], s.room[j]
                key = min(a, b) * len(s.variable) + max(a, b)
                if s.pairs[_slot(s.pairs, key)] == -1:
                    missing += 1
        priority = missing + 0.9 * own.noise + 1e-6 * own.size
    if priority != own.priority:
        s.variable[v].priority = priority
        _push(s.heap, s.counts[QUEUED], priority, v)
        s.counts[QUEUED] += 1
    degree = min(own.degree, HUB_DEGREE)
    return 1 + degree * degree // 2


@njit(cache=True)
def _join(s, a, b):
    """Links two variables, unless they are."""
    pair = min(a, b) * len(s.variable) + max(a, b)
    at = _slot(s.pairs, pair)
    if s.pairs[at] == pair:
        return
    s.pairs[at] = pair
    for u, w in ((a, b), (b, a)):
        used = s.counts[LINKS]
        s.link[used].next, s.link[used].to = s.variable[u].head, w
        s.variable[u].head = used
        s.variable[u].degree += 1
        s.variable[u].size += s.variable[w].weight
        s.counts[LINKS] += 1


@njit(cache=True)
def _eliminate(s, v, by_fill):
    """Joins the neighbours of a variable, and returns how many pairs that has looked at."""
    count = _alive(v, s.variable, s.link, s.around)
    step = s.counts[STEPS]
    s.variable[v].done = 1
    s.order[step] = v
    s.ptr[step + 1] = s.ptr[step] + count
    s.counts[STEPS] += 1
    s.counts[LEFT] -= 1
    s.component[s.variable[v].component].left -= 1
    for i in range(count):
        u = s.around[i]
        s.later[s.ptr[step] + i] = u
        s.variable[u].degree -= 1
        s.variable[u].size -= s.variable[v].weight
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
    the work left, and the number of neighbours that there was no room for. Variables of components
    that were given up have no turn.
    """
    while s.counts[LINKED] < len(s.edges) and work > 0:
        edge = s.counts[LINKED]
        _join(s, np.int64(s.edges[edge, 0]), np.int64(s.edges[edge, 1]))
        s.counts[LINKED] += 1
        work -= 1
    while s.counts[RANKED] < len(s.variable) and work > 0:
        work -= _prioritise(s, s.counts[RANKED], by_fill)
        s.counts[RANKED] += 1
    while s.counts[LEFT] > 0 and work > 0:
        v = s.counts[PENDING]
        while v == -1:
            priority, v = _pop(s.heap, s.counts[QUEUED])
            s.counts[QUEUED] -= 1
            given_up = s.component[s.variable[v].component].share > 1 + ROUNDING
            if given_up or s.variable[v].done or priority != s.variable[v].priority:
                v = np.int64(-1)
        s.counts[PENDING] = -1
        part, degree = s.variable[v].component, s.variable[v].degree
        share = np.exp(s.variable[v].size - s.component[part].log_limit) + s.component[part].share
        if share > 1 + ROUNDING:
            s.component[part].share = share
            s.counts[LEFT] -= s.component[part].left
            continue
        if (
            s.counts[LINKS] + degree * (degree - 1) > min(len(s.link), len(s.pairs))
            or s.counts[QUEUED] + degree > len(s.heap)
            or s.ptr[s.counts[STEPS]] + degree > len(s.later)
        ):
            s.counts[PENDING] = v
            return work, degree
        s.component[part].share = share
        work -= _eliminate(s, v, by_fill)
    return work, np.int64(0)


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
