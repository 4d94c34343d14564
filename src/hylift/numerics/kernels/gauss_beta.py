"""Gauss rules for Beta densities."""

import numpy as np
from numba import njit

EPS = 2.0**-52
LEAST, MOST = 2.0**-1000, 1.0 - 2.0**-53
"""Nodes stay strictly inside (0, 1), however close to an end they belong."""

MAX_ITERATIONS = 50
"""Per node; two are usual."""


@njit(cache=True, nogil=True, error_model="numpy")
def gauss_beta(alpha, beta, nodes, weights):
    """Fills in the Gauss rule for the density of Beta(alpha, beta) on (0, 1).

    Nodes increase, weights sum to 1; a rule of n nodes is exact for polynomials of degree 2n - 1.

    The nodes are the eigenvalues of the Jacobi matrix (Golub and Welsch). We subtract the mean from
    its diagonal, in closed form: a narrow density loses no digits to where it stands.
    """
    n = len(nodes)
    total = alpha + beta
    mean = alpha / total
    diagonal, off = np.zeros(n), np.zeros(n)
    for k in range(1, n):
        s = 2 * k + total - 2.0
        diagonal[k] = 2 * k * (k + total - 1.0) / s * ((beta - alpha) / total) / (s + 2.0)
        # The quotient is 1 for k = 1, also where both of its terms are 0.
        quotient = 1.0 if k == 1 else (k + total - 2.0) / (s - 1.0)
        squared = k * (k + alpha - 1.0) / s * ((k + beta - 1.0) / s) * quotient / (s + 1.0)
        off[k] = np.sqrt(squared)
        nodes[k] = diagonal[k]
        weights[k - 1] = squared
    nodes[0], weights[n - 1] = 0.0, 0.0
    _eigenvalues(nodes, weights)
    _sort(nodes)
    _christoffel(diagonal, off, nodes, weights)
    for k in range(n):
        nodes[k] = min(max(mean + nodes[k], LEAST), MOST)


@njit(cache=True, nogil=True, error_model="numpy")
def _eigenvalues(diagonal, squared):
    """Replaces the diagonal of a symmetric tridiagonal matrix by its eigenvalues.

    squared[k], the square of what stands between rows k and k + 1, is overwritten. Implicit QL
    without square roots (Pal, Walker and Kahan), as in LAPACK's dsterf.
    """
    n = len(diagonal)
    for low in range(n):
        for _ in range(MAX_ITERATIONS):
            high = low
            while high < n - 1:
                negligible = EPS * (abs(diagonal[high]) + abs(diagonal[high + 1]))
                if squared[high] <= negligible * negligible:
                    break
                high += 1
            if high == low:
                break
            root = np.sqrt(squared[low])
            g = (diagonal[low + 1] - diagonal[low]) / (2.0 * root)
            r = np.sqrt(g * g + 1.0)
            shift = diagonal[low] - root / (g + (r if g >= 0.0 else -r))
            sine, cosine = 0.0, 1.0  # squared
            gamma = diagonal[high] - shift
            p = gamma * gamma
            for i in range(high - 1, low - 1, -1):
                r = p + squared[i]
                if i < high - 1:
                    squared[i + 1] = sine * r
                cosine_before, gamma_before, own = cosine, gamma, diagonal[i]
                cosine, sine = p / r, squared[i] / r
                gamma = cosine * (own - shift) - sine * gamma_before
                diagonal[i + 1] = gamma_before + (own - gamma)
                p = gamma * gamma / cosine if cosine != 0.0 else cosine_before * squared[i]
            squared[low] = sine * p
            diagonal[low] = shift + gamma


@njit(cache=True, nogil=True, error_model="numpy")
def _sort(values):
    for k in range(1, len(values)):
        value, at = values[k], k
        while at > 0 and values[at - 1] > value:
            values[at] = values[at - 1]
            at -= 1
        values[at] = value


@njit(cache=True, nogil=True, error_model="numpy")
def _christoffel(diagonal, off, nodes, weights):
    """Fills in 1 / Σ_k p_k(x)² at each node x, p_k the orthonormal polynomials.

    These are the squared first components of the eigenvectors, but as sums of positive terms:
    the tiny weights of far nodes, which carry high moments, keep all their digits.
    """
    n = len(nodes)
    total = 0.0
    inverse = np.empty(n)
    for k in range(1, n):
        inverse[k] = 1.0 / off[k]
    for t in range(n):
        x, before, now, norm = nodes[t], 0.0, 1.0, 1.0
        for k in range(1, n):
            step, back = (x - diagonal[k - 1]) * inverse[k], off[k - 1] * inverse[k]
            before, now = now, step * now - back * before
            norm += now * now
        weights[t] = 1.0 / norm
        total += weights[t]
    for t in range(n):
        weights[t] /= total


@njit(cache=True, nogil=True)
def gauss_betas(alpha, beta, num_nodes):
    """Nodes in (0, 1) and weights (Beta, node) of the Gauss rules of many Betas."""
    nodes = np.empty((len(alpha), num_nodes))
    weights = np.empty((len(alpha), num_nodes))
    for row in range(len(alpha)):
        gauss_beta(alpha[row], beta[row], nodes[row], weights[row])
    return nodes, weights
