"""Reals with a state of their own and one link to a common real, integrated out.

An example is the temperature t of a room that may be heated, tied to the mean m of all rooms. Given
m and whether the room is heated, it is Gaussian, and its integral is a quadratic of m for both
states. Rooms that look alike are then twins.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from hylift.errors import UnsupportedError
from hylift.graph.factor_graph import FactorGraph
from hylift.graph.factors import FactorGroup, by_slots
from hylift.numerics.grouping import first_members, group_rows
from hylift.potentials import REAL, ConditionalQuadratic
from hylift.potentials.quadratic import as_quadratic
from hylift.rewrite.counting.leaves import CountedLeaves
from hylift.rewrite.leaves import Remaining

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
Numbers = NDArray[np.int32]
Ids = NDArray[np.int64]

LEAST = 3
"""Links of a real from which on others are its leaves."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class RealLeaves(CountedLeaves):
    """Leaves t with factors a t² + 2 c t m + b t and what is left of others, where a and b depend
    on the state of a discrete variable and m is the hub; ids are of the graph before."""

    leaf: Numbers  # (leaf,)
    hub: Numbers  # (leaf,): m
    state: Numbers  # (leaf,): the discrete variable
    row: Numbers  # (leaf,)
    square: Floats  # (row, state): a, negative
    linear: Floats  # (row, state): b
    cross: Floats  # (row, 1): c
    best: ConditionalQuadratic
    """Of state and hub, row by row: all factors of a leaf at its best value."""

    @property
    def variables(self) -> Numbers:
        return self.leaf

    def take(self, some: NDArray[np.integer]) -> RealLeaves:
        """Some of the leaves."""
        ids = self.leaf[some], self.hub[some], self.state[some], self.row[some]
        return RealLeaves(*ids, self.square, self.linear, self.cross, self.best)

    def integrated(self, *, maximise: bool) -> FactorGroup:
        """Factors of states and hubs without the leaves."""
        form = self.best
        if not maximise:
            integral = 0.5 * np.log(np.pi / -self.square)
            form = ConditionalQuadratic(form.A, form.b, form.c + integral)
        scope = np.column_stack([self.state, self.hub])
        return FactorGroup.unchecked(form, scope, self.row, np.ones(len(self.row)), "leaves")

    def given(self) -> tuple[Floats, Floats, Floats]:
        """(row, state): the Gaussian of a leaf: offset, and slope along its hub, of its mean; and
        its variance."""
        a = self.square
        return -self.linear / (2 * a), -self.cross / a, -0.5 / a

    def restore(self, values: Floats, rng: np.random.Generator | None) -> None:
        """Leaves get their means given state and hub, or are drawn."""
        at = self.row, values[..., self.state].astype(np.int64)
        offset, slope, var = (each[at] for each in self.given())
        mean = offset + slope * values[..., self.hub]
        noise = 0.0 if rng is None else rng.standard_normal(mean.shape) * np.sqrt(var)
        values[..., self.leaf] = mean + noise

    def averaged(self, group: FactorGroup, place: Ids) -> list[FactorGroup]:
        return _without(group, self, place)

    def conditional(self) -> ConditionalQuadratic:
        """The log-density of a leaf given state and hub: slots state, leaf, hub."""
        offset, slope, var = self.given()
        tilt = np.stack([np.ones_like(slope), -slope], axis=-1)  # of t - slope m - offset
        half = (0.5 / var)[..., None]
        A = -half[..., None] * tilt[..., :, None] * tilt[..., None, :]
        b = 2 * half * offset[..., None] * tilt
        c = -half[..., 0] * offset**2 - 0.5 * np.log(2 * np.pi * var)
        return ConditionalQuadratic(A, b, c)


def eliminate_real_leaves(
    graph: FactorGraph, keep: Flags | None = None, *, maximise: bool = False
) -> Remaining[RealLeaves]:
    """The graph without reals of one state and one hub, except those (variable,) to keep.

    graph: ground and without evidence. With `maximise` the factors left have their maxima.
    """
    links = _Links.of(graph, keep)
    eliminated = [] if links is None else list(links.leaves(graph.groups))
    is_leaf = np.zeros(graph.num_variables, dtype=bool)
    for one in eliminated:
        is_leaf[one.leaf] = True
    if not is_leaf.any():
        return Remaining.whole(graph)
    groups = []
    for group in graph.groups:
        stays = ~is_leaf[group.scope].any(axis=1)
        groups.append(group if stays.all() else group.take(np.flatnonzero(stays)))
    groups += [one.integrated(maximise=maximise) for one in eliminated]
    return Remaining.of(graph, eliminated, filter(len, groups), graph.log_constant)


