"""The check that the rules of a model confine its reals, as far as the rules alone show it."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np

from hylift.errors import ModelError, proper_remedy
from hylift.language.checks.grips import Fault, Grip, Labels, fault_of, in_words
from hylift.language.lowering.evaluate import TruthArray
from hylift.language.lowering.formula import Leaf, Slot
from hylift.language.lowering.lower import lower
from hylift.language.report import Problem
from hylift.language.statements import Model, PredicateDeclaration, Rule
from hylift.language.syntax import (
    Atom,
    Categorical,
    Comparison,
    Constant,
    Expr,
    Number,
    Quantified,
    Term,
    Variable,
)
from hylift.language.text.formatter import shown
from hylift.language.types import constant_value
from hylift.language.walk import (
    atoms,
    free_variables,
    logical_comparisons,
    rebuild,
    used_predicates,
)
from hylift.potentials import REAL, Potential
from hylift.potentials.base import FloatArray, QuadraticForm


def unheld_reals(model: Model, closed: frozenset[str] = frozenset()) -> list[Problem]:
    """A warning for each predicate of unbounded reals that no rule is sure to keep finite.

    A rule holds a real in a state of its discrete atoms where the square of the real falls off, or
    where the real has one open end and the formula falls straight towards it; several rules may
    share the work, each in some of the states. A rule counts for all atoms of
    its predicates, even where constants, `where` or comparisons restrict it to some. What is not
    quadratic is trusted. Only single reals are looked at: rules that hold differences alone, as
    `x(a) = x(b)` does, count as well. The atoms of closed-world predicates are no states; they
    decide which groundings there are.
    """
    used = used_predicates(model)
    unbounded = [p for p in model.predicates if _is_unbounded(p) and p.name in used]
    if not unbounded:
        return []
    reader = _Reader.of(model, closed)
    grips = reader.all_grips()
    found = []
    for declared in unbounded:
        fault = fault_of(grips.get(declared.name, []))
        if fault is not None:
            reason = in_words(fault, _closable(reader, declared, fault))
            found.append(_warning(declared, reason))
    return found


def _is_unbounded(declared: PredicateDeclaration) -> bool:
    domain = declared.domain
    return not domain.is_discrete and not np.isfinite([domain.lower, domain.upper]).all()


def _warning(declared: PredicateDeclaration, reason: str) -> Problem:
    variables: list[Term] = []
    for name in declared.arguments:
        letter = Variable(name[0].lower())
        fresh = letter not in variables
        variables.append(letter if fresh else Variable(f"{letter.name}{len(variables) + 1}"))
    atom = shown(Atom(declared.name, tuple(variables)))
    return Problem(
        "warning",
        f"the density may be improper in '{declared.name}': {reason}; {proper_remedy(atom)}",
        declared.place,
        declared.name,
    )


def _closable(reader: _Reader, declared: PredicateDeclaration, fault: Fault) -> Sequence[str]:
    """The predicates whose closing would hold a real: those that decide, or all around it."""
    for names in (fault.deciding, fault.around):
        if names and all(map(reader.is_boolean, names)):
            closed = replace(reader, closed=reader.closed.union(names))
            if fault_of(closed.grips_of(declared.name)) is None:
                return names
    return ()


# The effect of one rule.


@dataclass(frozen=True, slots=True, eq=False)
class _Reader:
    """A model with what one needs to read its rules."""

    model: Model
    closed: frozenset[str]
    parameters: Mapping[str, float]
    mentioned: Mapping[str, tuple[str, ...]]
    """Per type of unique arguments: the constants that rules have there. The rules cannot tell
    the others apart, so that two of them stand for all."""

    @classmethod
    def of(cls, model: Model, closed: frozenset[str]) -> _Reader:
        parameters = {
            declared.name: constant_value(model, declared.value, f"constant '{declared.name}'")
            for declared in model.parameters
        }
        mentioned: dict[str, list[str]] = {}
        for atom in (atom for rule in model.rules for atom in atoms(rule.formula)):
            declared = model.predicate_by_name[atom.predicate]
            if declared.unique is not None and not declared.is_whole(atom):
                names = mentioned.setdefault(declared.arguments[declared.unique], [])
                term = atom.arguments[declared.unique]
                if isinstance(term, Constant) and term.name not in names:
                    names.append(term.name)
        names_by_type = {name: tuple(found) for name, found in mentioned.items()}
        return cls(model, closed, parameters, names_by_type)

    def all_grips(self) -> dict[str, list[Grip]]:
        """Per predicate of reals: the effects of the rules on it."""
        found: dict[str, list[Grip]] = {}
        for number, rule in enumerate(self.model.rules):
            for name, grip in self.grips(rule, number):
                found.setdefault(name, []).append(grip)
        return found

    def grips_of(self, name: str) -> list[Grip]:
        """The effects of all rules on one predicate of reals."""
        about = (
            (number, rule)
            for number, rule in enumerate(self.model.rules)
            if any(atom.predicate == name for atom in atoms(rule.formula))
        )
        grips = (pair for number, rule in about for pair in self.grips(rule, number))
        return [grip for predicate, grip in grips if predicate == name]

    def is_boolean(self, name: str) -> bool:
        """True if a predicate has Boolean atoms, so that it may be closed-world."""
        declared = self.model.predicate_by_name.get(name)
        return declared is not None and declared.domain.is_discrete and declared.unique is None

    def grips(self, rule: Rule, number: int) -> Iterator[tuple[str, Grip]]:
        """Per real atom of a rule: its predicate, and the effect of the rule on it."""
        formula = _without_quantifiers(rule.formula)
        reals = [atom for atom in atoms(formula) if self._is_real(atom)]
        if not reals:
            return
        axes = self._axes(formula)
        hidden = (a for a in atoms(formula) if a not in reals and a.predicate not in self.closed)
        variables = dict(self._variable(atom) for atom in hidden)
        leaves = self._leaves(formula, axes, variables, reals)
        potential: Potential | None = None
        # What is too large, or has no value somewhere, is for grounding to report.
        with suppress(ModelError):
            ones = np.ones(math.prod(map(len, axes.values())))
            potential = lower(formula, ones, leaves, parameters=self.parameters)
        form = None if potential is None else potential.quadratic()
        weights = _weights(self.model, rule)
        for index, real in enumerate(reals):
            if form is not None and form.num_reals:
                outward = self._outward(form, index, real)
                choices = {
                    _seen_from(real, atom, number): labels for atom, labels in variables.items()
                }
                yield real.predicate, _grip(real, outward, weights, axes, choices)
            else:
                yield real.predicate, Grip({}, np.ones((), dtype=np.bool_))

    def _outward(self, form: QuadraticForm, index: int, real: Atom) -> FloatArray:
        """(row, joint state): how a formula grows far out; below zero where it holds the real.

        That is the coefficient of the square; or, where the real does not matter otherwise and
        has one open end, the slope towards that end.
        """
        square: FloatArray = form.A[..., index, index]
        domain = self.model.predicate_by_name[real.predicate].domain
        open_end = float(np.isinf(domain.upper)) - float(np.isinf(domain.lower))
        is_straight = ~form.A[..., index, :].any(axis=-1)
        return np.where(is_straight, open_end * form.b[..., index], square)

    def _is_real(self, atom: Atom) -> bool:
        declared = self.model.predicate_by_name.get(atom.predicate)
        return declared is not None and not declared.domain.is_discrete

    def _unique(self, atom: Atom) -> tuple[Term, str] | None:
        """The term in the unique argument, and its type, if there is one."""
        declared = self.model.predicate_by_name.get(atom.predicate)
        if declared is None or declared.unique is None:
            return None
        return atom.arguments[declared.unique], declared.arguments[declared.unique]

    def _num_states(self, type_name: str) -> int:
        num_names = len(self.mentioned[type_name])
        listed = self.model.type_by_name[type_name].constants
        if listed is None:
            return max(2, num_names)
        return max(1, min(len(listed), num_names + 2))

    def _variable(self, atom: Atom) -> tuple[Atom, Labels]:
        """The discrete variable of an atom: the atom without its unique argument, and labels."""
        declared = self.model.predicate_by_name.get(atom.predicate)
        if declared is None or declared.unique is None:
            text = shown(atom) if declared else atom.predicate
            return atom, (f"{text} is false", f"{text} is true")
        before, after = atom.arguments[: declared.unique], atom.arguments[declared.unique + 1 :]
        type_name = declared.arguments[declared.unique]
        texts = [
            shown(Atom(atom.predicate, (*before, Constant(name), *after)))
            for name in self.mentioned[type_name]
        ]
        none = " and ".join(f"{text} is false" for text in texts[:3] or [shown(atom)])
        labels = (*(f"{text} is true" for text in texts), none, none)
        return Atom(atom.predicate, before + after), labels[: self._num_states(type_name)]

    def _axes(self, formula: Expr) -> dict[Expr, Labels]:
        """Truths that groundings decide, as rows: comparisons, closed-world atoms, and variables in
        unique arguments."""
        axes: dict[Expr, Labels] = dict.fromkeys(self._decided(formula), ("", ""))
        for atom in atoms(formula):
            match self._unique(atom):
                case Variable(name=name), type_name:
                    named = (f"{name} is {constant}" for constant in self.mentioned[type_name])
                    axes[Variable(name)] = (*named, "", "")[: self._num_states(type_name)]
        return axes

    def _decided(self, formula: Expr) -> list[Expr]:
        """The truths that each grounding decides."""
        closed = (atom for atom in atoms(formula) if atom.predicate in self.closed)
        return [*logical_comparisons(formula), *closed]

    def _leaves(
        self,
        formula: Expr,
        axes: Mapping[Expr, Labels],
        variables: Mapping[Atom, Labels],
        reals: Sequence[Atom],
    ) -> dict[Expr, Leaf]:
        sizes = tuple(map(len, axes.values()))
        rows = np.indices(sizes).reshape(len(axes), math.prod(sizes))
        row = dict(zip(axes, rows, strict=True))
        index = {atom: i for i, atom in enumerate([*variables, *reals])}
        leaves: dict[Expr, Leaf] = {node: row[node] != 0 for node in self._decided(formula)}
        for atom in atoms(formula):
            if atom in leaves:
                continue
            if atom in reals:
                leaves[atom] = Slot(index[atom], REAL)
                continue
            variable, state = self._variable(atom)[0], None
            num_states = len(variables[variable])
            match self._unique(atom):
                case Variable(name=name, shift=shift), _:
                    state = (row[Variable(name)] + shift) % num_states
                case Constant(name=name), type_name:
                    state = np.full(math.prod(sizes), self.mentioned[type_name].index(name))
            leaves[atom] = Slot(index[variable], num_states, state)
        return leaves


def _grip(
    real: Atom,
    outward: FloatArray,
    weights: FloatArray,
    axes: Mapping[Expr, Labels],
    choices: Mapping[Hashable, Labels],
) -> Grip:
    """outward: (row, joint state), how the formula grows far out, without the weight."""
    outward = outward.reshape([len(labels) for labels in (*axes.values(), *choices.values())])
    signs = np.sign(weights).reshape((-1,) + (1,) * outward.ndim)
    holds: TruthArray = np.asarray((signs * outward < 0).all(axis=0))
    names = [term.name if isinstance(term, Variable) else "" for term in real.arguments]
    own: dict[Hashable, Labels] = {}
    for axis, labels in axes.items():
        if isinstance(axis, Variable) and axis.name in names:
            own["argument", names.index(axis.name)] = labels
        else:
            # Of all the groundings around a real, one that holds it suffices.
            holds = np.asarray(holds.any(axis=len(own)))
    return Grip({**own, **choices}, holds, bool((signs * outward > 0).any()))


def _weights(model: Model, rule: Rule) -> FloatArray:
    """All the weights a rule may have."""
    given = rule.weights
    return np.array([constant_value(model, weight, "a weight") for weight in given] or [1.0])


def _without_quantifiers(expr: Expr) -> Expr:
    """The expression with an atom of its own, named like it, in place of each quantified truth."""
    if isinstance(expr, Categorical):
        return Number(-1.0)  # whatever its table has
    is_threshold = isinstance(expr, Comparison) and expr.is_exact and not expr.is_logical
    if is_threshold or isinstance(expr, Quantified):
        return Atom(shown(expr), tuple(map(Variable, free_variables(expr))))
    return rebuild(expr, _without_quantifiers)


def _seen_from(real: Atom, variable: Atom, number: int) -> Hashable:
    """The identity of an atom of rule `number` as seen from a real, the same in all rules.

    Atoms with other logical variables, and quantified truths, are the rule's own.
    """
    positions = {
        term.name: (position, term.shift)
        for position, term in enumerate(real.arguments)
        if isinstance(term, Variable)
    }
    seen: list[Hashable] = []
    for term in variable.arguments:
        if isinstance(term, Constant):
            seen.append(term.name)
        elif term.name in positions:
            position, shift = positions[term.name]
            seen.append((position, term.shift - shift))
        else:
            return (number, variable)
    return (variable.predicate, *seen)
