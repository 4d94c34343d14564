"""Convergence of chains: R-hat, effective sample sizes and standard errors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

FloatArray = NDArray[np.float64]

DISAGREE = 1.01
"""R-hat above which the standard error is estimated from the spread between chains."""

ALONE, FEW_GROUPS = 1.5, 3.0
"""Effective numbers of groups: below which one of them has nearly all the weight, or a few decide
for all."""

TAILS = (0.2, 0.1)
"""Shares of draws in a tail: further out, few are independent."""

MOST_STATES = 16
"""States that are diagnosed one by one; further ones share those of their number modulo this."""


@dataclass(frozen=True, slots=True, eq=False)
class Diagnostics:
    """Convergence diagnostics of chains; each is (variable,)."""

    mean: FloatArray
    sd: FloatArray
    mcse: FloatArray
    """Standard error of the mean."""
    r_hat: FloatArray
    """Between-chain over within-chain spread, each chain being split in two; 1 is best. Of a real
    that of normal scores of its ranks, or of those of its distances from the median, whichever is
    worse (Vehtari et al., Bayesian Analysis 16:667, 2021); of more than two states the worst."""
    ess: FloatArray
    """Effective sample size: of a real the smallest of its mean, ranks and two tails of 5 %, of
    more than two states the smallest of any."""
    sd_error: FloatArray
    """Standard error of the deviation of a real, relative to it; 0 for discrete variables."""


@dataclass(frozen=True, slots=True, eq=False)
class StandardErrors:
    """Standard errors of an answer; each is (hidden variable,).

    Those of few independent groups are widened: three of them are exceeded as often as three
    deviations of a normal distribution.
    """

    probability: FloatArray
    """Of the probability of a state, the largest of all states; NaN for reals."""
    mean: FloatArray
    """Of the mean of a real; NaN for discrete variables."""
    std: FloatArray
    """Of the deviation of a real, relative to it; NaN for discrete variables."""


def diagnosed(
    values: FloatArray, num_states: NDArray[Any], weights: FloatArray | None = None
) -> FloatArray:
    """(6, variable): the fields of `Diagnostics`, of values (chain, draw, variable).

    weights: (chain, variable), where draws of a chain have common ancestors, so that only chains
    are independent.
    """
    mean, sd = weighted_moments(values, weights)
    r_hat, ess, error = _convergence(values, weights)
    sd_error, is_real = np.zeros(len(mean)), num_states == 0
    if is_real.any():
        own = values[..., is_real]
        of_reals = None if weights is None else weights[:, is_real]
        r_hat[is_real], fewer, sd_error[is_real] = _of_reals(own, of_reals)
        ess[is_real] = np.minimum(ess[is_real], fewer)
    is_many = num_states > 2
    error[is_many] = 0.0
    for state in range(min(int(num_states.max(initial=0)), MOST_STATES)):
        # The mean of three or more states may stay constant while the states change.
        has = is_many & (num_states > state)
        if has.any():
            is_there = values[..., has] % MOST_STATES == state
            own_weights = None if weights is None else weights[:, has]
            worse, fewer, larger = _convergence(is_there.astype(np.float64), own_weights)
            r_hat[has] = np.maximum(r_hat[has], worse)
            ess[has] = np.minimum(ess[has], fewer)
            error[has] = np.maximum(error[has], larger)
    # A state that was never drawn may still have a probability of 1 / draws.
    least = np.where(num_states > 1, 1.0 / (values.shape[0] * values.shape[1]), 0.0)
    return np.stack([mean, sd, np.maximum(error, least), r_hat, ess, sd_error])


def _of_reals(
    values: FloatArray, weights: FloatArray | None
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """R-hat and effective draws of ranks and tails, and the relative error of the deviation."""
    flat = values.reshape(-1, values.shape[2])
    low, median, high = np.quantile(flat, [0.05, 0.5, 0.95], axis=0)
    scores = _scores(values)
    r_hat = np.maximum(split_r_hat(scores), split_r_hat(_scores(np.abs(values - median))))
    seen = [scores, (values <= low).astype(float), (values >= high).astype(float)]
    ess = np.minimum.reduce([_convergence(part, weights)[1] for part in seen])
    mean, sd = weighted_moments(values, weights)
    var = np.maximum(sd**2, np.finfo(float).tiny)
    return r_hat, ess, 0.5 * _error((values - mean) ** 2, weights) / var


def _scores(values: FloatArray) -> FloatArray:
    """Normal scores of the ranks of values (chain, draw, variable) among all draws."""
    flat = values.reshape(-1, values.shape[2])
    order, count = np.argsort(flat, axis=0, kind="stable"), len(flat)
    ordered, place = np.take_along_axis(flat, order, axis=0), np.arange(count)[:, None]
    # Equal values have equal ranks, the mean of those from their first to their last.
    is_new = np.ones((count + 1, flat.shape[1]), dtype=bool)
    is_new[1:-1] = ordered[1:] != ordered[:-1]
    first = np.maximum.accumulate(np.where(is_new[:-1], place, 0), axis=0)
    last = np.minimum.accumulate(np.where(is_new[1:], place, count)[::-1], axis=0)[::-1]
    ranks = np.empty(flat.shape)
    np.put_along_axis(ranks, order, 0.5 * (first + last) + 1.0, axis=0)
    return special.ndtri((ranks - 0.375) / (count + 0.25)).reshape(values.shape)


def _error(values: FloatArray, weights: FloatArray | None) -> FloatArray:
    if weights is None:
        return standard_error(values)
    return widened(len(values) - 1) * error_of_groups(values.mean(axis=1), weights)


def weighted_moments(
    values: FloatArray, weights: FloatArray | None = None
) -> tuple[FloatArray, FloatArray]:
    """(variable,): mean and deviation of values (chain, draw, variable), by weights of chains."""
    if weights is None:
        return values.mean(axis=(0, 1)), values.std(axis=(0, 1))
    mean = (weights * values.mean(axis=1)).sum(axis=0)
    return mean, np.sqrt((weights * ((values - mean) ** 2).mean(axis=1)).sum(axis=0))


def _convergence(
    values: FloatArray, weights: FloatArray | None
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Split R-hat, effective draws and standard error of the means of values (chain, draw, …)."""
    error = _error(values, weights)
    with np.errstate(divide="ignore", invalid="ignore"):
        ess = values.var(axis=(0, 1)) / error**2
    return split_r_hat(values), np.where(error > 0, ess, values.shape[0] * values.shape[1]), error


