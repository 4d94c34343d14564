"""Gaussians of components, step by step: each step in the states of the axes that matter to it.

A front holds, for each local state, a symmetric matrix over a step and its later neighbours, their
linear part and the sum of their diagonals before any elimination; then the log-volume, its
uncertainty, and the step that failed plus one, or 0. States are last: `front[entry, state]`.
"""

import numpy as np
from numba import njit

from hylift.inference.exact.kernels.gaussian import EPS, _position
from hylift.numerics.kernels.sparse import SINGULAR


@njit(cache=True)
def spread_masks(parent, term_step, term_mask, mask):
    """Axes (as bits) that matter to each step: those of its terms, and of all that end in it."""
    for t in range(len(term_step)):
        mask[term_step[t]] |= term_mask[t]
    for v in range(len(parent)):
        if parent[v] >= 0:
            mask[parent[v]] |= mask[v]


@njit(cache=True)
def _offsets(sizes, axes, stride, out):
    """out[state] = Σ digit · stride, for the joint states of the axes in a mask; their number."""
    out[0] = 0
    count = 1
    for axis in range(len(sizes) - 1, -1, -1):
        if axes >> axis & 1:
            for digit in range(1, sizes[axis]):
                for k in range(count):
                    out[digit * count + k] = out[k] + digit * stride[axis]
            count *= sizes[axis]
    return count


@njit(cache=True)
def _strides(sizes, axes, stride):
    """Strides of the joint states of the axes in a mask, 0 of others; their number."""
    count = 1
    for axis in range(len(sizes) - 1, -1, -1):
        stride[axis] = 0
        if axes >> axis & 1:
            stride[axis] = count
            count *= sizes[axis]
    return count


@njit(cache=True)
def front_size(width):
    """Numbers per state of a front of so many reals."""
    return width * width + 2 * width + 3


@njit(cache=True)
def _place(later, ptr, v, u):
    """The position of a step in the front of v."""
    return 0 if u == v else 1 + _position(later, ptr[v], ptr[v + 1], u)


