"""Grounding by classes: rules and tables into a lifted graph, whatever its ground size."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hylift.errors import IntractableError
from hylift.graph import FactorGraph
from hylift.grounding.atoms import AtomNumbers, AtomSpace
from hylift.grounding.ground import Grounding, ground_plans, plan_rules
from hylift.grounding.guards import as_number
from hylift.grounding.plan import RulePlan
from hylift.grounding.query import Groundings, some_of
from hylift.grounding.sizes import free_memory, quick_estimate
from hylift.grounding.world import World
from hylift.language.report import ModelWarning
from hylift.language.statements import Model
from hylift.lifting.implicit.atoms import ClassNumbers
from hylift.lifting.implicit.listed import Listed, is_listed
from hylift.lifting.implicit.marks import Mark, marks_of, out_of_reach
from hylift.lifting.implicit.symmetry import Symmetry
from hylift.lifting.implicit.tuples import Tuples
from hylift.progress import Progress, announce_compilation, silent

MOST_CELLS = 9_000_000
"""Most pairs of classes of constants: about 3,000 classes of one type."""


def ground_lifted(
    model: Model,
    evidence: Any = None,
    *,
    closed: Iterable[str] = (),
    only_rows: Iterable[str] = (),
    unmatched: Literal["error", "ignore"] = "error",
    progress: Progress = silent,
) -> FactorGraph:
    """The lifted graph of a model and its evidence, without the ground graph: a variable stands for
    a class of atoms that look alike, and its multiplicity says how many.

    Its cost is that of the classes, not of the groundings. The name of every atom finds the
    variable of its class. Methods take the graph like any other; its exact lifting is that of the
    ground graph. Rules have up to two logical variables, unless tables list their groundings, and
    atoms up to two arguments; where one has more, or data tell too many constants apart, this is
    `ground`, if its graph fits in memory, and else an error that says why. Arguments are those of
    `ground`.
    """
    world = World.of(model, evidence, closed=closed, only_rows=only_rows, unmatched=unmatched)
    found = ground_world_lifted(world, progress)
    return found.graph.with_notes((*found.graph.notes, *found.notes))


def ground_world_lifted(world: World, progress: Progress = silent) -> Grounding:
    """The grounding of all rules of a world by classes, where there are few, or else whole."""
    for warning in world.warnings:
        warnings.warn(str(warning), ModelWarning, stacklevel=3)
    announce_compilation()
    world, plans = plan_rules(world)
    progress(0.0, "looking for constants that look alike")
    active = [plan for plan in plans if as_number(plan.formula) is None]
    tables = [plan for plan in active if is_listed(world, plan)]
    own = {id(plan.rule) for plan in tables}
    others = [plan for plan in active if id(plan.rule) not in own]
    reason = next(filter(None, (out_of_reach(world, plan) for plan in others)), None)
    if reason is None:
        listed = [Listed.of(world, plan) for plan in tables]
        marks = [*marks_of(world, others, tables), *(m for one in listed for m in one.marks())]
        types = _pairs_of_types(world, active, others)
        names = dict.fromkeys(name for some in (*types, *(m.types for m in marks)) for name in some)
        sizes = {name: world.size(name) for name in sorted(names)}
        symmetry = Symmetry.of(sizes, marks, listed)
        reason = _too_many(types, sizes, marks, listed, symmetry)
    if reason is not None:
        size = quick_estimate(world, plans)
        if size.num_bytes > free_memory() / 2:
            raise IntractableError(
                f"this model can only be grounded atom by atom, as {reason}; and that makes {size}"
            )
        whole = ground_plans(world, plans, progress)
        note = f"This is the ground graph, as {reason}."
        return replace(whole, graph=whole.graph.with_notes((note,)))
    source = _Classes(symmetry)
    return ground_plans(world, plans, progress, source.groundings, source.numbers)


def _pairs_of_types(
    world: World, plans: Sequence[RulePlan], unlisted: Sequence[RulePlan]
) -> set[tuple[str, ...]]:
    """The types of the arguments of atoms, and of the variables of unlisted rules."""
    spaces = {atom.predicate for plan in plans for atom in plan.slots}
    known = world.model.predicate_by_name
    found = {AtomSpace.of(world, known[name]).types for name in spaces}
    return found | {tuple(plan.types.values()) for plan in unlisted}


def _too_many(
    types: Iterable[tuple[str, ...]],
    sizes: Mapping[str, int],
    marks: Sequence[Mark],
    listed: Sequence[Listed],
    symmetry: Symmetry,
) -> str | None:
    """Why classes are too many; None where they are not."""
    most = max((pair for pair in types if len(pair) == 2), key=symmetry.num_cells, default=None)
    if most is None or symmetry.num_cells(most) <= MOST_CELLS:
        return None
    name = max(most, key=lambda one: len(symmetry.constants[one].first))
    alone: dict[str, int] = {}
    for subject in dict.fromkeys([*(m.subject for m in marks), *(one.subject for one in listed)]):
        rules = [one for one in listed if one.subject == subject]
        own = Symmetry.of(sizes, [mark for mark in marks if mark.subject == subject], rules)
        alone[subject] = len(own.constants[name].first)
    worst = max(alone, key=alone.__getitem__)
    return (
        f"its {sizes[name]:,} constants of type '{name}' are of "
        f"{len(symmetry.constants[name].first):,} kinds, most of them by {worst} "
        f"({alone[worst]:,} alone), and at most {math.isqrt(MOST_CELLS):,} are paired"
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Classes:
    """Groundings and atoms by classes of tuples of constants, which are made when first needed."""

    symmetry: Symmetry
    tuples: dict[tuple[str, ...], Tuples] = field(default_factory=dict)
    tables: dict[tuple[str, ...], str] = field(default_factory=dict)
    """Those stored in the engine."""

    def of(self, types: tuple[str, ...]) -> Tuples:
        if types not in self.tuples:
            self.tuples[types] = Tuples.of(self.symmetry, types)
        return self.tuples[types]

    def groundings(self, world: World, plan: RulePlan) -> Groundings:
        """One for each class in which the guards of a rule hold."""
        if id(plan.rule) in self.symmetry.listed:
            return self.symmetry.listed[id(plan.rule)]
        types = tuple(plan.types.values())
        found = self.of(types)
        whole = all(
            values == range(world.size(name))
            for name, values in zip(types, plan.ranges.values(), strict=True)
        )
        if whole and not plan.guards and not plan.bits:
            columns = dict(zip(plan.types, found.columns, strict=True))
            return Groundings(len(found), columns, {}, found.size)
        if types not in self.tables:
            columns = {f"v{place}": pa.array(column) for place, column in enumerate(found.columns)}
            columns["place"] = pa.array(np.arange(len(found)))
            self.tables[types] = f"classes_{len(self.tables)}"
            world.engine.load(self.tables[types], pa.table(columns))
        return some_of(world, plan, self.tables[types], found.size)

    def numbers(self, space: AtomSpace, used: Sequence[NDArray[Any]], offset: int) -> AtomNumbers:
        if not any(map(len, used)):
            return AtomNumbers.of(space, used, offset)
        return ClassNumbers.of_tuples(space, self.of(space.types), used, offset)
