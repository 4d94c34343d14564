"""Optima of reals: of the few that a flip takes along, and of all of them jointly."""

import numpy as np

from hylift.inference.search.kernels import entry, inner
from hylift.inference.search.kernels.arrays import MOST_REALS
from hylift.inference.search.kernels.scores import shift_real

BUSY = 512
"""A real coupled to more others than this stays in place during a move."""

FAR = 1e20
"""Units that a real moves at once, at most: where nothing holds reals they stay finite."""

PIVOT = 1e-10
"""Below this, relative to the diagonal, a joint solve would lose too many digits."""


@inner
def best_step(variable, curve, slope, x):
    """The step of a real from x, within its bounds, that maximises curve d² + slope d.

    0 where nothing holds it. variable: its record in the layout.
    """
    down, up = x - variable.lower, variable.upper - x
    if curve < -variable.flat:
        step = -slope / (2.0 * curve)
        step = min(max(step, -down), up)
        return step if abs(step) <= FAR * variable.unit else 0.0
    if down < np.inf and up < np.inf:
        best, step = 0.0, 0.0
        for end in (-down, up):
            value = (curve * end + slope) * end
            if value > best:
                best, step = value, end
        return step
    if curve > variable.flat:
        return 0.0
    end = up if slope > 0 else -down
    if abs(end) < np.inf and (curve * end + slope) * end > 0:
        return end
    return 0.0


@inner
def place_near(terms, search, r, n):
    """Where a real stands among those that are near, and how many these are; -1: nowhere."""
    for i in range(n):
        if search.near[i].real == r:
            return i, n
    busy = terms.variable[r].links_end - terms.variable[r].links > BUSY
    if n == MOST_REALS or busy or not terms.variable[r].movable:
        return -1, n
    search.near[n].real = r
    search.near[n].curve = search.value[r].curve
    search.near[n].slope = 2.0 * search.value[r].curve * search.value[r].x + search.value[r].slope
    for i in range(n):
        cross = coupling_of(terms, search, r, search.near[i].real)
        search.cross[i, n] = cross
        search.cross[n, i] = cross
    return n, n + 1


@inner
def coupling_of(terms, search, r, s):
    """The coupling of two reals, found by bisection among the neighbours of one."""
    first, last = terms.variable[r].links, terms.variable[r].links_end
    while first < last:
        middle = (first + last) // 2
        if terms.link[middle].other < s:
            first = middle + 1
        else:
            last = middle
    if first < terms.variable[r].links_end and terms.link[first].other == s:
        return search.coupling[terms.link[first].pair]
    return 0.0


@inner
def gather_touched(terms, search, v, n):
    """Adds the reals of a variable's quadratics to those that are near; returns their number."""
    for k in range(terms.variable[v].split, terms.variable[v].last):
        t = np.int64(terms.incidence[k].term)
        for e in range(terms.term[t].middle, terms.term[t].last):
            n = place_near(terms, search, np.int64(terms.entry[e].variable), n)[1]
        if n == MOST_REALS:
            break
    return n


@inner
def gather_flip(terms, search, v, step, n):
    """Adds what a flip would change; returns the number of reals, and the gain if they stay."""
    theta, gain = terms.theta, 0.0
    for k in range(terms.variable[v].split, terms.variable[v].last):
        t = np.int64(terms.incidence[k].term)
        m = terms.term[t].multiplicity
        first, last = terms.term[t].middle, terms.term[t].last
        size = last - first
        change = step * terms.incidence[k].stride
        A = terms.term[t].base + search.joint[t] * size * size
        b = terms.term[t].base + terms.term[t].num_joint * size * size + search.joint[t] * size
        far_A, far_b = A + change * size * size, b + change * size
        for i in range(size):
            r = np.int64(terms.entry[first + i].variable)
            at, n = place_near(terms, search, r, n)
            linear = theta[far_b + i] - theta[b + i]
            gain += m * linear * search.value[r].x
            slope = linear
            for j in range(size):
                bend = theta[far_A + i * size + j] - theta[A + i * size + j]
                if bend == 0.0:
                    continue
                s = np.int64(terms.entry[first + j].variable)
                gain += m * bend * search.value[r].x * search.value[s].x
                slope += 2.0 * bend * search.value[s].x
                if at < 0:
                    continue
                if i == j:
                    search.near[at].curve += m * bend
                elif j < i:
                    other, n = place_near(terms, search, s, n)
                    if other >= 0:
                        search.cross[at, other] += 2.0 * m * bend
                        search.cross[other, at] = search.cross[at, other]
            if at >= 0:
                search.near[at].slope += m * slope
    return n, gain


