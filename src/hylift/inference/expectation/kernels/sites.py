"""Tilted distributions of sites whose potentials are quadratic in each joint state.

A site has coordinates, which are its reals or linear combinations of them. All quantities are
relative to the mean of the coordinates, so that nothing large cancels.
"""

import math

import numpy as np
from numba import njit

from hylift.inference.expectation.kernels.dense import cholesky, inverse

FINE, IMPOSSIBLE, IMPROPER = 0, 1, 2
"""Of a site: it was updated; no joint state is possible; its tilted distribution is improper."""


@njit(cache=True, nogil=True)
def tilt(
    begin, end, some, room, slot_ptr, num_discrete, num_joint, base, theta, copies, place, dim,
    dim_ptr, matrix_ptr, given_ptr, given_logs, given_means, given_spreads, mean, covariance,
    precision, linear, cavity, message, precision_step, linear_step, candidate, log_norm,
    change, status,
):  # fmt: skip
    """New messages and steps of natural parameters of some sites, without damping."""
    matrices, vectors, weights, means, spreads = room[:5]
    for k in range(begin, end):
        c = some[k]
        r, at, matrix = dim[c], dim_ptr[c], matrix_ptr[c]
        status[c] = tilted_states(
            c, room, slot_ptr, num_discrete, num_joint, base, theta, copies, place, dim, dim_ptr,
            matrix_ptr, given_ptr, given_logs, given_means, given_spreads, mean, covariance,
            precision, linear, cavity,
        )  # fmt: skip
        if status[c] == FINE:
            status[c] = tell(
                c, room, slot_ptr, num_discrete, num_joint, place, cavity, candidate, log_norm
            )
        if status[c] != FINE:
            change[c] = 1.0
            continue
        change[c] = compared(c, slot_ptr, num_discrete, place, message, candidate, cavity)
        if r:
            moments(num_joint[c], r, weights, means, spreads, vectors[0], matrices[1])
            moved = adopted(
                r, at, matrix, vectors, matrices, mean, covariance, precision_step, linear_step
            )
            if np.isnan(moved):
                status[c], change[c] = IMPROPER, 1.0
            else:
                change[c] = max(change[c], moved)


@njit(cache=True, nogil=True)
def tilted_states(
    c, room, slot_ptr, num_discrete, num_joint, base, theta, copies, place, dim, dim_ptr,
    matrix_ptr, given_ptr, given_logs, given_means, given_spreads, mean, covariance, precision,
    linear, cavity,
):  # fmt: skip
    """Fills the room with weights, means and covariances of each joint state.

    weights: (3, joint state): log-weight without cavities of states, their finite part, and the
    number of infinite ones. Of sites without closed form they are given. A potential to the power
    1 / copies is in place of one of so many copies of its site.
    """
    matrices, vectors, weights, means, spreads, _, whole = room
    r, at, matrix = dim[c], dim_ptr[c], matrix_ptr[c]
    is_given = given_ptr[0, c + 1] > given_ptr[0, c]
    joint, link, count = num_joint[c], slot_ptr[c], num_discrete[c]
    lower, own, cavity_precision = matrices[0], matrices[1], matrices[2]
    pull, slope = vectors[0], vectors[1]
    half, power = 0.0, 1.0 / copies[c]
    if r and not is_given:
        for i in range(r):
            for j in range(r):
                lower[i, j] = covariance[matrix + i * r + j]
        half = cholesky(lower, r)
        if np.isnan(half):
            return IMPROPER
        inverse(lower, r, own, vectors[2])
        for i in range(r):
            pull[i] = -linear[at + i]
            for j in range(r):
                known = precision[matrix + i * r + j]
                cavity_precision[i, j] = own[i, j] - known
                pull[i] += known * mean[at + j]
    state = whole[0]
    for j in range(count):
        state[j] = 0
    for s in range(joint):
        finite, zeros = 0.0, 0.0
        for j in range(count):
            value = cavity[place[link + j] + state[j]]
            if value == -np.inf:
                zeros += 1.0
            else:
                finite += value
        weights[1, s], weights[2, s] = finite, zeros
        if is_given:
            value = given_logs[given_ptr[0, c] + s]
            for i in range(r):
                means[s, i] = given_means[given_ptr[1, c] + s * r + i]
                for j in range(r):
                    spreads[s, i, j] = given_spreads[given_ptr[2, c] + (s * r + i) * r + j]
        else:
            value = power * theta[base[c] + joint * (r * r + r) + s]
        if r and value > -np.inf and not is_given:
            form, flat = base[c] + s * r * r, base[c] + joint * r * r + s * r
            for i in range(r):
                steep = power * theta[flat + i]
                slope[i] = pull[i] + steep
                curved = 0.0
                for j in range(r):
                    bend = power * theta[form + i * r + j]
                    lower[i, j] = cavity_precision[i, j] - 2.0 * bend
                    curved += bend * mean[at + j]
                slope[i] += 2.0 * curved
                value += mean[at + i] * (steep + curved)
            root = cholesky(lower, r)
            if np.isnan(root):
                if zeros == 0.0:
                    return IMPROPER
                value = -np.inf
            else:
                inverse(lower, r, spreads[s], vectors[2])
                for i in range(r):
                    means[s, i] = 0.0
                    for j in range(r):
                        means[s, i] += spreads[s, i, j] * slope[j]
                    value += 0.5 * means[s, i] * slope[i]
                value -= root + half
        weights[0, s] = value
        _next(state, place, link, count)
    return FINE


