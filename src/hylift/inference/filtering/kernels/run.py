"""A program of births, tilts and readings, carried out on the moments of a few reals."""

import math

import numpy as np
from numba import njit

BIRTH, TILT, READ = 0, 1, 2

SINGULAR = 1e-12
"""Share of its precision that a real must keep when a tilt takes from it."""


@njit(cache=True, nogil=True)
def assign_places(kind, target, ptr, variable, num_variables):
    """Where in the state each operand, and each real that is born, stands; and the size of it.

    The place of a real is free again after the last operation that has it as an operand.
    """
    last = np.full(num_variables, -1, dtype=np.int64)
    for op in range(len(kind)):
        for at in range(ptr[op], ptr[op + 1]):
            last[variable[at]] = op
    place_of = np.full(num_variables, -1, dtype=np.int32)
    place = np.empty(len(variable), dtype=np.int32)
    born = np.full(len(kind), -1, dtype=np.int32)
    free = np.empty(num_variables, dtype=np.int32)
    num_free, size = 0, 0
    for op in range(len(kind)):
        if kind[op] == BIRTH:
            if num_free:
                num_free -= 1
                place_of[target[op]] = free[num_free]
            else:
                place_of[target[op]] = size
                size += 1
            born[op] = place_of[target[op]]
        for at in range(ptr[op], ptr[op + 1]):
            place[at] = place_of[variable[at]]
            if last[variable[at]] == op:
                free[num_free] = place[at]
                num_free += 1
    return place, born, size


@njit(cache=True, nogil=True)
def run(kind, target, born, step, first, second, ptr, place, coefficient, cov, out, log_total):
    """Carries out all operations; the first tilt after which nothing is a distribution, or -1.

    cov: (place, place), zeros. out (reading, 2): means and variances. log_total (step,): what
    tilts add to log Z.
    """
    size = len(cov)
    mean, row = np.zeros(size), np.zeros(size)
    for op in range(len(kind)):
        # The sum of coefficient * real: its mean and variance, and its covariances with all reals.
        centre, spread = 0.0, 0.0
        for at in range(ptr[op], ptr[op + 1]):
            centre += coefficient[at] * mean[place[at]]
        if kind[op] == READ:
            for at in range(ptr[op], ptr[op + 1]):
                for also in range(ptr[op], ptr[op + 1]):
                    spread += coefficient[at] * coefficient[also] * cov[place[at], place[also]]
            out[target[op], 0] = centre + first[op]
            out[target[op], 1] = spread + second[op]
            continue
        for i in range(size):
            row[i] = 0.0
        for at in range(ptr[op], ptr[op + 1]):
            _add(row, coefficient[at], cov[place[at]])
        for at in range(ptr[op], ptr[op + 1]):
            spread += coefficient[at] * row[place[at]]
        if kind[op] == BIRTH:
            own = born[op]
            for i in range(size):
                cov[i, own] = row[i]
                cov[own, i] = row[i]
            mean[own] = centre + first[op]
            cov[own, own] = spread + second[op]
            continue
        curvature, slope = first[op], second[op]
        scale = 1.0 + curvature * spread
        if not scale > SINGULAR:
            return op
        gain = slope * centre + 0.5 * (slope * slope * spread - curvature * centre * centre)
        log_total[step[op]] += gain / scale - 0.5 * math.log(scale)
        _add(mean, (slope - curvature * centre) / scale, row)
        # Both factors of a product have the root, so that cov stays symmetric to the last digit.
        root = math.sqrt(abs(curvature / scale))
        for i in range(size):
            row[i] *= root
        for i in range(size):
            if row[i] != 0.0:
                _add(cov[i], -row[i] if curvature > 0.0 else row[i], row)
    return -1


@njit(cache=True, nogil=True)
def _add(total, weight, values):
    """total += weight * values."""
    for i in range(len(total)):
        total[i] += weight * values[i]
