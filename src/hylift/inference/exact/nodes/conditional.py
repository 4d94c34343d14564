"""Functions that are quadratic in the other reals once some reals are known.

`normal(y | m, v)` with a hidden variance v is one: given v it is quadratic in y and m. So is a
product of two reals. Such reals go on nodes, and functions of theirs become quadratics of the free
reals given the nodes.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np

from hylift.errors import UnsupportedError
from hylift.graph import FactorGroup, Variables
from hylift.inference.exact.elimination import Flags, FloatArray
from hylift.numerics.grouping import by_number, group_rows
from hylift.numerics.segments import slices
from hylift.potentials import ConditionalQuadratic, Potential
from hylift.potentials.base import IntArray, QuadraticForm
from hylift.rewrite.kinds import Kinds

MOST_SUBSETS = 1024
"""Sets of real slots of one potential that are tried."""

PROBES = 4
"""Factors of a group on which sets of slots are tried, each at values of its own."""

ROWS_AT_ONCE = 2**16
"""Factors times nodes that become quadratics in one call."""

OPEN_PRICE = 4.0
"""A real without an interval is put on nodes where that saves so many with one."""


def known_reals(kinds: Kinds) -> Flags:
    """(variable,): reals on nodes, given which every function is quadratic in the others.

    Every function has the sets of its reals that would do. Where there are several, it takes the
    one with the fewest reals that others have not taken, and of those the reals that are in the
    most functions: one coefficient rather than all that it multiplies.
    """
    variables = kinds.graph.variables
    known = np.zeros(len(variables), dtype=bool)
    choices = [(group, sufficient_slots(group, variables)) for group in kinds.functions]
    price = np.where(np.isfinite(variables.lower) & np.isfinite(variables.upper), 1.0, OPEN_PRICE)
    for group, sets in choices:
        if len(sets) == 1:
            known[group.reals[:, list(sets[0])]] = True
    often = np.zeros(len(variables))
    for group, sets in choices:
        some = group.reals[:, sorted(set().union(*sets))]
        often += np.bincount(some.ravel(), minlength=len(often))
    price /= np.maximum(often, 1.0)
    for group, sets in choices:
        if len(sets) == 1:
            continue
        unknown = np.where(known, 0.0, price)[group.reals]  # (factor, real slot)
        cost = np.stack([unknown[:, list(slots)].sum(axis=1) for slots in sets], axis=1)
        chosen = np.argmin(cost, axis=1)
        for place, slots in enumerate(sets):
            known[group.reals[chosen == place][:, list(slots)]] = True
    return known


def still_needed(kinds: Kinds, known: Flags) -> Flags:
    """(variable,): other reals of functions that are not quadratic in them given the known ones."""
    needed = np.zeros(len(known), dtype=bool)
    for group in kinds.functions:
        on_nodes = known[group.reals]
        sets = sufficient_slots(group, kinds.graph.variables)
        enough = np.any([on_nodes[:, list(slots)].all(axis=1) for slots in sets], axis=0)
        needed[group.reals[~enough]] = True
    return needed & ~known


def sufficient_slots(group: FactorGroup, variables: Variables) -> list[tuple[int, ...]]:
    """The smallest sets of real slots of a function given which it is quadratic in the others; at
    the least the set of all."""
    some = group.take(np.unique(np.linspace(0, len(group) - 1, PROBES).astype(np.int64)))
    num_reals, tried = some.reals.shape[1], 0
    values = _inside(variables, some.reals)
    found: list[tuple[int, ...]] = []
    for size in range(1, num_reals):
        for slots in combinations(range(num_reals), size):
            if any(set(slots) >= set(smaller) for smaller in found):
                continue
            tried += 1
            if tried > MOST_SUBSETS:
                break
            if _given(some.potential, some.row, slots, values[:, list(slots)]) is not None:
                found.append(slots)
    return found or [tuple(range(num_reals))]


def _inside(variables: Variables, reals: IntArray) -> FloatArray:
    """(factor, real slot): values inside the domains, no two of them alike."""
    lower, upper = variables.lower[reals], variables.upper[reals]
    share = np.modf(0.381966 * (1.0 + np.arange(reals.size)).reshape(reals.shape))[0]
    has_lower, has_upper = np.isfinite(lower), np.isfinite(upper)
    with np.errstate(invalid="ignore"):
        both = lower + (upper - lower) * (0.05 + 0.9 * share)
    one = np.where(has_lower, lower + 0.5 + share, np.where(has_upper, upper - 0.5 - share, share))
    return np.where(has_lower & has_upper, both, one)


def _given(
    potential: Potential, row: IntArray, slots: tuple[int, ...], values: FloatArray
) -> QuadraticForm | None:
    """The quadratic form (factor, joint state, …) of a potential's other reals when these real
    slots take values (factor, slot); None where it has none."""
    first = potential.num_discrete_slots
    rest, rows = potential.reduce(row, tuple(first + slot for slot in slots), values)
    form = rest.quadratic()
    return form and QuadraticForm(*(part[rows] for part in form))


def quadratic_given(
    group: FactorGroup, slots: tuple[int, ...], states: list[int], nodes: list[FloatArray]
) -> ConditionalQuadratic:
    """Functions at nodes of some of their real slots: quadratics of the others, a row per factor,
    whose last discrete slots are these nodes.

    states: numbers of states of the discrete slots; nodes: (factor, node) of each of these slots.
    """
    sizes = [points.shape[1] for points in nodes]
    num_joint = int(np.prod(sizes))
    index = np.indices(sizes).reshape(len(sizes), -1)
    values = np.stack([points[:, at] for points, at in zip(nodes, index, strict=True)], axis=-1)
    parts: list[QuadraticForm] = []
    for some in slices(len(group), ROWS_AT_ONCE // (num_joint * int(np.prod(states)))):
        row = np.repeat(group.row[some], num_joint)
        form = _given(group.potential, row, slots, values[some].reshape(-1, len(slots)))
        if form is None:
            raise UnsupportedError(
                f"exact inference takes {group.named()} for quadratic in its other reals once "
                f"{len(slots)} of them are known, but for some of their values it is not. "
                "Give all of its reals an interval."
            )
        parts.append(form)
    whole = (np.concatenate(part) for part in zip(*parts, strict=True))
    return ConditionalQuadratic(*(_nodes_last(part, len(group), sizes, states) for part in whole))


def _nodes_last(
    part: FloatArray, num_factors: int, sizes: list[int], states: list[int]
) -> FloatArray:
    """(factor, states…, nodes…, …) from (factor and nodes, joint state, …)."""
    inner = part.shape[2:]
    shaped = part.reshape(num_factors, int(np.prod(sizes)), int(np.prod(states)), *inner)
    return np.moveaxis(shaped, 1, 2).reshape(num_factors, *states, *sizes, *inner)


def summed(group: FactorGroup) -> FactorGroup:
    """The group with one factor for each scope: the sum of those that have it.

    For potentials whose log-values are linear in their parameters: tables and quadratics.
    """
    number, count = group_rows(group.scope)
    if count == len(group):
        return group
    order, begin = by_number(number, count)
    flat = group.potential.flat[group.row[order]] * group.multiplicity[order, None]
    potential = group.potential.with_flat(np.add.reduceat(flat, begin[:-1], axis=0))
    row = np.arange(count, dtype=np.int32)
    scope = group.scope[order[begin[:-1]]]
    return FactorGroup.unchecked(potential, scope, row, np.ones(count), group.label)
