"""Classes of variables and factors, refined from where they are, without trust in hashes.

Where a class is divided, its largest part keeps the number. What members of another class have to
do with that part follows from what they have to do with the others, so that only these are looked
at: each time something is looked at, its class has halved.
"""

import numpy as np
from numba import njit

from hylift.lifting.kernels.hashing import mix

EMPTY = np.int32(-1)
ONE = np.uint64(1)
MANY = 16
"""Links from which on it pays to sort only those that differ."""


@njit(cache=True)
def divide(some, part, num_parts, number, size, of_whole, touched_of, largest_of, count):
    """Gives new numbers, in place, to parts of classes; returns who has a new one, and how many
    classes there are.

    some: the members in question; part: (member,), equal for those of a class that stay together.
    Members of a class that are not in question stay together, too, and keep its number; where there
    are none, the largest part does. number: (item,). size: (class,), kept up to date. of_whole:
    (class,), set to whether all members were in question of the class that a new one is part of.
    touched_of, largest_of: (class,), zeros to work with.
    """
    part_size = np.zeros(num_parts, dtype=np.int32)
    part_class = np.empty(num_parts, dtype=np.int32)
    for place in range(len(some)):
        part_size[part[place]] += 1
        part_class[part[place]] = number[some[place]]
    for one in range(num_parts):
        if part_size[one]:
            old = part_class[one]
            touched_of[old] += part_size[one]
            best = largest_of[old] - 1
            if best < 0 or part_size[one] > part_size[best]:
                largest_of[old] = one + 1
    new = np.empty(num_parts, dtype=np.int32)
    for one in range(num_parts):
        if part_size[one]:
            old = part_class[one]
            if touched_of[old] == size[old] and largest_of[old] == one + 1:
                new[one] = old
            else:
                new[one] = count
                of_whole[count] = touched_of[old] == size[old]
                count += 1
    for one in range(num_parts):
        if part_size[one]:
            old = part_class[one]
            touched_of[old] = 0
            largest_of[old] = 0
            if new[one] != old:
                size[new[one]] = part_size[one]
                size[old] -= part_size[one]
    moved = np.empty(len(some), dtype=np.int32)
    num_moved = 0
    for place in range(len(some)):
        item = some[place]
        if number[item] != new[part[place]]:
            number[item] = new[part[place]]
            moved[num_moved] = item
            num_moved += 1
    return moved[:num_moved].copy(), count


@njit(cache=True)
def number_chains(items, begin, link, share, number):
    """int32 (item,): equal for those of one number whose links are the same, with the same shares
    in all; a bound on these. Changes the order of links.

    share: (link,), or nothing where all are 1 and no item has many. Links sorted make a chain,
    which is known by the chain before its last link, and that link.
    """
    shared = len(share) > 0
    table, last = empty_table(len(link))
    known = np.empty((len(link), 3), dtype=np.int64)
    part = np.empty(len(items), dtype=np.int32)
    count = 0
    for place in range(len(items)):
        low, high = begin[place], begin[place + 1]
        if high - low > 1:
            if shared:
                high = low + sort_links(link[low:high], share[low:high])
            else:
                sort_few(link[low:high])
        chain = -1 - np.int64(number[items[place]])
        for at in range(low, high):
            amount = share[at] if shared else 1
            mixed = mix(np.uint64(chain) + mix(np.uint64(link[at])))
            spot = mix(mixed + np.uint64(amount)) & last
            found = table[spot]
            while found != EMPTY and not (
                known[found, 0] == chain
                and known[found, 1] == link[at]
                and known[found, 2] == amount
            ):
                spot = (spot + ONE) & last
                found = table[spot]
            if found == EMPTY:
                found = np.int32(count)
                table[spot] = found
                known[found, 0], known[found, 1], known[found, 2] = chain, link[at], amount
                count += 1
            chain = np.int64(found)
        part[place] = chain
    return part, count


@njit(cache=True)
def sort_few(link):
    """Sorts a few links in place."""
    for place in range(1, len(link)):
        this, at = link[place], place
        while at > 0 and link[at - 1] > this:
            link[at] = link[at - 1]
            at -= 1
        link[at] = this


@njit(cache=True)
def sort_links(link, share):
    """Sorts links in place, equal ones made one with the sum of their shares; how many are left."""
    if len(link) > MANY:
        kept = sum_shares(link, share)
        order = np.argsort(link[:kept])
        link[:kept], share[:kept] = link[:kept][order], share[:kept][order]
        return kept
    for place in range(1, len(link)):
        this, its = link[place], share[place]
        at = place
        while at > 0 and link[at - 1] > this:
            link[at], share[at] = link[at - 1], share[at - 1]
            at -= 1
        link[at], share[at] = this, its
    kept = 0
    for place in range(1, len(link)):
        if link[place] == link[kept]:
            share[kept] += share[place]
        else:
            kept += 1
            link[kept], share[kept] = link[place], share[place]
    return kept + 1


@njit(cache=True)
def sum_shares(link, share):
    """Makes equal links one, in place and in any order; how many are left."""
    table, last = empty_table(len(link))
    kept = 0
    for place in range(len(link)):
        this, its = link[place], share[place]
        spot = mix(np.uint64(this)) & last
        found = table[spot]
        while found != EMPTY and link[found] != this:
            spot = (spot + ONE) & last
            found = table[spot]
        if found == EMPTY:
            table[spot] = kept
            link[kept], share[kept] = this, its
            kept += 1
        else:
            share[found] += its
    return kept


@njit(cache=True)
def empty_table(most):
    """Room for so many numbers in a table with open addressing, and the last place of it."""
    size = 2
    while size < 2 * most:
        size *= 2
    return np.full(size, EMPTY, dtype=np.int32), np.uint64(size - 1)


@njit(cache=True)
def renumbered(number, count):
    """Numbers in the order of the first items that have them, and these items."""
    new = np.full(count, -1, dtype=np.int32)
    first = np.empty(count, dtype=np.int64)
    result = np.empty_like(number)
    seen = 0
    for item in range(len(number)):
        old = number[item]
        if new[old] < 0:
            new[old] = seen
            first[seen] = item
            seen += 1
        result[item] = new[old]
    return result, first[:seen].copy()
