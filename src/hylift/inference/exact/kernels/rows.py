"""Rows of log-values: their sums, and probabilities."""

import numpy as np
from numba import njit

from hylift.numerics.kernels.special import IMPROBABLE, largest_of, take_exponentials

LOST = -45.0
"""Log-values of nodes this far below the largest of a sum are lost in its rounding."""

SHORT = 16
"""States from which on it pays to look for those that count."""

MARGIN = 4
"""Nodes by which the range of those that count may differ from one row to the next."""


@njit(cache=True)
def normalise(row, num_nodes, begin, end):
    """Turns log-values into probabilities in place, where they are not negligible; returns the log
    of their sum, and the range of nodes that count. Cells count even where nodes would not, since
    they may be far away. begin, end: a guess of the range"""
    top = largest_of(row, len(row))
    if not top > -np.inf:
        row[num_nodes:] = 0.0
        return top, 0, 0
    least = LOST if num_nodes < len(row) else IMPROBABLE
    begin, end = max(begin - MARGIN, 0), min(end + MARGIN, num_nodes)
    if largest_of(row, begin) - top > least:
        begin = 0
    if largest_of(row[end:], num_nodes - end) - top > least:
        end = num_nodes
    while begin < end and not row[begin] - top > least:
        begin += 1
    while end > begin and not row[end - 1] - top > least:
        end -= 1
    nodes, cells = row[begin:end], row[num_nodes:]
    total = take_exponentials(nodes, top) + take_exponentials(cells, top)
    share = 1.0 / total if total > 0.0 else 0.0  # which is not where log-values are infinite
    for k in range(len(nodes)):
        nodes[k] *= share
    for k in range(len(cells)):
        cells[k] *= share
    return top + np.log(total), begin, end


@njit(cache=True)
def normalise_short(table, block, log_sums, probs):
    """The log-sum of each row of few states, and their probabilities unless there is no room."""
    keep = len(probs) > 0
    for m in range(len(log_sums)):
        first, top, total = m * block, -np.inf, 0.0
        for k in range(first, first + block):
            top = max(top, table[k])
        for k in range(first, first + block):
            below = table[k] - top
            value = 0.0
            if below > IMPROBABLE:
                value = np.exp(below) if below < 0.0 else 1.0
            total += value
            if keep:
                probs[k] = value
        log_sums[m] = top + np.log(total) if total > 0.0 else top
        if keep and total != 1.0 and total > 0.0:
            for k in range(first, first + block):
                probs[k] /= total