@njit(cache=True, nogil=True, _nrt=False, inline="always")
def _next(state, place, link, count):
    """The next joint state, the last slot fastest."""
    j = count - 1
    while j >= 0:
        state[j] += 1
        if state[j] < place[link + j + 1] - place[link + j]:
            break
        state[j] = 0
        j -= 1


@njit(cache=True, nogil=True)
def tell(c, room, slot_ptr, num_discrete, num_joint, place, cavity, candidate, log_norm):
    """Messages to the discrete variables of a site, its log-norm, and normalised weights.

    Each message is a sum without what its own variable says, which may be that a state is
    impossible.
    """
    weights, entries, whole = room[2], room[5], room[6]
    joint, link, count = num_joint[c], slot_ptr[c], num_discrete[c]
    first, state = place[link], whole[0]
    size = place[link + count] - first
    top, total = entries[0], entries[1]
    for e in range(size):
        top[e], total[e] = -np.inf, 0.0
    highest = -np.inf
    for again in range(2):
        for j in range(count):
            state[j] = 0
        for s in range(joint):
            value, zeros = weights[0, s] + weights[1, s], weights[2, s]
            if zeros == 0.0 and not again:
                highest = max(highest, value)
            if value > -np.inf and zeros <= 1.0:
                for j in range(count):
                    e = place[link + j] - first + state[j]
                    own = cavity[first + e]
                    if zeros == 1.0 and own > -np.inf:
                        continue
                    seen = value - own if own > -np.inf else value
                    if again:
                        total[e] += math.exp(seen - top[e])
                    else:
                        top[e] = max(top[e], seen)
            _next(state, place, link, count)
    if highest == -np.inf:
        return IMPOSSIBLE
    norm = 0.0
    for s in range(joint):
        value = weights[0, s] + weights[1, s] if weights[2, s] == 0.0 else -np.inf
        weights[0, s] = math.exp(value - highest)
        norm += weights[0, s]
    for s in range(joint):
        weights[0, s] /= norm
    log_norm[c] = highest + math.log(norm)
    for j in range(count):
        low, high = place[link + j], place[link + j + 1]
        largest = -np.inf
        for e in range(low, high):
            candidate[e] = -np.inf
            if total[e - first] > 0.0:
                candidate[e] = top[e - first] + math.log(total[e - first])
            largest = max(largest, candidate[e])
        for e in range(low, high):
            candidate[e] -= largest
    return FINE


@njit(cache=True, nogil=True)
def compared(c, slot_ptr, num_discrete, place, message, candidate, cavity):
    """The largest change of a probability that new messages of a site make."""
    change = 0.0
    for j in range(slot_ptr[c], slot_ptr[c] + num_discrete[c]):
        before, after, top_before, top_after = 0.0, 0.0, -np.inf, -np.inf
        for e in range(place[j], place[j + 1]):
            top_before = max(top_before, message[e] + cavity[e])
            top_after = max(top_after, candidate[e] + cavity[e])
        if top_before == -np.inf or top_after == -np.inf:
            return 1.0
        for e in range(place[j], place[j + 1]):
            before += math.exp(message[e] + cavity[e] - top_before)
            after += math.exp(candidate[e] + cavity[e] - top_after)
        for e in range(place[j], place[j + 1]):
            old = math.exp(message[e] + cavity[e] - top_before) / before
            new = math.exp(candidate[e] + cavity[e] - top_after) / after
            change = max(change, abs(new - old))
    return change


@njit(cache=True, nogil=True)
def moments(joint, r, weights, means, spreads, mean, spread):
    """Mean and covariance of a mixture."""
    for i in range(r):
        mean[i] = 0.0
        for j in range(r):
            spread[i, j] = 0.0
    for s in range(joint):
        if weights[0, s] > 0.0:
            for i in range(r):
                mean[i] += weights[0, s] * means[s, i]
    for s in range(joint):
        if weights[0, s] > 0.0:
            for i in range(r):
                away = means[s, i] - mean[i]
                for j in range(r):
                    spread[i, j] += weights[0, s] * (
                        spreads[s, i, j] + away * (means[s, j] - mean[j])
                    )


