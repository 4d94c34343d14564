"""Coarse-to-fine lifting: intervals of sorted values, kinds of factors by clusters, and sums."""

import math

import numpy as np
from numba import njit


@njit(cache=True)
def moments(value, weight, distinct, begin, end):
    """Per interval [begin, end) of the sorted values: mean, variance, number of distinct values.

    Values are taken relative to the first and in units of about the range, so that neither a large
    offset nor a large range costs digits.
    """
    count = len(begin)
    mean, variance = np.empty(count), np.empty(count)
    num_distinct = np.empty(count, dtype=np.int64)
    for number in range(count):
        low, high = begin[number], end[number]
        lowest, unit = value[low], half_unit(value[low], value[high - 1])
        num_distinct[number] = distinct[high - 1] - distinct[low] + 1
        total, centre = weight_and_centre(value, weight, low, high, lowest, unit)
        first, second = 0.0, 0.0
        for place in range(low, high):
            away = relative(value[place], lowest, unit) - centre
            first += weight[place] * away
            second += weight[place] * away * away
        spread = max(second - first * first / total, 0.0) / total
        mean[number] = lowest + centre * unit + centre * unit
        variance[number] = 4 * (spread * unit * unit)
    return mean, variance, num_distinct


@njit(cache=True)
def best_cuts(value, weight, distinct, begin, end):
    """int64 (interval,): where to cut [begin, end) so that the weighted squared distances to the
    means of both sides are least; -1 where all values are equal.

    distinct: (value,), increasing: values with one number are not separated.
    """
    cuts = np.empty(len(begin), dtype=np.int64)
    for number in range(len(begin)):
        low, high = begin[number], end[number]
        lowest, unit = value[low], half_unit(value[low], value[high - 1])
        total, centre = weight_and_centre(value, weight, low, high, lowest, unit)
        first = 0.0
        for place in range(low, high):
            first += weight[place] * (relative(value[place], lowest, unit) - centre)
        left, left_first = 0.0, 0.0
        best, cut = -1.0, -1
        for place in range(low, high):
            if place > low and distinct[place] != distinct[place - 1]:
                # Squared distances fall by W₁W₂/W (m₁ - m₂)² = (S₁ - S W₁/W)² W / (W₁W₂).
                apart = left_first - first * left / total
                right = max(total - left, weight[high - 1])  # the difference may round to 0
                fall = apart * apart / left / right
                if fall > best:
                    best, cut = fall, place
            left += weight[place]
            left_first += weight[place] * (relative(value[place], lowest, unit) - centre)
        cuts[number] = cut
    return cuts


@njit(cache=True)
def weight_and_centre(value, weight, low, high, lowest, unit):
    """The weight of an interval, and its mean relative to the lowest value."""
    total, first = 0.0, 0.0
    for place in range(low, high):
        total += weight[place]
        first += weight[place] * relative(value[place], lowest, unit)
    return total, first / total


@njit(cache=True)
def half_unit(lowest, highest):
    """A power of two that is at most half the range; halves, so that no range is too large."""
    return math.ldexp(1.0, math.frexp(highest / 2 - lowest / 2)[1] - 1)


@njit(cache=True, inline="always")
def relative(value, lowest, unit):
    """How far from the lowest value, in units."""
    return (value / 2 - lowest / 2) / unit


@njit(cache=True)
def split_kinds(kind, num_kinds, first, observation, cluster, num_old, place):
    """Divides kinds, in place, by whether the observation at one place moved to a new cluster;
    returns the number of kinds.

    first, observation: what each factor has observed. num_old: clusters from this number on are
    new. Factors of a kind had the same clusters, and a cluster is divided in two at most; so those
    that stay keep their kind and the others get one new kind.
    """
    child = np.full(num_kinds, -1, dtype=np.int32)
    stays = np.zeros(num_kinds, dtype=np.bool_)
    count = num_kinds
    for factor in range(len(kind)):
        at = first[factor] + place
        old = kind[factor]
        if at < first[factor + 1] and cluster[observation[at]] >= num_old:
            if child[old] < 0:
                child[old] = count
                count += 1
            kind[factor] = child[old]
        else:
            stays[old] = True
    # A kind that moved as a whole takes its number back, and later ones close up.
    number = np.arange(count).astype(np.int32)
    shift = 0
    origin = np.empty(count - num_kinds, dtype=np.int32)
    for old in range(num_kinds):
        if child[old] >= 0:
            origin[child[old] - num_kinds] = old
    for new in range(num_kinds, count):
        old = origin[new - num_kinds]
        if stays[old]:
            number[new] = new - shift
        else:
            number[new] = old
            shift += 1
    if shift:
        for factor in range(len(kind)):
            kind[factor] = number[kind[factor]]
    return count - shift


