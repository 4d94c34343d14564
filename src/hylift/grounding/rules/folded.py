"""Groundings that evidence has turned into numbers: their sum, which goes into log Z."""

from __future__ import annotations

import itertools

import numpy as np
from numpy.typing import NDArray

from hylift.errors import ImpossibleEvidenceError, ModelError
from hylift.grounding.rules.count import count
from hylift.grounding.rules.factors import GroundRule
from hylift.grounding.rules.plan import RulePlan, as_number
from hylift.grounding.world import World
from hylift.language.lowering.lower import lower


def guarded_sum(world: World, plan: RulePlan, kept: NDArray[np.float64] | None = None) -> float:
    """The sum of weight * formula over the groundings that guards have cut away.

    kept: the groundings in which all guards hold, per combination of `+` variables, if known.
    """
    total = 0.0
    first = len(plan.conditions)
    runs = itertools.groupby(
        range(first, len(plan.guards)), key=lambda at: plan.guards[at].otherwise
    )
    for value, members in runs:
        places = list(members)
        assert value is not None
        if _is_free(plan, value):
            continue
        before = count(world, plan, plan.guards[: places[0]])
        is_last = places[-1] == len(plan.guards) - 1
        after = kept if is_last and kept is not None else None
        if after is None:
            after = count(world, plan, plan.guards[: places[-1] + 1])
        total += _sum(plan, value, before - after)
    return total


def constant_sum(world: World, plan: RulePlan) -> float:
    """The sum over all groundings of a rule whose formula has become a number."""
    value = as_number(plan.formula)
    assert value is not None
    if _is_free(plan, value):
        return 0.0
    return _sum(plan, value, count(world, plan, plan.guards))


def decided_sum(rule: GroundRule, parameters: dict[str, float]) -> float:
    """The sum over groundings that have no slot: evidence decides all their tests."""
    plan, rows = rule.plan, rule.rows
    table = lower(
        plan.formula, rows.weight, dict(rows.bits), parameters=parameters, hard=plan.rule.hard
    )
    values = table.log_value(np.arange(table.num_rows), [])
    times = np.bincount(rule.rows.row, minlength=table.num_rows)
    values = np.where(times > 0, values, 0.0)
    if np.isneginf(values).any():
        _impossible(plan, int(times[np.isneginf(values)].sum()))
    return _finite(plan, float(times @ values))


def _is_free(plan: RulePlan, value: float) -> bool:
    """Whether groundings of this value add nothing."""
    return value == 1.0 if plan.rule.hard else value == 0.0


def _sum(plan: RulePlan, value: float, counts: NDArray[np.float64]) -> float:
    if not plan.rule.hard:
        present = (counts > 0) & (plan.weight != 0)
        factor = float((plan.weight * counts)[present].sum())
        return _finite(plan, factor * value) if present.any() else 0.0
    if counts.any():
        _impossible(plan, int(counts.sum()))
    return 0.0


def _finite(plan: RulePlan, total: float) -> float:
    """The sum, if it is a number that log Z can have."""
    if total == -np.inf:
        raise ImpossibleEvidenceError(
            f"the evidence makes the rule '{plan.label}' impossible: its value is -inf"
        )
    if not np.isfinite(total):
        raise ModelError(
            f"the groundings of the rule '{plan.label}' that evidence decides sum to {total}, "
            "which is not a number"
        )
    return total


def _impossible(plan: RulePlan, count: int) -> None:
    raise ImpossibleEvidenceError(
        f"the evidence breaks the hard rule '{plan.label}' in {count:,} of its groundings"
    )
