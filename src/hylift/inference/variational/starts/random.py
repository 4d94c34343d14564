"""Random mixtures, and mixtures around a Gaussian."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from hylift.inference.variational.problem import FloatArray, Mixtures, Problem
from hylift.inference.variational.problem.families import as_betas
from hylift.inference.variational.starts.mean_field import (
    Sweeper,
    always,
    coordinate_ascent,
    neutral,
    ranked,
)
from hylift.proper.gaussian import GaussianForm

LEAST_VERTICES, MOST_VERTICES = 4, 64
VERTEX_WORK = 1_000_000
"""Slots that are gone over for vertices beyond the least: a tenth of a second."""
REAL_SWEEPS, VERTEX_SWEEPS = 2, 3
FEW_SWEEPS = 5
"""Sweeps that tell single products apart."""
MUCH_WIDER = 50.0
"""How many times as wide as what is found an interval may be, to be searched as a whole."""
NEARBY = 0.5
"""Standard deviations by which the components of a mixture of products are moved apart."""
WIDTHS = (1.0, 0.45)
"""How far mixtures around a Gaussian reach, one against the other."""


def random_starts(
    problem: Problem,
    num_starts: int,
    num_components: int,
    rng: np.random.Generator,
    products: list[Mixtures],
) -> Mixtures:
    """Components that know little: wide, and anywhere in the intervals of the reals.

    Of several components, the first start has the best of some products of Gaussians, and the
    second the very best of them alone, so that a mixture ends no worse than a single product.
    """
    layout = problem.layout
    shape = (num_starts, layout.num_entries, num_components)
    entries = rng.uniform(0.1, 1.0, shape)
    layout.normalize(entries, layout.discrete)
    reals = layout.reals
    found = [product.entries[0, :, 0] for product in products]
    lower, upper = box(problem, found)
    span = (upper - lower)[reals][:, None]
    place = rng.random((num_starts, len(reals), num_components))
    at = layout.first[reals]
    entries[:, at] = lower[reals][:, None] + span * place
    entries[:, at + 1] = (span / 6) ** 2
    if num_components > 1:
        entries[0] = np.stack([found[k % len(found)] for k in range(num_components)], axis=1)
        entries[1:2] = found[0][:, None]
        gaussians = problem.with_betas(np.zeros(len(layout), dtype=bool))
        first = Mixtures(np.ones((len(entries[:2]), num_components)), entries[:2])
        entries[:2] = apart(gaussians, first, rng).entries
    weights = np.full((num_starts, num_components), 1.0 / num_components)
    return as_betas(problem, Mixtures(weights, entries))


def apart(problem: Problem, q: Mixtures, rng: np.random.Generator) -> Mixtures:
    """Mixtures of Gaussians with all components but the first moved a little."""
    layout = problem.layout
    reals = layout.reals
    at = layout.first[reals]
    entries = q.entries.copy()
    noise = rng.normal(size=(q.num_starts, len(at), q.num_components))
    noise[:, :, 0] = 0.0
    entries[:, at] += NEARBY * np.sqrt(entries[:, at + 1]) * noise
    bounds = layout.lower[reals][:, None], layout.upper[reals][:, None]
    entries[:, at] = np.clip(entries[:, at], *bounds)
    return Mixtures(q.weights, entries)


def ranked_products(
    problem: Problem,
    rng: np.random.Generator,
    hard: float,
    product: Mixtures,
    count: int,
    go_on: Callable[[], bool] = always,
) -> list[Mixtures]:
    """A product of Gaussians and so many others from random states, after a few sweeps each; put
    together anew, so that the first has the best of all in every part of the graph that nothing
    connects to the rest, and so on."""
    gaussians = problem.with_betas(np.zeros(len(problem.layout), dtype=bool))
    others = vertices(gaussians, rng, hard, count, go_on)
    starts = [product, *(Mixtures(product.weights, entries[None, :, None]) for entries in others)]
    few = [
        coordinate_ascent(gaussians, start, hard, most_sweeps=FEW_SWEEPS, go_on=go_on)[0]
        for start in starts
    ]
    found = ranked(Sweeper.of(gaussians), [q.entries[0, :, 0] for q in few], hard)
    return [Mixtures(product.weights, entries[None, :, None]) for entries in found]


def box(problem: Problem, products: list[FloatArray]) -> tuple[FloatArray, FloatArray]:
    """(variable,): between which values to look for each real.

    The bounds, where it has them and they are not much further apart than what is found; else
    what some products (entry,) lead to.
    """
    layout = problem.layout
    reals = layout.reals
    at = layout.first[reals]
    found = np.stack(products)
    mean, sd = found[:, at], np.sqrt(found[:, at + 1])
    low = np.maximum((mean - 2 * sd).min(axis=0), layout.lower[reals])
    high = np.minimum((mean + 2 * sd).max(axis=0), layout.upper[reals])
    known = layout.upper[reals] - layout.lower[reals] <= MUCH_WIDER * (high - low)
    lower, upper = layout.lower.copy(), layout.upper.copy()
    lower[reals] = np.where(known, layout.lower[reals], low)
    upper[reals] = np.where(known, layout.upper[reals], high)
    return lower, upper


def num_vertices(problem: Problem) -> int:
    """How many are worth looking at: many where they are cheap."""
    work = (REAL_SWEEPS + VERTEX_SWEEPS) * (1 + len(problem.terms.slots))
    return int(np.clip(VERTEX_WORK // work, LEAST_VERTICES, MOST_VERTICES))


def vertices(
    problem: Problem,
    rng: np.random.Generator,
    hard: float,
    count: int,
    go_on: Callable[[], bool] = always,
) -> list[FloatArray]:
    """(entry,) each: products of Gaussians to which coordinate ascent leads from random states.

    At least one, and fewer than `count` if there is no time to go on.
    """
    problem = problem.with_betas(np.zeros(len(problem.layout), dtype=bool))
    layout, sweeper = problem.layout, Sweeper.of(problem)
    discrete = layout.discrete
    found: list[FloatArray] = []
    while len(found) < count and (not found or go_on()):
        entries = neutral(problem).entries
        state = (rng.random(len(discrete)) * layout.size[discrete]).astype(np.int64)
        entries[0, layout.entries_of(discrete), 0] = 0.02
        entries[0, layout.first[discrete] + state, 0] = 0.98
        # Reals come first, or the states would follow them instead of being random.
        for number in range(REAL_SWEEPS + VERTEX_SWEEPS):
            sweeper.sweep(entries, hard, only_reals=number < REAL_SWEEPS)
        found.append(entries[0, :, 0])
    return found


def displaced(
    product: Mixtures, form: GaussianForm, num_components: int, most_starts: int
) -> Mixtures:
    """A Gaussian's best product, and copies of it moved to both sides, all reals together: in the
    directions in which they vary together.

    The first start is right where they vary much more together than alone, the second where they
    hardly do.
    """
    furthest = min(0.45 * num_components - 0.05, 3.5) * np.array(WIDTHS[:most_starts])
    offset = np.linspace(-furthest, furthest, num_components, axis=1)  # (start, component)
    entries = np.empty((len(offset), product.entries.shape[1], num_components))
    sd = form.signs() / np.sqrt(form.precision)
    entries[:, 0::2] = product.entries[:, 0::2] + sd[:, None] * offset[:, None]
    entries[:, 1::2] = 0.9 * product.entries[:, 1::2]
    weights = np.exp(-(offset**2) / 4)
    return Mixtures(weights / weights.sum(axis=1, keepdims=True), entries)
