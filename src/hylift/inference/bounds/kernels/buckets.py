"""Buckets split to size, and weighted sums over their tables."""

import numpy as np
from numba import njit

from hylift.inference.exact.kernels.tables import INFINITE, fill, pass_down

OPEN = 64
"""Mini-buckets of one variable that a factor may still join; older ones are closed."""


@njit(cache=True)
def _grown(array, room):
    """The array, or a longer one with the same beginning."""
    if room <= len(array):
        return array
    longer = np.empty(max(room, 2 * len(array)), dtype=array.dtype)
    longer[: len(array)] = array
    return longer


@njit(cache=True)
def _added(names, begin, end, scope, width, log_states):
    """The log of states that a scope, sorted as `names` are, grows by."""
    added, at = 0.0, 0
    for i in range(begin, end):
        while at < width and scope[at] < names[i]:
            at += 1
        if at == width or scope[at] != names[i]:
            added += log_states[names[i]]
    return added


@njit(cache=True)
def _union(names, begin, end, scope, width):
    """The union of a sorted scope and sorted names."""
    merged = np.empty(width + end - begin, dtype=np.int32)
    at, size = 0, 0
    for i in range(begin, end):
        while at < width and scope[at] < names[i]:
            merged[size] = scope[at]
            at, size = at + 1, size + 1
        if at < width and scope[at] == names[i]:
            at += 1
        merged[size] = names[i]
        size += 1
    while at < width:
        merged[size] = scope[at]
        at, size = at + 1, size + 1
    return merged[:size]


@njit(cache=True)
def split(log_states, item_ptr, names, log_limit, stop):
    """Mini-buckets whose tables are within the limit, where single factors are.

    Only the variables of the first `stop` steps are eliminated. log_states: (step,); factors have
    the steps names[item_ptr[f]:item_ptr[f + 1]], increasing.
    Returns the variable (step) of each mini-bucket, its parent or -1, its scope (begin, end) among
    the last array, own variable first, and the mini-bucket of each factor.
    """
    num_steps, num_factors = len(log_states), len(item_ptr) - 1
    # Items are factors, then the messages of mini-buckets as they are made.
    room = num_factors + num_steps + 1
    first, last = np.empty(room, dtype=np.int64), np.empty(room, dtype=np.int64)
    after, home = np.empty(room, dtype=np.int64), np.empty(room, dtype=np.int64)
    variable = np.empty(num_steps, dtype=np.int32)
    scope_of = np.empty((num_steps, 2), dtype=np.int64)
    buffer = np.empty(2 * len(names) + num_steps, dtype=np.int32)
    buffer[: len(names)] = names
    used, num_made = len(names), 0
    head = np.full(num_steps, -1, dtype=np.int64)
    for f in range(num_factors):
        first[f], last[f] = item_ptr[f], item_ptr[f + 1]
        if first[f] < last[f]:
            after[f] = head[names[first[f]]]
            head[names[first[f]]] = f
    for step in range(stop):
        count, item = 0, head[step]
        while item >= 0:
            count, item = count + 1, after[item]
        items, size = np.empty(count, dtype=np.int64), np.empty(count)
        count, item = 0, head[step]
        while item >= 0:
            items[count], size[count] = item, 0.0
            for i in range(first[item], last[item]):
                size[count] += log_states[buffer[i]]
            count, item = count + 1, after[item]
        made = num_made
        scopes = [np.full(1, step, dtype=np.int32)]
        sizes = [log_states[step]]
        # Small ones first: they stay together, and a message that fills a table goes no further.
        for place in np.argsort(size, kind="mergesort"):
            item = items[place]
            best, least = -1, np.inf
            for m in range(max(0, len(scopes) - OPEN), len(scopes)):
                added = _added(
                    buffer, first[item], last[item], scopes[m], len(scopes[m]), log_states
                )
                fits = sizes[m] + added <= log_limit + 1e-9 or len(scopes[m]) == 1
                if fits and added < least:
                    best, least = m, added
            if best < 0:
                best, least = len(scopes), size[place]
                scopes.append(buffer[first[item] : last[item]].copy())
                sizes.append(least)
            else:
                scope = scopes[best]
                scopes[best] = _union(buffer, first[item], last[item], scope, len(scope))
                sizes[best] += least
            home[item] = made + best
        num_made += len(scopes)
        if num_made > len(variable):
            more = max(num_made, 2 * len(variable))
            longer = np.empty((more, 2), dtype=np.int64)
            longer[: len(scope_of)] = scope_of
            scope_of = longer
            variable = _grown(variable, more)
            room = num_factors + more + 1
            first, last = _grown(first, room), _grown(last, room)
            after, home = _grown(after, room), _grown(home, room)
        for m in range(len(scopes)):
            scope, c = scopes[m], made + m
            buffer = _grown(buffer, used + len(scope))
            buffer[used : used + len(scope)] = scope
            variable[c] = step
            scope_of[c] = used, used + len(scope)
            used += len(scope)
            message = num_factors + c
            first[message], last[message] = scope_of[c, 0] + 1, scope_of[c, 1]
            home[message] = -1
            if len(scope) > 1:
                after[message] = head[scope[1]]
                head[scope[1]] = message
    return (
        variable[:num_made], home[num_factors : num_factors + num_made], scope_of[:num_made],
        home[:num_factors], buffer[:used],
    )  # fmt: skip


