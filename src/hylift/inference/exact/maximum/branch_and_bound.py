"""The best joint state of discrete variables whose tables would not fit, by branch and bound.

The reals have been maximised over, component by component, so only tables are left. They are
written as a mixed-integer program, which HiGHS solves and bounds. A state counts as the best only
if its own log-value, summed from the tables, meets the proven bound.
"""

from __future__ import annotations

import time
from typing import Any, NoReturn

import numpy as np

from hylift.errors import ImpossibleEvidenceError, IntractableError
from hylift.graph import FactorGroup
from hylift.inference.exact.elimination import Flags, Ids32, number_axes, scope_edges
from hylift.inference.exact.integrated import Integrated
from hylift.inference.exact.kernels.tables import INFINITE
from hylift.inference.exact.maximum.linear_program import Program, make_program, num_entries
from hylift.inference.exact.one_pass import NO_STATE, PassResult, raise_divergent
from hylift.inference.terms import Terms
from hylift.numerics.sparse import connected
from hylift.potentials import Table
from hylift.rewrite.kinds import Kinds
from hylift.words import Wording, worded

PROVEN = 1e-9
"""Largest gap that counts as none, in addition to the last digits of the energy."""

EPS = float(np.finfo(np.float64).eps)

SCALE = 2.0**13
"""Factor of all costs, since HiGHS stops at a gap of 1e-6, which SciPy cannot change."""

MAX_NUMBERS = 5_000_000
"""Most numbers in the matrix of a program."""

SMALL = 16
"""Components of at most so many variables are solved together."""

LIMIT, INFEASIBLE = 1, 2
"""Statuses of `scipy.optimize.milp` other than an optimum."""


def best_states(kinds: Kinds, reals: Integrated, seconds: float) -> PassResult:
    """The joint state of the largest log-density, the reals having been maximised over."""
    deadline = time.monotonic() + seconds
    number, num_states = number_axes(reals.axes.num_states)
    of_components, constant = reals.component_tables
    groups = [
        FactorGroup(group.potential, number[group.scope], group.row, group.multiplicity)
        for group in (*reals.tables, *_as_groups(of_components))
    ]
    if kinds.log_constant == -np.inf:
        raise ImpossibleEvidenceError(NO_STATE)
    if constant > INFINITE or any(_diverges(group).any() for group in groups):
        # Is a joint state without maximum possible? The most entries of that kind that one has.
        counting = [_counting(group) for group in groups]
        state, count = _solve_apart(counting, num_states, deadline)
        if constant > INFINITE or count > 0:
            raise_divergent(kinds, reals, reals.axes.spread(state), maximise=True)
        groups = [_without_divergent(group) for group in groups]
    state, log_max = _solve_apart(groups, num_states, deadline)
    log_max += kinds.log_constant + constant
    return PassResult(log_max, reals, reals.axes.spread(state), None, None)


def _as_groups(tables: Terms) -> list[FactorGroup]:
    """The tables as factors, one group per arity and number of states of each slot."""
    arity, found = np.diff(tables.slot_ptr), []
    for size in np.unique(arity).tolist():
        alike = np.flatnonzero(arity == size)
        scope = tables.slots[tables.slot_ptr[alike][:, None] + np.arange(size)]
        shapes, which = np.unique(tables.num_states[scope], axis=0, return_inverse=True)
        for place, shape in enumerate(shapes.tolist()):
            at = np.flatnonzero(which.reshape(-1) == place)
            entries = tables.base[alike[at]][:, None] + np.arange(int(np.prod(shape)))
            log_table = tables.theta[entries].reshape(len(at), *shape)
            found.append(FactorGroup(Table(log_table), scope[at]))
    return found


def _diverges(group: FactorGroup) -> Flags:
    return group.potential.flat > INFINITE


def _counting(group: FactorGroup) -> FactorGroup:
    """The factors with 1 for each divergent entry, and 0 for each other that is possible."""
    possible = group.potential.flat > -np.inf
    values = np.where(possible, _diverges(group).astype(np.float64), -np.inf)
    return FactorGroup(group.potential.with_flat(values), group.scope, group.row)


def _without_divergent(group: FactorGroup) -> FactorGroup:
    """The factors with -inf for each divergent entry."""
    table = group.potential.with_flat(np.where(_diverges(group), -np.inf, group.potential.flat))
    return FactorGroup(table, group.scope, group.row, group.multiplicity)


