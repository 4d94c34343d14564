"""Evidence absorbed into the factors: an observed slot disappears."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hylift.errors import ImpossibleEvidenceError
from hylift.graph.evidence import Evidence
from hylift.graph.factor_graph import FactorGraph
from hylift.graph.factors import FactorGroup, by_slots, merge_groups
from hylift.graph.variables import freeze
from hylift.potentials import ConditionalQuadratic


def condition(graph: FactorGraph) -> FactorGraph:
    """The graph of the hidden variables, with all evidence absorbed into its factors.

    Hidden variables keep their order and their names. Factors whose reduced potentials have one
    signature share a group, wherever they came from.
    """
    hard = graph.evidence.is_hard
    observed = np.zeros(graph.num_variables, dtype=bool)
    observed[graph.evidence.variable[hard]] = True
    value = np.zeros(graph.num_variables)
    value[graph.evidence.variable[hard]] = graph.evidence.value[hard]
    hidden = np.flatnonzero(~observed)
    new_id = np.cumsum(~observed, dtype=np.int32) - np.int32(1)

    log_constant = graph.log_constant
    groups = []
    for part in [part for group in graph.groups for part in _reduce(group, observed, value)]:
        if part.arity:
            groups.append(part)
        else:
            log_constant += _constant(part)
    soft = _measurements(graph, ~hard)
    if soft is not None:
        groups.append(soft)
    groups = [
        FactorGroup(g.potential, new_id[g.scope], g.row, g.multiplicity, g.label) for g in groups
    ]
    variables = graph.variables if not observed.any() else graph.variables.take(hidden)
    return FactorGraph(variables, merge_groups(groups), Evidence.none(), log_constant)


def _reduce(
    group: FactorGroup, observed: NDArray[np.bool_], value: NDArray[np.float64]
) -> list[FactorGroup]:
    """The factors of a group, split by which slots are observed, each part without those."""
    parts = []
    for slots, factors in by_slots(observed[group.scope]):
        if not slots:
            parts.append(group if len(factors) == len(group) else group.take(factors))
            continue
        scope = group.scope[factors]
        potential, row = group.potential.reduce(
            group.row[factors], slots, value[scope[:, list(slots)]]
        )
        hidden = [slot for slot in range(group.arity) if slot not in slots]
        parts.append(
            FactorGroup(
                potential,
                scope[:, hidden],
                freeze(row, np.int32),
                group.multiplicity[factors],
                group.label,
            )
        )
    return parts


def _constant(part: FactorGroup) -> float:
    """The summed log-value of factors without slots."""
    values = part.potential.log_value(part.row, [])
    if np.isneginf(values).any():
        raise ImpossibleEvidenceError(
            f"the evidence breaks a hard constraint: all variables of "
            f"{np.count_nonzero(np.isneginf(values))} factors of {part.named()} are observed, "
            "in a state that is impossible"
        )
    return float((part.multiplicity * values).sum())


def _measurements(graph: FactorGraph, soft: NDArray[np.bool_]) -> FactorGroup | None:
    """A factor N(value; x, var) per measured real."""
    variable = graph.evidence.variable[soft]
    if not len(variable):
        return None
    value, var = graph.evidence.value[soft], graph.evidence.var[soft]
    potential = ConditionalQuadratic(
        (-0.5 / var)[:, None, None],
        (value / var)[:, None],
        -0.5 * value**2 / var - 0.5 * np.log(2 * np.pi * var),
    )
    multiplicity = graph.variables.multiplicity[variable]
    return FactorGroup(
        potential, variable[:, None], multiplicity=multiplicity, label="measurements"
    )
