"""Messages between tables and discrete variables, in log space.

A message has one entry per state of its variable, the largest of them 0. What is impossible is
-inf; `zeros` counts the messages that say so of a state, and `total` adds up what the others say. A
slot that stands for a part of a factor counts for a whole one there: a power of 0 is 0.
"""

import numpy as np
from numba import njit

LOW = -600.0
"""An incoming entry below this is too small for an exponential."""

TINY = 1e-280
"""A sum of exponentials below this has lost digits: it is taken again in log space."""

SMALL = 0.1
"""A step of a logarithm up to this leaves a probability about the same."""

OTHERS = 1e-6
"""`zeros` without a slot's own part, above which a state is impossible."""


@njit(cache=True, nogil=True, _nrt=False)
def gather(
    begin, end, some, variable_ptr, order, count, place, first, old, compare, message, total, zeros
):  # fmt: skip
    """Adds up all messages to some variables.

    Returns a variable of which they leave nothing possible, or -1; and, if it is to `compare`, the
    largest change of a belief, weighed as that of a probability. old: room for the points of a
    variable
    """
    lost, change = np.int64(-1), 0.0
    for i in range(begin, end):
        v = some[i]
        low, high = first[v], first[v + 1]
        before, after = -np.inf, -np.inf
        for s in range(low, high):
            if compare:
                old[s - low] = total[s] if zeros[s] <= OTHERS else -np.inf
                before = max(before, old[s - low])
            total[s] = 0.0
            zeros[s] = 0.0
        for k in range(variable_ptr[v], variable_ptr[v + 1]):
            slot = order[k]
            at, n = place[slot], count[slot]
            for s in range(high - low):
                value = message[at + s]
                if value == -np.inf:
                    zeros[low + s] += max(n, 1.0)
                else:
                    total[low + s] += n * value
        for s in range(low, high):
            if zeros[s] <= OTHERS:
                after = max(after, total[s])
        if after == -np.inf and high > low:
            lost = np.int64(v)
        if not compare or after == -np.inf:
            continue
        for s in range(low, high):
            then, now = old[s - low] - before, -np.inf
            if zeros[s] <= OTHERS:
                now = total[s] - after
            if now != then:
                change = max(change, min(abs(now - then), 1.0) * np.exp(max(now, then)))
    return lost, change


@njit(cache=True, nogil=True, _nrt=False)
def tell(begin, end, variable, first, place, message, total, zeros, log_base, cavity):
    """Messages from variables to the factors of some slots, times the weights of points."""
    for slot in range(begin, end):
        low, at = first[variable[slot]], place[slot]
        for s in range(place[slot + 1] - at):
            own = message[at + s]
            others, value = zeros[low + s], total[low + s]
            if own == -np.inf:
                others -= 1.0
            else:
                value -= own
            cavity[at + s] = -np.inf if others > OTHERS else value + log_base[low + s]


@njit(cache=True, nogil=True, _nrt=False, inline="always")
def listen(link, variable, place, first, message, total, zeros, incoming, start):
    """Write the message of a variable to a slot's factor, largest entry 0; return that entry."""
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


@njit(cache=True, nogil=True, _nrt=False, inline="always")
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


@njit(cache=True, nogil=True, _nrt=False)
def send(
    begin, end, some, whole, parts, at_once, factor_ptr, variable, base, theta, weight, place,
    first, message, total, zeros, by_maximum, by_logs, damping, candidate, change, variables,
    variable_ptr, order, count,
):  # fmt: skip
    """New messages of some factors, and how much they change; or all messages at once, which are
    also taken over and added up.

    Returns an impossible factor or -1, a variable that is left no state or -1, and, if all at
    once, the largest changes of a message and, with loops, of a belief.

    whole, parts: room for integers (3, slot) and reals (5, entry). weight: the exponentials of the
    log-values `theta`, each table divided by its largest. by_logs: whether changes are those of
    logarithms.
    """
    sizes, starts, state = whole[0], whole[1], whole[2]
    incoming, told, outgoing, share = parts[0], parts[1], parts[2], parts[3]
    partial = parts[4]
    for i in range(begin, end):
        c = some[i]
        link = factor_ptr[c]
        arity = factor_ptr[c + 1] - link
        if arity == 1:
            at, size = place[link], place[link + 1] - place[link]
            for s in range(size):
                outgoing[s] = theta[base[c] + s]
            if not _normalise(np.int64(0), size, outgoing, share):
                return c, np.int64(-1), 0.0, 0.0
            # It hears nothing, and so has nothing to oscillate with.
            change[link] = _settle(
                outgoing, share, np.int64(0), size, message, at, by_logs, 0.0, candidate
            )
            continue
        num_entries = 0
        for j in range(arity):
            v = variable[link + j]
            starts[j], sizes[j] = num_entries, first[v + 1] - first[v]
            num_entries += sizes[j]
            listen(link + j, variable, place, first, message, total, zeros, incoming, starts[j])
        if by_maximum:
            _largest(base[c], theta, arity, sizes, starts, state, partial, incoming, outgoing)
        else:
            for s in range(num_entries):
                told[s] = 1.0 if incoming[s] == 0.0 else np.exp(incoming[s])
            _sums(base[c], weight, arity, sizes, starts, state, partial, told, outgoing)
        for j in range(arity):
            if by_maximum or not _divide(starts[j], sizes[j], incoming, told, outgoing, share):
                for s in range(starts[j], starts[j] + sizes[j]):
                    if by_maximum and incoming[s] > LOW:
                        outgoing[s] -= incoming[s]
                    else:
                        outgoing[s] = _without(
                            base[c], theta, arity, sizes, starts, state, incoming, j,
                            s - starts[j], by_maximum,
                        )  # fmt: skip
                if not _normalise(starts[j], sizes[j], outgoing, share):
                    return c, np.int64(-1), 0.0, 0.0
            change[link + j] = _settle(
                outgoing, share, starts[j], sizes[j], message, place[link + j], by_logs, damping,
                candidate,
            )  # fmt: skip
    if not at_once:
        return np.int64(-1), np.int64(-1), 0.0, 0.0
    largest = 0.0
    for slot in range(len(change)):
        largest = max(largest, change[slot])
    for at in range(len(message)):
        message[at] = candidate[at]
    lost, moved = gather(
        np.int64(0), np.int64(len(variables)), variables, variable_ptr, order, count, place, first,
        incoming, not by_logs, message, total, zeros,
    )  # fmt: skip
    return np.int64(-1), lost, largest, moved


