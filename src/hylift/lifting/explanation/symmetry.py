"""How much symmetry the evidence on each predicate breaks: measured, by lifting without it."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from hylift.graph import Evidence, FactorGraph
from hylift.lifting.coarse.clusters import EvidenceClusters
from hylift.lifting.coarse.keys import Absorbed, EvidenceKeys
from hylift.lifting.coloring import stable_coloring
from hylift.lifting.lift import Lifting
from hylift.lifting.predicates import Predicates
from hylift.lifting.prepared import Prepared
from hylift.progress import Progress

Chosen = NDArray[np.bool_]  # (observation,)


@dataclass(frozen=True, slots=True)
class EvidenceEffect:
    """What the evidence on a predicate, or all evidence, does to the classes.

    Classes are counted among the variables that are hidden with all evidence.
    """

    predicate: str | None
    """None for all evidence together."""
    num_observed: int
    num_measured: int
    """Measured with an error; they stay hidden."""
    num_without: int
    """Classes without it."""
    num_broken: int
    """How many more there are with it; negative where it restores symmetry."""
    num_alike: int | None
    """Classes with it if its reals had all been observed with one value; None without reals."""


def evidence_effects(lifting: Lifting, progress: Progress) -> tuple[EvidenceEffect, ...]:
    """Per predicate with evidence, the one that breaks most first; then of all evidence, where
    there are several."""
    source = lifting.source
    is_hard = source.evidence.is_hard
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
        without.append(_num_without(lifting, chosen))
    is_real = source.variables.num_states[source.evidence.variable] == 0
    alike = _num_alike(lifting, [chosen & is_real for _, chosen in wanted], progress)
    found = [
        EvidenceEffect(
            name,
            int((chosen & is_hard).sum()),
            int((chosen & ~is_hard).sum()),
            fewer,
            lifting.num_classes - fewer,
            same,
        )
        for (name, chosen), fewer, same in zip(wanted, without, alike, strict=True)
    ]
    single = [effect for effect in found if effect.predicate is not None]
    single.sort(key=lambda effect: -effect.num_broken)
    return (*single, *found[len(single) :])


def _num_without(lifting: Lifting, chosen: Chosen) -> int:
    """Classes of the hidden variables when these observations had not been made."""
    source, given = lifting.source, lifting.source.evidence
    fewer = Evidence(given.variable[~chosen], given.value[~chosen], given.var[~chosen])
    graph = FactorGraph.unchecked(source.variables, source.groups, fewer, source.log_constant)
    prepared = Prepared.of(graph, lifting.tolerance)
    classes = stable_coloring(prepared.structure, links=prepared.links)
    # Evidence is only taken away: what is hidden with all of it is hidden still.
    still = np.searchsorted(prepared.conditioned.hidden, lifting.hidden)
    present = np.zeros(classes.num_variable_classes, dtype=bool)
    present[classes.variable[still]] = True
    return int(np.count_nonzero(present))


def _num_alike(lifting: Lifting, reals: list[Chosen], progress: Progress) -> list[int | None]:
    """Per set of observed reals: classes if the values of each predicate in it were one."""
    found: list[int | None] = []
    one_value = _OneValue.of(lifting) if any(map(np.any, reals)) else None
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

    prepared: Prepared
    keys: EvidenceKeys
    clusters: EvidenceClusters

    @classmethod
    def of(cls, lifting: Lifting) -> _OneValue:
        prepared = Prepared.of(lifting.source, lifting.tolerance)
        clusters = EvidenceClusters.of(lifting.source, tolerance=lifting.tolerance)
        keys = EvidenceKeys.of(prepared, Absorbed.of(prepared), clusters)
        return cls(prepared, keys, clusters)

    def num_classes(self, chosen: Chosen) -> int:
        """Classes when the chosen reals of a predicate count as one value, others as they are."""
        values = self.clusters.sorted
        exact = ~chosen[values.observation]
        cluster = self.clusters.cluster.copy()
        cluster[values.observation[exact]] = len(self.clusters) + values.distinct[exact]
        kinds = self.keys.kinds(replace(self.clusters, cluster=cluster))
        coloring = stable_coloring(self.prepared.structure, kinds.kind, links=self.prepared.links)
        return coloring.num_variable_classes
