"""Expected energies of tables and conditional quadratics, with gradients; coordinate ascent."""

import numpy as np

from hylift.components.kernels import kernel, part
from hylift.components.kernels.steps import to_optimum

ZERO = np.int64(0)
"""Not a literal, for which kernels would be compiled once more."""


@kernel
def energy_block(
    begin, end, slot_ptr, slots, num_discrete, base, multiplicity, theta, hard, part,
    first, moments, weights, target, shift, state, prefix, gradient, value,
):  # fmt: skip
    """Add the expected energies of the terms begin … end to value (start, component, part), and
    their gradients, times the component's weight, to gradient (start, entry, component).

    part: (term,), where its energy is added. moments: (start, entry, component): mean and variance
    of reals, probabilities of states. hard: the energy of what is impossible. target - shift:
    (slot,), the first entry of its gradient. state, prefix: scratch for the slots of a term.
    """
    prefix[0] = 1.0
    for start in range(weights.shape[0]):
        for k in range(weights.shape[1]):
            for term in range(begin, end):
                value[start, k, part[term]] += _term_energy(
                    slot_ptr[term], slot_ptr[term + 1], num_discrete[term], base[term],
                    multiplicity[term], slots, theta, hard, first, moments, start, k,
                    weights[start, k], target, shift, gradient, state, prefix,
                )  # fmt: skip


@part
def _term_energy(
    low, high, num_discrete, base, multiplicity, slots, theta, hard, first, moments,
    start, k, weight, target, shift, gradient, state, prefix,
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
    total = 0.0
    for joint in range(num_joint):
        # Probability of the joint state, and of all slots but one.
        for place in range(num_discrete):
            p = moments[start, first[slots[low + place]] + state[place], k]
            prefix[place + 1] = prefix[place] * p
        probability = prefix[num_discrete]
        expected = theta[at_c + joint]
        if expected == -np.inf:
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
                    slope += 2.0 * theta[row + j] * moments[start, first[slots[middle + j]], k]
                expected += 0.5 * mean * (linear + slope) + square * moments[start, at_i + 1, k]
                at = target[middle + i] - shift
                gradient[start, at, k] += scale * probability * slope
                gradient[start, at + 1, k] += scale * probability * square
        if probability > 0.0:
            total += probability * expected
        behind = 1.0
        for place in range(num_discrete - 1, -1, -1):
            others = prefix[place] * behind
            if others > 0.0:
                at = target[low + place] - shift + state[place]
                gradient[start, at, k] += scale * others * expected
            behind *= moments[start, first[slots[low + place]] + state[place], k]
        for place in range(num_discrete - 1, -1, -1):  # the next joint state
            variable = slots[low + place]
            state[place] += 1
            if state[place] < first[variable + 1] - first[variable]:
                break
            state[place] = 0
    return -multiplicity * total


@kernel
def scatter(begin, end, slot_ptr, slots, first, source, buffer, gradient):
    """Add the gradients of a block's slots, which lie one after the other in its buffer, to the
    gradient (start, entry, component); source: (slot + 1,)."""
    low, high = slot_ptr[begin], slot_ptr[end]
    for start in range(gradient.shape[0]):
        for slot in range(low, high):
            at = first[slots[slot]] - source[slot]
            for entry in range(source[slot], source[slot + 1]):
                for k in range(gradient.shape[2]):
                    gradient[start, at + entry, k] += buffer[start, entry - source[low], k]


@kernel
def sweep(
    order, edge_ptr, edge, term_of, slot_ptr, slots, num_discrete, base, term_multiplicity, theta,
    hard, family, first, lower, upper, least_var, most_var, multiplicity, source, damping, state,
    prefix, gradient, slope, entries, change,
):  # fmt: skip
    """Move each variable of single products, entries (start, entry, 1), to its optimum given the
    others; fill change (start,) with the largest change: of a mean in standard deviations, or of
    a probability.

    order: the variables to move. damping: (start,), the share of the way to go, in natural
    parameters; starts of share 0 stay. source: (slot + 1,), as for `scatter`. Scratch: gradient
    (start, entry of a term, 1), slope (entry of a variable,), state and prefix.
    """
    prefix[0] = 1.0
    for start in range(entries.shape[0]):
        largest = change[start] = 0.0
        if damping[start] == 0.0:
            continue
        for number in range(len(order)):
            variable = order[number]
            at, end = first[variable], first[variable + 1]
            for entry in range(end - at):
                slope[entry] = 0.0
            for place in range(edge_ptr[variable], edge_ptr[variable + 1]):
                slot = edge[place]
                term = term_of[slot]
                low, high = slot_ptr[term], slot_ptr[term + 1]
                for entry in range(source[high] - source[low]):
                    gradient[start, entry, 0] = 0.0
                _term_energy(
                    low, high, num_discrete[term], base[term], term_multiplicity[term], slots,
                    theta, hard, first, entries, start, ZERO, 1.0, source, source[low], gradient,
                    state, prefix,
                )  # fmt: skip
                for entry in range(end - at):
                    slope[entry] += gradient[start, source[slot] - source[low] + entry, 0]
            moved = to_optimum(
                family[variable], start, at, end, slope, multiplicity[variable], damping[start],
                lower[variable], upper[variable], least_var[variable], most_var[variable], entries,
            )  # fmt: skip
            largest = max(largest, moved)
        change[start] = largest
