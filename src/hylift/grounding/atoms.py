"""Atoms of open predicates: numbered where a factor uses them, and observed."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hylift.errors import IntractableError
from hylift.graph import (
    Atoms,
    Domain,
    Evidence,
    FactorGroup,
    NameBlock,
    Variables,
    categorical,
)
from hylift.grounding.kernels import mark, write_slot
from hylift.grounding.world import World
from hylift.language.statements import PredicateDeclaration
from hylift.potentials import Table

MAX_DENSE = 1 << 26
"""Most possible atoms of a predicate that have a mark each; beyond, used ones are sorted."""

SPARSE = 16
"""Possible atoms per grounding beyond which sorting is cheaper than marking."""


@dataclass(frozen=True, slots=True)
class AtomSpace:
    """All possible atoms of a predicate, numbered with the last argument running fastest."""

    predicate: PredicateDeclaration
    places: tuple[int, ...]
    """Arguments that identify an atom: all but the one marked `!`."""
    constants: tuple[pa.StringArray, ...]
    constant_types: tuple[pa.DataType, ...]
    domain: Domain

    @classmethod
    def of(cls, world: World, predicate: PredicateDeclaration) -> AtomSpace:
        types = predicate.arguments
        places = tuple(place for place in range(len(types)) if place != predicate.unique)
        domain = predicate.domain
        if predicate.unique is not None:
            domain = categorical(world.constants[types[predicate.unique]].to_pylist())
        constants = tuple(world.constants[types[place]] for place in places)
        constant_types = tuple(world.constant_types[types[place]] for place in places)
        return cls(predicate, places, constants, constant_types, domain)

    @property
    def types(self) -> tuple[str, ...]:
        """Of the arguments that identify an atom."""
        return tuple(self.predicate.arguments[place] for place in self.places)

    @property
    def labels(self) -> tuple[str, ...]:
        """A name for each argument: its type, numbered where a type occurs more than once."""
        types = self.types
        return tuple(
            name if types.count(name) == 1 else f"{name}{1 + types[:place].count(name)}"
            for place, name in enumerate(types)
        )

    @property
    def sizes(self) -> tuple[int, ...]:
        return tuple(len(constants) for constants in self.constants)

    @property
    def size(self) -> int:
        """Number of possible atoms."""
        return math.prod(self.sizes)

    def codes(self, arguments: Sequence[Any], count: int) -> NDArray[Any]:
        """(grounding,): the number of an atom, from one array or number per argument."""
        if self.size >= 1 << 62:
            raise IntractableError(
                f"'{self.predicate.name}' has {self.size:.1e} possible atoms, too many to number"
            )
        dtype = np.int32 if self.size < 1 << 31 else np.int64
        if len(arguments) == 1 and np.ndim(arguments[0]):
            return np.asarray(arguments[0], dtype=dtype)
        code: NDArray[Any] = np.zeros(count, dtype=dtype)
        for argument, size in zip(arguments, self.sizes, strict=True):
            code *= dtype(size)
            code += np.asarray(argument, dtype=dtype)
        return code

    def arguments(self, codes: NDArray[Any]) -> NDArray[np.int32]:
        """(atom, argument): positions among the constants."""
        columns = np.unravel_index(codes, self.sizes) if self.sizes and len(codes) else ()
        arguments = np.empty((len(codes), len(self.sizes)), dtype=np.int32)
        for place, column in enumerate(columns):
            arguments[:, place] = column
        return arguments

    def block(self, arguments: NDArray[np.int32] | None) -> Atoms:
        """The names of atoms (atom, argument); None: of all."""
        return Atoms(
            self.predicate.name,
            self.constants,
            arguments,
            distinct=True,
            labels=self.labels,
            types=self.constant_types,
        )


@dataclass(frozen=True, slots=True)
class AtomNumbers:
    """The atoms of a predicate that factors use, as variables from `offset` on."""

    space: AtomSpace
    offset: int
    count: int
    codes: NDArray[np.int64] | None  # (atom,): which atoms they are, increasing; None: all
    variable: NDArray[np.int32] | None = None
    """(possible atom,): its variable, or -1; None where these are too many, or all are used."""

    @classmethod
    def of(cls, space: AtomSpace, used: Sequence[NDArray[Any]], offset: int) -> AtomNumbers:
        """used: codes of the atoms in factors, in parts and with repetitions."""
        if space.size > MAX_DENSE or space.size > SPARSE * sum(map(len, used)):
            codes = np.unique(np.concatenate([np.zeros(0, np.int64), *map(np.unique, used)]))
            return cls(space, offset, len(codes), codes)
        is_used = np.zeros(space.size, dtype=bool)
        for part in used:
            mark(is_used, part)
        if is_used.all():
            return cls(space, offset, space.size, None)
        variable = np.cumsum(is_used, dtype=np.int32) + np.int32(offset - 1)
        variable[~is_used] = -1
        codes = np.flatnonzero(is_used)
        return cls(space, offset, len(codes), codes, variable)

    def ids(self, codes: NDArray[Any]) -> NDArray[np.int32]:
        """The variable of each atom; -1 where no factor uses it."""
        if self.codes is None:
            return codes.astype(np.int32) + np.int32(self.offset)
        if self.variable is not None:
            return self.variable[codes]
        place = np.searchsorted(self.codes, codes)
        is_used = np.append(self.codes, -1)[place] == codes
        return np.where(is_used, place + self.offset, -1).astype(np.int32)

    def fill(self, scope: NDArray[np.int32], slot: int, codes: NDArray[Any]) -> None:
        """Write the variables of used atoms into one slot of a scope (factor, slot)."""
        if self.codes is not None and self.variable is None:
            scope[:, slot] = self.ids(codes)
        else:
            variable = np.zeros(0, np.int32) if self.variable is None else self.variable
            write_slot(scope, slot, codes, variable, self.offset)

    def block(self) -> NameBlock:
        """Their names."""
        codes = self.codes
        return self.space.block(None if codes is None else self.space.arguments(codes))

    @property
    def multiplicity(self) -> NDArray[np.float64]:
        """(variable,): how many atoms each variable stands for."""
        return np.ones(self.count)

    def some(self, ids: NDArray[Any]) -> NDArray[np.int64]:
        """Places that have each number of an atom once: all, where no two atoms share one."""
        return np.arange(len(ids))

    @property
    def num_atoms(self) -> int:
        return self.count


def variables_of(numbers: Sequence[AtomNumbers]) -> Variables:
    """One variable per used atom, predicate by predicate."""
    found = Variables.in_blocks([(table.block(), table.space.domain) for table in numbers])
    times = np.concatenate([np.zeros(0), *(table.multiplicity for table in numbers)])
    return replace(found, multiplicity=times)


# Evidence on open predicates.


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
        """True if the evidence has no effect at all."""
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
    """The evidence of a world on the variables of a graph."""

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
        own = numbers[name]
        codes = own.space.codes(list(found.ids.T), len(found.ids))
        ids = own.ids(codes)
        used = ids >= 0
        value = found.value
        soft = np.zeros(len(ids), dtype=bool)
        if own.space.predicate.unique is None and own.space.domain.is_discrete:
            soft = used & (value > 0) & (value < 1)
            if used.any() and (value[used] == 1).all():
                only_true.append(name)
        is_measured = used & ~soft & (found.sd**2 > 0)
        num_measured[name] = int(np.count_nonzero(is_measured))
        num_observed[name] = int(np.count_nonzero(used & ~soft)) - num_measured[name]
        if soft.any():  # a factor p : 1 - p for each Boolean that is true with probability p
            at = np.flatnonzero(soft)[own.some(ids[soft])]
            prob, row = np.unique(value[at], return_inverse=True)
            groups.append(_factors(own, ids[at], row, np.log(np.stack([1 - prob, prob], 1))))
        at = np.flatnonzero(used & ~soft)
        at = at[own.some(ids[at])]
        parts.append(Evidence.of(ids[at], value[at], found.sd[at] ** 2))
        if found.excluded is not None:
            excluded, states = found.excluded
            others = own.space.codes(list(excluded.T), len(excluded))
            codes = np.union1d(codes, others)
            ids, used = own.ids(others), own.ids(codes) >= 0
            if (ids >= 0).any():
                state, row = np.unique(states[ids >= 0], return_inverse=True)
                log_table = np.zeros((len(state), own.space.domain.num_states))
                log_table[np.arange(len(state)), state.astype(np.int64)] = -np.inf
                at = own.some(ids[ids >= 0].astype(np.int64) * len(state) + row)
                groups.append(_factors(own, ids[ids >= 0][at], row[at], log_table))
        if not used.all():
            unused.append(_unused(own, codes, used))
    evidence = Evidence.of(
        *(
            np.concatenate([getattr(part, column) for part in parts])
            for column in ("variable", "value", "var")
        )
    )
    return Observations(
        evidence, tuple(groups), num_observed, num_measured, frozenset(only_true), tuple(unused)
    )


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
    numbers: AtomNumbers, ids: NDArray[np.int32], row: NDArray[Any], log_table: NDArray[np.float64]
) -> FactorGroup:
    """A factor for each variable, as often as it has atoms, with its row of the table."""
    return FactorGroup(
        Table(log_table),
        ids[:, None],
        row.astype(np.int32),
        numbers.multiplicity[ids - numbers.offset],
        label=f"evidence on {numbers.space.predicate.name}",
    )
