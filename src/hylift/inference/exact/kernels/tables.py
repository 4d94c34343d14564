"""Passes over the tables of cliques."""

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from hylift.inference.exact.kernels.quadratics import add_quadratic
from hylift.inference.exact.kernels.rows import SHORT, normalise, normalise_short
from hylift.numerics.kernels.random import uniform
from hylift.numerics.kernels.special import largest_of

BLOCK = 1024
"""Joint states whose offsets are tabulated, so that the walk over the others costs little."""

LARGE = 1e4
"""Log-values from which others are not subtracted, lest they lose digits."""

INFINITE = 1e299
"""Log-sums from here on stand for infinite ones."""

CLIQUE = np.dtype(
    [
        ("num_states", np.int64),  # of the variable eliminated
        ("num_nodes", np.int64),  # of these, those that are no cells of a lattice
        ("points", np.int64),  # its first state among the points of lattices
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
        ("num_discrete", np.int64),  # slots; the others are reals, of which it is a quadratic
        ("num_joint", np.int64),  # joint states of its discrete slots
        ("base", np.int64),  # of its values
        ("multiplicity", np.float64),
    ],
    align=True,
)


class Layout(NamedTuple):
    """The cliques and factors of a plan."""

    clique: NDArray  # (step,): `CLIQUE`
    factor: NDArray  # (factor,): `FACTOR`
    later: NDArray  # steps of the later neighbours of each clique
    slots: NDArray  # steps of the slots of each factor
    held: NDArray  # factors of each clique
    children: NDArray  # cliques whose message goes to each clique
    values: NDArray  # of factors
    low: NDArray  # (point of a lattice,): the ends of cells, the same at nodes
    high: NDArray


class Scratch(NamedTuple):
    """Room for one clique: its table, and what is known of its axes (`add_quadratic`)."""

    work: NDArray
    room: NDArray
    state: NDArray  # (step,): the states of axes that are fixed


class Kept(NamedTuple):
    """Conditional probabilities of variables given their later neighbours, kept for a second pass.

    Rows (one for each entry of a message) of few states are kept whole, others from the first to
    the last node that is not negligible, and then the cells.
    """

    values: NDArray
    used: NDArray  # (1,)
    start: NDArray  # (step,): in `values`, or -1
    begin: NDArray  # (row,)
    end: NDArray  # (row,)


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
def fill(c, fixed, at, messages, scratch):
    """Makes a clique's table in `work`: its factors times its children's messages.

    The table grows axis by axis from the last, and each source is added as soon as the axes it
    depends on are there, so that most of them cost less than a pass over the whole table. The
    first `fixed` axes take their `state` instead.
    """
    work, room, state = scratch
    own = at.clique[c]
    width = own.later[1] - own.later[0] + 1
    for axis in range(width):
        v = at.later[own.later[0] + axis] if axis < width - 1 else c
        room[0, axis], room[1, axis] = v, at.clique[v].num_states
        room[4, axis], room[5, axis] = at.clique[v].points, at.clique[v].num_nodes
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
                f = at.factor[at.held[own.held[0] + i]]
                source, base, times = at.values, f.base, f.multiplicity
                first[i] = _strides(at.slots, f.slots[0], f.slots[1], at.clique, room, width)
            else:
                d = at.clique[at.children[own.children[0] + i - num_held]]
                source, base, times = messages, d.message[0], 1.0
                first[i] = _strides(at.later, d.later[0], d.later[1], at.clique, room, width)
            if max(first[i], fixed) != axis:
                continue
            for before in range(fixed):
                room[3, before] = state[room[0, before]]
            if i < num_held and f.num_discrete < f.slots[1] - f.slots[0]:
                own_slots = at.slots[f.slots[0] : f.slots[1]]
                add_quadratic(
                    source, base, f.num_joint, times, own_slots, f.num_discrete, np.bool_(False),
                    room, axis, width, at.low, at.high, work,
                )  # fmt: skip
                continue
            for before in range(fixed):
                base += room[2, before] * room[3, before]
            _add(np.bool_(True), work, size, room, axis, width, source, base, times)
    return width, size


