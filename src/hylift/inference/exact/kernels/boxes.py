"""The largest values of quadratics in boxes, or bounds on them."""

import numpy as np
from numba import njit


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
def highest_of_many(theta, at_A, at_b, size, low, high):
    """An upper bound on a quadratic in a box: the lower of two.

    Near -(w·x - t)², which regressions are, it is bounded by the range of w·x and by the largest
    difference; any form by the sum of the largest values of its pairs of reals.
    """
    w = np.empty(size)
    for i in range(size):
        w[i] = np.sqrt(max(-theta[at_A + i * size + i], 0.0))
    lead = np.argmax(w)
    for i in range(size):
        if i != lead and theta[at_A + lead * size + i] > 0.0:
            w[i] = -w[i]
    target = 0.5 * theta[at_b + lead] / w[lead] if w[lead] > 0.0 else 0.0
    least, most, off = 0.0, 0.0, 0.0
    for i in range(size):
        one, other, reach = w[i] * low[i], w[i] * high[i], max(abs(low[i]), abs(high[i]))
        least, most = least + min(one, other), most + max(one, other)
        off += abs(theta[at_b + i] - 2.0 * w[i] * target) * reach
        for j in range(size):
            far = reach * max(abs(low[j]), abs(high[j]))
            off += abs(theta[at_A + i * size + j] + w[i] * w[j]) * far
    near = min(max(target, least), most)
    by_range = target * target - (near - target) ** 2 + off
    by_pairs, pair = 0.0, np.empty(4)
    begin, end, slopes = np.empty(2), np.empty(2), np.empty(2)
    for i in range(size):
        for j in range(i):
            pair[0] = theta[at_A + i * size + i] / (size - 1)
            pair[1] = pair[2] = theta[at_A + i * size + j]
            pair[3] = theta[at_A + j * size + j] / (size - 1)
            slopes[0], slopes[1] = theta[at_b + i] / (size - 1), theta[at_b + j] / (size - 1)
            begin[0], begin[1], end[0], end[1] = low[i], low[j], high[i], high[j]
            by_pairs += highest_of_two(pair, slopes, 0, 0, begin, end)
    return min(by_range, by_pairs)
