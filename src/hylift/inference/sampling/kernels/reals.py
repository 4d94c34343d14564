"""Draws of the reals of a component given the states."""

import numpy as np

from hylift.inference.local.kernels import inner, inner_with_views, part
from hylift.inference.sampling.kernels.arrays import FACTORISED, INDEFINITE, SOLVED, STALE
from hylift.inference.sampling.kernels.states import add_quadratic
from hylift.numerics.kernels.ldl import factorise, forward, selected_inverse

TRIES = 4
"""Block draws that are tried where bounds may cut them off."""

NEAR = 4.0
"""Standard deviations from the mean within which a bound matters."""


@part
def draw_reals(terms, reals, chain, rng):
    """Draws every component of reals; a variable that nothing holds, or -1.

    A Gaussian block that falls within all bounds is a draw from the truncated Gaussian. Whether
    one of the few that are tried does, has a probability that depends on the states alone, not on
    where the reals are now. If none does, the reals move one at a time from where they are, each
    from its own truncated Gaussian, and then together along a random line. All these moves leave
    the distribution as it is, and the choice between them is blind to what they move: so does
    their mixture.
    """
    for c in range(len(reals.has_bounds)):
        if chain.known[c] == STALE:
            failed = _factorise_component(terms, reals, chain, c)
            if failed >= 0 and reals.has_bounds[c]:
                failed = _factorise_unbounded(terms, reals, chain, c)
            if failed >= 0:
                return reals.variable[failed]
        is_drawn = False
        if chain.known[c] != INDEFINITE:
            tries = TRIES if reals.has_bounds[c] else 1
            for _ in range(tries):
                if not is_drawn:
                    is_drawn = _draw_block(terms, reals, chain, rng, c)
        if not is_drawn:
            chain.is_near[c] = 1
            failed = _draw_each(terms, reals, chain, rng, c)
            if failed >= 0:
                return failed
            if chain.is_aimed[c]:
                _draw_along(terms, reals, chain, rng, c)
    return np.int64(-1)


@inner_with_views
def _factorise_component(terms, reals, chain, c):
    """The Gaussian of a component in the states at hand; the step that fails, or -1."""
    inside = reals.steps[reals.component_ptr[c] : reals.component_ptr[c + 1]]
    _assemble(terms, reals, chain, c)
    failed = _factorise_as(reals, chain, c, chain.diagonal, chain.edges)
    chain.known[c] = FACTORISED if failed < 0 else INDEFINITE
    chain.is_near[c] = 0
    chain.is_aimed[c] = failed < 0
    if failed < 0:
        for v in inside:
            chain.half[v] = chain.linear[v]
        forward(inside, reals.ptr, reals.later, chain.factor, chain.pivot, chain.half)
        for v in inside:
            chain.half[v] /= chain.pivot[v]
    return failed


@inner_with_views
def _factorise_as(reals, chain, c, diagonal, edges):
    """The factor of a component with this precision; the step that fails, or -1."""
    inside = reals.steps[reals.component_ptr[c] : reals.component_ptr[c + 1]]
    return factorise(
        inside, np.int64(0), np.int64(1), reals.ptr, reals.later, reals.numbers, reals.ptr,
        diagonal, edges, chain.factor, chain.pivot, chain.column,
        chain.lists[0], chain.lists[1], chain.lists[2], False,
    )  # fmt: skip


@inner
def _is_unbounded(terms, reals, v):
    r = reals.variable[v]
    return terms.variable[r].lower == -np.inf and terms.variable[r].upper == np.inf


@inner_with_views
def _factorise_unbounded(terms, reals, chain, c):
    """Of a component that is no Gaussian, a real without bounds that nothing holds given those
    that have bounds, or -1.

    One at a time they might all be held, and yet run away together. If there is none, it leaves a
    factor that tells directions to move in: as if those between two bounds were held by a Gaussian
    as wide as they are apart.
    """
    for k in range(reals.component_ptr[c], reals.component_ptr[c + 1]):
        v = reals.steps[k]
        is_free = _is_unbounded(terms, reals, v)
        chain.drawn[v] = chain.diagonal[v] if is_free else 1.0
        for e in range(reals.ptr[v], reals.ptr[v + 1]):
            both = is_free and _is_unbounded(terms, reals, np.int64(reals.later[e]))
            chain.inverse[e] = chain.edges[e] if both else 0.0
    failed = _factorise_as(reals, chain, c, chain.drawn, chain.inverse)
    if failed < 0:
        for k in range(reals.component_ptr[c], reals.component_ptr[c + 1]):
            v = reals.steps[k]
            r = reals.variable[v]
            apart = terms.variable[r].upper - terms.variable[r].lower
            chain.drawn[v] = chain.diagonal[v] + 1.0 / apart**2
        chain.is_aimed[c] = _factorise_as(reals, chain, c, chain.drawn, chain.edges) < 0
    return failed


