"""Messages between tables and discrete variables, in log space.

A message has one entry per state of its variable, the largest of them 0. What is impossible is
-inf; so many of a variable's messages say so of a state as `zeros` tells, and `total` adds up what
the others say.
"""

import numpy as np
from numba import njit

LOW = -600.0
"""An incoming entry below this is too small for an exponential."""

TINY = 1e-280
"""A sum of exponentials below this has lost digits: it is taken again in log space."""

OTHERS = 0.5
"""More messages than this say that a state is impossible: one or more do."""


@njit(cache=True, nogil=True)
def gather(begin, end, some, variable_ptr, order, count, place, first, message, total, zeros):
    """What all messages to some variables say together."""
    for i in range(begin, end):
        v = some[i]
        low, high = first[v], first[v + 1]
        for s in range(low, high):
            total[s] = 0.0
            zeros[s] = 0.0
        for k in range(variable_ptr[v], variable_ptr[v + 1]):
            link = order[k]
            at, n = place[link], count[link]
            for s in range(high - low):
                value = message[at + s]
                if value == -np.inf:
                    zeros[low + s] += n
                else:
                    total[low + s] += n * value


@njit(cache=True, nogil=True, inline="always")
def listen(link, variable, place, first, message, total, zeros, incoming, start):
    """Writes what a variable tells the factor of a link, the largest entry 0; returns that."""
    low = first[variable[link]]
    size = first[variable[link] + 1] - low
    at = place[link]
    largest = -np.inf
    for s in range(size):
        own = message[at + s]
        others = zeros[low + s]
        value = total[low + s]
        if own == -np.inf:
            others -= 1.0
        else:
            value -= own
        incoming[start + s] = -np.inf if others > OTHERS else value
        largest = max(largest, incoming[start + s])
    if largest > -np.inf:
        for s in range(size):
            incoming[start + s] -= largest
    return largest


@njit(cache=True, nogil=True, inline="always")
def advance(state, sizes, arity):
    """The next joint state, the last slot fastest; returns the first slot that changed."""
    j = arity - 1
    while j >= 0:
        state[j] += 1
        if state[j] < sizes[j]:
            return j
        state[j] = 0
        j -= 1
    return 0


@njit(cache=True, nogil=True, inline="always")
def weigh(base, theta, arity, sizes, starts, state, partial, incoming, value):
    """The log-value of every joint state with what its variables tell; returns the largest."""
    largest = -np.inf
    num_joint = 1
    for j in range(arity):
        num_joint *= sizes[j]
        state[j] = 0
    partial[0] = 0.0
    changed = 0
    for x in range(num_joint):
        for j in range(changed, arity):
            partial[j + 1] = partial[j] + incoming[starts[j] + state[j]]
        value[x] = theta[base + x] + partial[arity]
        largest = max(largest, value[x])
        changed = advance(state, sizes, arity)
    return largest


@njit(cache=True, nogil=True)
def send(
    begin, end, some, factor_ptr, variable, base, theta, weight, place, first, message, total,
    zeros, by_maximum, damping, room, candidate, change,
):  # fmt: skip
    """New messages of some factors, and how much they change; returns an impossible factor or -1.

    weight: the exponentials of the log-values `theta`, each table divided by its largest. room: the
    largest arity, states of all slots, and joint states of a factor.
    """
    sizes, starts = np.empty(room[0], dtype=np.int64), np.empty(room[0], dtype=np.int64)
    state, partial = np.empty(room[0], dtype=np.int64), np.empty(room[0] + 1)
    incoming, outgoing, told = np.empty(room[1]), np.empty(room[1]), np.empty(room[1])
    value = np.empty(room[2])
    for i in range(begin, end):
        c = some[i]
        link = factor_ptr[c]
        arity = factor_ptr[c + 1] - link
        if arity == 1:
            at, size = place[link], place[link + 1] - place[link]
            for s in range(size):
                outgoing[s] = theta[base[c] + s]
            # It hears nothing, and so has nothing to oscillate with.
            if not _settle(outgoing, 0, size, message, at, 0.0, candidate, change, link):
                return c
            continue
        num_entries = 0
        for j in range(arity):
            v = variable[link + j]
            starts[j], sizes[j] = num_entries, first[v + 1] - first[v]
            num_entries += sizes[j]
            listen(link + j, variable, place, first, message, total, zeros, incoming, starts[j])
        if by_maximum:
            weigh(base[c], theta, arity, sizes, starts, state, partial, incoming, value)
            _largest(arity, sizes, starts, state, value, outgoing)
        else:
            for s in range(num_entries):
                told[s] = 1.0 if incoming[s] == 0.0 else np.exp(incoming[s])
            _sums(base[c], weight, arity, sizes, starts, state, partial, told, outgoing)
        for j in range(arity):
            for s in range(starts[j], starts[j] + sizes[j]):
                if incoming[s] > LOW and (by_maximum or outgoing[s] > TINY):
                    found = outgoing[s] if by_maximum else np.log(outgoing[s])
                    outgoing[s] = found - incoming[s]
                else:
                    outgoing[s] = _without(
                        base[c], theta, arity, sizes, starts, state, incoming, j, s - starts[j],
                        by_maximum,
                    )  # fmt: skip
            at = place[link + j]
            if not _settle(
                outgoing, starts[j], sizes[j], message, at, damping, candidate, change, link + j
            ):
                return c
    return np.int64(-1)


