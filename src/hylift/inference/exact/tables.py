"""Sums and maxima of products of tables by variable elimination, in log space.

The clique of a step is its later neighbours (its separator), then the variable eliminated there.
Factors and messages are in one flat array each; a clique's table is made when needed, not kept.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from hylift.inference.exact.elimination import (
    SMALL_TABLES,
    Elimination,
    FloatArray,
    Ids,
    Ids32,
    num_tries,
)
from hylift.inference.exact.kernels import tables as kernels
from hylift.inference.exact.kernels.rows import SHORT
from hylift.inference.exact.lattices.lattice import Lattice
from hylift.inference.exact.meter import (
    SECONDS_PER_BOX,
    SECONDS_PER_ENTRY,
    SECONDS_PER_NODE,
    SECONDS_PER_TRY,
    SECONDS_PER_VALUE,
)
from hylift.inference.terms import Terms
from hylift.numerics.segments import offsets

MOST_KEPT = 2**25
"""Conditional probabilities that are kept between two passes; others are computed again."""

PARTS = 64
"""Pieces of a pass, between which progress is reported and the user can interrupt."""


@dataclass(frozen=True, slots=True, eq=False)
class TablePlan:
    """The factors of each clique, and where its message goes; variables are elimination steps."""

    layout: kernels.Layout
    num_joint: Ids  # (factor,): joint states of all its slots

    @property
    def size(self) -> Ids:
        """(step,): entries of the clique's table."""
        clique = self.layout.clique
        return np.diff(clique["message"])[:, 0] * clique["num_states"]

    @property
    def num_messages(self) -> int:
        """Entries of all messages together."""
        return int(self.layout.clique["message"].max(initial=0))

    def seconds(self, *, marginals: bool) -> float:
        """The time that sums, and marginals where asked for, should take."""
        factor, size = self.layout.factor, self.size
        is_long = self.layout.clique["num_states"] >= SHORT
        total = SECONDS_PER_NODE * size[is_long].sum() + SECONDS_PER_ENTRY * size[~is_long].sum()
        boxes = np.diff(factor["slots"])[:, 0] - factor["num_discrete"] > 2
        total += SECONDS_PER_BOX * self.num_joint[boxes].sum()
        total += SECONDS_PER_VALUE * self.num_joint[~boxes].sum()
        return float(total) * (1.0 if marginals else 0.6)

    def seconds_to_order(self) -> float:
        """The time that the search for the order should have taken."""
        num, entries = len(self.layout.clique), float(self.size.sum())
        is_forest = np.diff(self.layout.clique["later"]).max(initial=0) <= 1
        if is_forest or entries < SMALL_TABLES:
            return 0.0
        return min(num * num_tries(num) * SECONDS_PER_TRY, entries * SECONDS_PER_ENTRY)

    def scratch(self) -> kernels.Scratch:
        """Room for one clique at a time."""
        width = np.diff(self.layout.clique["later"]).max(initial=0) + 1
        return kernels.Scratch(
            np.empty(int(self.size.max(initial=1))),
            np.empty((6, width), dtype=np.int64),
            np.zeros(len(self.layout.clique), dtype=np.int32),
        )


def plan(
    elimination: Elimination,
    num_states: Ids32,
    step: Ids32,
    *parts: Terms,
    lattice: Lattice | None = None,
) -> TablePlan:
    """Assign each factor to the clique in which its first variable is eliminated.

    num_states: (step,); step: (variable,); parts: tables of variables, and quadratics of those on a
    lattice, which become the factors
    """
    arity = np.concatenate([np.diff(part.slot_ptr) for part in parts])
    slots, slot_ptr = step[np.concatenate([part.slots for part in parts])], offsets(arity)
    start = np.cumsum([0, *(len(part.theta) for part in parts)])
    values = [part.theta for part in parts if len(part.theta)]
    factor = np.zeros(len(arity), dtype=kernels.FACTOR)
    factor["slots"] = _begin_and_end(slot_ptr)
    factor["base"] = np.concatenate([p.base + at for p, at in zip(parts, start, strict=False)])
    for name in ("multiplicity", "num_discrete", "num_joint"):
        factor[name] = np.concatenate([getattr(part, name) for part in parts])
    first, num_joint = np.zeros((2, 0), dtype=np.int64)
    if len(factor):
        first = np.minimum.reduceat(slots, slot_ptr[:-1]).astype(np.int64)
        num_joint = np.multiply.reduceat(num_states[slots].astype(np.int64), slot_ptr[:-1])
    parent = elimination.parent
    inner = np.flatnonzero(parent >= 0)
    log_states = np.log(num_states.astype(np.float64))
    separator = np.rint(np.exp(elimination.separator_sums(log_states))).astype(np.int64)
    clique = np.zeros(len(num_states), dtype=kernels.CLIQUE)
    clique["num_states"] = clique["num_nodes"] = num_states
    clique["later"] = _begin_and_end(elimination.ptr)
    clique["held"] = _begin_and_end(offsets(np.bincount(first, minlength=len(clique))))
    clique["children"] = _begin_and_end(offsets(np.bincount(parent[inner], minlength=len(clique))))
    clique["message"] = _begin_and_end(offsets(separator))
    low = high = np.zeros(0)
    if lattice is not None:
        low, high, at = lattice.low, lattice.high, step[lattice.real]
        clique["points"][at], clique["num_nodes"][at] = lattice.ptr[:-1], lattice.num_nodes
    layout = kernels.Layout(
        clique,
        factor,
        elimination.later,
        slots,
        np.argsort(first, kind="stable"),
        inner[np.argsort(parent[inner], kind="stable")],
        values[0] if len(values) == 1 else np.concatenate([np.zeros(0), *values]),
        low,
        high,
    )
    return TablePlan(layout, num_joint)