def _solve_apart(
    groups: list[FactorGroup], num_states: Ids32, deadline: float
) -> tuple[Ids32, float]:
    """The best joint state (variable,) and its log-value, each large component by itself.

    In one program, choices in one component would be tried with all choices in the others.
    """
    component = connected(len(num_states), scope_edges([g.scope for g in groups], len(num_states)))
    part = np.where(np.bincount(component)[component] > SMALL, component, -1)
    number = np.empty(len(num_states), dtype=np.int32)
    state, total = np.zeros(len(num_states), dtype=np.int32), 0.0
    for which in np.unique(part):
        variables = np.flatnonzero(part == which)
        number[variables] = np.arange(len(variables), dtype=np.int32)
        inside = []
        for group in groups:
            factors = np.flatnonzero(part[group.scope[:, 0]] == which)
            rows, row = np.unique(group.row[factors], return_inverse=True)
            potential, scope = group.potential.take(rows), number[group.scope[factors]]
            times = group.multiplicity[factors]
            inside.append(FactorGroup(potential, scope, row.astype(np.int32), times))
        state[variables], log_value = _solve(inside, num_states[variables], deadline)
        total += log_value
    return state, total


def _solve(groups: list[FactorGroup], num_states: Ids32, deadline: float) -> tuple[Ids32, float]:
    """The joint state (variable,) of the largest log-value, and that value."""
    numbers = num_entries(groups)
    if numbers > MAX_NUMBERS:
        raise IntractableError(
            f"Branch and bound over {len(num_states)} variables would need a linear program of "
            f"{numbers:.3g} numbers, where {MAX_NUMBERS:.3g} are the limit."
        )
    program = make_program(groups, num_states)
    state, energy = np.zeros(len(num_states), dtype=np.int32), np.inf
    if not program.num_integer:  # All variables have one state.
        energy = _energy(groups, state)
        if energy == np.inf:
            raise ImpossibleEvidenceError(NO_STATE)
        return state, -energy
    found = _run(program, deadline)
    if found.status == INFEASIBLE:
        raise ImpossibleEvidenceError(NO_STATE)
    if found.x is not None:
        state = program.indicators.states(found.x)
        energy = _energy(groups, state)
    known = found.mip_dual_bound is not None
    bound = program.constant + found.mip_dual_bound / SCALE if known else -np.inf
    if energy == np.inf or not energy - bound <= negligible_gap(energy):
        _raise_unproven(len(num_states), found, energy, bound)
    return state, -energy


def negligible_gap(energy: float) -> float:
    """The largest gap at which an energy counts as the least."""
    return PROVEN + 64 * EPS * abs(energy)


def _energy(groups: list[FactorGroup], state: Ids32) -> float:
    """Of a joint state, summed from the tables."""
    return -float(sum(group.log_sum(state.astype(np.float64)) for group in groups))


def _raise_unproven(num_variables: int, found: Any, energy: float, bound: float) -> NoReturn:
    """Raise, with the best state and bound that branch and bound has found."""
    ended = f"ended ('{found.message.strip()}')"
    if found.status == LIMIT:
        ended = worded("ran out of time", Wording(" (Exact(map_seconds=…))", ""))
    best = "no possible joint state"
    if energy < np.inf:
        best = f"a joint state of energy {energy:.9g}, counting the factors among these alone"
    proof = "no bound"
    if bound > -np.inf:
        proof = f"the proof that none is below {bound:.9g}: a gap of {energy - bound:.2g}"
    raise IntractableError(
        worded(
            f"Branch and bound over {num_variables} variables ",
            ended,
            f" with {best}, and with {proof}.",
        )
    )


def _run(program: Program, deadline: float) -> Any:
    """The result of HiGHS; its objective is `SCALE` times the program's, without the constant."""
    from scipy.optimize import Bounds, LinearConstraint, milp  # slow to import, rarely needed

    integrality = np.zeros(len(program.cost))
    integrality[: program.num_integer] = 1
    return milp(
        SCALE * program.cost,
        integrality=integrality,
        bounds=Bounds(0, 1),
        constraints=LinearConstraint(program.matrix, program.lower, program.upper),
        options={"mip_rel_gap": 0.0, "time_limit": max(deadline - time.monotonic(), 0.0)},
    )
