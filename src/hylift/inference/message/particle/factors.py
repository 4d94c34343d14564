"""The factors of a graph for particles: split into few slots each, with few enough points."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from hylift.errors import UnsupportedError
from hylift.graph import FactorGraph, FactorGroup
from hylift.inference.message.layout import Blocks, Ids, Points, quoted_names
from hylift.inference.terms import Terms
from hylift.numerics.segments import offsets, products
from hylift.numerics.threads import cut
from hylift.potentials import Potential
from hylift.rewrite.kinds import Kinds, decouple, pieces

MOST_POINTS = 2**26
"""Joint points of a factor that a message may sum over."""


@dataclass(frozen=True, eq=False)
class HybridTerms:
    """A graph without evidence: terms for the kernels, and functions that they do not take."""

    graph: FactorGraph
    terms: Terms
    num_plain: int
    """Terms that are tables or quadratics; they come first."""
    functions: tuple[tuple[int, FactorGroup], ...]
    """Other groups and their first terms; all factors of a group have the same numbers of
    states."""
    log_constant: float

    @classmethod
    def of(cls, graph: FactorGraph) -> HybridTerms:
        kinds = Kinds.of(graph, _parts)
        plain, other = [*kinds.tables, *kinds.quadratics], kinds.functions
        terms = Terms.of([*plain, *other], graph.variables.num_states)
        num_plain = sum(len(group) for group in plain)
        begins = num_plain + offsets([len(group) for group in other])
        functions = tuple(zip(begins.tolist()[:-1], other, strict=True))
        return cls(graph, terms, num_plain, functions, kinds.log_constant)

    @cached_property
    def is_real(self) -> NDArray[np.bool_]:
        """(variable,)"""
        return self.graph.variables.num_states == 0

    def points(self, num_points: Ids) -> Points:
        """So many points (variable,)."""
        return Points.of(self.graph, self.terms, num_points)

    def blocks(self, points: Points, targets: Points) -> Blocks:
        """Blocks of tables and quadratics for threads, by the terms in the sums of messages from
        points to targets."""
        slots, terms = self.terms.slots, self.terms
        sizes, received = np.diff(points.first)[slots], np.diff(targets.first)[slots]
        joint = products(sizes, terms.slot_ptr)[terms.term]
        cost = np.bincount(terms.term, joint // sizes * received, len(terms))
        return cut(offsets(cost[: self.num_plain]), 4)

    def room(self, points: Points) -> Ids:
        """Sizes of the kernel's scratch: the largest arity, points of a slot, joint states, and
        joint states times reals."""
        terms, plain = self.terms, slice(self.num_plain)
        joint, reals = terms.num_joint[plain], terms.num_reals[plain]
        sizes = (np.diff(terms.slot_ptr), np.diff(points.first), joint, joint * reals)
        return np.array([size.max(initial=1) for size in sizes], dtype=np.int64)

    def check(self, points: Points) -> None:
        """Raise if a factor has too many joint points."""
        sizes = np.diff(points.first)[self.terms.slots].astype(np.float64)
        joint = products(sizes, self.terms.slot_ptr)
        if (joint > MOST_POINTS).any():
            worst = int(np.argmax(joint))
            slots = self.terms.slots[self.terms.term == worst]
            raise UnsupportedError(
                f"a message of the factor over {quoted_names(self.graph, slots)} would sum over "
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
