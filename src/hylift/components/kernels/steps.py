"""Steps of optimisers: along the natural gradient, and in unconstrained coordinates."""

import math

import numpy as np
from numba import njit

from hylift.components.family import (
    BETA,
    CATEGORICAL,
    LEAST_BETA,
    LEAST_PROBABILITY,
    LEAST_WEIGHT,
    MOST_BETA,
)
from hylift.numerics.kernels.special import trigamma


@njit(cache=True, nogil=True)
def natural_step(
    family, first, lower, upper, least_var, most_var, multiplicity, weights, entries, of_weights,
    of_entries, rho, move_weights, new_weights, new_entries,
):  # fmt: skip
    """Fills new_weights and new_entries with a step of length rho (start,) along the negative
    natural gradient: the gradient times the inverse Fisher information of each component.

    Dividing by the component's weight is what keeps light components alive.
    """
    num_components = weights.shape[1]
    for start in range(weights.shape[0]):
        step = rho[start]
        _step_weights(start, step, weights, of_weights, move_weights, new_weights)
        for variable in range(len(family)):
            at, end = first[variable], first[variable + 1]
            for k in range(num_components):
                scale = step / (weights[start, k] * multiplicity[variable])
                if family[variable] == CATEGORICAL:
                    _step_states(start, k, at, end, scale, entries, of_entries, new_entries)
                elif family[variable] == BETA:
                    _step_beta(start, k, at, scale, entries, of_entries, new_entries)
                else:
                    var = entries[start, at + 1, k]
                    full = 1.0 / var + 2.0 * scale * of_entries[start, at + 1, k]
                    precision = min(max(full, 0.25 / var), 4.0 / var)
                    new_var = min(max(1.0 / precision, least_var[variable]), most_var[variable])
                    # Where the density is much narrower than the component, so is its step.
                    reach = new_var if full <= precision else 1.0 / full
                    mean = entries[start, at, k] - scale * reach * of_entries[start, at, k]
                    new_entries[start, at, k] = min(max(mean, lower[variable]), upper[variable])
                    new_entries[start, at + 1, k] = new_var


@njit(cache=True, nogil=True)
def _step_weights(start, step, weights, of_weights, move_weights, new_weights):
    num_components = weights.shape[1]
    least = np.inf
    for k in range(num_components):
        least = min(least, of_weights[start, k])
    total = 0.0
    for k in range(num_components):
        fall = min(step * (of_weights[start, k] - least), 3.0) if move_weights else 0.0
        new_weights[start, k] = max(weights[start, k] * math.exp(-fall), LEAST_WEIGHT)
        total += new_weights[start, k]
    for k in range(num_components):
        new_weights[start, k] /= total


@njit(cache=True, nogil=True)
def _step_states(start, k, at, end, scale, entries, of_entries, new_entries):
    """A probability of zero stays so: it marks what is impossible."""
    least = np.inf
    for entry in range(at, end):
        if entries[start, entry, k] > 0.0:
            least = min(least, of_entries[start, entry, k])
    top = -np.inf
    for entry in range(at, end):
        new_entries[start, entry, k] = -np.inf
        if entries[start, entry, k] > 0.0:
            fall = scale * (of_entries[start, entry, k] - least)
            new_entries[start, entry, k] = math.log(entries[start, entry, k]) - fall
            top = max(top, new_entries[start, entry, k])
    total = 0.0
    for entry in range(at, end):
        p = 0.0
        if entries[start, entry, k] > 0.0:
            p = max(math.exp(new_entries[start, entry, k] - top), LEAST_PROBABILITY)
        new_entries[start, entry, k] = p
        total += p
    for entry in range(at, end):
        new_entries[start, entry, k] /= total


