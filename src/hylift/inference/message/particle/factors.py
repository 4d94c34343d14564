"""The factors of a graph for particles: split into few slots each, with few enough points."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from hylift.errors import UnsupportedError
from hylift.graph import FactorGraph, FactorGroup
from hylift.inference.message.layout import Blocks, Ids, Links, quoted_names
from hylift.inference.terms import Terms
from hylift.numerics.segments import offsets, products
from hylift.numerics.threads import cut
from hylift.potentials import Potential
from hylift.rewrite.decouple import decouple, pieces
from hylift.rewrite.kinds import Kinds

MOST_POINTS = 2**26
"""Joint points of a factor that a message may sum over."""


@dataclass(frozen=True, eq=False)
class Factors:
    """A graph without evidence: terms for the kernels, and functions that they do not take."""

    graph: FactorGraph
    terms: Terms
    links: Links
    num_plain: int
    """Factors that are tables or quadratics; they come first."""
    functions: tuple[tuple[int, FactorGroup], ...]
    """Other groups and their first factors; all factors of a group have the same numbers of
    states."""
    log_constant: float

    @classmethod
    def of(cls, graph: FactorGraph) -> Factors:
        kinds = Kinds.of(graph, _parts)
        plain, other = [*kinds.tables, *kinds.quadratics], kinds.functions
        terms = Terms.of([*plain, *other], graph.variables.num_states)
        num_plain = sum(len(group) for group in plain)
        begins = num_plain + np.cumsum([0, *(len(group) for group in other)])
        functions = tuple(zip(begins.tolist()[:-1], other, strict=True))
        return cls(graph, terms, Links.of(graph, terms), num_plain, functions, kinds.log_constant)

    @cached_property
    def is_real(self) -> NDArray[np.bool_]:
        """(variable,)"""
        return self.graph.variables.num_states == 0

    def slots(self, factor: int) -> NDArray[np.int32]:
        """(slot,): the variables of a factor."""
        return self.terms.slots[slice(*self.terms.slot_ptr[factor : factor + 2])]


@dataclass(frozen=True, eq=False)
class Places:
    """Offsets of the points of each variable, and of the messages about them."""

    first: Ids  # (variable + 1,): its points among those of all variables
    place: Ids  # (link + 1,): its entries among those of all messages

    @classmethod
    def of(cls, factors: Factors, num_points: Ids) -> Places:
        """num_points: (variable,)."""
        return cls(offsets(num_points), offsets(num_points[factors.links.variable]))

    @cached_property
    def variable(self) -> Ids:
        """(point,): its variable."""
        return np.repeat(np.arange(len(self.first) - 1), np.diff(self.first))

    @cached_property
    def link_blocks(self) -> Blocks:
        """Blocks of links for threads."""
        return cut(self.place, 8)

    def variable_blocks(self, links: Links) -> Blocks:
        """Blocks of variables for threads."""
        return cut(offsets(np.diff(self.first) * np.diff(links.variable_ptr)), 2)


def blocks_of(factors: Factors, places: Places, targets: Places) -> Blocks:
    """Blocks of tables and quadratics for threads, by the terms in the sums of their messages."""
    variable, terms = factors.links.variable, factors.terms
    sizes, received = np.diff(places.first)[variable], np.diff(targets.first)[variable]
    joint = np.repeat(products(sizes, terms.slot_ptr), np.diff(terms.slot_ptr))
    cost = np.bincount(factors.links.factor, joint // sizes * received, len(terms))
    return cut(offsets(cost[: factors.num_plain]), 4)


def check_points(factors: Factors, places: Places) -> None:
    """Raise if a factor has too many joint points."""
    sizes = np.diff(places.first)[factors.links.variable].astype(np.float64)
    joint = products(sizes, factors.terms.slot_ptr)
    if (joint > MOST_POINTS).any():
        worst = int(np.argmax(joint))
        raise UnsupportedError(
            "a message of the factor over "
            f"{quoted_names(factors.graph, factors.slots(worst))} would sum over "
            f"{joint[worst]:.3g} joint points, more than {MOST_POINTS}: use fewer particles or "
            "factors with fewer variables"
        )


def _parts(group: FactorGroup) -> Sequence[FactorGroup]:
    """Factors over fewer slots whose product is the group.

    A factor is split only where its parts share at most one variable: that makes no loops, and so
    does not change Bethe's approximation.
    """
    form = group.potential.quadratic()
    if form is None or not form.num_reals:
        return [group]
    simple = _is_tree(group.potential)[group.row]
    if simple.all():
        return pieces(group)
    if not simple.any():
        return [group]
    return [*pieces(group.take(np.flatnonzero(simple))), group.take(np.flatnonzero(~simple))]


def _is_tree(potential: Potential) -> NDArray[np.bool_]:
    """(row,): whether the pieces of a quadratic share at most one slot."""
    num_discrete = potential.num_discrete_slots
    used = np.zeros((potential.num_rows, num_discrete), dtype=np.int64)
    for piece in decouple(potential):
        inside = [slot for slot in piece.slots if slot < num_discrete]
        used[np.ix_(piece.rows, np.array(inside, dtype=np.int64))] += 1
    return np.asarray((used > 1).sum(axis=1) <= 1)
