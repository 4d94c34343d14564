"""Marginals of a final state: beliefs of states, and tilted mixtures of reals."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hylift.inference.expectation.bounded import by_functions, within_bounds
from hylift.inference.expectation.corrected import corrected_moments
from hylift.inference.expectation.joint import FloatArray, Ids
from hylift.inference.expectation.kernels import mixtures as kernels
from hylift.inference.expectation.state import Propagation
from hylift.posterior import GaussianMixture
from hylift.posterior.marginals import Batches, categoricals

MOST_COMPONENTS = 64
"""Of a tilted marginal; the least probable states are one component together."""


def marginals(state: Propagation) -> Batches:
    """Variables of the graph and their marginals, in batches."""
    points = state.sites.points
    integrated = by_functions(state)
    is_done = np.zeros(points.graph.num_variables, dtype=bool)
    for ids, _ in integrated:
        is_done[ids] = True
    found = [*categoricals(points.graph.variables, points.first[:-1], state.probs()), *integrated]
    for ids, mixture in _mixtures(state):
        left = np.flatnonzero(~is_done[ids])
        if len(left):
            found += within_bounds(state, ids[left], mixture[left])
    return found


def _mixtures(state: Propagation) -> list[tuple[NDArray[Any], GaussianMixture]]:
    """For each real, the mixture of the site whose states tell most about it."""
    sites, joint, solved = state.sites, state.sites.joint, state.solved
    num_reals, share, kept = len(joint.real), np.zeros(len(sites.step)), state.tilted
    own = kept._replace(candidate=kept.candidate.copy(), log_norm=kept.log_norm.copy())
    tilted = sites.room(), sites.layout, state.now, own
    kernels.separations(np.flatnonzero(sites.dim > 0), *tilted, solved.covariance, share)
    slot = _most_telling(sites.step, share, num_reals)
    alone = np.flatnonzero(slot < 0)
    plain = GaussianMixture(np.ones(1), *(p[alone, None] for p in corrected_moments(state)))
    batches = [(joint.real[alone], plain)] if len(alone) else []
    steps = np.flatnonzero(slot >= 0)
    site = np.searchsorted(sites.real_ptr, slot[steps], side="right") - 1
    count = sites.terms.num_joint[site]
    for size in np.unique(count).tolist():
        chosen = np.flatnonzero(count == size)
        at, places = steps[chosen], np.arange(len(chosen)) * size
        room = np.zeros((3, len(chosen) * size))
        within = slot[at] - sites.real_ptr[site[chosen]]
        whole = solved.mean, solved.covariance
        kernels.mixtures(site[chosen], within, *tilted, *whole, places, *room)
        weights, means, variances = _fewer(*room.reshape(3, len(chosen), size))
        batches.append((joint.real[at], GaussianMixture(weights, means, variances)))
    return batches


def _most_telling(step: Ids, share: FloatArray, num_reals: int) -> Ids:
    """(real,): the first slot of it with the largest share; -1 where there is none above 0."""
    best = np.zeros(num_reals)
    np.maximum.at(best, step, share)
    slot = np.full(num_reals, -1, dtype=np.int64)
    hits = np.flatnonzero((share == best[step]) & (share > 0))[::-1]
    slot[step[hits]] = hits
    return slot


def _fewer(
    weights: FloatArray, means: FloatArray, variances: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Mixtures (real, component) of at most `MOST_COMPONENTS`, with the same moments."""
    if weights.shape[1] <= MOST_COMPONENTS:
        return weights, means, variances
    order = np.argsort(-weights, axis=1, kind="stable")
    weights, means, variances = (
        np.take_along_axis(part, order, axis=1) for part in (weights, means, variances)
    )
    last = slice(MOST_COMPONENTS - 1, None)
    total = weights[:, last].sum(axis=1)
    share = weights[:, last] / np.where(total > 0, total, 1.0)[:, None]
    middle = np.where(total > 0, (share * means[:, last]).sum(axis=1), means[:, 0])
    square = variances[:, last] + (means[:, last] - middle[:, None]) ** 2
    spread = np.where(total > 0, (share * square).sum(axis=1), variances[:, 0])
    first = slice(0, MOST_COMPONENTS - 1)
    joined = [(weights, total), (means, middle), (variances, spread)]
    kept = [np.concatenate([part[:, first], one[:, None]], axis=1) for part, one in joined]
    return kept[0], kept[1], kept[2]