@inner
def _assemble(terms, reals, chain, c):
    """Precision and linear part of a component."""
    for k in range(reals.component_ptr[c], reals.component_ptr[c + 1]):
        v = reals.steps[k]
        chain.diagonal[v] = 0.0
        chain.linear[v] = 0.0
        for e in range(reals.ptr[v], reals.ptr[v + 1]):
            chain.edges[e] = 0.0
    for k in range(reals.term_ptr[c], reals.term_ptr[c + 1]):
        t = reals.terms[k]
        add_quadratic(terms, reals, chain, t, chain.joint[t], terms.term[t].multiplicity)


@inner
def _draw_block(terms, reals, chain, rng, c):
    """Draws a whole component; it is taken, and true returned, if it is within all bounds."""
    first, last = reals.component_ptr[c], reals.component_ptr[c + 1]
    for k in range(last - 1, first - 1, -1):
        v = reals.steps[k]
        value = chain.half[v] + rng.standard_normal() / np.sqrt(chain.pivot[v])
        for e in range(reals.ptr[v], reals.ptr[v + 1]):
            value -= chain.factor[e] * chain.drawn[reals.later[e]]
        r = reals.variable[v]
        if not terms.variable[r].lower <= value <= terms.variable[r].upper:
            return False
        chain.drawn[v] = value
    for k in range(first, last):
        chain.x[reals.variable[reals.steps[k]]] = chain.drawn[reals.steps[k]]
    return True


@inner
def _draw_each(terms, reals, chain, rng, c):
    """Draws the reals of a component one after the other; one that nothing holds, or -1."""
    for k in range(reals.component_ptr[c], reals.component_ptr[c + 1]):
        v = reals.steps[k]
        r = reals.variable[v]
        curve, slope = conditional(terms, reals, chain, v)
        value = draw_between(rng, curve, slope, terms.variable[r].lower, terms.variable[r].upper)
        if not np.isfinite(value):
            return r
        chain.x[r] = value
    return np.int64(-1)


@inner
def _draw_along(terms, reals, chain, rng, c):
    """Draws where a component stands on a line through it, within all bounds.

    The line has the direction of a draw from the Gaussian that was factorised, which knows nothing
    of where the reals are: it leads along ridges where one real alone could hardly move.
    """
    first, last = reals.component_ptr[c], reals.component_ptr[c + 1]
    for k in range(last - 1, first - 1, -1):
        v = reals.steps[k]
        chain.drawn[v] = rng.standard_normal() / np.sqrt(chain.pivot[v])
        for e in range(reals.ptr[v], reals.ptr[v + 1]):
            chain.drawn[v] -= chain.factor[e] * chain.drawn[reals.later[e]]
    low, high, curve, slope = -np.inf, np.inf, 0.0, 0.0
    for k in range(first, last):
        v = reals.steps[k]
        r = reals.variable[v]
        along, x = chain.drawn[v], chain.x[r]
        bend, rise = conditional(terms, reals, chain, v)
        slope += along * (rise + 2.0 * bend * x)
        curve += bend * along**2
        for e in range(reals.ptr[v], reals.ptr[v + 1]):
            curve -= chain.edges[e] * along * chain.drawn[reals.later[e]]
        if along != 0.0:
            one, other = (
                (terms.variable[r].lower - x) / along,
                (terms.variable[r].upper - x) / along,
            )
            low, high = max(low, min(one, other)), min(high, max(one, other))
    far = draw_between(rng, curve, slope, min(low, 0.0), max(high, 0.0))
    if np.isfinite(far):
        for k in range(first, last):
            r = reals.variable[reals.steps[k]]
            value = chain.x[r] + far * chain.drawn[reals.steps[k]]
            chain.x[r] = min(max(value, terms.variable[r].lower), terms.variable[r].upper)


@inner
def conditional(terms, reals, chain, v):
    """The log-density along a real given all else: its curve and its slope at 0."""
    r = reals.variable[v]
    slope = chain.linear[v]
    for k in range(terms.variable[r].links, terms.variable[r].links_end):
        edge = reals.pair_edge[terms.link[k].pair]
        slope -= chain.edges[edge] * chain.x[terms.link[k].other]
    return -0.5 * chain.diagonal[v], slope


