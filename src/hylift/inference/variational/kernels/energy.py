"""Expected energies of tables and conditional quadratics, and their gradients."""

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def energy_block(
    begin, end, slot_ptr, slots, num_discrete, base, multiplicity, theta, hard,
    first, moments, weights, grad_ptr, buffer, value,
):  # fmt: skip
    """Adds the expected energies of the terms begin … end to value (start, component), and writes
    their gradients, times the component's weight, to buffer (start, entry of a slot, component).

    moments: (start, entry, component): mean and variance of reals, probabilities of states.
    hard: the energy of what is impossible. grad_ptr: (slot + 1,), the place of each slot's entries,
    counted from the first slot of the block.
    """
    most = 1
    for term in range(begin, end):
        most = max(most, slot_ptr[term + 1] - slot_ptr[term])
    state = np.zeros(most, dtype=np.int64)
    prefix = np.ones(most + 1)
    suffix = np.ones(most + 1)
    shift = grad_ptr[slot_ptr[begin]]
    for start in range(weights.shape[0]):
        for component in range(weights.shape[1]):
            total = 0.0
            for term in range(begin, end):
                total += term_energy(
                    slot_ptr[term], slot_ptr[term + 1], num_discrete[term], base[term],
                    multiplicity[term], slots, theta, hard, first, moments, start, component,
                    weights[start, component], grad_ptr, shift, buffer, state, prefix, suffix,
                )  # fmt: skip
            value[start, component] += total


@njit(cache=True, nogil=True, inline="always")
def term_energy(
    low, high, num_discrete, base, multiplicity, slots, theta, hard, first, moments,
    start, k, weight, grad_ptr, shift, buffer, state, prefix, suffix,
):  # fmt: skip
    middle = low + num_discrete
    num_reals = high - middle
    num_joint = 1
    for slot in range(low, middle):
        num_joint *= first[slots[slot] + 1] - first[slots[slot]]
        state[slot - low] = 0
    at_b = base + num_joint * num_reals * num_reals
    at_c = at_b + num_joint * num_reals
    scale = -multiplicity * weight
    for entry in range(grad_ptr[low] - shift, grad_ptr[high] - shift):
        buffer[start, entry, k] = 0.0
    total = 0.0
    for joint in range(num_joint):
        # Probability of the joint state, and of all slots but one.
        for place in range(num_discrete):
            p = moments[start, first[slots[low + place]] + state[place], k]
            prefix[place + 1] = prefix[place] * p
        probability = prefix[num_discrete]
        expected = theta[at_c + joint]
        impossible = expected == -np.inf
        if impossible:
            expected = -hard
        else:
            for i in range(num_reals):
                at_i = first[slots[middle + i]]
                mean = moments[start, at_i, k]
                row = base + (joint * num_reals + i) * num_reals
                linear = theta[at_b + joint * num_reals + i]
                square = theta[row + i]
                slope = linear
                for j in range(num_reals):
                    other = moments[start, first[slots[middle + j]], k]
                    slope += 2.0 * theta[row + j] * other
                expected += 0.5 * mean * (linear + slope)
                expected += square * moments[start, at_i + 1, k]
                at = grad_ptr[middle + i] - shift
                buffer[start, at, k] += scale * probability * slope
                buffer[start, at + 1, k] += scale * probability * square
        if probability > 0.0:
            total += probability * expected
        if num_discrete:
            for place in range(num_discrete - 1, -1, -1):
                p = moments[start, first[slots[low + place]] + state[place], k]
                suffix[place] = p if place == num_discrete - 1 else suffix[place + 1] * p
            for place in range(num_discrete):
                others = prefix[place]
                if place < num_discrete - 1:
                    others *= suffix[place + 1]
                if others > 0.0:
                    at = grad_ptr[low + place] - shift + state[place]
                    buffer[start, at, k] += scale * others * expected
            place = num_discrete - 1
            while place >= 0:
                variable = slots[low + place]
                state[place] += 1
                if state[place] < first[variable + 1] - first[variable]:
                    break
                state[place] = 0
                place -= 1
    return -multiplicity * total


@njit(cache=True, nogil=True)
def scatter(begin, end, slot_ptr, slots, first, grad_ptr, buffer, gradient):
    """Adds what a block has written for its slots to the gradient (start, entry, component)."""
    low, high = slot_ptr[begin], slot_ptr[end]
    shift = grad_ptr[low]
    num_components = gradient.shape[2]
    for start in range(gradient.shape[0]):
        for slot in range(low, high):
            target = first[slots[slot]]
            source = grad_ptr[slot] - shift
            for entry in range(grad_ptr[slot + 1] - grad_ptr[slot]):
                for k in range(num_components):
                    gradient[start, target + entry, k] += buffer[start, source + entry, k]
