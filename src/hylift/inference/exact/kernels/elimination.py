"""Elimination of a graph: a greedy order, or the structure that a given order makes."""

import numpy as np
from numba import njit

HUB_DEGREE = 128
"""Variables with more neighbours are kept for later without counting the edges they would fill."""


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
def _priority(v, degree, size, head, link, to, done, room, table, noise, by_fill):
    """What is eliminated first is least: by edges to fill, then size of the table; or by size."""
    if not by_fill:
        return size[v] + 1e-3 * noise[v]
    if degree[v] > HUB_DEGREE:
        return 0.5 * degree[v] * (degree[v] - 1.0)
    count = _alive(v, head, link, to, done, room)
    return _missing(room, count, table, len(head)) + 0.9 * noise[v] + 1e-6 * size[v]


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
def _grown(array):
    """The array with twice the room."""
    larger = np.empty(2 * len(array) + 16, dtype=array.dtype)
    larger[: len(array)] = array
    return larger


@njit(cache=True)
def _rehashed(table):
    """The open-addressing set with twice the room."""
    larger = np.full(2 * len(table), -1, dtype=np.int64)
    for key in table:
        if key != -1:
            larger[_slot(larger, key)] = key
    return larger


@njit(cache=True)
def greedy(num, edges, weights, noise, by_fill):
    """Eliminates the variable of least priority, again and again.

    Neighbours are linked lists, joined pairs an open-addressing set, priorities a heap whose
    outdated entries are passed over. Returns the order, and the remaining neighbours at each step.
    """
    capacity = 2 * len(edges) + 16
    head = np.full(num, -1, dtype=np.int64)
    link = np.empty(capacity, dtype=np.int64)
    to = np.empty(capacity, dtype=np.int32)
    degree = np.zeros(num, dtype=np.int64)
    size = weights.copy()
    room_for = 64
    while room_for < 4 * len(edges):
        room_for *= 2
    table = np.full(room_for, -1, dtype=np.int64)
    used = 0
    for k in range(len(edges)):
        low, high = min(edges[k, 0], edges[k, 1]), max(edges[k, 0], edges[k, 1])
        pair = np.int64(low) * num + high
        table[_slot(table, pair)] = pair
        for u, w in ((low, high), (high, low)):
            link[used], to[used], head[u] = head[u], w, used
            degree[u] += 1
            size[u] += weights[w]
            used += 1

    done = np.zeros(num, dtype=np.bool_)
    around = np.empty(num, dtype=np.int32)
    room = np.empty(num, dtype=np.int32)
    current = np.empty(num)
    heap = np.empty(num + 16)
    owner = np.empty(num + 16, dtype=np.int32)
    for v in range(num):
        current[v] = _priority(v, degree, size, head, link, to, done, room, table, noise, by_fill)
        _push(heap, owner, v, current[v], np.int32(v))
    heap_size = num

    order = np.empty(num, dtype=np.int32)
    ptr = np.zeros(num + 1, dtype=np.int64)
    later = np.empty(capacity, dtype=np.int32)
    for step in range(num):
        while True:
            key, v = _pop(heap, owner, heap_size)
            heap_size -= 1
            if not done[v] and key == current[v]:
                break
        count = _alive(v, head, link, to, done, around)
        done[v] = True
        order[step] = v
        ptr[step + 1] = ptr[step] + count
        while ptr[step + 1] > len(later):
            later = _grown(later)
        for i in range(count):
            later[ptr[step] + i] = around[i]
        for i in range(count):
            degree[around[i]] -= 1
            size[around[i]] -= weights[v]
            for j in range(i):
                low, high = min(around[i], around[j]), max(around[i], around[j])
                pair = np.int64(low) * num + high
                at = _slot(table, pair)
                if table[at] != -1:
                    continue
                table[at] = pair
                if used + 2 > len(to):
                    link, to = _grown(link), _grown(to)
                if used + 2 > len(table):
                    table = _rehashed(table)
                for u, w in ((low, high), (high, low)):
                    link[used], to[used], head[u] = head[u], w, used
                    degree[u] += 1
                    size[u] += weights[w]
                    used += 1
        for i in range(count):
            u = around[i]
            priority = _priority(u, degree, size, head, link, to, done, room, table, noise, by_fill)
            if priority != current[u]:
                current[u] = priority
                if heap_size == len(heap):
                    heap, owner = _grown(heap), _grown(owner)
                _push(heap, owner, heap_size, priority, u)
                heap_size += 1
    return order, ptr, later[: ptr[num]]


@njit(cache=True)
def symbolic(start, after):
    """Later neighbours of each step, from those that share an edge with it: start, after as CSR.

    They are not sorted. A step inherits those of the steps whose first later neighbour it is.
    """
    num = len(start) - 1
    ptr = np.zeros(num + 1, dtype=np.int64)
    later = np.empty(2 * len(after) + 16, dtype=np.int32)
    first_child = np.full(num, -1, dtype=np.int64)
    sibling = np.full(num, -1, dtype=np.int64)
    seen = np.full(num, -1, dtype=np.int64)
    found = np.empty(num, dtype=np.int32)
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
        while ptr[step + 1] > len(later):
            later = _grown(later)
        parent = num
        for i in range(count):
            later[ptr[step] + i] = found[i]
            parent = min(parent, found[i])
        if count:
            sibling[step] = first_child[parent]
            first_child[parent] = step
    return ptr, later[: ptr[num]]
