"""Evidence on open predicates: observations of variables, and factors where it is soft."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hylift.graph import Evidence, FactorGroup
from hylift.grounding.atoms import AtomNumbers, AtomSpace
from hylift.grounding.world import World
from hylift.potentials import Table


@dataclass(frozen=True, slots=True)
class UnusedEvidence:
    """Observed atoms of one predicate that are in no factor."""

    predicate: str
    num_unused: int
    num_observed: int
    """Of all atoms with evidence."""
    example: str
    """One that is in no factor."""
    in_rules: str | None
    """The atom in factors that is most like it, where none is observed; None if there is none."""

    @property
    def is_all(self) -> bool:
        """Whether the evidence has no effect at all."""
        return self.num_unused == self.num_observed

    def __str__(self) -> str:
        count = f"{self.num_observed:,}"
        if self.is_all and self.num_observed == 1:
            return f"{self.predicate}: its only observed atom, {self.example}, is in no ground rule"
        if self.is_all:
            said = f"none of its {count} observed atoms is in a ground rule"
        else:
            are = "is" if self.num_unused == 1 else "are"
            said = f"{self.num_unused:,} of its {count} observed atoms {are} in no ground rule"
        return f"{self.predicate}: {said}, e.g. {self.example}"


@dataclass(frozen=True, slots=True)
class Observations:
    """What a world's evidence says about the variables of a graph."""

    evidence: Evidence
    groups: tuple[FactorGroup, ...]
    """Likelihoods of Booleans known by a probability, and states that are excluded."""
    num_observed: Mapping[str, int]
    num_measured: Mapping[str, int]
    """Atoms per predicate; measured are those with an error."""
    only_true: frozenset[str]
    """Boolean predicates of which the evidence names true atoms only."""
    unused: tuple[UnusedEvidence, ...]


def observations(world: World, numbers: Mapping[str, AtomNumbers]) -> Observations:
    """The evidence on variables, given their numbers by predicate."""
    parts = [Evidence.none()]
    groups: list[FactorGroup] = []
    num_observed: dict[str, int] = {}
    num_measured: dict[str, int] = {}
    only_true: list[str] = []
    unused: list[UnusedEvidence] = []
    for name, found in world.evidence.items():
        space = numbers[name].space
        codes, ids = _located(numbers[name], found.ids)
        used = ids >= 0
        ids, value, sd = ids[used], found.value[used], found.sd[used]
        soft = np.zeros(len(ids), dtype=bool)
        if space.predicate.unique is None and space.domain.is_discrete:
            soft = (value > 0) & (value < 1)
            if len(value) and (value == 1).all():
                only_true.append(name)
        if soft.any():  # a factor p : 1 - p for each Boolean that is true with probability p
            prob, row = np.unique(value[soft], return_inverse=True)
            groups.append(_factors(name, ids[soft], row, np.log(np.stack([1 - prob, prob], 1))))
        parts.append(Evidence.of(ids[~soft], value[~soft], sd[~soft] ** 2))
        num_observed[name], num_measured[name] = parts[-1].num_observed, parts[-1].num_measured
        if found.excluded is not None:
            excluded, states = found.excluded
            others, ids = _located(numbers[name], excluded)
            codes = np.union1d(codes, others)
            used = numbers[name].ids(codes) >= 0
            if (ids >= 0).any():
                state, row = np.unique(states[ids >= 0], return_inverse=True)
                log_table = np.zeros((len(state), space.domain.num_states))
                log_table[np.arange(len(state)), state.astype(np.int64)] = -np.inf
                groups.append(_factors(name, ids[ids >= 0], row, log_table))
        if not used.all():
            unused.append(_unused(numbers[name], codes, used))
    evidence = Evidence.of(
        *(
            np.concatenate([getattr(part, column) for part in parts])
            for column in ("variable", "value", "var")
        )
    )
    return Observations(
        evidence, tuple(groups), num_observed, num_measured, frozenset(only_true), tuple(unused)
    )


def _located(
    numbers: AtomNumbers, arguments: NDArray[np.int32]
) -> tuple[NDArray[Any], NDArray[np.int32]]:
    """The code of each atom (row, argument), and its variable; -1: none."""
    codes = numbers.space.codes(list(arguments.T), len(arguments))
    return codes, numbers.ids(codes)


def _unused(numbers: AtomNumbers, codes: NDArray[Any], used: NDArray[np.bool_]) -> UnusedEvidence:
    """The observed atoms in no factor, with an example."""
    space = numbers.space
    first = space.arguments(codes[~used][:1])
    in_rules = None
    if numbers.codes is not None and numbers.count and not used.any():
        others = space.arguments(numbers.codes)
        alike = np.count_nonzero(others == first, axis=1)
        in_rules = _name(space, others[[np.argmax(alike)]])
    num_unused = int(np.count_nonzero(~used))
    name = space.predicate.name
    return UnusedEvidence(name, num_unused, len(codes), _name(space, first), in_rules)


def _name(space: AtomSpace, arguments: NDArray[np.int32]) -> str:
    return str(space.block(arguments).render(np.zeros(1, dtype=np.int64))[0])


def _factors(
    name: str, ids: NDArray[np.int32], row: NDArray[Any], log_table: NDArray[np.float64]
) -> FactorGroup:
    """A factor for each variable, with its row of the table."""
    return FactorGroup(
        Table(log_table), ids[:, None], row.astype(np.int32), label=f"evidence on {name}"
    )
