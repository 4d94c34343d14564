"""Numbers that are equal to a relative tolerance."""

import numpy as np
from numba import njit


@njit(cache=True)
def snap_sorted(values, order, tolerance):
    """float64 (value,): the values, each replaced by the one of smallest size in its interval.

    order: sorts the values. Intervals reach from a value v to v (1 + tolerance), each beginning
    with the first value that the one before leaves out; so no two values in one differ by more.
    """
    snapped = np.empty_like(values)
    zero = np.searchsorted(values[order], 0.0)
    begin = 0.0
    for place in range(zero, len(values)):
        value = values[order[place]]
        if place == zero or value - begin > tolerance * begin:
            begin = value
        snapped[order[place]] = begin
    for place in range(zero - 1, -1, -1):
        value = values[order[place]]
        if place == zero - 1 or value - begin < tolerance * begin:
            begin = value
        snapped[order[place]] = begin
    return snapped
