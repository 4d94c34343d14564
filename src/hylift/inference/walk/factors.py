"""When a factor is satisfied: at the best value it could have by itself."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from hylift.graph import FactorGraph
from hylift.inference.search.kernels.arrays import Terms
from hylift.inference.search.layout import flat_terms
from hylift.inference.walk.kernels.arrays import Factors
from hylift.potentials import ConditionalQuadratic

FloatArray = NDArray[np.float64]

NEAR = 1e-9
"""How far below its best, relative to the size of its numbers, a factor counts as at its best."""

FLAT = 1e-12
"""A curvature of less than this, relative to the largest, is none."""


def factors_of(graph: FactorGraph, terms: Terms) -> Factors:
    """The tables and quadratics of a graph without evidence; `terms` are what they are made of.

    The best of a table is its largest value. That of a quadratic is its largest value in any
    state, with its reals wherever they please, and within its bounds if there is only one. So a
    factor that is satisfied cannot be better. One that has no largest value is never satisfied.
    """
    is_parted = any(isinstance(group.potential, ConditionalQuadratic) for group in graph.groups)
    whole = flat_terms(graph, whole=True) if is_parted else terms
    slots, record = whole.entry["variable"], whole.variable
    moves = (record["movable"] > 0) & (record["num_states"] != 1)
    count = np.concatenate([[0], np.cumsum(moves[slots])])
    ends = np.append(whole.term["first"], len(slots))
    return Factors(whole, _enough(whole), count[ends], slots[moves[slots]])


def _enough(whole: Terms) -> FloatArray:
    """(factor,): the log-value from which on it is satisfied."""
    enough = np.full(len(whole.term), np.inf)
    sizes = np.stack([whole.term["last"] - whole.term["middle"], whole.term["num_joint"]])
    kinds, kind = _distinct(sizes)
    for number, (num_reals, num_joint) in enumerate(kinds.T.tolist()):
        some = np.flatnonzero(kind == number)
        base, row = np.unique(whole.term["base"][some], return_inverse=True)
        starts = np.cumsum([0, num_joint * num_reals**2, num_joint * num_reals, num_joint])
        A, b, c = (
            whole.theta[base[:, None] + np.arange(first, last)]
            for first, last in pairwise(starts.tolist())
        )
        size = _largest(A) + _largest(b) + _largest(c)
        if num_reals == 0:
            best = c.max(axis=1)[row]
        elif num_reals == 1:
            real = whole.entry["variable"][whole.term["middle"][some]]
            lower, upper = whole.variable["lower"][real], whole.variable["upper"][real]
            best = _best_within(A[row], b[row], c[row], lower[:, None], upper[:, None])
        else:
            shape = len(base), num_joint, num_reals
            best = _best_anywhere(A.reshape(*shape, num_reals), b.reshape(shape), c)[row]
        enough[some] = best - NEAR * (1 + np.where(np.isfinite(best), abs(best), 0) + size[row])
    return enough


def _distinct(columns: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The distinct columns of an array, and for each column which of them it is."""
    span = columns.max(axis=1, initial=0) + 1
    keys, which = np.unique(np.ravel_multi_index(tuple(columns), span), return_inverse=True)
    return np.stack(np.unravel_index(keys, span)), which.reshape(-1)


def _largest(values: FloatArray) -> FloatArray:
    """(row,): the largest finite size of a number."""
    return np.abs(np.where(np.isfinite(values), values, 0)).max(axis=1, initial=0)


def _best_within(
    A: FloatArray, b: FloatArray, c: FloatArray, lower: FloatArray, upper: FloatArray
) -> FloatArray:
    """(factor,): the largest value of Ax² + bx + c (factor, state) for x within bounds."""
    curved = A < 0
    x = np.where(curved, -b / np.where(curved, 2 * A, 1), 0)
    inside = np.clip(x, lower, upper)
    ends = [np.broadcast_to(end, A.shape) for end in (lower, upper)]
    values = [np.where(curved, (A * inside + b) * inside, -np.inf)]
    for end in ends:
        open_end = np.isinf(end)
        x = np.where(open_end, 0, end)
        rises = (A > 0) | ((A == 0) & (b * np.sign(end) > 0))
        values.append(np.where(open_end, np.where(rises, np.inf, -np.inf), (A * x + b) * x))
    flat = np.where((A == 0) & (b == 0), 0, -np.inf)
    best = np.maximum(np.maximum.reduce(values), flat)
    return _in_best_state(best, c)


def _best_anywhere(A: FloatArray, b: FloatArray, c: FloatArray) -> FloatArray:
    """(row,): the largest value of xᵀAx + bᵀx + c (row, state, …) for any x."""
    curvature, axes = np.linalg.eigh(A)
    along = np.einsum("rsij,rsi->rsj", axes, b)
    scale = np.abs(curvature).max(axis=2, keepdims=True)
    curved = curvature < -FLAT * scale
    rises = (curvature > FLAT * scale) | (
        ~curved & (np.abs(along) > FLAT * (scale + np.abs(b).max(axis=2, keepdims=True)))
    )
    gain = np.where(curved, along**2 / np.where(curved, -4 * curvature, 1), 0)
    return _in_best_state(np.where(rises, np.inf, gain).sum(axis=2), c)


def _in_best_state(best: FloatArray, c: FloatArray) -> FloatArray:
    possible = c > -np.inf
    return np.where(possible, best + np.where(possible, c, 0), -np.inf).max(axis=1)
