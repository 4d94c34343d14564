"""Tilted distributions of sites whose potentials are quadratic in each joint state.

A site has coordinates, which are its reals or linear combinations of them. All quantities are
relative to the mean of the coordinates, so that nothing large cancels.
"""

import math
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from hylift.inference.expectation.kernels.dense import cholesky, inverse

FINE, IMPOSSIBLE, IMPROPER = 0, 1, 2
"""Of a site: it was updated; no joint state is possible; its tilted distribution is improper."""


SITE = np.dtype(
    [
        ("slots", np.int64),  # first of its slots, the discrete ones
        ("num_discrete", np.int64),
        ("num_joint", np.int64),  # joint states
        ("base", np.int64),  # of its parameters in `theta`
        ("dim", np.int64),  # coordinates
        ("at", np.int64),  # the first of these
        ("matrix", np.int64),  # first entry of its matrix of coordinates
        ("reals", np.int64),  # first of its slots for reals
        ("num_reals", np.int64),
        ("pairs", np.int64),  # first of its pairs of reals
        ("basis", np.int64),  # first entry of its basis
        ("is_whole", np.bool_),  # its coordinates are its reals
        ("is_given", np.bool_),  # it has no closed form
        ("given", np.int64, 3),  # first of its log-weights, means and covariances of states
    ]
)


class SiteLayout(NamedTuple):
    """Sites as kernels see them; few arrays, as each is compiled into each call."""

    site: NDArray  # (site,): `SITE`
    theta: NDArray  # parameters of all
    place: NDArray  # (slot + 1,): first of its entries of messages
    step: NDArray  # (real slot,): its step in the joint Gaussian
    pair: NDArray  # (real slot, real slot) of each site: an entry of the joint Gaussian
    basis: NDArray  # (real slot, coordinate) of each site


class Parameters(NamedTuple):
    """Natural parameters and messages of sites, and how many copies of its factor each has."""

    precision: NDArray  # (site's matrix entry,)
    linear: NDArray  # (site's coordinate,)
    message: NDArray  # (entry,)
    copies: NDArray  # (site,)


class Tilted(NamedTuple):
    """Of each site: moments of its coordinates, and the way to those of its tilted distribution."""

    mean: NDArray  # (site's coordinate,)
    covariance: NDArray  # (site's matrix entry,)
    cavity: NDArray  # (entry,)
    precision_step: NDArray
    linear_step: NDArray
    candidate: NDArray  # (entry,): messages
    log_norm: NDArray  # (site,)
    change: NDArray  # (site,)
    status: NDArray  # (site,)
    given: tuple[NDArray, NDArray, NDArray]
    """Log-weights, means and covariances of states, of sites without closed form."""


@njit(cache=True, nogil=True, _nrt=False)
def tilt(begin, end, some, room, sites, now, found):
    """New messages and steps of natural parameters of some sites, without damping."""
    matrices, vectors, weights, means, spreads = room[:5]
    for k in range(begin, end):
        c = some[k]
        r = sites.site[c].dim
        found.status[c] = tilted(c, room, sites, now, found)
        if found.status[c] != FINE:
            found.change[c] = 1.0
            continue
        found.change[c] = compared(c, sites, now.message, found)
        if r:
            moments(sites.site[c].num_joint, r, weights, means, spreads, vectors[0], matrices[1])
            moved = adopted(c, sites, vectors, matrices, found)
            if np.isnan(moved):
                found.status[c], found.change[c] = IMPROPER, 1.0
            else:
                found.change[c] = max(found.change[c], moved)


@njit(cache=True, nogil=True, _nrt=False)
def tilted(c, room, sites, now, found):
    """Fills the room with the tilted distribution of a site: normalised weights, means and
    covariances of its joint states; and fills in its messages and its log-norm."""
    status = _tilted_states(c, room, sites, now, found)
    return tell(c, room, sites, found) if status == FINE else status


@njit(cache=True, nogil=True, _nrt=False)
def _tilted_states(c, room, sites, now, found):
    """Fills the room with weights, means and covariances of each joint state.

    weights: (3, joint state): log-weight without cavities of states, their finite part, and the
    number of infinite ones. Of sites without closed form they are given. A potential to the power
    1 / copies is in place of one of so many copies of its site.
    """
    matrices, vectors, weights, means, spreads, _, whole = room
    site, theta, place = sites.site[c], sites.theta, sites.place
    mean, covariance, cavity = found.mean, found.covariance, found.cavity
    r, at, matrix, is_given, given = site.dim, site.at, site.matrix, site.is_given, site.given
    joint, link, count = site.num_joint, site.slots, site.num_discrete
    lower, own, cavity_precision = matrices[0], matrices[1], matrices[2]
    pull, slope = vectors[0], vectors[1]
    half, power = 0.0, 1.0 / now.copies[c]
    if r and not is_given:
        for i in range(r):
            for j in range(r):
                lower[i, j] = covariance[matrix + i * r + j]
        half = cholesky(lower, r)
        if np.isnan(half):
            return IMPROPER
        inverse(lower, r, own, vectors[2])
        for i in range(r):
            pull[i] = -now.linear[at + i]
            for j in range(r):
                known = now.precision[matrix + i * r + j]
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
            value = found.given[0][given[0] + s]
            for i in range(r):
                means[s, i] = found.given[1][given[1] + s * r + i]
                for j in range(r):
                    spreads[s, i, j] = found.given[2][given[2] + (s * r + i) * r + j]
        else:
            value = power * theta[site.base + joint * (r * r + r) + s]
        if r and value > -np.inf and not is_given:
            form, flat = site.base + s * r * r, site.base + joint * r * r + s * r
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
        next_state(state, place, link, count)
    return FINE


