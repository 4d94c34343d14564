"""Passes over the tables of cliques."""

import numpy as np
from numba import njit

BLOCK = 1024
"""Joint states whose offsets are tabulated, so that the walk over the others costs little."""

INFINITE = 1e299
"""Log-sums from here on stand for infinite ones."""


@njit(cache=True)
def _axes(c, states, ptr, later, axes, cards):
    """Writes the variables of a clique and their numbers of states; returns how many there are."""
    width = ptr[c + 1] - ptr[c] + 1
    for axis in range(width - 1):
        axes[axis] = later[ptr[c] + axis]
    axes[width - 1] = c
    for axis in range(width):
        cards[axis] = states[axes[axis]]
    return width


@njit(cache=True)
def _strides(axes, states, scope, out):
    """Strides of a table over `scope` along the axes of a clique (0 where absent); the first
    axis it depends on."""
    for axis in range(len(axes)):
        out[axis] = 0
    first = len(axes)
    stride = 1
    for i in range(len(scope) - 1, -1, -1):
        for axis in range(len(axes)):
            if axes[axis] == scope[i]:
                out[axis] = stride
                first = min(first, axis)
        stride *= states[scope[i]]
    return first


@njit(cache=True)
def _block(cards, strides):
    """Offsets of all joint states of as many of the last axes as fit a block, and the first of
    those axes."""
    inner = len(cards) - 1
    size = cards[inner]
    while inner > 0 and size * cards[inner - 1] <= BLOCK:
        inner -= 1
        size *= cards[inner]
    offsets = np.zeros(size, dtype=np.int64)
    filled = 1
    for axis in range(len(cards) - 1, inner - 1, -1):
        for digit in range(1, cards[axis]):
            for k in range(filled):
                offsets[digit * filled + k] = offsets[k] + digit * strides[axis]
        filled *= cards[axis]
    return inner, offsets


@njit(cache=True)
def _next(digits, cards, strides, inner, offset):
    """Advances the joint state of the axes before `inner`; returns its offset."""
    axis = inner - 1
    while axis >= 0:
        digits[axis] += 1
        offset += strides[axis]
        if digits[axis] < cards[axis]:
            break
        offset -= strides[axis] * cards[axis]
        digits[axis] = 0
        axis -= 1
    return offset


@njit(cache=True)
def _add(table, size, cards, strides, source, base, times):
    """table[state] += times * source[base + offset of the state]."""
    inner, offsets = _block(cards, strides)
    digits = np.zeros(len(cards), dtype=np.int64)
    offset = base
    for at in range(0, size, len(offsets)):
        for k in range(len(offsets)):
            table[at + k] += times * source[offset + offsets[k]]
        offset = _next(digits, cards, strides, inner, offset)


@njit(cache=True)
def _marginalise(table, size, cards, strides, target, base):
    """target[base + offset of the state] += table[state]."""
    inner, offsets = _block(cards, strides)
    digits = np.zeros(len(cards), dtype=np.int64)
    offset = base
    for at in range(0, size, len(offsets)):
        for k in range(len(offsets)):
            target[offset + offsets[k]] += table[at + k]
        offset = _next(digits, cards, strides, inner, offset)


@njit(cache=True)
def _fill(
    c, fixed, states, ptr, later, f_ptr, scope, f_base, times, values,
    held_ptr, held, child_ptr, child, m_ptr, messages, work, axes, cards, strides, state,
):  # fmt: skip
    """Makes a clique's table in `work`: its factors times its children's messages.

    The table grows axis by axis from the last, and each source is added as soon as the axes it
    depends on are there, so that most of them cost less than a pass over the whole table. The
    first `fixed` axes take their `state` instead.
    """
    width = _axes(c, states, ptr, later, axes, cards)
    num_held = held_ptr[c + 1] - held_ptr[c]
    num_sources = num_held + child_ptr[c + 1] - child_ptr[c]
    first = np.empty(num_sources, dtype=np.int64)
    size = 1
    work[0] = 0.0
    for axis in range(width - 1, fixed - 1, -1):
        for digit in range(1, cards[axis]):
            for k in range(size):
                work[digit * size + k] = work[k]
        size *= cards[axis]
        for i in range(num_sources):
            if axis < width - 1 and max(first[i], fixed) != axis:
                continue
            if i < num_held:
                f = held[held_ptr[c] + i]
                names = scope[f_ptr[f] : f_ptr[f + 1]]
                base, by = f_base[f], times[f]
            else:
                d = child[child_ptr[c] + i - num_held]
                names = later[ptr[d] : ptr[d + 1]]
                base, by = m_ptr[d], 1.0
            first[i] = _strides(axes[:width], states, names, strides)
            if max(first[i], fixed) != axis:
                continue
            for before in range(fixed):
                base += strides[before] * state[axes[before]]
            source = values if i < num_held else messages
            _add(work, size, cards[axis:width], strides[axis:width], source, base, by)
    return width, size