@njit(cache=True, nogil=True, _nrt=False, inline="always")
def _largest(base, theta, arity, sizes, starts, state, partial, incoming, outgoing):
    """Per slot and state, the largest log-value of its joint states and all incoming messages."""
    num_joint, changed = 1, 0
    for j in range(arity):
        num_joint *= sizes[j]
        state[j] = 0
        for s in range(starts[j], starts[j] + sizes[j]):
            outgoing[s] = -np.inf
    partial[0] = 0.0
    for x in range(num_joint):
        for j in range(changed, arity):
            partial[j + 1] = partial[j] + incoming[starts[j] + state[j]]
        value = theta[base + x] + partial[arity]
        for j in range(arity):
            at = starts[j] + state[j]
            outgoing[at] = max(outgoing[at], value)
        changed = advance(state, sizes, arity)


@njit(cache=True, nogil=True, _nrt=False, inline="always")
def _sums(base, weight, arity, sizes, starts, state, partial, told, outgoing):
    """Per slot and state, the sum of the weights of its joint states times incoming messages."""
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


@njit(cache=True, nogil=True, _nrt=False)
def _without(base, theta, arity, sizes, starts, state, incoming, slot, fixed, by_maximum):
    """A message's entry for one state, computed without that variable's message."""
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


@njit(cache=True, nogil=True, _nrt=False, inline="always")
def _divide(start, size, incoming, told, outgoing, share):
    """Divide the sums of a variable by its message: shares of the largest, and their logarithms;
    returns whether the sums were large enough for that."""
    largest = 0.0
    for s in range(start, start + size):
        if incoming[s] <= LOW or outgoing[s] <= TINY:
            return False
        share[s] = outgoing[s] / told[s]
        largest = max(largest, share[s])
    for s in range(start, start + size):
        share[s] /= largest
        outgoing[s] = 0.0 if share[s] == 1.0 else np.log(share[s])
    return True


@njit(cache=True, nogil=True, _nrt=False, inline="always")
def _normalise(start, size, outgoing, share):
    """Logarithms less the largest, and their exponentials; whether anything is possible."""
    largest = -np.inf
    for s in range(start, start + size):
        largest = max(largest, outgoing[s])
    if largest == -np.inf:
        return False
    for s in range(start, start + size):
        outgoing[s] -= largest
        share[s] = np.exp(outgoing[s])
    return True


@njit(cache=True, nogil=True, _nrt=False, inline="always")
def _settle(outgoing, share, start, size, message, at, by_logs, damping, candidate):
    """Damps a message, and returns how it would change without: by logarithms, relative to their
    size, or weighed as a probability."""
    most = 0.0
    for s in range(size):
        old, new = message[at + s], outgoing[start + s]
        if new > -np.inf and old > -np.inf:
            step = abs(new - old)
            # The larger of both probabilities, where the old one is needed at all.
            larger = np.exp(old) if old > new and step > SMALL else share[start + s]
            most = max(most, step / (1.0 + abs(new)) if by_logs else step * larger)
            new += damping * (old - new)
        elif new != old:
            larger = share[start + s] if new > old else np.exp(old)
            most = max(most, 1.0 if by_logs else larger)
        candidate[at + s] = new
    return most


@njit(cache=True, nogil=True, _nrt=False)
def adopt(slots, place, candidate, message):
    """Takes over the new messages of some slots."""
    for i in range(len(slots)):
        for at in range(place[slots[i]], place[slots[i] + 1]):
            message[at] = candidate[at]
