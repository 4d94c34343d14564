"""The factor graph, ground and lifted alike, as flat arrays."""

from hylift.graph.condition import Conditioned, Part
from hylift.graph.domains import Domain, boolean, categorical, interval, real
from hylift.graph.evidence import Evidence, Soft
from hylift.graph.factor_graph import FactorGraph, RuleInfo, Rules
from hylift.graph.factors import FactorGroup, by_slots, merge_groups
from hylift.graph.name_blocks import Atoms, Listed, NameBlock, Numbered
from hylift.graph.names import Names
from hylift.graph.variables import Variables, without_repeats

__all__ = [
    "Atoms",
    "Conditioned",
    "Domain",
    "Evidence",
    "FactorGraph",
    "FactorGroup",
    "Listed",
    "NameBlock",
    "Names",
    "Numbered",
    "Part",
    "RuleInfo",
    "Rules",
    "Soft",
    "Variables",
    "boolean",
    "by_slots",
    "categorical",
    "interval",
    "merge_groups",
    "real",
    "without_repeats",
]
