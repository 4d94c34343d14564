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

ZERO = np.int64(0)
"""Not a literal, for which kernels would be compiled once more."""


@kernel
def natural_step(
    family, first, lower, upper, least_var, most_var, multiplicity, part, copies, weights, entries,
    of_weights, of_entries, rho, move_weights, growth, new_weights, new_entries, moves,
):  # fmt: skip
    """Fill new_weights and new_entries with a step of length rho (start, part) along the negative
    natural gradient: the gradient times the inverse Fisher information of each component; and
    moves (start, part) with its largest move. weights: (start, part, component); part: (variable,);
    copies: (part,). growth: (component,), scratch.

    Dividing by the component's weight is what keeps light components alive.
    """
    num_components = weights.shape[2]
    for start in range(weights.shape[0]):
        for p in range(weights.shape[1]):
            least = np.inf
            for k in range(num_components):
                least = min(least, of_weights[start, p, k])
            for k in range(num_components):
                fall = rho[start, p] * (of_weights[start, p, k] - least) / copies[p]
                growth[k] = -min(fall, 3.0) if move_weights else 0.0
            _grow_weights(start, p, weights, growth, new_weights)
            moves[start, p] = 0.0
        for variable in range(len(family)):
            at, end, p = first[variable], first[variable + 1], part[variable]
            for k in range(num_components):
                scale = rho[start, p] / (weights[start, p, k] * multiplicity[variable])
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
                moves[start, p] = max(moves[start, p], move)


@kernel
def slopes(
    family, first, multiplicity, part, copies, weights, entries, of_weights, of_entries, slope,
    inverse,
):  # fmt: skip
    """Fill slope and inverse (start, weight or entry, component) with the gradient, and the
    inverse of the diagonal of the Fisher information, in unconstrained coordinates: logarithms
    of weights, probabilities, standard deviations, alpha and beta; means as they are.

    The first rows are those of the weights, one for each part.
    """
    num_parts, num_components = weights.shape[1:]
    for start in range(weights.shape[0]):
        for p in range(num_parts):
            mean = 0.0
            for k in range(num_components):
                mean += weights[start, p, k] * of_weights[start, p, k]
            for k in range(num_components):
                w = weights[start, p, k]
                slope[start, p, k] = w * (of_weights[start, p, k] - mean)
                inverse[start, p, k] = 1.0 / (w * copies[p])
        for variable in range(len(family)):
            at, end = first[variable], first[variable + 1]
            for k in range(num_components):
                c = weights[start, part[variable], k] * multiplicity[variable]
                if family[variable] == CATEGORICAL:
                    mean = 0.0
                    for entry in range(at, end):
                        if entries[start, entry, k] > 0.0:
                            mean += entries[start, entry, k] * of_entries[start, entry, k]
                    for entry in range(at, end):
                        p = entries[start, entry, k]
                        to = num_parts + entry
                        slope[start, to, k] = 0.0
                        inverse[start, to, k] = 0.0
                        if p > 0.0:
                            slope[start, to, k] = p * (of_entries[start, entry, k] - mean)
                            inverse[start, to, k] = 1.0 / (c * p)
                elif family[variable] == BETA:
                    a, b = entries[start, at, k], entries[start, at + 1, k]
                    shared, to = trigamma(a + b), num_parts + at
                    slope[start, to, k] = a * of_entries[start, at, k]
                    slope[start, to + 1, k] = b * of_entries[start, at + 1, k]
                    inverse[start, to, k] = 1.0 / (c * a * a * (trigamma(a) - shared))
                    inverse[start, to + 1, k] = 1.0 / (c * b * b * (trigamma(b) - shared))
                else:
                    var, to = entries[start, at + 1, k], num_parts + at
                    slope[start, to, k] = of_entries[start, at, k]
                    slope[start, to + 1, k] = 2.0 * var * of_entries[start, at + 1, k]
                    inverse[start, to, k] = var / c
                    inverse[start, to + 1, k] = 0.5 / c