@njit(cache=True)
def _normalise_long(c, at, messages, work, kept, keep):
    """The log-sum of each row of many states, and their probabilities if they are kept."""
    own = at.clique[c]
    block, num_nodes, begin = own.num_states, own.num_nodes, own.message[0]
    first, last, used = 0, num_nodes, kept.used[0]
    for m in range(begin, own.message[1]):
        row = work[(m - begin) * block : (m - begin + 1) * block]
        messages[m], first, last = normalise(row, num_nodes, first, last)
        if not keep:
            continue
        kept.begin[m], kept.end[m] = first, last
        for k in range(first, last):
            kept.values[used + k - first] = row[k]
        used += last - first
        for k in range(num_nodes, block):
            kept.values[used + k - num_nodes] = row[k]
        used += block - num_nodes
    kept.used[0] = used


@njit(cache=True)
def _typical_entry(messages, room, width):
    """The largest finite entry of a message at nodes; at cells, if all others are impossible. If it
    is so large that others would lose digits, the entry nearest to 0."""
    largest, at_cells, outside, nearest = -np.inf, -np.inf, 0, np.inf
    for axis in range(width - 1):
        room[3, axis] = 0
        outside += room[5, axis] == 0
    for value in messages:
        if value < INFINITE:
            nearest = value if abs(value) < abs(nearest) else nearest
            if outside:
                at_cells = max(at_cells, value)
            else:
                largest = max(largest, value)
        for axis in range(width - 2, -1, -1):
            room[3, axis] += 1
            outside += room[3, axis] == room[5, axis]
            if room[3, axis] < room[1, axis]:
                break
            outside += (room[5, axis] == 0) - 1
            room[3, axis] = 0
    largest = largest if largest > -np.inf else at_cells
    return nearest if largest > LARGE else largest


@njit(cache=True)
def collect(start, stop, at, messages, scratch, maximise, scale, kept):
    """Messages, a typical entry of each being 0; `scale` gets what was taken off."""
    work, room = scratch.work, scratch.room
    for c in range(start, stop):
        width, size = fill(c, np.int64(0), at, messages, scratch)
        own = at.clique[c]
        block, found = own.num_states, messages[own.message[0] : own.message[1]]
        keep = kept.used[0] + size <= len(kept.values)
        if keep:
            kept.start[c] = kept.used[0]
        if maximise:
            for m in range(len(found)):
                found[m] = largest_of(work[m * block :], block)
        elif block < SHORT:
            probs = kept.values[kept.used[0] : kept.used[0] + (size if keep else 0)]
            normalise_short(work, block, found, probs)
            kept.used[0] += len(probs)
        else:
            _normalise_long(c, at, messages, work, kept, keep)
        largest = _typical_entry(found, room, width)
        scale[c] = largest
        if largest > -np.inf:
            for m in range(len(found)):
                if found[m] < INFINITE:
                    found[m] -= largest
        elif np.max(found) > -np.inf:
            scale[c] = 0.0


@njit(cache=True)
def _has_joint(own, at, joint_at):
    """True if more is asked of a clique than the marginal of its variable."""
    for i in range(own.held[0], own.held[1]):
        if joint_at[at.held[i]] >= 0:
            return True
    for i in range(own.children[0], own.children[1]):
        d = at.clique[at.children[i]]
        if d.later[1] - d.later[0] > 1:
            return True
    return False


@njit(cache=True)
def _times_rows(c, at, messages, scratch, kept, joint, marginal):
    """Adds the probabilities of rows times their conditionals to a marginal, and writes them to
    `work` where the joint distribution is asked for."""
    work, own = scratch.work, at.clique[c]
    block, num_nodes, source, used = own.num_states, own.num_nodes, kept.values, kept.start[c]
    shares = messages[own.message[0] : own.message[1]]
    if own.later[0] == own.later[1]:
        shares = np.ones(1)
    is_short, again, first, last = block < SHORT, used < 0, 0, num_nodes
    if again:
        _, size = fill(c, np.int64(0), at, messages, scratch)
        source, used = work, 0
        if is_short:
            normalise_short(work, block, np.empty(len(shares)), work[:size])
    for m in range(len(shares)):
        row = work[m * block : (m + 1) * block]
        if is_short:
            for k in range(block):
                value = shares[m] * source[used + k]
                marginal[k] += value
                if joint:
                    row[k] = value
            used += block
            continue
        if again:
            _, first, last = normalise(row, num_nodes, first, last)
            some, cells = row[first:last], row[num_nodes:]
        else:
            first, last = kept.begin[own.message[0] + m], kept.end[own.message[0] + m]
            some = source[used : used + last - first]
            cells = source[used + last - first : used + last - first + block - num_nodes]
            used += len(some) + len(cells)
        if joint:
            row[:first] = 0.0
            row[last:num_nodes] = 0.0
        for k in range(len(some)):
            value = shares[m] * some[k]
            marginal[first + k] += value
            if joint:
                row[first + k] = value
        for k in range(len(cells)):
            value = shares[m] * cells[k]
            marginal[num_nodes + k] += value
            if joint:
                row[num_nodes + k] = value