@njit(cache=True, nogil=True)
def adopted(r, at, matrix, vectors, matrices, mean, covariance, precision_step, linear_step):
    """Steps of natural parameters to the moments vectors[0], matrices[1]; the change of moments in
    standard deviations, NaN where the covariance is not definite."""
    moved, spread, lower, new, old = vectors[0], matrices[1], matrices[0], matrices[2], matrices[3]
    change = 0.0
    for i in range(r):
        own = covariance[matrix + i * r + i]
        change = max(change, abs(moved[i]) / math.sqrt(own))
        for j in range(r):
            scale = math.sqrt(own * covariance[matrix + j * r + j])
            change = max(change, abs(spread[i, j] - covariance[matrix + i * r + j]) / scale)
            lower[i, j] = spread[i, j]
    if np.isnan(cholesky(lower, r)):
        return np.nan
    inverse(lower, r, new, vectors[2])
    for i in range(r):
        for j in range(r):
            lower[i, j] = covariance[matrix + i * r + j]
    if np.isnan(cholesky(lower, r)):
        return np.nan
    inverse(lower, r, old, vectors[2])
    for i in range(r):
        pull = 0.0
        for j in range(r):
            step = 0.5 * (new[i, j] - old[i, j] + new[j, i] - old[j, i])
            precision_step[matrix + i * r + j] = step
            pull += new[i, j] * moved[j] + step * mean[at + j]
        linear_step[at + i] = pull
    return change


@njit(cache=True, nogil=True, _nrt=False)
def advance_sites(
    some, share, slot_ptr, num_discrete, place, dim, dim_ptr, matrix_ptr, status, before_precision,
    before_linear, before_message, precision_step, linear_step, candidate, precision, linear,
    message,
):  # fmt: skip
    """Go a share (site,) of the way to the new natural parameters and messages of some sites."""
    for c in some:
        part = share[c] if status[c] == FINE else 0.0
        for i in range(dim_ptr[c], dim_ptr[c] + dim[c]):
            linear[i] = before_linear[i] + part * linear_step[i] if part else before_linear[i]
        for i in range(matrix_ptr[c], matrix_ptr[c] + dim[c] * dim[c]):
            precision[i] = before_precision[i]
            if part:
                precision[i] += part * precision_step[i]
        if not part:
            for e in range(place[slot_ptr[c]], place[slot_ptr[c] + num_discrete[c]]):
                message[e] = before_message[e]
            continue
        for e in range(place[slot_ptr[c]], place[slot_ptr[c] + num_discrete[c]]):
            old, new = before_message[e], candidate[e]
            if old > -np.inf and new > -np.inf:
                new = old + part * (new - old)
            message[e] = new


ALIKE = 1e-11
"""Difference of moments in standard deviations, and of messages, that counts as rounding."""


@njit(cache=True, nogil=True, _nrt=False)
def untie(
    some, is_some, tied, other, slot_ptr, num_discrete, place, dim, dim_ptr, matrix_ptr, mean,
    covariance, cavity,
):  # fmt: skip
    """Set sites apart whose Gaussian or messages differ from those of the site they are tied to.

    other: (site,), the first that differed from it, or -1.
    """
    for c in some:
        if tied[c] != c and not is_some[tied[c]]:
            tied[c] = c
        for _ in range(2):
            first = tied[c]
            if first == c or _alike(
                c, first, slot_ptr, num_discrete, place, dim[c], dim_ptr, matrix_ptr, mean,
                covariance, cavity,
            ):  # fmt: skip
                break
            if other[first] < 0 or not is_some[other[first]]:
                other[first] = c
            tied[c] = other[first]
        else:
            tied[c] = c


@njit(cache=True, nogil=True, _nrt=False)
def _alike(
    c, first, slot_ptr, num_discrete, place, r, dim_ptr, matrix_ptr, mean, covariance, cavity
):  # fmt: skip
    at, matrix, them, theirs = dim_ptr[c], matrix_ptr[c], dim_ptr[first], matrix_ptr[first]
    for i in range(r):
        own = covariance[matrix + i * r + i]
        away = mean[at + i] - mean[them + i]
        if away * away > ALIKE * ALIKE * (own + mean[at + i] * mean[at + i]):
            return False
        for j in range(i + 1):
            scale = math.sqrt(own * covariance[matrix + j * r + j])
            away = covariance[matrix + i * r + j] - covariance[theirs + i * r + j]
            if not abs(away) <= ALIKE * scale:
                return False
    low = place[slot_ptr[c]]
    begin = place[slot_ptr[first]]
    for e in range(place[slot_ptr[c] + num_discrete[c]] - low):
        one, two = cavity[low + e], cavity[begin + e]
        if one != two and not abs(one - two) <= ALIKE * (1.0 + abs(one)):
            return False
    return True


@njit(cache=True, nogil=True, _nrt=False)
def spread(
    some, tied, slot_ptr, num_discrete, place, dim, dim_ptr, matrix_ptr, precision_step,
    linear_step, candidate, log_norm, change, status,
):  # fmt: skip
    """Give sites the new parameters of those that they are tied to."""
    for c in some:
        first = tied[c]
        if first == c:
            continue
        log_norm[c], change[c], status[c] = log_norm[first], change[first], status[first]
        for i in range(dim[c]):
            linear_step[dim_ptr[c] + i] = linear_step[dim_ptr[first] + i]
        for i in range(dim[c] * dim[c]):
            precision_step[matrix_ptr[c] + i] = precision_step[matrix_ptr[first] + i]
        low, begin = place[slot_ptr[c]], place[slot_ptr[first]]
        for e in range(place[slot_ptr[c] + num_discrete[c]] - low):
            candidate[low + e] = candidate[begin + e]
