"""Draws of the reals of a component given the states."""

import numpy as np

from hylift.inference.local.kernels import add_quadratic, inner_with_views, part
from hylift.inference.sampling.state import FACTORISED, INDEFINITE, SOLVED, STALE
from hylift.numerics.kernels import inner
from hylift.numerics.kernels.random import draw_between, normal
from hylift.numerics.kernels.sparse import factorise, forward, selected_inverse

TRIES = 4
"""Block draws that are tried where bounds may cut them off."""

NEAR = 4.0
"""Standard deviations from the mean within which a bound matters."""

WHOLE, UNBOUNDED, WIDENED = 0, 1, 2
"""Precisions of a component to factorise."""


@inner_with_views
def draw_reals(terms, blocks, chain):
    """Draws every component of reals; returns a variable that nothing holds, or -1.

    A Gaussian block that falls within all bounds is a draw from the truncated Gaussian. Whether
    one of the few that are tried does, has a probability that depends on the states alone, not on
    where the reals are now. If none does, the reals move one at a time from where they are, each
    from its own truncated Gaussian, and then together along a random line. All these moves leave
    the distribution as it is, and the choice between them is blind to what they move: so does
    their mixture.
    """
    loose = np.int64(-1)
    for c in range(len(blocks.has_bounds)):
        if chain.known[c] == STALE:
            failed = _factorise_component(terms, blocks, chain, c)
            if failed >= 0:
                loose = blocks.variable[failed]
                break
        tries = 0
        if chain.known[c] != INDEFINITE:
            tries = TRIES if blocks.has_bounds[c] else 1
        while tries > 0:
            tries -= 1
            if _draw_block(terms, blocks, chain, c):
                break
        else:
            chain.is_near[c] = 1
            loose = _draw_each(terms, blocks, chain, c)
            if loose >= 0:
                break
            if chain.is_aimed[c]:
                _draw_along(terms, blocks, chain, c)
    return loose


@part
def _factorise_component(terms, blocks, chain, c):
    """The Gaussian of a component in the states at hand; the step that fails, or -1.

    A component with bounds may be no Gaussian. It fails if its reals without bounds are none,
    given those that have bounds: one at a time they might all be held, and yet run away together.
    Otherwise it gets a factor that gives directions to move in: as if those between two bounds
    were held by a Gaussian as wide as they are apart.
    """
    inside = blocks.steps[blocks.component_ptr[c] : blocks.component_ptr[c + 1]]
    _assemble(terms, blocks, chain, c, inside)
    chain.is_near[c] = 0
    failed = np.int64(-1)
    for which in range(3):
        _fill_precision(terms, blocks, chain, inside, which)
        failed = factorise(
            inside, np.int64(0), np.int64(1), blocks.ptr, blocks.later, blocks.numbers, blocks.ptr,
            chain.drawn, chain.edges, chain.factor, chain.pivot, chain.column,
            chain.lists[0], chain.lists[1], chain.lists[2], False,
        )  # fmt: skip
        if which != UNBOUNDED:
            chain.is_aimed[c] = failed < 0
        if which == WHOLE:
            chain.known[c] = FACTORISED if failed < 0 else INDEFINITE
            if failed < 0 or not blocks.has_bounds[c]:
                break
        elif which == UNBOUNDED and failed >= 0:
            break
        else:
            failed = np.int64(-1)
    if chain.known[c] == FACTORISED:
        for v in inside:
            chain.half[v] = chain.linear[blocks.variable[v]]
        forward(inside, blocks.ptr, blocks.later, chain.factor, chain.pivot, chain.half)
        for v in inside:
            chain.half[v] /= chain.pivot[v]
    return failed


@part
def _assemble(terms, blocks, chain, c, inside):
    """Derivatives along the reals of a component."""
    for v in inside:
        chain.curve[blocks.variable[v]] = 0.0
        chain.linear[blocks.variable[v]] = 0.0
        for e in range(blocks.ptr[v], blocks.ptr[v + 1]):
            if blocks.edge_pair[e] >= 0:
                chain.coupling[blocks.edge_pair[e]] = 0.0
    for k in range(blocks.term_ptr[c], blocks.term_ptr[c + 1]):
        t = blocks.terms[k]
        add_quadratic(
            terms, t, chain.joint[t], terms.term[t].multiplicity,
            chain.origin, chain.curve, chain.linear, chain.coupling,
        )  # fmt: skip


@part
def _fill_precision(terms, blocks, chain, inside, which):
    """The diagonal in `drawn`, the rest in `edges`."""
    for v in inside:
        record, own = terms.variable[blocks.variable[v]], -2.0 * chain.curve[blocks.variable[v]]
        is_free = True
        if which == UNBOUNDED:
            is_free = record.lower == -np.inf and record.upper == np.inf
            own = own if is_free else 1.0
        elif which == WIDENED:
            own += 1.0 / (record.upper - record.lower) ** 2
        chain.drawn[v] = own
        for e in range(blocks.ptr[v], blocks.ptr[v + 1]):
            chain.edges[e] = 0.0
            if is_free and blocks.edge_pair[e] >= 0:
                other = terms.variable[blocks.variable[blocks.later[e]]]
                if which != UNBOUNDED or (other.lower == -np.inf and other.upper == np.inf):
                    chain.edges[e] = -chain.coupling[blocks.edge_pair[e]]


