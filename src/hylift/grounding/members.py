"""Quantifiers that run over the rows of closed-world atoms: `EXIST x (On(x, j) ^ Can(x))`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hylift.grounding.guards import Guard, Test, decided, expanded, find_guards, variable_ranges
from hylift.grounding.world import World
from hylift.language.syntax import Atom, Expr, Quantified, Quantifier, Variable
from hylift.language.walk import atoms, free_variables, rebuild, renamed

NEUTRAL: dict[Quantifier, float] = {"FORALL": 1.0}
"""Value of a body that changes nothing where it is not 0."""
OF_CHOSEN: tuple[Quantifier, ...] = ("AVG", "MIN", "MAX")
"""Those whose value depends on what is left out, however that is said."""


@dataclass(frozen=True, slots=True)
class Members:
    """A quantifier, and the tests that choose the constants over which it runs.

    Each grounding of its rule has as many copies of the body as it has members.
    """

    atom: Atom
    """Stands for it in the formula of the rule: an atom of its free variables."""
    quantifier: Quantifier
    variables: tuple[str, ...]
    types: Mapping[str, str]
    """Of the free variables, then of those it binds."""
    ranges: Mapping[str, range]
    guards: tuple[Guard, ...]
    body: Expr
    """The formula under the quantifier, given that all guards hold."""
    bits: tuple[Test, ...]
    """The tests that are left in the body."""
    apart: tuple[Atom, ...]
    """Atoms of the body that are another variable for each member."""

    @property
    def free(self) -> list[str]:
        return [name for name in self.types if name not in self.variables]

    def names(self, copy: int) -> dict[str, str]:
        """The names of its variables in one copy of the body; no text can have them."""
        return {name: f"{name} of {self.atom.predicate}, {copy}" for name in self.variables}

    def copies(self, size: int) -> tuple[Expr, ...]:
        return tuple(renamed(self.body, self.names(copy)) for copy in range(size))

    def kinds(self, size: int) -> dict[Atom, object]:
        """Atoms of the copies, with what is the same for atoms that are different variables."""
        return {
            renamed(atom, self.names(copy)): (self.atom, atom)
            for atom in self.apart
            for copy in range(size)
        }


def with_members(
    world: World, formula: Expr, types: Mapping[str, str], label: str
) -> tuple[Expr, tuple[Members, ...]]:
    """The formula with an atom in place of each quantifier that has members; other quantifiers are
    expanded over all constants."""
    found: dict[Expr, Members] = {}
    formula = _chosen(world, formula, types, label, found)
    return expanded(world, formula, types, label), tuple(found.values())


def _chosen(
    world: World, part: Expr, types: Mapping[str, str], label: str, found: dict[Expr, Members]
) -> Expr:
    if not isinstance(part, Quantified):
        return rebuild(part, lambda child: _chosen(world, child, types, label, found))
    if part not in found:
        members = _members(world, part, types, label, f"members {len(found)}")
        if members is None:
            return part
        found[part] = members
    return found[part].atom


def _members(
    world: World, node: Quantified, types: Mapping[str, str], label: str, name: str
) -> Members | None:
    """The members of a quantifier; None if no test chooses any of its variables."""
    neutral = NEUTRAL.get(node.quantifier, 0.0)
    guards, body = find_guards(world, expanded(world, node.body, types, label), neutral)
    choosing = [guard for guard in guards if set(free_variables(guard.test)) & set(node.variables)]
    if node.quantifier not in OF_CHOSEN:
        choosing = [guard for guard in choosing if guard.holds and isinstance(guard.test, Atom)]
    if not choosing:
        return None
    free, known = free_variables(node), world.model.predicate_by_name
    own = {name: types[name] for name in [*free, *node.variables]}
    return Members(
        Atom(name, tuple(map(Variable, free))),
        node.quantifier,
        node.variables,
        own,
        variable_ranges(world, own, [node.body]),
        tuple(guards),
        body,
        decided(world, body),
        tuple(
            atom
            for atom in atoms(body)
            if known[atom.predicate].unique is None
            and set(node.variables) <= set(free_variables(atom))
        ),
    )
