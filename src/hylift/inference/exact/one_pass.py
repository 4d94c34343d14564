"""One exact pass: integrate out the free reals, then sum tables over the axes."""

from __future__ import annotations

from dataclasses import dataclass, replace
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
from hylift.inference.exact.axes import Axes, put_on_axes
from hylift.inference.exact.collapsed import DIVERGES, Collapsed
from hylift.inference.exact.elimination import (
    OBSERVE_MORE,
    Elimination,
    Flags,
    FloatArray,
    Ids,
    Ids32,
    eliminate_tables,
    limit_of,
    number_axes,
    scope_edges,
    scopes_by_arity,
)
from hylift.inference.exact.gaussian import (
    NONE,
    Components,
    GaussianStates,
    find_components,
    solve_states,
)
from hylift.inference.exact.kernels.tables import INFINITE
from hylift.inference.exact.lattice import Lattice
from hylift.inference.exact.promotion import to_promote
from hylift.inference.terms import Terms, joined
from hylift.numerics.segments import offsets, ranges
from hylift.progress import Progress
from hylift.proper.check import check_proper
from hylift.proper.improper import ImproperDirection
from hylift.rewrite.kinds import Kinds

NO_STATE = "no joint state is possible: the hard constraints and the evidence contradict each other"

NEGLIGIBLE = 1e-12
"""Probability of a state below which its rounding errors do not matter."""


COARSE = 2.5
"""Spacing of the first lattice, in standard deviations: good enough to see where a real can be."""
OCCUPIED = 1e-18
"""Probability of a node of it, relative to the largest, that is looked at more closely."""
UNPROVEN = 1e6
"""Standard deviations that cells reach where nothing proves how far they must."""
BEYOND = 1e-12
"""Probability that may lie beyond the windows of lattices."""


SECONDS_PER_PASS, SECONDS_PER_ENTRY, SECONDS_PER_NUMBER = 5e-3, 5e-9, 4e-8
"""Rough times for a pass, an entry of a table that is summed once, and a number of a Gaussian."""

LONG = 2.0
"""Seconds from which on a pass is announced with the time that it will take."""


@dataclass(slots=True)
class Meter:
    """Progress of exact inference, the time that it should take, and the time that it may take."""

    progress: Progress
    limit: float = np.inf
    """Seconds; a pass that would take longer is refused before it begins."""
    what: str = "eliminating variables"
    seconds: float = 0.0
    """Predicted for all passes so far."""
    done: float = 0.0
    """The share of this pass."""

    def begin(self, seconds: float) -> None:
        """A pass that should take so many seconds."""
        self.seconds += seconds + SECONDS_PER_PASS
        self.done = 0.0
        if self.seconds > self.limit:
            raise IntractableError(
                f"exact inference would take about {self.seconds:.2g} seconds here, more than "
                f"{self.limit:.3g}."
            )
        if seconds > LONG:
            self.progress(0.0, f"{self.what}: about {seconds:.0f} s")

    def advance(self, share: float) -> None:
        """A further share of the pass is done."""
        self.done += share
        self.progress(min(self.done, 1.0), self.what)


@dataclass(frozen=True, slots=True, eq=False)
class OnLattice:
    """Reals that are summed over a lattice, and their factors."""

    collapsed: Collapsed
    lattice: Lattice
    tables: Terms  # of what does not depend on free reals
    epsilon: float
    """The relative error of the sum over the whole lattice, at most; inf of a coarse one."""
    is_proven: bool
    """True if next to nothing lies beyond the last cells, in any joint state."""


