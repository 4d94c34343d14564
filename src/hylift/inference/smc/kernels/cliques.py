"""Gaussians on a tree of cliques: messages up and down, integrals, means and draws.

A clique has its own reals first, which are integrated out on the way to its parent, then those
that it shares with its parent. Messages towards a clique never contain what lies beyond it: nothing
is subtracted, so that precisions of all sizes can stand beside each other.
"""

import numpy as np

from hylift.inference.local.kernels import entry
from hylift.numerics.kernels import inner
from hylift.numerics.kernels.random import normal

SINGULAR = 1e-14
"""A pivot this small against its diagonal entry counts as zero: the form is not definite."""

HALF_LOG_2PI = 0.5 * np.log(2.0 * np.pi)


@inner
def add_quadratic(terms, t, joint, m, places, at, floats, square, width, first):
    """Adds m times a quadratic in a joint state to a precision and a linear part, which start at
    `square` and `first`; its constant.

    places: from `at` on, where each of its reals stands in the matrix.
    """
    theta, term = terms.theta, terms.term[t]
    size = term.last - term.middle
    A, b = term.base + joint * size * size, term.base + (term.num_joint * size + joint) * size
    for i in range(size):
        row = places[at + i]
        floats[first + row] += m * theta[b + i]
        for j in range(size):
            floats[square + row * width + places[at + j]] -= 2.0 * m * theta[A + i * size + j]
    return m * theta[term.base + term.num_joint * (size * size + size) + joint]


@inner
def add_terms(terms, cliques, work, c):
    """Sums up the terms of a clique in the states at hand."""
    clique = cliques.clique[c]
    size = clique.last - clique.first
    for k in range(clique.square, clique.square + size * size):
        work.floats[work.own + k] = 0.0
    for k in range(clique.first, clique.last):
        work.floats[work.own_linear + k] = 0.0
    total = 0.0
    for k in range(clique.terms, clique.terms_end):
        t = np.int64(cliques.hosted[k].term)
        total += add_quadratic(
            terms, t, work.ints[work.joint + t], terms.term[t].multiplicity, cliques.lists,
            cliques.place + cliques.hosted[k].place, work.floats, work.own + clique.square, size,
            work.own_linear + clique.first,
        )  # fmt: skip
    work.floats[work.own_constant + c] = total
    work.ints[work.is_stale + c] = 0


@inner
def _add_children(cliques, work, c, but, square, first):
    """Adds the messages of the children of a clique, but for one; the sum of their constants."""
    clique = cliques.clique[c]
    size = clique.last - clique.first
    total = 0.0
    for k in range(clique.children, clique.children_end):
        child = cliques.lists[cliques.child + k]
        if child == but:
            continue
        other = cliques.clique[child]
        total += work.floats[work.constant + child]
        width = other.last - other.first
        for i in range(other.num_own, width):
            row = np.int64(cliques.member[other.first + i].into)
            work.floats[first + row] += work.floats[work.half + other.first + i]
            for j in range(other.num_own, i + 1):
                column = np.int64(cliques.member[other.first + j].into)
                value = work.floats[work.root + other.square + i * width + j]
                work.floats[square + row * size + column] += value
                if i != j:
                    work.floats[square + column * size + row] += value
    return total


@inner
def _gather(cliques, work, c, but):
    """The Gaussian of a clique by all terms but those beyond one child, in `matrix`, `vector`."""
    clique = cliques.clique[c]
    size = clique.last - clique.first
    for k in range(size * size):
        work.floats[work.matrix + k] = work.floats[work.own + clique.square + k]
    for k in range(size):
        work.floats[work.vector + k] = work.floats[work.own_linear + clique.first + k]
    _add_children(cliques, work, c, but, work.matrix, work.vector)
    shared = size - clique.num_own
    for i in range(shared):
        work.floats[work.vector + clique.num_own + i] += work.floats[
            work.down_linear + clique.first + i
        ]
        for j in range(shared):
            at = (clique.num_own + i) * size + clique.num_own + j
            work.floats[work.matrix + at] += work.floats[work.down + clique.square + i * shared + j]
    return size


@inner
def eliminate(work, square, size, first, count):
    """Cholesky of the first `count` columns of a matrix, in place, in the lower triangle: what is
    left is the Gaussian of the others. Returns the log-integral over them, or NaN with the column
    that failed at `scale`.

    square, first: where the precision and the linear part start.
    """
    floats, scale, column = work.floats, work.scale, work.column
    total = count * HALF_LOG_2PI
    for i in range(size):
        floats[scale + i] = floats[square + i * size + i]
    for k in range(count):
        pivot = floats[square + k * size + k]
        if not pivot > SINGULAR * abs(floats[scale + k]):
            floats[scale] = k
            return np.nan
        root = np.sqrt(pivot)
        floats[square + k * size + k] = root
        y = floats[first + k] / root
        floats[first + k] = y
        total += 0.5 * y * y - np.log(root)
        for i in range(k + 1, size):
            floats[square + i * size + k] /= root
            floats[column + i] = floats[square + i * size + k]  # side by side, for speed
        for i in range(k + 1, size):
            value, row = floats[column + i], square + i * size
            if value == 0.0:
                continue
            floats[first + i] -= value * y
            for j in range(k + 1, i + 1):
                floats[row + j] -= value * floats[column + j]
    return total


