"""States that no most probable assignment needs, found factor by factor and left out.

State s of a discrete variable *beats* state t if going from t to s never lowers the log-density,
whatever all other variables are. Each factor gains at least its smallest difference
log ψ(s, ·) - log ψ(t, ·) over all values of its other slots, so that it is enough that these
smallest differences sum to 0 or more (Goldstein's criterion of dead-end elimination; the special
case is that none of them is negative). Any assignment with t may then be exchanged for one with s
that is as good: some most probable assignment is without t. Of states that beat each other the
lowest stays.

A factor in which t is impossible can only gain. Reals count as unbounded, which errs on the safe
side. So do a user's own functions, whose variables keep all their states, and rounding, which
`least_value` counts against s.

Only rounded constants are forgiven: of -w (x - 2.1)², which is never above 0, the stored c may
leave a maximum of 10⁻¹⁶. A loss of that size counts as none, and `ReducedGraph.forgiven` bounds
the cost of this over all dropped states. Curvatures and slopes are never forgiven: along an
unbounded real they have no such limit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hylift.errors import ImpossibleEvidenceError
from hylift.graph import Evidence, FactorGraph, FactorGroup
from hylift.inference.exact.elimination import Flags, FloatArray, Ids
from hylift.inference.exact.one_pass import NO_STATE
from hylift.numerics.rounded import difference, least_value
from hylift.potentials import ConditionalQuadratic, Potential, Table
from hylift.potentials.base import along_axis

MARGIN = 1e-9
"""Share by which summed gains must exceed summed losses: more than rounding."""

ROUNDING = 32 * float(np.finfo(np.float64).eps)
"""Largest loss that is forgiven, relative to 1 + the largest constant of the quadratic."""

MAX_STATES = 32
"""Variables with more states are left alone, since all pairs of states are compared."""

MAX_EXPANDED = 2**22
"""Numbers computed at once, at most."""

MAX_ROUNDS = 100


@dataclass(frozen=True, slots=True, eq=False)
class ReducedGraph:
    """A graph without the variables that have one state left; others have dropped states at -inf.

    The largest log-density is that of the whole graph, or lower by `forgiven` at most.
    """

    graph: FactorGraph
    left: Ids  # (variable of `graph`,): its id in the whole graph
    fixed: FloatArray  # (variable of the whole graph,): states of those that are not left
    num_dropped: int  # states, over all variables
    forgiven: float = 0.0

    @property
    def num_fixed(self) -> int:
        return len(self.fixed) - len(self.left)

    def spread(self, values: FloatArray) -> FloatArray:
        """An assignment to the whole graph, from one to `graph`."""
        whole = self.fixed.copy()
        whole[self.left] = values
        return whole


@dataclass(frozen=True, slots=True, eq=False)
class States:
    """The states of all variables, and which of them have been dropped."""

    num_states: Ids  # (variable,)
    dropped: Flags  # flat

    @property
    def first(self) -> Ids:
        """(variable,): where its states start."""
        return np.cumsum(self.num_states) - self.num_states

    @property
    def owner(self) -> Ids:
        """(state,): its variable."""
        return np.repeat(np.arange(len(self.num_states)), self.num_states)

    @property
    def num_left(self) -> Ids:
        """(variable,): states that are not dropped."""
        return np.bincount(self.owner[~self.dropped], minlength=len(self.num_states))

    def of(self, variable: NDArray[Any], size: int) -> Flags:
        """(variable, state): which are dropped, of variables of one size."""
        return np.asarray(self.dropped[self.first[variable][:, None] + np.arange(size)])


def without_dominated(graph: FactorGraph) -> ReducedGraph:
    """Drop beaten states and absorb variables with one state left, until nothing changes; the graph
    has no evidence."""
    num_states = graph.variables.num_states.astype(np.int64)
    states = States(num_states, np.zeros(num_states.sum(), dtype=bool))
    left, fixed = np.arange(graph.num_variables), np.zeros(graph.num_variables)
    num_dropped, forgiven = 0, 0.0
    for _ in range(MAX_ROUNDS):
        before = states
        states, price = _drop(graph, before)
        forgiven += price
        more = int(np.count_nonzero(states.dropped & ~before.dropped))
        num_dropped += more
        single = np.flatnonzero(states.num_left == 1)
        if not len(single):
            if not more:
                break
            continue
        state = np.flatnonzero(~states.dropped & np.isin(states.owner, single))
        fixed[left[single]] = state - states.first[single]
        graph = _absorbed(graph, single, fixed[left[single]])
        keep = np.ones(len(left), dtype=bool)
        keep[single] = False
        states = States(states.num_states[keep], states.dropped[keep[states.owner]])
        left = left[keep]
    return ReducedGraph(_with_dropped(graph, states), left, fixed, num_dropped, forgiven)


def _absorbed(graph: FactorGraph, variable: Ids, state: FloatArray) -> FactorGraph:
    try:
        return graph.observe(Evidence.of(variable.astype(np.int32), state)).condition()
    except ImpossibleEvidenceError:
        raise ImpossibleEvidenceError(NO_STATE) from None


def _with_dropped(graph: FactorGraph, states: States) -> FactorGraph:
    """The graph with a factor for each variable some of whose states are dropped."""
    some = np.flatnonzero((states.num_left < states.num_states) & (states.num_states > 0))
    groups = []
    for size in np.unique(states.num_states[some]).tolist():
        variable = some[states.num_states[some] == size]
        log_table = np.where(states.of(variable, size), -np.inf, 0.0)
        groups.append(FactorGroup(Table(log_table), variable[:, None], label="dominated states"))
    return FactorGraph(graph.variables, (*graph.groups, *groups), log_constant=graph.log_constant)


@dataclass(frozen=True, slots=True, eq=False)
class Changes:
    """Smallest differences, summed over factors by sign, for pairs of states (variable, s, t)."""

    first: Ids  # (variable,): where its pairs start
    gain: FloatArray  # flat
    loss: FloatArray  # flat
    rounding: FloatArray  # flat: the part of `loss` that may be forgiven

    @property
    def price(self) -> FloatArray:
        """The largest loss of going from t to s, which has to be forgiven."""
        with np.errstate(invalid="ignore"):
            uncovered = self.loss - self.gain * (1 - MARGIN)
        return np.where(self.gain == np.inf, 0.0, np.maximum(uncovered, 0.0))

    @property
    def beats(self) -> Flags:
        return self.price <= self.rounding


def _drop(graph: FactorGraph, states: States) -> tuple[States, float]:
    """The states after one round, without those that another beats, and what was forgiven."""
    sizes = np.where(states.num_states <= MAX_STATES, states.num_states, 0)
    numbers = int((sizes**2).sum())
    changes = Changes(np.cumsum(sizes**2) - sizes**2, *(np.zeros(numbers) for _ in range(3)))
    for whole in graph.groups:
        for group in _without_dropped(whole, states):
            _add_differences(group, states.num_states, changes)
    beats, price = changes.beats, changes.price
    dropped, forgiven = states.dropped.copy(), 0.0
    for size in np.unique(sizes[sizes > 1]).tolist():
        variable = np.flatnonzero(sizes == size)
        at = (changes.first[variable][:, None] + np.arange(size * size)).reshape(-1, size, size)
        here = states.of(variable, size)
        # From the last state on, so that of equal ones the first stays. What beats a state is
        # there when it is dropped, so one always stays.
        for state in reversed(range(size)):
            rivals = beats[at[:, :, state]] & ~here
            rivals[:, state] = False
            lost = rivals.any(axis=1) & ~here[:, state]
            cheapest = np.where(rivals, price[at[:, :, state]], np.inf).min(axis=1)
            forgiven += float(cheapest[lost].sum())
            here[:, state] |= lost
        dropped[states.first[variable][:, None] + np.arange(size)] = here
    return States(states.num_states, dropped), forgiven


def _without_dropped(group: FactorGroup, states: States) -> list[FactorGroup]:
    """The factors with -inf at dropped states, unless that takes too many numbers: then fewer
    further states are dropped."""
    some = states.num_left < states.num_states
    has_some = some[group.scope].any(axis=1)
    touched, others = np.flatnonzero(has_some), np.flatnonzero(~has_some)
    potential, form = group.potential, group.potential.quadratic()
    if not len(touched) or form is None:
        return [group]
    if len(touched) * max(form.A[0].size, form.c[0].size) > MAX_EXPANDED:
        return [group]
    inside = group.take(touched)
    sizes = potential.slot_states[: potential.num_discrete_slots]
    changed = form.c[inside.row].reshape(len(inside), *sizes)
    for slot, size in enumerate(sizes):
        mask = states.of(inside.scope[:, slot], size)
        shape = along_axis(slot, len(sizes), len(mask))
        changed = np.where(mask.reshape(shape), -np.inf, changed)
    own: Potential = Table(changed)
    if form.num_reals:
        A, b = (v[inside.row].reshape(*changed.shape, *v.shape[2:]) for v in (form.A, form.b))
        own = ConditionalQuadratic(A, b, changed)
    rows = np.arange(len(inside), dtype=np.int32)
    return [group.take(others), FactorGroup(own, inside.scope, rows, inside.multiplicity)]


def _add_differences(group: FactorGroup, num_states: Ids, changes: Changes) -> None:
    """Add the smallest differences of each factor to those of its variables' pairs."""
    forgivable = _forgivable(group.potential)
    for slot in range(group.arity):
        sizes = num_states[group.scope[:, slot]]
        # The slots of a function may have variables of several sizes.
        for size in np.unique(sizes[(sizes > 1) & (sizes <= MAX_STATES)]).tolist():
            factors = np.flatnonzero(sizes == size)
            least = _smallest_differences(group.potential, slot, size)
            for part in np.array_split(factors, 1 + len(factors) * size**2 // MAX_EXPANDED):
                change = least[group.row[part]].reshape(len(part), -1)
                loss = np.maximum(-change, 0.0)
                rounding = np.where(loss <= forgivable[group.row[part]][:, None], loss, 0.0)
                times = group.multiplicity[part][:, None]
                first = changes.first[group.scope[part, slot]]
                at = (first[:, None] + np.arange(size * size)).reshape(-1)
                np.add.at(changes.gain, at, (np.maximum(change, 0.0) * times).reshape(-1))
                np.add.at(changes.loss, at, (loss * times).reshape(-1))
                np.add.at(changes.rounding, at, (rounding * times).reshape(-1))


def _forgivable(potential: Potential) -> FloatArray:
    """(row,): the largest loss that may be due to rounded constants."""
    form = potential.quadratic()
    if form is None or not form.num_reals:
        return np.zeros(potential.num_rows)
    return ROUNDING * (1 + np.abs(np.where(np.isfinite(form.c), form.c, 0.0)).max(axis=1))


def _smallest_differences(potential: Potential, slot: int, size: int) -> FloatArray:
    """(row, s, t): least log ψ(s, ·) - log ψ(t, ·) over the other slots, where t is possible."""
    least, form = np.full((potential.num_rows, size, size), -np.inf), potential.quadratic()
    if form is None:
        return least
    states = potential.slot_states[: potential.num_discrete_slots]
    c = _by_state(form.c, states, slot)
    for t in range(size):
        with np.errstate(invalid="ignore"):
            change = c - c[:, t : t + 1]
        if form.num_reals:
            finite = form._replace(c=np.where(np.isfinite(form.c), form.c, 0.0))
            A, b, constant = (_by_state(values, states, slot) for values in finite)
            pairs = (difference(values, values[:, t : t + 1]) for values in (A, b, constant))
            change = np.where(np.isfinite(change), least_value(*pairs), change)
        least[:, :, t] = np.where(c[:, t : t + 1] == -np.inf, np.inf, change).min(axis=2)
    return least


def _by_state(values: FloatArray, states: tuple[int, ...], slot: int) -> FloatArray:
    """`values` (row, joint state, ...) as (row, state of the slot, other states, ...)."""
    rows, _, *rest = values.shape
    front = np.moveaxis(values.reshape(rows, *states, *rest), 1 + slot, 1)
    return front.reshape(rows, states[slot], -1, *rest)