@njit(cache=True)
def add_terms(
    terms, slot_ptr, num_discrete, base, multiplicity, theta, num_joint, stride, axis, step,
    component, term_step, term_mask, term_front, sizes, ptr, later, front_at, fronts,
):  # fmt: skip
    """Adds some terms to the fronts of their first steps."""
    place = np.empty(64, dtype=np.int64)
    strides = np.zeros(sizes.shape[1], dtype=np.int64)
    for t in terms:
        first, middle = slot_ptr[t], slot_ptr[t] + num_discrete[t]
        reals, times, v = slot_ptr[t + 1] - middle, multiplicity[t], term_step[t]
        if reals > len(place):
            place = np.empty(reals, dtype=np.int64)
        width = ptr[v + 1] - ptr[v] + 1
        at = front_at[term_front[t]]
        strides[:] = 0
        for slot in range(first, middle):
            strides[axis[slot]] += stride[slot]
        own = np.empty((front_at[term_front[t] + 1] - at) // front_size(width), dtype=np.int64)
        count = _offsets(sizes[component[t]], term_mask[t], strides, own)
        for i in range(reals):
            place[i] = _place(later, ptr, v, step[middle + i])
        at_b = base[t] + num_joint[t] * reals * reals
        for i in range(reals):
            linear = at + (width * width + place[i]) * count
            diagonal = linear + width * count
            for s in range(count):
                fronts[linear + s] += times * theta[at_b + own[s] * reals + i]
                bell = -2.0 * times * theta[base[t] + (own[s] * reals + i) * reals + i]
                fronts[diagonal + s] += bell
            for j in range(reals):
                entry = at + (place[i] * width + place[j]) * count
                for s in range(count):
                    value = theta[base[t] + (own[s] * reals + i) * reals + j]
                    fronts[entry + s] -= 2.0 * times * value


@njit(cache=True)
def _gathered(v, width, count, mask, sizes, front_ptr, front_mask, front_at, fronts, room, front):
    """The front of a step in all of its states: the sum of those that terms and steps added to."""
    entries = front_size(width)
    front[: entries * count] = 0.0
    strides = np.zeros(len(sizes), dtype=np.int64)
    for f in range(front_ptr[v], front_ptr[v + 1]):
        theirs = _strides(sizes, front_mask[f], strides)
        _offsets(sizes, mask, strides, room)
        for entry in range(entries):
            source, target = front_at[f] + entry * theirs, entry * count
            if entry == entries - 1:
                for s in range(count):
                    front[target + s] = max(front[target + s], fronts[source + room[s]])
            else:
                for s in range(count):
                    front[target + s] += fronts[source + room[s]]


@njit(cache=True)
def eliminate(
    inside, sizes, ptr, later, parent, mask, front_ptr, front_mask, front_at, onto, fronts,
    local_ptr, factor_at, pivot, ratio, factor, room, front, log_total, rounding, failed,
):  # fmt: skip
    """Pivots, factors and forward solutions of the steps of one component; its totals (state,)."""
    strides = np.zeros(len(sizes), dtype=np.int64)
    place = np.empty(1, dtype=np.int64)
    for v in inside:
        d = ptr[v + 1] - ptr[v]
        width = d + 1
        count = _strides(sizes, mask[v], strides)
        _gathered(
            v, width, count, mask[v], sizes, front_ptr, front_mask, front_at, fronts, room, front
        )
        square, linear, diagonal = 0, width * width * count, (width * width + width) * count
        volume = (width * width + 2 * width) * count
        unsure, bad = volume + count, volume + 2 * count
        own = local_ptr[v]
        for s in range(count):
            left, before = front[square + s], front[diagonal + s]
            if not left > SINGULAR * abs(before):
                if front[bad + s] == 0.0:
                    front[bad + s] = v + 1
                left, before = 1.0, 1.0
            x = front[linear + s] / left
            pivot[own + s], ratio[own + s] = left, x
            log_spread, value = 0.5 * np.log(2 * np.pi / left), 0.5 * x * x * left
            front[volume + s] += log_spread + value
            front[unsure + s] += (1.0 + abs(log_spread)) * max(before / left, 1.0) + value
        for e in range(d):
            at = factor_at[v] + e * count
            for s in range(count):
                factor[at + s] = front[(e + 1) * count + s] / pivot[own + s]
        if parent[v] < 0:
            for s in range(count):
                log_total[s] = front[volume + s]
                rounding[s] = EPS * front[unsure + s]
                failed[s] = np.int64(front[bad + s]) - 1
            continue
        up = parent[v]
        wider = ptr[up + 1] - ptr[up] + 1
        if d > len(place):
            place = np.empty(d, dtype=np.int64)
        for e in range(d):
            place[e] = _place(later, ptr, up, later[ptr[v] + e])
        target = front_at[onto[v]]
        for i in range(d):
            row = factor_at[v] + i * count
            for j in range(d):
                source = ((i + 1) * width + j + 1) * count
                into = target + (place[i] * wider + place[j]) * count
                cross = (j + 1) * count
                for s in range(count):
                    fronts[into + s] += front[source + s] - factor[row + s] * front[cross + s]
            into = target + (wider * wider + place[i]) * count
            source, before = linear + (i + 1) * count, diagonal + (i + 1) * count
            for s in range(count):
                fronts[into + s] += front[source + s] - factor[row + s] * front[linear + s]
                fronts[into + wider * count + s] += front[before + s]
        into = target + (wider * wider + 2 * wider) * count
        for s in range(2 * count):
            fronts[into + s] += front[volume + s]
        for s in range(count):
            at = into + 2 * count + s
            fronts[at] = max(fronts[at], front[bad + s])


@njit(cache=True)
def substitute(
    inside, sizes, ptr, later, mask, local_ptr, factor_at, pivot, ratio, factor, count, failed,
    real_ptr, edge_ptr, room, mean, var, cov,
):  # fmt: skip
    """Means, variances and covariances of later neighbours in every state of one component."""
    strides = np.zeros(len(sizes), dtype=np.int64)
    every = np.int64(1) << len(sizes)
    for i in range(len(inside) - 1, -1, -1):
        v = inside[i]
        d = ptr[v + 1] - ptr[v]
        theirs = _strides(sizes, mask[v], strides)
        _offsets(sizes, every - 1, strides, room)
        shared = np.empty((d, d), dtype=np.int64)
        for e in range(d):
            u = later[ptr[v] + e]
            shared[e, e] = real_ptr[u]
            for other in range(e + 1, d):
                at = _position(later, ptr[u], ptr[u + 1], later[ptr[v] + other])
                shared[e, other] = shared[other, e] = edge_ptr[u] + at * count
        own, edge = real_ptr[v], edge_ptr[v]
        for s in range(count):
            if failed[s] >= 0:
                mean[own + s], var[own + s] = 0.0, 1.0
                continue
            local = room[s]
            x, spread = ratio[local_ptr[v] + local], 1.0 / pivot[local_ptr[v] + local]
            for e in range(d):
                f = factor[factor_at[v] + e * theirs + local]
                x -= f * mean[real_ptr[later[ptr[v] + e]] + s]
                total = 0.0
                for other in range(d):
                    g = factor[factor_at[v] + other * theirs + local]
                    at = shared[e, other] + s
                    total -= g * (var[at] if e == other else cov[at])
                cov[edge + e * count + s] = total
                spread -= f * total
            mean[own + s], var[own + s] = x, spread
