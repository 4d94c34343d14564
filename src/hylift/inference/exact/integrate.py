"""One exact pass: integrate out the reals, then sum tables over the discrete variables."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NoReturn

import numpy as np

from hylift.errors import (
    DivergentModelError,
    ImpossibleEvidenceError,
    IntractableError,
    UnsupportedError,
)
from hylift.graph import FactorGroup
from hylift.inference.exact import tables
from hylift.inference.exact.elimination import (
    OBSERVE_MORE,
    Elimination,
    FloatArray,
    Ids,
    Ids32,
    eliminate_tables,
    limit_of,
    scope_edges,
)
from hylift.inference.exact.gaussian import (
    Components,
    GaussianStates,
    find_components,
    solve_states,
)
from hylift.inference.exact.grid import Grid, put_on_grid
from hylift.inference.exact.kernels.tables import INFINITE
from hylift.inference.exact.parts import Parts
from hylift.inference.terms import Terms
from hylift.potentials import Table
from hylift.proper.improper import ImproperDirection

DIVERGES = 10 * INFINITE
"""Log-value of an infinite integral: larger than any finite one, yet it adds up."""

NO_STATE = "no joint state is possible: the hard constraints and the evidence contradict each other"

NEGLIGIBLE = 1e-12
"""Probability of a state below which its rounding errors do not matter."""


@dataclass(frozen=True, slots=True, eq=False)
class Reals:
    """Reals integrated out, or maximised over, in every state of their discrete neighbours."""

    grid: Grid  # those that are integrated numerically, and the others, which are free
    tables: list[FactorGroup]  # of discrete variables and nodes
    components: Components  # of the free reals
    gaussian: GaussianStates

    @property
    def improper(self) -> Ids:
        """Reals in components whose integral diverges in some state."""
        states = np.diff(self.gaussian.state_ptr)
        owner = np.repeat(np.arange(len(states)), states)
        bad = np.unique(owner[self.gaussian.failed >= 0])
        steps = np.flatnonzero(np.isin(self.components.of_step, bad))
        return self.of_step[steps]

    @property
    def of_step(self) -> Ids:
        """(step,): which real is eliminated."""
        return self.grid.free[self.components.elimination.order]


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """What one pass finds; gridded reals continue the numbering of the discrete variables."""

    log_total: float
    reals: Reals
    state: Ids32 | None  # (discrete,): the maximising state
    marginals: FloatArray | None  # flat, by discrete variable
    weights: FloatArray | None  # per component of reals and state: its probability

    @property
    def rounding(self) -> float:
        """Rough rounding error of the volumes of reals, in the worst probable state."""
        gaussian = self.reals.gaussian
        weights = np.ones_like(gaussian.rounding) if self.weights is None else self.weights
        relevant = np.where(weights > NEGLIGIBLE, gaussian.rounding, 0.0)
        if not len(relevant):
            return 0.0
        return float(np.maximum.reduceat(relevant, gaussian.state_ptr[:-1]).sum())

    def real_states(self) -> tuple[Ids, FloatArray]:
        """The real and the probability, 1 where unknown, of every state of every free real."""
        gaussian, of_step = self.reals.gaussian, self.reals.components.of_step
        count = np.diff(gaussian.state_ptr)[of_step]
        step = np.repeat(np.arange(len(count)), count)
        if self.weights is None:
            return self.reals.of_step[step], np.ones(len(step))
        within = np.arange(len(step)) - gaussian.real_ptr[step]
        return self.reals.of_step[step], self.weights[gaussian.state_ptr[of_step[step]] + within]


def integrate_reals(parts: Parts, grid: Grid, max_entries: int, *, maximise: bool) -> Reals:
    """All reals that are not gridded, component by component, in every state and node."""
    groups, quadratics = put_on_grid(parts, grid, max_entries, maximise=maximise)
    log_states = np.log(grid.num_states.astype(np.float64))
    components = find_components(len(grid.free), log_states, quadratics)
    _check_components(parts, grid, components, max_entries)
    gaussian = solve_states(components, grid.num_states, quadratics, maximise=maximise)
    return Reals(grid, groups, components, gaussian)


def sum_states(
    parts: Parts,
    reals: Reals,
    max_entries: int,
    *,
    maximise: bool,
    marginals: bool,
    advance: Callable[[float], None],
) -> Outcome:
    """Sums (or maximises) over the discrete variables, the reals having been dealt with."""
    num_states = reals.grid.num_states
    of_components, constant = component_tables(reals)
    scopes = [group.scope for group in reals.tables] + of_components.scopes()
    order = eliminate_tables(
        np.log(num_states.astype(np.float64)),
        scope_edges(scopes, len(num_states)),
        log_limit=float(np.log(max_entries)),
    )
    _check_cliques(order, num_states, len(reals.grid.real), max_entries)
    factors = _terms(reals.tables, of_components, order, num_states)
    plan = tables.plan(num_states[order.order], order, factors)
    share = 0.5 if marginals else 1.0
    messages, log_sum = tables.collect(
        plan, maximise=maximise, advance=lambda s: advance(share * s)
    )
    log_total = log_sum + parts.log_constant + constant
    if np.isnan(log_total):
        raise DivergentModelError(
            "the model's numbers are too large to compute with: log Z is not a number"
        )
    if log_total == -np.inf:
        raise ImpossibleEvidenceError(NO_STATE)
    if log_total > INFINITE:
        best = messages if maximise else tables.collect(plan, maximise=True)[0]
        raise_divergent(parts, reals, tables.decode(plan, best)[order.step], maximise)
    state = tables.decode(plan, messages)[order.step] if maximise else None
    if not marginals:
        return Outcome(log_total, reals, state, None, None)
    wanted = np.arange(len(factors.base) - len(of_components.base), len(factors.base))
    by_step, joints = tables.distribute(
        plan, messages, wanted, advance=lambda s: advance(share * s)
    )
    found = _from_steps(by_step, num_states, order)
    return Outcome(log_total, reals, state, found, of_components.spread(joints, reals.gaussian))


@dataclass(frozen=True, slots=True, eq=False)
class ComponentTables:
    """The log-integrals of components that depend on discrete variables, as table factors."""

    component: Ids  # (table,)
    ptr: Ids  # (table + 1,)
    scope: Ids32  # discrete numbers
    base: Ids  # (table,): start in the log-totals of all components
    values: FloatArray

    def scopes(self) -> list[Ids32]:
        """The scopes as arrays (table, slot), one per arity."""
        arity = np.diff(self.ptr)
        return [
            self.scope[self.ptr[:-1][arity == size][:, None] + np.arange(size)]
            for size in np.unique(arity)
        ]

    def groups(self, num_states: Ids32) -> list[FactorGroup]:
        """The tables as factors, one group per arity and number of states of each slot."""
        arity = np.diff(self.ptr)
        found = []
        for size in np.unique(arity).tolist():
            alike = np.flatnonzero(arity == size)
            scope = self.scope[self.ptr[alike][:, None] + np.arange(size)]
            shapes, which = np.unique(num_states[scope], axis=0, return_inverse=True)
            for place, shape in enumerate(shapes.tolist()):
                at = np.flatnonzero(which.reshape(-1) == place)
                entries = self.base[alike[at]][:, None] + np.arange(int(np.prod(shape)))
                log_table = self.values[entries].reshape(len(at), *shape)
                found.append(FactorGroup(Table(log_table), scope[at]))
        return found

    def spread(self, joints: FloatArray, gaussian: GaussianStates) -> FloatArray:
        """Probabilities per component and state, from those of the tables, in their order."""
        weights = np.ones(len(gaussian.log_total))
        size = np.diff(gaussian.state_ptr)[self.component]
        shift = np.repeat(self.base - (np.cumsum(size) - size), size)
        weights[np.arange(len(shift)) + shift] = joints
        return weights


def component_tables(reals: Reals) -> tuple[ComponentTables, float]:
    """Tables of the components, and the summed log-total of those without discrete variables."""
    gaussian, components = reals.gaussian, reals.components
    values = np.where(gaussian.failed >= 0, DIVERGES, gaussian.log_total)
    arity = np.diff(components.discrete_ptr)
    has = np.flatnonzero(arity > 0)
    start = gaussian.state_ptr[:-1]
    ptr = np.concatenate([[0], np.cumsum(arity[has])])
    found = ComponentTables(has, ptr, components.discrete, start[has], values)
    return found, float(values[start[arity == 0]].sum())


def _terms(
    groups: list[FactorGroup],
    components: ComponentTables,
    order: Elimination,
    num_states: Ids32,
) -> Terms:
    """All tables over elimination steps; the components' come last."""
    terms = Terms.of(groups, num_states)
    arity = np.concatenate([np.diff(terms.slot_ptr), np.diff(components.ptr)])
    return Terms(
        num_states[order.order],
        np.concatenate([[0], np.cumsum(arity)]),
        order.step[np.concatenate([terms.slots, components.scope])],
        arity.astype(np.int32),
        np.concatenate([terms.base, len(terms.theta) + components.base]),
        np.concatenate([terms.multiplicity, np.ones(len(components.base))]),
        np.concatenate([terms.theta, components.values]),
    )