@inner_with_views
def solve_component(terms, reals, chain, c):
    """Fills in the means and variances of a component given the states, if it has any, and
    whether a bound is near them."""
    if chain.known[c] != FACTORISED:
        return
    inside = reals.steps[reals.component_ptr[c] : reals.component_ptr[c + 1]]
    for i in range(len(inside) - 1, -1, -1):
        v = inside[i]
        chain.mean[v] = chain.half[v]
        for e in range(reals.ptr[v], reals.ptr[v + 1]):
            chain.mean[v] -= chain.factor[e] * chain.mean[reals.later[e]]
    selected_inverse(
        inside, reals.ptr, reals.later, chain.factor, chain.pivot, chain.inverse, chain.var,
        chain.column,
    )  # fmt: skip
    chain.known[c] = SOLVED
    for v in inside:
        r = reals.variable[v]
        reach = NEAR * np.sqrt(chain.var[v])
        low, high = chain.mean[v] - reach, chain.mean[v] + reach
        if low < terms.variable[r].lower or high > terms.variable[r].upper:
            chain.is_near[c] = 1


FLAT = 1e-10
"""A curve that changes the log-density by no more than this within the bounds counts as none."""

NARROW = 1.5
"""Fall of the log-density up to which uniform proposals are good."""


@inner
def draw_between(rng, curve, slope, low, high):
    """A draw, or NaN where there is no distribution because nothing holds it."""
    if abs(curve) * (high - low) ** 2 <= FLAT:
        curve = 0.0
    if curve < 0.0:
        scale = 1.0 / np.sqrt(-2.0 * curve)
        middle = -0.5 * slope / curve
        if low == -np.inf and high == np.inf:
            return middle + scale * rng.standard_normal()
        a, b = (low - middle) / scale, (high - middle) / scale
        # Counted from the nearer bound, so that no digits are lost far from the middle.
        if a > 0.0:
            x = low + scale * _beyond(rng, a, b)
        elif b < 0.0:
            x = high - scale * _beyond(rng, -b, -a)
        else:
            x = middle + scale * _around_zero(rng, a, b)
    elif np.isfinite(low) and np.isfinite(high):
        x = _convex(rng, curve, slope, low, high)
    elif curve == 0.0 and slope < 0.0 and np.isfinite(low):
        x = low - _exponential(rng) / slope
    elif curve == 0.0 and slope > 0.0 and np.isfinite(high):
        x = high - _exponential(rng) / slope
    else:
        return np.nan
    return min(max(x, low), high)


@inner
def _around_zero(rng, a, b):
    """Of a standard normal between a ≤ 0 and b ≥ 0."""
    while True:
        if b - a < NARROW:
            z = a + (b - a) * rng.random()
            if rng.random() < np.exp(-0.5 * z * z):
                return z
        else:
            z = rng.standard_normal()
            if a <= z <= b:
                return z


@inner
def _beyond(rng, a, b):
    """Of a standard normal between a > 0 and b: how far beyond a it is."""
    width = b - a
    narrow = width * (a + 0.5 * width) < NARROW
    # The best exponential proposal (Robert 1995).
    rate = 0.5 * (a + np.sqrt(a * a + 4.0))
    while True:
        if narrow:
            step = width * rng.random()
            if rng.random() < np.exp(-step * (a + 0.5 * step)):
                return step
        else:
            step = _exponential(rng) / rate
            if step <= width and rng.random() < np.exp(-0.5 * (a + step - rate) ** 2):
                return step


@inner
def _convex(rng, curve, slope, low, high):
    """Where the log-density is convex or straight: it lies below its chords.

    Proposals come from the chords on either side of its least point, and at least about one half
    of them is taken.
    """
    least = high
    if curve > 0.0:
        least = min(max(-0.5 * slope / curve, low), high)
    # Log-values relative to `least`.
    left = curve * (low - least) ** 2 + (2.0 * curve * least + slope) * (low - least)
    right = curve * (high - least) ** 2 + (2.0 * curve * least + slope) * (high - least)
    top = max(left, right, 0.0)
    on_left = (least - low) * np.exp(max(left, 0.0) - top) * _share(abs(left))
    on_right = (high - least) * np.exp(max(right, 0.0) - top) * _share(abs(right))
    while True:
        if rng.random() * (on_left + on_right) < on_left:
            start, end, rise = least, low, left
        else:
            start, end, rise = least, high, right
        # A share t of the way from `least` to the bound has density exp(rise t).
        u = rng.random()
        t = u
        if rise > 0.0:
            t = 1.0 + np.log(u + (1.0 - u) * np.exp(-rise)) / rise
        elif rise < 0.0:
            t = np.log(u + (1.0 - u) * np.exp(rise)) / rise
        # Below the chord by curve · t (1 - t) · width².
        if rng.random() < np.exp(-curve * t * (1.0 - t) * (end - start) ** 2):
            return start + t * (end - start)


@inner
def _share(rise):
    """∫₀¹ exp(-rise t) dt."""
    return 1.0 if rise < 1e-12 else -np.expm1(-rise) / rise


@inner
def _exponential(rng):
    """Numba's own takes longer to compile than all else here."""
    return -np.log(1.0 - rng.random())
