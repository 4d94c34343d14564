"""The number below which log p̃ - Σ log g stays, from sums over the factors alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from hylift.graph import Variables
from hylift.numerics.sparse import SymmetricFactors
from hylift.potentials import REAL
from hylift.potentials.base import FloatArray
from hylift.proper.common_form import CommonForm
from hylift.proper.quadratics import IntArray, OpenFactors

DENSITY, STATES, REST = 0.7, 0.2, 0.1
"""Parts of the precision of a real: for its density g, for what states change, and what stays to
make the bound finite."""

ROUNDING = 1e-10
"""Added to a bound for rounding, relative to the absolute values of all summands."""

FLAT = 1e-12
"""Slopes this small, relative to their summands, count as zero."""


@dataclass(frozen=True, slots=True, eq=False)
class GaussianBound:
    """Gaussian densities of the open reals, and a bound on the quadratics divided by them."""

    mean: FloatArray  # (variable,), NaN for others
    var: FloatArray  # (variable,), NaN for others
    log_bound: float


def gaussian_bound(
    quadratics: Sequence[OpenFactors], form: CommonForm, share: FloatArray, variables: Variables
) -> GaussianBound:
    """Densities and a bound, where J ⪰ share · D on every open real.

    With precisions T = 0.7 share D, and 0.2 share D for what the states change, each factor is
    below -½ xᵀ (L - σ) x + hᵀ x + k in all its states, with one h and k. Their sum, with
    M = Σ (L - σ), and the densities at mean μ, stays below hᵀ μ - ½ μᵀ M μ + ½ eᵀ (M - T)⁻¹ e
    for e = h - M μ, and M - T ⪰ 0.1 share D.
    """
    n = form.multiplicity
    ids = np.flatnonzero(~np.isnan(share))
    precision = np.where(np.isnan(share), 0.0, share * form.diagonal)
    slack, slack_per_slot = _slack(quadratics, precision, n)
    linear = np.zeros(len(n))
    total = size = 0.0
    for whole in quadratics:
        for some in whole.chunks():
            h, k = _state_free(some, slack_per_slot, variables)
            total += float(some.multiplicity @ k)
            size += float(some.multiplicity @ np.abs(k))
            linear += some.sum_by_real(h, len(n))
    mean, var = np.full(len(n), np.nan), np.full(len(n), np.nan)
    if len(ids):
        matrix = form.matrix[ids][:, ids] - sp.diags_array(slack[ids] * n[ids])
        mu = SymmetricFactors.solution(matrix, linear[ids])
        if mu is None:
            raise np.linalg.LinAlgError
        image = matrix @ mu
        error = linear[ids] - image
        log_peak = 0.5 * n[ids] * np.log(DENSITY * precision[ids] / (2 * np.pi))
        total += float(linear[ids] @ mu - 0.5 * mu @ image)
        total += 0.5 * float((error**2 / (n[ids] * REST * precision[ids])).sum())
        total -= float(log_peak.sum())
        for summands in (linear[ids] * mu, 0.5 * mu * image, log_peak):
            size += float(np.abs(summands).sum())
        mean[ids], var[ids] = mu, 1 / (DENSITY * precision[ids])
    return GaussianBound(mean, var, total + ROUNDING * size)


def _slack(
    quadratics: Sequence[OpenFactors], precision: FloatArray, multiplicity: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """(variable,): precision set aside for states, and how much of it each slot gets."""
    degree = np.zeros(len(precision))
    for some in quadratics:
        if not some.is_plain:
            degree += some.sum_by_real(np.ones((len(some), 1)), len(degree))
    degree /= multiplicity
    slack = np.where(degree > 0, STATES * precision, 0.0)
    return slack, slack / np.where(degree > 0, degree, 1.0)


def _state_free(
    some: OpenFactors, slack: FloatArray, variables: Variables
) -> tuple[FloatArray, FloatArray]:
    """(factor, open slot) h and (factor,) k: the factor is below -½ xᵀ (L - σ) x + hᵀ x + k.

    In every state d, for every z in the box of the closed slots; with G = B(d) - L + σ, and C what
    couples x and z, the difference is at most
    ½ (h(d) - h - C z)ᵀ G⁻¹ (h(d) - h - C z) + h_zᵀ z - ½ zᵀ B_zz z + k(d).
    Raises `LinAlgError` where rounding leaves no positive definite G.
    """
    u = some.num_open
    if some.is_plain:
        return some.slope[:, 0], some.constant[:, 0]
    B, linear = some.curvature, some.slope
    lower, upper = variables.lower[some.closed], variables.upper[some.closed]
    middle, half = 0.5 * (lower + upper), 0.5 * (upper - lower)
    # About the middle of the box, z = middle + s.
    linear = linear - np.einsum("fsij,fj->fsi", B[..., u:], middle)
    k = some.constant + np.einsum("fsj,fj->fs", some.slope[..., u:] + linear[..., u:], 0.5 * middle)
    P, q = -0.5 * B[..., u:, u:], linear[..., u:]
    h = np.zeros((len(some), u))
    if u:
        G = B[..., :u, :u] - some.lower[some.row][:, None]
        G = G + (np.eye(u) * slack[some.open][:, None, :])[:, None]
        np.linalg.cholesky(G)
        # The mean of all h(d), weighted by G⁻¹: flat directions count most.
        inverse = np.linalg.inv(G)
        pull = np.einsum("fsij,fsj->fi", inverse, linear[..., :u])
        h = np.linalg.solve(inverse.sum(axis=1), pull[..., None])[..., 0]
        off = linear[..., :u] - h[:, None]
        C = B[..., :u, u:]
        solved = np.linalg.solve(G, np.concatenate([off[..., None], C], axis=-1))
        k = k + 0.5 * np.einsum("fsi,fsi->fs", off, solved[..., 0])
        q = q - np.einsum("fsiz,fsi->fsz", C, solved[..., 0])
        P = P + 0.5 * np.einsum("fsiz,fsiy->fszy", C, solved[..., 1:])
    if some.closed.shape[1]:
        k = k + _largest_in_box(P, q, half[:, None, :])
    return h, k.max(axis=1)


def _largest_in_box(P: FloatArray, q: FloatArray, half: FloatArray) -> FloatArray:
    """At least the largest value of sᵀ P s + qᵀ s for |s| ≤ half.

    The smaller of two bounds: one on each entry by itself, one on each principal axis.
    """
    diagonal = np.diagonal(P, axis1=-2, axis2=-1)
    off = np.abs(P) * (1 - np.eye(P.shape[-1]))
    by_entry = _largest_on(diagonal, q, half).sum(axis=-1)
    by_entry = by_entry + np.einsum("...i,...ij,...j->...", half, off, half)
    values, vectors = np.linalg.eigh(0.5 * (P + np.swapaxes(P, -1, -2)))
    along = np.einsum("...ji,...j->...i", vectors, q)
    reach = np.einsum("...ji,...j->...i", np.abs(vectors), np.broadcast_to(half, q.shape))
    by_axis = _largest_on(values, along, reach).sum(axis=-1)
    return np.asarray(np.minimum(by_entry, by_axis))


def _largest_on(a: FloatArray, b: FloatArray, reach: FloatArray) -> FloatArray:
    """The largest a s² + b s for |s| ≤ reach."""
    end = a * reach**2 + np.abs(b) * reach
    falls = a < 0
    inside = falls & (np.abs(b) < -2 * a * reach)
    return np.asarray(np.where(inside, -(b**2) / np.where(falls, 4 * a, 1.0), end))


@dataclass(frozen=True, slots=True, eq=False)
class ExponentialBound:
    """Exponential densities of reals with one bound and linear terms only."""

    others: list[OpenFactors]
    own: list[OpenFactors]
    rate: FloatArray
    """(variable,): how fast log p falls from the bound, at least; NaN for other variables."""
    log_bound: float
    """Of `own` divided by the densities, where all rates are positive."""

    @property
    def failing(self) -> IntArray:
        return np.flatnonzero(self.rate <= 0)


def exponential_bound(quadratics: Sequence[OpenFactors], variables: Variables) -> ExponentialBound:
    """Take out the reals with one bound that occur in no square and no product."""
    lower, upper = variables.lower, variables.upper
    from_below = np.isfinite(lower)
    linear = (variables.num_states == REAL) & (from_below != np.isfinite(upper))
    for some in quadratics:
        curved: NDArray[np.bool_] = (some.form.A != 0).any(axis=(1, 3))[some.row, : some.num_open]
        linear[some.open[curved]] = False
    rate, size = np.where(linear, 0.0, np.nan), np.zeros(len(variables))
    others, own, total = [], [], 0.0
    for whole in quadratics:
        # Without couplings, such a real is the only one of its factor.
        flag = linear[whole.real[:, 0]] & (whole.num_open == 1)
        others.append(whole.take(np.flatnonzero(~flag)))
        some = whole.take(np.flatnonzero(flag))
        own.append(some)
        ids, h = some.real[:, 0], some.slope[..., 0]
        steepest = np.where(from_below[ids][:, None], h, -h).max(axis=1, keepdims=True)
        rate -= some.sum_by_real(steepest, len(rate))
        size += some.sum_by_real(np.abs(steepest), len(rate))
        bound = np.where(from_below[ids], lower[ids], upper[ids])
        at_bound = some.constant + h * bound[:, None]
        total += float(some.multiplicity @ at_bound.max(axis=1))
    rate = np.where(np.abs(rate) <= FLAT * size, 0.0, rate) / variables.multiplicity
    positive = rate > 0
    total -= float(variables.multiplicity[positive] @ np.log(rate[positive]))
    others, own = ([some for some in part if len(some)] for part in (others, own))
    return ExponentialBound(others, own, rate, total)
