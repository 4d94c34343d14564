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
    """Adds each term's precision -2A and linear part b, in every state of its component.

    What concerns promoted reals alone is left out: their steps come after those of all free ones.
    """
    num_free = len(real_ptr) - 1
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
                if low >= num_free:
                    continue
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
    promoted_ptr, promoted, form_ptr, forms,
):  # fmt: skip
    """Adds each term's value at the means, in every state of its component that has some.

    That is the largest value of hᵀ x - ½ xᵀ J x, up to the square of the error of the means;
    ½ hᵀ J⁻¹ h would carry the error of J, in which thousands of terms may have been added up.
    `lost` is what rounding took from each total so far. Promoted reals are 0 there; what concerns
    them alone is added to the forms of the component.
    """
    num_free = len(real_ptr) - 1
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
            beside = promoted[promoted_ptr[component[t]] : promoted_ptr[component[t] + 1]]
            size, start = len(beside), form_ptr[component[t]]
            for i in range(reals):
                if step[middle + i] >= num_free:
                    p = np.searchsorted(beside, step[middle + i])
                    at_linear = start + (count[component[t]] * size + state) * size
                    forms[at_linear + p] += multiplicity[t] * theta[at_b + local * reals + i]
                    for j in range(reals):
                        if step[middle + j] >= num_free:
                            q = np.searchsorted(beside, step[middle + j])
                            a = theta[base[t] + (local * reals + i) * reals + j]
                            forms[start + (state * size + p) * size + q] += multiplicity[t] * a
                    continue
                slope, row = theta[at_b + local * reals + i], base[t] + (local * reals + i) * reals
                for j in range(reals):
                    if step[middle + j] < num_free:
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
    promoted_ptr, promoted, form_ptr, forms, response_ptr, response,
):  # fmt: skip
    """Means and variances in every state, and in `log_total` the volumes, which are 1 when
    maximising. When not, `edges` become covariances.

    Promoted reals x are 0 there. `forms` gets A and b of the quadratic in x that integrating over
    the others leaves, and `response` the change of each mean with each of them.
    """
    num_steps = len(ptr) - 1
    factor, inverse = np.empty(len(later)), np.zeros(len(later))
    pivot, spread, column = np.empty(num_steps), np.zeros(num_steps), np.empty(num_steps)
    x = np.zeros(num_steps)
    head = np.empty(num_steps, dtype=np.int64)
    link = np.empty(num_steps, dtype=np.int64)
    place = np.empty(num_steps, dtype=np.int64)
    local = np.zeros(num_steps, dtype=np.int64)
    for component in range(len(count)):
        inside = steps[component_ptr[component] : component_ptr[component + 1]]
        beside = promoted[promoted_ptr[component] : promoted_ptr[component + 1]]
        for i in range(len(beside)):
            local[beside[i]] = i
        for state in range(count[component]):
            at = state_ptr[component] + state
            bad = factorise(
                inside, state, count[component], ptr, later, real_ptr, edge_ptr,
                diagonal, edges, factor, pivot, column, head, link, place, maximise,
            )  # fmt: skip
            if bad < 0:
                for v in inside:
                    x[v] = linear[real_ptr[v] + state]
                for p in beside:
                    x[p] = 0.0
                bad = forward(inside, ptr, later, factor, pivot, x)
            failed[at] = bad
            if bad >= 0:
                for v in inside:
                    mean[real_ptr[v] + state] = 0.0
                    var[real_ptr[v] + state] = 1.0
                continue
            if len(beside):
                _form(
                    inside, beside, local, ptr, later, factor, pivot, x, state, count[component],
                    form_ptr[component], forms,
                )  # fmt: skip
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
            for p in beside:
                x[p] = 0.0
            _backward(inside, ptr, later, factor, x)
            for v in inside:
                mean[real_ptr[v] + state] = x[v]
            for p in beside:
                for v in inside:
                    x[v] = 0.0
                x[p] = 1.0
                _backward(inside, ptr, later, factor, x)
                x[p] = 0.0
                for v in inside:
                    response[response_ptr[v] + local[p] * count[component] + state] = x[v]
            log_total[at] = total
            rounding[at] = EPS * unsure
            if not maximise:
                selected_inverse(inside, ptr, later, factor, pivot, inverse, spread, column)
                for v in inside:
                    var[real_ptr[v] + state] = spread[v]
                    for e in range(ptr[v], ptr[v + 1]):
                        edges[edge_ptr[v] + (e - ptr[v]) * count[component] + state] = inverse[e]


@njit(cache=True)
def _backward(inside, ptr, later, factor, x):
    """Solves Lᵀ y = x in place, given the x of promoted reals."""
    for i in range(len(inside) - 1, -1, -1):
        v = inside[i]
        for e in range(ptr[v], ptr[v + 1]):
            x[v] -= factor[e] * x[later[e]]


