"""Which answer the others are measured by."""

from __future__ import annotations

from collections.abc import Callable, Sequence
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


Candidates = Sequence[tuple[Entrant, Finish]]


Rule = tuple[Callable[[Candidates], Finish | None], str]


def choose_yardstick(graph: FactorGraph, candidates: Candidates) -> Yardstick | None:
    """The first of these that there is; None where no method has marginals to go by.

    Exact inference; an exact log Z; draws that have converged; the highest lower bound on log Z;
    an estimate that has converged; any marginals. Hard constraints may keep all chains in one part
    of the states, where they agree: with such, draws come after the bound. Never a method that has
    diverged, or knows of no possible assignment.
    """
    fit = [pair for pair in candidates if _can_be_trusted(pair[1])]
    draws: Rule = (_converged_draws, "draws that have converged")
    bound: Rule = (_highest_bound, "the highest lower bound on log Z")
    rules: tuple[Rule, ...] = (
        (_exact_inference, "exact inference"),
        (_exact_log_z, "its log Z is exact"),
        *((bound, draws) if _may_part_chains(graph) else (draws, bound)),
        (_converged_estimate, "an estimate that has converged"),
        (_any, "nothing better is known"),
    )
    for rule, reason in rules:
        found = rule(fit)
        if found is not None:
            return Yardstick(found.label, reason)
    return None


def _can_be_trusted(finish: Finish) -> bool:
    posterior = finish.posterior
    return (
        posterior.all_marginals is not None
        and posterior.solution.result != "diverged"
        and finish.energy != np.inf
    )


def _may_part_chains(graph: FactorGraph) -> bool:
    """Whether joint states of two variables or more are impossible, given the evidence."""
    several = (g for g in graph.condition().groups if g.potential.num_discrete_slots > 1)
    forms = ((group, group.potential.quadratic()) for group in several)
    return any(form and bool(np.isneginf(form.c[group.row]).any()) for group, form in forms)


def _exact_inference(candidates: Candidates) -> Finish | None:
    return next((finish for one, finish in candidates if _trust(one) == "exact"), None)


def _trust(entrant: Entrant) -> str | None:
    return info_of(entrant.method).trust


def _exact_log_z(candidates: Candidates) -> Finish | None:
    return next((finish for _, finish in candidates if _kind(finish) == "exact"), None)


def _converged_draws(candidates: Candidates) -> Finish | None:
    return next(
        (finish for one, finish in candidates if _trust(one) == "draws" and _has_converged(finish)),
        None,
    )


def _highest_bound(candidates: Candidates) -> Finish | None:
    bounds = [finish for _, finish in candidates if _kind(finish) == "lower bound"]
    return max(bounds, key=_log_z, default=None)


def _converged_estimate(candidates: Candidates) -> Finish | None:
    return next((finish for _, finish in candidates if _has_converged(finish)), None)


def _any(candidates: Candidates) -> Finish | None:
    return next((finish for _, finish in candidates), None)


def _kind(finish: Finish) -> str | None:
    log_partition = finish.posterior.log_partition
    return None if log_partition is None else log_partition.kind


def _log_z(finish: Finish) -> float:
    log_partition = finish.posterior.log_partition
    return float("-inf") if log_partition is None else log_partition.value


def _has_converged(finish: Finish) -> bool:
    return finish.posterior.solution.result == "converged"
