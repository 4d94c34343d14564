"""Steps of optimisers: along the natural gradient, in unconstrained coordinates, to an optimum."""

import math

import numpy as np

from hylift.components.family import (
    BETA,
    CATEGORICAL,
    LEAST_BETA,
    LEAST_PROBABILITY,
    LEAST_WEIGHT,
    MOST_BETA,
)
from hylift.components.kernels import inner, kernel
from hylift.numerics.kernels.special import trigamma

ZERO, ONE = np.int64(0), np.int64(1)
"""Not literals, for which kernels would be compiled once more."""


@kernel
def natural_step(
    family, first, lower, upper, least_var, most_var, multiplicity, weights, entries, of_weights,
    of_entries, rho, move_weights, growth, new_weights, new_entries, moves,
):  # fmt: skip
    """Fill new_weights and new_entries with a step of length rho (start,) along the negative
    natural gradient: the gradient times the inverse Fisher information of each component; and
    moves (start,) with its largest move. growth: (component,), scratch.

    Dividing by the component's weight is what keeps light components alive.
    """
    num_components = weights.shape[1]
    for start in range(weights.shape[0]):
        step = rho[start]
        least = np.inf
        for k in range(num_components):
            least = min(least, of_weights[start, k])
        for k in range(num_components):
            fall = min(step * (of_weights[start, k] - least), 3.0)
            growth[k] = -fall if move_weights else 0.0
        _grow_weights(start, weights, growth, new_weights)
        largest = 0.0
        for variable in range(len(family)):
            at, end = first[variable], first[variable + 1]
            for k in range(num_components):
                scale = step / (weights[start, k] * multiplicity[variable])
                if family[variable] == CATEGORICAL:
                    _grow_states(start, k, at, end, -scale, of_entries, ZERO, entries, new_entries)
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
                move = _move(family[variable], start, k, at, end, entries, new_entries)
                largest = max(largest, move)
        moves[start] = largest


