"""Moments of reals in several functions, corrected for the shapes that a Gaussian has not.

With all factors put back at once, as if they were independent given a real x, its density is
q(x) Π_c t_c(x) / q(x), where t_c is tilted by factor c alone (Cseke and Heskes 2011).
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations

import numpy as np

from hylift.inference.expectation.bounded import log_states
from hylift.inference.expectation.coordinates import Piece
from hylift.inference.expectation.joint import FloatArray, Ids
from hylift.inference.expectation.numeric import BLOCK, FunctionSites
from hylift.inference.expectation.rules import product_grid
from hylift.inference.expectation.state import Propagation
from hylift.numerics.quadrature import hermite_rule
from hylift.numerics.segments import number_lists, slices

GRID = np.linspace(-5.0, 5.0, 21)
"""Places at which densities are taken, in standard deviations."""
NUM_NODES = 7
"""Per coordinate, of those given x."""
FAR = 0.02
"""Height of a corrected density at the ends of the grid, relative to the largest, from which on it
is not believed."""
FLAT = 1e-9
"""Share of a variance that is rounding."""


def corrected_moments(state: Propagation) -> tuple[FloatArray, FloatArray]:
    """(step,): means and variances of reals; those of the Gaussian where there is no correction.

    Two reals that are in the same functions, such as the difficulty and the slope of an item, are
    corrected together, x being both of them.
    """
    solved = state.solved
    mean, variance = solved.mean.copy(), solved.covariance[: len(solved.mean)].copy()
    for size, owner in enumerate(_together(state), start=1):
        _correct(state, size, owner, mean, variance)
    return mean, variance


def _pieces(state: Propagation) -> Iterator[tuple[int, Piece]]:
    """Functions without bounds."""
    for number, piece in enumerate(state.sites.pieces):
        if isinstance(piece.numeric, FunctionSites) and not piece.numeric.is_bounded:
            yield number, piece


def _together(state: Propagation) -> tuple[Ids, Ids]:
    """(step,): a number of each real in several functions, then of each pair of reals that are in
    the same ones; -1 elsewhere."""
    sites, num_reals = state.sites, len(state.solved.mean)
    alone, paired = np.full((2, num_reals), -1)
    places = [
        sites.step[sites.real_ptr[sites.first[number]] : sites.real_ptr[sites.first[number + 1]]]
        for number, _ in _pieces(state)
    ]
    if not places:
        return alone, paired
    step = np.concatenate(places)
    site = np.concatenate(
        [
            sites.first[number] + np.repeat(np.arange(len(piece)), piece.num_reals)
            for number, piece in _pieces(state)
        ]
    )
    order = np.lexsort((site, step))
    reals, owner, count = np.unique(step[order], return_inverse=True, return_counts=True)
    alike = number_lists(owner.astype(np.int64), site[order])[0]
    is_pair = (np.bincount(alike)[alike] == 2) & (count > 1)
    paired[reals[is_pair]] = alike[is_pair]
    is_alone = ~is_pair & (count > 1)
    alone[reals[is_alone]] = np.arange(np.count_nonzero(is_alone))
    return alone, paired


def _correct(
    state: Propagation, size: int, owner: Ids, mean: FloatArray, variance: FloatArray
) -> None:
    """Correct the moments of reals, one or two with the same number (step,) together."""
    if owner.max(initial=-1) < 0:
        return
    sites = state.sites
    grid = product_grid(GRID, size)
    total = np.zeros((int(owner.max()) + 1, len(grid)))
    root = np.zeros((len(total), size, size))  # of the covariance of x
    reals = np.zeros((len(total), size), dtype=np.int64)
    for number, piece in _pieces(state):
        first = sites.real_ptr[sites.first[number]]
        own = owner[sites.step[first + np.arange(len(piece) * piece.num_reals)]]
        own = own.reshape(len(piece), piece.num_reals)
        for slots in permutations(range(piece.num_reals), size):
            at = own[:, slots[0]]
            is_some = (at >= 0) & (own[:, slots] == at[:, None]).all(axis=1)
            steps = sites.step[
                sites.real_ptr[sites.first[number] + np.arange(len(piece))][:, None]
                + np.array(slots)
            ]
            is_some &= (np.diff(steps, axis=1) > 0).all(axis=1)
            chosen = np.flatnonzero(is_some)
            block = BLOCK // (NUM_NODES**piece.dim * len(grid))
            for some in (chosen[part] for part in slices(len(chosen), block)):
                ratios, roots = _log_ratios(state, number, some, list(slots), grid)
                np.add.at(total, at[some], ratios)
                root[at[some]], reals[at[some]] = roots, steps[some]
    logs = total - 0.5 * (grid**2).sum(axis=1)
    highest = logs.max(axis=1, keepdims=True)
    weight = np.exp(logs - np.where(np.isfinite(highest), highest, 0.0))
    at_end = (np.abs(grid) == GRID[-1]).any(axis=1)
    is_used = (root[:, 0, 0] > 0) & np.isfinite(highest[:, 0])
    fine = np.flatnonzero(is_used & (weight[:, at_end].max(axis=1) < FAR))
    weight, root, reals = weight[fine], root[fine], reals[fine]
    weight /= weight.sum(axis=1, keepdims=True)
    shift = weight @ grid
    spread = np.einsum("vg,gi,gj->vij", weight, grid, grid) - shift[:, :, None] * shift[:, None, :]
    mean[reals] += (root @ shift[..., None])[..., 0]
    variance[reals] = np.einsum("vai,vij,vaj->va", root, spread, root)


def _log_ratios(
    state: Propagation, number: int, own: Ids, slots: list[int], grid: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """(site, place): log t(x) / q(x) of some reals of some functions, up to a constant; and the
    roots of the covariances of x, in which places are measured."""
    sites, piece = state.sites, state.sites.pieces[number]
    functions, current, n = piece.numeric, state.current(number, own), piece.num_reals
    assert isinstance(functions, FunctionSites)
    pairs = sites.pair_ptr[sites.first[number] + own][:, None] + np.arange(n * n)
    covariance = state.solved.covariance[sites.pair[pairs]].reshape(-1, n, n)
    root = np.linalg.cholesky(covariance[:, slots][:, :, slots])
    along = covariance[:, :, slots]
    if piece.basis is not None:
        along = np.einsum("fia,fik->fak", piece.basis[piece.row[own]], along)
    along = np.swapaxes(np.linalg.solve(root, np.swapaxes(along, 1, 2)), 1, 2)
    left = current.covariance - along @ np.swapaxes(along, 1, 2)
    size, turned = np.linalg.eigh(left)
    whole = np.diagonal(current.covariance, axis1=1, axis2=2).max(axis=1, keepdims=True)
    kept = np.flatnonzero((size > FLAT * whole).any(axis=0))
    turned = turned[:, :, kept] * np.sqrt(np.maximum(size[:, kept], 0.0))[:, None, :]
    line, weights = hermite_rule(NUM_NODES)
    nodes, log_weights = product_grid(line, len(kept)), np.zeros(1)
    for _ in kept:
        log_weights = np.add.outer(log_weights, np.log(weights)).ravel()
    away = (along @ grid.T)[..., None] + (turned @ nodes.T)[:, :, None, :]
    away = away.reshape(len(own), piece.dim, -1)
    site = (current.pull[:, None] @ away)[:, 0]
    site -= 0.5 * ((current.precision @ away) * away).sum(axis=1)
    logs = functions.at_steps(own, current, away) - site[:, None]
    logs += log_states(state, sites.first[number] + own)[:, :, None]
    logs = np.logaddexp.reduce(logs, axis=1).reshape(len(own), len(grid), -1) + log_weights
    top = logs.max(axis=2, keepdims=True)
    top = np.where(np.isfinite(top), top, 0.0)
    with np.errstate(divide="ignore"):
        found = top[..., 0] + np.log(np.exp(logs - top).sum(axis=2))
    highest = found.max(axis=1, keepdims=True)
    return current.copies[:, None] * (found - np.where(np.isfinite(highest), highest, 0.0)), root