@njit(cache=True)
def pass_down(c, at, messages, scratch, marginal, share, joint_at, joints):
    """Adds the joint distribution of a clique, in `work`, to those of factors that are asked for,
    and replaces the messages of its children by what it gives to their separators."""
    work, room, own = scratch.work, scratch.room, at.clique[c]
    width, size = own.later[1] - own.later[0] + 1, 1
    for axis in range(width):
        room[0, axis] = at.later[own.later[0] + axis] if axis < width - 1 else c
        room[1, axis] = at.clique[room[0, axis]].num_states
        size *= room[1, axis]
    for i in range(own.held[0], own.held[1]):
        if joint_at[at.held[i]] >= 0:
            f = at.factor[at.held[i]]
            _strides(at.slots, f.slots[0], f.slots[1], at.clique, room, width)
            _add(
                np.bool_(False), work, size, room, np.int64(0), width, joints,
                joint_at[at.held[i]], 1.0,
            )  # fmt: skip
    for i in range(own.children[0], own.children[1]):
        d = at.clique[at.children[i]]
        known = messages[d.message[0] : d.message[1]]
        if d.later[1] - d.later[0] == 1:
            known[:] = marginal
            continue
        known[:] = 0.0
        _strides(at.later, d.later[0], d.later[1], at.clique, room, width)
        _add(
            np.bool_(False), work, size, room, np.int64(0), width, messages, d.message[0], 1.0
        )  # fmt: skip
        known *= share


@njit(cache=True)
def distribute(
    start, stop, at, messages, scratch, kept, marginal_ptr, marginals, joint_at, joints
):  # fmt: skip
    """Beliefs of cliques, parents first. On arrival at a clique its own message has been replaced
    by the probabilities that its parent gives to the joint states of its later neighbours."""
    for c in range(stop - 1, start - 1, -1):
        joint = _has_joint(at.clique[c], at, joint_at)
        marginal = marginals[marginal_ptr[c] : marginal_ptr[c + 1]]
        _times_rows(c, at, messages, scratch, kept, joint, marginal)
        share = 1.0 / marginal.sum()
        marginal *= share
        pass_down(c, at, messages, scratch, marginal, share, joint_at, joints)


@njit(cache=True)
def decode(at, messages, scratch):
    """The best state of each variable given those of its later neighbours, last step first."""
    for c in range(len(at.clique) - 1, -1, -1):
        own = at.clique[c]
        _, size = fill(c, own.later[1] - own.later[0], at, messages, scratch)
        best = 0
        for k in range(size):
            if scratch.work[k] > scratch.work[best]:
                best = k
        scratch.state[c] = best


@njit(cache=True)
def draw(at, messages, scratch, random, states):
    """Draws (draw, step) of the state of each variable given those of its later neighbours, last
    step first."""
    work, room = scratch.work, scratch.room
    for c in range(len(at.clique) - 1, -1, -1):
        width, size = fill(c, np.int64(0), at, messages, scratch)
        block = at.clique[c].num_states
        for start in range(0, size, block):
            top, total = largest_of(work[start:], block), 0.0
            for k in range(start, start + block):
                total += np.exp(work[k] - top) if work[k] > -np.inf else 0.0
                work[k] = total
        for d in range(len(states)):
            start = 0
            for axis in range(width - 1):
                start = start * room[1, axis] + states[d, room[0, axis]]
            row = work[start * block : (start + 1) * block]
            chosen = np.searchsorted(row, uniform(random) * row[-1], side="right")
            if chosen == block:  # by rounding
                chosen = np.searchsorted(row, row[-1])
            states[d, c] = chosen
