"""Random mixtures, and mixtures around a Gaussian."""

from __future__ import annotations

import numpy as np

from hylift.inference.variational.kernels.coordinate import slots_of_variables, sweep
from hylift.inference.variational.problem import FloatArray, Mixtures, Problem
from hylift.inference.variational.starts.gaussian import GaussianForm
from hylift.inference.variational.starts.mean_field import neutral
from hylift.posterior.mixture.layout import BETA, CATEGORICAL, GAUSSIAN

NUM_VERTICES = 8
VERTEX_SWEEPS = 3
NEARBY = 0.5
"""Standard deviations by which the components of a mixture of products are moved apart."""


def random_starts(
    problem: Problem, num_starts: int, num_components: int, rng: np.random.Generator, hard: float
) -> Mixtures:
    """Components that know little: wide, and anywhere in the intervals of the reals."""
    layout = problem.layout
    shape = (num_starts, layout.num_entries, num_components)
    entries = rng.uniform(0.1, 1.0, shape)
    discrete = np.flatnonzero(layout.family == CATEGORICAL)
    width = np.diff(layout.first)
    inside = np.repeat(layout.family == CATEGORICAL, width)
    if len(discrete):
        ends = np.concatenate([[0], np.cumsum(width[discrete])])[:-1]
        total = np.add.reduceat(entries[:, inside], ends, axis=1)
        entries[:, inside] /= np.repeat(total, width[discrete], axis=1)
    lower, upper = box(problem, rng, hard)
    gaussian = np.flatnonzero(layout.family == GAUSSIAN)
    span = (upper - lower)[gaussian][:, None]
    place = rng.random((num_starts, len(gaussian), num_components))
    entries[:, layout.first[gaussian]] = lower[gaussian][:, None] + span * place
    entries[:, layout.first[gaussian] + 1] = (span / 6) ** 2
    betas = np.flatnonzero(layout.family == BETA)
    # The same mean and standard deviation in the interval: 0.1 to 0.9, and about a sixth.
    mean = 0.1 + 0.8 * rng.random((num_starts, len(betas), num_components))
    size = np.maximum(36 * mean * (1 - mean) - 1, 1.0 / np.minimum(mean, 1 - mean))
    entries[:, layout.first[betas]] = mean * size
    entries[:, layout.first[betas] + 1] = (1 - mean) * size
    return Mixtures(np.full((num_starts, num_components), 1.0 / num_components), entries)


def box(problem: Problem, rng: np.random.Generator, hard: float) -> tuple[FloatArray, FloatArray]:
    """(variable,): between which values to look for each real.

    The bounds where it has them, else what a few sweeps from random states lead to.
    """
    lower, upper = problem.layout.lower, problem.layout.upper
    open_ended = (problem.layout.family == GAUSSIAN) & ~(np.isfinite(lower) & np.isfinite(upper))
    if not open_ended.any():
        return lower, upper
    found = np.stack([*vertices(problem, rng, hard, NUM_VERTICES)])
    at = problem.layout.first[np.flatnonzero(open_ended)]
    mean, sd = found[:, at], np.sqrt(found[:, at + 1])
    low, high = lower.copy(), upper.copy()
    low[open_ended] = np.maximum((mean - 2 * sd).min(axis=0), lower[open_ended])
    high[open_ended] = np.minimum((mean + 2 * sd).max(axis=0), upper[open_ended])
    return low, high


def vertices(
    problem: Problem, rng: np.random.Generator, hard: float, count: int
) -> list[FloatArray]:
    """(entry,) each: products of Gaussians to which coordinate ascent leads from random states."""
    problem = problem.with_betas(np.zeros(len(problem.layout), dtype=bool))
    terms, layout, limits = problem.terms, problem.layout, problem.limits
    start, edge, term_of = slots_of_variables(terms.slot_ptr, terms.slots, len(layout))
    width = np.diff(layout.first)
    grad_ptr = np.concatenate([[0], np.cumsum(width[terms.slots])])
    discrete = np.flatnonzero(layout.family == CATEGORICAL)
    found = []
    for _ in range(count):
        entries = neutral(problem).entries
        state = (rng.random(len(discrete)) * width[discrete]).astype(np.int64)
        entries[0, np.repeat(layout.family == CATEGORICAL, width), 0] = 0.02
        entries[0, layout.first[discrete] + state, 0] = 0.98
        for _ in range(VERTEX_SWEEPS):
            sweep(
                start, edge, term_of, terms.slot_ptr, terms.slots, terms.num_discrete, terms.base,
                terms.multiplicity, terms.theta, hard, layout.family, layout.first, layout.lower,
                layout.upper, limits.least, limits.most, problem.multiplicity, grad_ptr, 1.0,
                entries,
            )  # fmt: skip
        found.append(entries[0, :, 0])
    return found


def around_products(
    problem: Problem, num_components: int, rng: np.random.Generator, hard: float
) -> Mixtures | None:
    """A mixture of products that coordinate ascent finds, a little apart; None for a single one."""
    if num_components == 1:
        return None
    layout = problem.layout
    entries = np.stack(vertices(problem, rng, hard, num_components), axis=1)[None]
    at = layout.first[np.flatnonzero(layout.family != CATEGORICAL)]
    noise = rng.normal(size=(len(at), num_components))
    entries[0, at] += NEARBY * np.sqrt(entries[0, at + 1]) * noise
    weights = np.full((1, num_components), 1.0 / num_components)
    return Mixtures(weights, entries)


def displaced(product: Mixtures, form: GaussianForm, num_components: int) -> Mixtures:
    """A Gaussian's best product, and copies of it moved to both sides, all reals together: in the
    directions in which they vary together."""
    furthest = min(0.45 * num_components - 0.05, 3.5)
    offset = np.linspace(-furthest, furthest, num_components)
    entries = np.empty((1, product.entries.shape[1], num_components))
    sd = 1.0 / np.sqrt(form.precision)
    entries[0, 0::2] = product.entries[0, 0::2] + (form.signs() * sd)[:, None] * offset
    entries[0, 1::2] = 0.9 * product.entries[0, 1::2]
    weights = np.exp(-(offset**2) / 4)
    return Mixtures((weights / weights.sum())[None], entries)
