"""Approximate minimum degree: an order that keeps the factors of a sparse symmetric matrix sparse.

Amestoy, Davis, Duff (1996), much as in CSparse. Nodes of the matrix become elements when they are
eliminated: the cliques of their neighbours, of which only the members are kept. Nodes with the same
neighbours are merged. Lists of neighbours lie in one array, elements before nodes; an object that
is absorbed into another points at it by `_flipped` numbers.
"""

import numpy as np
from numba import njit


@njit(cache=True)
def order_of_minimum_degree(indptr, indices, dense):
    """(step,): the rows in the order of their elimination; those with more than `dense` neighbours
    come last."""
    num = len(indptr) - 1
    ptr, length, lists, used = _neighbours(indptr, indices)
    # How many rows each stands for; elements in its list; a bound on its degree; marks.
    size, elements = np.ones(num + 1, np.int64), np.zeros(num + 1, np.int64)
    degree, mark = length.copy(), np.ones(num + 1, np.int64)
    # Doubly linked lists of nodes by degree; lists by hash share `after`, and hashes `before`.
    head, after = np.full(num + 1, -1), np.full(num + 1, -1)
    before, bucket = np.full(num + 1, -1), np.full(num + 1, -1)
    graph = ptr, length, lists, size, elements, degree, mark, head, after, before, bucket
    elements[num], ptr[num], mark[num] = -2, -1, 0
    done, least, now, widest = 0, 0, 2, 0
    for i in range(num):
        if degree[i] == 0:
            elements[i], ptr[i], mark[i] = -2, -1, 0
            done += 1
        elif degree[i] > dense:
            size[i], elements[i], ptr[i] = 0, -1, _flipped(num)
            size[num] += 1
            done += 1
        else:
            _listed(i, degree[i], head, after, before)
    while done < num:
        while head[least] == -1:
            least += 1
        k = head[least]
        if after[k] != -1:
            before[after[k]] = -1
        head[least] = after[k]
        done += size[k]
        if elements[k] > 0 and used + least >= len(lists):
            used = _compacted(used, ptr, length, lists)
        start, end, used, own = _element(k, used, graph)
        _set_differences(k, start, end, now, graph)
        own, gone = _degrees(k, start, end, now, own, graph)
        done += gone
        widest = max(widest, own)
        now = _merged(start, end, now + widest, graph)
        least, used = _finished(k, start, end, used, num - done, own, least, graph)
    return _postorder(num, ptr, size, head, after)


@njit(cache=True)
def _flipped(i):
    return -i - 2


