"""Sparse LDLᵀ factorisation, its solves, and the entries of the inverse on its structure."""

import numpy as np
from numba import njit

EPS = 2.0**-52

SINGULAR = 1e-14
"""A pivot this small against its diagonal entry counts as zero: the form is not definite."""


@njit(cache=True)
def _position(later, start, stop, step):
    """Where a step stands among the increasing ones from `start` to `stop`."""
    low, high = start, stop
    while low < high:
        middle = (low + high) // 2
        if later[middle] < step:
            low = middle + 1
        else:
            high = middle
    return low - start


@njit(cache=True)
def _fill_strides(
    discrete, start, stop, component_discrete, num_states, local_stride, state_stride
):  # fmt: skip
    """Steps of a factor's discrete slots through its own states, and through its component's."""
    stride = 1
    for slot in range(len(discrete) - 1, -1, -1):
        local_stride[slot] = stride
        stride *= num_states[discrete[slot]]
    stride = 1
    for at in range(stop - 1, start - 1, -1):
        for slot in range(len(discrete)):
            if discrete[slot] == component_discrete[at]:
                state_stride[slot] = stride
        stride *= num_states[component_discrete[at]]


@njit(cache=True)
def _local(state, discrete, num_states, local_stride, state_stride):
    """The state of a factor in a state of its component."""
    local = 0
    for slot in range(len(discrete)):
        digit = state // state_stride[slot] % num_states[discrete[slot]]
        local += digit * local_stride[slot]
    return local


@njit(cache=True)
def assemble(
    A, b, discrete, real, row, multiplicity, ptr, later, of_step,
    discrete_ptr, component_discrete, num_states, count,
    real_ptr, edge_ptr, diagonal, linear, edges,
):  # fmt: skip
    """Adds each factor's precision -2A and linear term b, in every state of its component."""
    num_reals, num_slots = real.shape[1], discrete.shape[1]
    local_stride = np.empty(num_slots, dtype=np.int64)
    state_stride = np.empty(num_slots, dtype=np.int64)
    for f in range(len(row)):
        component = of_step[real[f, 0]]
        _fill_strides(
            discrete[f], discrete_ptr[component], discrete_ptr[component + 1], component_discrete,
            num_states, local_stride, state_stride,
        )  # fmt: skip
        for i in range(num_reals):
            for j in range(i + 1):
                low, high = min(real[f, i], real[f, j]), max(real[f, i], real[f, j])
                if low != high:
                    k = _position(later, ptr[low], ptr[low + 1], high)
                    edge = edge_ptr[low] + k * count[component]
                for state in range(count[component]):
                    local = _local(state, discrete[f], num_states, local_stride, state_stride)
                    value = -2.0 * multiplicity[f] * A[row[f], local, i, j]
                    if low == high:
                        diagonal[real_ptr[low] + state] += value
                        linear[real_ptr[low] + state] += multiplicity[f] * b[row[f], local, i]
                    else:
                        edges[edge + state] += value


@njit(cache=True)
def add_values(
    A, b, discrete, real, row, multiplicity, of_step, discrete_ptr, component_discrete, num_states,
    count, state_ptr, real_ptr, mean, failed, log_total, lost,
):  # fmt: skip
    """Adds each factor's value at the means, in every state of its component that has some.

    That is the largest value of hᵀ x - ½ xᵀ J x, up to the square of the error of the means;
    ½ hᵀ J⁻¹ h would carry the error of J, in which thousands of terms may have been added up.
    `lost` is what rounding took from each total so far.
    """
    num_reals, num_slots = real.shape[1], discrete.shape[1]
    local_stride = np.empty(num_slots, dtype=np.int64)
    state_stride = np.empty(num_slots, dtype=np.int64)
    for f in range(len(row)):
        component = of_step[real[f, 0]]
        _fill_strides(
            discrete[f], discrete_ptr[component], discrete_ptr[component + 1], component_discrete,
            num_states, local_stride, state_stride,
        )  # fmt: skip
        for state in range(count[component]):
            at = state_ptr[component] + state
            if failed[at] >= 0:
                continue
            local = _local(state, discrete[f], num_states, local_stride, state_stride)
            value = 0.0
            for i in range(num_reals):
                slope = b[row[f], local, i]
                for j in range(num_reals):
                    slope += A[row[f], local, i, j] * mean[real_ptr[real[f, j]] + state]
                value += slope * mean[real_ptr[real[f, i]] + state]
            term = multiplicity[f] * value - lost[at]
            total = log_total[at] + term
            lost[at] = (total - log_total[at]) - term
            log_total[at] = total


