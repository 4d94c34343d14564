"""The joint optimum of all reals, given the discrete states."""

from numba import njit

from hylift.inference.search.kernels.flips import shift_real
from hylift.inference.search.kernels.near_reals import FAR, best_step

AIM = 4
"""The row of the scratch array with the direction of the last step of a solve."""

STILL = 1e-11
"""A step smaller than this, relative to unit and value, is none."""


@njit(cache=True, nogil=True, _nrt=False)
def settle_reals(terms, search, reals, number, room, most):
    """Moves the given reals towards their joint optimum within bounds; the density never falls.

    Conjugate gradients on those that no bound holds, then coordinate ascent for all. Where
    nothing holds a real it stays. number: (variable,), the place in `reals`, or -1; room:
    (7, real), scratch; `most` bounds the steps of each solve. Returns whether the last solve met
    a direction in which nothing seems to hold the reals: it is left in room[AIM].
    """
    gradient, step, bent = room[0], room[1], room[2]
    is_loose = False
    for _ in range(40):
        _gradient(search, reals, gradient)
        is_loose = _conjugate_gradients(terms, search, reals, number, room, most)
        _times(terms, search, reals, number, step, bent)
        moved = _advance(terms, search, reals, number, room)
        moved = max(moved, _coordinates(terms, search, reals))
        if moved < STILL:
            break
    return is_loose


@njit(cache=True, nogil=True, _nrt=False)
def _gradient(search, reals, out):
    for i in range(len(reals)):
        r = reals[i]
        out[i] = 2.0 * search.value[r].curve * search.value[r].x + search.value[r].slope


@njit(cache=True, nogil=True, _nrt=False)
def _times(terms, search, reals, number, vector, out):
    """The second derivatives of the density times a vector."""
    for i in range(len(reals)):
        r = reals[i]
        value = 2.0 * search.value[r].curve * vector[i]
        for k in range(terms.variable[r].links, terms.variable[r].links_end):
            j = number[terms.link[k].other]
            if j >= 0:
                value += search.coupling[terms.link[k].pair] * vector[j]
        out[i] = value


@njit(cache=True, nogil=True, _nrt=False)
def _conjugate_gradients(terms, search, reals, number, room, most):
    """The step to the joint optimum of the reals that no bound holds, the others staying.

    Returns whether it ended early, where the density is not concave.
    """
    n, size = len(reals), 0.0
    gradient, step = room[0], room[1]
    rest, aim, image, free = room[3], room[AIM], room[5], room[6]
    for i in range(n):
        r = reals[i]
        step[i] = 0.0
        held = (search.value[r].x <= terms.variable[r].lower and gradient[i] <= 0.0) or (
            search.value[r].x >= terms.variable[r].upper and gradient[i] >= 0.0
        )
        rest[i], aim[i], free[i] = 0.0, 0.0, 0.0
        if search.value[r].curve < -terms.variable[r].flat and not held:
            rest[i], free[i] = gradient[i], 1.0
            aim[i] = rest[i] / (-2.0 * search.value[r].curve)
            size += rest[i] * aim[i]
    enough = size * 1e-26
    for _ in range(min(most, 2 * n + 10)):
        if size <= enough or size == 0.0:
            break
        _times(terms, search, reals, number, aim, image)
        curvature, flat = 0.0, 0.0
        for i in range(n):
            curvature -= aim[i] * image[i]
            flat += 2.0 * terms.variable[reals[i]].flat * aim[i] * aim[i]
        if not curvature > flat:  # coordinate ascent does what can be done
            return True
        length = size / curvature
        before, size = size, 0.0
        for i in range(n):
            if free[i]:
                step[i] += length * aim[i]
                rest[i] += length * image[i]
                size += rest[i] * rest[i] / (-2.0 * search.value[reals[i]].curve)
        for i in range(n):
            if free[i]:
                aim[i] = rest[i] / (-2.0 * search.value[reals[i]].curve) + size / before * aim[i]
    return False


@njit(cache=True, nogil=True, _nrt=False)
def _advance(terms, search, reals, number, room):
    """Takes a step as far as bounds allow, or its projection onto them if that is better.

    Returns the largest relative movement.
    """
    n = len(reals)
    gradient, step, bent, projected = room[0], room[1], room[2], room[3]
    share, value, bend = 1.0, 0.0, 0.0
    for i in range(n):
        r = reals[i]
        value += gradient[i] * step[i]
        bend += 0.5 * step[i] * bent[i]
        x, lower, upper = search.value[r].x, terms.variable[r].lower, terms.variable[r].upper
        far = FAR * terms.variable[r].unit
        space = min(upper - x if step[i] > 0 else x - lower, far)
        if abs(step[i]) * share > space:
            share = space / abs(step[i])
    gain = (value + share * bend) * share
    if share < 1.0:
        for i in range(n):
            r = reals[i]
            x, lower, upper = search.value[r].x, terms.variable[r].lower, terms.variable[r].upper
            far = FAR * terms.variable[r].unit
            projected[i] = min(max(x + step[i], lower, x - far), upper, x + far) - x
        _times(terms, search, reals, number, projected, bent)
        other = 0.0
        for i in range(n):
            other += (gradient[i] + 0.5 * bent[i]) * projected[i]
        if other > gain:
            gain, share = other, 1.0
            for i in range(n):
                step[i] = projected[i]
    if not gain > 0.0:
        return 0.0
    largest = 0.0
    for i in range(n):
        d = share * step[i]
        r = reals[i]
        if d != 0.0:
            largest = max(largest, abs(d) / (terms.variable[r].unit + abs(search.value[r].x)))
            shift_real(terms, search, r, d)
    return largest


@njit(cache=True, nogil=True, _nrt=False)
def _coordinates(terms, search, reals):
    """One sweep of exact steps of single reals; returns the largest relative movement."""
    largest = 0.0
    for i in range(len(reals)):
        r = reals[i]
        slope = 2.0 * search.value[r].curve * search.value[r].x + search.value[r].slope
        x = search.value[r].x
        d = best_step(terms.variable[r], search.value[r].curve, slope, x)
        relative = abs(d) / (terms.variable[r].unit + abs(x))
        if relative > STILL:
            shift_real(terms, search, r, d)
            largest = max(largest, relative)
    return largest
