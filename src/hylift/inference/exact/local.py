"""Components of reals whose parts depend on few of the component's axes each.

Below the root of a tree of reals, most steps of the elimination depend on some axes only: groups on
the variances within and between groups, but not on that between regions. They are eliminated once
for each joint state of those.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hylift.inference.exact.elimination import Elimination, FloatArray, Ids, Ids32
from hylift.inference.exact.kernels import local as kernels
from hylift.inference.terms import Terms
from hylift.numerics.segments import inverse, number_rows, offsets

MOST_AXES = 60
"""Axes of one component that are kept as bits of one number."""

WORTHWHILE = 4
"""Steps times states, over the states of steps, from which on these are worth keeping apart."""

MANY_STATES = 32
"""Joint states from which on it is faster to go step by step, if only totals are asked for."""


@dataclass(frozen=True, slots=True, eq=False)
class LocalStates:
    """The axes that matter to each step of an elimination of reals, as bits of a number."""

    sizes: Ids  # (component, axis): its states; 1 where the component has no such axis
    axis: Ids  # (slot,): its axis in the component of its term; -1 of a real
    term_step: Ids  # (term,): the first of its steps
    term_mask: Ids  # (term,)
    of_term: Ids32  # (term,): its component
    mask: Ids  # (step,)
    of_step: Ids32  # (step,): its component

    @classmethod
    def of(
        cls,
        terms: Terms,
        step: Ids32,
        axis: Ids,
        sizes: Ids,
        elimination: Elimination,
        of_step: Ids32,
    ) -> LocalStates:
        """step: (slot,): of a real, -1 of an axis; axis: (slot,), -1 of a real."""
        num_steps = len(of_step)
        if not len(terms):
            none, mask = np.zeros(0, dtype=np.int64), np.zeros(num_steps, dtype=np.int64)
            return cls(sizes, axis, none, none, of_step[none], mask, of_step)
        first = np.where(step >= 0, step, num_steps).astype(np.int64)
        term_step = np.minimum.reduceat(first, terms.slot_ptr[:-1])
        bits = np.where(axis >= 0, np.int64(1) << np.clip(axis, 0, MOST_AXES), 0)
        term_mask = np.bitwise_or.reduceat(bits, terms.slot_ptr[:-1])
        mask = np.zeros(num_steps, dtype=np.int64)
        kernels.spread_masks(elimination.parent, term_step, term_mask, mask)
        return cls(sizes, axis, term_step, term_mask, of_step[term_step], mask, of_step)

    def worthwhile(self, num_states: Ids, *, moments: bool) -> Ids:
        """Components whose steps have far fewer states than the component; without moments, also
        those with many states."""
        count, num_components = self.num_states(self.of_step, self.mask), len(num_states)
        own = np.bincount(self.of_step, count, minlength=num_components)
        whole = np.bincount(self.of_step, minlength=num_components) * num_states
        few = (WORTHWHILE * own <= whole) & (num_states > 1)
        return np.flatnonzero(few if moments else few | (num_states >= MANY_STATES))

    def num_states(self, component: Ids32, mask: Ids) -> FloatArray:
        """(item,): joint states of the axes of a component in a mask."""
        total = np.ones(len(mask))
        for axis in range(self.sizes.shape[1]):
            total *= np.where(mask >> axis & 1, self.sizes[component, axis], 1)
        return total


def solve_local(
    local: LocalStates,
    some: Ids,
    terms: Terms,
    step: Ids32,
    elimination: Elimination,
    steps_of: tuple[Ids, Ids],
    pointers: tuple[Ids, Ids, Ids],
    totals: tuple[FloatArray, FloatArray, Ids],
    moments: tuple[FloatArray, FloatArray, FloatArray] | None,
) -> None:
    """Integrates some components; writes log-totals, rounding and failed steps, and means,
    variances and covariances if asked for, where `GaussianStates` has them.

    step: (slot,); steps_of: pointers by component, and steps; pointers: of states by component, of
    states by step, and of edges by step.
    """
    inside = np.isin(local.of_step, some)
    of_term = np.isin(local.of_term, some)
    ptr, parent = elimination.ptr, elimination.parent
    # A front for each step and each set of axes that something is added to it with.
    rises = np.flatnonzero(inside & (parent >= 0))
    owner = np.concatenate([local.term_step[of_term], parent[rises].astype(np.int64)])
    axes = np.concatenate([local.term_mask[of_term], local.mask[rises]])
    number, example = number_rows(owner, np.unique(axes, return_inverse=True)[1])
    by_owner = np.lexsort((axes[example], owner[example]))
    number, example = inverse(by_owner, len(example))[number], example[by_owner]
    width = (np.diff(ptr) + 1)[owner[example]]
    front_states = local.num_states(local.of_step[owner[example]], axes[example])
    front_at = offsets(front_states.astype(np.int64) * kernels.front_size(width))
    front_ptr = offsets(np.bincount(owner[example], minlength=len(parent)))
    term_front = np.zeros(len(terms), dtype=np.int64)
    term_front[of_term] = number[: np.count_nonzero(of_term)]
    onto = np.full(len(parent), -1)
    onto[rises] = number[np.count_nonzero(of_term) :]
    fronts = np.zeros(front_at[-1])
    which = np.flatnonzero(of_term)
    kernels.add_terms(
        which, terms.slot_ptr, terms.num_discrete, terms.base, terms.multiplicity, terms.theta,
        terms.num_joint, terms.stride, local.axis, step, local.of_term, local.term_step,
        local.term_mask, term_front, local.sizes, ptr, elimination.later, front_at, fronts,
    )  # fmt: skip
    count = np.where(inside, local.num_states(local.of_step, local.mask), 0).astype(np.int64)
    local_ptr, factor_at = offsets(count), offsets(count * np.diff(ptr))
    pivot, ratio = np.empty((2, local_ptr[-1]))
    factor = np.empty(factor_at[-1])
    front = np.empty(int((count * kernels.front_size(np.diff(ptr) + 1)).max(initial=1)))
    component_ptr, steps = steps_of
    state_ptr, real_ptr, edge_ptr = pointers
    log_total, rounding, failed = totals
    room = np.empty(int(np.diff(state_ptr)[some].max(initial=1)), dtype=np.int64)
    for component in some.tolist():
        own = steps[component_ptr[component] : component_ptr[component + 1]]
        at = slice(*state_ptr[component : component + 2])
        kernels.eliminate(
            own, local.sizes[component], ptr, elimination.later, parent, local.mask, front_ptr,
            axes[example], front_at, onto, fronts, local_ptr, factor_at, pivot, ratio, factor,
            room, front, log_total[at], rounding[at], failed[at],
        )  # fmt: skip
        if moments is not None:
            kernels.substitute(
                own, local.sizes[component], ptr, elimination.later, local.mask, local_ptr,
                factor_at, pivot, ratio, factor, at.stop - at.start, failed[at], real_ptr,
                edge_ptr, room, *moments,
            )  # fmt: skip
