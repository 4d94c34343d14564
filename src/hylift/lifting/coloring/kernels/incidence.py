"""From variables to the factors they stand in."""

import numpy as np
from numba import njit


@njit(cache=True)
def incidence(slots, first, num_variables):
    """Per variable the factors in whose slots it stands: start (variable + 1,), factor (edge,)."""
    start = np.zeros(num_variables + 1, dtype=np.int64)
    for edge in range(len(slots)):
        start[slots[edge] + 1] += 1
    for variable in range(num_variables):
        start[variable + 1] += start[variable]
    at = start[:-1].copy()
    factors = np.empty(len(slots), dtype=np.int32)
    for factor in range(len(first) - 1):
        for edge in range(first[factor], first[factor + 1]):
            place = at[slots[edge]]
            at[slots[edge]] = place + 1
            factors[place] = factor
    return start, factors