@dataclass(frozen=True, slots=True, eq=False)
class Integrated:
    """The free reals integrated out, or maximised over, in every state of the axes."""

    axes: Axes
    tables: list[FactorGroup]  # of the axes
    components: Components  # of the free reals
    gaussian: GaussianStates
    promoted: OnLattice | None = None

    @property
    def bare_axes(self) -> Axes:
        """The axes without the lattice."""
        if self.promoted is None:
            return self.axes
        num_states = self.axes.num_states.copy()
        num_states[self.promoted.lattice.real] = 0
        return replace(self.axes, num_states=num_states)

    @property
    def is_state(self) -> Flags:
        """(variable,): True for a discrete variable."""
        return (self.bare_axes.num_states > 0) & (self.axes.row < 0)

    @property
    def improper(self) -> Ids:
        """Reals in components whose integral diverges in some state."""
        states = np.diff(self.gaussian.state_ptr)
        owner = np.repeat(np.arange(len(states)), states)
        bad = np.unique(owner[self.gaussian.failed >= 0])
        return self.components.real[np.isin(self.components.of_step, bad)]

    @property
    def is_infinite(self) -> bool:
        """True if some component has no finite integral in any state."""
        gaussian = self.gaussian
        if not len(gaussian.failed):
            return False
        finite = np.add.reduceat(gaussian.failed < 0, gaussian.state_ptr[:-1])
        return bool((finite == 0).any())

    def without_failed(self) -> Integrated:
        """The same, with probability 0 where the integral diverges, unless that is everywhere."""
        gaussian = self.gaussian
        if self.is_infinite or not (gaussian.failed >= 0).any():
            return self
        log_total = np.where(gaussian.failed >= 0, -np.inf, gaussian.log_total)
        failed = np.full_like(gaussian.failed, -1)
        return replace(self, gaussian=replace(gaussian, log_total=log_total, failed=failed))

    @property
    def component_tables(self) -> tuple[Terms, float]:
        """The log-totals of components that depend on axes, as tables, and the sum of the others.

        A table starts at `base` where the states of its component start in `GaussianStates`.
        """
        gaussian, components = self.gaussian, self.components
        values = np.where(gaussian.failed >= 0, DIVERGES, gaussian.log_total)
        arity, start = np.diff(components.discrete_ptr), gaussian.state_ptr[:-1]
        some = arity > 0
        found = Terms(
            self.axes.num_states,
            offsets(arity[some]),
            components.discrete,
            arity[some].astype(np.int32),
            start[some],
            np.ones(np.count_nonzero(some)),
            values,
        )
        return found, float(values[start[~some]].sum())


@dataclass(frozen=True, slots=True, eq=False)
class PassResult:
    """The outcome of one pass."""

    log_total: float
    reals: Integrated
    state: Ids32 | None  # (variable,): the maximising states of axes
    marginals: FloatArray | None  # flat, by axis
    weights: FloatArray | None  # per component of reals and state: its probability

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


def integrate_reals(
    kinds: Kinds,
    axes: Axes,
    max_entries: int,
    *,
    maximise: bool,
    moments: bool = True,
    promote: bool = False,
    meter: Meter | None = None,
) -> Integrated:
    """All free reals, component by component, in every state and node; not always with their
    moments where these are not asked for.

    promote: put reals on a coarse lattice where closed forms would have too many states
    """
    groups, quadratics = put_on_axes(kinds, axes, max_entries, maximise=maximise)
    terms = Terms.of(quadratics, axes.num_states)
    components = find_components(terms, axes.free)
    promoted = NONE
    if promote:
        promoted = to_promote(terms, components, [g.scope for g in groups], max_entries)
    if not len(promoted):
        _check_components(kinds, components, max_entries)
        if meter is not None:
            meter.begin(float(np.exp(components.log_work()).sum()) * SECONDS_PER_NUMBER)
        gaussian = solve_states(components, terms, maximise=maximise, moments=moments)
        return Integrated(axes, groups, components, gaussian)
    collapsed = Collapsed.of(quadratics, axes.num_states, axes.free, promoted, maximise=maximise)
    unit, windows = collapsed.unit, collapsed.first_windows()
    loose = np.isnan(unit) | ~np.isfinite(windows).all(axis=1)
    if loose.any():
        check_proper(kinds.graph)
        name = kinds.graph.variables.names[int(promoted[np.argmax(loose)])]
        raise IntractableError(f"a lattice of '{name}' would have no ends: nothing bounds it.")
    lattice = Lattice.of(promoted, collapsed.row, COARSE * unit, windows)
    return on_lattice(axes, groups, collapsed, lattice, max_entries)


def on_lattice(
    axes: Axes,
    groups: list[FactorGroup],
    collapsed: Collapsed,
    lattice: Lattice,
    max_entries: int,
    *,
    epsilon: float = np.inf,
    is_proven: bool = False,
) -> Integrated:
    """Everything as tables over the axes and a lattice."""
    components, gaussian, found = collapsed.on(lattice, max_entries)
    axes = replace(axes, num_states=lattice.with_states(axes.num_states))
    promoted = OnLattice(collapsed, lattice, found, epsilon, is_proven)
    return Integrated(axes, groups, components, gaussian, promoted)


