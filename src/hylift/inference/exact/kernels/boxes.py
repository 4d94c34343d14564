"""The largest values of quadratics in boxes, or bounds on them."""

import numpy as np
from numba import njit

NEARLY = 1e-14
"""Relative difference up to which a quadratic counts as a square."""


@njit(cache=True)
def highest(a, b, low, high):
    """The largest value of a x² + b x from low to high."""
    best = max((a * low + b) * low, (a * high + b) * high)
    if a < 0.0:
        top = -0.5 * b / a
        if low < top < high:
            best = max(best, 0.5 * b * top)
    return best


@njit(cache=True)
def highest_of_two(A, b, at_A, at_b, low, high):
    """The largest value of a quadratic of two reals in a box: inside, or on an edge."""
    best = -np.inf
    p, q, r = A[at_A], A[at_A + 1], A[at_A + 3]
    u, v = b[at_b], b[at_b + 1]
    for end in (low[0], high[0]):
        best = max(best, (p * end + u) * end + highest(r, v + 2.0 * q * end, low[1], high[1]))
    for end in (low[1], high[1]):
        best = max(best, (r * end + v) * end + highest(p, u + 2.0 * q * end, low[0], high[0]))
    det = p * r - q * q
    if p < 0.0 and det > 0.0:
        x, y = 0.5 * (q * v - r * u) / det, 0.5 * (q * u - p * v) / det
        if low[0] < x < high[0] and low[1] < y < high[1]:
            best = max(best, 0.5 * (u * x + v * y))
    return best


@njit(cache=True)
def as_square(theta, at_A, at_b, size, square):
    """Writes w and t of -(w·x - t)² + t², which a quadratic is nearly, as all regressions are; then
    by how much its A and its b differ from that at most."""
    lead = 0
    for i in range(size):
        square[i] = np.sqrt(max(-theta[at_A + i * size + i], 0.0))
        if square[i] > square[lead]:
            lead = i
    for i in range(size):
        if i != lead and theta[at_A + lead * size + i] > 0.0:
            square[i] = -square[i]
    target = 0.5 * theta[at_b + lead] / square[lead] if square[lead] > 0.0 else 0.0
    off_A, off_b = 0.0, 0.0
    for i in range(size):
        off_b = max(off_b, abs(theta[at_b + i] - 2.0 * square[i] * target))
        for j in range(size):
            off_A = max(off_A, abs(theta[at_A + i * size + j] + square[i] * square[j]))
    square[size], square[size + 1], square[size + 2] = target, off_A, off_b


@njit(cache=True)
def highest_of_many(theta, at_A, at_b, size, square, low, high, room):
    """An upper bound on a quadratic in a box: the lower of two.

    It is bounded by the range of w·x and by the difference from -(w·x - t)² + t² (`as_square`), or
    by the sum of the largest values of its pairs of reals. room: (10,)
    """
    target, off_A, off_b = square[size], square[size + 1], square[size + 2]
    least, most, reach = 0.0, 0.0, 0.0
    for i in range(size):
        one, other = square[i] * low[i], square[i] * high[i]
        least, most = least + min(one, other), most + max(one, other)
        reach += max(abs(low[i]), abs(high[i]))
    near = min(max(target, least), most)
    by_range = target * target - (near - target) ** 2 + (off_A * reach + off_b) * reach
    lead = 0.0
    for i in range(size):
        lead = max(lead, square[i] * square[i])
    if off_A <= NEARLY * lead:
        return by_range
    by_pairs, pair = 0.0, room[:4]
    begin, end, slopes = room[4:6], room[6:8], room[8:10]
    for i in range(size):
        for j in range(i):
            pair[0] = theta[at_A + i * size + i] / (size - 1)
            pair[1] = pair[2] = theta[at_A + i * size + j]
            pair[3] = theta[at_A + j * size + j] / (size - 1)
            slopes[0], slopes[1] = theta[at_b + i] / (size - 1), theta[at_b + j] / (size - 1)
            begin[0], begin[1], end[0], end[1] = low[i], low[j], high[i], high[j]
            by_pairs += highest_of_two(pair, slopes, 0, 0, begin, end)
    return min(by_range, by_pairs)