@njit(cache=True)
def solve(
    ptr, later, component_ptr, steps, count, state_ptr, real_ptr, edge_ptr,
    diagonal, linear, edges, maximise, log_total, rounding, failed, mean, var,
):  # fmt: skip
    """Means and variances in every state, and in `log_total` the volumes, which are 1 when
    maximising."""
    num_steps = len(ptr) - 1
    factor = np.empty(len(later))
    inverse = np.empty(len(later))
    pivot, spread, column = np.empty(num_steps), np.empty(num_steps), np.zeros(num_steps)
    x = np.empty(num_steps)
    head = np.full(num_steps, -1, dtype=np.int64)
    link = np.full(num_steps, -1, dtype=np.int64)
    place = np.empty(num_steps, dtype=np.int64)
    for component in range(len(count)):
        inside = steps[component_ptr[component] : component_ptr[component + 1]]
        for state in range(count[component]):
            at = state_ptr[component] + state
            bad = factorise(
                inside, state, count[component], ptr, later, real_ptr, edge_ptr,
                diagonal, edges, factor, pivot, column, head, link, place, maximise,
            )  # fmt: skip
            if bad < 0:
                for v in inside:
                    x[v] = linear[real_ptr[v] + state]
                bad = forward(inside, ptr, later, factor, pivot, x)
            failed[at] = bad
            if bad >= 0:
                for v in inside:
                    mean[real_ptr[v] + state] = 0.0
                    var[real_ptr[v] + state] = 1.0
                continue
            total, lost, unsure = 0.0, 0.0, 0.0
            for v in inside:
                # What cancels in a pivot is lost in its logarithm.
                own = diagonal[real_ptr[v] + state]
                log_spread = 0.0 if maximise else 0.5 * np.log(2 * np.pi / pivot[v])
                unsure += (1.0 + abs(log_spread)) * max(own / pivot[v], 1.0)
                # Compensated: a component may have a million terms.
                term = log_spread - lost
                lost = (total + term - total) - term
                total += term
                x[v] /= pivot[v]
            for i in range(len(inside) - 1, -1, -1):
                v = inside[i]
                for e in range(ptr[v], ptr[v + 1]):
                    x[v] -= factor[e] * x[later[e]]
                mean[real_ptr[v] + state] = x[v]
            log_total[at] = total
            rounding[at] = EPS * unsure
            if not maximise:
                selected_inverse(inside, ptr, later, factor, pivot, inverse, spread, column)
                for v in inside:
                    var[real_ptr[v] + state] = spread[v]


@njit(cache=True)
def factorise(
    inside, state, count, ptr, later, real_ptr, edge_ptr, diagonal, edges,
    factor, pivot, column, head, link, place, maximise,
):  # fmt: skip
    """LDLᵀ of one component in one state, column by column; the step that fails, or -1.

    When maximising, a direction that is flat gets an infinite pivot: nothing moves along it.
    `head` and `link` list, for each step, the earlier columns whose next row it is.
    """
    for v in inside:
        head[v] = -1
    for v in inside:
        start, stop = ptr[v], ptr[v + 1]
        own = diagonal[real_ptr[v] + state]
        for e in range(start, stop):
            column[later[e]] = edges[edge_ptr[v] + (e - start) * count + state]
        left = own
        k = head[v]
        while k != -1:
            following = link[k]
            e = place[k]
            scale = factor[e] * pivot[k]
            left -= factor[e] * scale
            for below in range(e + 1, ptr[k + 1]):
                column[later[below]] -= factor[below] * scale
            if e + 1 < ptr[k + 1]:
                place[k] = e + 1
                link[k] = head[later[e + 1]]
                head[later[e + 1]] = k
            k = following
        if not left > SINGULAR * abs(own):
            if not maximise or left < -SINGULAR * abs(own):
                return v
            for e in range(start, stop):
                if abs(column[later[e]]) > SINGULAR * abs(own):
                    return v
            left = np.inf
        pivot[v] = left
        for e in range(start, stop):
            factor[e] = column[later[e]] / left
        if stop > start and left < np.inf:
            place[v] = start
            link[v] = head[later[start]]
            head[later[start]] = v
    return -1


@njit(cache=True)
def forward(inside, ptr, later, factor, pivot, x):
    """Solves L y = x in place; a step that is pushed along a flat direction, or -1."""
    for v in inside:
        if pivot[v] == np.inf and x[v] != 0.0:
            return v
        for e in range(ptr[v], ptr[v + 1]):
            x[later[e]] -= factor[e] * x[v]
    return -1


@njit(cache=True)
def selected_inverse(inside, ptr, later, factor, pivot, inverse, spread, column):
    """Entries of the inverse on the factor's own structure, last column first (Takahashi)."""
    for i in range(len(inside) - 1, -1, -1):
        v = inside[i]
        start, stop = ptr[v], ptr[v + 1]
        for e in range(start, stop):
            inverse[e] = 0.0
        for e in range(start, stop):
            u = later[e]
            for below in range(ptr[u], ptr[u + 1]):
                column[later[below]] = inverse[below]
            inverse[e] -= factor[e] * spread[u]
            for other in range(e + 1, stop):
                shared = column[later[other]]
                inverse[other] -= factor[e] * shared
                inverse[e] -= factor[other] * shared
        own = 1.0 / pivot[v]
        for e in range(start, stop):
            own -= factor[e] * inverse[e]
        spread[v] = own
