"""Which answer the others are measured by."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from hylift.inference import Exact, Gibbs
from hylift.racing.entrants import Entrant
from hylift.racing.finish import Finish


@dataclass(frozen=True, slots=True)
class Yardstick:
    """The label of a finish, and why it is trusted more than the others."""

    label: str
    reason: str


Candidates = Sequence[tuple[Entrant, Finish]]


def choose_yardstick(candidates: Candidates) -> Yardstick | None:
    """The first of these that there is; None where no method has marginals.

    Exact inference; an exact log Z; draws that have converged; the highest lower bound on log Z;
    an estimate that has converged; any marginals.
    """
    with_marginals = [pair for pair in candidates if pair[1].posterior.all_marginals is not None]
    rules: tuple[tuple[Callable[[Candidates], Finish | None], str], ...] = (
        (_exact_inference, "exact inference"),
        (_exact_log_z, "its log Z is exact"),
        (_converged_draws, "draws that have converged"),
        (_highest_bound, "the highest lower bound on log Z"),
        (_converged_estimate, "an estimate that has converged"),
        (_any, "nothing better is known"),
    )
    for rule, reason in rules:
        found = rule(with_marginals)
        if found is not None:
            return Yardstick(found.label, reason)
    return None


def _exact_inference(candidates: Candidates) -> Finish | None:
    return next((finish for one, finish in candidates if isinstance(one.method, Exact)), None)


def _exact_log_z(candidates: Candidates) -> Finish | None:
    return next((finish for _, finish in candidates if _kind(finish) == "exact"), None)


def _converged_draws(candidates: Candidates) -> Finish | None:
    return next(
        (
            finish
            for one, finish in candidates
            if isinstance(one.method, Gibbs) and _has_converged(finish)
        ),
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
