"""From a model and its tables to a factor graph."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from hylift.graph import FactorGraph, FactorGroup, RuleInfo, Rules
from hylift.graph.factor_graph import SizeEstimate
from hylift.grounding.atoms import (
    AtomNumbers,
    AtomSpace,
    Observations,
    UnusedEvidence,
    observations,
    variables_of,
)
from hylift.grounding.decided.rules import with_relations
from hylift.grounding.event_counts import check_counts
from hylift.grounding.evidence.probabilities import with_probabilities
from hylift.grounding.factors import GroundRule, factor_groups, ground_rule
from hylift.grounding.plan import RulePlan, plan_rule, rule_label
from hylift.grounding.query import Groundings, groundings
from hylift.grounding.sizes import GroundStatistics, estimate, statistics, warn_of_size
from hylift.grounding.world import World
from hylift.language.report import ModelWarning
from hylift.language.statements import Model, Rule
from hylift.language.syntax import Atom, Quantified
from hylift.language.types import constant_value
from hylift.language.walk import free_variables
from hylift.progress import Progress, silent
from hylift.words import Wording, worded


@dataclass(frozen=True, slots=True)
class Grounding:
    """A factor graph, with the world and the plans it came from."""

    graph: FactorGraph
    world: World
    plans: tuple[RulePlan, ...]
    num_factors: tuple[int, ...]
    """Per rule."""
    numbers: Mapping[str, AtomNumbers]
    observed: Observations

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes on evidence that was left out, or may have been meant otherwise."""
        notes = list(self.world.notes)
        unused = self.observed.unused
        notes += [
            str(u)
            for u in unused
            if not _is_lost(u, self.world, self.plans) and u.predicate not in self.world.compared
        ]
        for name in sorted(self.observed.only_true):
            hidden = self.numbers[name].num_atoms - self.observed.num_observed[name]
            if hidden:
                notes.append(
                    worded(
                        f"'{name}' is open: the evidence names true atoms only, and all others "
                        f"({hidden:,}) are hidden; ",
                        Wording(f"closed=['{name}']", f"--closed {name}"),
                        " makes them false",
                    )
                )
        return tuple(notes)

    def statistics(self) -> GroundStatistics:
        """Counts per predicate and per rule."""
        return statistics(self.world, self.plans, self.num_factors, self.numbers, self.observed)


def ground(
    model: Model,
    evidence: Any = None,
    *,
    closed: Iterable[str] = (),
    only_rows: Iterable[str] = (),
    unmatched: Literal["error", "ignore"] = "error",
    progress: Progress = silent,
) -> FactorGraph:
    """The factor graph of a model and its evidence.

    evidence: files, data frames, Arrow tables, DuckDB relations or mappings; see `World.of`.
    closed: predicates of which all atoms that are not given are false.
    only_rows: predicates whose atoms exist only where their tables have rows, with values or
        without; groundings that would have others do not exist.
    unmatched: what to do with rows about predicates or constants that the model does not have.
    """
    world = World.of(model, evidence, closed=closed, only_rows=only_rows, unmatched=unmatched)
    found = ground_world(world, progress)
    return found.graph.with_notes(found.notes)


def size_estimate(
    model: Model,
    evidence: Any = None,
    *,
    closed: Iterable[str] = (),
    only_rows: Iterable[str] = (),
    unmatched: Literal["error", "ignore"] = "error",
) -> SizeEstimate:
    """The size of the factor graph of a model and its evidence; arguments as of `ground`."""
    world = World.of(model, evidence, closed=closed, only_rows=only_rows, unmatched=unmatched)
    return estimate(*plan_rules(world))


def ground_world(world: World, progress: Progress = silent) -> Grounding:
    """Ground all rules of a world, with one query each."""
    for warning in world.warnings:
        warnings.warn(str(warning), ModelWarning, stacklevel=3)
    world, plans = plan_rules(world)
    warn_of_size(world, plans)
    return ground_plans(world, plans, progress)