@njit(cache=True)
def _scaled(message):
    """Takes the largest finite sum off all finite ones; returns it."""
    top, diverges = -np.inf, False
    for value in message:
        if value < INFINITE:
            top = max(top, value)
        else:
            diverges = True
    if top == -np.inf:
        return 0.0 if diverges else top
    for s in range(len(message)):
        if message[s] < INFINITE:
            message[s] -= top
    return top


@njit(cache=True)
def collect(
    start, stop, states, ptr, later, f_ptr, scope, f_base, times, values,
    held_ptr, held, child_ptr, child, m_ptr, room, messages, work, maximise, scale,
):  # fmt: skip
    """Messages, each scaled to a maximum of 0; `scale` gets what was taken off."""
    axes = np.empty(room, dtype=np.int64)
    cards = np.empty(room, dtype=np.int64)
    strides = np.empty(room, dtype=np.int64)
    nothing = np.empty(0, dtype=np.int32)
    for c in range(start, stop):
        _fill(
            c, 0, states, ptr, later, f_ptr, scope, f_base, times, values,
            held_ptr, held, child_ptr, child, m_ptr, messages, work, axes, cards, strides, nothing,
        )  # fmt: skip
        block = states[c]
        for s in range(m_ptr[c + 1] - m_ptr[c]):
            top = -np.inf
            for k in range(s * block, (s + 1) * block):
                top = max(top, work[k])
            if not maximise and top > -np.inf:
                total = 0.0
                for k in range(s * block, (s + 1) * block):
                    total += np.exp(work[k] - top)
                top += np.log(total)
            messages[m_ptr[c] + s] = top
        scale[c] = _scaled(messages[m_ptr[c] : m_ptr[c + 1]])


@njit(cache=True)
def distribute(
    start, stop, states, ptr, later, f_ptr, scope, f_base, times, values,
    held_ptr, held, child_ptr, child, m_ptr, room, messages, work,
    marginal_ptr, marginals, joint_at, joints,
):  # fmt: skip
    """Beliefs of cliques, parents first. On arrival at a clique its own message has been turned
    into what the parent knows beyond it: log of the parent's marginal over the message."""
    axes = np.empty(room, dtype=np.int64)
    cards = np.empty(room, dtype=np.int64)
    strides = np.empty(room, dtype=np.int64)
    nothing = np.empty(0, dtype=np.int32)
    for c in range(stop - 1, start - 1, -1):
        width, size = _fill(
            c, 0, states, ptr, later, f_ptr, scope, f_base, times, values,
            held_ptr, held, child_ptr, child, m_ptr, messages, work, axes, cards, strides, nothing,
        )  # fmt: skip
        block = states[c]
        top = -np.inf
        for s in range(m_ptr[c + 1] - m_ptr[c]):
            beyond = messages[m_ptr[c] + s] if width > 1 else 0.0
            for k in range(s * block, (s + 1) * block):
                work[k] += beyond
                top = max(top, work[k])
        total = 0.0
        for k in range(size):
            work[k] = np.exp(work[k] - top)
            total += work[k]
        own = marginals[marginal_ptr[c] : marginal_ptr[c + 1]]
        for s in range(m_ptr[c + 1] - m_ptr[c]):
            for k in range(block):
                work[s * block + k] /= total
                own[k] += work[s * block + k]
        for i in range(held_ptr[c], held_ptr[c + 1]):
            f = held[i]
            if joint_at[f] >= 0:
                _strides(axes[:width], states, scope[f_ptr[f] : f_ptr[f + 1]], strides)
                _marginalise(work, size, cards[:width], strides[:width], joints, joint_at[f])
        for i in range(child_ptr[c], child_ptr[c + 1]):
            d = child[i]
            shared = np.zeros(m_ptr[d + 1] - m_ptr[d])
            _strides(axes[:width], states, later[ptr[d] : ptr[d + 1]], strides)
            _marginalise(work, size, cards[:width], strides[:width], shared, 0)
            for s in range(len(shared)):
                known = messages[m_ptr[d] + s]
                beyond = np.log(shared[s]) - known if known > -np.inf else -np.inf
                messages[m_ptr[d] + s] = beyond


@njit(cache=True)
def decode(
    states, ptr, later, f_ptr, scope, f_base, times, values,
    held_ptr, held, child_ptr, child, m_ptr, room, messages, work, state,
):  # fmt: skip
    """The best state of each variable given those of its later neighbours, last step first."""
    axes = np.empty(room, dtype=np.int64)
    cards = np.empty(room, dtype=np.int64)
    strides = np.empty(room, dtype=np.int64)
    for c in range(len(states) - 1, -1, -1):
        _, size = _fill(
            c, ptr[c + 1] - ptr[c], states, ptr, later, f_ptr, scope, f_base, times, values,
            held_ptr, held, child_ptr, child, m_ptr, messages, work, axes, cards, strides, state,
        )  # fmt: skip
        best = 0
        for k in range(size):
            if work[k] > work[best]:
                best = k
        state[c] = best