def on_finer_lattice(outcome: PassResult, max_entries: int) -> Integrated | None:
    """The same reals on a lattice that resolves them where they can be, or on wider windows; None
    if that makes no difference."""
    reals, promoted = outcome.reals, outcome.reals.promoted
    if promoted is None or (promoted.epsilon < np.inf and outcome.beyond <= BEYOND):
        return None
    before, probs = promoted.lattice, outcome.on_lattice
    if promoted.epsilon < np.inf:
        windows = before.widened(probs, 0.25 * BEYOND / before.cells.size)
    else:
        ends = np.stack(before.occupied(probs, OCCUPIED), axis=1) + np.array([-1.5, 1.5])
        windows = before.first[:, None] + before.spacing[:, None] * ends
    return on_fine_lattice(reals, windows, max_entries)


def on_fine_lattice(reals: Integrated, windows: FloatArray, max_entries: int) -> Integrated:
    """The same reals on a lattice that resolves them, in these windows (promoted, 2)."""
    assert reals.promoted is not None
    collapsed, before = reals.promoted.collapsed, reals.promoted.lattice
    scale, epsilon = collapsed.resolution()
    reach = collapsed.reach(windows.mean(axis=1))
    far = collapsed.unit * UNPROVEN if reach is None else reach
    spacing, widths = scale * collapsed.unit, collapsed.widths()
    lattice = Lattice.of(before.real, before.row, spacing, windows, far, widths)
    return on_lattice(
        reals.bare_axes, reals.tables, collapsed, lattice, max_entries,
        epsilon=epsilon, is_proven=reach is not None,
    )  # fmt: skip


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
    plan, order, own, of_components, constant = plan_tables(reals, max_entries)
    _, num_states = number_axes(reals.axes.num_states)
    share = 0.5 if marginals else 1.0
    meter.begin(float(plan.size.sum()) * SECONDS_PER_ENTRY / share)
    messages, log_sum = tables.collect(
        plan, maximise=maximise, advance=lambda s: meter.advance(share * s)
    )

    def decoded(best: FloatArray) -> Ids32:
        return reals.axes.spread(tables.decode(plan, best)[order.step])

    log_total = log_sum + kinds.log_constant + constant
    if np.isnan(log_total):
        raise DivergentModelError(
            "the model's numbers are too large to compute with: log Z is not a number"
        )
    if log_total == -np.inf:
        raise ImpossibleEvidenceError(NO_STATE)
    if log_total > INFINITE:
        best = messages if maximise else tables.collect(plan, maximise=True)[0]
        raise_divergent(kinds, reals, decoded(best), maximise)
    state = decoded(messages) if maximise else None
    if not marginals:
        return PassResult(log_total, reals, state, None, None)
    wanted = np.arange(len(own), len(own) + len(of_components))
    by_step, joints = tables.distribute(
        plan, messages, wanted, advance=lambda s: meter.advance(share * s)
    )
    first = offsets(num_states[order.order])[order.step]
    weights = np.ones(len(reals.gaussian.log_total))
    weights[ranges(of_components.base, of_components.num_joint)] = joints
    return PassResult(log_total, reals, state, by_step[ranges(first, num_states)], weights)


def plan_tables(
    reals: Integrated, max_entries: int
) -> tuple[tables.TablePlan, Elimination, Terms, Terms, float]:
    """A plan to eliminate the axes, its order, its factors (tables, then those of components),
    and the sum of components without axes."""
    number, num_states = number_axes(reals.axes.num_states)
    of_components, constant = reals.component_tables
    scopes = [group.scope for group in reals.tables]
    own = Terms.of(reals.tables, reals.axes.num_states)
    beside = [reals.promoted.tables] if reals.promoted else []
    for part in (of_components, *beside):
        scopes += scopes_by_arity(part.slot_ptr[:-1], np.diff(part.slot_ptr), part.slots)
    order = eliminate_tables(
        np.log(num_states.astype(np.float64)),
        scope_edges([number[scope] for scope in scopes], len(num_states)),
        log_limit=float(np.log(max_entries)),
    )
    _check_cliques(order, num_states, len(reals.axes.real), max_entries)
    step = reals.axes.spread(order.step)
    terms = joined(own, of_components, *beside)
    plan = tables.plan(order, num_states[order.order], step, terms)
    return plan, order, own, of_components, constant


def _check_components(kinds: Kinds, components: Components, max_entries: int) -> None:
    log_work = components.log_work()
    if not len(log_work) or np.logaddexp.reduce(log_work) <= np.log(max_entries):
        return
    worst = int(np.argmax(log_work))
    real = components.real[components.steps[components.ptr[worst]]]
    name = kinds.graph.variables.names[int(real)]
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
