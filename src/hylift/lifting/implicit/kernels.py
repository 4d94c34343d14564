"""Search for a pair of constants that stands for all that no table names."""

from numba import njit


@njit(cache=True)
def first_unnamed(cells, num_second, first, begin, partner, order, start, seen, found):
    """Write for each cell, a pair of classes, the first second constant that the first one of the
    first class has no named pair with.

    cells: increasing, class * num_second + class. first: (class,), its first constant. partner:
    those of each constant from `begin` on. order, start: second constants by class. seen: (second
    constant,), -1.
    """
    for place in range(len(cells)):
        one, other = divmod(cells[place], num_second)
        constant = first[one]
        if place == 0 or cells[place - 1] // num_second != one:
            for at in range(begin[constant], begin[constant + 1]):
                seen[partner[at]] = one
        at = start[other]
        while seen[order[at]] == one:
            at += 1
        found[place] = order[at]
