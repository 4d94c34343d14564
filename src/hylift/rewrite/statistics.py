"""The statistics of rules as factors of the hidden variables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hylift.graph import Evidence, FactorGraph, FactorGroup, Variables
from hylift.graph.condition import Observed
from hylift.graph.rules import RuleInfo, Rules
from hylift.rewrite.kinds import by_states, in_standard_form, with_tables


@dataclass(frozen=True, slots=True, eq=False)
class Statistic:
    """The sum of a rule over its groundings: a constant, and factors of hidden variables."""

    rule: RuleInfo
    groups: tuple[FactorGroup, ...]
    """Their scopes are positions among the hidden variables."""
    constant: float

    def total(self, expected: float) -> float:
        """The statistic, where the log-values of `groups` add up to this."""
        return (expected + self.constant) / self.rule.scale + self.rule.decided


def statistics(
    graph: FactorGraph, evidence: Evidence, hidden: NDArray[np.int64]
) -> list[Statistic]:
    """The statistic of each rule of a graph, or of each group where it has no rules.

    hidden: (hidden variable,): ids in the graph of what is not observed.
    """
    rules = graph.rules or Rules.of_groups(graph.groups)
    rules = rules.conditioned(evidence, hidden)
    assert rules.variable is not None
    observed = Observed.of(_num_variables(rules), rules.absorbed)
    position = np.zeros(len(observed.flag), dtype=np.int32)
    position[rules.variable] = np.arange(len(hidden), dtype=np.int32)
    variables = graph.variables.take(hidden)
    return [_statistic(variables, rule, observed, position) for rule in rules.infos]


def _num_variables(rules: Rules) -> int:
    """Variables that the rules are about."""
    assert rules.variable is not None
    scopes = [group.scope for rule in rules.infos for group in rule.groups]
    ids: list[NDArray[Any]] = [rules.variable, rules.absorbed.variable, *scopes]
    return 1 + max(int(some.max(initial=-1)) for some in ids)


def _statistic(
    variables: Variables, rule: RuleInfo, observed: Observed, position: NDArray[np.int32]
) -> Statistic:
    constant, parts = 0.0, []
    for group in rule.groups:
        for slots, factors in observed.patterns(group):
            part = observed.reduce(group, slots, factors, position)
            if part.arity:
                parts.append(part)
            else:
                constant += part.log_sum(np.zeros(0))
    alone = FactorGraph.unchecked(variables, parts, Evidence.none(), 0.0)
    closed = with_tables(in_standard_form(alone))
    groups = [
        part
        for group in closed.groups
        for part in (
            [group] if group.potential.quadratic() else by_states(group, variables.num_states)
        )
    ]
    return Statistic(rule, tuple(groups), constant)
