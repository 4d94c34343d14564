"""Explanations of liftings: the savings, and the evidence that breaks symmetry."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hylift.graph import Evidence, FactorGraph
from hylift.graph.names import Predicates
from hylift.lifting.coarse.keys import EvidenceKeys
from hylift.lifting.coloring import stable_coloring
from hylift.lifting.explanation_text import WORTHWHILE, plain_text
from hylift.lifting.lift import Lifting
from hylift.lifting.structure import LiftingInput
from hylift.numerics.grouping import first_members, group_rows
from hylift.numerics.quadrature import nodes_per_slot
from hylift.potentials import REAL
from hylift.progress import Progress, silent
from hylift.rewrite.rewrites import summaries
from hylift.words import counted, num_classes

MAX_LARGEST = 8
MAX_EXAMPLES = 3


@dataclass(frozen=True, slots=True)
class LargeClasses:
    """Classes of one predicate with equally many variables, more than one."""

    predicate: str
    num_classes: int
    num_variables: int
    """Of each class."""
    examples: tuple[str, ...]
    """Variables of the first of these classes."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """Sizes before and after, the largest classes, and the effect of evidence on symmetry.

    `print(explanation)` shows it as a text, `to_dict()` is for JSON.
    """

    ground: Size
    """Of the hidden variables."""
    lifted: Size
    largest: tuple[LargeClasses, ...]
    """Largest first, at most eight."""
    num_alone: int
    """Variables that are alone in their class."""
    is_exact: bool
    num_observed: int
    num_measured: int
    """Variables that were measured with an error, and stay hidden."""
    effects: tuple[EvidenceEffect, ...]
    """Per predicate with evidence, the one that breaks most symmetry first, and of all evidence
    where there are several. Not measured for coarse liftings."""
    rewrites: dict[str, str]
    """Rewrites that make inference in the ground graph easier: their names, and what they join."""

    @property
    def speed_up(self) -> float:
        """Ratio of grid points per step, ground to lifted: an estimate of the ratio of times."""
        points = self.lifted.num_grid_points
        return self.ground.num_grid_points / points if points else 1.0

    @property
    def helps(self) -> bool:
        """True if the speed-up is worth finding the classes."""
        return self.speed_up >= WORTHWHILE

    @property
    def has_evidence(self) -> bool:
        return self.num_observed + self.num_measured > 0

    @property
    def num_without_evidence(self) -> int | None:
        """Classes of the hidden variables if nothing had been observed; None if not measured."""
        if not self.has_evidence:
            return self.lifted.num_variables if self.is_exact else None
        return self.effects[-1].num_without if self.effects else None

    @property
    def num_coarsest(self) -> int | None:
        """Classes of the first level of coarse-to-fine lifting; None without real evidence."""
        return self.effects[-1].num_alike if self.effects else None

    def to_dict(self) -> dict[str, Any]:
        """All of it as lists, dictionaries and numbers."""
        return {
            "ground": asdict(self.ground),
            "lifted": asdict(self.lifted),
            "speed_up": self.speed_up,
            "helps": self.helps,
            "is_exact": self.is_exact,
            "largest": [asdict(one) | {"examples": list(one.examples)} for one in self.largest],
            "num_alone": self.num_alone,
            "num_observed": self.num_observed,
            "num_measured": self.num_measured,
            "evidence": [asdict(effect) for effect in self.effects],
            "rewrites": self.rewrites,
        }

    def __str__(self) -> str:
        return plain_text(self)

    def __repr__(self) -> str:
        return (
            f"Explanation({counted(self.ground.num_variables, 'variable')} in "
            f"{num_classes(self.lifted.num_variables)}, speed-up {self.speed_up:.3g})"
        )


def explain(lifting: Lifting, progress: Progress = silent) -> Explanation:
    """The savings of a lifting, and the evidence that breaks symmetry.

    The effect of evidence is measured by lifting again without it, predicate by predicate.
    """
    progress(0.0, "counting grid points")
    ground, lifted = Size.of(lifting.ground, in_full=True), Size.of(lifting.graph)
    size = lifting.graph.variables.multiplicity.astype(np.int64)
    effects: tuple[EvidenceEffect, ...] = ()
    if lifting.is_exact and len(lifting.source.evidence) and lifting.ground.num_variables:
        effects = evidence_effects(lifting, lambda share, what: progress(0.2 + 0.8 * share, what))
    progress(1.0, "explained")
    return Explanation(
        ground,
        lifted,
        _largest(lifting, size),
        int(np.count_nonzero(size == 1)),
        lifting.is_exact,
        *_num_evidence(lifting.source),
        effects,
        summaries(lifting.ground),
    )


def _num_evidence(graph: FactorGraph, chosen: Chosen | None = None) -> tuple[int, int]:
    """The numbers of observed and of measured variables, of all evidence or some."""
    evidence = graph.evidence
    times = graph.variables.multiplicity[evidence.variable]
    times = times if chosen is None else times * chosen
    return int(times[evidence.is_hard].sum()), int(times[~evidence.is_hard].sum())


def _largest(lifting: Lifting, size: NDArray[np.int64]) -> tuple[LargeClasses, ...]:
    """size: (class,)."""
    predicates = Predicates.of(lifting.graph.variables.names)
    shared = np.flatnonzero(size > 1)
    # One number per size and predicate, the largest size first.
    key = predicates.of_variable[shared] - size[shared] * len(predicates.names)
    _, first, count = np.unique(key, return_index=True, return_counts=True)
    names = lifting.ground.variables.names
    found = []
    for at, how_many in zip(first[:MAX_LARGEST].tolist(), count.tolist(), strict=False):
        number = int(shared[at])
        members = lifting.members(number)
        found.append(
            LargeClasses(
                predicates.names[predicates.of_variable[number]],
                how_many,
                int(size[number]),
                tuple(names.render(members[:MAX_EXAMPLES]).to_pylist()),
            )
        )
    return tuple(found)


Chosen = NDArray[np.bool_]  # (observation,)


@dataclass(frozen=True, slots=True)
class EvidenceEffect:
    """The effect of the evidence on a predicate, or of all evidence, on the classes.

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
    """Additional classes with it; negative where it restores symmetry."""
    num_alike: int | None
    """Classes with it if all its reals had the same value; None without reals."""


