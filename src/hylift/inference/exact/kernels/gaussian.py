"""Gaussians of components of reals in every joint state of their discrete neighbours."""

import numpy as np
from numba import njit

from hylift.numerics.kernels.sparse import factorise, forward, selected_inverse

EPS = 2.0**-52


@njit(cache=True)
def _position(later, start, stop, step):
    """The position of a step among the increasing ones from `start` to `stop`."""
    low, high = start, stop
    while low < high:
        middle = (low + high) // 2
        if later[middle] < step:
            low = middle + 1
        else:
            high = middle
    return low - start


@njit(cache=True)
def _local(state, first, middle, states, stride, state_stride):
    """The joint state of a term's slots, from `first` to `middle`, in a state of its component."""
    local = 0
    for slot in range(first, middle):
        local += state // state_stride[slot] % states[slot] * stride[slot]
    return local


@njit(cache=True)
def assemble(
    slot_ptr, num_discrete, base, multiplicity, theta, num_joint, states, stride, state_stride,
    step, component, count, real_ptr, ptr, later, edge_ptr, diagonal, linear, edges,
):  # fmt: skip
    """Adds each term's precision -2A and linear part b, in every state of its component."""
    for t in range(len(base)):
        first, middle = slot_ptr[t], slot_ptr[t] + num_discrete[t]
        reals = slot_ptr[t + 1] - middle
        num_states, times = count[component[t]], multiplicity[t]
        at_b = base[t] + num_joint[t] * reals * reals
        for i in range(reals):
            for j in range(i + 1):
                low, high = step[middle + i], step[middle + j]
                if low > high:
                    low, high = high, low
                edge = np.int64(0)
                if i != j:
                    edge = _position(later, ptr[low], ptr[low + 1], high)
                    edge = edge_ptr[low] + edge * num_states
                for state in range(num_states):
                    local = _local(state, first, middle, states, stride, state_stride)
                    value = -2.0 * times * theta[base[t] + (local * reals + i) * reals + j]
                    if i == j:
                        diagonal[real_ptr[low] + state] += value
                        linear[real_ptr[low] + state] += times * theta[at_b + local * reals + i]
                    else:
                        edges[edge + state] += value


@njit(cache=True)
def add_values(
    slot_ptr, num_discrete, base, multiplicity, theta, num_joint, states, stride, state_stride,
    step, component, count, real_ptr, state_ptr, mean, failed, log_total, lost,
):  # fmt: skip
    """Adds each term's value at the means, in every state of its component that has some.

    That is the largest value of hᵀ x - ½ xᵀ J x, up to the square of the error of the means;
    ½ hᵀ J⁻¹ h would carry the error of J, in which thousands of terms may have been added up.
    `lost` is what rounding took from each total so far.
    """
    for t in range(len(base)):
        first, middle = slot_ptr[t], slot_ptr[t] + num_discrete[t]
        reals = slot_ptr[t + 1] - middle
        at_b = base[t] + num_joint[t] * reals * reals
        for state in range(count[component[t]]):
            at = state_ptr[component[t]] + state
            if failed[at] >= 0:
                continue
            local = _local(state, first, middle, states, stride, state_stride)
            value = 0.0
            for i in range(reals):
                slope, row = theta[at_b + local * reals + i], base[t] + (local * reals + i) * reals
                for j in range(reals):
                    slope += theta[row + j] * mean[real_ptr[step[middle + j]] + state]
                value += slope * mean[real_ptr[step[middle + i]] + state]
            term = multiplicity[t] * value - lost[at]
            total = log_total[at] + term
            lost[at] = (total - log_total[at]) - term
            log_total[at] = total


@njit(cache=True)
def solve(
    ptr, later, component_ptr, steps, count, state_ptr, real_ptr, edge_ptr,
    diagonal, linear, edges, maximise, log_total, rounding, failed, mean, var,
):  # fmt: skip
    """Means and variances in every state, and in `log_total` the volumes, which are 1 when
    maximising. When not, `edges` become covariances."""
    num_steps = len(ptr) - 1
    factor, inverse = np.empty(len(later)), np.empty(len(later))
    pivot, spread, column = np.empty(num_steps), np.empty(num_steps), np.empty(num_steps)
    x = np.empty(num_steps)
    head = np.empty(num_steps, dtype=np.int64)
    link = np.empty(num_steps, dtype=np.int64)
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
                    for e in range(ptr[v], ptr[v + 1]):
                        edges[edge_ptr[v] + (e - ptr[v]) * count[component] + state] = inverse[e]
