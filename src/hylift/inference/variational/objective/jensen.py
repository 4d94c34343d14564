"""The lower bound on the entropy of a mixture by Jensen's inequality."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from hylift.components.kernels.products import (
    jensen_gradient,
    log_mixtures,
    log_overlaps,
)
from hylift.inference.variational.problem import FloatArray, Mixtures, Problem
from hylift.numerics.threads import BLOCK, in_order


def add_jensen(
    problem: Problem, q: Mixtures, gradient: FloatArray, value: FloatArray
) -> FloatArray:
    """Adds log Σ_j w_j exp(S_kj) given each component k, and the gradient of their mean."""
    layout, multiplicity = problem.layout, problem.multiplicity
    size = len(layout)
    cuts = np.linspace(0, size, 2 + size * q.num_components**2 // BLOCK).astype(np.int64)
    blocks = list(pairwise(cuts.tolist()))
    overlaps = np.zeros((q.num_starts, q.num_components, q.num_components))

    def overlap(begin: int, end: int) -> FloatArray:
        part = np.zeros(overlaps.shape)
        log_overlaps(
            begin, end, layout.family, layout.first, layout.lower, layout.upper, multiplicity,
            q.entries, part,
        )  # fmt: skip
        return part

    for part in in_order(overlap, blocks):
        overlaps += part
    share = np.empty(overlaps.shape)
    log_mixtures(overlaps, q.weights, value, share)

    def slope(begin: int, end: int) -> None:
        jensen_gradient(
            begin, end, layout.family, layout.first, multiplicity, q.entries, q.weights, share,
            gradient,
        )  # fmt: skip

    for _ in in_order(slope, blocks):
        pass
    # ∂/∂w_k of Σ_l w_l log Σ_j w_j exp(S_lj) beyond the logarithm itself.
    return np.einsum("sl,slk->sk", q.weights, share) / q.weights
