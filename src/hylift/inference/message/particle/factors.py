"""The factors of a graph as particles meet them: few slots each, and few enough points."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hylift.errors import (
    HyliftError,
    IntractableError,
    UnsupportedError,
)
from hylift.graph import FactorGraph, FactorGroup
from hylift.graph.decouple import decouple, pieces
from hylift.inference.message.impossible import contradiction, named
from hylift.inference.message.links import FloatArray, Links
from hylift.inference.terms import Terms, tabulated
from hylift.numerics.threads import cut
from hylift.potentials import ConditionalQuadratic, Function

Ids = NDArray[np.int64]

MOST_POINTS = 2**26
"""Joint points of a factor that a message may sum over."""


@dataclass(frozen=True, eq=False)
class Factors:
    """A graph without evidence, the terms that the kernels read, and the functions they cannot."""

    graph: FactorGraph
    terms: Terms
    links: Links
    num_plain: int
    """Factors that are tables or quadratics; they come first."""
    functions: tuple[tuple[int, FactorGroup], ...]
    """Groups of other factors, and where they begin; with one number of states per slot each."""
    log_constant: float

    @classmethod
    def of(cls, graph: FactorGraph) -> Factors:
        plain: list[FactorGroup] = []
        other: list[FactorGroup] = []
        log_constant = graph.log_constant
        for group in graph.groups:
            for part in _parts(group, graph.variables.num_states):
                if not part.arity:
                    log_constant += part.log_sum(np.zeros(0))
                elif len(part):
                    (other if isinstance(part.potential, Function) else plain).append(part)
        terms = Terms.of([*plain, *other])
        num_plain = sum(len(group) for group in plain)
        begins = num_plain + np.cumsum([0, *(len(group) for group in other)])
        functions = tuple(zip(begins.tolist()[:-1], other, strict=True))
        return cls(graph, terms, Links.of(graph, terms), num_plain, functions, log_constant)

    @cached_property
    def is_real(self) -> NDArray[np.bool_]:
        """(variable,)"""
        return self.graph.variables.num_states == 0

    def slots(self, factor: int) -> NDArray[np.int32]:
        """(slot,): the variables of a factor."""
        return self.terms.slots[slice(*self.terms.slot_ptr[factor : factor + 2])]


@dataclass(frozen=True, eq=False)
class Places:
    """How many points each variable has, and where they and the messages about them are."""

    first: Ids  # (variable + 1,): its points among those of all variables
    place: Ids  # (link + 1,): its entries among those of all messages

    @classmethod
    def of(cls, factors: Factors, num_points: Ids) -> Places:
        """num_points: (variable,)."""
        return cls(
            np.concatenate([[0], np.cumsum(num_points)]),
            np.concatenate([[0], np.cumsum(num_points[factors.links.variable])]),
        )

    @cached_property
    def variable(self) -> Ids:
        """(point,): whose it is."""
        return np.repeat(np.arange(len(self.first) - 1), np.diff(self.first))

    @cached_property
    def link_blocks(self) -> list[tuple[int, int]]:
        """Stretches of the links, to be shared by threads."""
        return cut(self.place, 8)

    def variable_blocks(self, links: Links) -> list[tuple[int, int]]:
        """Stretches of the variables, to be shared by threads."""
        cost = np.diff(self.first) * np.diff(links.variable_ptr)
        return cut(np.concatenate([[0], np.cumsum(cost)]), 2)


def blocks_of(factors: Factors, places: Places, targets: Places) -> list[tuple[int, int]]:
    """Stretches of the tables and quadratics, to be shared by threads."""
    cost = _joint_points(factors, places, targets)[: factors.num_plain]
    return cut(np.concatenate([[0], np.cumsum(cost)]), 4)


def check_points(factors: Factors, places: Places) -> None:
    """Raises if a factor has too many joint points."""
    sizes = np.diff(places.first)[factors.links.variable].astype(np.float64)
    starts = factors.terms.slot_ptr[:-1]
    joint = np.multiply.reduceat(sizes, starts) if len(starts) else np.zeros(0)
    if (joint > MOST_POINTS).any():
        worst = int(np.argmax(joint))
        raise UnsupportedError(
            "a message of the factor over "
            f"{named(factors.graph, factors.slots(worst))} would sum over "
            f"{joint[worst]:.3g} joint points, more than {MOST_POINTS}: use fewer particles or "
            "factors with fewer variables"
        )


def _joint_points(factors: Factors, places: Places, targets: Places) -> Ids:
    """(factor,): terms in the sums of all its messages."""
    variable, starts = factors.links.variable, factors.terms.slot_ptr[:-1]
    if not len(starts):
        return np.zeros(0, dtype=np.int64)
    sizes, received = np.diff(places.first)[variable], np.diff(targets.first)[variable]
    joint = np.repeat(np.multiply.reduceat(sizes, starts), np.diff(factors.terms.slot_ptr))
    return np.add.reduceat(joint // sizes * received, starts)


def impossible(factors: Factors, variables: NDArray[Any]) -> HyliftError:
    """The error of variables of which no joint point is possible."""
    if not factors.is_real.any():
        return contradiction(factors.graph, variables)
    return IntractableError(
        f"no joint particle of {named(factors.graph, variables)} is possible, by what hard "
        "constraints around them say: they contradict each other, or leave too little room for so "
        "few particles"
    )


def _parts(group: FactorGroup, num_states: NDArray[np.int32]) -> Sequence[FactorGroup]:
    """The group as factors over fewer slots, whose product it is.

    That makes no loops, and so does not change Bethe's approximation: a factor is taken apart only
    where its parts share no more than one variable between them.
    """
    if isinstance(group.potential, Function):
        return [
            same for part in tabulated(group, num_states) for same in _by_states(part, num_states)
        ]
    if not isinstance(group.potential, ConditionalQuadratic):
        return [group]
    simple = _is_tree(group.potential)[group.row]
    if simple.all():
        return pieces(group)
    if not simple.any():
        return [group]
    return [*pieces(group.take(np.flatnonzero(simple))), group.take(np.flatnonzero(~simple))]


def _is_tree(potential: ConditionalQuadratic) -> NDArray[np.bool_]:
    """(row,): whether the pieces of a quadratic share no more than one slot."""
    used = np.zeros((potential.num_rows, potential.num_discrete), dtype=np.int64)
    for piece in decouple(potential):
        inside = [slot for slot in piece.slots if slot < potential.num_discrete]
        used[np.ix_(piece.rows, np.array(inside, dtype=np.int64))] += 1
    return np.asarray((used > 1).sum(axis=1) <= 1)


def _by_states(group: FactorGroup, num_states: NDArray[np.int32]) -> list[FactorGroup]:
    """Factors whose slots have equally many states each."""
    if not isinstance(group.potential, Function) or not len(group):
        return [group]
    sizes, which = np.unique(num_states[group.scope], axis=0, return_inverse=True)
    which = which.reshape(-1)
    return [group.take(np.flatnonzero(which == number)) for number in range(len(sizes))]


def state_points(num_states: NDArray[Any]) -> FloatArray:
    """(point,): 0, 1, … for each variable with so many states."""
    start = np.cumsum(num_states) - num_states
    return np.asarray(np.arange(num_states.sum()) - np.repeat(start, num_states), dtype=np.float64)
