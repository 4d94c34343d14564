"""How many groundings a rule has, found without making them where that is possible."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hylift.grounding.rules.plan import Guard, RulePlan
from hylift.grounding.rules.query import Query, column_numbers
from hylift.grounding.world import World
from hylift.language.syntax import Comparison, Variable
from hylift.language.walk import free_variables


def count(world: World, plan: RulePlan, guards: Sequence[Guard]) -> NDArray[np.float64]:
    """Groundings in which these guards hold, per combination of the rule's `+` variables.

    Variables that no guard ties together are counted apart and multiplied, so that a product of a
    million and a thousand constants costs nothing.
    """
    counts = np.ones((1,) * plan.weight.ndim)
    for names, tied in _components(plan, guards):
        counts = counts * _component(world, plan, names, tied)
    return np.broadcast_to(counts, plan.weight.shape)


def num_groundings(world: World, plan: RulePlan, guards: Sequence[Guard]) -> int:
    """How many groundings there are in all."""
    return int(count(world, plan, guards).sum())


def _components(
    plan: RulePlan, guards: Sequence[Guard]
) -> list[tuple[tuple[str, ...], tuple[Guard, ...]]]:
    """The variables that guards tie together, with those guards; guards on no variable alone."""
    leader = {name: name for name in plan.ranges}

    def find(name: str) -> str:
        while leader[name] != name:
            name = leader[name]
        return name

    for guard in guards:
        names = free_variables(guard.test)
        for name in names[1:]:
            leader[find(name)] = find(names[0])
    parts = []
    for root in dict.fromkeys(find(name) for name in plan.ranges):
        names = [name for name in plan.ranges if find(name) == root]
        tied = [g for g in guards if any(name in names for name in free_variables(g.test))]
        parts.append((tuple(names), tuple(tied)))
    fixed = tuple(guard for guard in guards if not free_variables(guard.test))
    return [*parts, ((), fixed)] if fixed else parts


def _component(
    world: World, plan: RulePlan, names: tuple[str, ...], guards: tuple[Guard, ...]
) -> NDArray[np.float64]:
    """Counts along the axes of those `+` variables that are among `names`."""
    own = [name for name in plan.weighted_by if name in names]
    shape = [
        size if name in own else 1
        for name, size in zip(plan.weighted_by, plan.weight.shape, strict=True)
    ]
    if not guards:
        (name,) = names
        values = plan.ranges[name]
        if not own:
            return np.full(shape, float(len(values)))
        counts = np.zeros(plan.weight.shape[plan.weighted_by.index(name)])
        counts[values.start : values.stop] = 1.0
        return counts.reshape(shape)
    if not own and (known := _pair(plan, names, guards)) is not None:
        return np.full(shape, known)
    ranges = {name: plan.ranges[name] for name in names}
    query = Query(world, plan.types, ranges, guards)
    keys = [f"{query.value(Variable(name))} AS v{place}" for place, name in enumerate(own)]
    tail = f" GROUP BY {column_numbers(own)}" if own else ""
    found = world.engine.fetch(query.select([*keys, "count(*) AS n"], tail))
    if not own:
        return np.full(shape, float(found["n"][0]))
    counts = np.zeros([plan.weight.shape[plan.weighted_by.index(name)] for name in own])
    counts[tuple(np.asarray(found[f"v{place}"]) for place in range(len(own)))] = found["n"]
    return counts.reshape(shape)


def _pair(plan: RulePlan, names: tuple[str, ...], guards: tuple[Guard, ...]) -> float | None:
    """The count for x != y or x < y over one type, which needs no looking; None for others."""
    if len(names) != 2 or len(guards) != 1 or not isinstance(guards[0].test, Comparison):
        return None
    test = guards[0].test
    sides = (test.left, test.right)
    if any(not isinstance(side, Variable) or side.shift for side in sides):
        return None
    if plan.ranges[names[0]] != plan.ranges[names[1]]:
        return None
    n = len(plan.ranges[names[0]])
    equal, below = float(n), n * (n - 1) / 2
    holding = {
        "=": equal,
        "!=": 2 * below,
        "<": below,
        ">": below,
        "<=": below + equal,
        ">=": below + equal,
    }[test.op]
    return holding if guards[0].holds else n * n - holding
