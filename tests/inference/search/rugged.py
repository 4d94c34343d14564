"""A hybrid model in which many assignments look best from nearby."""

from __future__ import annotations

import numpy as np

from hylift.graph import (
    FactorGraph,
    FactorGroup,
    Names,
    Variables,
    boolean,
    categorical,
    interval,
    real,
)
from hylift.potentials import ConditionalQuadratic, Table


def rugged(num_discrete: int = 60, num_reals: int = 40) -> FactorGraph:
    """Random tables, some of them hard in places, and conditional quadratics of two reals."""
    rng = np.random.default_rng(0)
    domains = (boolean, categorical(3), real, interval(-1, 2))
    half = num_discrete // 2
    counts = [half, num_discrete - half, num_reals // 2, num_reals - num_reals // 2]
    num = num_discrete + num_reals
    variables = Variables(
        domains, np.repeat(np.arange(4), counts), Names.numbered(num), np.ones(num)
    )

    def some(first: int, size: int, slots: int) -> np.ndarray:
        order = np.argsort(rng.random((150, size)), axis=1)
        return first + order[:, :slots]

    three = some(0, half, 3)
    pairs = np.concatenate([some(0, half, 1), some(half, num_discrete - half, 1)], axis=1)
    reals = some(num_discrete, num_reals, 2)
    gated = np.concatenate([some(half, num_discrete - half, 1), reals], axis=1)
    soft = rng.normal(size=(150, 2, 2, 2))
    hard = np.where(rng.random((150, 2, 3)) < 0.1, -np.inf, rng.normal(size=(150, 2, 3)))
    root = rng.normal(size=(150, 3, 2, 2))
    A = -root @ np.swapaxes(root, -1, -2)
    pull = ConditionalQuadratic(A, rng.normal(size=(150, 3, 2)), rng.normal(size=(150, 3)))
    hold = ConditionalQuadratic.squared_distance(0.1, [1.0], 0.5)
    return FactorGraph(
        variables,
        (
            FactorGroup(Table(soft), three),
            FactorGroup(Table(hard), pairs),
            FactorGroup(pull, gated),
            FactorGroup(hold, np.arange(num_discrete, num)[:, None]),
        ),
    )
