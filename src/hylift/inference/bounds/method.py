"""Weighted mini-buckets: settings, and the way from a graph to a certified interval."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from hylift.errors import ImpossibleEvidenceError, UnsupportedError
from hylift.inference.bounds.reals import split_reals
from hylift.inference.bounds.tighten import Relaxation, Tightening
from hylift.inference.control import Control
from hylift.inference.exact.kernels.tables import INFINITE
from hylift.inference.finish import Answer, finish
from hylift.inference.loop import run_steps
from hylift.inference.method import Request
from hylift.inference.prepared import Prepared
from hylift.inference.search.polish import polish
from hylift.inference.search.walker import scattered
from hylift.inference.settings import check_ground, check_whole, refuse_start
from hylift.inference.terms import Terms
from hylift.inference.variational import MeanField
from hylift.posterior import Assignment, LogPartition, Mixture, Posterior
from hylift.rewrite.kinds import Kinds
from hylift.words import counted, method_call, worded

EPS = float(np.finfo(np.float64).eps)
ROUNDING = 1024 * EPS
"""Relative rounding error of a sum of log-values that a bound is raised by, to be on the safe
side."""


@dataclass(frozen=True, slots=True)
class MiniBuckets:
    """A certified upper bound on log Z, and with a lower bound an interval, however wide the graph.

    Weighted mini-buckets (Dechter & Rish 2003, Liu & Ihler 2011): variables are eliminated as by
    `Exact`, reals first and in closed form, but a table (or set of Gaussians) that would be too
    large is split by Hölder's inequality. Then costs are moved between the parts, and their weights
    chosen, so as to make the bound tight. The lower bound is that of mean field, or the best state
    found where that is not certain. There are no marginals.
    """

    max_entries: int = 2**20
    """Largest table that may be built, and messages together, in numbers of eight bytes."""
    max_steps: int = 100
    """Passes over all tables that make the bound tighter."""
    lower: bool = True
    """Look for a lower bound, too."""

    def __post_init__(self) -> None:
        check_whole("max_entries", self.max_entries)
        check_whole("max_steps", self.max_steps, 0)
        if not isinstance(self.lower, bool):
            raise UnsupportedError(f"lower must be True or False, not {self.lower!r}")

    @property
    def name(self) -> str:
        return "mini-buckets"

    def solve(self, prepared: Prepared, request: Request) -> Posterior:
        refuse_start("MiniBuckets", request.start)
        control = Control(request)
        control.enter_level(prepared.ground.num_variables)
        kinds = _kinds_of(prepared)
        num_states = kinds.graph.variables.num_states
        terms = Terms.of(kinds.tables, num_states)
        reals = None
        if (num_states == 0).any():
            prepared.check_proper()
            reals = split_reals(kinds.graph.variables, kinds.quadratics, self.max_entries)
        relaxation = Relaxation.of(num_states, terms, reals, self.max_entries)
        tightening = Tightening(relaxation, self.max_steps, kinds.log_constant)
        result = run_steps(tightening, control)
        upper = tightening.bound
        if upper == -np.inf:
            raise ImpossibleEvidenceError(
                "no joint state is possible: the hard constraints and the evidence contradict "
                "each other"
            )
        if not upper < INFINITE:
            raise UnsupportedError(
                "mini-buckets find no finite bound on log Z: in some state nothing confines a "
                "real, or the model's numbers are too large to compute with"
            )
        relaxation.bound(tightening.point.place)  # whose rounding errors count
        upper += _rounding(kinds, upper) + 4 * relaxation.rounding
        lower, by = None, ""
        if self.lower and not relaxation.is_exact and control.should_continue():
            lower, by = _lower_bound(prepared, control)
        log_partition = _interval(relaxation, upper, lower)
        notes = _notes(relaxation, upper)
        if lower is not None:
            notes.append(f"log Z is at least {_outwards(lower, -1)}, by {by}.")
        elif self.lower and not relaxation.is_exact:
            notes.append("No lower bound is certain here.")
        answer = Answer(
            control.ended or result,
            -log_partition.value,
            notes,
            _find(prepared, request),
            log_partition,
        )
        return finish(self.name, prepared, request, control, answer)


def _kinds_of(prepared: Prepared) -> Kinds:
    """The tables of a graph; raises where there is more to it."""
    graph = prepared.ground
    check_ground("mini-buckets need a ground graph", graph)
    kinds = Kinds.of(graph)
    if kinds.functions:
        group = kinds.functions[0]
        name = graph.variables.names[int(group.scope[0, 0])]
        raise UnsupportedError(
            worded(
                f"mini-buckets take tables and quadratics, and a factor of '{name}' is a function "
                "that is neither: use ",
                method_call("BVI"),
            )
        )
    return kinds


def _rounding(kinds: Kinds, value: float) -> float:
    """A generous bound on the rounding error of log-values that are added up to log Z."""
    sizes = 0.0
    for group in kinds.tables:
        flat = group.potential.flat
        largest = np.abs(flat).max(axis=1, where=np.isfinite(flat), initial=0.0)
        sizes += float(group.multiplicity @ largest[group.row])
    return ROUNDING * (1 + abs(value)) + 16 * EPS * sizes


def _lower_bound(prepared: Prepared, control: Control) -> tuple[float | None, str]:
    """A certain lower bound, and its source: mean field, or else the probability of one state."""
    request = control.inner(control.remaining_seconds()).request
    request = replace(request, tasks=frozenset({"logz"}), start=None, lift="exact")
    found = MeanField().solve(prepared, request).log_partition
    assert found is not None
    if found.kind in ("lower bound", "exact"):
        return found.lower, "mean field"
    if (prepared.ground.variables.num_states == 0).any() or not control.should_continue():
        return None, ""
    best = _find(prepared, request)(None, control.remaining_seconds(), control.not_interrupted)
    if not np.isfinite(best.energy):
        return None, ""
    return -best.energy - ROUNDING * (1 + abs(best.energy)), "the best state that was found"


def _interval(relaxation: Relaxation, upper: float, lower: float | None) -> LogPartition:
    """The bounds as one value with its kind."""
    if relaxation.is_exact:
        error = 2 * (ROUNDING * (1 + abs(upper)) + 4 * relaxation.rounding)
        return LogPartition(upper, "exact", error)
    if lower is None:
        return LogPartition(upper, "upper bound")
    return LogPartition.between(lower, upper)


def _outwards(value: float, sign: int) -> str:
    """A bound with some digits, rounded up (sign 1) or down (-1)."""
    digit = 10.0 ** (np.floor(np.log10(max(abs(value), 1e-300))) - 6)
    return f"{sign * np.ceil(sign * value / digit) * digit:.7g}"


def _notes(relaxation: Relaxation, upper: float) -> list[str]:
    """Notes on what was split, and on the upper bound."""
    if relaxation.is_exact:
        return ["No table had to be split: log Z is exact up to rounding."]
    buckets, reals = relaxation.buckets, relaxation.reals
    split, parts, bounded = len(buckets.replica_ptr) - 1, len(buckets.split), 0
    if reals is not None:
        split += int(reals.owner.max(initial=-1)) + 1
        parts += len(reals.owner)
        bounded = len(np.unique(reals.boxes.real))
    notes = [f"log Z is at most {_outwards(upper, 1)}."]
    if split:
        what = counted(split, "variable")
        notes.insert(0, f"The factors of {what} were split into {parts:,} parts.")
    if bounded:
        what = counted(bounded, "real")
        notes.insert(0, f"The bounds of {what} became factors that are at least 1 inside.")
    return notes


def _find(prepared: Prepared, request: Request) -> Callable[..., Assignment]:
    """A search for the best assignment, from a start at random."""

    def find(
        mixture: Mixture | None = None,
        seconds: float | None = None,
        go_on: Callable[[], bool] | None = None,
    ) -> Assignment:
        graph = prepared.ground
        start = scattered(graph.variables, np.random.default_rng(request.seed))[None]
        best = polish(graph, start, seconds=seconds, go_on=go_on, progress=request.progress)
        return prepared.assignment(best.values, -best.log_density)

    return find
