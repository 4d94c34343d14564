"""Expected log-values of factors under the exact posterior, by a second pass.

Factors of statistics are added to those of the model without any effect on it, so that their scopes
are in the cliques of the elimination: the joint distribution of each scope is then at hand.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hylift.errors import UnsupportedError
from hylift.graph import Evidence, FactorGraph, FactorGroup
from hylift.inference.exact import tables
from hylift.inference.exact.elimination import FloatArray, Ids
from hylift.inference.exact.gaussian import NONE
from hylift.inference.exact.integrated import Integrated, OnLattice, put_on_lattice
from hylift.inference.exact.lattices.collapsed import Collapsed, pure_and_coupled
from hylift.inference.exact.nodes.axes import Axes, put_on_axes
from hylift.inference.exact.nodes.conditional import still_needed
from hylift.inference.exact.one_pass import plan_tables
from hylift.inference.terms import Terms
from hylift.potentials import Table
from hylift.rewrite.kinds import Kinds


def expected_sums(
    kinds: Kinds, reals: Integrated, wanted: Sequence[Sequence[FactorGroup]], max_entries: int
) -> FloatArray:
    """(set,): the expected sum of the log-values of each set of groups, over hidden variables.

    kinds, reals: of the model, as exact inference has settled on them.
    """
    axes, lattice = reals.bare_axes, reals.promoted.lattice if reals.promoted else None
    promoted = lattice.real if lattice else NONE
    own = [_Statistic.of(kinds.graph, groups, axes, promoted, max_entries) for groups in wanted]
    model_tables, quadratics = put_on_axes(kinds, axes, max_entries, maximise=False)
    pure = len(Terms.of(pure_and_coupled(quadratics, promoted)[0], axes.num_states))
    quadratics += [_without_effect(group) for one in own for group in one.pure]
    quadratics += [_without_effect(group) for one in own for group in one.coupled]
    groups = [*model_tables, *(_nothing(table) for one in own for table in one.tables)]
    collapsed = Collapsed.of(quadratics, axes.num_states, axes.free, promoted, maximise=False)
    components, gaussian = collapsed.components, collapsed.gaussian
    whole = Integrated(axes, groups, components, gaussian)
    if lattice:
        whole = put_on_lattice(axes, groups, OnLattice(collapsed, lattice), max_entries)
    plan, _, factors, of_components, _ = plan_tables(whole, max_entries)
    messages, kept, _ = tables.collect(plan, maximise=False, keep=True)
    first, then = sum(len(table) for table in model_tables), len(factors) + len(of_components)
    num_pure = sum(len(group) for one in own for group in one.pure)
    asked = np.concatenate([np.arange(first, then), then + pure + np.arange(num_pure)])
    _, joints = tables.distribute(plan, messages, kept, asked, advance=lambda share: None)
    by_tables = int(factors.num_joint[first:].sum())
    size = int(plan.num_joint[len(factors) : then].sum())
    weights = whole.weights(joints[by_tables:][:size])
    sums, at, at_pure = np.zeros(len(wanted)), 0, by_tables + size
    for place, one in enumerate(own):
        values = np.concatenate([NONE, *(_entries(table) for table in one.tables)])
        sums[place] = one.constant + _mean(joints[at : at + len(values)], values)
        at += len(values)
        if one.coupled:
            found = gaussian.expected(components, Terms.of(one.coupled, axes.num_states))
            values = lattice.values(found).theta if lattice else found.theta
            sums[place] += _mean(weights, values)
        if one.pure and lattice:
            values = lattice.values(Terms.of(one.pure, axes.num_states)).theta
            sums[place] += _mean(joints[at_pure : at_pure + len(values)], values)
            at_pure += len(values)
    return sums


def _mean(probs: FloatArray, values: FloatArray) -> float:
    """The expected value; what is impossible does not count."""
    return float((probs * np.where(probs > 0, values, 0.0)).sum())


def _entries(table: FactorGroup) -> FloatArray:
    """(entry,): the log-values of all factors, times their multiplicity."""
    values = table.potential.flat[table.row]
    with np.errstate(invalid="ignore"):
        return np.asarray((table.multiplicity[:, None] * values).ravel())


@dataclass(frozen=True, slots=True, eq=False)
class _Statistic:
    """A sum of factors: tables over axes, quadratics, and a constant."""

    tables: list[FactorGroup]
    pure: list[FactorGroup]  # of promoted reals alone
    coupled: list[FactorGroup]  # with free reals
    constant: float

    @classmethod
    def of(
        cls,
        graph: FactorGraph,
        groups: Sequence[FactorGroup],
        axes: Axes,
        promoted: Ids,
        max_entries: int,
    ) -> _Statistic:
        own = Kinds.of(FactorGraph.unchecked(graph.variables, groups, Evidence.none(), 0.0))
        missing = still_needed(own, axes.row >= 0)
        if missing.any():
            name = graph.variables.names[int(np.argmax(missing))]
            raise UnsupportedError(
                f"a rule of weight 0 is a function of '{name}', which is Gaussian without it: give "
                "the rule a small weight"
            )
        found, quadratics = put_on_axes(own, axes, max_entries, maximise=True)
        return cls(found, *pure_and_coupled(quadratics, promoted), own.log_constant)


def _nothing(table: FactorGroup) -> FactorGroup:
    """Factors of the same scopes that are 0 everywhere."""
    row = np.zeros(len(table), dtype=np.int32)
    nothing = Table(np.zeros((1, *table.potential.slot_states)))
    return table.changed(potential=nothing, row=row)


def _without_effect(group: FactorGroup) -> FactorGroup:
    """The same factors, each counted no time."""
    none = np.zeros(len(group))
    return group.changed(multiplicity=none)
