"""The rules that the factors of a graph come from, with their weights apart from their formulas."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from hylift.graph.evidence import Evidence
from hylift.graph.factors import FactorGroup


@dataclass(frozen=True, slots=True, eq=False)
class RuleInfo:
    """A rule with its groundings. Its statistic is the sum of its formula over all of them."""

    text: str
    weight: float | None
    """None for hard rules, weights per constant, and formulas that are log-values themselves: the
    statistic is then the sum of log-values."""
    groups: tuple[FactorGroup, ...]
    """Factors whose log-values are `scale` times the formula."""
    scale: float = 1.0
    decided: float = 0.0
    """The statistic of the groundings that evidence had decided before there were factors."""


@dataclass(frozen=True, slots=True, eq=False)
class Rules:
    """The rules of a graph, over the variables it had when they were made."""

    infos: tuple[RuleInfo, ...]
    absorbed: Evidence
    """Values of these variables that were observed since, and left the graph."""
    variable: NDArray[np.int64] | None = None
    """(variable of the graph,): which of these it is; None where they are the same."""

    @classmethod
    def of(cls, infos: tuple[RuleInfo, ...]) -> Rules:
        return cls(infos, Evidence.none())

    @classmethod
    def of_groups(cls, groups: tuple[FactorGroup, ...]) -> Rules:
        """One rule without weight per group, for graphs that do not come from a model."""
        named = enumerate(groups)
        return cls.of(tuple(RuleInfo(g.label or f"group {n}", None, (g,)) for n, g in named))

    def conditioned(self, evidence: Evidence, hidden: NDArray[np.int64]) -> Rules:
        """The rules of the graph of some of the variables, the others being observed."""
        hard = evidence.is_hard
        seen = Evidence.of(self.ids(evidence.variable[hard]), evidence.value[hard])
        return replace(self, absorbed=self.absorbed.joined(seen), variable=self.ids(hidden))

    def ids(self, variable: NDArray[np.integer]) -> NDArray[np.int64]:
        """Variables of the graph by their ids in the rules."""
        own = variable if self.variable is None else self.variable[variable]
        return np.asarray(own, dtype=np.int64)