@dataclass(frozen=True, slots=True, eq=False)
class _Links:
    """Reals that may be leaves, with the factor they share with a hub, and those of their own."""

    is_leaf: Flags  # (variable,)
    hub: Numbers  # (variable,)
    own: Floats  # (variable, 3): a, b, g of own factors a t² + b t + g without a state
    link: Floats  # (variable, 6): a, b, g, c, e, f of a t² + b t + g + 2 c t m + e m² + f m

    @classmethod
    def of(cls, graph: FactorGraph, keep: Flags | None) -> _Links | None:
        """None where there are none."""
        variables, size = graph.variables, graph.num_variables
        num_links, num_own = np.zeros(size, dtype=np.int64), np.zeros(size, dtype=np.int64)
        is_leaf = (
            (variables.num_states == 0) & np.isinf(variables.lower) & np.isinf(variables.upper)
        )
        is_leaf &= variables.multiplicity == 1
        if keep is not None:
            is_leaf &= ~keep
        for group in graph.groups:
            states = group.potential.slot_states
            is_quadratic = group.potential.quadratic() is not None
            if is_quadratic and states == (REAL, REAL):
                num_links += np.bincount(group.scope.reshape(-1), minlength=size)
            elif is_quadratic and len(states) == 2 and states[1] == REAL:
                num_own += np.bincount(group.scope[:, 1], minlength=size)
            elif not (is_quadratic and states == (REAL,)):
                is_leaf[group.scope] = False
        is_leaf &= (num_links == 1) & (num_own == 1)
        if not is_leaf.any():
            return None
        hub = np.full(size, -1, dtype=np.int32)
        terms = {1: np.zeros((size, 3)), 2: np.zeros((size, 6))}
        for group in graph.groups:
            form = as_quadratic(group.potential)
            if form is None or form.num_discrete_slots or form.num_reals > 2:
                continue
            A, b = form.A[group.row], form.b[group.row]
            for slot in range(form.num_reals):
                variable, other = group.scope[:, slot], form.num_reals - 1 - slot
                values = [A[:, slot, slot], b[:, slot], form.c[group.row]]
                if form.num_reals == 2:
                    values += [A[:, 0, 1], A[:, other, other], b[:, other]]
                    hub[variable] = group.scope[:, other]
                for place, value in enumerate(values):
                    into = terms[form.num_reals][:, place]
                    np.add.at(into, variable, group.multiplicity * value)
        is_leaf[is_leaf] = num_links[hub[is_leaf]] >= LEAST
        return cls(is_leaf, hub, terms[1], terms[2])

    def leaves(self, groups: Sequence[FactorGroup]) -> Iterator[RealLeaves]:
        """The leaves whose integrals exist, by the group of the factor with their state."""
        for group in groups:
            form = as_quadratic(group.potential)
            if form is None or (form.num_discrete_slots, form.num_reals) != (1, 1):
                continue
            some = group.take(np.flatnonzero(self.is_leaf[group.scope[:, 1]]))
            if not len(some):
                continue
            leaf = some.scope[:, 1]
            terms = np.hstack([self.own[leaf], self.link[leaf]])
            key = np.column_stack([some.row.astype(np.float64), some.multiplicity, terms])
            row, _ = group_rows(np.ascontiguousarray(key).view(np.int32))
            first = first_members(row)
            times, own = some.multiplicity[first, None], some.row[first]
            a, b, g, *link = (column[:, None] for column in terms[first].T)
            a, b = a + times * form.A[own, :, 0, 0], b + times * form.b[own, :, 0]
            g = g + times * form.c[own]
            fits = ((a + link[0] < 0) & np.isfinite(g)).all(axis=1)
            ids = leaf, self.hub[leaf], some.scope[:, 0], row
            if fits[row].any():
                yield _leaves(ids, (a, b, g), link).take(np.flatnonzero(fits[row]))


