"""Reals integrated out (or maximised over) exactly, in every state of their discrete neighbours.

Reals that no term couples are in different components, independent given the discrete variables.
In each joint state of its discrete neighbours a component is one Gaussian, factorised as LDLᵀ on
the structure of an elimination.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

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
from hylift.inference.exact.meter import SECONDS_PER_NUMBER
from hylift.inference.terms import Terms
from hylift.numerics.segments import counts_up, inverse, offsets, ranges, strides
from hylift.numerics.sparse import SECONDS_PER_PRODUCT

NONE = np.zeros(0, dtype=np.int64)


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
    promoted_ptr: Ids  # (component + 1,)
    promoted: Ids  # steps of the promoted reals coupled to each component, which follow all others
    promoted_real: Ids  # (promoted,): their variables, in the order of their steps

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

    def term_step(self, terms: Terms) -> Ids32:
        """(term,): the step of its first free real."""
        step = np.full(len(terms.num_states), np.iinfo(np.int32).max, dtype=np.int32)
        step[self.real] = np.arange(len(self.real), dtype=np.int32)
        return _first_step(terms, step[terms.slots])

    def log_work(self) -> FloatArray:
        """(component,): log of the numbers that its Gaussians take up in all states together."""
        degree = np.diff(self.elimination.ptr)[: len(self.real)] + 2.0
        per_state = np.bincount(self.of_step, weights=degree, minlength=self.num_components)
        return self.log_num_states + np.log(np.maximum(per_state, 1.0))

    def seconds(self) -> float:
        """Predicted for all states."""
        width = np.diff(self.elimination.ptr)[: len(self.real)].astype(np.float64)
        products = np.bincount(self.of_step, width**2, self.num_components)
        per_number = np.exp(self.log_work()).sum() * SECONDS_PER_NUMBER
        per_product = np.exp(self.log_num_states) @ products * SECONDS_PER_PRODUCT
        return float(per_number + per_product)


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
    forms: FloatArray  # per component: A and b, in all states, of its promoted reals
    form_ptr: Ids  # (component + 1,)
    response: FloatArray  # per step, promoted real and state: change of the mean
    response_ptr: Ids  # (step + 1,)

    def expected(self, components: Components, terms: Terms) -> Terms:
        """The expected sum of quadratic terms within each component, given its states: a quadratic
        of its promoted reals."""
        elimination, count = components.elimination, components.num_states
        found = forms_of(components, self, terms.num_states, np.zeros_like(self.log_total))
        forms = np.zeros_like(found.theta)
        kernels.expected(
            *_layout(components, terms), count, self.real_ptr, elimination.ptr, elimination.later,
            self.edge_ptr, self.mean, self.var, self.cov, self.response_ptr, self.response,
            components.promoted_ptr, components.promoted, found.base, forms,
        )  # fmt: skip
        return replace(found, theta=forms)


def forms_of(
    components: Components, gaussian: GaussianStates, num_states: Ids32, constant: FloatArray
) -> Terms:
    """The quadratics of promoted reals, per state, that integrating over components leaves, with
    these constants (state of a component,)."""
    num_free, beside = len(components.real), np.diff(components.promoted_ptr)
    owner = np.repeat(np.arange(len(beside)), beside)
    promoted = components.promoted_real[components.promoted - num_free]
    order = np.argsort(np.concatenate([components.owner, owner]), kind="stable")
    num_discrete, count = np.diff(components.discrete_ptr), components.num_states
    size = np.diff(gaussian.form_ptr)
    base = offsets(size + count)
    theta = np.empty(base[-1])
    theta[ranges(base[:-1], size)] = gaussian.forms
    theta[ranges(base[:-1] + size, count)] = constant
    return Terms(
        num_states,
        offsets(num_discrete + beside),
        np.concatenate([components.discrete, promoted])[order].astype(np.int32),
        num_discrete.astype(np.int32),
        base[:-1],
        np.ones(len(count)),
        theta,
    )


def find_components(terms: Terms, free: Ids, promoted: Ids = NONE) -> Components:
    """Components of the free reals under quadratic terms, each with a free real.

    promoted: reals that are eliminated later, and only coupled to the components.
    """
    num_free = len(free)
    number = inverse(free, len(terms.num_states), np.int32)
    number[promoted] = num_free + np.arange(len(promoted), dtype=np.int32)
    middle = terms.slot_ptr[:-1] + terms.num_discrete
    scopes = scopes_by_arity(middle, terms.num_reals, terms.slots)
    edges = scope_edges([number[s] for s in scopes], num_free + len(promoted))
    elimination = eliminate_reals(num_free, edges, num_last=len(promoted))
    parent = elimination.parent[:num_free]
    roots, which = np.unique(_roots(np.where(parent < num_free, parent, -1)), return_inverse=True)
    of_step = which.astype(np.int32)
    of_term = of_step[_first_step(terms, elimination.step[number[terms.slots]])]
    codes = _codes(terms, of_term)
    is_state = terms.num_states[terms.slots] > 0
    owner, discrete = np.divmod(np.unique(codes[is_state]), max(len(number), 1))
    states = terms.num_states[discrete]
    discrete_ptr = offsets(np.bincount(owner, minlength=len(roots)))
    log_states = np.bincount(owner, np.log(states), minlength=len(roots))
    is_promoted = ~is_state & (number[terms.slots] >= num_free)
    by, beside = np.divmod(np.unique(codes[is_promoted]), max(len(number), 1))
    return Components(
        elimination,
        free[elimination.order[:num_free]],
        of_step,
        offsets(np.bincount(of_step, minlength=len(roots))),
        np.argsort(of_step, kind="stable"),
        discrete_ptr,
        discrete.astype(np.int32),
        strides(states, discrete_ptr),
        log_states.astype(np.float64),
        offsets(np.bincount(by, minlength=len(roots))),
        number[beside].astype(np.int64),
        promoted,
    )


def _first_step(terms: Terms, step: Ids32) -> Ids32:
    """(term,): the earliest step of its reals; step: (slot,)."""
    if not len(terms):
        return step[:0]
    is_real = terms.num_states[terms.slots] == 0
    late = np.where(is_real, step, np.iinfo(np.int32).max)
    return np.minimum.reduceat(late, terms.slot_ptr[:-1])


def solve_states(
    components: Components, terms: Terms, *, maximise: bool, moments: bool = True
) -> GaussianStates:
    """Integrates (or maximises) every component in every state.

    Without moments, components whose steps are eliminated by themselves have none.
    """
    elimination, count = components.elimination, components.num_states
    state_ptr, layout = offsets(count), _layout(components, terms)
    num_free, num_beside = len(components.real), np.diff(components.promoted_ptr)
    alone = not maximise and not len(components.promoted)
    local = _local_states(components, terms, layout) if alone else None
    none = np.zeros(0, dtype=np.int64)
    apart = none if local is None else local.worthwhile(count, moments=moments)
    if len(apart):
        count = count.copy()
        count[apart] = 0  # of what is solved here
    per_step = (components.num_states if moments else count)[components.of_step]
    real_ptr = offsets(per_step)
    edge_ptr = offsets(per_step * np.diff(elimination.ptr)[:num_free])
    form_ptr = offsets(count * num_beside * (num_beside + 1))
    response_ptr = offsets(per_step * num_beside[components.of_step])
    forms, response = np.zeros(form_ptr[-1]), np.zeros(response_ptr[-1])
    log_total, rounding, lost = np.zeros((3, state_ptr[-1]))
    failed = np.full(state_ptr[-1], -1, dtype=np.int64)
    mean, var = np.zeros((2, real_ptr[-1]))
    diagonal, linear, edges = _assembled(components, layout, count, real_ptr, edge_ptr)
    kernels.solve(
        elimination.ptr, elimination.later, components.ptr, components.steps, count, state_ptr,
        real_ptr, edge_ptr, diagonal, linear, edges, maximise,
        log_total, rounding, failed, mean, var,
        components.promoted_ptr, components.promoted, form_ptr, forms, response_ptr, response,
    )  # fmt: skip
    kernels.add_values(
        *layout, count, real_ptr, state_ptr, mean, failed, log_total, lost,
        components.promoted_ptr, components.promoted, form_ptr, forms,
    )  # fmt: skip
    if local is not None and len(apart):
        solve_local(
            local, apart, terms, layout[-2], elimination, (components.ptr, components.steps),
            (state_ptr, real_ptr, edge_ptr), (log_total, rounding, failed),
            (mean, var, edges) if moments else None,
        )  # fmt: skip
    # Overflows that cancel to NaN.
    log_total[np.isnan(log_total)] = np.inf
    return GaussianStates(
        state_ptr, log_total, rounding, failed, real_ptr, mean, var, edge_ptr, edges,
        forms, form_ptr, response, response_ptr,
    )  # fmt: skip


def draw_reals(
    components: Components, terms: Terms, draw_ptr: Ids, noise: FloatArray
) -> FloatArray:
    """Standard normal noise (draw, step) turned into draws of the reals, where all components have
    the states of one axis; the draws from draw_ptr[state] on are of one state."""
    elimination, count = components.elimination, components.num_states
    layout, per_step = _layout(components, terms), count[components.of_step]
    real_ptr, edge_ptr = offsets(per_step), offsets(per_step * np.diff(elimination.ptr))
    assembled = _assembled(components, layout, count, real_ptr, edge_ptr)
    bad = kernels.draw(
        elimination.ptr, elimination.later, components.ptr, components.steps, count, real_ptr,
        edge_ptr, *assembled, draw_ptr, noise,
    )  # fmt: skip
    if bad >= 0:
        raise ArithmeticError("a Gaussian of the posterior is not definite, by rounding")
    return noise


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
    reals = np.concatenate([components.real, components.promoted_real])
    step = inverse(reals, len(terms.num_states), np.int32)
    of_slot = step[terms.slots]
    of_term = components.of_step[_first_step(terms, of_slot)]
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
