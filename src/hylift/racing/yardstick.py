"""The answer that the others are measured by."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hylift.graph import FactorGraph
from hylift.inference.capabilities import info_of
from hylift.racing.entrants import Entrant
from hylift.racing.finish import Finish


@dataclass(frozen=True, slots=True)
class Yardstick:
    """The label of a finish, and why it is trusted more than the others."""

    label: str
    reason: str


def choose_yardstick(
    graph: FactorGraph, candidates: Sequence[tuple[Entrant, Finish]]
) -> Yardstick | None:
    """The first of these that there is; None where no method has marginals to go by.

    Exact inference; an exact log Z; draws that have converged; the highest lower bound on log Z;
    an estimate that has converged; any marginals. Hard constraints may keep all chains in one part
    of the states, where they agree: with such, draws come after the bound. Never a method that has
    diverged, or knows of no possible assignment.
    """
    fit = [(one, finish) for one, finish in candidates if _can_be_trusted(finish)]
    exact = [finish for one, finish in fit if info_of(one.method).trust == "exact"]
    draws = [finish for one, finish in fit if info_of(one.method).trust == "draws"]
    finishes = [finish for _, finish in fit]
    bounds = [finish for finish in finishes if _kind(finish) == "lower bound"]
    by_draws = (_converged(draws), "draws that have converged")
    by_bound = (sorted(bounds, key=_log_z, reverse=True), "the highest lower bound on log Z")
    for found, reason in (
        (exact, "exact inference"),
        ([finish for finish in finishes if _kind(finish) == "exact"], "its log Z is exact"),
        *((by_bound, by_draws) if _may_part_chains(graph) else (by_draws, by_bound)),
        (_converged(finishes), "an estimate that has converged"),
        (finishes, "nothing better is known"),
    ):
        if found:
            return Yardstick(found[0].label, reason)
    return None


def _can_be_trusted(finish: Finish) -> bool:
    posterior = finish.posterior
    return (
        posterior.all_marginals is not None
        and posterior.solution.result != "diverged"
        and finish.energy != np.inf
    )


def _may_part_chains(graph: FactorGraph) -> bool:
    """Return whether the evidence leaves impossible joint states of two variables or more."""
    several = (g for g in graph.condition().groups if g.potential.num_discrete_slots > 1)
    forms = ((group, group.potential.quadratic()) for group in several)
    return any(form and bool(np.isneginf(form.c[group.row]).any()) for group, form in forms)


def _kind(finish: Finish) -> str | None:
    log_partition = finish.posterior.log_partition
    return None if log_partition is None else log_partition.kind


def _log_z(finish: Finish) -> float:
    log_partition = finish.posterior.log_partition
    return float("-inf") if log_partition is None else log_partition.value


def _converged(finishes: Sequence[Finish]) -> list[Finish]:
    return [one for one in finishes if one.posterior.solution.result == "converged"]
