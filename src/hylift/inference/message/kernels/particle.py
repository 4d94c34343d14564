"""Messages between factors and points: the states of discrete variables, the particles of reals.

A real is given by its distance from a centre of its variable, so that nothing is lost where values
are large and differences small. Messages are logarithms; what is impossible is -inf.
"""

import numpy as np
from numba import njit

from hylift.numerics.kernels.special import largest_of, sum_of_exponentials

NEGLIGIBLE = -42.0
"""Logarithm of a share that changes no digit of a sum."""


@njit(cache=True, nogil=True, inline="always")
def _centred(base, theta, joint, reals, middle, linear, constant):
    """Linear and constant parts of a quadratic in distances from the middle, state by state."""
    at_b = base + joint * reals * reals
    at_c = at_b + joint * reals
    for s in range(joint):
        value = theta[at_c + s]
        for r in range(reals):
            slope = 0.0
            for q in range(reals):
                slope += theta[base + (s * reals + r) * reals + q] * middle[q]
            b = theta[at_b + s * reals + r]
            value += (b + slope) * middle[r]
            linear[s * reals + r] = b + 2.0 * slope
        constant[s] = value


@njit(cache=True, nogil=True, inline="always")
def _value(base, theta, s, reals, linear, constant, x, without):
    """The log-value in a joint state at distances x, leaving out one real."""
    value = constant[s]
    for r in range(reals):
        if r != without:
            slope = linear[s * reals + r]
            row = base + (s * reals + r) * reals
            for q in range(reals):
                if q != without:
                    slope += theta[row + q] * x[q]
            value += slope * x[r]
    return value


@njit(cache=True, nogil=True, inline="always")
def _added(values, size, largest, total, power, rest):
    """A running log-sum-exp (its largest term, and the sum of all relative to it) with more."""
    top = largest_of(values, size)
    if top == -np.inf or top < largest + NEGLIGIBLE:
        return largest, total
    if top > largest:
        total = 0.0 if largest == -np.inf else total * np.exp(largest - top)
        largest = top
    return largest, total + sum_of_exponentials(values, size, largest, power, rest)


@njit(cache=True, nogil=True)
def send(
    begin, end, factor_ptr, variable, num_discrete, base, theta, centre, first, point, place,
    cavity, target_first, target, target_place, reals_only, room, outgoing,
):  # fmt: skip
    """Messages of some factors at target points of their receivers, not normalised.

    Of each message the sum runs over the points of all other slots, the last of them innermost.
    room: the largest arity, points of a slot, joint states, and joint states times reals.
    """
    size, start, stride = np.empty((3, room[0] + 1), dtype=np.int64)
    state = np.empty(room[0] + 1, dtype=np.int64)
    middle, x = np.empty(room[0] + 1), np.empty(room[0] + 1)
    values, power, rest = np.empty(room[1]), np.empty(room[1]), np.empty(room[1])
    constant, linear = np.empty(room[2]), np.empty(room[3] + 1)
    for c in range(begin, end):
        link = factor_ptr[c]
        arity = factor_ptr[c + 1] - link
        discrete = num_discrete[c]
        reals, joint = arity - discrete, np.int64(1)
        for j in range(arity - 1, -1, -1):
            v = variable[link + j]
            size[j], start[j] = first[v + 1] - first[v], first[v]
            if j < discrete:
                stride[j] = joint
                joint *= size[j]
            else:
                middle[j - discrete] = centre[v]
        _centred(base[c], theta, joint, reals, middle, linear, constant)
        for j in range(discrete if reals_only else 0, arity):
            inner = arity - 1 if j < arity - 1 else arity - 2
            low = target_first[variable[link + j]]
            for r in range(target_first[variable[link + j] + 1] - low):
                for i in range(arity):
                    state[i] = 0
                if j < discrete:
                    state[j] = r
                else:
                    x[j - discrete] = target[low + r]
                largest, total = -np.inf, 0.0
                going = True
                while going:
                    weight, s = 0.0, np.int64(0)
                    for i in range(arity):
                        if i < discrete:
                            s += stride[i] * state[i]
                        if i != j and i != inner:
                            weight += cavity[place[link + i] + state[i]]
                            if i >= discrete:
                                x[i - discrete] = point[start[i] + state[i]]
                    count = np.int64(0)
                    if weight == -np.inf:
                        pass
                    elif inner < discrete:
                        at, by, count = np.int64(-1), np.int64(0), np.int64(1)
                        if inner >= 0:
                            at, by, count = place[link + inner], stride[inner], size[inner]
                        for k in range(count):
                            told = weight + cavity[at + k] if at >= 0 else 0.0
                            values[k] = told + _value(
                                base[c], theta, s + by * k, reals, linear, constant, x,
                                np.int64(-1),
                            )  # fmt: skip
                    else:
                        count = size[inner]
                        at, begins = place[link + inner], start[inner]
                        own = inner - discrete
                        weight += _value(base[c], theta, s, reals, linear, constant, x, own)
                        row = base[c] + (s * reals + own) * reals
                        slope, bend = linear[s * reals + own], theta[row + own]
                        for q in range(reals):
                            if q != own:
                                slope += 2.0 * theta[row + q] * x[q]
                        for k in range(count):
                            y = point[begins + k]
                            values[k] = weight + cavity[at + k] + y * (slope + bend * y)
                    largest, total = _added(values, count, largest, total, power, rest)
                    going = False
                    for i in range(arity - 1, -1, -1):
                        if i != j and i != inner:
                            state[i] += 1
                            if state[i] < size[i]:
                                going = True
                                break
                            state[i] = 0
                found = largest + np.log(total) if total > 0.0 else -np.inf
                outgoing[target_place[link + j] + r] = found


@njit(cache=True, nogil=True)
def settle(begin, end, place, candidate, damping, message, height, change):
    """Takes over the messages of some links, the largest entry of each 0, and returns that entry.

    Their change without damping is measured as that of a probability. Returns a link that leaves
    nothing possible, or -1.
    """
    for link in range(begin, end):
        low, high = place[link], place[link + 1]
        largest = -np.inf
        for at in range(low, high):
            largest = max(largest, candidate[at])
        if largest == -np.inf:
            return link
        most = 0.0
        for at in range(low, high):
            old, new = message[at], candidate[at] - largest
            if new > -np.inf and old > -np.inf:
                most = max(most, abs(new - old) * np.exp(max(new, old)))
                new += damping * (old - new)
            elif new != old:
                most = max(most, np.exp(max(new, old)))
            message[at] = new
        height[link], change[link] = largest, most
    return np.int64(-1)