@njit(cache=True)
def differing(exact, num_exact, base, first, observation, distinct):
    """bool (factor,): whether it has observed something else than the first factor of its exact
    kind; and that factor, per exact kind.

    base: (factor,), what else is to be equal. distinct: (observation,), equal for equal values.
    """
    leader = np.full(num_exact, -1, dtype=np.int64)
    differs = np.zeros(len(exact), dtype=np.bool_)
    for factor in range(len(exact)):
        other = leader[exact[factor]]
        if other < 0:
            leader[exact[factor]] = factor
            continue
        if base[factor] != base[other]:
            differs[factor] = True
            continue
        offset = first[other] - first[factor]
        for at in range(first[factor], first[factor + 1]):
            if distinct[observation[at]] != distinct[observation[at + offset]]:
                differs[factor] = True
                break
    return differs, leader


@njit(cache=True)
def joined(kind, num_kinds, left, right):
    """int32 (factor,): kinds where those of the factors left[i] and right[i] are one; how many."""
    root = np.arange(num_kinds).astype(np.int32)
    for link in range(len(left)):
        a, b = find(root, kind[left[link]]), find(root, kind[right[link]])
        if a != b:
            root[max(a, b)] = min(a, b)
    number = np.empty(num_kinds, dtype=np.int32)
    count = 0
    for one in range(num_kinds):
        if root[one] == one:
            number[one] = count
            count += 1
        else:
            number[one] = number[find(root, one)]
    result = np.empty_like(kind)
    for factor in range(len(kind)):
        result[factor] = number[kind[factor]]
    return result, count


@njit(cache=True)
def find(root, one):
    """The smallest of those that are joined with this one."""
    while root[one] != one:
        root[one] = root[root[one]]
        one = root[one]
    return one


@njit(cache=True)
def mixed_kinds(kind, num_kinds, wanted, factor_class, first_factor):
    """bool (kind,): whether it has a class with factors of different wanted kinds."""
    mixed = np.zeros(num_kinds, dtype=np.bool_)
    for factor in range(len(kind)):
        if wanted[factor] != wanted[first_factor[factor_class[factor]]]:
            mixed[kind[factor]] = True
    return mixed


@njit(cache=True)
def divides(kind, factor_class, first_factor):
    """Whether some class has factors of different kinds."""
    for factor in range(len(kind)):
        if kind[factor] != kind[first_factor[factor_class[factor]]]:
            return True
    return False


@njit(cache=True)
def touched_clusters(kind, flag, first, observation, cluster, num_clusters):
    """bool (cluster,): whether a factor of a flagged kind has observed something in it."""
    touched = np.zeros(num_clusters, dtype=np.bool_)
    for factor in range(len(kind)):
        if flag[kind[factor]]:
            for at in range(first[factor], first[factor + 1]):
                touched[cluster[observation[at]]] = True
    return touched


@njit(cache=True)
def add_rows(total, begin, width, weight, rows):
    """Adds weight[i] * rows[i] to the stretch of `total` at begin[i], as far as its width reaches.

    rows: (item, entry). begin: (item,), negative for items that are left out.
    """
    for item in range(len(begin)):
        if begin[item] >= 0:
            for entry in range(min(width[item], rows.shape[1])):
                total[begin[item] + entry] += weight[item] * rows[item, entry]


@njit(cache=True)
def squared_norms(total, begin, scale, target, num_targets):
    """float64 (target,): sums of the squared norms of stretches, each times its scale.

    begin: (stretch + 1,). scale, target: (stretch,).
    """
    found = np.zeros(num_targets)
    for stretch in range(len(target)):
        norm = 0.0
        for place in range(begin[stretch], begin[stretch + 1]):
            norm += total[place] * total[place]
        found[target[stretch]] += scale[stretch] * norm
    return found