@njit(cache=True)
def _form(
    inside, beside, local, ptr, later, factor, pivot, x, state, count, start, forms
):  # fmt: skip
    """Writes A = ½ Bᵀ J⁻¹ B and b = -Bᵀ J⁻¹ h of promoted reals that B couples to free ones."""
    size, num_free = len(beside), beside[0]
    for p in beside:
        num_free = min(num_free, p)
    for v in inside:
        for e in range(ptr[v], ptr[v + 1]):
            if later[e] < num_free:
                continue
            row = start + (state * size + local[later[e]]) * size
            for f in range(ptr[v], ptr[v + 1]):
                if later[f] >= num_free:
                    forms[row + local[later[f]]] += 0.5 * factor[e] * pivot[v] * factor[f]
    for i in range(size):
        forms[start + (count * size + state) * size + i] = x[beside[i]]


@njit(cache=True)
def expected(
    slot_ptr, num_discrete, base, multiplicity, theta, num_joint, states, stride, state_stride,
    step, component, count, real_ptr, ptr, later, edge_ptr, mean, var, cov, response_ptr, response,
    promoted_ptr, promoted, form_ptr, forms,
):  # fmt: skip
    """Adds the expected value of each term, a quadratic of the promoted reals of its component, to
    `forms`: A, then b, then c of all states of the component."""
    num_free = len(real_ptr) - 1
    for t in range(len(base)):
        first, middle = slot_ptr[t], slot_ptr[t] + num_discrete[t]
        reals, c = slot_ptr[t + 1] - middle, component[t]
        beside = promoted[promoted_ptr[c] : promoted_ptr[c + 1]]
        size, at_b = len(beside), base[t] + num_joint[t] * reals * reals
        # Each real of the term is mid + Σ slope x of the promoted reals x.
        mid, slope = np.zeros(reals), np.zeros((reals, size))
        for state in range(count[c]):
            local = _local(state, first, middle, states, stride, state_stride)
            for i in range(reals):
                v = step[middle + i]
                for p in range(size):
                    slope[i, p] = 1.0 if beside[p] == v else 0.0
                    if v < num_free:
                        slope[i, p] = response[response_ptr[v] + p * count[c] + state]
                mid[i] = mean[real_ptr[v] + state] if v < num_free else 0.0
            at_A = form_ptr[c] + state * size * size
            at_linear = form_ptr[c] + count[c] * size * size + state * size
            at_c = form_ptr[c] + count[c] * size * (size + 1) + state
            for i in range(reals):
                own = multiplicity[t] * theta[at_b + local * reals + i]
                forms[at_c] += own * mid[i]
                for p in range(size):
                    forms[at_linear + p] += own * slope[i, p]
                for j in range(reals):
                    a = multiplicity[t] * theta[base[t] + (local * reals + i) * reals + j]
                    low, high = min(step[middle + i], step[middle + j]), step[middle + i]
                    high = max(high, step[middle + j])
                    both = 0.0
                    if high < num_free:
                        if low == high:
                            both = var[real_ptr[low] + state]
                        else:
                            edge = _position(later, ptr[low], ptr[low + 1], high)
                            both = cov[edge_ptr[low] + edge * count[c] + state]
                    forms[at_c] += a * (mid[i] * mid[j] + both)
                    for p in range(size):
                        forms[at_linear + p] += 2.0 * a * mid[i] * slope[j, p]
                        for q in range(size):
                            forms[at_A + p * size + q] += a * slope[i, p] * slope[j, q]


@njit(cache=True)
def draw(
    ptr, later, component_ptr, steps, count, real_ptr, edge_ptr, diagonal, linear, edges,
    draw_ptr, noise,
):  # fmt: skip
    """Turn standard normal noise (draw, step) into draws; those from draw_ptr[state] on are of one
    state. Returns a step that is not definite, or -1."""
    num_steps = len(ptr) - 1
    factor, pivot, column = np.empty(len(later)), np.empty(num_steps), np.empty(num_steps)
    x, middle = np.zeros(num_steps), np.zeros(num_steps)
    head = np.empty(num_steps, dtype=np.int64)
    link = np.empty(num_steps, dtype=np.int64)
    place = np.empty(num_steps, dtype=np.int64)
    for component in range(len(count)):
        inside = steps[component_ptr[component] : component_ptr[component + 1]]
        for state in range(count[component]):
            bad = factorise(
                inside, state, count[component], ptr, later, real_ptr, edge_ptr,
                diagonal, edges, factor, pivot, column, head, link, place, False,
            )  # fmt: skip
            if bad < 0:
                for v in inside:
                    x[v] = linear[real_ptr[v] + state]
                bad = forward(inside, ptr, later, factor, pivot, x)
            if bad >= 0:
                return bad
            for v in inside:
                middle[v] = x[v] / pivot[v]
            for d in range(draw_ptr[state], draw_ptr[state + 1]):
                for v in inside:
                    x[v] = middle[v] + noise[d, v] / np.sqrt(pivot[v])
                _backward(inside, ptr, later, factor, x)
                for v in inside:
                    noise[d, v] = x[v]
    return -1
