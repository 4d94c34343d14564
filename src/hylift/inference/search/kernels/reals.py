"""Optima of reals: of the few that a flip takes along, and of all of them jointly."""

import numpy as np

from hylift.inference.local.kernels import entry_with_views, factorise_small, part
from hylift.inference.search.kernels.scores import push_beside_moved, shift_real
from hylift.inference.search.state import MOST_REALS
from hylift.numerics.kernels import inner
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
        low, high = (slope - curve * down) * -down, (curve * up + slope) * up
        if high > low and high > 0.0:
            return up
        return -down if low > 0.0 else 0.0
    if curve > variable.flat:
        return 0.0
    end = up if slope > 0 else -down
    return end if abs(end) < np.inf and (curve * end + slope) * end > 0 else 0.0


@inner
def place_near(terms, search, r, n):
    """The place of a real among those that are near, or -1; and how many these are."""
    for i in range(n):
        if search.near[i].real == r:
            return i, n
    record = terms.variable[r]
    if n == MOST_REALS or record.links_end - record.links > BUSY or not record.movable:
        return -1, n
    search.near[n].real = r
    search.near[n].curve = search.curve[r]
    search.near[n].slope = 2.0 * search.curve[r] * search.x[r] + search.slope[r]
    for i in range(n):
        cross = _coupling(terms, search, r, search.near[i].real)
        search.cross[i, n] = cross
        search.cross[n, i] = cross
    return n, n + 1


@part
def _coupling(terms, search, r, s):
    """The coupling of two reals, found by bisection among the neighbours of one."""
    first, last = terms.variable[r].links, terms.variable[r].links_end
    end, found = last, 0.0
    while first < last:
        middle = (first + last) // 2
        if terms.link[middle].other < s:
            first = middle + 1
        else:
            last = middle
    if first < end and terms.link[first].other == s:
        found = search.coupling[terms.link[first].pair]
    return found


@inner
def gather_touched(terms, search, length):
    """The number of reals near the first variables of the chain, which are found anew."""
    n = np.int64(0)
    for i in range(length):
        record = terms.variable[search.chain[i, 0]]
        for k in range(record.split, record.last):
            t = np.int64(terms.incidence[k].term)
            for e in range(terms.term[t].middle, terms.term[t].last):
                n = place_near(terms, search, np.int64(terms.entry[e].variable), n)[1]
            if n == MOST_REALS:
                return n
    return n


@inner
def weigh_reals(terms, search, v, step, n):
    """The gain of a flip by quadratics if reals stay, what the near reals gain more at their joint
    optimum, and how many these are; their steps are left in `shift`."""
    n, gain = _gather_flip(terms, search, v, step, n)
    return gain, _best_shift(terms, search, n), n


@part
def _gather_flip(terms, search, v, step, n):
    """Adds what a flip would change; returns the number of reals, and the gain if they stay."""
    theta, gain = terms.theta, 0.0
    for k in range(terms.variable[v].split, terms.variable[v].last):
        t = np.int64(terms.incidence[k].term)
        term = terms.term[t]
        m, first, size = term.multiplicity, term.middle, term.last - term.middle
        change = step * terms.incidence[k].stride
        A = term.base + search.joint[t] * size * size
        b = term.base + (term.num_joint * size + search.joint[t]) * size
        far_A, far_b = A + change * size * size, b + change * size
        for i in range(size):
            r = np.int64(terms.entry[first + i].variable)
            at, n = place_near(terms, search, r, n)
            slope = theta[far_b + i] - theta[b + i]
            gain += m * slope * search.x[r]
            for j in range(size):
                bend = theta[far_A + i * size + j] - theta[A + i * size + j]
                if bend == 0.0:
                    continue
                s = np.int64(terms.entry[first + j].variable)
                gain += m * bend * search.x[r] * search.x[s]
                slope += 2.0 * bend * search.x[s]
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


@part
def _best_shift(terms, search, n):
    """The gain of the near reals at their joint optimum."""
    near, shift, cross = search.near, search.shift, search.cross
    if n == 1:
        r = near[0].real
        shift[0] = best_step(terms.variable[r], near[0].curve, near[0].slope, search.x[r])
    elif n > 1 and not _newton(terms, search, n):
        _ascend_near(terms, search, n)
    gain = 0.0
    for i in range(n):
        slope = near[i].slope + near[i].curve * shift[i]
        for j in range(i):
            slope += cross[i, j] * shift[j]
        gain += slope * shift[i]
    return gain


