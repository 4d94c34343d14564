"""Belief propagation between discrete variables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from hylift.archive import Arrays
from hylift.errors import HyliftError, UnsupportedError, did_you_mean
from hylift.graph import FactorGraph, FactorGroup, Variables
from hylift.inference.control import Control
from hylift.inference.finish import categoricals
from hylift.inference.loop import run_steps
from hylift.inference.message.kernels.discrete import (
    OTHERS,
    adopt,
    factor_log_sums,
    flood,
    gather,
    send,
    shift,
)
from hylift.inference.message.layout import (
    Blocks,
    FloatArray,
    Ids,
    Links,
    bethe_log_z,
    contradiction,
    in_blocks,
)
from hylift.inference.message.running import (
    SETTLED,
    Decoded,
    Exchange,
    Outcome,
    check_settings,
    notes_on_loops,
    posterior_of,
    view_of,
)
from hylift.inference.method import Request
from hylift.inference.prepared import Prepared, View
from hylift.inference.terms import Terms
from hylift.numerics.segments import argmaxima, log_sums, maxima, offsets, products
from hylift.numerics.threads import cut, in_order
from hylift.posterior import LogPartition, Posterior, Result
from hylift.posterior.answers import Kind
from hylift.rewrite.kinds import MOST_STATES, Kinds

Schedule = Literal["flooding", "residual"]

DAMPING = 0.5
"""Default on graphs with loops."""
LARGE = 0.37
"""Share of the largest change from which the residual schedule sends a message. Not a simple
fraction, so that changes of look-alikes that differ by rounding fall on the same side of it."""


@dataclass(frozen=True, slots=True)
class BP:
    """Belief propagation for discrete variables, with the messages of look-alikes sent once.

    Sum-product for marginals and log Z, max-product for MAP. Exact on forests; on graphs with
    loops an estimate that may not converge (see `solution.result`).
    """

    damping: float | None = None
    """Share of its old logarithm that a message keeps; by default 0 on forests and 0.5 on graphs
    with loops, where BP tends to oscillate otherwise."""
    schedule: Schedule = "flooding"
    """'flooding' sends all messages at each step, 'residual' those that change most."""
    max_steps: int = 1000
    tolerance: float = 1e-9
    """Largest change of a message, as of a probability, at which it has converged."""
    merge_factors: bool = False
    """Whether factors whose scopes are nested become one, which leaves fewer loops."""

    def __post_init__(self) -> None:
        check_settings(self.damping, self.max_steps, self.tolerance, self.merge_factors)
        if self.schedule not in get_args(Schedule):
            raise UnsupportedError(
                f"there is no schedule {self.schedule!r}: choose among "
                f"{', '.join(get_args(Schedule))}."
                f"{did_you_mean(str(self.schedule), get_args(Schedule))}"
            )

    @property
    def name(self) -> str:
        return "BP"

    def solve(self, prepared: Prepared, request: Request) -> Posterior:
        _check_discrete(prepared.ground.variables)
        control = Control(request, "largest change")
        view = view_of(self.name, prepared, request, merge=self.merge_factors)
        tables = Tables.of(view.graph, _as_tables(view.graph))
        control.enter_level(view.graph.num_variables)
        on_forest = view.prepared.is_forest
        damping = self.damping
        if damping is None:
            damping = 0.0 if on_forest else DAMPING

        def passed(own: Control, *, by_maximum: bool) -> tuple[Passing, Result]:
            how = How(by_maximum, on_forest, damping, self.schedule, self.tolerance)
            start = Passing.start(tables, how)
            return start, self._pass(start, own)

        def is_exact(own: Control, ended: Result) -> bool:
            return on_forest and ended == "converged" and own.steps[-1].objective <= SETTLED

        passing, result = passed(control, by_maximum=request.tasks == {"map"})

        def decode(seconds: float | None) -> Decoded:
            if passing.how.by_maximum:
                sure = is_exact(control, result)
                return Decoded(passing.states()[None], -passing.log_total() if sure else None)
            if control.ended is not None and "map" in request.tasks:
                return Decoded(passing.states()[None])
            own = control.inner(seconds)
            best, ended = passed(own, by_maximum=True)
            least = -best.log_total() if is_exact(own, ended) else None
            return Decoded(np.stack([best.states(), passing.states()]), least)

        log_partition, beliefs = None, []
        if not passing.how.by_maximum:
            kind: Kind = "exact" if is_exact(control, result) else "estimate"
            log_partition = LogPartition(passing.log_total(), kind)
            beliefs = categoricals(view.graph.variables, tables.first, passing.probs())
        notes = _notes(view, on_forest, result)
        outcome = Outcome(result, log_partition, beliefs, decode, notes)
        return posterior_of(self.name, view, outcome, control, request)

    def _pass(self, passing: Passing, control: Control) -> Result:
        """Take steps until convergence or a limit, and return how they ended."""

        def advance(step: int) -> tuple[float | None, Result | None]:
            change = passing.step()
            return change, "converged" if change <= self.tolerance else None

        return run_steps(Exchange(advance, passing.arrays, self.max_steps), control)


@dataclass(frozen=True, slots=True, eq=False)
class Work:
    """Factors or variables to process, in blocks that threads share."""

    ids: Ids
    blocks: Blocks

    @classmethod
    def of(cls, ids: Ids, cost: Ids) -> Work:
        return cls(ids, cut(offsets(cost)))


@dataclass(frozen=True, slots=True, eq=False)
class Tables:
    """A discrete graph without evidence, laid out for the kernels."""

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
        terms = Terms.of(groups, graph.variables.num_states)
        links = Links.of(graph, terms)
        num_states = graph.variables.num_states.astype(np.int64)
        width = num_states[links.variable]
        arity = np.diff(terms.slot_ptr)
        num_entries = np.bincount(links.factor, width, len(terms)).astype(np.int64)
        num_joint = products(width, terms.slot_ptr)
        sizes = (arity, num_entries, num_joint)
        cost = 4 * num_joint * arity + 8 * num_entries
        held = 8 * np.diff(links.variable_ptr)
        return cls(
            graph,
            terms,
            links,
            np.concatenate([np.zeros(0), *(_weights(g.potential.flat).ravel() for g in groups)]),
            offsets(num_states),
            offsets(width),
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
    """How messages are sent, and when they have converged."""

    by_maximum: bool
    """Max-product instead of sum-product."""
    on_forest: bool
    """On a forest changes are those of logarithms. With loops they are those of probabilities:
    the logarithms of states without probability may fall for ever."""
    damping: float
    schedule: Schedule
    tolerance: float


@dataclass(frozen=True, slots=True, eq=False)
class Passing:
    """The messages; the arrays change with every step."""

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
        """Before the first step: all messages are uniform."""
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
        names = ("message", "candidate", "change", "total", "zeros", "old_total", "old_zeros")
        return {name: getattr(self, name) for name in names}

    def step(self) -> float:
        """Send messages, and return the largest change of a message or belief."""
        if self.how.schedule == "residual":
            largest = float(self.change.max(initial=0.0))
            if largest > self.how.tolerance:
                self._send_largest(largest)
                return largest
        return self._send_all()

    def _send_all(self) -> float:
        """Send all messages.

        With loops a message may be largest where others leave no probability, so that its own
        change says little: there changes of beliefs count as well.
        """
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
        beliefs = (self.old_total, self.old_zeros, self.total, self.zeros)
        return max(change, *in_blocks(shift, tables.all_variables.blocks, tables.first, *beliefs))

    def _flood(self) -> float:
        """A whole step in one kernel call, for graphs so small that calls cost more than work."""
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

    def _contradiction(self, factor: int) -> HyliftError:
        terms = self.tables.terms
        slots = terms.slots[terms.slot_ptr[factor] : terms.slot_ptr[factor + 1]]
        return contradiction(self.tables.graph, slots)

    def _send_largest(self, most: float) -> None:
        """Send the messages that change most, and update those that depend on them."""
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
        """Sum up the messages to some variables."""
        tables, links = self.tables, self.tables.links
        for variable in in_blocks(
            gather, some.blocks, some.ids, links.variable_ptr, links.order, links.count,
            tables.place, tables.first, self.message, self.total, self.zeros,
        ):  # fmt: skip
            if variable >= 0:
                raise contradiction(tables.graph, np.array([variable]))

    def _send(self, some: Work) -> None:
        """Compute the next messages of some factors."""
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
        """(state,): not normalised."""
        return np.where(self.zeros > OTHERS, -np.inf, self.total)

    def log_total(self) -> float:
        """Bethe's log Z of these messages; by maximum, an estimate of the largest log-density."""
        tables, terms, log_sum = self.tables, self.tables.terms, np.zeros(len(self.tables.terms))

        def run(begin: int, end: int) -> None:
            factor_log_sums(
                begin, end, terms.slot_ptr, terms.slots, terms.base, terms.theta, tables.place,
                tables.first, self.message, self.total, self.zeros, self.how.by_maximum,
                *tables.room(), log_sum,
            )  # fmt: skip

        list(in_order(run, tables.all_factors.blocks))
        bethe = bethe_log_z(tables.graph, terms, log_sum, self._log_sums())
        return bethe + tables.graph.log_constant

    def _log_sums(self) -> FloatArray:
        """(variable,): logarithm of the sum of its belief, or its largest entry."""
        found = maxima if self.how.by_maximum else log_sums
        return found(self.log_beliefs, self.tables.first)

    def states(self) -> FloatArray:
        """(variable,): the most probable state of each belief."""
        return argmaxima(self.log_beliefs, self.tables.first).astype(np.float64)

    def probs(self) -> FloatArray:
        """(state,): beliefs, normalised."""
        width = np.diff(self.tables.first)
        return np.exp(self.log_beliefs - np.repeat(self._log_sums(), width))


def _check_discrete(hidden: Variables) -> None:
    """Raise if a hidden variable is real."""
    is_real = hidden.num_states == 0
    if is_real.any():
        name = hidden.names[int(np.argmax(is_real))]
        raise UnsupportedError(
            f"BP is for discrete variables, and '{name}' is real: use GaBP where all are real and "
            "all factors quadratic, and else EPBP or BVI"
        )


def _as_tables(graph: FactorGraph) -> list[FactorGroup]:
    """The factors of a discrete graph, with functions as tables."""
    kinds = Kinds.of(graph)
    for group in kinds.functions:
        raise UnsupportedError(
            f"{group.named()}: BP needs functions as tables, and this one has more than "
            f"{MOST_STATES} joint states"
        )
    return kinds.tables


def _notes(view: View, on_forest: bool, result: Result) -> tuple[str, ...]:
    notes = []
    if not on_forest:
        notes = notes_on_loops("BP", view, is_settled=result == "converged")
    if result == "max_steps":
        help = "more steps" if on_forest else "more damping, the residual schedule or more steps"
        notes.append(f"Messages did not converge: {help} may help.")
    return tuple(notes)
