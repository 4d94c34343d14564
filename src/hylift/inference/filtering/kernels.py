"""The order of births, and the run of a program on the moments of a few reals."""

import heapq
import math

import numpy as np
from numba import njit

BIRTH, TILT, READ = 0, 1, 2

SINGULAR = 1e-12
"""Share of its precision that a real must keep when a tilt takes from it."""

STRONG = 1e3
"""Precision of a tilt, relative to that of its sum, from which on rounding matters."""

EPS = 2.220446049250313e-16


@njit(cache=True, nogil=True)
def assign_places(kind, target, ptr, variable, last, place_of, free, place, born):
    """Write where in the state each operand, and each real that is born, stands; return its size.

    The place of a real is free again after the last operation that has it as an operand. last,
    place_of, free: (variable,), -1. born: (operation,), -1.
    """
    for op in range(len(kind)):
        for at in range(ptr[op], ptr[op + 1]):
            last[variable[at]] = op
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
    return size


@njit(cache=True, nogil=True)
def run(
    kind,
    target,
    born,
    step,
    offset,
    size,
    slope,
    ptr,
    place,
    coefficient,
    cov,
    work,
    is_lost,
    out,
    log_total,
    error,
):
    """Carry out all operations; return -1 twice, or the operation that stopped it, and -1 where it
    is a tilt after which nothing is a distribution, or the place of an operand that is lost in
    rounding.

    cov: (place, place), zeros. work: (3, place), zeros. is_lost: (place,), False. out: (reading,
    2), means and variances. log_total: (step,), what tilts add to log Z. error: (step,), the rough
    size of what rounding does to it.
    """
    width = len(cov)
    mean, row, moved = work[0], work[1], work[2]
    for op in range(len(kind)):
        # The sum: its mean and variance, and its covariances with all reals.
        centre, spread, terms = offset[op], 0.0, abs(offset[op])
        for at in range(ptr[op], ptr[op + 1]):
            centre += coefficient[at] * mean[place[at]]
            terms += abs(coefficient[at] * mean[place[at]])
            if is_lost[place[at]]:
                return op, place[at]
        if kind[op] == READ:
            for at in range(ptr[op], ptr[op + 1]):
                for also in range(ptr[op], ptr[op + 1]):
                    spread += coefficient[at] * coefficient[also] * cov[place[at], place[also]]
            out[target[op], 0] = centre
            out[target[op], 1] = spread + size[op]
            continue
        for i in range(width):
            row[i] = 0.0
        for at in range(ptr[op], ptr[op + 1]):
            _add(row, coefficient[at], cov[place[at]])
        for at in range(ptr[op], ptr[op + 1]):
            spread += coefficient[at] * row[place[at]]
        if kind[op] == BIRTH:
            own = born[op]
            for i in range(width):
                cov[i, own] = row[i]
                cov[own, i] = row[i]
            mean[own] = centre
            cov[own, own] = spread + size[op]
            is_lost[own] = False
            continue
        curvature = size[op]
        scale = 1.0 + curvature * spread
        if not scale > SINGULAR:
            return op, -1
        pull = (slope[op] - curvature * centre) / scale
        rise = (slope[op] * centre + 0.5 * slope[op] * slope[op] * spread) / scale
        fall = 0.5 * curvature * centre * centre / scale
        log_total[step[op]] += rise - fall - 0.5 * math.log(scale)
        error[step[op]] += EPS * (abs(pull) * terms + abs(rise) + abs(fall) + abs(math.log(scale)))
        _add(mean, pull, row)
        if curvature * spread > STRONG:
            own = slice(ptr[op], ptr[op + 1])
            _tighten(cov, row, moved, is_lost, curvature, scale, place[own], coefficient[own])
            continue
        # Both factors of a product have the root, so that cov stays symmetric to the last digit.
        root = math.sqrt(abs(curvature / scale))
        for i in range(width):
            row[i] *= root
        for i in range(width):
            if row[i] != 0.0:
                _add(cov[i], -row[i] if curvature > 0.0 else row[i], row)
    return -1, -1


@njit(cache=True, nogil=True)
def _tighten(cov, row, moved, is_lost, curvature, scale, places, coefficients):
    """Update cov after a strong tilt, in Joseph's form.

    Almost nothing may be left of a spread, so that one difference would leave little but its
    rounding. With gain k = row curvature / scale and M = cov - k rowᵀ, what is left is
    M - (M u) kᵀ + k kᵀ / curvature; the second difference takes the rounding of the first along.

    A real is lost if it is not the sum itself, and next to nothing of its variance is left: what
    else it had was rounded away when the variance was large.
    """
    share = curvature / scale
    only = places[0] if len(places) == 1 else -1
    for i in range(len(row)):
        left = cov[i, i] - share * row[i] * row[i]
        is_lost[i] = is_lost[i] or (i != only and left < SINGULAR * cov[i, i])
    for i in range(len(row)):
        if row[i] != 0.0:
            _add(cov[i], -share * row[i], row)
    for i in range(len(row)):
        moved[i] = 0.0
        for at in range(len(places)):
            moved[i] += coefficients[at] * cov[i, places[at]]
    for i in range(len(row)):
        for j in range(i, len(row)):
            gain = share * row[j]
            one = cov[i, j] - moved[i] * gain + share * row[i] * gain / curvature
            other = cov[j, i] - moved[j] * share * row[i] + share * row[i] * gain / curvature
            cov[i, j] = 0.5 * (one + other)
            cov[j, i] = cov[i, j]


@njit(cache=True, nogil=True)
def _add(total, weight, values):
    """total += weight * values."""
    for i in range(len(total)):
        total[i] += weight * values[i]


@njit(cache=True, nogil=True)
def plan_births(
    factor_ptr, variable, rank, factor_of, entry_ptr, entries, by_rank, unborn, birth, order
):
    """Write the entry through which each variable is born, and those that are born, in order;
    return how many are. birth: (variable,), -1; unborn: (factor,), zeros.

    Entry e of factor_ptr[f] to factor_ptr[f + 1] is a variable of factor f; entries[entry_ptr[v]:
    entry_ptr[v + 1]] are those of variable v that are of its own time. A factor that has one unborn
    variable left may give birth to it, those of a low rank before others; by_rank are entries in
    this order. The rank of an entry is -1 where it may not, and -2 where its variable is known or
    of an earlier time.
    """
    num_born = 0
    ready = [np.int64(0) for _ in range(0)]
    for factor in range(len(unborn)):
        only = np.int64(-1)
        for entry in range(factor_ptr[factor], factor_ptr[factor + 1]):
            if rank[entry] > -2:
                unborn[factor] += 1
                only = entry
        if unborn[factor] == 1 and rank[only] >= 0:
            heapq.heappush(ready, rank[only])
    while len(ready):
        entry = by_rank[heapq.heappop(ready)]
        born = variable[entry]
        if birth[born] >= 0:
            continue
        birth[born] = entry
        order[num_born] = born
        num_born += 1
        for at in range(entry_ptr[born], entry_ptr[born + 1]):
            other = factor_of[entries[at]]
            unborn[other] -= 1
            if unborn[other] == 1:
                for left in range(factor_ptr[other], factor_ptr[other + 1]):
                    if rank[left] >= 0 and birth[variable[left]] < 0:
                        heapq.heappush(ready, rank[left])
    return num_born