@kernel
def slopes(family, first, multiplicity, weights, entries, of_weights, of_entries, slope, inverse):
    """Fill slope and inverse (start, weight or entry, component) with the gradient, and the
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


@kernel
def moved(
    family, first, lower, upper, least_var, most_var, weights, entries, direction, length,
    growth, new_weights, new_entries, taken, moves,
):  # fmt: skip
    """Fill new_weights and new_entries with a step of length (start,) along a direction (start,
    weight or entry, component) in unconstrained coordinates; taken, like the direction, with the
    way that limits have left of it; moves (start,) with the largest move.
    growth: (component,), scratch."""
    num_components = weights.shape[1]
    for start in range(weights.shape[0]):
        step = length[start]
        for k in range(num_components):
            growth[k] = step * direction[start, 0, k]
        _grow_weights(start, weights, growth, new_weights)
        for k in range(num_components):
            taken[start, 0, k] = math.log(new_weights[start, k] / weights[start, k])
        largest = 0.0
        for variable in range(len(family)):
            at, end = first[variable], first[variable + 1]
            for k in range(num_components):
                if family[variable] == CATEGORICAL:
                    _grow_states(start, k, at, end, step, direction, ONE, entries, new_entries)
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
                    var = min(max(var, least_var[variable]), most_var[variable])
                    new_entries[start, at + 1, k] = var
                    taken[start, 1 + at, k] = new_entries[start, at, k] - entries[start, at, k]
                    taken[start, 2 + at, k] = 0.5 * math.log(var / entries[start, at + 1, k])
                if family[variable] == CATEGORICAL or family[variable] == BETA:
                    for entry in range(at, end):
                        taken[start, 1 + entry, k] = 0.0
                        if entries[start, entry, k] > 0.0:
                            ratio = new_entries[start, entry, k] / entries[start, entry, k]
                            taken[start, 1 + entry, k] = math.log(ratio)
                move = _move(family[variable], start, k, at, end, entries, new_entries)
                largest = max(largest, move)
        moves[start] = largest


@kernel
def quasi_newton(steps, changes, count, newest, slope, inverse, alpha, direction):
    """Fill direction (place,) with minus the L-BFGS estimate of the inverse Hessian times the
    slope (place,); steps and changes of the slope: (memory, place), of which `count` are filled,
    `newest` the latest; inverse: the diagonal that the estimate starts from, in the size that the
    latest step gives; alpha: (memory,), scratch."""
    memory = len(steps)
    for place in range(len(slope)):
        direction[place] = -slope[place]
    for back in range(count):
        at = (newest - back) % memory
        curvature, along = 0.0, 0.0
        for place in range(len(slope)):
            curvature += steps[at, place] * changes[at, place]
            along += steps[at, place] * direction[place]
        alpha[at] = along / curvature
        for place in range(len(slope)):
            direction[place] -= alpha[at] * changes[at, place]
    scale = 1.0
    if count > 0:
        along, size = 0.0, 0.0
        for place in range(len(slope)):
            along += steps[newest, place] * changes[newest, place]
            size += changes[newest, place] * inverse[place] * changes[newest, place]
        scale = along / size
    for place in range(len(slope)):
        direction[place] *= scale * inverse[place]
    for back in range(count - 1, -1, -1):
        at = (newest - back) % memory
        curvature, along = 0.0, 0.0
        for place in range(len(slope)):
            curvature += steps[at, place] * changes[at, place]
            along += changes[at, place] * direction[place]
        beta = along / curvature
        for place in range(len(slope)):
            direction[place] += (alpha[at] - beta) * steps[at, place]


@inner
def to_optimum(
    family, start, at, end, slope, n, damping, lower, upper, least_var, most_var, entries
):  # fmt: skip
    """Move one variable of a single product to its optimum given the others, or a share of the way
    in natural parameters; return the largest change, of a mean in standard deviations or of a
    probability. slope: (entry of the variable,), of the energy; n: its multiplicity."""
    if family == CATEGORICAL:
        top = -np.inf
        for entry in range(end - at):
            slope[entry] = -damping * slope[entry] / n
            if damping < 1.0:
                slope[entry] += (1.0 - damping) * math.log(entries[start, at + entry, 0])
            top = max(top, slope[entry])
        total, largest = 0.0, 0.0
        for entry in range(end - at):
            slope[entry] = max(math.exp(slope[entry] - top), LEAST_PROBABILITY)
            total += slope[entry]
        for entry in range(end - at):
            p = slope[entry] / total
            largest = max(largest, abs(p - entries[start, at + entry, 0]))
            entries[start, at + entry, 0] = p
        return largest
    old, old_mean = entries[start, at + 1, 0], entries[start, at, 0]
    precision = (1.0 - damping) / old + damping * 2.0 * slope[1] / n
    var = 1.0 / precision if precision > 0.0 else most_var
    var = min(max(var, least_var), most_var)
    mean = min(max(old_mean - damping * var * slope[0] / n, lower), upper)
    entries[start, at, 0] = mean
    entries[start, at + 1, 0] = var
    return max(abs(mean - old_mean) / math.sqrt(var), abs(math.log(var / old)))


@inner
def _grow_weights(start, weights, growth, new_weights):
    """Weights times exp(growth), normalised."""
    top, total = -np.inf, 0.0
    for k in range(len(growth)):
        top = max(top, growth[k])
    for k in range(len(growth)):
        grown = weights[start, k] * math.exp(growth[k] - top)
        new_weights[start, k] = max(grown, LEAST_WEIGHT)
        total += new_weights[start, k]
    for k in range(len(growth)):
        new_weights[start, k] /= total


@inner
def _grow_states(start, k, at, end, scale, slope, shift, entries, new_entries):
    """Probabilities times exp(scale * slope), normalised; entry i has slope shift + i.

    A probability of zero stays so: it marks what is impossible.
    """
    top = -np.inf
    for entry in range(at, end):
        new_entries[start, entry, k] = -np.inf
        if entries[start, entry, k] > 0.0:
            grown = math.log(entries[start, entry, k]) + scale * slope[start, shift + entry, k]
            new_entries[start, entry, k] = grown
            top = max(top, grown)
    total = 0.0
    for entry in range(at, end):
        p = 0.0
        if entries[start, entry, k] > 0.0:
            p = max(math.exp(new_entries[start, entry, k] - top), LEAST_PROBABILITY)
        new_entries[start, entry, k] = p
        total += p
    for entry in range(at, end):
        new_entries[start, entry, k] /= total


@inner
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


@inner
def _move(family, start, k, at, end, entries, new_entries):
    """The largest change of a mean, in standard deviations, or of a probability."""
    largest = 0.0
    if family == CATEGORICAL:
        for entry in range(at, end):
            change = abs(new_entries[start, entry, k] - entries[start, entry, k])
            largest = max(largest, change)
        return largest
    a, b = entries[start, at, k], entries[start, at + 1, k]
    new_a, new_b = new_entries[start, at, k], new_entries[start, at + 1, k]
    if family == BETA:
        sd = math.sqrt(a * b / (a + b + 1.0)) / (a + b)
        return abs(new_a / (new_a + new_b) - a / (a + b)) / sd
    return abs(new_a - a) / math.sqrt(b)