def _from_steps(by_step: FloatArray, num_states: Ids32, order: Elimination) -> FloatArray:
    """Flat marginals in the order of variables instead of steps."""
    size = num_states[order.order].astype(np.int64)
    start = (np.cumsum(size) - size)[order.step]
    shift = np.repeat(start - (np.cumsum(num_states) - num_states), num_states)
    return by_step[np.arange(len(shift)) + shift]


def _check_components(parts: Parts, grid: Grid, components: Components, max_entries: int) -> None:
    log_work = components.log_work()
    if not len(log_work) or np.logaddexp.reduce(log_work) <= np.log(max_entries):
        return
    worst = int(np.argmax(log_work))
    step = components.steps[components.ptr[worst]]
    name = parts.real_name(int(grid.free[components.elimination.order[step]]))
    num_reals = int(components.ptr[worst + 1] - components.ptr[worst])
    num_discrete = int(components.discrete_ptr[worst + 1] - components.discrete_ptr[worst])
    raise IntractableError(
        f"{num_reals} coupled reals ('{name}' among them) depend on {num_discrete} discrete "
        f"variables or nodes with 2^{components.log_num_states[worst] / np.log(2):.1f} joint "
        "states: an exact answer has a Gaussian for each. "
        f"The limit is {max_entries:.3g} numbers.",
        OBSERVE_MORE,
    )


