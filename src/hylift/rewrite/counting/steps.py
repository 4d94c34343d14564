"""The steps of counting: reals integrated out, leaves summed out, twins counted."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hylift.graph.factor_graph import FactorGraph
from hylift.rewrite.counting.counts import Classes, Counted, count_twins, find_classes
from hylift.rewrite.counting.leaves import DiscreteLeaves, eliminate_discrete_leaves
from hylift.rewrite.counting.real_leaves import RealLeaves, eliminate_real_leaves
from hylift.rewrite.leaves import Remaining
from hylift.words import counted

Numbers = NDArray[np.int32]
Ids = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Steps:
    """Three graphs, each made of the one before."""

    reals: Remaining[RealLeaves]
    leaves: Remaining[DiscreteLeaves]
    counts: Counted

    @classmethod
    def of(cls, graph: FactorGraph, *, maximise: bool) -> Steps | None:
        """None without twins. Leaves with no twin beside them stay."""
        reals = eliminate_real_leaves(graph, maximise=maximise)
        leaves = eliminate_discrete_leaves(reals.graph, maximise=maximise)
        classes = find_classes(leaves.graph)
        if not len(classes):
            return None
        found = cls(reals, leaves, Counted(leaves.graph, np.arange(0), classes))
        keep, number = found._apart(), found.number
        if keep.any():
            reals = eliminate_real_leaves(graph, keep, maximise=maximise)
            leaves = eliminate_discrete_leaves(reals.graph, keep[reals.kept], maximise=maximise)
            own = number[reals.kept[leaves.kept]]
            classes = Classes(own, classes.size, classes.num_states)
        return cls(reals, leaves, count_twins(leaves.graph, classes, maximise=maximise))

    @property
    def before(self) -> Ids:
        """(variable without leaves,): its id in the first graph."""
        return self.reals.kept[self.leaves.kept]

    @property
    def kept(self) -> Ids:
        """(variable that is neither counted nor a leaf,): its id in the first graph."""
        return self.before[self.counts.kept]

    @property
    def number(self) -> Numbers:
        """(variable of the first graph,): its class of twins, or -1."""
        found = np.full(len(self.reals.new_id), -1, dtype=np.int32)
        found[self.before] = self.counts.classes.number
        return found

    @property
    def summary(self) -> str:
        """Numbers of variables that are counted, and of leaves."""
        classes = self.counts.classes
        text = f"{counted(int(classes.size.sum()), 'variable')} in {counted(len(classes), 'count')}"
        num_leaves = len(self.reals.new_id) - len(self.before)
        beside = f", beside {counted(num_leaves, 'leaf', 'leaves')}"
        return text + beside if num_leaves else text

    def _apart(self) -> NDArray[np.bool_]:
        """(variable of the first graph,): whether it is a leaf without a twin beside it."""
        number, before = self.number, self.reals.kept
        apart = np.zeros(len(number), dtype=bool)
        for one in self.reals.eliminated:
            apart[one.leaf[number[one.state] < 0]] = True
        for each in self.leaves.eliminated:
            scope = before[each.group.scope]
            near = (number[scope[:, each.others]] >= 0).any(axis=1)
            apart[scope[~near][:, each.slots]] = True
        return apart
