"""Tilted marginals of reals: a mixture with a Gaussian for each joint state of a site."""

from numba import njit

from hylift.inference.expectation.kernels.dense import cholesky, inverse
from hylift.inference.expectation.kernels.sites import FINE, tilted


@njit(cache=True, nogil=True)
def separations(some, room, sites, now, found, covariance, share):
    """share: (real slot,): the share of its variance that is between the states of its site."""
    for c in some:
        if tilted(c, room, sites, now, found) != FINE:
            continue
        site, weights = sites.site[c], room[2]
        for i in range(site.num_reals):
            own = _along(site, i, room, sites, found, covariance)
            middle, between, within = 0.0, 0.0, 0.0
            for s in range(site.num_joint):
                if weights[0, s] > 0.0:
                    middle += weights[0, s] * _mean(s, room, site.dim)
            for s in range(site.num_joint):
                if weights[0, s] > 0.0:
                    away = _mean(s, room, site.dim) - middle
                    between += weights[0, s] * away * away
                    within += weights[0, s] * (own + _variance(s, room, site.dim))
            if between + within > 0.0:
                share[site.reals + i] = between / (between + within)


@njit(cache=True, nogil=True)
def mixtures(
    some, slots, room, sites, now, found, mean, covariance, start, weight, middle, variance
):  # fmt: skip
    """Components, from start[k] on, of the reals in slots[k] of some[k]."""
    for k in range(len(some)):
        site, i = sites.site[some[k]], slots[k]
        is_fine = tilted(some[k], room, sites, now, found) == FINE
        real = sites.step[site.reals + i]
        own = _along(site, i, room, sites, found, covariance)
        for s in range(site.num_joint):
            at = start[k] + s
            weight[at], middle[at], variance[at] = 0.0, mean[real], covariance[real]
            if is_fine and room[2][0, s] > 0.0:
                weight[at] = room[2][0, s]
                middle[at] += _mean(s, room, site.dim)
                variance[at] = own + _variance(s, room, site.dim)
        if not is_fine:
            weight[start[k]] = 1.0


@njit(cache=True, nogil=True)
def _along(site, i, room, sites, found, covariance):
    """The variance of a real given the coordinates of its site; vectors[0] is how its mean follows
    them."""
    matrices, vectors = room[0], room[1]
    follows, r, n = vectors[0], site.dim, site.num_reals
    if site.is_whole:
        for a in range(r):
            follows[a] = 1.0 if a == i else 0.0
        return 0.0
    lower = matrices[0]
    for a in range(r):
        for b in range(r):
            lower[a, b] = found.covariance[site.matrix + a * r + b]
    cholesky(lower, r)
    inverse(lower, r, matrices[1], vectors[2])
    left = covariance[sites.pair[site.pairs + i * n + i]]
    for a in range(r):
        vectors[1][a] = 0.0
        for j in range(n):
            known = covariance[sites.pair[site.pairs + i * n + j]]
            vectors[1][a] += known * sites.basis[site.basis + j * r + a]
    for a in range(r):
        follows[a] = 0.0
        for b in range(r):
            follows[a] += matrices[1][a, b] * vectors[1][b]
        left -= follows[a] * vectors[1][a]
    return max(left, 0.0)


@njit(cache=True, nogil=True, _nrt=False)
def _mean(s, room, r):
    total = 0.0
    for a in range(r):
        total += room[1][0, a] * room[3][s, a]
    return total


@njit(cache=True, nogil=True, _nrt=False)
def _variance(s, room, r):
    total = 0.0
    for a in range(r):
        for b in range(r):
            total += room[1][0, a] * room[4][s, a, b] * room[1][0, b]
    return total
