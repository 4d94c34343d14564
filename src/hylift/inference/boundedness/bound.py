"""The number below which log p̃ - Σ log g stays, from sums over the factors alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import cg, splu

from hylift.graph import Variables
from hylift.inference.boundedness.definite import CommonForm
from hylift.inference.boundedness.terms import Terms
from hylift.potentials.base import FloatArray

DENSITY, STATES, REST = 0.7, 0.2, 0.1
"""Parts of what holds a real: for the precision of its density g, for what states change, and what
stays to make the bound finite."""

MAX_DIRECT = 100_000
"""Reals whose means are found by sparse elimination; above by conjugate gradients."""

ROUNDING = 1e-10
"""Relative to the sizes of all that is added up: what is added to a bound for rounding."""


@dataclass(frozen=True, slots=True, eq=False)
class GaussianBound:
    """Gaussian densities of the open reals, and a bound on the quadratics divided by them."""

    mean: FloatArray  # (variable,), NaN for others
    var: FloatArray  # (variable,), NaN for others
    log_bound: float


def gaussian_bound(
    terms: Sequence[Terms],
    form: CommonForm,
    share: FloatArray,
    variables: Variables,
) -> GaussianBound:
    """Densities and a bound, where J ⪰ share · D on every open real.

    With precisions T = 0.7 share D, and 0.2 share D for what the states change, each factor is
    below -½ xᵀ (L - σ) x + hᵀ x + k in all its states, with one h and k. Their sum, with
    M = Σ (L - σ), and the densities at mean μ, stays below hᵀ μ - ½ μᵀ M μ + ½ eᵀ (M - T)⁻¹ e
    for e = h - M μ, and M - T ⪰ 0.1 share D.
    """
    n = form.multiplicity
    ids = np.flatnonzero(~np.isnan(share))
    held = np.where(np.isnan(share), 0.0, share * form.diagonal)
    slack, slack_per_slot = _slack(terms, held, n)
    linear = np.zeros(len(n))
    total = size = 0.0
    for term in terms:
        for some in term.chunks():
            h, k = _state_free(some, slack_per_slot, variables)
            total += float(some.multiplicity @ k)
            size += float(some.multiplicity @ np.abs(k))
            for slot in range(some.num_open):
                linear += np.bincount(
                    some.real[:, slot], some.multiplicity * h[:, slot], minlength=len(n)
                )
    mean, var = np.full(len(n), np.nan), np.full(len(n), np.nan)
    if len(ids):
        matrix = form.matrix[ids][:, ids] - sp.diags_array(slack[ids] * n[ids])
        mu = _solve(matrix.tocsc(), linear[ids])
        image = matrix @ mu
        error = linear[ids] - image
        total += float(linear[ids] @ mu - 0.5 * mu @ image)
        size += float(np.abs(linear[ids] * mu).sum() + 0.5 * np.abs(mu * image).sum())
        total += 0.5 * float((error**2 / (n[ids] * REST * held[ids])).sum())
        precision = DENSITY * held[ids]
        log_peak = 0.5 * n[ids] * np.log(precision / (2 * np.pi))
        total -= float(log_peak.sum())
        size += float(np.abs(log_peak).sum())
        mean[ids], var[ids] = mu, 1 / precision
    return GaussianBound(mean, var, total + ROUNDING * size)


def _slack(
    terms: Sequence[Terms], held: FloatArray, multiplicity: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """(variable,): precision that is set aside for states, and how much each slot gets of it."""
    degree = np.zeros(len(held))
    for term in terms:
        if not term.is_plain:
            for slot in range(term.num_open):
                degree += np.bincount(term.real[:, slot], term.multiplicity, minlength=len(held))
    degree /= multiplicity
    slack = np.where(degree > 0, STATES * held, 0.0)
    return slack, slack / np.where(degree > 0, degree, 1.0)


def _state_free(
    terms: Terms, slack: FloatArray, variables: Variables
) -> tuple[FloatArray, FloatArray]:
    """(factor, open slot) h and (factor,) k: the factor is below -½ xᵀ (L - σ) x + hᵀ x + k.

    In every state d, for every z in the box of the closed slots; with G = B(d) - L + σ, and C what
    couples x and z, the difference is at most
    ½ (h(d) - h - C z)ᵀ G⁻¹ (h(d) - h - C z) + h_zᵀ z - ½ zᵀ B_zz z + k(d).
    """
    u = terms.num_open
    if terms.is_plain:
        return terms.linear[terms.row, 0], terms.constant[terms.row, 0]
    B, linear = terms.precision[terms.row], terms.linear[terms.row]
    lower, upper = variables.lower[terms.closed], variables.upper[terms.closed]
    middle, half = 0.5 * (lower + upper), 0.5 * (upper - lower)
    # About the middle of the box, z = middle + s.
    linear = linear - np.einsum("fsij,fj->fsi", B[..., u:], middle)
    k = terms.constant[terms.row] + np.einsum(
        "fsj,fj->fs", terms.linear[terms.row][..., u:] + linear[..., u:], 0.5 * middle
    )
    P, q = -0.5 * B[..., u:, u:], linear[..., u:]
    h = np.zeros((len(terms), u))
    if u:
        G = B[..., :u, :u] - terms.lower[terms.row][:, None]
        G = G + (np.eye(u) * slack[terms.open][:, None, :])[:, None]
        # The mean of all h(d), those that little holds counting most.
        inverse = np.linalg.inv(G)
        pull = np.einsum("fsij,fsj->fi", inverse, linear[..., :u])
        h = np.linalg.solve(inverse.sum(axis=1), pull[..., None])[..., 0]
        off = linear[..., :u] - h[:, None]
        C = B[..., :u, u:]
        solved = np.linalg.solve(G, np.concatenate([off[..., None], C], axis=-1))
        k = k + 0.5 * np.einsum("fsi,fsi->fs", off, solved[..., 0])
        q = q - np.einsum("fsiz,fsi->fsz", C, solved[..., 0])
        P = P + 0.5 * np.einsum("fsiz,fsiy->fszy", C, solved[..., 1:])
    if terms.closed.shape[1]:
        k = k + largest_in_box(P, q, half[:, None, :])
    return h, k.max(axis=1)


def largest_in_box(P: FloatArray, q: FloatArray, half: FloatArray) -> FloatArray:
    """At least the largest value of sᵀ P s + qᵀ s for |s| ≤ half, entry by entry.

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


def _solve(matrix: sp.csc_matrix, right: FloatArray) -> FloatArray:
    """About the solution of a positive definite system; its error is accounted for elsewhere."""
    if matrix.shape[0] <= MAX_DIRECT:
        return np.asarray(splu(matrix, permc_spec="MMD_AT_PLUS_A").solve(right))
    jacobi = sp.diags_array(1 / matrix.diagonal())
    solution, _ = cg(matrix, right, rtol=1e-12, maxiter=500, M=jacobi)
    return np.asarray(solution)
