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

    clique: NDArray[Any]  # (step,): `kernels.CLIQUE`
    factor: NDArray[Any]  # (factor,): `kernels.FACTOR`
    later: Ids32  # steps of the later neighbours of each clique
    slots: Ids32  # steps of the slots of each factor
    held: Ids  # factors of each clique
    children: Ids  # cliques whose message goes to each clique
    values: FloatArray
    num_joint: Ids  # (factor,): entries of its table

    @property
    def size(self) -> Ids:
        """(step,): entries of the clique's table."""
        return np.diff(self.clique["message"])[:, 0] * self.clique["num_states"]

    @property
    def num_messages(self) -> int:
        """Entries of all messages together."""
        return int(self.clique["message"].max(initial=0))

    def arrays(self, messages: FloatArray) -> tuple[Any, ...]:
        """The arguments of every kernel: this plan, messages, and scratch."""
        width = np.diff(self.clique["later"]).max(initial=0) + 1
        return (
            self.clique, self.factor, self.later, self.slots, self.held, self.children,
            self.values, messages, np.empty(int(self.size.max(initial=1))),
            np.empty((4, width), dtype=np.int64), np.zeros(len(self.clique), dtype=np.int32),
        )  # fmt: skip


def plan(elimination: Elimination, num_states: Ids32, step: Ids32, terms: Terms) -> TablePlan:
    """Assign each factor to the clique in which its first variable is eliminated.

    num_states: (step,); step: (variable,); terms: tables of variables, which become the factors
    """
    slots = step[terms.slots]
    factor = np.zeros(len(terms), dtype=kernels.FACTOR)
    factor["slots"] = _begin_and_end(terms.slot_ptr)
    factor["base"], factor["multiplicity"] = terms.base, terms.multiplicity
    first = np.zeros(0, dtype=np.int64)
    if len(factor):
        first = np.minimum.reduceat(slots, terms.slot_ptr[:-1]).astype(np.int64)
    parent = elimination.parent
    inner = np.flatnonzero(parent >= 0)
    log_states = np.log(num_states.astype(np.float64))
    separator = np.rint(np.exp(elimination.separator_sums(log_states))).astype(np.int64)
    clique = np.zeros(len(num_states), dtype=kernels.CLIQUE)
    clique["num_states"] = num_states
    clique["later"] = _begin_and_end(elimination.ptr)
    clique["held"] = _begin_and_end(offsets(np.bincount(first, minlength=len(clique))))
    clique["children"] = _begin_and_end(offsets(np.bincount(parent[inner], minlength=len(clique))))
    clique["message"] = _begin_and_end(offsets(separator))
    return TablePlan(
        clique,
        factor,
        elimination.later,
        slots,
        np.argsort(first, kind="stable"),
        inner[np.argsort(parent[inner], kind="stable")],
        terms.theta,
        terms.num_joint,
    )


def _begin_and_end(ptr: Ids) -> Ids:
    """(segment, 2): begin and end of each segment."""
    return np.stack([ptr[:-1], ptr[1:]], axis=1)


def collect(
    at: TablePlan, *, maximise: bool, advance: Callable[[float], None] = lambda share: None
) -> tuple[FloatArray, float]:
    """The messages from every clique to its parent, and the log-sum or log-maximum over all."""
    messages, scale = np.empty(at.num_messages), np.empty(len(at.clique))
    arrays = at.arrays(messages)
    for start, stop, share in _parts(at.size):
        kernels.collect(start, stop, *arrays, maximise, scale)
        advance(share)
    # A root's message is one entry, 0 after scaling unless its sum is infinite.
    roots = at.clique["message"][np.diff(at.clique["later"])[:, 0] == 0, 0]
    return messages, float(scale.sum() + messages[roots].sum())


def distribute(
    at: TablePlan, messages: FloatArray, wanted: Ids, *, advance: Callable[[float], None]
) -> tuple[FloatArray, FloatArray]:
    """Marginals of each variable and of the scopes of the `wanted` factors, as flat arrays.

    `messages` come from `collect`, and are used up.
    """
    marginal_ptr = offsets(at.clique["num_states"])
    marginals = np.zeros(marginal_ptr[-1])
    joint_ptr = offsets(at.num_joint[wanted])
    joint_at = np.full(len(at.factor), -1, dtype=np.int64)
    joint_at[wanted] = joint_ptr[:-1]
    joints, arrays = np.zeros(joint_ptr[-1]), at.arrays(messages)
    for start, stop, share in reversed(_parts(at.size)):
        kernels.distribute(start, stop, *arrays, marginal_ptr, marginals, joint_at, joints)
        advance(share)
    return marginals, joints


def decode(at: TablePlan, messages: FloatArray) -> Ids32:
    """(step,): the most probable joint state, from the messages of a maximising `collect`."""
    arrays = at.arrays(messages)
    if len(at.clique):
        kernels.decode(*arrays)
    state: Ids32 = arrays[-1]
    return state


def _parts(size: Ids) -> list[tuple[int, int, float]]:
    """Runs of cliques of about equal work, with their share of the whole."""
    work = np.concatenate([[0.0], np.cumsum(size, dtype=np.float64)])
    if work[-1] == 0:
        return []
    cuts = np.searchsorted(work, np.linspace(0, work[-1], PARTS + 1))
    cuts = np.unique(np.concatenate([[0], cuts, [len(size)]]))
    return [(a, b, float(work[b] - work[a]) / float(work[-1])) for a, b in pairwise(cuts.tolist())]