@njit(cache=True, nogil=True, inline="always")
def _largest(arity, sizes, starts, state, value, outgoing):
    """Per slot and state, the largest value of its joint states."""
    num_joint = 1
    for j in range(arity):
        num_joint *= sizes[j]
        state[j] = 0
        for s in range(starts[j], starts[j] + sizes[j]):
            outgoing[s] = -np.inf
    for x in range(num_joint):
        for j in range(arity):
            at = starts[j] + state[j]
            outgoing[at] = max(outgoing[at], value[x])
        advance(state, sizes, arity)


@njit(cache=True, nogil=True, inline="always")
def _sums(base, weight, arity, sizes, starts, state, partial, told, outgoing):
    """Per slot and state, the sum of the weights of its joint states with what is told of them."""
    for j in range(arity):
        for s in range(starts[j], starts[j] + sizes[j]):
            outgoing[s] = 0.0
    if arity == 2:
        for s in range(sizes[0]):
            row, own = 0.0, told[starts[0] + s]
            at = base + s * sizes[1]
            for r in range(sizes[1]):
                here = weight[at + r] * told[starts[1] + r]
                row += here
                outgoing[starts[1] + r] += own * here
            outgoing[starts[0] + s] = own * row
        return
    num_joint, changed = 1, 0
    for j in range(arity):
        num_joint *= sizes[j]
        state[j] = 0
    partial[0] = 1.0
    for x in range(num_joint):
        for j in range(changed, arity):
            partial[j + 1] = partial[j] * told[starts[j] + state[j]]
        here = weight[base + x] * partial[arity]
        for j in range(arity):
            outgoing[starts[j] + state[j]] += here
        changed = advance(state, sizes, arity)


@njit(cache=True, nogil=True)
def _without(base, theta, arity, sizes, starts, state, incoming, slot, fixed, by_maximum):
    """A message's entry for one state, computed without what that variable tells."""
    num_joint = 1
    for j in range(arity):
        num_joint *= sizes[j]
    largest, total = -np.inf, 0.0
    for again in range(1 if by_maximum else 2):
        for j in range(arity):
            state[j] = 0
        for x in range(num_joint):
            if state[slot] == fixed:
                value = theta[base + x]
                for j in range(arity):
                    if j != slot:
                        value += incoming[starts[j] + state[j]]
                if again:
                    total += np.exp(value - largest)
                else:
                    largest = max(largest, value)
            advance(state, sizes, arity)
        if largest == -np.inf:
            return largest
    return largest if by_maximum else largest + np.log(total)


@njit(cache=True, nogil=True, inline="always")
def _settle(outgoing, start, size, message, at, damping, candidate, change, link):
    """Normalises and damps a message, and measures its change as that of a probability; returns
    whether it leaves anything possible."""
    largest = -np.inf
    for s in range(size):
        largest = max(largest, outgoing[start + s])
    if largest == -np.inf:
        return False
    most = 0.0
    for s in range(size):
        old = message[at + s]
        new = outgoing[start + s] - largest
        if new > -np.inf and old > -np.inf:
            new += damping * (old - new)
            step = abs(new - old)
            if step > most:
                most = max(most, step * np.exp(max(new, old)))
        elif new != old:
            most = max(most, np.exp(max(new, old)))
        candidate[at + s] = new
    change[link] = most
    return True


@njit(cache=True, nogil=True)
def adopt(links, place, candidate, message):
    """Takes over the new messages of some links."""
    for i in range(len(links)):
        for at in range(place[links[i]], place[links[i] + 1]):
            message[at] = candidate[at]


@njit(cache=True, nogil=True)
def log_sums(
    begin, end, factor_ptr, variable, base, theta, place, first, message, total, zeros,
    by_maximum, room, log_sum,
):  # fmt: skip
    """Logarithms of the sums (or maxima) of factors with all that their variables tell."""
    sizes, starts = np.empty(room[0], dtype=np.int64), np.empty(room[0], dtype=np.int64)
    state, partial = np.empty(room[0], dtype=np.int64), np.empty(room[0] + 1)
    incoming, value = np.empty(room[1]), np.empty(room[2])
    for c in range(begin, end):
        link = factor_ptr[c]
        arity = factor_ptr[c + 1] - link
        num_entries, num_joint, shift = 0, 1, 0.0
        for j in range(arity):
            v = variable[link + j]
            starts[j], sizes[j] = num_entries, first[v + 1] - first[v]
            num_entries += sizes[j]
            num_joint *= sizes[j]
            shift += listen(
                link + j, variable, place, first, message, total, zeros, incoming, starts[j]
            )
        largest = weigh(base[c], theta, arity, sizes, starts, state, partial, incoming, value)
        if not by_maximum and largest > -np.inf:
            rest = 0.0
            for x in range(num_joint):
                rest += np.exp(value[x] - largest)
            largest += np.log(rest)
        log_sum[c] = shift + largest