@part
def _draw_direction(blocks, chain, v):
    """A draw of one real of the Gaussian with mean 0, given those after it."""
    value = normal(chain.random) / np.sqrt(chain.pivot[v])
    for e in range(blocks.ptr[v], blocks.ptr[v + 1]):
        value -= chain.factor[e] * chain.drawn[blocks.later[e]]
    return value


@part
def _draw_block(terms, blocks, chain, c):
    """Draws a whole component; it is taken, and true returned, if it is within all bounds."""
    first, k = blocks.component_ptr[c], blocks.component_ptr[c + 1]
    is_inside = True
    while is_inside and k > first:
        k -= 1
        v = blocks.steps[k]
        value = chain.half[v] + _draw_direction(blocks, chain, v)
        record = terms.variable[blocks.variable[v]]
        is_inside = record.lower <= value <= record.upper
        chain.drawn[v] = value
    if is_inside:
        for k in range(first, blocks.component_ptr[c + 1]):
            chain.x[blocks.variable[blocks.steps[k]]] = chain.drawn[blocks.steps[k]]
    return is_inside


@part
def _draw_each(terms, blocks, chain, c):
    """Draws the reals of a component one after the other; one that nothing holds, or -1."""
    loose = np.int64(-1)
    for k in range(blocks.component_ptr[c], blocks.component_ptr[c + 1]):
        r = blocks.variable[blocks.steps[k]]
        curve, slope = conditional(terms, chain.x, chain.curve, chain.linear, chain.coupling, r)
        record = terms.variable[r]
        value = draw_between(chain.random, curve, slope, record.lower, record.upper)
        if not np.isfinite(value):
            loose = r
            break
        chain.x[r] = value
    return loose


@part
def _draw_along(terms, blocks, chain, c):
    """Draws where a component stands on a line through it, within all bounds.

    The line has the direction of a draw from the Gaussian that was factorised, which knows nothing
    of where the reals are: it leads along ridges where one real alone could hardly move.
    """
    first, last = blocks.component_ptr[c], blocks.component_ptr[c + 1]
    for k in range(last - 1, first - 1, -1):
        chain.drawn[blocks.steps[k]] = _draw_direction(blocks, chain, blocks.steps[k])
    low, high, curve, slope = -np.inf, np.inf, 0.0, 0.0
    for k in range(first, last):
        v = blocks.steps[k]
        r = blocks.variable[v]
        record, along, x = terms.variable[r], chain.drawn[v], chain.x[r]
        bend, rise = conditional(terms, chain.x, chain.curve, chain.linear, chain.coupling, r)
        slope += along * (rise + 2.0 * bend * x)
        curve += bend * along**2
        for e in range(blocks.ptr[v], blocks.ptr[v + 1]):
            if blocks.edge_pair[e] >= 0:
                both = along * chain.drawn[blocks.later[e]]
                curve += chain.coupling[blocks.edge_pair[e]] * both
        if along != 0.0:
            one, other = (record.lower - x) / along, (record.upper - x) / along
            low, high = max(low, min(one, other)), min(high, max(one, other))
    far = draw_between(chain.random, curve, slope, min(low, 0.0), max(high, 0.0))
    if np.isfinite(far):
        for k in range(first, last):
            r = blocks.variable[blocks.steps[k]]
            value = chain.x[r] + far * chain.drawn[blocks.steps[k]]
            chain.x[r] = min(max(value, terms.variable[r].lower), terms.variable[r].upper)


@inner
def conditional(terms, x, curve, linear, coupling, r):
    """The log-density along a real given all else: its curve and its slope at 0."""
    slope = linear[r]
    for k in range(terms.variable[r].links, terms.variable[r].links_end):
        slope += coupling[terms.link[k].pair] * x[terms.link[k].other]
    return curve[r], slope


@part
def solve_component(terms, blocks, chain, c):
    """Fills in the means and variances of a component that was factorised, and whether a bound is
    near them."""
    inside = blocks.steps[blocks.component_ptr[c] : blocks.component_ptr[c + 1]]
    for i in range(len(inside) - 1, -1, -1):
        v = inside[i]
        chain.mean[v] = chain.half[v]
        for e in range(blocks.ptr[v], blocks.ptr[v + 1]):
            chain.mean[v] -= chain.factor[e] * chain.mean[blocks.later[e]]
    selected_inverse(
        inside, blocks.ptr, blocks.later, chain.factor, chain.pivot, chain.edges, chain.var,
        chain.column,
    )  # fmt: skip
    chain.known[c] = SOLVED
    for v in inside:
        r = blocks.variable[v]
        reach = NEAR * np.sqrt(chain.var[v])
        low, high = chain.mean[v] - reach, chain.mean[v] + reach
        if low < terms.variable[r].lower or high > terms.variable[r].upper:
            chain.is_near[c] = 1