@njit(cache=True)
def name_replicas(variable, parent, scope_of, steps, stop, ptr, later):
    """Writes the later neighbours of each mini-bucket as mini-buckets: those that eliminate these
    variables on the way to the root. Variables from the step `stop` on, which are not eliminated,
    are numbered after all mini-buckets. Parents come after their children."""
    for c in range(len(variable) - 1, -1, -1):
        begin, width = scope_of[c, 0] + 1, ptr[c + 1] - ptr[c]
        at = 0
        for i in range(width):
            if steps[begin + i] >= stop:
                later[ptr[c] + i] = len(variable) + steps[begin + i] - stop
                continue
            if i == 0:
                later[ptr[c]] = parent[c]
                continue
            p = parent[c]
            while steps[scope_of[p, 0] + 1 + at] != steps[begin + i]:
                at += 1
            later[ptr[c] + i] = later[ptr[p] + at]


@njit(cache=True)
def rename_slots(slot_ptr, slots, home, variable, scope_of, steps, ptr, later):
    """Replaces the steps in the slots of factors by the mini-buckets that eliminate them."""
    for f in range(len(slot_ptr) - 1):
        c = home[f]
        for i in range(slot_ptr[f], slot_ptr[f + 1]):
            if slots[i] == variable[c]:
                slots[i] = c
                continue
            at = 0
            while steps[scope_of[c, 0] + 1 + at] != slots[i]:
                at += 1
            slots[i] = later[ptr[c] + at]


@njit(cache=True)
def collect(start, stop, plan, messages, scratch, weight, scale):
    """Messages w log Σ exp(table / w), the largest finite entry of each 0; `scale` gets what was
    taken off."""
    for c in range(start, stop):
        fill(c, np.int64(0), plan, messages, scratch)
        own, work, w = plan.clique[c], scratch.work, weight[c]
        block, begin, end = own.num_states, own.message[0], own.message[1]
        largest, diverges = -np.inf, False
        for at in range(begin, end):
            base = (at - begin) * block
            top = -np.inf
            for k in range(base, base + block):
                top = max(top, work[k])
            if top > -np.inf:
                total = 0.0
                for k in range(base, base + block):
                    total += np.exp((work[k] - top) / w)
                top += w * np.log(total)
            messages[at] = top
            if top < INFINITE:
                largest = max(largest, top)
            else:
                diverges = True
        scale[c] = 0.0 if diverges and largest == -np.inf else largest
        if largest > -np.inf:
            for at in range(begin, end):
                if messages[at] < INFINITE:
                    messages[at] -= largest


@njit(cache=True)
def distribute(
    start, stop, plan, messages, scratch, weight, marginal_ptr, marginals, entropy, joint_at,
    joints,
):  # fmt: skip
    """Beliefs of mini-buckets, parents first, and the entropy of each variable given its later
    neighbours. On arrival at a mini-bucket its own message has been replaced by the probabilities
    that its parent gives to the joint states of these."""
    for c in range(stop - 1, start - 1, -1):
        width, size = fill(c, np.int64(0), plan, messages, scratch)
        own, work, w = plan.clique[c], scratch.work, weight[c]
        block = own.num_states
        entropy[c] = 0.0
        for s in range(size // block):
            share = messages[own.message[0] + s] if width > 1 else 1.0
            begin = s * block
            top = -np.inf
            for k in range(begin, begin + block):
                top = max(top, work[k])
            total, mean = 0.0, 0.0
            if top > -np.inf:
                for k in range(begin, begin + block):
                    scaled = (work[k] - top) / w
                    work[k] = np.exp(scaled)
                    total += work[k]
                    if work[k] > 0.0:
                        mean += work[k] * scaled
                entropy[c] += share * (np.log(total) - mean / total)
            for k in range(begin, begin + block):
                work[k] = share * work[k] / total if top > -np.inf else 0.0
                marginals[marginal_ptr[c] + k - begin] += work[k]
        marginal = marginals[marginal_ptr[c] : marginal_ptr[c + 1]]
        pass_down(c, plan, messages, scratch, marginal, 1.0, joint_at, joints)
