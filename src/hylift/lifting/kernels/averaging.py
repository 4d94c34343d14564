"""Sums and means over classes."""

import numpy as np
from numba import njit


@njit(cache=True)
def class_sums(values, to_class, count):
    """float64 (class,): sums of the values of its members."""
    total = np.zeros(count)
    for member in range(len(values)):
        total[to_class[member]] += values[member]
    return total


@njit(cache=True)
def average_rows(flat, row, weight, target, leader, num_targets):
    """float64 (target, entry): weighted means of the rows that go to each target.

    row, weight, target: (factor,), a negative target is none. leader: (target,), one of its rows.
    Sums are of differences to that one, so that the mean of equal rows is the row itself; where one
    row has -inf the mean has it.
    """
    num_entries = flat.shape[1]
    mean = np.zeros((num_targets, num_entries))
    total = np.zeros(num_targets)
    for factor in range(len(row)):
        goal = target[factor]
        if goal < 0:
            continue
        total[goal] += weight[factor]
        for entry in range(num_entries):
            origin = flat[leader[goal], entry]
            if origin != -np.inf:
                mean[goal, entry] += weight[factor] * (flat[row[factor], entry] - origin)
    for goal in range(num_targets):
        for entry in range(num_entries):
            mean[goal, entry] = flat[leader[goal], entry] + mean[goal, entry] / total[goal]
    return mean
