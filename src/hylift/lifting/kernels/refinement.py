"""Refinement of classes of variables and factors, exact whatever the hashes.

When a class is divided, its largest part keeps the number. The relation of other classes to that
part follows from their relation to the other parts, so only these are visited: each time an item is
visited, its class has halved.
"""

import numpy as np
from numba import njit

from hylift.numerics.kernels.grouping import EMPTY, ONE, mix

MANY = 16
"""Number of links above which it pays to sort only distinct ones."""


@njit(cache=True)
def sign_variables(
    moved, by_kind, of_whole, fresh, walk, weight, num_orbits, group, color, size, at
):
    """Variables in the slots of factors that have moved; a number for each, equal for those of one
    class with the same total weight in each new class of factors and orbit; a bound on the numbers.

    by_kind: 1 if factors have moved because of their kinds, 0 if because of `fresh` variables. A
    factor that has moved because of one fresh variable only tells that variable nothing new, if
    other factors of its class have stayed: then all factors of the variable's class in that class
    have moved. of_whole: (class of factors,): where none have stayed. walk: slots, first, orbit.
    at: (variable,), zeros to work with.
    """
    slots, first, orbit = walk
    room = num_edges(moved, first)
    listener = np.empty(room, dtype=np.int32)
    said = np.empty(room, dtype=np.int64)
    amount = np.ones(room if len(weight) else 0, dtype=np.int64)
    touched = np.empty(room, dtype=np.int32)
    count, num_touched = 0, 0
    for place in range(len(moved)):
        factor = moved[place]
        news = by_kind + of_whole[group[factor]]
        for edge in range(first[factor], first[factor + 1]):
            news += fresh[slots[edge]]
        for edge in range(first[factor], first[factor + 1]):
            variable = slots[edge]
            if news > fresh[variable] and size[color[variable]] > 1:
                if at[variable] == 0:
                    touched[num_touched] = variable
                    num_touched += 1
                at[variable] += 1
                listener[count] = variable
                said[count] = np.int64(group[factor]) * num_orbits + orbit[edge]
                if len(weight):
                    amount[count] = weight[factor]
                count += 1
    touched = touched[:num_touched].copy()
    begin, link, share = by_listener(touched, listener[:count], said, amount, at)
    part, num_parts = number_chains(touched, begin, link, share, color)
    return touched, part, num_parts


@njit(cache=True)
def num_edges(moved, first):
    """Number of slots of these factors."""
    count = 0
    for place in range(len(moved)):
        count += first[moved[place] + 1] - first[moved[place]]
    return count


@njit(cache=True)
def by_listener(touched, listener, said, amount, at):
    """Messages sorted by variable: where those of each begin, the messages, and their weights.

    amount: (message,), or empty where all are 1. at: (variable,), number of messages of each; zeros
    afterwards.
    """
    begin = np.zeros(len(touched) + 1, dtype=np.int64)
    for place in range(len(touched)):
        begin[place + 1] = begin[place] + at[touched[place]]
        at[touched[place]] = begin[place]
    link = np.empty(len(listener), dtype=np.int64)
    share = np.ones(len(listener), dtype=np.int64)
    for place in range(len(listener)):
        spot = at[listener[place]]
        at[listener[place]] = spot + 1
        link[spot] = said[place]
        if len(amount):
            share[spot] = amount[place]
    for place in range(len(touched)):
        at[touched[place]] = 0
    return begin, link, share


@njit(cache=True)
def sign_factors(fresh, touched, walk, num_orbits, color, group):
    """int32 (factor,): a number for each, equal for those of one class that have variables of the
    same new classes in their orbits; a bound on the numbers.

    fresh: (variable,): those that have moved. touched: the factors they stand in. walk: slots,
    first, orbit.
    """
    slots, first, orbit = walk
    begin = np.zeros(len(touched) + 1, dtype=np.int64)
    link = np.empty(num_edges(touched, first), dtype=np.int64)
    at = 0
    for place in range(len(touched)):
        for edge in range(first[touched[place]], first[touched[place] + 1]):
            if fresh[slots[edge]]:
                link[at] = np.int64(color[slots[edge]]) * num_orbits + orbit[edge]
                at += 1
        begin[place + 1] = at
    return number_chains(touched, begin, link[:at], np.ones(0, dtype=np.int64), group)


@njit(cache=True)
def touched_factors(moved, start, factors, group, size, seen):
    """The factors of these variables, unless alone in their class.

    start, factors: the factors of each variable. seen: (factor,), all False, to work with.
    """
    count = 0
    for place in range(len(moved)):
        for link in range(start[moved[place]], start[moved[place] + 1]):
            factor = factors[link]
            if not seen[factor] and size[group[factor]] > 1:
                seen[factor] = True
                count += 1
    touched = np.empty(count, dtype=np.int32)
    at = 0
    if count * 16 > len(seen):
        for factor in range(len(seen)):
            if seen[factor]:
                seen[factor] = False
                touched[at] = factor
                at += 1
        return touched
    for place in range(len(moved)):
        for link in range(start[moved[place]], start[moved[place] + 1]):
            factor = factors[link]
            if seen[factor]:
                seen[factor] = False
                touched[at] = factor
                at += 1
    return touched


@njit(cache=True)
def divide(some, part, num_parts, number, size, of_whole, touched_of, largest_of, count):
    """Divides classes into parts, in place; returns the members with new numbers, and the number of
    classes.

    some: members; part: (member,), equal for those of a class that stay together. The other members
    of a class stay together, too, and keep its number; where there are none, the largest part does.
    number: (item,). size: (class,), kept up to date. of_whole: (class,), set to whether `some` had
    all members of the class that a new one is part of. touched_of, largest_of: (class,), zeros to
    work with.
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
    """int32 (item,): equal for items of one number with the same links and total shares; a bound on
    these. Changes the order of links.

    share: (link,), or empty where all are 1 and no item has many. Sorted links make a chain, which
    is identified by its last link and the chain before it.
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
    """Sorts links in place and joins equal ones, summing their shares; returns their number."""
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
    """Joins equal links in place, in any order, summing their shares; returns their number."""
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
    """An empty table with open addressing for so many numbers, and its last place."""
    size = 2
    while size < 2 * most:
        size *= 2
    return np.full(size, EMPTY, dtype=np.int32), np.uint64(size - 1)
