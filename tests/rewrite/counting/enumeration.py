"""Expectations in small discrete graphs, by enumeration."""

from __future__ import annotations

import itertools

import numpy as np
from numpy.typing import NDArray

from hylift.graph import FactorGraph, FactorGroup


def expectations(graph: FactorGraph, group: FactorGroup) -> NDArray[np.float64]:
    """(factor,): expected log-values of a group over the variables of a discrete graph."""
    states = [range(size) for size in graph.variables.num_states]
    worlds = np.array(list(itertools.product(*states)), dtype=float)
    logs = np.array([graph.log_density(world) for world in worlds])
    share = np.exp(logs - logs.max())
    total = np.zeros(len(group))
    for weight, world in zip(share / share.sum(), worlds, strict=True):
        if weight > 0:
            total += weight * group.log_values(world)
    return total


def random_tables(
    rng: np.random.Generator, num_states: list[int], scopes: list[list[int]], hard: float = 0.0
) -> list[FactorGroup]:
    """A table per scope, in which entries are impossible with probability `hard`."""
    from hylift.potentials import Table

    groups = []
    for scope in scopes:
        table = rng.normal(size=[num_states[variable] for variable in scope])
        table[rng.random(table.shape) < hard] = -np.inf
        table[(0,) * table.ndim] = 0.0
        groups.append(FactorGroup(Table.shared(table), np.array([scope], dtype=np.int32)))
    return groups
