"""Belief propagation: its settings, and the way from a graph to a posterior."""

from __future__ import annotations

from dataclasses import dataclass
from typing import get_args

import numpy as np

from hylift.compilation import announce_compilation
from hylift.errors import UnsupportedError, did_you_mean
from hylift.graph import FactorGraph, FactorGroup, Variables
from hylift.inference.control import Control
from hylift.inference.message.answer import SETTLED, Decoded, Outcome, notes_on_loops, posterior_of
from hylift.inference.message.categoricals import categoricals
from hylift.inference.message.discrete.passing import How, Passing, Schedule, Tables
from hylift.inference.message.kernels.discrete import send
from hylift.inference.message.prepare import check_settings, view_of
from hylift.inference.message.steps import Steps
from hylift.inference.method import Request
from hylift.inference.prepared import Prepared, View
from hylift.inference.terms import MOST_STATES, tabulated
from hylift.posterior import LogPartition, Posterior, Result
from hylift.posterior.answers import Kind
from hylift.potentials import Table

DAMPING = 0.5
"""Of graphs with loops, where nothing else is said."""


@dataclass(frozen=True, slots=True)
class BP:
    """Belief propagation for discrete variables, with the messages of look-alikes sent once.

    Sum-product for marginals and log Z, max-product for MAP. Exact on forests; on graphs with
    loops an estimate that may not converge, and `solution.result` says so.
    """

    damping: float | None = None
    """Share of its old logarithm that a message keeps; by default 0 on forests, which need none,
    and 0.5 on graphs with loops, where BP else tends to oscillate."""
    schedule: Schedule = "flooding"
    """'flooding' sends all messages at each step, 'residual' those that change most."""
    max_steps: int = 1000
    tolerance: float = 1e-9
    """Largest change of a message, as of a probability, at which it has converged."""
    merge_factors: bool = False
    """Whether factors whose scopes are nested become one, which leaves fewer loops."""

    def __post_init__(self) -> None:
        damping = 0.0 if self.damping is None else self.damping
        check_settings(damping, self.max_steps, self.tolerance, self.merge_factors)
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
        announce_compilation(send)
        control = Control.of(request, "largest change")
        view = view_of(self.name, prepared, request, merge=self.merge_factors)
        tables = Tables.of(view.graph, _as_tables(view.graph))
        control.num_classes = view.graph.num_variables
        on_forest = view.prepared.is_forest
        damping = self.damping
        if damping is None:
            damping = 0.0 if on_forest else DAMPING

        def passed(own: Control, *, by_maximum: bool) -> tuple[Passing, Result]:
            how = How(by_maximum, on_forest, damping, self.schedule, self.tolerance)
            start = Passing.start(tables, how)
            return start, self._pass(start, own)

        def is_exact(own: Control, ended: Result) -> bool:
            return on_forest and ended == "converged" and own.rows[-1][1] <= SETTLED

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
        """Takes as many steps as are needed or allowed; returns how they ended."""
        steps = Steps.of(control, passing.arrays, self.max_steps)
        for _ in steps:
            change = passing.step()
            steps.end_step(change, is_converged=change <= self.tolerance)
        return steps.result


def _check_discrete(hidden: Variables) -> None:
    """Raises if a variable that is not observed is real."""
    is_real = hidden.num_states == 0
    if is_real.any():
        name = hidden.names[int(np.argmax(is_real))]
        raise UnsupportedError(
            f"BP is for discrete variables, and '{name}' is real: use GaBP where all are real and "
            "all factors quadratic, and else EPBP or BVI"
        )


def _as_tables(graph: FactorGraph) -> list[FactorGroup]:
    """The factors of a discrete graph, functions among them as tables."""
    groups: list[FactorGroup] = []
    for group in graph.groups:
        if not len(group) or not group.arity:
            continue
        parts = [group]
        if not isinstance(group.potential, Table):
            parts = tabulated(group, graph.variables.num_states)
        for part in parts:
            if not isinstance(part.potential, Table):
                raise UnsupportedError(
                    f"{group.named()}: BP needs functions as tables, and this one has more than "
                    f"{MOST_STATES} joint states"
                )
        groups += parts
    return groups


def _notes(view: View, on_forest: bool, result: Result) -> tuple[str, ...]:
    notes = []
    if not on_forest:
        notes = notes_on_loops("BP", view, is_settled=result == "converged")
    if result == "max_steps":
        help = "more steps" if on_forest else "more damping, the residual schedule or more steps"
        notes.append(f"Messages did not converge: {help} may help.")
    return tuple(notes)
