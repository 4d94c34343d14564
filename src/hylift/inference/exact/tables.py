"""Sums and maxima of products of tables by variable elimination, in log space.

The clique of a step is its later neighbours (its separator), then the variable eliminated there.
Factors and messages are in one flat array each; a clique's table is made when needed, not kept.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hylift.inference.exact.elimination import Elimination, FloatArray, Ids, Ids32
from hylift.inference.exact.kernels import tables as kernels
from hylift.inference.terms import Terms
from hylift.numerics.segments import offsets

PARTS = 64
"""Pieces of a pass, between which progress is reported and the user can interrupt."""


@dataclass(frozen=True, slots=True, eq=False)
class TablePlan:
    """The factors of each clique, and where its message goes; variables are elimination steps."""

    num_states: Ids32  # (step,)
    elimination: Elimination
    factors: Terms
    held_ptr: Ids  # (step + 1,)
    held: Ids  # factors of each clique
    child_ptr: Ids  # (step + 1,)
    child: Ids  # children of each clique
    message_ptr: Ids  # (step + 1,): where its message to its parent starts

    @property
    def size(self) -> Ids:
        """(step,): entries of the clique's table."""
        return np.diff(self.message_ptr) * self.num_states.astype(np.int64)


def plan(elimination: Elimination, num_states: Ids32, step: Ids32, *terms: Terms) -> TablePlan:
    """Assign each factor to the clique in which its first variable is eliminated.

    num_states: (step,); step: (variable,); terms: tables of variables, all in the plan's `factors`
    """
    size = np.cumsum([0, *(len(each.theta) for each in terms)])
    arity = np.concatenate([np.diff(each.slot_ptr) for each in terms])
    factors = Terms(
        num_states,
        offsets(arity),
        step[np.concatenate([each.slots for each in terms])],
        arity.astype(np.int32),
        np.concatenate([each.base + at for each, at in zip(terms, size, strict=False)]),
        np.concatenate([each.multiplicity for each in terms]),
        np.concatenate([each.theta for each in terms]),
    )
    first = np.zeros(0, dtype=np.int64)
    if len(factors):
        first = np.minimum.reduceat(factors.slots, factors.slot_ptr[:-1]).astype(np.int64)
    parent = elimination.parent
    inner = np.flatnonzero(parent >= 0)
    log_states = np.log(num_states.astype(np.float64))
    separator = np.rint(np.exp(elimination.separator_sums(log_states))).astype(np.int64)
    num_steps = len(num_states)
    return TablePlan(
        num_states,
        elimination,
        factors,
        *_csr(first, np.arange(len(first)), num_steps),
        *_csr(parent[inner], inner, num_steps),
        offsets(separator),
    )


def _csr(owner: NDArray[Any], item: Ids, num_owners: int) -> tuple[Ids, Ids]:
    order = np.argsort(owner, kind="stable")
    return offsets(np.bincount(owner, minlength=num_owners)), item[order].astype(np.int64)


def collect(
    at: TablePlan, *, maximise: bool, advance: Callable[[float], None] = lambda share: None
) -> tuple[FloatArray, float]:
    """The messages from every clique to its parent, and the log-sum or log-maximum over all."""
    messages = np.empty(at.message_ptr[-1])
    scale = np.empty(len(at.num_states))
    work = np.empty(int(at.size.max(initial=1)))
    for start, stop, share in _parts(at.size):
        kernels.collect(start, stop, *_arrays(at), messages, work, maximise, scale)
        advance(share)
    # A root's message is 0 after scaling, unless its sum is infinite.
    roots = at.message_ptr[:-1][at.elimination.parent < 0]
    return messages, float(scale.sum() + messages[roots].sum())


def distribute(
    at: TablePlan, messages: FloatArray, wanted: Ids, *, advance: Callable[[float], None]
) -> tuple[FloatArray, FloatArray]:
    """Marginals of each variable and of the scopes of the `wanted` factors, as flat arrays.

    `messages` come from `collect`, and are used up.
    """
    marginal_ptr = offsets(at.num_states)
    marginals = np.zeros(marginal_ptr[-1])
    joint_ptr = offsets(at.factors.num_joint[wanted])
    joint_at = np.full(len(at.factors), -1, dtype=np.int64)
    joint_at[wanted] = joint_ptr[:-1]
    joints = np.zeros(joint_ptr[-1])
    work = np.empty(int(at.size.max(initial=1)))
    for start, stop, share in reversed(_parts(at.size)):
        kernels.distribute(
            start, stop, *_arrays(at), messages, work, marginal_ptr, marginals, joint_at, joints
        )
        advance(share)
    return marginals, joints


def decode(at: TablePlan, messages: FloatArray) -> Ids32:
    """(step,): the most probable joint state, from the messages of a maximising `collect`."""
    state = np.zeros(len(at.num_states), dtype=np.int32)
    work = np.empty(int(at.size.max(initial=1)))
    if len(state):
        kernels.decode(*_arrays(at), messages, work, state)
    return state


def _parts(size: Ids) -> list[tuple[int, int, float]]:
    """Runs of cliques of about equal work, with their share of the whole."""
    work = np.concatenate([[0.0], np.cumsum(size, dtype=np.float64)])
    if work[-1] == 0:
        return []
    cuts = np.searchsorted(work, np.linspace(0, work[-1], PARTS + 1))
    cuts = np.unique(np.concatenate([[0], cuts, [len(size)]]))
    return [(a, b, float(work[b] - work[a]) / float(work[-1])) for a, b in pairwise(cuts.tolist())]


def _arrays(at: TablePlan) -> tuple[Any, ...]:
    """What every kernel takes; last, the most variables that a clique has."""
    factors = at.factors
    return (
        at.num_states, at.elimination.ptr, at.elimination.later,
        factors.slot_ptr, factors.slots, factors.base, factors.multiplicity, factors.theta,
        at.held_ptr, at.held, at.child_ptr, at.child, at.message_ptr,
        int(np.diff(at.elimination.ptr).max(initial=0)) + 1,
    )  # fmt: skip
