"""Coordinate ascent of a single product: each variable in turn to its best, given the others."""

import math

import numpy as np
from numba import njit

from hylift.components.family import CATEGORICAL, LEAST_PROBABILITY
from hylift.inference.variational.kernels.energy import term_energy

ZERO = np.int64(0)
"""Not a literal, for which kernels would be compiled once more."""


@njit(cache=True, nogil=True)
def slots_of_variables(slot_ptr, slots, num_variables):
    """Per variable the slots in which it stands: start (variable + 1,), slot (edge,); and the term
    of each slot."""
    start = np.zeros(num_variables + 1, dtype=np.int64)
    for slot in range(len(slots)):
        start[slots[slot] + 1] += 1
    for variable in range(num_variables):
        start[variable + 1] += start[variable]
    at = start[:-1].copy()
    edge = np.empty(len(slots), dtype=np.int64)
    term_of = np.empty(len(slots), dtype=np.int32)
    for term in range(len(slot_ptr) - 1):
        for slot in range(slot_ptr[term], slot_ptr[term + 1]):
            edge[at[slots[slot]]] = slot
            at[slots[slot]] += 1
            term_of[slot] = term
    return start, edge, term_of


@njit(cache=True, nogil=True)
def has_neighbours_of_one_class(slot_ptr, slots):
    """Whether a variable stands in two slots of a term."""
    for term in range(len(slot_ptr) - 1):
        for slot in range(slot_ptr[term], slot_ptr[term + 1]):
            for other in range(slot_ptr[term], slot):
                if slots[slot] == slots[other]:
                    return True
    return False


@njit(cache=True, nogil=True)
def _scratch(slot_ptr, first, grad_ptr):
    """Arrays for the largest term, and for the gradient of any term or variable."""
    most, widest = 1, 1
    for term in range(len(slot_ptr) - 1):
        most = max(most, slot_ptr[term + 1] - slot_ptr[term])
        widest = max(widest, grad_ptr[slot_ptr[term + 1]] - grad_ptr[slot_ptr[term]])
    for variable in range(len(first) - 1):  # one may stand in no term
        widest = max(widest, first[variable + 1] - first[variable])
    state = np.zeros(most, dtype=np.int64)
    return state, np.ones(most + 1), np.ones(most + 1), np.empty((1, widest, 1))


@njit(cache=True, nogil=True)
def sweep(
    start, edge, term_of, slot_ptr, slots, num_discrete, base, term_multiplicity, theta, hard,
    family, first, lower, upper, least_var, most_var, multiplicity, grad_ptr, damping, only_reals,
    entries,
):  # fmt: skip
    """Moves each variable to its optimum given the others, in entries (1, entry, 1); returns the
    largest change, of a mean in standard deviations or of a probability.

    damping: the share of the way that is gone, in natural parameters. only_reals: whether discrete
    variables stay as they are.
    """
    state, prefix, suffix, buffer = _scratch(slot_ptr, first, grad_ptr)
    slope = np.empty(buffer.shape[1])
    largest = 0.0
    for variable in range(len(family)):
        at, width = first[variable], first[variable + 1] - first[variable]
        if only_reals and family[variable] == CATEGORICAL:
            continue
        for entry in range(width):
            slope[entry] = 0.0
        for place in range(start[variable], start[variable + 1]):
            slot = edge[place]
            term = term_of[slot]
            low = slot_ptr[term]
            term_energy(
                low, slot_ptr[term + 1], num_discrete[term], base[term], term_multiplicity[term],
                slots, theta, hard, first, entries, ZERO, ZERO, 1.0, grad_ptr, grad_ptr[low],
                buffer, state, prefix, suffix,
            )  # fmt: skip
            for entry in range(width):
                slope[entry] += buffer[0, grad_ptr[slot] - grad_ptr[low] + entry, 0]
        n = multiplicity[variable]
        if family[variable] == CATEGORICAL:
            largest = max(largest, _to_best_states(at, width, slope, n, damping, entries))
        else:
            old = entries[0, at + 1, 0]
            precision = (1.0 - damping) / old + damping * 2.0 * slope[1] / n
            var = 1.0 / precision if precision > 0.0 else most_var[variable]
            var = min(max(var, least_var[variable]), most_var[variable])
            mean = entries[0, at, 0] - damping * var * slope[0] / n
            mean = min(max(mean, lower[variable]), upper[variable])
            largest = max(largest, abs(mean - entries[0, at, 0]) / math.sqrt(var))
            largest = max(largest, abs(math.log(var / old)))
            entries[0, at, 0] = mean
            entries[0, at + 1, 0] = var
    return largest


@njit(cache=True, nogil=True)
def free_energies(
    slot_ptr, slots, num_discrete, base, term_multiplicity, theta, hard, family, first,
    multiplicity, grad_ptr, part, num_parts, entries,
):  # fmt: skip
    """float64 (part,): free energies of a product of Gaussians, entries (1, entry, 1), in each of
    the parts of a graph that no term connects, up to constants; part: (variable,)."""
    found = np.zeros(num_parts)
    state, prefix, suffix, buffer = _scratch(slot_ptr, first, grad_ptr)
    for term in range(len(base)):
        low = slot_ptr[term]
        found[part[slots[low]]] += term_energy(
            low, slot_ptr[term + 1], num_discrete[term], base[term], term_multiplicity[term],
            slots, theta, hard, first, entries, ZERO, ZERO, 1.0, grad_ptr, grad_ptr[low],
            buffer, state, prefix, suffix,
        )  # fmt: skip
    for variable in range(len(family)):
        at, n = first[variable], multiplicity[variable]
        if family[variable] == CATEGORICAL:
            for entry in range(at, first[variable + 1]):
                p = entries[0, entry, 0]
                if p > 0.0:
                    found[part[variable]] += n * p * math.log(p)
        else:
            found[part[variable]] -= 0.5 * n * math.log(entries[0, at + 1, 0])
    return found


@njit(cache=True, nogil=True)
def _to_best_states(at, width, slope, n, damping, entries):
    top = -np.inf
    for entry in range(width):
        slope[entry] = -damping * slope[entry] / n
        if damping < 1.0:
            slope[entry] += (1.0 - damping) * math.log(entries[0, at + entry, 0])
        top = max(top, slope[entry])
    total, largest = 0.0, 0.0
    for entry in range(width):
        slope[entry] = max(math.exp(slope[entry] - top), LEAST_PROBABILITY)
        total += slope[entry]
    for entry in range(width):
        p = slope[entry] / total
        largest = max(largest, abs(p - entries[0, at + entry, 0]))
        entries[0, at + entry, 0] = p
    return largest