def ground_plans(
    world: World,
    plans: Sequence[RulePlan],
    progress: Progress = silent,
    source: Callable[[World, RulePlan], Groundings] = groundings,
    number: Callable[[AtomSpace, Sequence[NDArray[Any]], int], AtomNumbers] = AtomNumbers.of,
) -> Grounding:
    """The graph of planned rules; source, number: where groundings come from, and which atoms are
    which variables."""
    parameters = {
        declared.name: constant_value(world.model, declared.value, "a constant")
        for declared in world.model.parameters
    }
    spaces = {p.name: AtomSpace.of(world, p) for p in world.model.predicates}
    used: dict[str, list[NDArray[Any]]] = {n: [] for n in spaces if n not in world.closed}
    rules: list[list[GroundRule]] = []
    constants: list[float] = []
    for place, plan in enumerate(plans):
        progress(place / (len(plans) + 1), f"grounding {plan.label}")
        own, constant = ground_rule(world, plan, spaces, parameters, source)
        constants.append(constant)
        rules.append(own)
        for rule in own:
            for atom, codes in zip(rule.plan.slots, rule.codes, strict=True):
                used[atom.predicate].append(codes)
    numbers: dict[str, AtomNumbers] = {}
    offset = 0
    for name, codes_of_slots in used.items():
        numbers[name] = number(spaces[name], codes_of_slots, offset)
        offset += numbers[name].count
    made = [factor_groups(world, own, numbers, parameters) for own in rules]
    observed = observations(world, numbers)
    _warn_of_lost(observed, world, plans)
    # Closed-world predicates have no variables, but errors know their names.
    nothing = np.zeros(0, dtype=np.int64)
    data = [AtomNumbers(spaces[p], 0, 0, nothing) for p in spaces if p in world.closed]
    variables = variables_of([*numbers.values(), *data])
    observed.evidence.check(variables)
    groups = (*(group for groups in made for group in groups), *observed.groups)
    check_counts(groups, observed.evidence, variables)
    infos = []
    for plan, made_of, constant in zip(plans, made, constants, strict=True):
        if _weight_of(plan) == 0:  # log-values of 0 say nothing about the formula
            unit = plan.with_weight(1.0)
            own, constant = ground_rule(world, unit, spaces, parameters, source)
            made_of = factor_groups(world, own, numbers, parameters)
        infos.append(_rule_info(plan, tuple(made_of), constant))
    graph = FactorGraph.unchecked(
        variables, groups, observed.evidence, sum(constants), Rules.of(tuple(infos))
    )
    num_factors = tuple(int(sum(g.multiplicity.sum() for g in groups)) for groups in made)
    return Grounding(graph, world, tuple(plans), num_factors, numbers, observed)


def _weight_of(plan: RulePlan) -> float | None:
    """The weight of a rule; None where it has none, or several."""
    has_one = plan.rule.weight is not None and not plan.rule.hard and not plan.weighted_by
    return float(plan.weight) if has_one and np.isfinite(plan.weight) else None


def _rule_info(plan: RulePlan, groups: tuple[FactorGroup, ...], constant: float) -> RuleInfo:
    """groups, constant: of the rule, or of the formula alone if its weight is 0."""
    weight = _weight_of(plan)
    scale = weight or 1.0
    return RuleInfo(plan.label, weight, groups, scale, constant / scale)


def plan_rules(world: World) -> tuple[World, tuple[RulePlan, ...]]:
    """A plan for each rule, and the world with the relations that the plans look up."""
    labels = [rule_label(rule, place) for place, rule in enumerate(world.model.rules)]
    rules = tuple(map(_for_each, world.model.rules))
    world = replace(world, model=replace(world.model, rules=rules))
    world, related = with_relations(world)
    parts = zip(rules, world.variable_types, related, labels, strict=True)
    return world, tuple(
        plan_rule(
            world,
            rule,
            types,
            with_probabilities(formula, world.model, types, world.tables, world.constants),
            where,
            label,
        )
        for rule, types, (formula, where), label in parts
    )


def _for_each(rule: Rule) -> Rule:
    """The rule; a hard one about all constants, `FORALL x A(x).`, as one about each: `A(x).`"""
    formula = rule.formula
    named = {name for part in rule.where for name in free_variables(part)}
    while rule.hard and isinstance(formula, Quantified) and formula.quantifier == "FORALL":
        if named & set(formula.variables):
            break
        formula = formula.body
    return replace(rule, formula=formula)


def _warn_of_lost(observed: Observations, world: World, plans: Sequence[RulePlan]) -> None:
    for unused in observed.unused:
        if _is_lost(unused, world, plans):
            others = "no groundings" if unused.in_rules is None else f"e.g. {unused.in_rules}"
            text = f"{unused}; rules about it have {others}: do the keys of the tables agree?"
            warnings.warn(text, ModelWarning, stacklevel=4)


def _is_lost(unused: UnusedEvidence, world: World, plans: Sequence[RulePlan]) -> bool:
    """True if evidence has no effect, although rules are about its predicate: either they have
    other atoms, or tables that all have rows do not match each other."""
    name = unused.predicate
    if not unused.is_all or unused.in_rules is not None:
        return unused.is_all
    about = (plan for plan in plans if name in plan.open_predicates)
    return any(
        all(
            world.relations[guard.test.predicate].num_rows
            for guard in plan.guards
            if guard.holds and isinstance(guard.test, Atom)
        )
        for plan in about
    )