@njit(cache=True, nogil=True, _nrt=False, inline="always")
def next_state(state, place, link, count):
    """The next joint state, the last slot fastest."""
    j = count - 1
    while j >= 0:
        state[j] += 1
        if state[j] < place[link + j + 1] - place[link + j]:
            break
        state[j] = 0
        j -= 1


@njit(cache=True, nogil=True, _nrt=False)
def tell(c, room, sites, found):
    """Messages to the discrete variables of a site, its log-norm, and normalised weights.

    Each message is a sum without what its own variable says, which may be that a state is
    impossible.
    """
    weights, entries, whole = room[2], room[5], room[6]
    site, place, cavity, candidate = sites.site[c], sites.place, found.cavity, found.candidate
    joint, link, count = site.num_joint, site.slots, site.num_discrete
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
            next_state(state, place, link, count)
    if highest == -np.inf:
        return IMPOSSIBLE
    norm = 0.0
    for s in range(joint):
        value = weights[0, s] + weights[1, s] if weights[2, s] == 0.0 else -np.inf
        weights[0, s] = math.exp(value - highest)
        norm += weights[0, s]
    for s in range(joint):
        weights[0, s] /= norm
    found.log_norm[c] = highest + math.log(norm)
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


@njit(cache=True, nogil=True, _nrt=False)
def compared(c, sites, message, found):
    """The largest change of a probability that new messages of a site make."""
    place, candidate, cavity, change = sites.place, found.candidate, found.cavity, 0.0
    for j in range(sites.site[c].slots, sites.site[c].slots + sites.site[c].num_discrete):
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


@njit(cache=True, nogil=True, _nrt=False)
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


@njit(cache=True, nogil=True, _nrt=False)
def adopted(c, sites, vectors, matrices, found):
    """Steps of natural parameters to the moments vectors[0], matrices[1]; the change of moments in
    standard deviations, NaN where the covariance is not definite."""
    r, at, matrix = sites.site[c].dim, sites.site[c].at, sites.site[c].matrix
    covariance = found.covariance
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
            found.precision_step[matrix + i * r + j] = step
            pull += new[i, j] * moved[j] + step * found.mean[at + j]
        found.linear_step[at + i] = pull
    return change


@njit(cache=True, nogil=True, _nrt=False)
def advance_sites(some, share, sites, found, before, now):
    """Go a share (site,) of the way to the new natural parameters and messages of some sites."""
    for c in some:
        site, part = sites.site[c], share[c] if found.status[c] == FINE else 0.0
        for i in range(site.at, site.at + site.dim):
            now.linear[i] = before.linear[i]
            if part:
                now.linear[i] += part * found.linear_step[i]
        for i in range(site.matrix, site.matrix + site.dim * site.dim):
            now.precision[i] = before.precision[i]
            if part:
                now.precision[i] += part * found.precision_step[i]
        for e in range(sites.place[site.slots], sites.place[site.slots + site.num_discrete]):
            old, new = before.message[e], found.candidate[e]
            if not part:
                new = old
            elif old > -np.inf and new > -np.inf:
                new = old + part * (new - old)
            now.message[e] = new


ALIKE = 1e-11
"""Difference of moments in standard deviations, and of messages, that counts as rounding."""


@njit(cache=True, nogil=True, _nrt=False)
def untie(some, is_some, tied, other, sites, found):
    """Set sites apart whose Gaussian or messages differ from those of the site they are tied to.

    other: (site,), the first that differed from it, or -1.
    """
    for c in some:
        if tied[c] != c and not is_some[tied[c]]:
            tied[c] = c
        for _ in range(2):
            first = tied[c]
            if first == c or _alike(sites.site[c], sites.site[first], sites.place, found):
                break
            if other[first] < 0 or not is_some[other[first]]:
                other[first] = c
            tied[c] = other[first]
        else:
            tied[c] = c


@njit(cache=True, nogil=True, _nrt=False)
def _alike(one, other, place, found):
    mean, covariance, cavity, r = found.mean, found.covariance, found.cavity, one.dim
    at, matrix, them, theirs = one.at, one.matrix, other.at, other.matrix
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
    low, begin = place[one.slots], place[other.slots]
    for e in range(place[one.slots + one.num_discrete] - low):
        here, there = cavity[low + e], cavity[begin + e]
        if here != there and not abs(here - there) <= ALIKE * (1.0 + abs(here)):
            return False
    return True


@njit(cache=True, nogil=True, _nrt=False)
def spread(some, tied, sites, found):
    """Give sites the new parameters of those that they are tied to."""
    for c in some:
        first = tied[c]
        if first == c:
            continue
        own, other, place = sites.site[c], sites.site[first], sites.place
        found.log_norm[c], found.change[c] = found.log_norm[first], found.change[first]
        found.status[c] = found.status[first]
        for i in range(own.dim):
            found.linear_step[own.at + i] = found.linear_step[other.at + i]
        for i in range(own.dim * own.dim):
            found.precision_step[own.matrix + i] = found.precision_step[other.matrix + i]
        low, begin = place[own.slots], place[other.slots]
        for e in range(place[own.slots + own.num_discrete] - low):
            found.candidate[low + e] = found.candidate[begin + e]