@njit(cache=True, nogil=True)
def _step_beta(start, k, at, scale, entries, of_entries, new_entries):
    a, b = entries[start, at, k], entries[start, at + 1, k]
    shared = trigamma(a + b)
    own_a, own_b = trigamma(a) - shared, trigamma(b) - shared
    of_a, of_b = of_entries[start, at, k], of_entries[start, at + 1, k]
    det = own_a * own_b - shared * shared
    step_a = -scale * (own_b * of_a + shared * of_b) / det
    step_b = -scale * (shared * of_a + own_a * of_b) / det
    # A factor of two at most, for both alike, so that the direction stays.
    largest = max(abs(step_a) / a, abs(step_b) / b)
    if largest > math.log(2.0):
        step_a *= math.log(2.0) / largest
        step_b *= math.log(2.0) / largest
    new_entries[start, at, k] = min(max(a * math.exp(step_a / a), LEAST_BETA), MOST_BETA)
    new_entries[start, at + 1, k] = min(max(b * math.exp(step_b / b), LEAST_BETA), MOST_BETA)


@njit(cache=True, nogil=True)
def slopes(family, first, multiplicity, weights, entries, of_weights, of_entries, slope, inverse):
    """Fills slope and inverse (start, weight or entry, component) with the gradient, and the
    inverse of the diagonal of the Fisher information, in unconstrained coordinates: logarithms
    of weights, probabilities, standard deviations, alpha and beta; means as they are.

    The first row is that of the weights.
    """
    num_components = weights.shape[1]
    for start in range(weights.shape[0]):
        mean = 0.0
        for k in range(num_components):
            mean += weights[start, k] * of_weights[start, k]
        for k in range(num_components):
            w = weights[start, k]
            slope[start, 0, k] = w * (of_weights[start, k] - mean)
            inverse[start, 0, k] = 1.0 / w
        for variable in range(len(family)):
            at, end = first[variable], first[variable + 1]
            for k in range(num_components):
                c = weights[start, k] * multiplicity[variable]
                if family[variable] == CATEGORICAL:
                    mean = 0.0
                    for entry in range(at, end):
                        if entries[start, entry, k] > 0.0:
                            mean += entries[start, entry, k] * of_entries[start, entry, k]
                    for entry in range(at, end):
                        p = entries[start, entry, k]
                        slope[start, 1 + entry, k] = 0.0
                        inverse[start, 1 + entry, k] = 0.0
                        if p > 0.0:
                            slope[start, 1 + entry, k] = p * (of_entries[start, entry, k] - mean)
                            inverse[start, 1 + entry, k] = 1.0 / (c * p)
                elif family[variable] == BETA:
                    a, b = entries[start, at, k], entries[start, at + 1, k]
                    shared = trigamma(a + b)
                    slope[start, 1 + at, k] = a * of_entries[start, at, k]
                    slope[start, 2 + at, k] = b * of_entries[start, at + 1, k]
                    inverse[start, 1 + at, k] = 1.0 / (c * a * a * (trigamma(a) - shared))
                    inverse[start, 2 + at, k] = 1.0 / (c * b * b * (trigamma(b) - shared))
                else:
                    var = entries[start, at + 1, k]
                    slope[start, 1 + at, k] = of_entries[start, at, k]
                    slope[start, 2 + at, k] = 2.0 * var * of_entries[start, at + 1, k]
                    inverse[start, 1 + at, k] = var / c
                    inverse[start, 2 + at, k] = 0.5 / c