@part
def _newton(terms, search, n):
    """Return True if the near reals have a joint optimum within their bounds, left in `shift`."""
    L, shift = search.root, search.shift
    for i in range(n):  # minus the second derivatives
        for j in range(i):
            L[i, j] = -search.cross[i, j]
        L[i, i] = -2.0 * search.near[i].curve
        flat = 2.0 * terms.variable[search.near[i].real].flat
        search.least[i] = max(PIVOT * abs(L[i, i]), flat)
        shift[i] = search.near[i].slope
    is_optimum = not np.isnan(factorise_small(L, search.least, shift, n))
    if is_optimum:
        for i in range(n - 1, -1, -1):
            value = shift[i]
            for k in range(i + 1, n):
                value -= L[k, i] * shift[k]
            shift[i] = value / L[i, i]
            r = search.near[i].real
            record, new = terms.variable[r], search.x[r] + shift[i]
            is_optimum &= record.lower <= new <= record.upper
            is_optimum &= abs(shift[i]) <= FAR * record.unit
    return is_optimum


@part
def _ascend_near(terms, search, n):
    """Coordinate ascent of the near reals from where they are."""
    near, shift = search.near, search.shift
    for i in range(n):
        shift[i] = 0.0
    for _ in range(30):
        largest = 0.0
        for i in range(n):
            r = near[i].real
            slope = near[i].slope + 2.0 * near[i].curve * shift[i]
            for j in range(n):
                if j != i:
                    slope += search.cross[i, j] * shift[j]
            d = best_step(terms.variable[r], near[i].curve, slope, search.x[r] + shift[i])
            shift[i] += d
            largest = max(largest, abs(d) / terms.variable[r].unit)
        if largest < 1e-10:
            break


STILL = 1e-11
"""A step smaller than this, relative to unit and value, is none."""

TOLERANCE = 1e-13
"""Of joint solves, relative to the gradient."""


@entry_with_views
def settle_reals(terms, search, solve, most):
    """Moves reals towards their joint optimum within bounds; the density never falls.

    Conjugate gradients on those that no bound holds, then coordinate ascent for all; `most` bounds
    the steps of each solve. Discrete variables beside a real that moved are queued. Returns whether
    the last solve met a direction along which the density is not concave: it is left in
    solve.direction.
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
        for i in range(len(solve.reals)):  # exact steps of single reals
            r = solve.reals[i]
            slope = 2.0 * search.curve[r] * search.x[r] + search.slope[r]
            d = best_step(terms.variable[r], search.curve[r], slope, search.x[r])
            relative = abs(d) / (terms.variable[r].unit + abs(search.x[r]))
            if relative > STILL:
                shift_real(terms, search, r, d)
                moved = max(moved, relative)
        if moved < STILL:
            break
    push_beside_moved(terms, search)
    return is_loose


@part
def _assemble(terms, search, solve):
    """Gradient and minus the second derivatives of the density, with reals in units that make the
    diagonal 1; a real is left out if a bound holds it or the density along it is not concave."""
    for i in range(len(solve.reals)):
        r = solve.reals[i]
        x, curve, record = search.x[r], search.curve[r], terms.variable[r]
        gradient = 2.0 * curve * x + search.slope[r]
        is_held = (x <= record.lower and gradient <= 0.0) or (x >= record.upper and gradient >= 0.0)
        scale = 0.0
        if curve < -record.flat and not is_held:
            scale = 1.0 / np.sqrt(-2.0 * curve)
        solve.scale[i] = scale
        solve.gradient[i] = gradient * scale
        solve.flat[i] = 2.0 * record.flat * scale**2
    for i in range(len(solve.reals)):
        first = solve.indptr[i]
        solve.data[first] = 1.0
        for k in range(first + 1, solve.indptr[i + 1]):
            scale = solve.scale[i] * solve.scale[solve.indices[k]]
            solve.data[k] = -search.coupling[solve.pair[k]] * scale


@part
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
        step, x = abs(y[i]) * solve.scale[i], search.x[r]
        space = terms.variable[r].upper - x if y[i] > 0 else x - terms.variable[r].lower
        space = min(space, FAR * terms.variable[r].unit)
        if step * share > space:
            share = space / step
    gain = (value + share * bend) * share
    if share < 1.0:
        projected = np.zeros(len(y))
        for i in range(len(y)):
            r = solve.reals[i]
            x, far = search.x[r], FAR * terms.variable[r].unit
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
    largest = 0.0
    if gain > 0.0:
        for i in range(len(y)):
            d = share * y[i] * solve.scale[i]
            r = solve.reals[i]
            if d != 0.0:
                largest = max(largest, abs(d) / (terms.variable[r].unit + abs(search.x[r])))
                shift_real(terms, search, r, d)
    return largest
