"""Random models that are too wide for small tables, and small enough for exact inference."""

from __future__ import annotations

from typing import Literal

import numpy as np

import hylift as hl
from hylift.graph import FactorGraph

Family = Literal["discrete", "hard", "gaussian", "hybrid", "bounded"]


def wide_model(family: Family, seed: int) -> FactorGraph:
    """A connected random model with about twice as many couplings as variables."""
    rng = np.random.default_rng([seed, *family.encode()])
    num_reals = {"discrete": 0, "hard": 0, "gaussian": 16, "hybrid": 4, "bounded": 2}[family]
    num_discrete = 0 if family == "gaussian" else {2: 4, 4: 9}.get(num_reals, 18)
    states = rng.integers(2, 4, num_discrete)
    factors: list[tuple[hl.Potential, list[str]]] = []
    for a, b in _pairs(rng, num_discrete):
        values = rng.normal(scale=1.5, size=(1, states[a], states[b]))
        if family == "hard":
            values[rng.random(values.shape) < 0.15] = -np.inf
            values[:, 0, 0] = 1.0  # the first states are possible together
        factors.append((hl.Table(values), [f"d{a}", f"d{b}"]))
    for v in range(num_reals):
        mean, var = rng.normal(scale=3.0), rng.uniform(0.5, 8.0)
        factors.append((hl.ConditionalQuadratic.gaussian([mean], [[var]]), [f"x{v}"]))
    for a, b in _pairs(rng, num_reals):
        tie = hl.ConditionalQuadratic.squared_distance(
            rng.uniform(0.05, 1.0), [1.0, rng.choice([-1.0, 1.0])], rng.normal()
        )
        factors.append((tie, [f"x{a}", f"x{b}"]))
    for d in range(num_discrete if num_reals else 0):
        for v in rng.choice(num_reals, 1 + int(rng.random() < 0.3), replace=False).tolist():
            factors.append((_sensor(rng, int(states[d])), [f"d{d}", f"x{v}"]))
    ends = [(hl.interval(-2.0, 1.5), hl.interval(0.0, 40.0))[v % 2] for v in range(num_reals)]
    reals = ends if family == "bounded" else [hl.real] * num_reals
    domains = {f"d{d}": hl.categorical(int(n)) for d, n in enumerate(states)}
    return FactorGraph.build(domains | {f"x{v}": r for v, r in enumerate(reals)}, factors)


def _pairs(rng: np.random.Generator, size: int) -> list[tuple[int, int]]:
    """A random tree, and as many links again."""
    tree = [(int(rng.integers(0, b)), b) for b in range(1, size)]
    more = [tuple(sorted(rng.choice(size, 2, replace=False).tolist())) for _ in range(size)]
    return sorted({*tree, *((a, b) for a, b in more)}) if size > 1 else []


def _sensor(rng: np.random.Generator, num_states: int) -> hl.ConditionalQuadratic:
    """A reading that is precise in the first state, and hardly informative in the others."""
    y, precision = rng.normal(scale=4.0), np.array([1.0, 0.02, 0.0])[:num_states]
    A, b = -0.5 * precision[None, :, None, None], (precision * y)[None, :, None]
    c = -0.5 * precision * y**2 + rng.normal(size=num_states)
    return hl.ConditionalQuadratic(A, b, c[None])
