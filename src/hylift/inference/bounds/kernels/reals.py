"""Reals eliminated in mini-buckets, in every joint state of the discrete variables beside them.

A message is, for each joint state, -½ xᵀ J x + hᵀ x + k of the later reals: J, then h, then k. The
later neighbours of a mini-bucket are mini-buckets of reals, then discrete variables, which are
numbered after all mini-buckets.
"""

import math

import numpy as np
from numba import njit

SINGULAR = 1e-12
"""A pivot this small against what it was added up from counts as zero."""
DIVERGES = 1e300
"""Log-value of an infinite integral: larger than any finite one, yet it adds up."""
EPS = 2.0**-52


@njit(cache=True)
def _places(names, begin, end, c, later, first):
    """(name,): 0 for a mini-bucket's own real, else 1 + the place among its later neighbours."""
    found = np.zeros(end - begin, dtype=np.int64)
    for i in range(begin, end):
        if names[i] != c:
            at = first
            while later[at] != names[i]:
                at += 1
            found[i - begin] = 1 + at - first
    return found


@njit(cache=True)
def _local_states(names, begin, place, first, stride, states, size):
    """(joint state of a mini-bucket,): joint state of the discrete `names` from `begin` on.

    place: of each name, as from `_places`; stride: of later neighbours; states: (name,) of discrete
    variables, 0 of reals
    """
    local = np.zeros(size, dtype=np.int64)
    own = 1
    for i in range(len(place) - 1, -1, -1):
        count = states[names[begin + i]]
        if count > 0:
            step = stride[first + place[i] - 1]
            for s in range(size):
                local[s] += s // step % count * own
            own *= count
    return local


@njit(cache=True)
def _assembled(
    c, ptr, later, num_reals, count, stride, states, held_ptr, held, child_ptr, child, message_ptr,
    slot_ptr, slots, num_discrete, base, multiplicity, theta, messages,
):  # fmt: skip
    """J, h and k of a mini-bucket in every joint state, and the sizes that its own curvature was
    added up from."""
    size, width, first = count[c], num_reals[c] + 1, ptr[c]
    J, h, k = np.zeros((size, width, width)), np.zeros((size, width)), np.zeros(size)
    sizes = np.zeros(size)
    for i in range(held_ptr[c], held_ptr[c + 1]):
        t = held[i]
        place = _places(slots, slot_ptr[t], slot_ptr[t + 1], c, later, first)
        local = _local_states(
            slots, slot_ptr[t], place[: num_discrete[t]], first, stride, states, size
        )
        middle, times = num_discrete[t], multiplicity[t]
        reals = len(place) - middle
        joint = 1
        for slot in range(slot_ptr[t], slot_ptr[t] + middle):
            joint *= states[slots[slot]]
        at_b = base[t] + joint * reals * reals
        at_c = at_b + joint * reals
        for s in range(size):
            k[s] += times * theta[at_c + local[s]]
            for a in range(reals):
                row = base[t] + (local[s] * reals + a) * reals
                h[s, place[middle + a]] += times * theta[at_b + local[s] * reals + a]
                for b in range(reals):
                    value = -2.0 * times * theta[row + b]
                    J[s, place[middle + a], place[middle + b]] += value
                    if place[middle + a] == 0 and place[middle + b] == 0:
                        sizes[s] += abs(value)
    for i in range(child_ptr[c], child_ptr[c + 1]):
        d = child[i]
        n = num_reals[d]
        place = _places(later, ptr[d], ptr[d + 1], c, later, first)
        local = _local_states(later, ptr[d] + n, place[n:], first, stride, states, size)
        at_h = message_ptr[d] + count[d] * n * n
        at_k = at_h + count[d] * n
        for s in range(size):
            k[s] += messages[at_k + local[s]]
            for a in range(n):
                h[s, place[a]] += messages[at_h + local[s] * n + a]
                for b in range(n):
                    value = messages[message_ptr[d] + (local[s] * n + a) * n + b]
                    J[s, place[a], place[b]] += value
                    if place[a] == 0 and place[b] == 0:
                        sizes[s] += abs(value)
    return J, h, k, sizes


