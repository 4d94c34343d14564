"""The messages of a discrete graph, and the order in which they are sent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from hylift.archive import Arrays
from hylift.errors import ImpossibleEvidenceError
from hylift.graph import FactorGraph, FactorGroup
from hylift.inference.message.impossible import contradiction
from hylift.inference.message.kernels.discrete import (
    OTHERS,
    adopt,
    factor_log_sums,
    flood,
    gather,
    send,
    shift,
)
from hylift.inference.message.links import FloatArray, Links
from hylift.inference.terms import Terms
from hylift.numerics.segments import (
    Ids,
    largest,
    log_sums,
    place_of_largest,
)
from hylift.numerics.threads import cut, in_order

Schedule = Literal["flooding", "residual"]

LARGE = 0.37
"""Share of the largest change from which on the residual schedule sends a message. No simple
fraction: changes of look-alikes that differ by rounding shall not fall on both sides of it."""


@dataclass(frozen=True, slots=True, eq=False)
class Work:
    """Factors or variables to go through, in blocks that threads share."""

    ids: Ids
    blocks: list[tuple[int, int]]

    @classmethod
    def of(cls, ids: Ids, cost: Ids) -> Work:
        return cls(ids, cut(np.concatenate([[0], np.cumsum(cost)])))


@dataclass(frozen=True, slots=True, eq=False)
class Tables:
    """A discrete graph without evidence as the kernels read it."""

    graph: FactorGraph
    terms: Terms
    links: Links
    weight: FloatArray  # (parameter,): exponentials of those of `terms`, the largest of a table 1
    first: Ids  # (variable + 1,): its states among those of all variables
    place: Ids  # (link + 1,): its entries among those of all messages
    most: tuple[int, int]
    """Slots of a factor, and entries of its messages or table."""
    cost: Ids  # (factor,): work of its messages
    all_factors: Work
    all_variables: Work

    @classmethod
    def of(cls, graph: FactorGraph, groups: Sequence[FactorGroup]) -> Tables:
        """groups: all factors, as tables of one slot or more."""
        terms = Terms.of(groups)
        links = Links.of(graph, terms)
        num_states = graph.variables.num_states.astype(np.int64)
        width = num_states[links.variable]
        arity = np.diff(terms.slot_ptr)
        num_entries, num_joint = np.zeros((2, len(terms)), dtype=np.int64)
        if len(terms):
            num_entries = np.add.reduceat(width, terms.slot_ptr[:-1])
            num_joint = np.multiply.reduceat(width, terms.slot_ptr[:-1])
        sizes = (arity, num_entries, num_joint)
        cost = 4 * num_joint * arity + 8 * num_entries
        held = 8 * np.diff(links.variable_ptr)
        return cls(
            graph,
            terms,
            links,
            np.concatenate([np.zeros(0), *(_weights(g.potential.flat).ravel() for g in groups)]),
            np.concatenate([[0], np.cumsum(num_states)]),
            np.concatenate([[0], np.cumsum(width)]),
            (int(arity.max(initial=1)), int(max(size.max(initial=1) for size in sizes)) + 1),
            cost,
            Work.of(np.arange(len(terms)), cost),
            Work.of(np.arange(graph.num_variables), held),
        )

    def room(self) -> tuple[Ids, FloatArray]:
        """Scratch for one thread: integers per slot, reals per entry."""
        num_slots, num_entries = self.most
        return np.empty((3, num_slots), dtype=np.int64), np.empty((6, num_entries))


def _weights(log_values: FloatArray) -> FloatArray:
    """Exponentials (row, joint state), each row divided by its largest."""
    largest = log_values.max(axis=1, keepdims=True)
    return np.exp(log_values - np.where(np.isfinite(largest), largest, 0.0))


@dataclass(frozen=True, slots=True)
class How:
    """In which way messages are sent, and when they have converged."""

    by_maximum: bool
    """Whether messages are maxima, and not sums."""
    on_forest: bool
    """There messages end after as many steps as the longest path, and any change of a logarithm
    is news that others wait for. On graphs with loops logarithms may fall for ever, of what has no
    probability left: there changes are those of probabilities."""
    damping: float
    schedule: Schedule
    tolerance: float


@dataclass(frozen=True, slots=True, eq=False)
class Passing:
    """Messages on their way; the arrays change with every step."""

    tables: Tables
    how: How
    message: FloatArray  # (entry,): logarithms, the largest of each message 0
    candidate: FloatArray  # (entry,)
    change: FloatArray  # (link,): of the candidates
    total: FloatArray  # (state,)
    zeros: FloatArray  # (state,)
    old_total: FloatArray  # (state,): before the last step
    old_zeros: FloatArray  # (state,)
    room: tuple[Ids, FloatArray]

    @classmethod
    def start(cls, tables: Tables, how: How) -> Passing:
        """Before the first step: every message says that all states are alike."""
        message = np.zeros(tables.place[-1])
        total, zeros, old_total, old_zeros = np.zeros((4, tables.first[-1]))
        passing = cls(
            tables,
            how,
            message,
            message.copy(),
            np.zeros(len(tables.links)),
            total,
            zeros,
            old_total,
            old_zeros,
            tables.room(),
        )
        if how.schedule == "residual":
            passing._send(tables.all_factors)
        return passing

    def arrays(self) -> Arrays:
        """All that the next step depends on."""
        return {
            "message": self.message,
            "candidate": self.candidate,
            "change": self.change,
            "total": self.total,
            "zeros": self.zeros,
            "old_total": self.old_total,
            "old_zeros": self.old_zeros,
        }

    def step(self) -> float:
        """Sends messages; returns the largest change of one, or of what they say together."""
        if self.how.schedule == "residual":
            largest = float(self.change.max(initial=0.0))
            if largest > self.how.tolerance:
                self._send_largest(largest)
                return largest
        return self._send_all()

    def _send_all(self) -> float:
        """Sends all messages. With loops, a message may be largest where others leave nothing, so
        that its own change says little: then that of beliefs counts as well."""
        tables, how = self.tables, self.how
        small = len(tables.all_factors.blocks) == len(tables.all_variables.blocks) == 1
        if how.schedule == "flooding" and small:
            return self._flood()
        if how.schedule == "flooding":
            self._send(tables.all_factors)
        change = float(self.change.max(initial=0.0))
        np.copyto(self.message, self.candidate)
        np.copyto(self.old_total, self.total)
        np.copyto(self.old_zeros, self.zeros)
        self._gather(tables.all_variables)
        if how.schedule == "residual":
            self._send(tables.all_factors)
        if how.on_forest:
            return change

        def moved(begin: int, end: int) -> float:
            return shift(
                begin, end, tables.first, self.old_total, self.old_zeros, self.total, self.zeros
            )

        return max(change, *in_order(moved, tables.all_variables.blocks))

    def _flood(self) -> float:
        """All of a step in one call, which takes longer than the work where that is small."""
        tables, terms, links, how = self.tables, self.tables.terms, self.tables.links, self.how
        factor, variable, change = flood(
            tables.all_factors.ids, terms.slot_ptr, terms.slots, terms.base, terms.theta,
            tables.weight, tables.place, tables.first, self.message, self.total, self.zeros,
            how.by_maximum, how.on_forest, how.damping, *self.room, self.candidate, self.change,
            tables.all_variables.ids, links.variable_ptr, links.order, links.count,
            self.old_total, self.old_zeros,
        )  # fmt: skip
        if factor >= 0:
            raise self._contradiction(factor)
        if variable >= 0:
            raise contradiction(tables.graph, np.array([variable]))
        return float(change)

    def _contradiction(self, factor: int) -> ImpossibleEvidenceError:
        terms = self.tables.terms
        slots = terms.slots[terms.slot_ptr[factor] : terms.slot_ptr[factor + 1]]
        return contradiction(self.tables.graph, slots)

    def _send_largest(self, most: float) -> None:
        """Sends the messages that change most, and looks what others follow from them."""
        links = self.tables.links
        chosen = np.flatnonzero(self.change >= LARGE * most)
        adopt(chosen, self.tables.place, self.candidate, self.message)
        self.change[chosen] = 0.0
        variables = np.unique(links.variable[chosen]).astype(np.int64)
        held = links.variable_ptr[variables + 1] - links.variable_ptr[variables]
        self._gather(Work.of(variables, 8 * held))
        factors = links.factors_at(variables)
        self._send(Work.of(factors, self.tables.cost[factors]))

    def _gather(self, some: Work) -> None:
        """Adds up the messages to some variables."""
        tables, links = self.tables, self.tables.links

        def run(begin: int, end: int) -> int:
            return gather(
                begin, end, some.ids, links.variable_ptr, links.order, links.count, tables.place,
                tables.first, self.message, self.total, self.zeros,
            )  # fmt: skip

        for variable in in_order(run, some.blocks):
            if variable >= 0:
                raise contradiction(tables.graph, np.array([variable]))

    def _send(self, some: Work) -> None:
        """Computes the next messages of some factors."""
        tables, terms, how = self.tables, self.tables.terms, self.how

        def run(begin: int, end: int) -> int:
            return send(
                begin, end, some.ids, terms.slot_ptr, terms.slots, terms.base, terms.theta,
                tables.weight, tables.place, tables.first, self.message, self.total, self.zeros,
                how.by_maximum, how.on_forest, how.damping, *tables.room(), self.candidate,
                self.change,
            )  # fmt: skip

        for impossible in in_order(run, some.blocks):
            if impossible >= 0:
                raise self._contradiction(impossible)

    @property
    def log_beliefs(self) -> FloatArray:
        """(state,): of each variable one behind the other, not normalised."""
        return np.where(self.zeros > OTHERS, -np.inf, self.total)

    def log_total(self) -> float:
        """Bethe's log Z of these messages; by maximum, what it holds for the largest log-density.

        Σ n_v log Z_v + Σ n_c (log Z_c - Σ log Z_v of its slots): right at a fixed point, and near
        one up to the square of what is missing.
        """
        tables, terms, log_sum = self.tables, self.tables.terms, np.zeros(len(self.tables.terms))

        def run(begin: int, end: int) -> None:
            factor_log_sums(
                begin, end, terms.slot_ptr, terms.slots, terms.base, terms.theta, tables.place,
                tables.first, self.message, self.total, self.zeros, self.how.by_maximum,
                *tables.room(), log_sum,
            )  # fmt: skip

        for _ in in_order(run, tables.all_factors.blocks):
            pass
        of_variable = self._log_sums_of_variables()
        told = np.bincount(tables.links.factor, of_variable[terms.slots], minlength=len(terms))
        own = float(tables.graph.variables.multiplicity @ of_variable)
        return own + float(terms.multiplicity @ (log_sum - told)) + tables.graph.log_constant

    def _log_sums_of_variables(self) -> FloatArray:
        """(variable,): logarithm of the sum of its belief, or the largest entry."""
        found = largest if self.how.by_maximum else log_sums
        return found(self.log_beliefs, self.tables.first)

    def states(self) -> FloatArray:
        """(variable,): the state that each belief holds for the best."""
        return place_of_largest(self.log_beliefs, self.tables.first).astype(np.float64)

    def probs(self) -> FloatArray:
        """(state,): beliefs, normalised."""
        width = np.diff(self.tables.first)
        return np.exp(self.log_beliefs - np.repeat(self._log_sums_of_variables(), width))
