"""Expected log-values of factors under the exact posterior, by a second pass.

Factors of statistics are added to those of the model without any effect on it, so that their scopes
are in the cliques of the elimination: the joint distribution of each scope is then at hand.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from hylift.errors import UnsupportedError
from hylift.graph import Evidence, FactorGraph, FactorGroup
from hylift.inference.exact import tables
from hylift.inference.exact.axes import Axes, put_on_axes
from hylift.inference.exact.conditional import still_needed
from hylift.inference.exact.elimination import FloatArray
from hylift.inference.exact.gaussian import find_components, solve_states
from hylift.inference.exact.one_pass import Integrated, plan_tables
from hylift.inference.terms import Terms
from hylift.numerics.segments import ranges
from hylift.potentials import Table
from hylift.rewrite.kinds import Kinds


def expected_sums(
    kinds: Kinds, axes: Axes, wanted: Sequence[Sequence[FactorGroup]], max_entries: int
) -> FloatArray:
    """(set,): the expected sum of the log-values of each set of groups, over hidden variables.

    kinds, axes: of the model, as exact inference has settled on them.
    """
    own = [_on_axes(kinds.graph, groups, axes, max_entries) for groups in wanted]
    model_tables, model_quadratics = put_on_axes(kinds, axes, max_entries, maximise=False)
    quadratics = [*model_quadratics, *(group for one in own for group in one[1])]
    terms = Terms.of(quadratics, axes.num_states)
    counts = terms.multiplicity.copy()
    counts[sum(len(group) for group in model_quadratics) :] = 0.0
    model = replace(terms, multiplicity=counts)
    components = find_components(model, axes.free)
    gaussian = solve_states(components, model, maximise=False)
    quiet = [_without_effect(table) for one in own for table in one[0]]
    reals = Integrated(axes, [*model_tables, *quiet], components, gaussian)
    plan, _, factors, of_components, _ = plan_tables(reals, max_entries)
    messages, _ = tables.collect(plan, maximise=False)
    first, last = sum(len(table) for table in model_tables), len(factors) + len(of_components)
    _, joints = tables.distribute(
        plan, messages, np.arange(first, last), advance=lambda share: None
    )
    weights = np.ones(len(gaussian.log_total))
    num_own = int(factors.num_joint[first:].sum())
    weights[ranges(of_components.base, of_components.num_joint)] = joints[num_own:]
    sums, at = np.zeros(len(wanted)), 0
    for place, (found, of_reals, constant) in enumerate(own):
        sums[place] = constant
        for table in found:
            values = table.potential.flat[table.row]
            share = joints[at : at + values.size].reshape(values.shape)
            at += values.size
            mean = (share * np.where(share > 0, values, 0.0)).sum(axis=1)
            sums[place] += float(table.multiplicity @ mean)
        if of_reals:
            own_terms = Terms.of(of_reals, axes.num_states)
            sums[place] += gaussian.expected(components, own_terms, weights)
    return sums


def _on_axes(
    graph: FactorGraph, groups: Sequence[FactorGroup], axes: Axes, max_entries: int
) -> tuple[list[FactorGroup], list[FactorGroup], float]:
    """A statistic as tables over the axes, quadratics of free reals, and a constant."""
    own = Kinds.of(FactorGraph.unchecked(graph.variables, groups, Evidence.none(), 0.0))
    missing = still_needed(own, axes.row >= 0)
    if missing.any():
        name = graph.variables.names[int(np.argmax(missing))]
        raise UnsupportedError(
            f"a rule of weight 0 is a function of '{name}', which is Gaussian without it: give the "
            "rule a small weight"
        )
    return *put_on_axes(own, axes, max_entries, maximise=True), own.log_constant


def _without_effect(table: FactorGroup) -> FactorGroup:
    """Factors of the same scopes that are 0 everywhere."""
    row = np.zeros(len(table), dtype=np.int32)
    nothing = Table(np.zeros((1, *table.potential.slot_states)))
    return FactorGroup.unchecked(nothing, table.scope, row, table.multiplicity, table.label)
