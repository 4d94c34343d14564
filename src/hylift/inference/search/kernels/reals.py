"""Optima of reals: of the few that a flip takes along, and of all of them jointly."""

import numpy as np
from numba import njit

from hylift.inference.search.kernels import inner, inner_with_views
from hylift.inference.search.kernels.arrays import MOST_REALS
from hylift.inference.search.kernels.scores import shift_real
from hylift.numerics.kernels.sparse import conjugate_gradients, times

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


STILL = 1e-11
"""A step smaller than this, relative to unit and value, is none."""

TOLERANCE = 1e-13
"""Of joint solves, relative to the gradient."""


@njit(cache=True, nogil=True)
def settle_reals(terms, search, solve, most):
    """Moves reals towards their joint optimum within bounds; the density never falls.

    Conjugate gradients on those that no bound holds, then coordinate ascent for all; `most` bounds
    the steps of each solve. Returns whether the last solve met a direction along which the density
    is not concave: it is left in solve.direction.
    """
    image, is_loose = np.empty(len(solve.reals)), False
    most = min(most, 2 * len(solve.reals) + 10)
    for _ in range(40):
        _assemble(terms, search, solve)
        y, direction, ended = conjugate_gradients(
            solve.indptr, solve.indices, solve.data, solve.ones, solve.gradient, solve.flat,
            TOLERANCE, most,
        )  # fmt: skip
        is_loose = ended == -2
        for i in range(len(direction)):
            solve.direction[i] = direction[i] * solve.scale[i]
        moved = _advance(terms, search, solve, y, image)
        moved = max(moved, _coordinates(terms, search, solve.reals))
        if moved < STILL:
            break
    return is_loose


@inner
def _assemble(terms, search, solve):
    """Gradient and minus the second derivatives of the density, with reals in units that make the
    diagonal 1; a real is left out if a bound holds it or the density along it is not concave."""
    for i in range(len(solve.reals)):
        r = solve.reals[i]
        x, curve, record = search.value[r].x, search.value[r].curve, terms.variable[r]
        gradient = 2.0 * curve * x + search.value[r].slope
        is_held = (x <= record.lower and gradient <= 0.0) or (x >= record.upper and gradient >= 0.0)
        solve.scale[i] = 0.0
        if curve < -record.flat and not is_held:
            solve.scale[i] = 1.0 / np.sqrt(-2.0 * curve)
        solve.gradient[i] = gradient * solve.scale[i]
        solve.flat[i] = 2.0 * record.flat * solve.scale[i] ** 2
    for i in range(len(solve.reals)):
        first = solve.indptr[i]
        solve.data[first] = 1.0
        for k in range(first + 1, solve.indptr[i + 1]):
            scale = solve.scale[i] * solve.scale[solve.indices[k]]
            solve.data[k] = -search.coupling[solve.pair[k]] * scale


@inner_with_views
def _advance(terms, search, solve, y, image):
    """Takes a step as far as bounds allow, or its projection onto them if that is better.

    y: (real,), the step in the units of `_assemble`. Returns the largest relative movement.
    """
    times(solve.indptr, solve.indices, solve.data, y, image)
    share, value, bend = 1.0, 0.0, 0.0
    for i in range(len(y)):
        r = solve.reals[i]
        value += solve.gradient[i] * y[i]
        bend -= 0.5 * y[i] * image[i]
        step, x = abs(y[i]) * solve.scale[i], search.value[r].x
        space = terms.variable[r].upper - x if y[i] > 0 else x - terms.variable[r].lower
        space = min(space, FAR * terms.variable[r].unit)
        if step * share > space:
            share = space / step
    gain = (value + share * bend) * share
    if share < 1.0:
        projected = np.zeros(len(y))
        for i in range(len(y)):
            r = solve.reals[i]
            x, far = search.value[r].x, FAR * terms.variable[r].unit
            low, high = max(terms.variable[r].lower, x - far), min(terms.variable[r].upper, x + far)
            if solve.scale[i] > 0.0:
                new = min(max(x + y[i] * solve.scale[i], low), high)
                projected[i] = (new - x) / solve.scale[i]
        times(solve.indptr, solve.indices, solve.data, projected, image)
        other = 0.0
        for i in range(len(y)):
            other += (solve.gradient[i] - 0.5 * image[i]) * projected[i]
        if other > gain:
            gain, share, y = other, 1.0, projected
    if not gain > 0.0:
        return 0.0
    largest = 0.0
    for i in range(len(y)):
        d = share * y[i] * solve.scale[i]
        r = solve.reals[i]
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