def tail_shape(values: FloatArray) -> FloatArray:
    """(variable,): the shape of the generalised Pareto distribution that values (draw, variable)
    have beyond a high quantile: 0 for exponential tails, and no variance from 1/2 on.

    By moments of logarithms (Dekkers, Einmahl and de Haan, Annals of Statistics 17:1833, 1989), the
    smaller one by two quantiles; NaN where they do not tell.
    """
    count, found = len(values), []
    above = np.sort(values - np.median(values, axis=0), axis=0)[::-1]
    with np.errstate(divide="ignore", invalid="ignore"):
        for number in (int(share * count) for share in TAILS):
            tail = np.log(above[:number] / above[number])
            first, second = tail.mean(axis=0), (tail**2).mean(axis=0)
            found.append(first + 1.0 - 0.5 / (1.0 - first**2 / second))
    return np.minimum(*found)


def split_r_hat(values: FloatArray) -> FloatArray:
    """(…): split R-hat of values (chain, draw, …); 1 for constant values."""
    halves = _halves(values)
    length = halves.shape[1]
    if length < 2:
        return np.full(values.shape[2:], np.inf)
    within = halves.var(axis=1, ddof=1).mean(axis=0)
    between = halves.mean(axis=1).var(axis=0, ddof=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        r_hat = np.sqrt((length - 1) / length + between / within)
    # The mean of equal numbers may differ from them by rounding.
    same = values.max(axis=(0, 1)) == values.min(axis=(0, 1))
    return np.where(same, 1.0, np.where(np.isnan(r_hat), np.inf, r_hat))


def standard_error(values: FloatArray) -> FloatArray:
    """(…): standard error of the mean of values (chain, draw, …), by batch means.

    Batches are about n^(2/3) draws long. Where the chains disagree, batches know too little, and
    the spread of the means of half-chains counts.
    """
    chains, draws = values.shape[:2]
    length = max(1, round(draws ** (2.0 / 3.0)))
    num_batches = draws // length
    # The first draws that do not fill a batch are left out.
    used = values[:, draws - num_batches * length :]
    batches = used.reshape(chains, num_batches, length, *values.shape[2:]).mean(axis=2)
    flat = batches.reshape(chains * num_batches, *values.shape[2:])
    error = flat.std(axis=0, ddof=1 if len(flat) > 1 else 0) / np.sqrt(len(flat))
    halves = _halves(values).mean(axis=1)
    spread = halves.std(axis=0, ddof=1) / np.sqrt(len(halves))
    error = np.where(split_r_hat(values) > DISAGREE, np.maximum(error, spread), error)
    same = values.max(axis=(0, 1)) == values.min(axis=(0, 1))
    return np.where(same, 0.0, error)


def batch_error(batches: FloatArray) -> FloatArray:
    """(…): standard error of the mean of all by their means over batches (chain, batch, …), or by
    those over half-chains where these spread more."""
    found = []
    for parts in (batches, _halves(batches).mean(axis=1)[None]):
        count = parts.shape[0] * parts.shape[1]
        found.append(parts.reshape(count, *parts.shape[2:]).std(axis=0, ddof=1) / np.sqrt(count))
    return np.maximum(*found)


def effective_groups(weights: FloatArray) -> FloatArray:
    """(…): effective number of groups with weights (group, …)."""
    return np.asarray(1.0 / (weights**2).sum(axis=0))


def variance_of_sums(weights: FloatArray) -> FloatArray:
    """(item,): the variance of the mean of Z over groups, relative to it, by their weights (group,
    item), which are their shares of the sum."""
    groups = len(weights)
    return np.asarray(((groups * weights - 1.0) ** 2).sum(axis=0) / (groups * (groups - 1)))


def few_decide(weights: FloatArray) -> NDArray[np.bool_]:
    """(…): true if a few groups have most of the weight (group, …)."""
    return effective_groups(weights) < min(FEW_GROUPS, 0.5 * len(weights))


def error_of_groups(means: FloatArray, weights: FloatArray) -> FloatArray:
    """(…): standard error of the weighted mean of the means of independent groups, (group, …)."""
    groups, mean = len(means), (weights * means).sum(axis=0)
    spread = (weights**2 * (means - mean) ** 2).sum(axis=0) * groups / (groups - 1)
    # Where one group has nearly all the weight, the weighted spread says nothing.
    is_alone = effective_groups(weights) < ALONE
    return np.sqrt(np.maximum(spread, np.where(is_alone, means.var(axis=0, ddof=1), 0.0)))


def by_weight(values: FloatArray, weights: FloatArray) -> FloatArray:
    """Values (group, draw, variable), with those of each group repeated by its weight (group,
    variable); variables with equal weights stay together."""
    groups, draws, count = values.shape
    if not count:
        return values
    weights, part = np.unique(weights, axis=1, return_inverse=True)
    last = np.cumsum(weights, axis=0)
    place = (np.arange(groups * draws)[:, None] + 0.5) / (groups * draws)
    group = np.minimum((place[None] > last[:, None]).sum(axis=0), groups - 1)
    own, number = np.take_along_axis(weights, group, 0), np.arange(weights.shape[1])
    share = (place - last[group, number]) / own + 1.0  # of the way through the group
    row = group * draws + np.clip(share * draws, 0, draws - 1).astype(np.int64)
    found = values.reshape(-1, count)[row[:, part.reshape(-1)], np.arange(count)]
    return found.reshape(values.shape)


def widened(freedom: float) -> float:
    """Factor for a standard error that is estimated with so many degrees of freedom.

    Three such errors are exceeded as often as three deviations of a normal distribution.
    """
    return float(-special.stdtrit(freedom, special.ndtr(-3.0)) / 3.0)


def _halves(values: FloatArray) -> FloatArray:
    """(2 chain, half of the draws, …)."""
    chains, draws = values.shape[:2]
    half = draws // 2
    used = values[:, draws - 2 * half :] if half else values[:, [0, 0]]
    return used.reshape(2 * chains, max(half, 1), *values.shape[2:])
