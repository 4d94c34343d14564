"""How much symmetry the evidence on each predicate breaks: measured, by lifting without it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
from numpy.typing import NDArray

from hylift.graph import Evidence, FactorGraph, conditioned
from hylift.lifting.coarse.clusters import EvidenceClusters
from hylift.lifting.coarse.keys import Absorbed, EvidenceKeys
from hylift.lifting.coloring import Structure, stable_coloring
from hylift.lifting.coloring.structure import Links
from hylift.lifting.explanation.explain import EvidenceEffect
from hylift.lifting.explanation.predicates import Predicates
from hylift.lifting.lift import Lifting
from hylift.progress import Progress

Chosen = NDArray[np.bool_]  # (observation,)


def evidence_effects(
    lifting: Lifting, tolerance: float, progress: Progress
) -> tuple[EvidenceEffect, ...]:
    """Per predicate with evidence, the one that breaks most first; then of all evidence, where
    there are several."""
    source = lifting.source
    names = Predicates.of(source.variables.names)
    predicate = names.of_variable[source.evidence.variable]
    wanted: list[tuple[str | None, Chosen]] = [
        (names.names[place], predicate == place) for place in np.unique(predicate).tolist()
    ]
    if len(wanted) > 1:
        wanted.append((None, np.ones(len(predicate), dtype=bool)))
    without = []
    for place, (name, chosen) in enumerate(wanted):
        what = f"the evidence on {name}" if name else "any evidence"
        progress(0.5 * place / len(wanted), f"lifting without {what}")
        without.append(_num_without(lifting, chosen, tolerance))
    is_real = source.variables.num_states[source.evidence.variable] == 0
    alike = _num_alike(source, [chosen & is_real for _, chosen in wanted], tolerance, progress)
    found = [
        EvidenceEffect(name, int(chosen.sum()), fewer, lifting.num_classes - fewer, same)
        for (name, chosen), fewer, same in zip(wanted, without, alike, strict=True)
    ]
    single = [effect for effect in found if effect.predicate is not None]
    single.sort(key=lambda effect: -effect.num_broken)
    return (*single, *found[len(single) :])


def _num_without(lifting: Lifting, chosen: Chosen, tolerance: float) -> int:
    """Classes of the hidden variables when these observations had not been made."""
    source, given = lifting.source, lifting.source.evidence
    fewer = Evidence(given.variable[~chosen], given.value[~chosen], given.var[~chosen])
    graph = FactorGraph.unchecked(source.variables, source.groups, fewer, source.log_constant)
    hidden = conditioned(graph)
    classes = stable_coloring(Structure.of(hidden.graph, tolerance))
    # Evidence is only taken away: what is hidden with all of it is hidden still.
    still = np.searchsorted(hidden.hidden, lifting.hidden)
    present = np.zeros(classes.num_variable_classes, dtype=bool)
    present[classes.variable[still]] = True
    return int(np.count_nonzero(present))


def _num_alike(
    source: FactorGraph, reals: list[Chosen], tolerance: float, progress: Progress
) -> list[int | None]:
    """Per set of observed reals: classes if the values of each predicate in it were one."""
    found: list[int | None] = []
    one_value = _OneValue.of(source, tolerance) if any(map(np.any, reals)) else None
    for place, chosen in enumerate(reals):
        progress(0.5 + 0.5 * place / len(reals), "lifting with observed values taken for one")
        if one_value is None or not chosen.any():
            found.append(None)
            continue
        # All evidence together may have no more reals than that on one predicate.
        same = [number for number, other in enumerate(reals[:place]) if (chosen == other).all()]
        found.append(found[same[0]] if same else one_value.num_classes(chosen))
    return found


@dataclass(frozen=True, slots=True, eq=False)
class _OneValue:
    """A graph as coarse-to-fine lifting sees it, whose clusters may hold all values or one."""

    structure: Structure
    keys: EvidenceKeys
    clusters: EvidenceClusters
    links: Callable[[], Links]

    @classmethod
    def of(cls, source: FactorGraph, tolerance: float) -> _OneValue:
        hidden = conditioned(source)
        structure = Structure.of(hidden.graph, tolerance)
        absorbed = Absorbed.of(source, hidden)
        clusters = EvidenceClusters.of(source, tolerance=tolerance)
        keys = EvidenceKeys.of(source, hidden, structure, absorbed, clusters, tolerance)
        return cls(structure, keys, clusters, cache(structure.links))

    def num_classes(self, chosen: Chosen) -> int:
        """Classes when the chosen reals of a predicate count as one value, others as they are."""
        values = self.clusters.sorted
        exact = ~chosen[values.observation]
        cluster = self.clusters.cluster.copy()
        cluster[values.observation[exact]] = len(self.clusters) + values.distinct[exact]
        kinds = self.keys.kinds(replace(self.clusters, cluster=cluster))
        return stable_coloring(self.structure, kinds.kind, links=self.links).num_variable_classes