@njit(cache=True)
def collect(
    ptr, later, num_reals, count, stride, states, held_ptr, held, child_ptr, child, message_ptr,
    slot_ptr, slots, num_discrete, base, multiplicity, theta, messages,
    curvature, slope, weight, gain_ptr, gains,
):  # fmt: skip
    """Messages, with the costs -½ curvature x² + slope x of each replica and its weight. Returns
    a rough bound on rounding errors.

    gains: for each joint state the pivot D, then h / D and J / D of the own real
    """
    rounding = 0.0
    for c in range(len(count)):
        J, h, k, sizes = _assembled(
            c, ptr, later, num_reals, count, stride, states, held_ptr, held, child_ptr, child,
            message_ptr, slot_ptr, slots, num_discrete, base, multiplicity, theta, messages,
        )  # fmt: skip
        size, n, w = count[c], num_reals[c], weight[c]
        at_h = message_ptr[c] + size * n * n
        at_k = at_h + size * n
        lost = 0.0
        for s in range(size):
            D, own = J[s, 0, 0] + curvature[c], h[s, 0] + slope[c]
            whole = sizes[s] + abs(curvature[c])
            at = gain_ptr[c] + s * (n + 2)
            if not SINGULAR * whole < D or k[s] >= DIVERGES / 10:
                messages[at_k + s] = DIVERGES
                messages[at_h + s * n : at_h + (s + 1) * n] = 0.0
                start = message_ptr[c] + s * n * n
                messages[start : start + n * n] = 0.0
                for a in range(n):  # what comes later has a pivot all the same
                    messages[start + a * n + a] = 1.0
                gains[at], gains[at + 1 : at + n + 2] = 1.0, 0.0
                continue
            peak = 0.5 * own * own / D
            messages[at_k + s] = k[s] + 0.5 * w * math.log(2 * math.pi * w / D) + peak
            lost = max(lost, EPS * (whole / D * (1.0 + peak) + abs(k[s])))
            gains[at], gains[at + 1] = D, own / D
            for a in range(n):
                gains[at + 2 + a] = J[s, 0, a + 1] / D
                messages[at_h + s * n + a] = h[s, a + 1] - J[s, 0, a + 1] * own / D
                for b in range(n):
                    messages[message_ptr[c] + (s * n + a) * n + b] = (
                        J[s, a + 1, b + 1] - J[s, 0, a + 1] * J[s, 0, b + 1] / D
                    )
        rounding += lost
    return rounding


@njit(cache=True)
def distribute(
    ptr, later, num_reals, count, stride, states, held_ptr, held, child_ptr, child, message_ptr,
    moments, weight, gain_ptr, gains, of_curvature, of_slope, of_weight,
):  # fmt: skip
    """Slopes of the bound in the costs and weights of replicas.

    moments: laid out as messages, with the probabilities of the joint states of those that have no
    later real in place of k, and 0 elsewhere; it is filled with expectations of products xxᵀ, of x,
    and with probabilities. Given later reals, the own one is h / D - (J / D) x with variance w / D.
    """
    for c in range(len(count) - 1, -1, -1):
        size, n, w = count[c], num_reals[c], weight[c]
        at_x = message_ptr[c] + size * n * n
        at_p = at_x + size * n
        first, second = np.empty((size, n + 1)), np.empty((size, n + 1, n + 1))
        for s in range(size):
            at = gain_ptr[c] + s * (n + 2)
            D, p = gains[at], moments[at_p + s]
            mean = gains[at + 1] * p
            for a in range(n):
                x = moments[at_x + s * n + a]
                first[s, a + 1] = x
                mean -= gains[at + 2 + a] * x
                product = gains[at + 1] * x
                for b in range(n):
                    xx = moments[message_ptr[c] + (s * n + a) * n + b]
                    second[s, a + 1, b + 1] = xx
                    product -= gains[at + 2 + b] * xx
                second[s, 0, a + 1] = second[s, a + 1, 0] = product
            square = p * w / D + gains[at + 1] * mean
            for a in range(n):
                square -= gains[at + 2 + a] * second[s, 0, a + 1]
            first[s, 0], second[s, 0, 0] = mean, square
            of_slope[c] += mean
            of_curvature[c] -= 0.5 * square
            of_weight[c] += 0.5 * p * (math.log(2 * math.pi * w / D) + 1.0)
        for i in range(child_ptr[c], child_ptr[c + 1]):
            d = child[i]
            m = num_reals[d]
            place = _places(later, ptr[d], ptr[d + 1], c, later, ptr[c])
            local = _local_states(later, ptr[d] + m, place[m:], ptr[c], stride, states, size)
            to_x = message_ptr[d] + count[d] * m * m
            to_p = to_x + count[d] * m
            for s in range(size):
                moments[to_p + local[s]] += moments[at_p + s]
                for a in range(m):
                    moments[to_x + local[s] * m + a] += first[s, place[a]]
                    for b in range(m):
                        at = message_ptr[d] + (local[s] * m + a) * m + b
                        moments[at] += second[s, place[a], place[b]]