def _begin_and_end(ptr: Ids) -> Ids:
    """(segment, 2): begin and end of each segment."""
    return np.stack([ptr[:-1], ptr[1:]], axis=1)


def collect(
    at: TablePlan,
    *,
    maximise: bool,
    keep: bool = False,
    advance: Callable[[float], None] = lambda share: None,
) -> tuple[FloatArray, kernels.Kept, float]:
    """The messages from every clique to its parent, what is kept for `distribute`, and the log-sum
    or log-maximum over all."""
    clique, scratch = at.layout.clique, at.scratch()
    messages, scale = np.empty(at.num_messages), np.empty(len(clique))
    kept = kernels.Kept(
        np.empty(min(int(at.size.sum()), MOST_KEPT) if keep else 0),
        np.zeros(1, dtype=np.int64),
        np.full(len(clique), -1),
        *np.zeros((2, len(messages)), dtype=np.int32),
    )
    for start, stop, share in _parts(at.size):
        kernels.collect(start, stop, at.layout, messages, scratch, maximise, scale, kept)
        advance(share)
    # A root's message is one entry, 0 after scaling unless its sum is infinite.
    roots = clique["message"][np.diff(clique["later"])[:, 0] == 0, 0]
    return messages, kept, float(scale.sum() + messages[roots].sum())


def distribute(
    at: TablePlan,
    messages: FloatArray,
    kept: kernels.Kept,
    wanted: Ids,
    *,
    advance: Callable[[float], None],
) -> tuple[FloatArray, FloatArray]:
    """Marginals of each variable and of the scopes of the `wanted` factors, as flat arrays.

    `messages` come from `collect`, and are used up.
    """
    marginal_ptr = offsets(at.layout.clique["num_states"])
    marginals = np.zeros(marginal_ptr[-1])
    joint_ptr = offsets(at.num_joint[wanted])
    joint_at = np.full(len(at.layout.factor), -1, dtype=np.int64)
    joint_at[wanted] = joint_ptr[:-1]
    joints, scratch = np.zeros(joint_ptr[-1]), at.scratch()
    for start, stop, share in reversed(_parts(at.size)):
        kernels.distribute(
            start, stop, at.layout, messages, scratch, kept, marginal_ptr, marginals, joint_at,
            joints,
        )  # fmt: skip
        advance(share)
    return marginals, joints


def decode(at: TablePlan, messages: FloatArray) -> Ids32:
    """(step,): the most probable joint state, from the messages of a maximising `collect`."""
    scratch = at.scratch()
    if len(at.layout.clique):
        kernels.decode(at.layout, messages, scratch)
    state: Ids32 = scratch.state
    return state


def draw(at: TablePlan, messages: FloatArray, size: int, rng: np.random.Generator) -> Ids32:
    """(draw, step): independent draws of the joint states, from the messages of `collect`."""
    states = np.zeros((size, len(at.layout.clique)), dtype=np.int32)
    if states.size:
        random = rng.integers(0, 2**64, size=1, dtype=np.uint64)
        kernels.draw(at.layout, messages, at.scratch(), random, states)
    return states


def _parts(size: Ids) -> list[tuple[int, int, float]]:
    """Runs of cliques of about equal work, with their share of the whole."""
    work = np.concatenate([[0.0], np.cumsum(size, dtype=np.float64)])
    if work[-1] == 0:
        return []
    cuts = np.searchsorted(work, np.linspace(0, work[-1], PARTS + 1))
    cuts = np.unique(np.concatenate([[0], cuts, [len(size)]]))
    return [(a, b, float(work[b] - work[a]) / float(work[-1])) for a, b in pairwise(cuts.tolist())]
