"""Compiled loops over terms that local search and Gibbs share, and their decorators."""

import numpy as np
from numba import njit

from hylift.numerics.kernels import inner

entry = njit(cache=True, nogil=True, _nrt=False, no_cfunc_wrapper=True)
"""Called from Python. Without reference counts, which take long to compile in small kernels."""

entry_with_views = njit(cache=True, nogil=True, no_cfunc_wrapper=True)
"""The same for kernels that allocate arrays, or take views of them."""

inner_with_views = njit(cache=True, nogil=True, no_cpython_wrapper=True, no_cfunc_wrapper=True)
"""Called from kernels only, like `inner`, for those that take views of arrays."""

part = njit(cache=True, nogil=True, inline="always")
"""A part of the one kernel that calls it: compiled with it, and not by itself."""


@inner
def joint_state(terms, x, t):
    """The joint state of a term at an assignment."""
    joint = np.int64(0)
    for e in range(terms.term[t].first, terms.term[t].middle):
        joint += np.int64(x[terms.entry[e].variable]) * np.int64(terms.entry[e].stride)
    return joint


@inner
def term_value(terms, x, t, joint):
    """Log-value of a term in one of its joint states."""
    entry, theta, term = terms.entry, terms.theta, terms.term[t]
    middle, size = term.middle, term.last - term.middle
    A, b = term.base + joint * size * size, term.base + (term.num_joint * size + joint) * size
    value = theta[term.base + term.num_joint * (size * size + size) + joint]
    for i in range(size):
        inner = theta[b + i]
        for j in range(size):
            inner += theta[A + i * size + j] * x[entry[middle + j].variable]
        value += inner * x[entry[middle + i].variable]
    return value


@inner
def add_quadratic(terms, t, joint, m, x, curve, slope, coupling):
    """Add m times a quadratic in one of its joint states to what is known along its reals.

    Along a real the log-density is curve x² + slope x, with all others as in `x`; where these are
    0, the slope is the linear part of the joint Gaussian. coupling: (pair of reals,).
    """
    theta, term = terms.theta, terms.term[t]
    first, size, pair = term.middle, term.last - term.middle, term.pair
    A, b = term.base + joint * size * size, term.base + (term.num_joint * size + joint) * size
    for i in range(size):
        r = terms.entry[first + i].variable
        curve[r] += m * theta[A + i * size + i]
        slope[r] += m * theta[b + i]
        for j in range(i + 1, size):
            s = terms.entry[first + j].variable
            cross = 2.0 * m * theta[A + i * size + j]
            slope[r] += cross * x[s]
            slope[s] += cross * x[r]
            coupling[terms.pair_of[pair]] += cross
            pair += 1


@entry
def gradient_of_each(terms, x, joint, variables, gradient):
    """Fills in the derivatives (chain, variable) of the quadratics along some reals; x: (chain,
    variable), joint: (chain, term)."""
    theta = terms.theta
    for i in range(len(variables)):
        v = variables[i]
        for c in range(len(x)):
            gradient[c, i] = 0.0
        for k in range(terms.variable[v].split, terms.variable[v].last):
            t = np.int64(terms.incidence[k].term)
            first, size = terms.term[t].middle, terms.term[t].last - terms.term[t].middle
            for j in range(size):
                if terms.entry[first + j].variable != v:
                    continue
                for c in range(len(x)):
                    A = terms.term[t].base + joint[c, t] * size * size
                    b = terms.term[t].base + (terms.term[t].num_joint * size + joint[c, t]) * size
                    own = theta[b + j]
                    for r in range(size):
                        other = terms.entry[first + r].variable
                        own += 2.0 * theta[A + j * size + r] * x[c, other]
                    gradient[c, i] += terms.term[t].multiplicity * own


@entry
def worth_of_each(terms, x, variables, broken, total):
    """Adds, per variable, the multiplicity of its terms at -inf, and the sum of its others."""
    for i in range(len(variables)):
        v = variables[i]
        for k in range(terms.variable[v].first, terms.variable[v].last):
            t = np.int64(terms.incidence[k].term)
            m = terms.term[t].multiplicity
            value = term_value(terms, x, t, joint_state(terms, x, t))
            if value == -np.inf:
                broken[i] += m
            else:
                total[i] += m * value


@inner
def factorise_small(matrix, least, right, size):
    """Cholesky factor L of a small matrix and L⁻¹ of `right`, both in place; half its log
    determinant, or NaN if a pivot is not above the least for its row."""
    half = 0.0
    for i in range(size):
        for j in range(i + 1):
            value = matrix[i, j]
            for k in range(j):
                value -= matrix[i, k] * matrix[j, k]
            if j < i:
                matrix[i, j] = value / matrix[j, j]
            elif value > least[i]:
                matrix[i, i] = np.sqrt(value)
            else:
                return np.nan
        value = right[i]
        for k in range(i):
            value -= matrix[i, k] * right[k]
        right[i] = value / matrix[i, i]
        half += np.log(matrix[i, i])
    return half
