"""Refinement of classes of variables and factors, exact whatever the hashes.

When a class is divided, its largest part keeps the number. The relation of other classes to that
part follows from their relation to the other parts, so only these are visited: each time an item is
visited, its class has halved.
"""

import numpy as np
from numba import njit

from hylift.numerics.kernels.grouping import EMPTY, ONE, mix


@njit(cache=True)
def total_size(items, begin):
    """The total size of the segments of these items; begin: (item + 1,)."""
    total = 0
    for place in range(len(items)):
        total += begin[items[place] + 1] - begin[items[place]]
    return total


@njit(cache=True)
def sign_variables(
    moved, number, leader, num, end, by_kind, of_whole, fresh, slots, first, orbit, weight, group,
    color, size, amount, sign, filled, said, share, heard, touched, table, known,
):  # fmt: skip
    """Write a number for each variable in the slots of factors that have moved, equal for those of
    one class with the same total weight in each new class of factors and orbit; return how many
    variables there are, and a bound on the numbers.

    moved, number: factors, and their new classes. leader, num, end: (new class,), a factor of it,
    how many there are, and room. A factor has news for a variable if it has moved because of
    another `fresh` variable or its kind (by_kind), or if no factor of its class has stayed
    (of_whole): otherwise all factors of the variable's class in that class have moved. sign:
    (variable,), the numbers, -1 before. touched: the variables. amount: (variable,), zeros before
    and after. filled: room for a number per slot of each leader; said, share: for a variable and a
    weight per slot of each factor; heard: for variables.
    """
    at_slot, at_said = 0, 0
    for new in range(len(leader)):
        for _ in range(first[leader[new] + 1] - first[leader[new]]):
            filled[at_slot] = at_said
            at_slot += 1
            at_said += num[new]
        end[new] = at_slot
    num_touched, count = 0, 0
    for place in range(len(moved)):
        factor = moved[place]
        start = first[factor]
        arity = first[factor + 1] - start
        begin = end[number[place]] - arity
        news = by_kind + of_whole[group[factor]]
        for slot in range(arity):
            news += fresh[slots[start + slot]]
        for slot in range(arity):
            variable = slots[start + slot]
            if news > fresh[variable] and size[color[variable]] > 1:
                said[filled[begin + slot]] = variable
                if len(weight):
                    share[filled[begin + slot]] = weight[start + slot]
                filled[begin + slot] += 1
                if sign[variable] == -1:
                    sign[variable] = -2
                    touched[num_touched] = variable
                    num_touched += 1
    at_said = 0
    for new in range(len(leader)):
        one = first[leader[new]]
        arity = first[leader[new] + 1] - one  # of all factors of the class, as orbits are
        begin = end[new] - arity
        for lead in range(arity):
            if orbit[one + lead] != lead:
                continue
            num_heard = 0
            for slot in range(lead, arity):
                if orbit[one + slot] != lead:
                    continue
                for at in range(at_said + slot * num[new], filled[begin + slot]):
                    variable = said[at]
                    if amount[variable] == 0:
                        heard[num_heard] = variable
                        num_heard += 1
                    amount[variable] += share[at] if len(weight) else 1
            for place in range(num_heard):
                variable = heard[place]
                before = np.int64(sign[variable])
                if before < 0:
                    before = -1 - np.int64(color[variable])
                link = np.int64(new * 65536 + lead)
                sign[variable] = number_link(before, link, amount[variable], count, table, known)
                count = max(count, sign[variable] + 1)
                amount[variable] = 0
        at_said += arity * num[new]
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

    table: of numbers by hash, with open addressing. known: (number, 4), with its place there.
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
    known[count, 3] = spot
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
                count += 1
    at = 0
    if count * 16 > len(seen):
        # In increasing order, for the cache.
        for factor in range(len(seen)):
            if seen[factor]:
                seen[factor] = False
                touched[at] = factor
                at += 1
        return count
    for place in range(len(moved)):
        for link in range(start[moved[place]], start[moved[place] + 1]):
            factor = factors[link]
            if seen[factor]:
                seen[factor] = False
                touched[at] = factor
                at += 1
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
