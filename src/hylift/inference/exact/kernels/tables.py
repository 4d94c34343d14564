"""Passes over the tables of cliques."""

import numpy as np
from numba import njit

BLOCK = 1024
"""Joint states whose offsets are tabulated, so that the walk over the others costs little."""

INFINITE = 1e299
"""Log-sums from here on stand for infinite ones."""


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
def _add(onto_table, table, size, cards, strides, other, base, times):
    """table[state] += times * other[offset], or the other way round other[offset] += table[state],
    for all joint states of the axes and their offsets in the other array.

    Offsets of all joint states of as many of the last axes as fit a block are tabulated.
    """
    inner = len(cards) - 1
    block = cards[inner]
    while inner > 0 and block * cards[inner - 1] <= BLOCK:
        inner -= 1
        block *= cards[inner]
    offsets = np.zeros(block, dtype=np.int64)
    filled = 1
    for axis in range(len(cards) - 1, inner - 1, -1):
        for digit in range(1, cards[axis]):
            for k in range(filled):
                offsets[digit * filled + k] = offsets[k] + digit * strides[axis]
        filled *= cards[axis]
    digits = np.zeros(len(cards), dtype=np.int64)
    offset = base
    for at in range(0, size, block):
        if onto_table:
            for k in range(block):
                table[at + k] += times * other[offset + offsets[k]]
        else:
            for k in range(block):
                other[offset + offsets[k]] += table[at + k]
        axis = inner - 1
        while axis >= 0:
            digits[axis] += 1
            offset += strides[axis]
            if digits[axis] < cards[axis]:
                break
            offset -= strides[axis] * cards[axis]
            digits[axis] = 0
            axis -= 1


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
    width = ptr[c + 1] - ptr[c] + 1
    for axis in range(width):
        axes[axis] = later[ptr[c] + axis] if axis < width - 1 else c
        cards[axis] = states[axes[axis]]
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
            _add(
                np.bool_(True), work, size, cards[axis:width], strides[axis:width], source, base, by
            )
    return width, size


@njit(cache=True)
def collect(
    start, stop, states, ptr, later, f_ptr, scope, f_base, times, values,
    held_ptr, held, child_ptr, child, m_ptr, room, messages, work, maximise, scale,
):  # fmt: skip
    """Messages, the largest finite entry of each 0; `scale` gets what was taken off."""
    axes = np.empty(room, dtype=np.int64)
    cards = np.empty(room, dtype=np.int64)
    strides = np.empty(room, dtype=np.int64)
    nothing = np.empty(0, dtype=np.int32)
    for c in range(start, stop):
        _fill(
            c, np.int64(0), states, ptr, later, f_ptr, scope, f_base, times, values,
            held_ptr, held, child_ptr, child, m_ptr, messages, work, axes, cards, strides, nothing,
        )  # fmt: skip
        block = states[c]
        largest, diverges = -np.inf, False
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
            if top < INFINITE:
                largest = max(largest, top)
            else:
                diverges = True
        scale[c] = largest
        if largest == -np.inf:
            if diverges:
                scale[c] = 0.0
            continue
        for at in range(m_ptr[c], m_ptr[c + 1]):
            if messages[at] < INFINITE:
                messages[at] -= largest


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
            c, np.int64(0), states, ptr, later, f_ptr, scope, f_base, times, values,
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
                _add(
                    np.bool_(False),
                    work,
                    size,
                    cards[:width],
                    strides[:width],
                    joints,
                    joint_at[f],
                    1.0,
                )
        for i in range(child_ptr[c], child_ptr[c + 1]):
            d = child[i]
            shared = np.zeros(m_ptr[d + 1] - m_ptr[d])
            _strides(axes[:width], states, later[ptr[d] : ptr[d + 1]], strides)
            _add(
                np.bool_(False),
                work,
                size,
                cards[:width],
                strides[:width],
                shared,
                np.int64(0),
                1.0,
            )
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
