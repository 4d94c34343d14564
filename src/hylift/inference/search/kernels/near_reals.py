"""The few reals that a discrete move takes along to their new optimum."""

import numpy as np
from numba import njit

from hylift.inference.search.kernels.arrays import MOST_REALS

BUSY = 512
"""A real coupled to more others than this stays in place during a move."""

FAR = 1e20
"""Units that a real moves at once, at most: where nothing holds reals they stay finite."""

PIVOT = 1e-10
"""Below this, relative to the diagonal, a joint solve would lose too many digits."""


@njit(cache=True, nogil=True, _nrt=False)
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


@njit(cache=True, nogil=True, _nrt=False)
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


@njit(cache=True, nogil=True, _nrt=False)
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


@njit(cache=True, nogil=True, _nrt=False)
def gather_touched(terms, search, v, n):
    """Adds the reals of a variable's quadratics to those that are near; returns their number."""
    for k in range(terms.variable[v].split, terms.variable[v].last):
        t = np.int64(terms.incidence[k].term)
        for e in range(terms.term[t].middle, terms.term[t].last):
            n = place_near(terms, search, np.int64(terms.entry[e].variable), n)[1]
        if n == MOST_REALS:
            break
    return n


@njit(cache=True, nogil=True, _nrt=False)
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


@njit(cache=True, nogil=True, _nrt=False)
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


@njit(cache=True, nogil=True, _nrt=False)
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


@njit(cache=True, nogil=True, _nrt=False)
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
