"""Sums of rows into stretches of one flat array."""

import numpy as np
from numba import njit


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