@kernel
def moved(
    family, first, lower, upper, least_var, most_var, part, weights, entries, direction, length,
    growth, new_weights, new_entries, taken, moves,
):  # fmt: skip
    """Fill new_weights and new_entries with a step of length (start, part) along a direction
    (start, weight or entry, component) in unconstrained coordinates; taken, like the direction,
    with the way that limits have left of it; moves (start, part) with the largest move.
    growth: (component,), scratch."""
    num_parts, num_components = weights.shape[1:]
    for start in range(weights.shape[0]):
        for p in range(num_parts):
            for k in range(num_components):
                growth[k] = length[start, p] * direction[start, p, k]
            _grow_weights(start, p, weights, growth, new_weights)
            for k in range(num_components):
                taken[start, p, k] = math.log(new_weights[start, p, k] / weights[start, p, k])
            moves[start, p] = 0.0
        for variable in range(len(family)):
            at, end, p = first[variable], first[variable + 1], part[variable]
            step, to = length[start, p], num_parts + at
            for k in range(num_components):
                if family[variable] == CATEGORICAL:
                    _grow_states(
                        start, k, at, end, step, direction, num_parts, entries, new_entries
                    )
                elif family[variable] == BETA:
                    for entry in range(at, end):
                        change = step * direction[start, num_parts + entry, k]
                        change = min(max(change, -1.0), 1.0)
                        new = entries[start, entry, k] * math.exp(change)
                        new_entries[start, entry, k] = min(max(new, LEAST_BETA), MOST_BETA)
                else:
                    mean = entries[start, at, k] + step * direction[start, to, k]
                    change = min(max(2.0 * step * direction[start, to + 1, k], -2.0), 2.0)
                    var = entries[start, at + 1, k] * math.exp(change)
                    new_entries[start, at, k] = min(max(mean, lower[variable]), upper[variable])
                    var = min(max(var, least_var[variable]), most_var[variable])
                    new_entries[start, at + 1, k] = var
                    taken[start, to, k] = new_entries[start, at, k] - entries[start, at, k]
                    taken[start, to + 1, k] = 0.5 * math.log(var / entries[start, at + 1, k])
                if family[variable] == CATEGORICAL or family[variable] == BETA:
                    for entry in range(at, end):
                        taken[start, num_parts + entry, k] = 0.0
                        if entries[start, entry, k] > 0.0:
                            ratio = new_entries[start, entry, k] / entries[start, entry, k]
                            taken[start, num_parts + entry, k] = math.log(ratio)
                move = _move(family[variable], start, k, at, end, entries, new_entries)
                moves[start, p] = max(moves[start, p], move)


@kernel
def quasi_newton(steps, changes, count, newest, row_part, slope, inverse, work, direction):
    """Fill direction (row, component) with minus the L-BFGS estimate of the inverse Hessian times
    the slope (row, component), for each part by itself.

    steps and changes of the slope: (memory, row, component), of which `count` (part,) are filled,
    `newest` (part,) the latest. row_part: (row,). inverse: the diagonal that the estimate starts
    from, in the size that the latest step gives. work: (memory + 2, part), scratch.
    """
    memory, num_rows, num_components = steps.shape
    for row in range(num_rows):
        for k in range(num_components):
            direction[row, k] = -slope[row, k]
    for turn in range(2 * memory):
        is_first = turn < memory
        back = turn if is_first else 2 * memory - 1 - turn
        if turn == memory:
            _rescale(steps, changes, count, newest, row_part, inverse, work, direction)
        for p in range(len(count)):
            work[memory, p] = work[memory + 1, p] = 0.0
        for row in range(num_rows):
            p = row_part[row]
            if back < count[p]:
                at = (newest[p] - back) % memory
                for k in range(num_components):
                    work[memory, p] += steps[at, row, k] * changes[at, row, k]
                    other = steps[at, row, k] if is_first else changes[at, row, k]
                    work[memory + 1, p] += other * direction[row, k]
        for p in range(len(count)):
            if back < count[p]:
                work[memory + 1, p] /= work[memory, p]
                if is_first:
                    work[back, p] = work[memory + 1, p]
        for row in range(num_rows):
            p = row_part[row]
            if back < count[p]:
                at, along = (newest[p] - back) % memory, work[memory + 1, p]
                for k in range(num_components):
                    if is_first:
                        direction[row, k] -= along * changes[at, row, k]
                    else:
                        direction[row, k] += (work[back, p] - along) * steps[at, row, k]


@inner
def _rescale(steps, changes, count, newest, row_part, inverse, work, direction):
    """Multiply the direction by the first estimate of the inverse Hessian."""
    along, size = len(steps), len(steps) + 1
    for p in range(len(count)):
        work[along, p] = work[size, p] = 0.0
    for row in range(len(direction)):
        p = row_part[row]
        if count[p] > 0:
            for k in range(direction.shape[1]):
                change = changes[newest[p], row, k]
                work[along, p] += steps[newest[p], row, k] * change
                work[size, p] += change * inverse[row, k] * change
    for row in range(len(direction)):
        p = row_part[row]
        scale = work[along, p] / work[size, p] if count[p] > 0 else 1.0
        for k in range(direction.shape[1]):
            direction[row, k] *= scale * inverse[row, k]


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
def _grow_weights(start, p, weights, growth, new_weights):
    """Weights of a part times exp(growth), normalised."""
    top, total = -np.inf, 0.0
    for k in range(len(growth)):
        top = max(top, growth[k])
    for k in range(len(growth)):
        grown = weights[start, p, k] * math.exp(growth[k] - top)
        new_weights[start, p, k] = max(grown, LEAST_WEIGHT)
        total += new_weights[start, p, k]
    for k in range(len(growth)):
        new_weights[start, p, k] /= total


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
