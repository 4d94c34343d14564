"""Hybrid models of Booleans and reals: random ones, as expectation propagation is measured on, and
one in which rounding matters."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from hylift import ground, parse
from hylift.graph import FactorGraph, boolean, real
from hylift.potentials import ConditionalQuadratic, Table


def random_hybrid(seed: int, coupling: float, size: int = 9) -> FactorGraph:
    """As many Booleans as reals, with weights, pairs of each kind, and switched Gaussians."""
    rng = np.random.default_rng(seed)
    states, reals = ([f"{kind}{i}" for i in range(size)] for kind in "bx")
    pairs = np.array(list(combinations(range(size), 2)))

    def some_pairs(names: list[str]) -> list[list[str]]:
        chosen = pairs[rng.permutation(len(pairs))[:size]]
        return [[names[i], names[j]] for i, j in chosen]

    places = sorted({(rng.integers(size), rng.integers(size)) for _ in range(size + size // 3)})
    mean = coupling * rng.normal(size=(len(places), 2))
    var = np.exp(0.5 * rng.normal(size=(len(places), 2)))
    switched = ConditionalQuadratic(
        (-0.5 / var)[..., None, None], (mean / var)[..., None], -0.5 * (mean**2 / var + np.log(var))
    )
    own = ConditionalQuadratic(
        np.full((size, 1, 1), -0.5), rng.normal(size=(size, 1)), np.zeros(size)
    )
    near = ConditionalQuadratic.squared_distance(
        0.5 * coupling * rng.random(size), [1.0, -1.0], rng.normal(size=size)
    )
    return FactorGraph.build(
        dict.fromkeys(states, boolean) | dict.fromkeys(reals, real),
        [
            (Table(rng.normal(size=(size, 2))), [[name] for name in states]),
            (Table(0.5 * coupling * rng.normal(size=(size, 2, 2))), some_pairs(states)),
            (own, [[name] for name in reals]),
            (near, some_pairs(reals)),
            (switched, [[states[i], reals[j]] for i, j in places]),
        ],
    )


def tied_levels(count: int, var: float) -> FactorGraph:
    """Levels that are tied so closely, one to the next, that subtraction leaves no digits."""
    return ground(
        parse(f"""
            step = {{0, ..., {count - 1}}}
            Up(step)
            level(step): real
            normal(level(0) | 0, 8000)
            normal(level(s+1) | level(s) + 1.5*Up(s), {var} + {var}*Up(s))
            0.5  Up(s) <=> Up(s+1)
            -0.4  Up(s)
            0.1  level({count - 1}) = 7
        """)
    )
