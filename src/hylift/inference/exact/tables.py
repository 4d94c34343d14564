"""Sums and maxima of products of tables, variable by variable, in log space.

The clique of a step is the variable eliminated there, behind its later neighbours (its separator).
Factors and messages are tables of log-values in one flat array each; a clique's table is made
when it is needed and not kept. Sums and maxima run through the same passes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hylift.inference.exact.elimination import Elimination
from hylift.inference.exact.kernels import tables as kernels

PARTS = 64
"""Pieces into which a pass is cut, so that progress can be told and the user can interrupt."""


@dataclass(frozen=True, slots=True, eq=False)
class TableFactors:
    """Table factors as flat arrays; variables are called by elimination step."""

    ptr: NDArray[np.int64]  # (factor + 1,)
    scope: NDArray[np.int32]  # steps
    base: NDArray[np.int64]  # (factor,): where its table starts in `values`
    multiplicity: NDArray[np.float64]  # (factor,)
    values: NDArray[np.float64]  # log-values, last variable of a scope running fastest


@dataclass(frozen=True, slots=True, eq=False)
class TablePlan:
    """Where everything stands: which factors a clique holds, and where its message goes."""

    num_states: NDArray[np.int32]  # (step,)
    elimination: Elimination
    factors: TableFactors
    held_ptr: NDArray[np.int64]  # (step + 1,)
    held: NDArray[np.int64]  # factors of each clique
    child_ptr: NDArray[np.int64]  # (step + 1,)
    child: NDArray[np.int64]  # children of each clique
    message_ptr: NDArray[np.int64]  # (step + 1,): where its message to its parent starts

    @property
    def size(self) -> NDArray[np.int64]:
        """(step,): entries of the clique's table."""
        return np.diff(self.message_ptr) * self.num_states.astype(np.int64)


def plan(
    num_states: NDArray[np.int32], elimination: Elimination, factors: TableFactors
) -> TablePlan:
    """Assigns each factor to the clique in which its first variable is eliminated."""
    num_steps = len(num_states)
    first = np.zeros(0, dtype=np.int64)
    if len(factors.base):
        first = np.minimum.reduceat(factors.scope, factors.ptr[:-1]).astype(np.int64)
    parent = elimination.parent
    inner = np.flatnonzero(parent >= 0)
    log_states = np.log(num_states.astype(np.float64))
    separator = np.rint(np.exp(elimination.separator_sums(log_states))).astype(np.int64)
    return TablePlan(
        num_states,
        elimination,
        factors,
        *_csr(first, np.arange(len(first)), num_steps),
        *_csr(parent[inner], inner, num_steps),
        np.concatenate([[0], np.cumsum(separator)]),
    )


def _csr(
    owner: NDArray[Any], item: NDArray[np.int64], num_owners: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    order = np.argsort(owner, kind="stable")
    ptr = np.concatenate([[0], np.cumsum(np.bincount(owner, minlength=num_owners))])
    return ptr.astype(np.int64), item[order].astype(np.int64)


def collect(
    at: TablePlan, *, maximise: bool, advance: Callable[[float], None] = lambda share: None
) -> tuple[NDArray[np.float64], float]:
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
    at: TablePlan,
    messages: NDArray[np.float64],
    wanted: NDArray[np.int64],
    *,
    advance: Callable[[float], None],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Marginals of each variable and of the scopes of the `wanted` factors, as flat arrays.

    `messages` come from `collect`, and are used up.
    """
    marginal_ptr = np.concatenate([[0], np.cumsum(at.num_states, dtype=np.int64)])
    marginals = np.zeros(marginal_ptr[-1])
    sizes = np.diff(np.concatenate([[0], np.cumsum(_factor_sizes(at)[wanted])]))
    joint_at = np.full(len(at.factors.base), -1, dtype=np.int64)
    joint_at[wanted] = np.cumsum(sizes) - sizes
    joints = np.zeros(int(sizes.sum()))
    work = np.empty(int(at.size.max(initial=1)))
    for start, stop, share in reversed(_parts(at.size)):
        kernels.distribute(
            start, stop, *_arrays(at), messages, work, marginal_ptr, marginals, joint_at, joints
        )
        advance(share)
    return marginals, joints


def decode(at: TablePlan, messages: NDArray[np.float64]) -> NDArray[np.int32]:
    """(step,): the most probable joint state, from the messages of a maximising `collect`."""
    state = np.zeros(len(at.num_states), dtype=np.int32)
    work = np.empty(int(at.size.max(initial=1)))
    if len(state):
        kernels.decode(*_arrays(at), messages, work, state)
    return state


def _factor_sizes(at: TablePlan) -> NDArray[np.int64]:
    if not len(at.factors.base):
        return np.zeros(0, dtype=np.int64)
    states = at.num_states[at.factors.scope].astype(np.int64)
    return np.multiply.reduceat(states, at.factors.ptr[:-1])


def _parts(size: NDArray[np.int64]) -> list[tuple[int, int, float]]:
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
        factors.ptr, factors.scope, factors.base, factors.multiplicity, factors.values,
        at.held_ptr, at.held, at.child_ptr, at.child, at.message_ptr,
        int(np.diff(at.elimination.ptr).max(initial=0)) + 1,
    )  # fmt: skip
