"""Evidence on open predicates: observations of variables, and factors where it is soft."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hylift.graph import Evidence, FactorGroup
from hylift.grounding.atoms import AtomNumbers
from hylift.grounding.world import World
from hylift.potentials import Table


@dataclass(frozen=True, slots=True)
class Observations:
    """What a world's evidence says about the variables of a graph."""

    evidence: Evidence
    groups: tuple[FactorGroup, ...]
    """Likelihoods of Booleans known by a probability, and states that are excluded."""
    num_observed: Mapping[str, int]
    """By predicate: atoms that are observed without error."""
    num_measured: Mapping[str, int]
    """By predicate: atoms that are measured with an error, and stay hidden."""
    only_true: frozenset[str]
    """Boolean predicates of which the evidence names true atoms and no others."""
    num_unused: int
    """Observations of atoms that stand in no factor."""


def observations(world: World, numbers: Mapping[str, AtomNumbers]) -> Observations:
    """The evidence of all open predicates."""
    parts: list[Evidence] = []
    groups: list[FactorGroup] = []
    num_observed: dict[str, int] = {}
    num_measured: dict[str, int] = {}
    only_true: list[str] = []
    num_unused = 0
    for name, table in world.evidence.items():
        if name in world.closed or name not in numbers:
            continue
        ids, (value, sd) = _located(numbers[name], table.arrays(world.connection))
        used = ids >= 0
        num_unused += int(np.count_nonzero(~used))
        ids, value, sd = ids[used], value[used], sd[used]
        soft = np.zeros(len(ids), dtype=bool)
        if numbers[name].space.predicate.unique is None and numbers[name].space.domain.is_discrete:
            soft = (value > 0) & (value < 1)
            if len(value) and (value == 1).all():
                only_true.append(name)
        if soft.any():
            groups.append(_likelihoods(name, ids[soft], value[soft]))
        parts.append(Evidence.of(ids[~soft], value[~soft], sd[~soft] ** 2))
        num_observed[name], num_measured[name] = parts[-1].num_observed, parts[-1].num_measured
        if table.excluded is not None:
            ids, (value, _) = _located(numbers[name], table.arrays(world.connection, excluded=True))
            num_states = numbers[name].space.domain.num_states
            if (ids >= 0).any():
                groups.append(_exclusions(name, ids[ids >= 0], value[ids >= 0], num_states))
    evidence = Evidence.of(
        np.concatenate([np.zeros(0, np.int32), *(part.variable for part in parts)]),
        np.concatenate([np.zeros(0), *(part.value for part in parts)]),
        np.concatenate([np.zeros(0), *(part.var for part in parts)]),
    )
    return Observations(
        evidence, tuple(groups), num_observed, num_measured, frozenset(only_true), num_unused
    )


def _located(
    numbers: AtomNumbers, arrays: tuple[NDArray[Any], NDArray[Any], NDArray[Any]]
) -> tuple[NDArray[np.int32], tuple[NDArray[np.float64], NDArray[np.float64]]]:
    """The variable of each row of evidence (-1: none), with its value and standard deviation."""
    arguments, value, sd = arrays
    codes = numbers.space.codes(list(arguments.T), len(arguments))
    return numbers.ids(codes), (value, sd)


def _likelihoods(name: str, ids: NDArray[np.int32], prob: NDArray[np.float64]) -> FactorGroup:
    """A factor p : 1 - p for each Boolean that is true with probability p, as far as seen."""
    distinct, row = np.unique(prob, return_inverse=True)
    table = Table(np.log(np.stack([1 - distinct, distinct], axis=1)))
    return FactorGroup(table, ids[:, None], row.astype(np.int32), label=f"evidence on {name}")


def _exclusions(
    name: str, ids: NDArray[np.int32], state: NDArray[np.float64], num_states: int
) -> FactorGroup:
    """A factor that is impossible in the state which evidence says does not hold."""
    distinct, row = np.unique(state, return_inverse=True)
    table = np.zeros((len(distinct), num_states))
    table[np.arange(len(distinct)), distinct.astype(np.int64)] = -np.inf
    return FactorGroup(
        Table(table), ids[:, None], row.astype(np.int32), label=f"evidence on {name}"
    )
