"""One exact pass: tables summed over the axes, the reals having been integrated out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NoReturn

import numpy as np

from hylift.errors import (
    DivergentModelError,
    ImpossibleEvidenceError,
    IntractableError,
    UnsupportedError,
)
from hylift.inference.exact import tables
from hylift.inference.exact.elimination import (
    Elimination,
    Flags,
    FloatArray,
    Ids,
    Ids32,
    eliminate_tables,
    never,
    number_axes,
    scope_edges,
    scopes_by_arity,
)
from hylift.inference.exact.integrated import COARSE, Integrated, OnLattice
from hylift.inference.exact.kernels.tables import INFINITE
from hylift.inference.exact.lattices.collapsed import RESOLUTION
from hylift.inference.exact.meter import LONG, OBSERVE_MORE, Meter, limit_of
from hylift.inference.terms import Terms
from hylift.numerics.segments import offsets, ranges
from hylift.proper.improper import ImproperDirection
from hylift.rewrite.kinds import Kinds
from hylift.words import counted

NO_STATE = "no joint state is possible: the hard constraints and the evidence contradict each other"

LOG_TRIMMED = float(np.log(8.0))
"""Log of how much smaller tables may become once windows are trimmed to where reals are."""

OCCUPIED = 1e-18
"""Probability of a node of it, relative to the largest, that is looked at more closely."""

MOST_WIDENED, MOST_SPLIT = 5, 12
"""Passes on wider windows and smaller cells after which what lies beyond the windows must have
become less: where they are long, and where they are not."""


@dataclass(frozen=True, slots=True, eq=False)
class PassResult:
    """The outcome of one pass."""

    log_total: float
    reals: Integrated
    state: Ids32 | None  # (variable,): the maximising states of axes
    marginals: FloatArray | None  # flat, by axis
    weights: FloatArray | None  # per component of reals and state: its probability
    order: Elimination | None = None

    @property
    def on_lattice(self) -> FloatArray:
        """(state of the lattice,): its probability, of cells a bound on it."""
        assert self.reals.promoted is not None
        assert self.marginals is not None
        lattice = self.reals.promoted.lattice
        return self.marginals[ranges(self.reals.axes.first[lattice.real], lattice.num_states)]

    @property
    def beyond(self) -> float:
        """A bound on the probability of all that lies beyond the windows of lattices."""
        if self.reals.promoted is None:
            return 0.0
        return float(self.on_lattice[self.reals.promoted.lattice.cells].sum())

    @property
    def rounding(self) -> float:
        """Rough rounding error of the volumes of reals, weighted by probability where known."""
        gaussian = self.reals.gaussian
        if self.weights is not None:
            return float(self.weights @ gaussian.rounding)
        if not len(gaussian.rounding):
            return 0.0
        return float(np.maximum.reduceat(gaussian.rounding, gaussian.state_ptr[:-1]).sum())

    def real_states(self, some: Flags | None = None) -> tuple[Ids, FloatArray, Ids]:
        """Of every state of some free reals (step,), or of all: the variable, the probability, 1
        where unknown, and the position among all states of all."""
        gaussian, components = self.reals.gaussian, self.reals.components
        step = np.arange(len(components.real)) if some is None else np.flatnonzero(some)
        of_step = components.of_step[step]
        count = np.diff(gaussian.state_ptr)[of_step]
        real, at = np.repeat(components.real[step], count), ranges(gaussian.real_ptr[step], count)
        if self.weights is None:
            return real, np.ones(len(real)), at
        return real, self.weights[ranges(gaussian.state_ptr[of_step], count)], at


def sum_resolved(
    kinds: Kinds,
    reals: Integrated,
    max_entries: int,
    *,
    marginals: bool,
    meter: Meter,
) -> PassResult:
    """Sums over the axes, with promoted reals on lattices that resolve them."""
    found: Integrated | None = reals
    passes, first, begun = 0, 0.0, 0.0
    while found is not None:
        outcome = sum_states(
            kinds, found, max_entries, maximise=False,
            marginals=marginals or found.promoted is not None, meter=meter,
        )  # fmt: skip
        if found.promoted is not None and found.promoted.epsilon < np.inf:
            passes += 1
            if passes == 1:
                first, begun = outcome.beyond, meter.seconds
            is_long = passes >= MOST_WIDENED and meter.seconds - begun > LONG
            if (is_long or passes >= MOST_SPLIT) and not outcome.beyond < 0.5 * first:
                lattice = found.promoted.lattice
                raise lattice.unbounded(lattice.excess(outcome.on_lattice))
        finer = _next_lattice(outcome)
        found = None if finer is None else found.on(finer, max_entries, meter)
    return outcome


def _next_lattice(outcome: PassResult) -> OnLattice | None:
    """A lattice that resolves the reals where they can be, or one with wider windows; None if that
    makes no difference."""
    promoted = outcome.reals.promoted
    if promoted is None:
        return None
    before, probs = promoted.lattice, outcome.on_lattice
    if promoted.epsilon < np.inf:
        excess = before.excess(probs)
        if excess.sum() <= 1:
            return None
        return promoted.wider(excess, outcome.order)
    if (before.num_nodes > 0).all():
        return promoted.refined(before.trimmed(probs, OCCUPIED), outcome.order)
    windows = before.ends(probs, OCCUPIED) + 1.5 * before.spacing[:, None] * np.array([-1, 1])
    if before.is_narrower(windows):
        return OnLattice.coarse(promoted.collapsed, windows, outcome.order)
    return promoted.refined(windows, outcome.order)


def sum_states(
    kinds: Kinds,
    reals: Integrated,
    max_entries: int,
    *,
    maximise: bool,
    marginals: bool,
    meter: Meter,
) -> PassResult:
    """Sums (or maximises) over the axes, the free reals having been dealt with."""
    plan, order, own, of_components, constant = plan_tables(reals, max_entries, meter.look)
    _, num_states = number_axes(reals.axes.num_states)
    share = 0.5 if marginals else 1.0
    work = plan.seconds(marginals=marginals)
    if reals.promoted is None or reals.promoted.order is None:
        work += plan.seconds_to_order()
    meter.begin(work, len(plan.layout.clique))
    messages, kept, log_sum = tables.collect(
        plan, maximise=maximise, keep=marginals, advance=lambda s: meter.advance(share * s)
    )

    def decoded(best: FloatArray) -> Ids32:
        return reals.axes.spread(tables.decode(plan, best)[order.step])

    log_total = log_sum + kinds.log_constant + constant
    if np.isnan(log_total):
        raise DivergentModelError(
            "the model's numbers are too large to compute with: log Z is not a number"
        )
    if log_total == -np.inf:
        _raise_impossible(reals, max_entries)
    if log_total > INFINITE:
        best = messages if maximise else tables.collect(plan, maximise=True)[0]
        raise_divergent(kinds, reals, decoded(best), maximise)
    state = decoded(messages) if maximise else None
    if not marginals:
        return PassResult(log_total, reals, state, None, None)
    wanted = np.arange(len(own), len(own) + len(of_components))
    by_step, joints = tables.distribute(
        plan, messages, kept, wanted, advance=lambda s: meter.advance(share * s)
    )
    first = offsets(num_states[order.order])[order.step]
    marginal = by_step[ranges(first, num_states)]
    return PassResult(log_total, reals, state, marginal, reals.weights(joints), order)


def plan_tables(
    reals: Integrated, max_entries: int, look: Callable[[], None] = never
) -> tuple[tables.TablePlan, Elimination, Terms, Terms, float]:
    """A plan to eliminate the axes, its order, its factors (tables, then those of components),
    and the sum of components without axes."""
    number, num_states = number_axes(reals.axes.num_states)
    of_components, constant = reals.component_tables
    scopes = [group.scope for group in reals.tables]
    own = Terms.of(reals.tables, reals.axes.num_states)
    parts, lattice = [of_components], reals.promoted.lattice if reals.promoted else None
    if reals.promoted is not None:
        parts += reals.promoted.collapsed.tables(reals.promoted.lattice)
    for part in parts:
        scopes += scopes_by_arity(part.slot_ptr[:-1], np.diff(part.slot_ptr), part.slots)
    order = reals.promoted.order if reals.promoted else None
    if order is None:
        log_states, log_limit = np.log(num_states.astype(np.float64)), float(np.log(max_entries))
        if reals.promoted and reals.promoted.epsilon == np.inf:  # a good order for finer ones
            log_states[number[reals.promoted.lattice.real]] += np.log(COARSE / RESOLUTION)
            log_limit += LOG_TRIMMED
        edges = scope_edges([number[scope] for scope in scopes], len(num_states))
        order = eliminate_tables(log_states, edges, log_limit=log_limit, look=look)
    _check_cliques(order, num_states, len(reals.axes.real), max_entries)
    step = reals.axes.spread(order.step)
    plan = tables.plan(order, num_states[order.order], step, own, *parts, lattice=lattice)
    return plan, order, own, of_components, constant


def _check_cliques(
    order: Elimination, num_states: Ids32, num_gridded: int, max_entries: int
) -> None:
    log_states = np.log(num_states[order.order].astype(np.float64))
    sizes = log_states + order.separator_sums(log_states)
    messages = np.logaddexp.reduce(order.separator_sums(log_states)) if len(sizes) else -np.inf
    if not len(sizes) or max(sizes.max(), messages) <= np.log(max_entries):
        return
    width = int(np.diff(order.ptr).max())
    note = f" ({counted(num_gridded, 'bounded real')} among them)" if num_gridded else ""
    raise IntractableError(
        f"exact elimination of these {len(num_states)} variables{note} has width {width}: its "
        f"largest table would have 2^{sizes.max() / np.log(2):.1f} entries, its messages together "
        f"2^{messages / np.log(2):.1f}. {limit_of(max_entries)}",
        OBSERVE_MORE,
    )


def _raise_impossible(reals: Integrated, max_entries: int) -> NoReturn:
    """Says that no joint state is possible, unless only the nodes of some reals are not."""
    axes, gaussian = reals.axes, reals.gaussian
    if len(axes.real):
        beside = [group for group in reals.tables if (axes.row[group.scope] < 0).all()]
        flat = replace(
            gaussian,
            log_total=np.zeros_like(gaussian.log_total),
            failed=np.full_like(gaussian.failed, -1),
        )
        relaxed = replace(reals, tables=beside, gaussian=flat)
        if tables.collect(plan_tables(relaxed, max_entries)[0], maximise=True)[2] > -np.inf:
            raise IntractableError(
                f"the density is 0, or too small a number, at all nodes of "
                f"{counted(len(axes.real), 'real')}: where else it is more is not known"
            )
    raise ImpossibleEvidenceError(NO_STATE)


def raise_divergent(kinds: Kinds, reals: Integrated, state: Ids32, maximise: bool) -> NoReturn:
    """Names the reals that are not integrable in this joint state (variable,) of the axes."""
    components, gaussian = reals.components, reals.gaussian
    joint = gaussian.state_ptr[:-1] + components.joint_states(state)
    if not (gaussian.failed[joint] >= 0).any():
        raise DivergentModelError(
            "the model's numbers are too large to compute with: in some joint state its log-values "
            f"add up to more than {INFINITE:.0e}"
        )
    component = int(np.argmax(gaussian.failed[joint] >= 0))
    failed = int(gaussian.failed[joint[component]])
    inside = components.steps[components.ptr[component] : components.ptr[component + 1]]
    steps = np.concatenate([[failed], inside[inside != failed]])[:5]
    variables, within = kinds.graph.variables, components.real[inside]
    names = [variables.names[int(real)] for real in components.real[steps]]
    near = components.discrete[slice(*components.discrete_ptr[component : component + 2])]
    states = [_setting(kinds, reals, int(d), int(state[d])) for d in near[:12]]
    coupled = f" ('{names[0]}' is coupled to {', '.join(names[1:])})" if len(names) > 1 else ""
    if (np.isfinite(variables.lower) | np.isfinite(variables.upper))[within].any():
        where = ", ".join(f"{name} = {value}" for name, value in states)
        raise UnsupportedError(
            f"exact inference cannot integrate over '{names[0]}'"
            f"{f' with {where}' if where else ''}{coupled}: without their bounds the integral is "
            "infinite, and numerical integration needs bounds on both sides of each of them."
        )
    trouble = "exact MAP cannot be found: " if maximise else "the model cannot be normalised: "
    raise ImproperDirection(((names[0], 1.0),), tuple(states), context=trouble).error(coupled)


def _setting(kinds: Kinds, reals: Integrated, variable: int, state: int) -> tuple[str, str]:
    """The name of a variable on an axis, and its state or value."""
    variables, axes = kinds.graph.variables, reals.axes
    name, states = variables.names[variable], variables.domain(variable).states
    if states:
        return name, states[state]
    if reals.promoted and reals.promoted.lattice.row[variable] >= 0:
        lattice = reals.promoted.lattice
        return name, f"{lattice.low[lattice.ptr[lattice.row[variable]] + state]:.3g}"
    return name, f"{axes.nodes[axes.row[variable], state]:.3g}"
