"""Random small graphs with hard factors between discrete variables."""

from __future__ import annotations

import numpy as np

from hylift.graph import FactorGraph, FactorGroup, Names, Variables, boolean, categorical, real
from hylift.potentials import ConditionalQuadratic, Table


def hard_model(rng: np.random.Generator, *, reals: bool = True) -> FactorGraph:
    """Discrete variables, many of them tied by tables with zeros, and reals that depend on them."""
    count = int(rng.integers(2, 7))
    domains = [boolean if rng.random() < 0.6 else categorical(3) for _ in range(count)]
    domains += [real] * (2 if reals else 0)
    variables = Variables.of(domains, Names.numbered(len(domains)))
    sizes = variables.num_states
    groups = [
        FactorGroup(Table(rng.normal(size=(1, sizes[v]))), np.array([[v]])) for v in range(count)
    ]
    for _ in range(int(rng.integers(1, count + 1))):
        scope = rng.choice(count, int(rng.integers(1, min(count, 4) + 1)), replace=False)
        table = rng.normal(size=(1, *sizes[scope]))
        if rng.random() < 0.7:
            table[rng.random(table.shape) < 0.4] = -np.inf
        groups.append(FactorGroup(Table(table), scope[None]))
    for at in range(count, len(domains)):
        of = rng.choice(count, 2, replace=False)
        shape = (1, *sizes[of])
        c = rng.normal(size=shape)
        c[rng.random(shape) < 0.2] = -np.inf
        place = ConditionalQuadratic(-np.ones((*shape, 1, 1)), rng.normal(size=(*shape, 1)), c)
        groups.append(FactorGroup(place, np.array([[*of, at]])))
    return FactorGraph(variables, tuple(groups), log_constant=0.3)
