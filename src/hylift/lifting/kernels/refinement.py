"""Refinement of classes of variables and factors, exact whatever the hashes.

When a class is divided, its largest part keeps the number. The relation of other classes to that
part follows from their relation to the other parts, so only these are visited: each time an item is
visited, its class has halved.
"""

import numpy as np
from numba import njit

from hylift.numerics.kernels.grouping import EMPTY, ONE, mix


@njit(cache=True)
def count_news(moved, by_kind, of_whole, fresh, slots, first, group, color, size, news):
    """Write what made each factor move, and return how many messages these factors send.

    news: (factor,), the number of reasons: `fresh` variables, 1 if it moved because of its kind
    (by_kind), and 1 if no factor of its class has stayed (of_whole). A factor that has moved
    because of one fresh variable only has no news for that variable, if others have stayed: then
    all factors of the variable's class in that class have moved.
    """
    count = 0
    for place in range(len(moved)):
        factor = moved[place]
        reasons = by_kind + of_whole[group[factor]]
        for edge in range(first[factor], first[factor + 1]):
            reasons += fresh[slots[edge]]
        news[place] = reasons
        for edge in range(first[factor], first[factor + 1]):
            variable = slots[edge]
            count += reasons > fresh[variable] and size[color[variable]] > 1
    return count


@njit(cache=True)
def sign_variables(
    moved, begin, news, fresh, slots, first, orbit, weight, color, size, amount, sign, heard,
    touched, table, known,
):  # fmt: skip
    """Write a number for each variable in the slots of factors that have moved, equal for those of
    one class with the same total weight in each new class of factors and orbit; return how many
    variables there are, and a bound on the numbers.

    moved, begin: factors, and where those of each class begin. sign: (variable,), the numbers, -1
    before. touched: the variables. amount: (variable,), zeros before and after; heard: room.
    """
    num_touched, count = 0, 0
    for number in range(len(begin) - 1):
        one = first[moved[begin[number]]]
        arity = first[moved[begin[number]] + 1] - one  # of all factors of the class, as orbits are
        for lead in range(arity):
            if orbit[one + lead] != lead:
                continue
            num_heard = 0
            for slot in range(lead, arity):
                if orbit[one + slot] != lead:
                    continue
                for place in range(begin[number], begin[number + 1]):
                    variable = slots[first[moved[place]] + slot]
                    if news[place] > fresh[variable] and size[color[variable]] > 1:
                        if amount[variable] == 0:
                            heard[num_heard] = variable
                            num_heard += 1
                        amount[variable] += weight[moved[place]] if len(weight) else 1
            for place in range(num_heard):
                variable = heard[place]
                before = np.int64(sign[variable])
                if before < 0:
                    touched[num_touched] = variable
                    num_touched += 1
                    before = -1 - np.int64(color[variable])
                link = np.int64(number * 65536 + lead)
                sign[variable] = number_link(before, link, amount[variable], count, table, known)
                count = max(count, sign[variable] + 1)
                amount[variable] = 0
    return num_touched, count


@njit(cache=True)
def sign_factors(touched, fresh, slots, first, orbit, color, group, links, sign, table, known):
    """Write a number for each factor, equal for those of one class that have variables of the same
    new classes in their orbits; return a bound on the numbers.

    fresh: (variable,): those that have moved. links: room for those of a factor.
    """
    count = 0
    for place in range(len(touched)):
        factor, size = touched[place], 0
        for edge in range(first[factor], first[factor + 1]):
            if fresh[slots[edge]]:
                link = np.int64(color[slots[edge]]) * 65536 + orbit[edge]
                at = size
                while at > 0 and links[at - 1] > link:
                    links[at] = links[at - 1]
                    at -= 1
                links[at] = link
                size += 1
        chain = -1 - np.int64(group[factor])
        for at in range(size):
            chain = number_link(chain, links[at], np.int64(1), count, table, known)
            count = max(count, chain + 1)
        sign[place] = chain
    return count


@njit(cache=True)
def number_link(chain, link, amount, count, table, known):
    """The number of a chain, an earlier one and a link, this many times; `count` where it is new.

    table: of numbers by hash, with open addressing. known: (number, 3).
    """
    last = np.uint64(len(table) - 1)
    spot = mix(mix(np.uint64(chain) + mix(np.uint64(link))) + np.uint64(amount)) & last
    found = table[spot]
    while found != EMPTY:
        if known[found, 0] == chain and known[found, 1] == link and known[found, 2] == amount:
            return np.int64(found)
        spot = (spot + ONE) & last
        found = table[spot]
    table[spot] = count
    known[count, 0], known[count, 1], known[count, 2] = chain, link, amount
    return np.int64(count)


@njit(cache=True)
def touched_factors(moved, start, factors, group, size, seen, touched):
    """Write the factors of these variables, unless alone in their class; return their number.

    start, factors: the factors of each variable. seen: (factor,), all False before and after.
    """
    count = 0
    for place in range(len(moved)):
        for link in range(start[moved[place]], start[moved[place] + 1]):
            factor = factors[link]
            if not seen[factor] and size[group[factor]] > 1:
                seen[factor] = True
                touched[count] = factor
                count += 1
    if count * 16 > len(seen):
        # In increasing order, for the cache.
        count = 0
        for factor in range(len(seen)):
            if seen[factor]:
                touched[count] = factor
                count += 1
    for place in range(count):
        seen[touched[place]] = False
    return count


@njit(cache=True)
def divide(some, part, number, size, of_whole, touched_of, largest_of, count, part_size, part_class,
           new, moved):  # fmt: skip
    """Divide classes into parts, in place; return the number of members with new numbers, which are
    written to `moved`, and the number of classes.

    some: members; part: (member,), equal for those of a class that stay together. The other members
    of a class stay together, too, and keep its number; where there are none, the largest part does.
    number: (item,). size: (class,), kept up to date. of_whole: (class,), set to whether `some` had
    all members of the class that a new one is part of. touched_of, largest_of: (class,), zeros
    before and after. part_size: (part,), zeros; part_class, new: (part,), room.
    """
    for place in range(len(some)):
        part_size[part[place]] += 1
        part_class[part[place]] = number[some[place]]
    for one in range(len(part_size)):
        if part_size[one]:
            old = part_class[one]
            touched_of[old] += part_size[one]
            best = largest_of[old] - 1
            if best < 0 or part_size[one] > part_size[best]:
                largest_of[old] = one + 1
    for one in range(len(part_size)):
        if part_size[one]:
            old = part_class[one]
            new[one] = old
            if touched_of[old] < size[old] or largest_of[old] != one + 1:
                new[one] = count
                of_whole[count] = touched_of[old] == size[old]
                count += 1
    for one in range(len(part_size)):
        if part_size[one]:
            old = part_class[one]
            touched_of[old] = 0
            largest_of[old] = 0
            if new[one] != old:
                size[new[one]] = part_size[one]
                size[old] -= part_size[one]
    num_moved = 0
    for place in range(len(some)):
        if number[some[place]] != new[part[place]]:
            number[some[place]] = new[part[place]]
            moved[num_moved] = some[place]
            num_moved += 1
    return num_moved, count
