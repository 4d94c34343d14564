"""Mini-buckets: variable elimination in which no table is larger than a limit.

A bucket that would be too large is split, by Hölder's inequality: with weights w_r > 0 that sum to
1, Σ_x Π_r f_r(x) ≤ Π_r (Σ_x f_r(x)^(1/w_r))^(w_r). Each part eliminates a replica of the variable
of its own, so that the parts are the cliques of an ordinary elimination of replicas.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from hylift.inference.bounds.kernels import buckets as kernels
from hylift.inference.exact import tables
from hylift.inference.exact.elimination import (
    Elimination,
    FloatArray,
    Ids,
    Ids32,
    eliminate_tables,
    greedy_order,
    number_axes,
    order_of_reals,
    scope_edges,
    scopes_by_arity,
)
from hylift.inference.terms import Terms, joined
from hylift.numerics.segments import counts_up, inverse, offsets, ranges

LOG_2 = float(np.log(2.0))
MOST_SEARCHED = 20_000
"""Variables up to which the best order is searched for."""
LARGE = 600.0
"""A log of states that stands for more."""

Split = tuple[Ids32, Ids, Ids, Ids, Ids32]
"""The variable, the parent and the scope of each mini-bucket, the mini-bucket of each factor, and
the steps in scopes: see `kernels.split`."""


@dataclass(frozen=True, slots=True, eq=False)
class Buckets:
    """The mini-buckets of a set of tables, and the replicas whose variables are split.

    Replica r of a split variable may be given a cost of its own, in the last entries of
    `plan.layout.values`; the costs of all replicas of a variable add up to nothing.
    """

    plan: tables.TablePlan
    num_factors: int  # the first factors of the plan are the tables
    split: Ids  # (replica,): its mini-bucket; replicas of a variable follow each other
    replica_ptr: Ids  # (split variable + 1,): its replicas
    cost_ptr: Ids  # (replica + 1,): its costs, by state
    mean: Ids  # (cost,): the number of its variable's state among those of all split variables

    @property
    def owner(self) -> Ids:
        """(replica,): its split variable."""
        return np.repeat(np.arange(len(self.replica_ptr) - 1), np.diff(self.replica_ptr))

    @property
    def costs(self) -> FloatArray:
        """(cost,): a view of the plan's values."""
        return self.plan.layout.values[len(self.plan.layout.values) - int(self.cost_ptr[-1]) :]

    def equal_weights(self) -> FloatArray:
        """(mini-bucket,): one over the number of replicas."""
        found = np.ones(len(self.plan.layout.clique))
        found[self.split] = 1 / np.diff(self.replica_ptr)[self.owner]
        return found

    def bound(self, weight: FloatArray) -> tuple[FloatArray, float]:
        """Messages, and log of a bound on the sum; weight: (mini-bucket,)."""
        plan, count = self.plan, len(self.plan.layout.clique)
        messages, scale = np.empty(plan.num_messages), np.empty(count)
        kernels.collect(0, count, plan.layout, messages, plan.scratch(), weight, scale)
        roots = plan.layout.clique["message"][np.diff(plan.layout.clique["later"])[:, 0] == 0, 0]
        return messages, float(scale.sum() + messages[roots].sum())

    def beliefs(
        self, weight: FloatArray, messages: FloatArray, wanted: Ids
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """The slopes of the bound: of costs, of weights (mini-bucket,), and of the entries of the
        tables `wanted`. `messages` come from `bound`, and are used up."""
        plan, count = self.plan, len(self.plan.layout.clique)
        ptr = offsets(plan.layout.clique["num_states"])
        marginals, entropy = np.zeros(ptr[-1]), np.zeros(count)
        joint_at = np.full(len(plan.layout.factor), -1, dtype=np.int64)
        joint_ptr = offsets(plan.num_joint[wanted])
        joint_at[wanted] = joint_ptr[:-1]
        joints = np.zeros(joint_ptr[-1])
        kernels.distribute(
            0,
            count,
            plan.layout,
            messages,
            plan.scratch(),
            weight,
            ptr,
            marginals,
            entropy,
            joint_at,
            joints,
        )
        return marginals[ranges(ptr[self.split], np.diff(self.cost_ptr))], entropy, joints


def split_tables(num_states: Ids32, terms: list[Terms], max_entries: int) -> Buckets:
    """Mini-buckets of tables that have no more than `max_entries` each, and messages no more than
    that together, as far as the tables themselves allow.

    Of the order that is best for whole tables and that of minimum degree, the one is taken that
    has the lower bound; of a large graph, one that is found soon.
    num_states: (variable,), 0 of those that are not there.
    """
    number, states = number_axes(num_states)
    slots = number[np.concatenate([each.slots for each in terms])]
    slot_ptr = offsets(np.concatenate([np.diff(each.slot_ptr) for each in terms]))
    scopes = scopes_by_arity(slot_ptr[:-1], np.diff(slot_ptr), slots)
    log_states = np.log(states.astype(np.float64))
    edges = scope_edges(scopes, len(states))
    best: tuple[float, Buckets] | None = None
    for order in _orders(log_states, edges, max_entries):
        steps, by_step = inverse(order, len(order), np.int32)[slots], log_states[order]
        made = fitting(by_step, slot_ptr, steps, len(states), max_entries, _entries)
        found = _planned(states[order], slot_ptr, steps, terms, made)
        if not len(found.split):
            return found
        _, bound = found.bound(found.equal_weights())
        if best is None or bound < best[0]:
            best = bound, found
    assert best is not None
    return best[1]


def _orders(log_states: FloatArray, edges: Ids32, max_entries: int) -> Iterator[Ids32]:
    """(step,): orders to try."""
    if len(log_states) > MOST_SEARCHED:
        yield greedy_order(log_states, edges, float(np.log(max_entries)))
    else:
        yield eliminate_tables(log_states, edges).order
        yield order_of_reals(len(log_states), edges)


def fitting(
    sizes: FloatArray,
    slot_ptr: Ids,
    slots: Ids32,
    stop: int,
    max_entries: int,
    entries: Callable[[FloatArray, Split], float],
) -> Split:
    """The mini-buckets of the largest limit, in doublings, whose `entries` fit together.

    sizes: (step,), the log of states; slots: steps, of which those before `stop` are eliminated.
    Mini-buckets of single factors need no more room than the model itself, and are made in any
    case.
    """
    owner = np.repeat(np.arange(len(slot_ptr) - 1), np.diff(slot_ptr))
    increasing, log_limit = slots[np.lexsort((slots, owner))], float(np.log(max_entries))
    made = kernels.split(sizes, slot_ptr, increasing, log_limit, stop)
    if entries(sizes, made) <= max_entries:
        return made
    of_factor = np.bincount(owner, sizes[slots], minlength=1)
    low = int(np.ceil(max(of_factor.max(), sizes.max()) / LOG_2))
    high = max(int(np.ceil(log_limit / LOG_2)), low + 1)
    made = kernels.split(sizes, slot_ptr, increasing, LOG_2 * low, stop)
    while high - low > 1:
        middle = (low + high) // 2
        found = kernels.split(sizes, slot_ptr, increasing, LOG_2 * middle, stop)
        if entries(sizes, found) <= max_entries:
            low, made = middle, found
        else:
            high = middle
    return made


def _entries(log_states: FloatArray, made: Split) -> float:
    """Entries of all messages together; log_states: (step,)."""
    variable, _, scope_of, _, steps = made
    if not len(variable):
        return 0.0
    width = scope_of[:, 1] - scope_of[:, 0]
    sums = np.add.reduceat(log_states[steps[scope_of[0, 0] :]], offsets(width)[:-1])
    return float(np.exp(np.minimum(sums - log_states[variable], LARGE)).sum())


def _planned(
    num_states: Ids32, slot_ptr: Ids, slots: Ids32, terms: list[Terms], made: Split
) -> Buckets:
    """The plan of an elimination of replicas; num_states: (step,); slots: steps."""
    variable, parent, scope_of, home, steps = made
    ptr = offsets(scope_of[:, 1] - scope_of[:, 0] - 1)
    later, slots = np.empty(ptr[-1], dtype=np.int32), slots.copy()
    kernels.name_replicas(variable, parent, scope_of, steps, len(num_states), ptr, later)
    kernels.rename_slots(slot_ptr, slots, home, variable, scope_of, steps, ptr, later)
    same, states = np.arange(len(variable), dtype=np.int32), num_states[variable]
    count = np.bincount(variable, minlength=len(num_states))
    split = np.flatnonzero(count[variable] > 1)
    cost_ptr, replica_ptr = offsets(states[split]), offsets(count[count > 1])
    first = offsets(num_states[count > 1])[:-1]
    costs = Terms(
        states,
        np.arange(len(split) + 1),
        split.astype(np.int32),
        np.ones(len(split), dtype=np.int32),
        cost_ptr[:-1],
        np.ones(len(split)),
        np.zeros(cost_ptr[-1]),
    )
    parts, at = [], 0
    for each in terms:
        parts.append(replace(each, num_states=states, slots=slots[at : at + len(each.slots)]))
        at += len(each.slots)
    elimination = Elimination(same, same, ptr, later)
    owner = np.repeat(np.arange(len(replica_ptr) - 1), np.diff(replica_ptr))
    return Buckets(
        tables.plan(elimination, states, same, joined(*parts, costs)),
        len(slot_ptr) - 1,
        split,
        replica_ptr,
        cost_ptr,
        np.repeat(first[owner], states[split]) + counts_up(states[split]),
    )