def _leaves(
    ids: tuple[Numbers, Numbers, Numbers, Numbers],
    own: tuple[Floats, Floats, Floats],
    link: Sequence[Floats],
) -> RealLeaves:
    """Leaves with these terms of their own (row, state), and of their links (row, 1)."""
    (a, b, g), (a_link, b_link, g_link, c, e, f) = own, link
    square, linear = a + a_link, b + b_link
    square = np.where(square < 0, square, -1.0)  # of rows without a finite integral
    # e - c²/square, f - c linear/square: what cancels in a link (t - m)² is taken out first.
    A = (e * a + (e * a_link - c * c)) / square
    slope = (f * a - c * b + (f * a_link - c * b_link)) / square
    best = ConditionalQuadratic(
        A[..., None, None], slope[..., None], g + g_link - linear**2 / (4 * square)
    )
    return RealLeaves(*ids, square, linear, c, best)


def _without(group: FactorGroup, leaves: RealLeaves, place: Ids) -> list[FactorGroup]:
    """Factors without these leaves, in the mean over them; place: (variable,): its leaf, or -1."""
    is_leaf = place[group.scope] >= 0
    if not is_leaf.any():
        return [group]
    form = as_quadratic(group.potential)
    if form is None:
        raise UnsupportedError(f"{group.named()} is a function of reals that are integrated out")
    found = []
    for slots, factors in by_slots(is_leaf):
        part = group.take(factors)
        if not slots:
            found.append(part)
            continue
        at = place[part.scope[:, slots[0]]]
        # Where the state and the hub of the leaf are slots, -1 for nowhere.
        near = [part.scope == of[at][:, None] for of in (leaves.state, leaves.hub)]
        where = np.column_stack([np.where(one.any(axis=1), one.argmax(axis=1), -1) for one in near])
        pattern, count = group_rows(where.astype(np.int32))
        for number in range(count):
            some = np.flatnonzero(pattern == number)
            state, hub = where[some[0]].tolist()
            mean = _mean(part.take(some), form, slots[0], (state, hub), leaves.take(at[some]))
            found += _without(mean, leaves, place)
    return found


def _mean(
    group: FactorGroup,
    form: ConditionalQuadratic,
    slot: int,
    near: tuple[int, int],
    leaves: RealLeaves,
) -> FactorGroup:
    """The mean of factors over the leaf t in one slot: x = L y + o, with t = slope · m + offset.

    near: slots of its state and its hub, -1 where they become new slots.
    """
    row, _ = group_rows(np.column_stack([group.row, leaves.row]))
    first, split = first_members(row), form.num_discrete_slots
    A, b, c = (each[group.row[first]] for each in form.coefficients)
    moments = [each[leaves.row[first]] for each in leaves.given()]
    state, scope = near[0], [group.scope[:, s] for s in range(group.arity) if s != slot]
    if state < 0:
        A, b, c = A[..., None, :, :], b[..., None, :], c[..., None]
        state = split
        scope.insert(split, leaves.state)
    along = (len(first), *(1 if axis != state else -1 for axis in range(c.ndim - 1)))
    offset, slope, var = (each.reshape(along) for each in moments)
    own = slot - split
    others = [real for real in range(form.num_reals) if real != own]
    hub = near[1] - split - (near[1] > slot) if near[1] >= 0 else len(others)
    if near[1] < 0:
        scope.append(leaves.hub)
    L = np.zeros((*slope.shape, form.num_reals, max(len(others), hub + 1)))
    for place, real in enumerate(others):
        L[..., real, place] = 1.0
    L[..., own, hub] = slope
    o = np.zeros((*offset.shape, form.num_reals))
    o[..., own] = offset
    curved = (A @ o[..., None])[..., 0]
    c = c + ((curved + b) * o).sum(axis=-1) + A[..., own, own] * var
    L_t = np.swapaxes(L, -1, -2)
    b = (L_t @ (2 * curved + b)[..., None])[..., 0]
    mean = ConditionalQuadratic(L_t @ A @ L, b, c)
    return group.changed(potential=mean, scope=np.column_stack(scope), row=row)
