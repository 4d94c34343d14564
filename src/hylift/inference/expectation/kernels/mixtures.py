"""Tilted marginals of reals: a mixture with a Gaussian for each joint state of a site."""

from numba import njit

from hylift.inference.expectation.kernels.dense import cholesky, inverse
from hylift.inference.expectation.kernels.sites import FINE, tell, tilted_states


@njit(cache=True, nogil=True)
def separations(
    some, room, slot_ptr, num_discrete, num_joint, base, theta, copies, place, dim, dim_ptr,
    matrix_ptr, given_ptr, given_logs, given_means, given_spreads, mean, covariance, precision,
    linear, cavity, real_ptr, step, pair_ptr, pair, basis_ptr, basis, whole_mean, whole_covariance,
    candidate, log_norm, found,
):  # fmt: skip
    """found: (real slot,): the share of its variance that is between the states of its site."""
    for c in some:
        status = tilted_states(
            c, room, slot_ptr, num_discrete, num_joint, base, theta, copies, place, dim, dim_ptr,
            matrix_ptr, given_ptr, given_logs, given_means, given_spreads, mean, covariance,
            precision, linear, cavity,
        )  # fmt: skip
        if status == FINE:
            status = tell(
                c, room, slot_ptr, num_discrete, num_joint, place, cavity, candidate, log_norm
            )
        if status != FINE:
            continue
        weights = room[2]
        for i in range(real_ptr[c + 1] - real_ptr[c]):
            own = _along(
                c, i, room, dim[c], matrix_ptr[c], covariance, real_ptr, pair_ptr, pair, basis_ptr,
                basis, whole_covariance,
            )  # fmt: skip
            middle, between, within = 0.0, 0.0, 0.0
            for s in range(num_joint[c]):
                if weights[0, s] > 0.0:
                    middle += weights[0, s] * _mean(s, room, dim[c])
            for s in range(num_joint[c]):
                if weights[0, s] > 0.0:
                    away = _mean(s, room, dim[c]) - middle
                    between += weights[0, s] * away * away
                    within += weights[0, s] * (own + _variance(s, room, dim[c]))
            if between + within > 0.0:
                found[real_ptr[c] + i] = between / (between + within)


@njit(cache=True, nogil=True)
def mixtures(
    sites, slots, room, slot_ptr, num_discrete, num_joint, base, theta, copies, place, dim, dim_ptr,
    matrix_ptr, given_ptr, given_logs, given_means, given_spreads, mean, covariance, precision,
    linear, cavity, real_ptr, step, pair_ptr, pair, basis_ptr, basis, whole_mean,
    whole_covariance, candidate, log_norm, start, weight, middle, variance,
):  # fmt: skip
    """Components, from start[k] on, of the reals in slots[k] of sites[k]."""
    for k in range(len(sites)):
        c, i = sites[k], slots[k]
        status = tilted_states(
            c, room, slot_ptr, num_discrete, num_joint, base, theta, copies, place, dim, dim_ptr,
            matrix_ptr, given_ptr, given_logs, given_means, given_spreads, mean, covariance,
            precision, linear, cavity,
        )  # fmt: skip
        if status == FINE:
            status = tell(
                c, room, slot_ptr, num_discrete, num_joint, place, cavity, candidate, log_norm
            )
        center = whole_mean[step[real_ptr[c] + i]]
        whole = whole_covariance[step[real_ptr[c] + i]]
        own = _along(
            c, i, room, dim[c], matrix_ptr[c], covariance, real_ptr, pair_ptr, pair, basis_ptr,
            basis, whole_covariance,
        )  # fmt: skip
        for s in range(num_joint[c]):
            at = start[k] + s
            weight[at], middle[at], variance[at] = 0.0, center, whole
            if status == FINE and room[2][0, s] > 0.0:
                weight[at] = room[2][0, s]
                middle[at] += _mean(s, room, dim[c])
                variance[at] = own + _variance(s, room, dim[c])
        if status != FINE:
            weight[start[k]] = 1.0


@njit(cache=True, nogil=True)
def _along(
    c, i, room, r, matrix, covariance, real_ptr, pair_ptr, pair, basis_ptr, basis, whole_covariance
):  # fmt: skip
    """The variance of a real given the coordinates of its site; vectors[0] is how its mean follows
    them."""
    matrices, vectors = room[0], room[1]
    follows, n = vectors[0], real_ptr[c + 1] - real_ptr[c]
    if basis_ptr[c + 1] == basis_ptr[c]:
        for a in range(r):
            follows[a] = 1.0 if a == i else 0.0
        return 0.0
    lower = matrices[0]
    for a in range(r):
        for b in range(r):
            lower[a, b] = covariance[matrix + a * r + b]
    cholesky(lower, r)
    inverse(lower, r, matrices[1], vectors[2])
    left = whole_covariance[pair[pair_ptr[c] + i * n + i]]
    for a in range(r):
        vectors[1][a] = 0.0
        for j in range(n):
            known = whole_covariance[pair[pair_ptr[c] + i * n + j]]
            vectors[1][a] += known * basis[basis_ptr[c] + j * r + a]
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
