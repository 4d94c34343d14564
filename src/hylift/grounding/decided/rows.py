"""Guards that atoms exist only where their tables have rows."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from hylift.grounding.world import World
from hylift.language.syntax import Atom, Expr, Quantified, binary
from hylift.language.walk import free_variables, rebuild


@dataclass(slots=True, eq=False)
class OnlyRows:
    """Guards that the atoms of some predicates have rows in their tables."""

    world: World
    outside: list[Atom] = field(default_factory=list)
    """Those outside all quantifiers."""

    def guarded(self, formula: Expr) -> Expr:
        if self.world.only_rows:
            formula, outside = self._guarded(formula)
            self.outside += outside
        return formula

    def _guarded(self, expr: Expr) -> tuple[Expr, list[Atom]]:
        """The expression with guards under its quantifiers, and those that belong outside it."""
        found: list[Atom] = []
        if isinstance(expr, Atom) and expr.predicate in self.world.only_rows:
            declared = self.world.model.predicate_by_name[expr.predicate]
            unique = None if declared.is_whole(expr) else declared.unique
            terms = tuple(t for place, t in enumerate(expr.arguments) if place != unique)
            return expr, [Atom(self.world.only_rows[expr.predicate].name, terms)]

        def part(child: Expr) -> Expr:
            changed, guards = self._guarded(child)
            found.extend(guards)
            return changed

        expr = rebuild(expr, part)
        if not isinstance(expr, Quantified):
            return expr, found
        own = [rows for rows in found if set(free_variables(rows)) & set(expr.variables)]
        body = expr.body
        for rows in dict.fromkeys(own):
            if expr.quantifier == "FORALL":
                body = binary("=>", rows, body)
            else:
                body = binary("^" if expr.quantifier in ("EXIST", "COUNT") else "*", rows, body)
        return replace(expr, body=body), [rows for rows in found if rows not in own]
