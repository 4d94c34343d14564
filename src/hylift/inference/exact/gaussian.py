"""Reals integrated out (or maximised over) exactly, in every state of their discrete neighbours.

Reals that no term couples are in different components, independent given the discrete variables.
In each joint state of its discrete neighbours a component is one Gaussian, factorised as LDLᵀ on
the structure of an elimination.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hylift.inference.exact.elimination import (
    Elimination,
    FloatArray,
    Ids,
    Ids32,
    eliminate_reals,
    scope_edges,
    scopes_by_arity,
)
from hylift.inference.exact.kernels import gaussian as kernels
from hylift.inference.exact.local import MOST_AXES, LocalStates, solve_local
from hylift.inference.terms import Terms
from hylift.numerics.segments import counts_up, offsets, ranges, strides


@dataclass(frozen=True, slots=True, eq=False)
class Components:
    """Connected components of the free reals, and their neighbours among the axes."""

    elimination: Elimination  # of the free reals
    real: Ids  # (step,): the variable eliminated
    of_step: Ids32  # (step,): its component
    ptr: Ids  # (component + 1,)
    steps: Ids  # the steps of each component, increasing
    discrete_ptr: Ids  # (component + 1,)
    discrete: Ids32  # variables on axes of each component, increasing
    stride: Ids  # of these among the joint states of the component
    log_num_states: FloatArray  # (component,): of their joint states

    @property
    def num_components(self) -> int:
        return len(self.log_num_states)

    @property
    def num_states(self) -> Ids:
        """(component,): number of joint states; ask `log_num_states` first whether they fit."""
        return np.rint(np.exp(self.log_num_states)).astype(np.int64)

    @property
    def owner(self) -> Ids:
        """The component of each entry of `discrete`."""
        return np.repeat(np.arange(self.num_components), np.diff(self.discrete_ptr))

    def joint_states(self, state: Ids32) -> Ids:
        """(component,): index of the joint state that the states (variable,) of axes make."""
        joint = np.zeros(self.num_components, dtype=np.int64)
        np.add.at(joint, self.owner, self.stride * state[self.discrete])
        return joint

    def log_work(self) -> FloatArray:
        """(component,): log of the numbers that its Gaussians take up in all states together."""
        degree = np.diff(self.elimination.ptr) + 2.0
        per_state = np.bincount(self.of_step, weights=degree, minlength=self.num_components)
        return self.log_num_states + np.log(np.maximum(per_state, 1.0))


@dataclass(frozen=True, slots=True, eq=False)
class GaussianStates:
    """The Gaussian of every component in every joint state of its axes."""

    state_ptr: Ids  # (component + 1,)
    log_total: FloatArray  # per component and state: log-integral, or log-maximum
    rounding: FloatArray  # per component and state: rough error of its volume
    failed: Ids  # per component and state: a step that is not definite, or -1
    real_ptr: Ids  # (step + 1,)
    mean: FloatArray  # per step and state
    var: FloatArray  # per step and state
    edge_ptr: Ids  # (step + 1,)
    cov: FloatArray  # per step, later neighbour and state; not when maximising

    def expected(self, components: Components, terms: Terms, weights: FloatArray) -> float:
        """The expected sum of quadratic terms within the components; weights: (state,).

        With their precision D, and E between neighbours, and their linear part h it is
        Σ h E[x] - ½ Σ D E[x²] - Σ E E[x y].
        """
        elimination, count = components.elimination, np.diff(self.state_ptr)
        layout = _layout(components, terms)
        D, h, E = _assembled(components, layout, count, self.real_ptr, self.edge_ptr)
        per_step = count[components.of_step]
        share = weights[ranges(self.state_ptr[components.of_step], per_step)]
        total = float(share @ (h * self.mean - 0.5 * D * (self.mean**2 + self.var)))
        low = np.repeat(np.arange(len(per_step)), np.diff(elimination.ptr))
        own, times = self.real_ptr[low], per_step[low]
        other = self.real_ptr[elimination.later]
        own, other = ranges(own, times), ranges(other, times)
        return total - float(share[own] @ (E * (self.mean[own] * self.mean[other] + self.cov)))


def find_components(terms: Terms, free: Ids) -> Components:
    """Components of the free reals under quadratic terms."""
    number = np.full(len(terms.num_states), -1, dtype=np.int32)
    number[free] = np.arange(len(free), dtype=np.int32)
    middle = terms.slot_ptr[:-1] + terms.num_discrete
    scopes = scopes_by_arity(middle, terms.num_reals, terms.slots)
    elimination = eliminate_reals(len(free), scope_edges([number[s] for s in scopes], len(free)))
    roots, which = np.unique(_roots(elimination.parent), return_inverse=True)
    of_step = which.astype(np.int32)
    of_term = of_step[elimination.step[number[terms.slots[middle]]]]
    code = np.unique(_codes(terms, of_term)[terms.num_states[terms.slots] > 0])
    owner, discrete = np.divmod(code, max(len(number), 1))
    states = terms.num_states[discrete]
    discrete_ptr = offsets(np.bincount(owner, minlength=len(roots)))
    log_states = np.bincount(owner, np.log(states), minlength=len(roots))
    return Components(
        elimination,
        free[elimination.order],
        of_step,
        offsets(np.bincount(of_step, minlength=len(roots))),
        np.argsort(of_step, kind="stable"),
        discrete_ptr,
        discrete.astype(np.int32),
        strides(states, discrete_ptr),
        log_states.astype(np.float64),
    )


def solve_states(
    components: Components, terms: Terms, *, maximise: bool, moments: bool = True
) -> GaussianStates:
    """Integrates (or maximises) every component in every state.

    Without moments, components whose steps are eliminated by themselves have none.
    """
    elimination, count = components.elimination, components.num_states
    state_ptr, layout = offsets(count), _layout(components, terms)
    local = None if maximise else _local_states(components, terms, layout)
    apart = np.zeros(0, dtype=np.int64) if local is None else local.worthwhile(count)
    if len(apart):
        count = count.copy()
        count[apart] = 0  # of what is solved here
    per_step = (components.num_states if moments else count)[components.of_step]
    real_ptr = offsets(per_step)
    edge_ptr = offsets(per_step * np.diff(elimination.ptr))
    log_total, rounding, lost = np.zeros((3, state_ptr[-1]))
    failed = np.full(state_ptr[-1], -1, dtype=np.int64)
    mean, var = np.zeros((2, real_ptr[-1]))
    diagonal, linear, edges = _assembled(components, layout, count, real_ptr, edge_ptr)
    kernels.solve(
        elimination.ptr, elimination.later, components.ptr, components.steps, count, state_ptr,
        real_ptr, edge_ptr, diagonal, linear, edges, maximise,
        log_total, rounding, failed, mean, var,
    )  # fmt: skip
    kernels.add_values(*layout, count, real_ptr, state_ptr, mean, failed, log_total, lost)
    if local is not None and len(apart):
        solve_local(
            local, apart, terms, layout[-2], elimination, (components.ptr, components.steps),
            (state_ptr, real_ptr, edge_ptr), (log_total, rounding, failed),
            (mean, var, edges) if moments else None,
        )  # fmt: skip
    # Overflows that cancel to NaN.
    log_total[np.isnan(log_total)] = np.inf
    return GaussianStates(
        state_ptr, log_total, rounding, failed, real_ptr, mean, var, edge_ptr, edges
    )


def _local_states(
    components: Components, terms: Terms, layout: tuple[np.ndarray, ...]
) -> LocalStates | None:
    """The axes that matter to each step; None if there are no axes, or too many."""
    num_axes = np.diff(components.discrete_ptr)
    if not 0 < num_axes.max(initial=0) <= MOST_AXES:
        return None
    nth = counts_up(num_axes)
    sizes = np.ones((len(num_axes), int(num_axes.max())), dtype=np.int64)
    sizes[components.owner, nth] = terms.num_states[components.discrete]
    of_slot, of_term = layout[-2:]
    axis = np.full(len(of_slot), -1)
    axes = np.flatnonzero(of_slot < 0)
    axis[axes] = nth[_axes_of(components, terms, of_term, axes)]
    return LocalStates.of(terms, of_slot, axis, sizes, components.elimination, components.of_step)


def _axes_of(components: Components, terms: Terms, of_term: Ids32, slots: Ids) -> Ids:
    """(slot,): the entry of `components.discrete` that the variable of a slot is."""
    known = components.owner * len(terms.num_states) + components.discrete
    return np.searchsorted(known, _codes(terms, of_term)[slots])


def _assembled(
    components: Components, layout: tuple[np.ndarray, ...], count: Ids, real_ptr: Ids, edge_ptr: Ids
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """The precision and linear part of terms per step and state, and the precision per edge.

    count: (component,): its states; none of those that are left out.
    """
    elimination = components.elimination
    diagonal, linear, edges = (np.zeros(p[-1]) for p in (real_ptr, real_ptr, edge_ptr))
    kernels.assemble(
        *layout, count, real_ptr,
        elimination.ptr, elimination.later, edge_ptr, diagonal, linear, edges,
    )  # fmt: skip
    return diagonal, linear, edges


def _layout(components: Components, terms: Terms) -> tuple[np.ndarray, ...]:
    """The terms as kernels take them; last, the stride of each slot in the joint states of its
    component, the step of each real slot, and the component of each term."""
    step = np.full(len(terms.num_states), -1, dtype=np.int32)
    step[components.real] = np.arange(len(components.real), dtype=np.int32)
    of_slot = step[terms.slots]
    of_term = components.of_step[of_slot[terms.slot_ptr[:-1] + terms.num_discrete]]
    state_stride = np.zeros(len(of_slot), dtype=np.int64)
    axes = np.flatnonzero(of_slot < 0)
    state_stride[axes] = components.stride[_axes_of(components, terms, of_term, axes)]
    return (
        terms.slot_ptr, terms.num_discrete, terms.base, terms.multiplicity, terms.theta,
        terms.num_joint, terms.num_states[terms.slots], terms.stride, state_stride, of_slot,
        of_term,
    )  # fmt: skip


def _codes(terms: Terms, of_term: Ids32) -> Ids:
    """(slot,): one number for the component of its term and its variable."""
    return of_term[terms.term].astype(np.int64) * len(terms.num_states) + terms.slots


def _roots(parent: Ids32) -> Ids32:
    """(step,): the last step of the tree each step is in."""
    root = np.where(parent >= 0, parent, np.arange(len(parent), dtype=np.int32))
    while True:
        above = root[root]
        if np.array_equal(above, root):
            return root
        root = above