@njit(cache=True, nogil=True)
def moved(
    family, first, lower, upper, least_var, most_var, weights, entries, direction, length,
    new_weights, new_entries,
):  # fmt: skip
    """Fills new_weights and new_entries with a step of length (start,) along a direction (start,
    weight or entry, component) in unconstrained coordinates."""
    num_components = weights.shape[1]
    for start in range(weights.shape[0]):
        step = length[start]
        _scaled(start, weights, direction[:, 0], step, new_weights)
        for variable in range(len(family)):
            at, end = first[variable], first[variable + 1]
            for k in range(num_components):
                if family[variable] == CATEGORICAL:
                    top = -np.inf
                    for entry in range(at, end):
                        top = max(top, step * direction[start, 1 + entry, k])
                    total = 0.0
                    for entry in range(at, end):
                        grown = math.exp(step * direction[start, 1 + entry, k] - top)
                        p = entries[start, entry, k] * grown
                        if entries[start, entry, k] > 0.0:
                            p = max(p, LEAST_PROBABILITY)
                        new_entries[start, entry, k] = p
                        total += p
                    for entry in range(at, end):
                        new_entries[start, entry, k] /= total
                elif family[variable] == BETA:
                    for entry in range(at, end):
                        change = min(max(step * direction[start, 1 + entry, k], -1.0), 1.0)
                        new = entries[start, entry, k] * math.exp(change)
                        new_entries[start, entry, k] = min(max(new, LEAST_BETA), MOST_BETA)
                else:
                    mean = entries[start, at, k] + step * direction[start, 1 + at, k]
                    change = min(max(2.0 * step * direction[start, 2 + at, k], -2.0), 2.0)
                    var = entries[start, at + 1, k] * math.exp(change)
                    new_entries[start, at, k] = min(max(mean, lower[variable]), upper[variable])
                    new_entries[start, at + 1, k] = min(
                        max(var, least_var[variable]), most_var[variable]
                    )


@njit(cache=True, nogil=True)
def _scaled(start, weights, direction, step, new_weights):
    num_components = weights.shape[1]
    top = -np.inf
    for k in range(num_components):
        top = max(top, step * direction[start, k])
    total = 0.0
    for k in range(num_components):
        grown = math.exp(step * direction[start, k] - top)
        new_weights[start, k] = max(weights[start, k] * grown, LEAST_WEIGHT)
        total += new_weights[start, k]
    for k in range(num_components):
        new_weights[start, k] /= total


@njit(cache=True, nogil=True)
def step_taken(family, first, weights, entries, new_weights, new_entries, step):
    """Fills step (weight or entry, component) with the way from one mixture (1, …) to another, in
    unconstrained coordinates."""
    for k in range(weights.shape[1]):
        step[0, k] = math.log(new_weights[0, k] / weights[0, k])
        for variable in range(len(family)):
            at, end = first[variable], first[variable + 1]
            if family[variable] == CATEGORICAL or family[variable] == BETA:
                for entry in range(at, end):
                    step[1 + entry, k] = 0.0
                    if entries[0, entry, k] > 0.0:
                        step[1 + entry, k] = math.log(
                            new_entries[0, entry, k] / entries[0, entry, k]
                        )
            else:
                step[1 + at, k] = new_entries[0, at, k] - entries[0, at, k]
                step[2 + at, k] = 0.5 * math.log(new_entries[0, at + 1, k] / entries[0, at + 1, k])


@njit(cache=True, nogil=True)
def largest_move(family, first, entries, new_entries, moves):
    """Fills moves (start,) with the largest change of a mean, in standard deviations, or of a
    probability."""
    for start in range(len(moves)):
        largest = 0.0
        for variable in range(len(family)):
            at, end = first[variable], first[variable + 1]
            for k in range(entries.shape[2]):
                if family[variable] == CATEGORICAL:
                    for entry in range(at, end):
                        largest = max(
                            largest, abs(new_entries[start, entry, k] - entries[start, entry, k])
                        )
                elif family[variable] == BETA:
                    a, b = entries[start, at, k], entries[start, at + 1, k]
                    new_a, new_b = new_entries[start, at, k], new_entries[start, at + 1, k]
                    sd = math.sqrt(a * b / (a + b + 1.0)) / (a + b)
                    largest = max(largest, abs(new_a / (new_a + new_b) - a / (a + b)) / sd)
                else:
                    sd = math.sqrt(entries[start, at + 1, k])
                    largest = max(
                        largest, abs(new_entries[start, at, k] - entries[start, at, k]) / sd
                    )
        moves[start] = largest