@njit(cache=True)
def _neighbours(indptr, indices):
    """Lists of neighbours without the diagonal, with room for elements: where each begins, its
    length, the lists, and how much of them is used."""
    num = len(indptr) - 1
    ptr, length = np.empty(num + 1, np.int64), np.zeros(num + 1, np.int64)
    lists, used = np.empty(len(indices) + len(indices) // 5 + 2 * num + 1, np.int64), 0
    for i in range(num):
        ptr[i] = used
        for at in range(indptr[i], indptr[i + 1]):
            if indices[at] != i:
                lists[used] = indices[at]
                used += 1
        length[i] = used - ptr[i]
    return ptr, length, lists, used


@njit(cache=True)
def _listed(i, d, head, after, before):
    """Put node i into the list of degree d."""
    if head[d] != -1:
        before[head[d]] = i
    after[i], before[i] = head[d], -1
    head[d] = i


@njit(cache=True)
def _compacted(used, ptr, length, lists):
    """Move the lists that are still there together; returns how much is used."""
    for j in range(len(ptr) - 1):
        if ptr[j] >= 0:
            first = ptr[j]
            ptr[j] = lists[first]
            lists[first] = _flipped(j)
    to = at = 0
    while at < used:
        j = _flipped(lists[at])
        at += 1
        if j >= 0:
            lists[to] = ptr[j]
            ptr[j] = to
            to += 1
            for _ in range(length[j] - 1):
                lists[to] = lists[at]
                to += 1
                at += 1
    return to


@njit(cache=True)
def _element(k, used, graph):
    """Make node k an element of its neighbours, which have a negative size from now on: where it
    begins and ends, how much of the lists is used, and the number of rows in it."""
    ptr, length, lists, size, elements, degree, mark, head, after, before, _ = graph
    own, at, num_elements = 0, ptr[k], elements[k]
    size[k] = -size[k]
    start = at if num_elements == 0 else used
    end = start
    for place in range(num_elements + 1):
        if place == num_elements:
            e, first, count = k, at, length[k] - num_elements
        else:
            e = lists[at]
            at += 1
            first, count = ptr[e], length[e]
        for position in range(first, first + count):
            i = lists[position]
            if size[i] <= 0:
                continue
            own += size[i]
            size[i] = -size[i]
            lists[end] = i
            end += 1
            if after[i] != -1:
                before[after[i]] = before[i]
            if before[i] != -1:
                after[before[i]] = after[i]
            else:
                head[degree[i]] = after[i]
        if e != k:
            ptr[e], mark[e] = _flipped(k), 0
    if num_elements != 0:
        used = end
    degree[k], ptr[k], length[k], elements[k] = own, start, end - start, -2
    return start, end, used, own


@njit(cache=True)
def _set_differences(k, start, end, now, graph):
    """Mark the elements beside element k by `now` plus the number of their rows outside of it."""
    ptr, _, lists, size, elements, degree, mark, _, _, _, _ = graph
    for place in range(start, end):
        i = lists[place]
        for at in range(ptr[i], ptr[i] + max(elements[i], 0)):
            e = lists[at]
            if mark[e] >= now:
                mark[e] += size[i]
            elif mark[e] != 0:
                mark[e] = degree[e] + now + size[i]


@njit(cache=True)
def _degrees(k, start, end, now, own, graph):
    """Bound the degrees of the nodes in element k, and put them into lists by hash; absorbs what
    lies in k. Returns the rows that are left in k, and those that are eliminated with it."""
    ptr, length, lists, size, elements, degree, mark, _, after, before, bucket = graph
    gone, num = 0, len(ptr) - 1
    for place in range(start, end):
        i = lists[place]
        first, code, d = ptr[i], 0, 0
        to, middle = first, first + elements[i]
        for at in range(first, middle):
            e = lists[at]
            if mark[e] == 0:
                continue
            outside = mark[e] - now
            if outside > 0:
                d += outside
                code += e
                lists[to] = e
                to += 1
            else:
                ptr[e], mark[e] = _flipped(k), 0
        elements[i] = to - first + 1
        nodes = to
        for at in range(middle, first + length[i]):
            j = lists[at]
            if size[j] > 0:
                d += size[j]
                code += j
                lists[to] = j
                to += 1
        if d == 0:
            ptr[i] = _flipped(k)
            own += size[i]
            gone -= size[i]
            size[k] += size[i]
            size[i], elements[i] = 0, -1
        else:
            degree[i] = min(degree[i], d)
            lists[to] = lists[nodes]
            lists[nodes] = lists[first]
            lists[first] = k
            length[i] = to - first + 1
            code %= num
            after[i], before[i] = bucket[code], code
            bucket[code] = i
    degree[k] = own
    return own, gone


@njit(cache=True)
def _merged(start, end, now, graph):
    """Merge nodes of an element with the same neighbours; returns the next mark."""
    ptr, length, lists, size, elements, _, mark, _, after, before, bucket = graph
    for place in range(start, end):
        if size[lists[place]] >= 0:
            continue
        code = before[lists[place]]
        i = bucket[code]
        bucket[code] = -1
        while i != -1 and after[i] != -1:
            for at in range(ptr[i] + 1, ptr[i] + length[i]):
                mark[lists[at]] = now
            last, j = i, after[i]
            while j != -1:
                is_same = length[j] == length[i] and elements[j] == elements[i]
                at = ptr[j] + 1
                while is_same and at < ptr[j] + length[j]:
                    is_same = mark[lists[at]] == now
                    at += 1
                if is_same:
                    ptr[j] = _flipped(i)
                    size[i] += size[j]
                    size[j], elements[j] = 0, -1
                    after[last] = after[j]
                else:
                    last = j
                j = after[j]
            i = after[i]
            now += 1
    return now


@njit(cache=True)
def _finished(k, start, end, used, left, own, least, graph):
    """Put the nodes of element k back into the lists by degree; returns the least one, and how much
    of the lists is used."""
    ptr, length, lists, size, _, degree, mark, head, after, before, _ = graph
    to = start
    for place in range(start, end):
        i = lists[place]
        if size[i] >= 0:
            continue
        size[i] = -size[i]
        d = min(degree[i] + own - size[i], left - size[i])
        _listed(i, d, head, after, before)
        least = min(least, d)
        degree[i] = d
        lists[to] = i
        to += 1
    size[k] = -size[k]
    length[k] = to - start
    if to == start:
        ptr[k], mark[k] = -1, 0
    return least, to if used == end else used


@njit(cache=True)
def _postorder(num, ptr, size, head, after):
    """The rows in an order in which the elements of each tree follow each other."""
    head[:] = -1
    for i in range(num):
        ptr[i] = _flipped(ptr[i])
    for is_element in (False, True):
        for i in range(num, -1, -1):
            if (size[i] > 0) == is_element and ptr[i] != -1:
                after[i] = head[ptr[i]]
                head[ptr[i]] = i
    order, stack, count = np.empty(num + 1, np.int32), np.empty(num + 1, np.int64), 0
    for root in range(num + 1):
        if ptr[root] != -1:
            continue
        top, stack[0] = 0, root
        while top >= 0:
            parent = stack[top]
            child = head[parent]
            if child == -1:
                top -= 1
                order[count] = parent
                count += 1
            else:
                head[parent] = after[child]
                top += 1
                stack[top] = child
    return order[:num]
