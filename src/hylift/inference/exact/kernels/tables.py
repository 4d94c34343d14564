"""Passes over the tables of cliques."""

import numpy as np
from numba import njit

BLOCK = 1024
"""Joint states whose offsets are tabulated, so that the walk over the others costs little."""

NEGLIGIBLE = -45.0
"""Log-values this far below the largest of a sum are lost in its rounding."""

IMPROBABLE = -150.0
"""Log-probability, relative to the largest, of a joint state that counts as 0."""

INFINITE = 1e299
"""Log-sums from here on stand for infinite ones."""

CLIQUE = np.dtype(
    [
        ("num_states", np.int64),  # of the variable eliminated
        ("later", np.int64, 2),  # begin and end of its later neighbours, the separator
        ("held", np.int64, 2),  # of its factors
        ("children", np.int64, 2),
        ("message", np.int64, 2),  # of its message to its parent, a table over the separator
    ],
    align=True,
)
FACTOR = np.dtype(
    [
        ("slots", np.int64, 2),  # begin and end
        ("base", np.int64),  # of its values
        ("multiplicity", np.float64),
    ],
    align=True,
)


@njit(cache=True)
def _strides(names, begin, end, clique, room, width):
    """Writes strides of a table over names[begin:end] along the axes of a clique (0 where absent);
    returns the first axis that it depends on.

    room: (3, axis), the variables of a clique, their numbers of states, and strides
    """
    for axis in range(width):
        room[2, axis] = 0
    first = width
    stride = 1
    for i in range(end - 1, begin - 1, -1):
        for axis in range(width):
            if room[0, axis] == names[i]:
                room[2, axis] = stride
                first = min(first, axis)
        stride *= clique[names[i]].num_states
    return first


@njit(cache=True)
def _add(onto_table, table, size, room, start, width, other, base, times):
    """table[state] += times * other[offset], or the other way round other[offset] += table[state],
    for all joint states of the axes from `start` on and their offsets in the other array.

    Offsets of all joint states of as many of the last axes as fit a block are tabulated.
    """
    inner = width - 1
    block = room[1, inner]
    while inner > start and block * room[1, inner - 1] <= BLOCK:
        inner -= 1
        block *= room[1, inner]
    offsets = np.empty(block, dtype=np.int64)
    offsets[0] = 0
    filled = 1
    for axis in range(width - 1, inner - 1, -1):
        for digit in range(1, room[1, axis]):
            for k in range(filled):
                offsets[digit * filled + k] = offsets[k] + digit * room[2, axis]
        filled *= room[1, axis]
    for axis in range(start, inner):
        room[3, axis] = 0
    offset = base
    for at in range(0, size, block):
        if onto_table:
            for k in range(block):
                table[at + k] += times * other[offset + offsets[k]]
        else:
            for k in range(block):
                other[offset + offsets[k]] += table[at + k]
        axis = inner - 1
        while axis >= start:
            room[3, axis] += 1
            offset += room[2, axis]
            if room[3, axis] < room[1, axis]:
                break
            offset -= room[2, axis] * room[1, axis]
            room[3, axis] = 0
            axis -= 1


@njit(cache=True)
def _fill(
    c, fixed, clique, factor, later, slots, held, children, values, messages, work, room, state
):  # fmt: skip
    """Makes a clique's table in `work`: its factors times its children's messages.

    The table grows axis by axis from the last, and each source is added as soon as the axes it
    depends on are there, so that most of them cost less than a pass over the whole table. The
    first `fixed` axes take their `state` instead.
    """
    own = clique[c]
    width = own.later[1] - own.later[0] + 1
    for axis in range(width):
        room[0, axis] = later[own.later[0] + axis] if axis < width - 1 else c
        room[1, axis] = clique[room[0, axis]].num_states
    num_held = own.held[1] - own.held[0]
    num_sources = num_held + own.children[1] - own.children[0]
    first = np.empty(num_sources, dtype=np.int64)
    size = 1
    work[0] = 0.0
    for axis in range(width - 1, fixed - 1, -1):
        for digit in range(1, room[1, axis]):
            for k in range(size):
                work[digit * size + k] = work[k]
        size *= room[1, axis]
        for i in range(num_sources):
            if axis < width - 1 and max(first[i], fixed) != axis:
                continue
            if i < num_held:
                f = factor[held[own.held[0] + i]]
                source, base, times = values, f.base, f.multiplicity
                first[i] = _strides(slots, f.slots[0], f.slots[1], clique, room, width)
            else:
                d = clique[children[own.children[0] + i - num_held]]
                source, base, times = messages, d.message[0], 1.0
                first[i] = _strides(later, d.later[0], d.later[1], clique, room, width)
            if max(first[i], fixed) != axis:
                continue
            for before in range(fixed):
                base += room[2, before] * state[room[0, before]]
            _add(np.bool_(True), work, size, room, axis, width, source, base, times)
    return width, size