@inner
def climb(terms, cliques, work, c):
    """The message of a clique to its parent; a real that nothing holds, or -1."""
    if work.ints[work.is_stale + c]:
        add_terms(terms, cliques, work, c)
    clique = cliques.clique[c]
    size = clique.last - clique.first
    for k in range(clique.square, clique.square + size * size):
        work.floats[work.root + k] = work.floats[work.own + k]
    for k in range(clique.first, clique.last):
        work.floats[work.half + k] = work.floats[work.own_linear + k]
    constant = work.floats[work.own_constant + c]
    constant += _add_children(
        cliques, work, c, -1, work.root + clique.square, work.half + clique.first
    )
    constant += eliminate(
        work, work.root + clique.square, size, work.half + clique.first, clique.num_own
    )
    work.floats[work.constant + c] = constant
    if np.isnan(constant):
        return np.int64(
            cliques.member[clique.first + np.int64(work.floats[work.scale + 0])].variable
        )
    return np.int64(-1)


@inner
def climb_on(terms, cliques, work, c):
    """Message of a changed clique, whose parent has changed then; a real that nothing holds, or
    -1."""
    loose = climb(terms, cliques, work, c)
    if loose < 0:
        work.ints[work.has_changed + c] = 0
        if cliques.clique[c].parent >= 0:
            work.ints[work.has_changed + cliques.clique[c].parent] = 1
    return loose


@inner
def climb_all(terms, cliques, work, first, last):
    """Messages of all cliques from first to last where something changed; a real that nothing
    holds, or -1."""
    for c in range(first, last):
        if work.ints[work.is_stale + c] or work.ints[work.has_changed + c]:
            loose = climb_on(terms, cliques, work, c)
            if loose >= 0:
                return loose
    return np.int64(-1)


@inner
def log_integral(cliques, work, first, last):
    """Of all reals, once all messages have climbed."""
    total = 0.0
    for c in range(first, last):
        if cliques.clique[c].parent < 0:
            total += work.floats[work.constant + c]
    return total


@inner
def descend(cliques, work, c, child):
    """The message of a clique to one of its children."""
    size = _gather(cliques, work, c, child)
    other = cliques.clique[child]
    shared = other.last - other.first - other.num_own
    # The reals that the child does not have come first.
    for i in range(size):
        work.ints[work.order + i] = -1
    for i in range(shared):
        row = np.int64(cliques.member[other.first + other.num_own + i].into)
        work.ints[work.order + row] = size - shared + i
    place = 0
    for i in range(size):
        if work.ints[work.order + i] < 0:
            work.ints[work.order + i] = place
            place += 1
    for i in range(size):
        work.floats[work.mean + work.ints[work.order + i]] = work.floats[work.vector + i]
        for j in range(size):
            work.floats[work.cov + work.ints[work.order + i] * size + work.ints[work.order + j]] = (
                work.floats[work.matrix + i * size + j]
            )
    found = eliminate(work, work.cov, size, work.mean, size - shared)
    for i in range(shared):
        row = size - shared + i
        work.floats[work.down_linear + other.first + i] = work.floats[work.mean + row]
        for j in range(i + 1):
            value = work.floats[work.cov + row * size + size - shared + j]
            work.floats[work.down + other.square + i * shared + j] = value
            work.floats[work.down + other.square + j * shared + i] = value
    return not np.isnan(found)


@inner
def solve(cliques, work, c):
    """Means and covariances of the reals of a clique, in `mean` and `cov`; False if the matrix is
    not definite."""
    size = _gather(cliques, work, c, -1)
    if np.isnan(eliminate(work, work.matrix, size, work.vector, size)):
        return False
    invert(work.floats, work.matrix, size, work.cov)
    for i in range(size - 1, -1, -1):
        value = work.floats[work.vector + i]
        for j in range(i + 1, size):
            value -= work.floats[work.matrix + j * size + i] * work.floats[work.mean + j]
        work.floats[work.mean + i] = value / work.floats[work.matrix + i * size + i]
    return True


@inner
def invert(floats, root, size, out):
    """The inverse of LLᵀ at `out`; L stands in the lower triangle at `root`."""
    # Row i of L⁻¹ is (eᵢ - Σⱼ Lᵢⱼ row j) / Lᵢᵢ; the inverse is the sum of the squares of the rows.
    for i in range(size):
        row = out + i * size
        for k in range(size):
            floats[row + k] = 0.0
        floats[row + i] = 1.0
        for j in range(i):
            value, other = floats[root + i * size + j], out + j * size
            if value != 0.0:
                for k in range(j + 1):
                    floats[row + k] -= value * floats[other + k]
        value = 1.0 / floats[root + i * size + i]
        for k in range(i + 1):
            floats[row + k] *= value
    # Row i is the last that contributes to rows of the inverse up to i: they replace it in turn.
    for i in range(size):
        row = out + i * size
        for j in range(i + 1):
            value, last = floats[row + j], out + j * size
            if j == i:
                for k in range(i + 1):
                    floats[row + k] *= value
            else:
                for k in range(j + 1):
                    floats[last + k] += value * floats[row + k]
    for i in range(size):
        for j in range(i):
            floats[out + j * size + i] = floats[out + i * size + j]


@inner
def draw_reals(cliques, work, first, last):
    """Draws all reals given the states, once all messages have climbed, into `x`."""
    for c in range(last - 1, first - 1, -1):
        clique = cliques.clique[c]
        size = clique.last - clique.first
        for i in range(clique.num_own - 1, -1, -1):
            value = work.floats[work.half + clique.first + i] + normal(work.random)
            for j in range(i + 1, size):
                other = cliques.member[clique.first + j].variable
                value -= work.floats[work.root + clique.square + j * size + i] * work.x[other]
            value /= work.floats[work.root + clique.square + i * size + i]
            work.x[cliques.member[clique.first + i].variable] = value


@entry
def mark_busy(clique):
    """Marks cliques with discrete variables at them or below; children come before parents."""
    for c in range(len(clique)):
        if clique[c].locals_end > clique[c].locals:
            clique[c].is_busy = 1
        if clique[c].is_busy and clique[c].parent >= 0:
            clique[clique[c].parent].is_busy = 1