@inner
def best_shift(terms, search, n):
    """What the near reals gain at their joint optimum, whose steps are left in `shift`."""
    near = search.near
    if n == 0:
        return 0.0
    if n == 1:
        r = search.near[0].real
        d = best_step(terms.variable[r], near[0].curve, near[0].slope, search.value[r].x)
        near[0].shift = d
        return (near[0].curve * d + near[0].slope) * d
    if not _newton(terms, search, n):
        _ascend(terms, search, n)
    gain = 0.0
    for i in range(n):
        inner = near[i].slope + near[i].curve * near[i].shift
        for j in range(i):
            inner += search.cross[i, j] * near[j].shift
        gain += inner * near[i].shift
    return gain


@inner
def _newton(terms, search, n):
    """Whether the near reals have a joint optimum within their bounds; it is left in `shift`."""
    L = search.root
    for i in range(n):  # Cholesky of minus the second derivatives
        for j in range(i + 1):
            value = -2.0 * search.near[i].curve if i == j else -search.cross[i, j]
            whole = value
            for k in range(j):
                value -= L[i, k] * L[j, k]
            if i == j:
                flat = 2.0 * terms.variable[search.near[i].real].flat
                if value <= max(PIVOT * abs(whole), flat):
                    return False
                L[i, i] = np.sqrt(value)
            else:
                L[i, j] = value / L[j, j]
    near = search.near
    for i in range(n):
        value = search.near[i].slope
        for k in range(i):
            value -= L[i, k] * near[k].shift
        near[i].shift = value / L[i, i]
    for i in range(n - 1, -1, -1):
        value = near[i].shift
        for k in range(i + 1, n):
            value -= L[k, i] * near[k].shift
        near[i].shift = value / L[i, i]
        r = search.near[i].real
        new = search.value[r].x + near[i].shift
        if (
            new < terms.variable[r].lower
            or new > terms.variable[r].upper
            or abs(near[i].shift) > FAR * terms.variable[r].unit
        ):
            return False
    return True


@inner
def _ascend(terms, search, n):
    """Coordinate ascent of the near reals from where they are."""
    near = search.near
    for i in range(n):
        near[i].shift = 0.0
    for _ in range(30):
        largest = 0.0
        for i in range(n):
            r = search.near[i].real
            at = search.value[r].x + near[i].shift
            slope = search.near[i].slope + 2.0 * search.near[i].curve * near[i].shift
            for j in range(n):
                if j != i:
                    slope += search.cross[i, j] * near[j].shift
            d = best_step(terms.variable[r], search.near[i].curve, slope, at)
            near[i].shift += d
            largest = max(largest, abs(d) / terms.variable[r].unit)
        if largest < 1e-10:
            break


AIM = 4
"""The row of the scratch array with the direction of the last step of a solve."""

STILL = 1e-11
"""A step smaller than this, relative to unit and value, is none."""


@entry
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


@inner
def _gradient(search, reals, out):
    for i in range(len(reals)):
        r = reals[i]
        out[i] = 2.0 * search.value[r].curve * search.value[r].x + search.value[r].slope


@inner
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


@inner
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


@inner
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


@inner
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
