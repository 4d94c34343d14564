"""Rules in terms of what evidence decides."""

from __future__ import annotations

from collections.abc import Mapping

from hylift.grounding.decided.relations import is_decided, related, relation
from hylift.grounding.decided.rows import OnlyRows
from hylift.grounding.decided.thresholds import Thresholds
from hylift.grounding.world import World
from hylift.language.syntax import Atom, Comparison, Expr, Quantified, Unary
from hylift.language.walk import free_variables


def with_relations(world: World) -> tuple[World, list[tuple[Expr, tuple[Expr, ...]]]]:
    """The world with a closed-world predicate for all that evidence decides, and the formula and
    the conditions of each rule in terms of these.

    `EXIST y Friends(x, y)` becomes an atom of x, whose true rows one query finds; expanded, it
    would be a lookup for every y. `Len(s) < 0.1` where a truth value stands is an atom of s. Where
    atoms of a predicate exist only where its table has rows, so do groundings.
    """
    rules = []
    for rule, types in zip(world.model.rules, world.variable_types, strict=True):
        rows = OnlyRows(world)
        formula, *where = (rows.guarded(part) for part in rule.expressions)
        thresholds = Thresholds(world, types)
        formula = thresholds.decided(formula)
        decided = [thresholds.decided(part, True) for part in (*where, *rows.outside)]
        free = free_variables(formula)
        decided += [atom for atom in thresholds.chosen if set(free_variables(atom)) <= set(free)]
        world, formula = related(thresholds.world, formula, types)
        conditions: dict[Expr, None] = {}
        for part in decided:
            world, condition = _literal(world, part, types)
            conditions[condition] = None
        rules.append((formula, tuple(conditions)))
    return world, rules


def _literal(world: World, part: Expr, types: Mapping[str, str]) -> tuple[World, Expr]:
    """A condition as a comparison of terms, or an atom, or the negation of either."""
    inner = part
    while isinstance(inner, Unary) and inner.op == "!":
        inner = inner.operand
    if isinstance(inner, Atom | Comparison) or not is_decided(world, part):
        return world, part
    return relation(world, Quantified("EXIST", (), part), types)
