"""The rewrites that are tried on a graph before inference, in their order."""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol

from hylift.errors import ImpossibleEvidenceError
from hylift.graph.factor_graph import FactorGraph
from hylift.rewrite.chains import count_chains
from hylift.rewrite.clusters import hard_clusters
from hylift.rewrite.counting.rewrite import counts
from hylift.rewrite.kinds import in_standard_form, with_tables
from hylift.rewrite.parts import alike_parts
from hylift.rewrite.rewritten import Rewritten
from hylift.rewrite.stars import common_fields, common_means


class Rewrite(Protocol):
    """From a ground graph without evidence to another, or None where nothing is gained.

    maximise: for the best assignment alone, where that needs another graph.
    """

    def __call__(self, graph: FactorGraph, *, maximise: bool) -> Rewritten | None: ...


REWRITES: dict[str, Rewrite] = {
    "hard clusters": hard_clusters,
    "chains": count_chains,
    "common means": common_means,
    "counts": counts,
    "common fields": common_fields,
    "parts": alike_parts,
}
"""By name."""


def rewritten(
    graph: FactorGraph, names: Collection[str], *, maximise: bool = False
) -> tuple[Rewritten, ...]:
    """The rewrites of these names that apply, each of the graph of the one before."""
    found: list[Rewritten] = []
    for name, rewrite in REWRITES.items():
        if name in names and (one := rewrite(graph, maximise=maximise)) is not None:
            found.append(one)
            graph = one.graph
            if one.copies is not None:  # of parts of this graph, not of another
                break
    return tuple(found)


def summaries(graph: FactorGraph) -> dict[str, str]:
    """The rewrites that apply to a graph without evidence: their summaries by name."""
    try:
        found = rewritten(with_tables(in_standard_form(graph)), REWRITES)
    except ImpossibleEvidenceError as error:
        return {"hard clusters": error.text}
    return {one.name: one.summary for one in found}
