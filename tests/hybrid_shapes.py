"""Random models of discrete and real variables that hang together in different ways."""

from __future__ import annotations

import numpy as np

from hylift.graph import Domain, FactorGraph, categorical, real
from hylift.potentials import ConditionalQuadratic, Table

Factors = list[tuple[ConditionalQuadratic | Table, list[str]]]

PRIOR = ConditionalQuadratic.square(-0.5)


def pull(rng: np.random.Generator, *num_states: int, reals: int = 1) -> ConditionalQuadratic:
    """A quadratic with random means and precisions for each joint state."""
    root = rng.normal(size=(1, *num_states, reals, reals))
    A = -(root @ np.swapaxes(root, -1, -2))
    return ConditionalQuadratic(A, 2 * rng.normal(size=A.shape[:-1]), rng.normal(size=A.shape[:-2]))


def table(rng: np.random.Generator, *num_states: int) -> Table:
    return Table.shared(1.5 * rng.normal(size=num_states))


def built(states: dict[str, int], reals: list[str], factors: Factors) -> FactorGraph:
    domains: dict[str, Domain] = {name: categorical(size) for name, size in states.items()}
    factors = [*factors, *((PRIOR, [name]) for name in reals)]
    return FactorGraph.build(domains | dict.fromkeys(reals, real), factors)


def chain(size: int, rng: np.random.Generator) -> FactorGraph:
    """Reals in a row; each link depends on two neighbouring states."""
    states = {f"d{i}": 2 + i % 2 for i in range(size)}
    factors: Factors = []
    for i in range(size - 1):
        a, b = f"d{i}", f"d{i + 1}"
        factors.append((pull(rng, states[a], states[b], reals=2), [a, b, f"x{i}", f"x{i + 1}"]))
        factors.append((table(rng, states[a], states[b]), [a, b]))
    return built(states, [f"x{i}" for i in range(size)], factors)


def star(size: int, rng: np.random.Generator) -> FactorGraph:
    """Reals around one that all are tied to, each tie with a state."""
    states = {f"d{i}": 2 for i in range(size)}
    leaves = [f"x{i}" for i in range(size)]
    ties: Factors = [
        (pull(rng, 2, reals=2), [d, x, "hub"]) for d, x in zip(states, leaves, strict=True)
    ]
    return built(states, ["hub", *leaves], ties)


def couplings(size: int, rng: np.random.Generator) -> FactorGraph:
    """Every state pulls at every real; half of the pulls change no precision."""
    states = {f"d{i}": 2 for i in range(size)}
    reals = [f"x{i}" for i in range(size)]
    factors: Factors = [(table(rng, 2, 2), [f"d{i}", f"d{i + 1}"]) for i in range(size - 1)]
    for i, d in enumerate(states):
        for x in reals:
            slope = rng.normal(size=(1, 2, 1))
            bent = -rng.random((1, 2, 1, 1)) * (i % 2)
            factors.append((ConditionalQuadratic(bent, slope, np.zeros((1, 2))), [d, x]))
    return built(states, reals, factors)


def regime(size: int, rng: np.random.Generator) -> FactorGraph:
    """A state that all links of a chain of reals depend on, and a state of each."""
    states = {"r": 3} | {f"d{i}": 2 for i in range(size)}
    factors: Factors = [
        (pull(rng, 3, reals=2), ["r", f"x{i}", f"x{i + 1}"]) for i in range(size - 1)
    ]
    factors += [(pull(rng, 2), [f"d{i}", f"x{i}"]) for i in range(size)]
    return built(states, [f"x{i}" for i in range(size)], factors)


def scales(size: int, rng: np.random.Generator) -> FactorGraph:
    """States that multiply a precision by 1e10."""
    states = {f"d{i}": 2 for i in range(size)}
    factors: Factors = []
    for i, d in enumerate(states):
        A = np.array([-0.5, -0.5e10])[None, :, None, None]
        mean = rng.normal() * np.array([1.0, 1e-5])
        b = -2 * A[..., 0] * mean[None, :, None]
        c = A[..., 0, 0] * mean**2 + np.array([0.0, 11.0])
        factors.append((ConditionalQuadratic(A, b, c), [d, "x"]))
        factors.append((table(rng, 2, 2), [d, f"d{(i + 1) % size}"]))
    return built(states, ["x"], factors)


MAKERS = [chain, star, couplings, regime, scales]
