"""Belief propagation between discrete variables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any, Literal, get_args

import numpy as np

from hylift.errors import UnsupportedError, check_word
from hylift.graph import FactorGraph, FactorGroup, Variables
from hylift.inference.control import Control
from hylift.inference.held import State
from hylift.inference.loop import run_steps
from hylift.inference.message.kernels.discrete import adopt, send
from hylift.inference.message.layout import (
    FloatArray,
    Ids,
    Points,
    Totals,
    Work,
    contradiction,
    in_blocks,
)
from hylift.inference.message.running import (
    DIVERGED,
    SETTLED,
    Decoded,
    Exchange,
    Outcome,
    check_settings,
    grows_without_end,
    notes_on_loops,
    posterior_of,
    view_of,
)
from hylift.inference.method import Request
from hylift.inference.prepared import Prepared, View
from hylift.inference.terms import Terms
from hylift.numerics.segments import argmaxima, log_sums, maxima, ranges
from hylift.posterior import LogPartition, Posterior, Result
from hylift.posterior.answers import Kind
from hylift.posterior.marginals import categoricals
from hylift.rewrite.kinds import MOST_STATES, Kinds
from hylift.words import doubt

Schedule = Literal["flooding", "residual"]

BLOCK = 1 << 20
"""Values of tables that are summed at a time."""
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
    """Merge factors with nested scopes into one, which leaves fewer loops."""

    def __post_init__(self) -> None:
        check_settings(self.damping, self.max_steps, self.tolerance, self.merge_factors)
        check_word("schedule", self.schedule, get_args(Schedule))

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

        def passed(own: Control, *, by_maximum: bool) -> tuple[DiscreteMessages, Result]:
            rule = UpdateRule(by_maximum, on_forest, damping, self.schedule, self.tolerance)
            start = DiscreteMessages.start(tables, rule)
            return start, self._pass(start, own)

        def is_exact(own: Control, ended: Result) -> bool:
            return on_forest and ended == "converged" and own.steps[-1].objective <= SETTLED

        passing, result = passed(control, by_maximum=request.tasks == {"map"})

        def decode(seconds: float | None) -> Decoded:
            if passing.rule.by_maximum:
                sure = is_exact(control, result)
                return Decoded(passing.states()[None], -passing.log_total() if sure else None)
            if control.ended is not None and "map" in request.tasks:
                return Decoded(passing.states()[None])
            own = control.inner(seconds)
            best, ended = passed(own, by_maximum=True)
            least = -best.log_total() if is_exact(own, ended) else None
            return Decoded(np.stack([best.states(), passing.states()]), least)

        log_partition, beliefs = None, []
        if not passing.rule.by_maximum:
            kind: Kind = "exact" if is_exact(control, result) else "estimate"
            if result != "diverged":
                log_partition = LogPartition(passing.log_total(), kind)
            beliefs = categoricals(view.graph.variables, tables.points.first, passing.probs())
        notes = _notes(view, on_forest, result)
        outcome = Outcome(result, log_partition, beliefs, decode, notes)
        return posterior_of(self.name, view, outcome, control, request)

    def _pass(self, passing: DiscreteMessages, control: Control) -> Result:
        """Take steps until convergence or a limit, and return why they ended."""

        def advance(step: int) -> tuple[float | None, Result | None]:
            change = passing.step()
            if grows_without_end(passing.message, step):
                return change, "diverged"
            return change, "converged" if change <= self.tolerance else None

        return run_steps(Exchange(advance, passing.arrays, self.max_steps), control)


@dataclass(frozen=True, slots=True, eq=False)
class Tables:
    """A discrete graph without evidence, laid out for the kernels."""

    points: Points  # the states of all variables
    groups: Sequence[FactorGroup]  # of tables, in the order of the terms
    weight: FloatArray  # (parameter,): exponentials of those of the terms, the largest of a table 1
    most: tuple[int, int]
    """Slots of a factor, and entries of its messages."""
    cost: Ids  # (factor,): work of its messages
    all_factors: Work

    @classmethod
    def of(cls, graph: FactorGraph, groups: Sequence[FactorGroup]) -> Tables:
        """groups: all factors, as tables of one slot or more."""
        num_states = graph.variables.num_states.astype(np.int64)
        terms = Terms.of(groups, graph.variables.num_states)
        states = [group.potential.slot_states for group in groups]
        costs = [4 * prod(sizes) * len(sizes) + 8 * sum(sizes) for sizes in states]
        cost = np.repeat(np.array(costs, dtype=np.int64), [len(group) for group in groups])
        num_slots = max(map(len, states), default=1)
        return cls(
            Points.of(graph, terms, num_states),
            groups,
            np.concatenate([np.zeros(0), *(_weights(g.potential.flat).ravel() for g in groups)]),
            (num_slots, max(num_slots, max(map(sum, states), default=1)) + 1),
            cost,
            Work.of(np.arange(len(terms)), cost),
        )

    def room(self) -> tuple[Ids, FloatArray]:
        """Scratch for one thread: integers per slot, reals per entry."""
        num_slots, num_entries = self.most
        return np.empty((3, num_slots), dtype=np.int64), np.empty((5, num_entries))


def _weights(log_values: FloatArray) -> FloatArray:
    """Exponentials (row, joint state), each row divided by its largest."""
    largest = log_values.max(axis=1, keepdims=True)
    return np.exp(log_values - np.where(np.isfinite(largest), largest, 0.0))


@dataclass(frozen=True, slots=True)
class UpdateRule:
    """The way messages are sent, and when they have converged."""

    by_maximum: bool
    """Max-product instead of sum-product."""
    on_forest: bool
    """On a forest changes are those of logarithms. With loops they are those of probabilities:
    the logarithms of states without probability may fall for ever."""
    damping: float
    schedule: Schedule
    tolerance: float


@dataclass(frozen=True, eq=False)
class DiscreteMessages:
    """The messages; the arrays change with every step."""

    tables: Tables
    rule: UpdateRule
    message: FloatArray  # (entry,): logarithms, the largest of each message 0
    candidate: FloatArray  # (entry,)
    change: FloatArray  # (slot,): of the candidates
    totals: Totals
    room: tuple[Ids, FloatArray]

    @classmethod
    def start(cls, tables: Tables, rule: UpdateRule) -> DiscreteMessages:
        """Before the first step: all messages are uniform."""
        points = tables.points
        message, candidate = np.zeros((2, points.place[-1]))
        change, totals = np.zeros(len(points.terms.slots)), Totals.none(points)
        passing = cls(tables, rule, message, candidate, change, totals, tables.room())
        if rule.schedule == "residual":
            passing._send(tables.all_factors)
        return passing

    def arrays(self) -> State:
        """All that the next step depends on."""
        sums = {"total": self.totals.total, "zeros": self.totals.zeros}
        return {**sums, **{n: getattr(self, n) for n in ("message", "candidate", "change")}}

    def step(self) -> float:
        """Send messages, and return the largest change of a message or belief.

        With loops a message may be largest where others leave no probability, so that its own
        change says little: there changes of beliefs count as well.
        """
        tables, rule = self.tables, self.rule
        if rule.schedule == "residual":
            change = float(self.change.max(initial=0.0))
            if change > rule.tolerance:
                self._send_largest(change)
                return change
        elif self._is_small:
            return self._flood()
        else:
            self._send(tables.all_factors)
            change = float(self.change.max(initial=0.0))
        np.copyto(self.message, self.candidate)
        moved = self.totals.gather(self.message, compare=not rule.on_forest)
        if rule.schedule == "residual":
            self._send(tables.all_factors)
        return max(change, moved)

    def _send_largest(self, most: float) -> None:
        """Send the messages that change most, and update those that depend on them."""
        points, terms = self.tables.points, self.tables.points.terms
        chosen = np.flatnonzero(self.change >= LARGE * most)
        adopt(chosen, points.place, self.candidate, self.message)
        self.change[chosen] = 0.0
        variables = np.unique(terms.slots[chosen]).astype(np.int64)
        begin, end = terms.incidence.ptr[variables], terms.incidence.ptr[variables + 1]
        self.totals.gather(self.message, Work.of(variables, 8 * (end - begin)))
        near = terms.term[terms.incidence.slot[ranges(begin, end - begin)]]
        factors = np.unique(near).astype(np.int64)
        self._send(Work.of(factors, self.tables.cost[factors]))

    def _send(self, some: Work) -> None:
        """Compute the next messages of some factors."""

        def run(begin: int, end: int) -> Any:
            return send(begin, end, some.ids, *self.tables.room(), False, *self._arguments)

        for factor, *_ in in_blocks(run, some.blocks):
            self._check(factor)

    def _flood(self) -> float:
        """Send all messages, take them over and add them up; returns the largest change."""
        ids = self.tables.all_factors.ids
        factor, variable, change, moved = send(0, len(ids), ids, *self.room, True, *self._arguments)
        self._check(factor, variable)
        return max(change, moved)

    def _check(self, factor: int, variable: int = -1) -> None:
        """Raise if a factor or variable has no possible state; -1 is none."""
        points = self.tables.points
        if factor >= 0:
            raise points.contradiction(factor)
        if variable >= 0:
            raise contradiction(points.graph, np.array([variable]))

    @cached_property
    def _is_small(self) -> bool:
        """True if one thread takes a step, in one call: calls cost more than work."""
        tables = self.tables
        return len(tables.all_factors.blocks) == len(tables.points.all_variables.blocks) == 1

    @cached_property
    def _arguments(self) -> tuple[Any, ...]:
        """Those of the kernel that are the same in all steps."""
        points, rule, terms = self.tables.points, self.rule, self.tables.points.terms
        return (
            terms.slot_ptr, terms.slots, terms.base, terms.theta, self.tables.weight, points.place,
            points.first, self.message, self.totals.total, self.totals.zeros, rule.by_maximum,
            rule.on_forest, rule.damping, self.candidate, self.change, points.all_variables.ids,
            terms.incidence.ptr, terms.incidence.slot, points.count,
        )  # fmt: skip

    def log_total(self) -> float:
        """Bethe's log Z of these messages; by maximum, an estimate of the largest log-density."""
        points = self.tables.points
        cavity = self.totals.cavities(self.message, np.zeros(points.first[-1]))
        of_factor, begin = [np.zeros(0)], 0
        total = np.maximum if self.rule.by_maximum else np.logaddexp
        for group in self.tables.groups:
            flat, num_states = group.potential.flat, group.potential.slot_states
            entry, step = np.arange(sum(num_states)), max(1, BLOCK // flat.shape[1])
            for start in range(0, len(group), step):
                row = group.row[start : start + step]
                slot = points.terms.slot_ptr[begin + start : begin + start + len(row)]
                told = cavity[points.place[slot][:, None] + entry]
                end = num_states[0]
                joint = told[:, :end]
                for size in num_states[1:]:
                    own, end = told[:, None, end : end + size], end + size
                    joint = (joint[:, :, None] + own).reshape(len(row), -1)
                of_factor.append(total.reduce(flat[row] + joint, axis=1))
            begin += len(group)
        bethe = points.bethe_log_z(np.concatenate(of_factor), self._log_sums())
        return bethe + points.graph.log_constant

    def _total(self, logs: FloatArray, start: Ids) -> FloatArray:
        """(segment,): log-sums, or maxima, of segments."""
        return maxima(logs, start) if self.rule.by_maximum else log_sums(logs, start)

    def _log_sums(self) -> FloatArray:
        """(variable,): logarithm of the sum of its belief, or its largest entry."""
        return self._total(self.totals.logs, self.tables.points.first)

    def states(self) -> FloatArray:
        """(variable,): the most probable state of each belief."""
        return argmaxima(self.totals.logs, self.tables.points.first).astype(np.float64)

    def probs(self) -> FloatArray:
        """(state,): beliefs, normalised."""
        return np.exp(self.totals.logs - self._log_sums()[self.tables.points.variable])


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
        notes.append(doubt(f"Messages did not converge: {help} may help."))
    if result == "diverged":
        notes.append(DIVERGED)
    return tuple(notes)
