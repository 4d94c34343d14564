"""Points that messages are about, and sums of all messages to each variable."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hylift.errors import HyliftError, ImpossibleEvidenceError, IntractableError
from hylift.graph import FactorGraph, FactorGroup, Variables
from hylift.inference.message.kernels.discrete import OTHERS, gather, tell
from hylift.inference.terms import Terms
from hylift.numerics.segments import offsets
from hylift.numerics.threads import cut, in_order

FloatArray = NDArray[np.float64]
Ids = NDArray[np.int64]
Blocks = list[tuple[int, int]]

MOST_NAMED = 4
"""Variables that an error lists."""


@dataclass(frozen=True, slots=True, eq=False)
class Work:
    """Factors or variables to process, in blocks that threads share."""

    ids: Ids
    blocks: Blocks

    @classmethod
    def of(cls, ids: Ids, cost: Ids) -> Work:
        return cls(ids, cut(offsets(cost)))


def slot_counts(graph: FactorGraph, terms: Terms) -> FloatArray:
    """(slot,): slots of one member of its variable that it stands for; 1 in ground graphs.

    A variable of a lifted graph receives that many equal messages, and its message to each factor
    leaves out one of them.
    """
    return terms.multiplicity[terms.term] / graph.variables.multiplicity[terms.slots]


@dataclass(frozen=True, eq=False)
class Points:
    """The points of variables: states, or particles of reals; and the messages about them.

    A message goes along each slot of a term, with an entry for each point of the variable there.
    """

    graph: FactorGraph
    terms: Terms
    first: Ids  # (variable + 1,): its points among those of all variables
    place: Ids  # (slot + 1,): its entries among those of all messages

    @classmethod
    def of(cls, graph: FactorGraph, terms: Terms, num_points: Ids) -> Points:
        """num_points: (variable,)."""
        return cls(graph, terms, offsets(num_points), offsets(num_points[terms.slots]))

    @cached_property
    def variable(self) -> Ids:
        """(point,): its variable."""
        return np.repeat(np.arange(len(self.first) - 1), np.diff(self.first))

    @cached_property
    def most(self) -> int:
        """Points of a variable, at most."""
        return int(np.diff(self.first).max(initial=0))

    @cached_property
    def count(self) -> FloatArray:
        return slot_counts(self.graph, self.terms)

    @cached_property
    def all_variables(self) -> Work:
        held = np.diff(self.first) * np.diff(self.terms.incidence.ptr)
        return Work.of(np.arange(len(self.first) - 1), 2 * held)

    @cached_property
    def slot_blocks(self) -> Blocks:
        return cut(self.place, 8)

    def contradiction(self, factor: int) -> HyliftError:
        """The error to raise where no joint point of a factor is possible."""
        return contradiction(
            self.graph, self.terms.slots[slice(*self.terms.slot_ptr[factor : factor + 2])]
        )

    def bethe_log_z(self, of_factor: FloatArray, of_variable: FloatArray) -> float:
        """Σ n_v log Z_v + Σ n_c (log Z_c - Σ log Z_v of its slots), without the graph's constant.

        Correct at a fixed point, and to second order near one.
        """
        terms = self.terms
        told = np.bincount(terms.term, of_variable[terms.slots], minlength=len(terms))
        own = float(self.graph.variables.multiplicity @ of_variable)
        return own + float(terms.multiplicity @ (of_factor - told))


@dataclass(frozen=True, slots=True, eq=False)
class Totals:
    """All messages about each point together, in logarithms."""

    points: Points
    total: FloatArray  # (point,): sum of those that leave it possible
    zeros: FloatArray  # (point,): number of those that make it impossible

    @classmethod
    def none(cls, points: Points) -> Totals:
        """Without messages."""
        return cls(points, *np.zeros((2, points.first[-1])))

    def copy(self) -> Totals:
        return Totals(self.points, self.total.copy(), self.zeros.copy())

    def gather(
        self,
        message: FloatArray,
        some: Work | None = None,
        *,
        compare: bool = False,
        check: bool = True,
    ) -> float:
        """Add up the messages (entry,) to some variables, or all; raises where nothing is left
        possible, unless told not to. If it is to compare, returns the largest change of a belief,
        as of a probability.
        """
        points, work = self.points, some or self.points.all_variables
        incidence = points.terms.incidence

        def run(begin: int, end: int) -> tuple[int, float]:
            return gather(
                begin, end, work.ids, incidence.ptr, incidence.slot, points.count, points.place,
                points.first, np.empty(points.most), compare, message, self.total, self.zeros,
            )  # fmt: skip

        found = in_blocks(run, work.blocks)
        lost = max(variable for variable, _ in found)
        if check and lost >= 0:
            raise contradiction(points.graph, np.array([lost]))
        return max(change for _, change in found)

    def cavities(
        self,
        message: FloatArray,
        log_base: FloatArray,
        go_on: Callable[[], bool] | None = None,
    ) -> FloatArray:
        """(entry,): messages from variables to factors, times the weights (point,) of points."""
        points, cavity = self.points, np.empty_like(message)
        in_blocks(
            tell, points.slot_blocks, points.terms.slots, points.first, points.place, message,
            self.total, self.zeros, log_base, cavity, go_on=go_on,
        )  # fmt: skip
        return cavity

    @property
    def logs(self) -> FloatArray:
        """(point,): logarithms of beliefs, not normalised."""
        return np.where(self.zeros > OTHERS, -np.inf, self.total)


def own_terms(variables: Variables, groups: Iterable[FactorGroup]) -> tuple[FloatArray, FloatArray]:
    """(variable,): precision given all others, and slope at 0, of one member; from quadratics of
    reals alone."""
    precision, slope = np.zeros(len(variables)), np.zeros(len(variables))
    for group in groups:
        form = group.potential.quadratic()
        if form is None or not form.num_reals:
            continue
        at, weight = group.scope.ravel(), group.multiplicity[:, None]
        diagonal = -2 * np.diagonal(form.A[:, 0], axis1=1, axis2=2)
        precision += np.bincount(at, (weight * diagonal[group.row]).ravel(), len(variables))
        slope += np.bincount(at, (weight * form.b[:, 0][group.row]).ravel(), len(variables))
    return precision / variables.multiplicity, slope / variables.multiplicity


class CutShortError(Exception):
    """Time is up in the middle of a step, of which nothing is kept."""


def in_blocks(
    kernel: Callable[..., Any],
    blocks: Blocks,
    *arguments: Any,
    go_on: Callable[[], bool] | None = None,
) -> list[Any]:
    """The results of kernel(begin, end, *arguments) for all blocks, computed by several threads.

    Raises `CutShortError` between two blocks once `go_on` is False.
    """
    if len(blocks) == 1:
        return [kernel(*blocks[0], *arguments)]
    found = []
    for one in in_order(lambda begin, end: kernel(begin, end, *arguments), blocks):
        found.append(one)
        if go_on is not None and not go_on():
            raise CutShortError
    return found


def quoted_names(graph: FactorGraph, variables: NDArray[Any]) -> str:
    names = [f"'{graph.variables.names[int(v)]}'" for v in variables[:MOST_NAMED]]
    return ", ".join(names) + (", …" if len(variables) > MOST_NAMED else "")


def contradiction(graph: FactorGraph, variables: NDArray[Any]) -> HyliftError:
    """The error to raise where no joint state or particle of some variables is possible."""
    names = quoted_names(graph, variables)
    if (graph.variables.num_states == 0).any():
        return IntractableError(
            f"no joint particle of {names} is possible, by what hard constraints around them say: "
            "they contradict each other, or leave too little room for so few particles"
        )
    state, them = ("state", "it") if len(variables) == 1 else ("joint state", "them")
    return ImpossibleEvidenceError(
        f"the model and its evidence contradict each other: no {state} of {names} is possible, "
        f"by what hard constraints around {them} say"
    )