@njit(cache=True)
def collect(
    start, stop, clique, factor, later, slots, held, children, values, messages, work, room, state,
    maximise, scale,
):  # fmt: skip
    """Messages, the largest finite entry of each 0; `scale` gets what was taken off."""
    for c in range(start, stop):
        _fill(
            c, np.int64(0), clique, factor, later, slots, held, children, values, messages, work,
            room, state,
        )  # fmt: skip
        block, begin, end = clique[c].num_states, clique[c].message[0], clique[c].message[1]
        largest, diverges = -np.inf, False
        for at in range(begin, end):
            first = (at - begin) * block
            top = -np.inf
            for k in range(first, first + block):
                top = max(top, work[k])
            if not maximise and top > -np.inf:
                total = 0.0
                for k in range(first, first + block):
                    below = work[k] - top
                    if below > NEGLIGIBLE:  # most entries of a narrow kernel are not
                        total += np.exp(below)
                top += np.log(total)
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
    start, stop, clique, factor, later, slots, held, children, values, messages, work, room, state,
    marginal_ptr, marginals, joint_at, joints,
):  # fmt: skip
    """Beliefs of cliques, parents first. On arrival at a clique its own message has been turned
    into what the parent knows beyond it: log of the parent's marginal over the message."""
    for c in range(stop - 1, start - 1, -1):
        width, size = _fill(
            c, np.int64(0), clique, factor, later, slots, held, children, values, messages, work,
            room, state,
        )  # fmt: skip
        own = clique[c]
        block = own.num_states
        top = -np.inf
        for s in range(size // block):
            beyond = messages[own.message[0] + s] if width > 1 else 0.0
            for k in range(s * block, (s + 1) * block):
                work[k] += beyond
                top = max(top, work[k])
        total = 0.0
        for k in range(size):
            below = work[k] - top
            work[k] = np.exp(below) if below > IMPROBABLE else 0.0
            total += work[k]
        for s in range(0, size, block):
            for k in range(block):
                work[s + k] /= total
                marginals[marginal_ptr[c] + k] += work[s + k]
        for i in range(own.held[0], own.held[1]):
            if joint_at[held[i]] >= 0:
                f = factor[held[i]]
                _strides(slots, f.slots[0], f.slots[1], clique, room, width)
                _add(
                    np.bool_(False), work, size, room, np.int64(0), width, joints,
                    joint_at[held[i]], 1.0,
                )  # fmt: skip
        for i in range(own.children[0], own.children[1]):
            d = clique[children[i]]
            shared = np.zeros(d.message[1] - d.message[0])
            _strides(later, d.later[0], d.later[1], clique, room, width)
            _add(
                np.bool_(False), work, size, room, np.int64(0), width, shared, np.int64(0), 1.0
            )  # fmt: skip
            for s in range(len(shared)):
                known = messages[d.message[0] + s]
                beyond = np.log(shared[s]) - known if known > -np.inf else -np.inf
                messages[d.message[0] + s] = beyond


@njit(cache=True)
def decode(
    clique, factor, later, slots, held, children, values, messages, work, room, state
):  # fmt: skip
    """The best state of each variable given those of its later neighbours, last step first."""
    for c in range(len(clique) - 1, -1, -1):
        _, size = _fill(
            c, clique[c].later[1] - clique[c].later[0], clique, factor, later, slots, held,
            children, values, messages, work, room, state,
        )  # fmt: skip
        best = 0
        for k in range(size):
            if work[k] > work[best]:
                best = k
        state[c] = best
