"""Leaves that stay in a graph for all that look alike.

The marginal of a leaf that was summed out depends on several counts. One of each class of
look-alike leaves stays, with its distribution given counts and others as its only factor: this
changes nothing for them, and its marginal is that of all leaves of its class.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hylift.graph.factors import FactorGroup
from hylift.numerics.grouping import first_members, group_rows
from hylift.numerics.segments import inverse
from hylift.potentials import Table
from hylift.potentials.table import ByState
from hylift.rewrite.counting.counts import drawn
from hylift.rewrite.counting.leaves import DiscreteLeaves
from hylift.rewrite.counting.real_leaves import RealLeaves
from hylift.rewrite.counting.steps import Steps

Numbers = NDArray[np.int32]
Ids = NDArray[np.int64]

NONE = np.zeros(0, dtype=np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class Representatives:
    """Variables that stay, and those that they stand for; ids are of the first graph."""

    leaf: Ids  # (representative,)
    potential: ByState
    row: Numbers  # (representative,)
    scope: Ids  # (representative, slot): ids of the counts' graph, or -1 - id of what stays
    alike: Ids  # (leaf,)
    by: Ids  # (leaf,): which of `leaf` it is represented by

    def factors(self, place: Numbers, stays: Ids) -> FactorGroup:
        """One of each, over the ids that `place` gives to those of the counts' graph."""
        own = np.searchsorted(stays, -1 - self.scope)
        scope = np.where(self.scope >= 0, place[np.maximum(self.scope, 0)], own)
        return FactorGroup(self.potential, scope, self.row)


def representatives(steps: Steps) -> list[Representatives]:
    """Those of all leaves."""
    found = [one for leaves in steps.leaves.eliminated for one in _discrete(steps, leaves)]
    found += [_reals(steps, leaves) for leaves in steps.reals.eliminated]
    state = [-1 - one.scope[:, 0] for one in found[len(found) - len(steps.reals.eliminated) :]]
    return found + list(_members(steps, np.unique(np.concatenate([NONE, *state]))))


def _discrete(steps: Steps, leaves: DiscreteLeaves) -> Iterator[Representatives]:
    counted, group = steps.counts, leaves.group
    scope, row = steps.leaves.new_id[group.scope[:, leaves.others]], group.row
    number, first = counted.classes.alike(group.changed(scope=scope))
    for slot in leaves.slots:
        own = steps.reals.kept[group.scope[:, slot]]
        # The mean over members that may be drawn, a state of the leaf at a time.
        means = [
            counted.restated(FactorGroup(Table(probs), scope[first], row[first]))
            for probs in np.moveaxis(leaves.probs(slot), -1, 0)
        ]
        for parts in zip(*means, strict=True):
            part, which = parts[0]
            values = np.stack([each.potential.flat for each, _ in parts], axis=-1)
            with np.errstate(divide="ignore"):
                logs = np.log(values)
            shape = (len(logs), *part.potential.slot_states, logs.shape[-1])
            place = inverse(which, len(first))
            some = np.flatnonzero(place[number] >= 0)
            leaf = own[first[which]]
            yield Representatives(
                leaf,
                Table(logs.reshape(shape)),
                part.row,
                np.column_stack([part.scope, -1 - leaf]),
                own[some],
                place[number[some]],
            )


def _reals(steps: Steps, leaves: RealLeaves) -> Representatives:
    """Reals with a member of a class each, which stays with them."""
    hub = steps.leaves.new_id[steps.reals.new_id[leaves.hub]]
    columns = np.column_stack([leaves.row, steps.number[leaves.state], hub])
    by, _ = group_rows(columns.astype(np.int32))
    first = first_members(by)
    leaf, state = leaves.leaf[first].astype(np.int64), leaves.state[first]
    kept = inverse(steps.counts.kept, len(steps.counts.classes.number))
    scope = np.column_stack([-1 - state.astype(np.int64), -1 - leaf, kept[hub[first]]])
    return Representatives(
        leaf, leaves.conditional(), leaves.row[first], scope, leaves.leaf.astype(np.int64),
        by.astype(np.int64),
    )  # fmt: skip


def _members(steps: Steps, ids: Ids) -> Iterator[Representatives]:
    """Members of classes that stay beside their reals, drawn from their counts."""
    classes, number = steps.counts.classes, steps.number
    for n, k, some in classes.shapes():
        own = ids[np.isin(number[ids], some)]
        if len(own):
            with np.errstate(divide="ignore"):
                logs = np.log(drawn(n, k, 1))
            scope = np.column_stack([len(steps.counts.kept) + number[own], -1 - own])
            row = np.zeros(len(own), dtype=np.int32)
            yield Representatives(own, Table.shared(logs), row, scope, NONE, NONE)