def _check_cliques(
    order: Elimination, num_states: Ids32, num_gridded: int, max_entries: int
) -> None:
    log_states = np.log(num_states[order.order].astype(np.float64))
    sizes = log_states + order.separator_sums(log_states)
    messages = np.logaddexp.reduce(order.separator_sums(log_states)) if len(sizes) else -np.inf
    if not len(sizes) or max(sizes.max(), messages) <= np.log(max_entries):
        return
    width = int(np.diff(order.ptr).max())
    note = f" ({num_gridded} bounded reals among them)" if num_gridded else ""
    raise IntractableError(
        f"exact elimination of these {len(num_states)} variables{note} has width {width}: its "
        f"largest table would have 2^{sizes.max() / np.log(2):.1f} entries, its messages together "
        f"2^{messages / np.log(2):.1f}. {limit_of(max_entries)}",
        OBSERVE_MORE,
    )


def raise_divergent(parts: Parts, reals: Reals, state: Ids32, maximise: bool) -> NoReturn:
    """Names the reals that are not integrable in this joint state of the discrete variables."""
    components, gaussian = reals.components, reals.gaussian
    joint = gaussian.state_ptr[:-1] + components.joint_states(state, reals.grid.num_states)
    if not (gaussian.failed[joint] >= 0).any():
        raise DivergentModelError(
            "the model's numbers are too large to compute with: in some joint state its log-values "
            f"add up to more than {INFINITE:.0e}"
        )
    component = int(np.argmax(gaussian.failed[joint] >= 0))
    failed = int(gaussian.failed[joint[component]])
    inside = components.steps[components.ptr[component] : components.ptr[component + 1]]
    steps = np.concatenate([[failed], inside[inside != failed]])[:5]
    names = [parts.real_name(int(reals.of_step[step])) for step in steps]
    near = components.discrete[slice(*components.discrete_ptr[component : component + 2])]
    states = [_setting(parts, reals.grid, int(d), int(state[d])) for d in near[:12]]
    coupled = f" ('{names[0]}' is coupled to {', '.join(names[1:])})" if len(names) > 1 else ""
    if parts.has_bounds[reals.of_step[inside]].any():
        where = ", ".join(f"{name} = {value}" for name, value in states)
        raise UnsupportedError(
            f"exact inference cannot integrate over '{names[0]}'"
            f"{f' with {where}' if where else ''}{coupled}: without their bounds the integral is "
            "infinite, and numerical integration needs bounds on both sides of each of them."
        )
    trouble = "exact MAP cannot be found: " if maximise else "the model cannot be normalised: "
    raise ImproperDirection(((names[0], 1.0),), tuple(states), context=trouble).error(coupled)


def _setting(parts: Parts, grid: Grid, number: int, state: int) -> tuple[str, str]:
    """The name of a discrete variable or gridded real, and its state or value."""
    if number >= grid.num_discrete:
        place = number - grid.num_discrete
        return parts.real_name(int(grid.real[place])), f"{grid.nodes[place, state]:.3g}"
    variable = int(parts.discrete[number])
    states = parts.graph.variables.domain(variable).states
    assert states is not None
    return parts.graph.variables.names[variable], states[state]
