"""Moments of reals in several functions, corrected for the shapes that a Gaussian has not.

With all factors put back at once, as if they were independent given a real x, its density is
q(x) Π_c t_c(x) / q(x), where t_c is tilted by factor c alone (Cseke and Heskes 2011).
"""

from __future__ import annotations

import numpy as np

from hylift.inference.expectation.bounded import log_states
from hylift.inference.expectation.joint import FloatArray, Ids
from hylift.inference.expectation.numeric import BLOCK, FunctionSites
from hylift.inference.expectation.state import Propagation
from hylift.numerics.quadrature import hermite_rule

GRID = np.linspace(-5.0, 5.0, 21)
"""Places at which densities are taken, in standard deviations."""
NUM_NODES = 7
"""Per coordinate, of those given x."""
FAR = 0.02
"""Height of a corrected density at the ends of the grid, relative to the largest, from which on it
is not believed."""


def corrected_moments(state: Propagation) -> tuple[FloatArray, FloatArray]:
    """(step,): means and variances of reals; those of the Gaussian where there is no correction."""
    solved, sites = state.solved, state.sites
    mean, variance = solved.mean.copy(), solved.covariance[: len(solved.mean)].copy()
    total, count = np.zeros((len(mean), len(GRID))), np.zeros(len(mean), dtype=np.int64)
    for number, piece in enumerate(sites.pieces):
        functions = piece.numeric
        if not isinstance(functions, FunctionSites) or functions.is_bounded:
            continue
        size = NUM_NODES**piece.dim * len(GRID) * int(np.prod(functions.sizes, dtype=np.int64))
        for slot in range(piece.num_reals):
            for begin in range(0, len(piece), max(1, BLOCK // size)):
                own = np.arange(begin, min(begin + max(1, BLOCK // size), len(piece)))
                at = sites.step[sites.real_ptr[sites.first[number] + own] + slot]
                np.add.at(total, at, _log_ratios(state, number, own, slot))
                np.add.at(count, at, 1)
    some = np.flatnonzero(count > 1)
    logs = total[some] - 0.5 * GRID**2
    weight = np.exp(logs - logs.max(axis=1, keepdims=True))
    is_fine = np.maximum(weight[:, 0], weight[:, -1]) < FAR
    some, weight = some[is_fine], weight[is_fine]
    weight /= weight.sum(axis=1, keepdims=True)
    shift = weight @ GRID
    spread = weight @ GRID**2 - shift**2
    mean[some] += shift * np.sqrt(variance[some])
    variance[some] *= spread
    return mean, variance


def _log_ratios(state: Propagation, number: int, own: Ids, slot: int) -> FloatArray:
    """(site, place): log t(x) / q(x) of one real of some functions, up to a constant."""
    sites, piece = state.sites, state.sites.pieces[number]
    functions, current, n = piece.numeric, state.current(number, own), piece.num_reals
    assert isinstance(functions, FunctionSites)
    pairs = sites.pair_ptr[sites.first[number] + own][:, None] + slot * n + np.arange(n)
    covariance = state.solved.covariance[sites.pair[pairs]]  # of the real with those of its site
    along = covariance
    if piece.basis is not None:
        along = np.einsum("fi,fia->fa", covariance, piece.basis[piece.row[own]])
    along = along / np.sqrt(covariance[:, slot])[:, None]  # per standard deviation of the real
    size, turned = np.linalg.eigh(current.covariance - along[:, :, None] * along[:, None, :])
    root = turned * np.sqrt(np.maximum(size, 0.0))[:, None, :]
    line, weights = hermite_rule(NUM_NODES)
    nodes = np.stack(np.meshgrid(*[line] * piece.dim, indexing="ij"), axis=-1).reshape(
        -1, piece.dim
    )
    log_weights = np.log(weights)
    for _ in range(piece.dim - 1):
        log_weights = np.add.outer(log_weights, np.log(weights)).ravel()
    away = along[:, :, None, None] * GRID[:, None] + (root @ nodes.T)[:, :, None, :]
    away = away.reshape(len(own), piece.dim, -1)
    site = (current.pull[:, None] @ away)[:, 0]
    site -= 0.5 * ((current.precision @ away) * away).sum(axis=1)
    logs = functions.at_steps(own, current, away) - site[:, None]
    logs += log_states(state, sites.first[number] + own)[:, :, None]
    logs = np.logaddexp.reduce(logs, axis=1).reshape(len(own), len(GRID), -1) + log_weights
    top = logs.max(axis=2, keepdims=True)
    found = top[..., 0] + np.log(np.exp(logs - top).sum(axis=2))
    return current.copies[:, None] * (found - found.max(axis=1, keepdims=True))