def evidence_effects(lifting: Lifting, progress: Progress) -> tuple[EvidenceEffect, ...]:
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
        without.append(_num_without(lifting, chosen))
    is_real = source.variables.num_states[source.evidence.variable] == 0
    alike = _num_alike(lifting, [chosen & is_real for _, chosen in wanted], progress)
    found = [
        EvidenceEffect(
            name,
            *_num_evidence(source, chosen),
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
    """Classes of the hidden variables without these observations."""
    source, full = lifting.source, lifting.source.evidence
    fewer = Evidence(full.variable[~chosen], full.value[~chosen], full.var[~chosen])
    graph = FactorGraph.unchecked(source.variables, source.groups, fewer, source.log_constant)
    given = LiftingInput.of(graph, lifting.tolerance)
    classes = stable_coloring(given.structure)
    # Evidence is only taken away: what is hidden with all of it is hidden still.
    still = np.searchsorted(given.conditioned.hidden, lifting.hidden)
    present = np.zeros(classes.num_variable_classes, dtype=bool)
    present[classes.variable[still]] = True
    return int(np.count_nonzero(present))


def _num_alike(lifting: Lifting, reals: list[Chosen], progress: Progress) -> list[int | None]:
    """Per set of observed reals: classes if the values of each predicate in it were one."""
    found: list[int | None] = [None] * len(reals)
    if not any(map(np.any, reals)):
        return found
    given = LiftingInput.of(lifting.source, lifting.tolerance)
    keys = EvidenceKeys.of(given)
    clusters, values = keys.clusters, keys.clusters.sorted
    for place, chosen in enumerate(reals):
        progress(0.5 + 0.5 * place / len(reals), "lifting with observed values taken for one")
        # All evidence together may have no more reals than that on one predicate.
        same = [number for number, other in enumerate(reals[:place]) if (chosen == other).all()]
        if same:
            found[place] = found[same[0]]
        elif chosen.any():
            exact = ~chosen[values.observation]
            cluster = clusters.cluster.copy()
            cluster[values.observation[exact]] = len(clusters) + values.distinct[exact]
            kinds = keys.kinds(replace(clusters, cluster=cluster))
            found[place] = stable_coloring(given.structure, kinds.kind).num_variable_classes
    return found


@dataclass(frozen=True, slots=True)
class Size:
    """Size of a graph, and the number of grid points that a step visits per component."""

    num_variables: int
    num_factors: int
    num_grid_points: int
    """A grid of states and of nodes for each variable, and for each distinct scope of several."""
    num_joint_points: int
    """Those of factors with several variables."""

    @classmethod
    def of(cls, graph: FactorGraph, *, in_full: bool = False) -> Size:
        """in_full: of all that variables and factors stand for."""
        members = graph.variables.multiplicity if in_full else np.ones(graph.num_variables)
        num_factors = graph.num_factors
        if in_full:
            num_factors = int(sum(group.multiplicity.sum() for group in graph.groups))
        joint = _joint_points(graph, in_full)
        points = _single_points(graph, members) + joint
        return cls(int(members.sum()), num_factors, points, joint)


def _single_points(graph: FactorGraph, members: NDArray[np.float64]) -> int:
    """Points of the terms of single variables; members: (variable,)."""
    per_domain = [float(d.num_states or nodes_per_slot(1)) for d in graph.variables.domains]
    sizes = np.bincount(graph.variables.domain_id, members, len(per_domain))
    return int(sizes @ np.array(per_domain)) if len(per_domain) else 0


def _joint_points(graph: FactorGraph, in_full: bool) -> int:
    """Points of the terms of several variables.

    Scopes of the same variables, in whatever order, are one term.
    """
    num_states = graph.variables.num_states
    found: defaultdict[int, list[tuple[NDArray[np.int32], NDArray[np.float64]]]]
    found = defaultdict(list)
    for group in graph.groups:
        if group.arity > 1:
            nodes = nodes_per_slot(group.potential.slot_states.count(REAL))
            sizes = np.where(num_states > 0, num_states, nodes)[group.scope]
            points = sizes.prod(axis=1, dtype=np.float64)
            points *= group.multiplicity if in_full else 1.0
            found[group.arity].append((np.sort(group.scope, axis=1), points))
    total = 0
    for parts in found.values():
        scopes, points = (np.concatenate(column) for column in zip(*parts, strict=True))
        total += int(points[first_members(group_rows(scopes)[0])].sum())
    return total
