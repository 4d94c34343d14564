"""Random small models of rules, with random closed worlds, for comparison with slow evaluation."""

from __future__ import annotations

import itertools
import random
from collections.abc import Mapping
from dataclasses import dataclass

from hylift.graph.domains import boolean, interval, real
from hylift.language.checks.rules import rule_problems
from hylift.language.lowering.fold import expand
from hylift.language.statements import (
    Model,
    ParameterDeclaration,
    PredicateDeclaration,
    Rule,
    TypeDeclaration,
)
from hylift.language.syntax import (
    Atom,
    Call,
    Comparison,
    Constant,
    Expr,
    Gaussian,
    Normal,
    Number,
    Parameter,
    Power,
    Quantified,
    Term,
    Truth,
    Unary,
    Variable,
    WeightTable,
    binary,
)
from hylift.language.types import variable_types
from hylift.language.walk import atoms, free_variables

VARIABLES = {"person": ("p", "q", "r"), "step": ("s", "t", "u"), "city": ("a", "b", "c")}
WEIGHTS = [0.7, -0.4, 1.3, 2.0, -1.1, 0.05]
NUMBERS = [0.0, 1.0, 2.0, -0.5, 0.25, -3.0]
LOGIC = ["^", "v", "=>", "<=>"]
COMPARISONS = ["=", "!=", "<", "<=", ">", ">="]
MAX_ATOMS = 9
"""Most atoms in one grounding of a rule, so that tables stay small."""

Scope = Mapping[str, tuple[str, ...]]
"""By type: the names of the variables that may be used."""


@dataclass(frozen=True)
class RandomCase:
    """A model, its closed predicates, and their true atoms."""

    model: Model
    closed: tuple[str, ...]
    true_atoms: frozenset[tuple[str, ...]]

    @property
    def constants(self) -> dict[str, list[str]]:
        return {declared.name: list(declared.constants or ()) for declared in self.model.types}

    def atoms_of(self, name: str) -> list[tuple[str, ...]]:
        """All ground atoms of a predicate, without its name."""
        types = self.model.predicate_by_name[name].arguments
        return list(itertools.product(*(self.constants[t] for t in types)))

    def evidence(self) -> dict[str, object]:
        """The true atoms of closed predicates: a table each, if there are any."""
        found: dict[str, object] = {}
        for name in self.closed:
            rows = [words for words in self.atoms_of(name) if (name, *words) in self.true_atoms]
            if rows:
                found[name] = rows if rows[0] else True
        return found

    def full_evidence(self) -> dict[str, object]:
        """Every atom of the closed predicates, true or false."""
        found: dict[str, object] = {}
        for name in self.closed:
            rows = [(*w, int((name, *w) in self.true_atoms)) for w in self.atoms_of(name)]
            found[name] = rows if len(rows[0]) > 1 else bool(rows[0][0])
        return found


class RandomRules:
    """Models of every construct the language has, each drawn from one seed."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._num_quantified = 0

    def case(self) -> RandomCase:
        pick = self._random
        types = tuple(
            TypeDeclaration(
                name, tuple(f"{name[0].upper()}{i}" for i in range(pick.choice([1, 2, 2, 3, 3, 4])))
            )
            for name in pick.sample(list(VARIABLES), pick.choice([1, 1, 2, 2, 3]))
        )
        predicates = self._predicates([declared.name for declared in types])
        parameters = (
            ParameterDeclaration("W", Number(0.6)),
            ParameterDeclaration("K", binary("*", Number(-2.0), Parameter("W"))),
        )
        self._model = Model(types, predicates, parameters)
        self._constants = {t.name: list(t.constants or ()) for t in types}
        plain = [p for p in predicates if p.domain.is_discrete and p.unique is None]
        share = pick.choice([0.0, 0.4, 0.4, 0.7, 1.0])
        self._closed = tuple(p.name for p in plain if pick.random() < share)
        rules: list[Rule] = []
        for _ in range(pick.choice([1, 1, 2, 3, 5])):
            rules.append(self._rule(may_be_hard=not any(rule.hard for rule in rules)))
        model = Model(types, predicates, parameters, tuple(rules))
        case = RandomCase(model, self._closed, frozenset())
        density = pick.choice([0.0, 0.2, 0.5, 0.5, 0.8, 1.0])
        true_atoms = frozenset(
            (name, *words)
            for name in self._closed
            for words in case.atoms_of(name)
            if pick.random() < density
        )
        return RandomCase(model, self._closed, true_atoms)

    # Declarations.

    def _predicates(self, types: list[str]) -> tuple[PredicateDeclaration, ...]:
        pick = self._random

        def arguments(most: int) -> tuple[str, ...]:
            return tuple(pick.choice(types) for _ in range(pick.randrange(most + 1)))

        found = [
            PredicateDeclaration(name, arguments(2), boolean)
            for name in ("Alpha", "Beta", "Gamma", "Delta")[: pick.randrange(1, 5)]
        ]
        if self._chance(0.3):
            found.append(PredicateDeclaration("Tri", arguments(3), boolean))
        for name in ("size", "speed")[: pick.randrange(3)]:
            found.append(PredicateDeclaration(name, arguments(2), real))
        if self._chance(0.3):
            found.append(PredicateDeclaration("share", arguments(1), interval(-5.0, 5.0)))
        if self._chance(0.4):
            given = (*arguments(1), pick.choice(types))
            unique = pick.randrange(len(given))
            found.append(PredicateDeclaration("Kind", given, boolean, unique))
        pick.shuffle(found)
        return tuple(found)

    # Rules.

    def _rule(self, *, may_be_hard: bool) -> Rule:
        """A rule that holds together and makes no large table."""
        while True:
            rule = self._any_rule(may_be_hard)
            wrong = rule_problems(self._model, rule, self._listed())
            if not any(problem.severity == "error" for problem in wrong) and self._is_small(rule):
                return rule

    def _listed(self) -> dict[str, dict[str, None]]:
        return {name: dict.fromkeys(words) for name, words in self._constants.items()}

    def _is_small(self, rule: Rule) -> bool:
        types = variable_types(self._model, rule)
        written = expand(rule.formula, self._constants, types)
        choices = 1
        for name in free_variables(rule.formula):
            choices *= len(self._constants[types[name]])
        return len(atoms(written)) <= MAX_ATOMS and choices <= 300

    def _any_rule(self, may_be_hard: bool) -> Rule:
        scope = {name: VARIABLES[name][: self._random.choice([1, 2, 2, 3])] for name in VARIABLES}
        self._num_quantified = 0
        where = self._conditions(scope)
        is_truth = self._chance(0.6)
        depth = self._random.randrange(1, 4)
        formula = self._truth(depth, scope) if is_truth else self._number(depth, scope)
        if is_truth and may_be_hard and self._chance(0.12):
            return Rule(formula, hard=True, where=where)
        named = [
            term.name
            for atom in atoms(formula)
            for term in atom.arguments
            if isinstance(term, Variable) and term.name in free_variables(formula)
        ]
        named = list(dict.fromkeys(named))
        if named and self._chance(0.25):
            chosen = set(self._random.sample(named, min(len(named), self._random.choice([1, 2]))))
            per_constant = tuple(name for name in named if name in chosen)
            weight = self._weight_table(formula, where, per_constant)
            return Rule(formula, weight, where=where, per_constant=per_constant)
        if not is_truth and self._chance(0.3):
            return Rule(formula, where=where)
        return Rule(formula, self._weight(), where=where)

    def _weight(self) -> Expr:
        number = Number(self._random.choice(WEIGHTS))
        choices: list[Expr] = [number, number, Parameter("W"), Unary("-", Parameter("K"))]
        choices.append(binary("*", number, Parameter("K")))
        return self._random.choice(choices)

    def _weight_table(
        self, formula: Expr, where: tuple[Expr, ...], names: tuple[str, ...]
    ) -> Expr | WeightTable:
        if self._chance(0.2):
            return self._weight()
        owner = {name: of_type for of_type, some in VARIABLES.items() for name in some}
        keys = list(itertools.product(*(self._constants[owner[name]] for name in names)))
        chosen = [key for key in keys if self._chance(0.6)]
        entries = tuple((key, self._weight()) for key in chosen)
        default = None if entries and len(chosen) == len(keys) else self._weight()
        return WeightTable(entries, default)

    def _conditions(self, scope: Scope) -> tuple[Expr, ...]:
        """Some conditions, no two of them about one atom."""
        drawn = [self._condition(scope) for _ in range(self._random.choice([0, 0, 0, 1, 2, 3]))]
        return tuple({tuple(atoms(part)) or part: part for part in drawn}.values())

    def _condition(self, scope: Scope) -> Expr:
        if self._closed and self._chance(0.4):
            name = self._random.choice(self._closed)
            atom = self._atom_of(self._model.predicate_by_name[name], scope)
            return Unary("!", atom) if self._chance(0.4) else atom
        return self._compare_terms(scope)

    # Logical terms.

    def _term(self, of_type: str, scope: Scope, *, may_shift: bool = True) -> Term:
        if self._chance(0.15):
            return Constant(self._random.choice(self._constants[of_type]))
        name = self._random.choice(scope[of_type])
        shift = self._random.choice([1, -1, 1, 2]) if may_shift and self._chance(0.12) else 0
        return Variable(name, shift)

    def _atom_of(self, declared: PredicateDeclaration, scope: Scope) -> Atom:
        return Atom(
            declared.name,
            tuple(
                self._term(of_type, scope, may_shift=place != declared.unique)
                for place, of_type in enumerate(declared.arguments)
            ),
        )

    def _compare_terms(self, scope: Scope) -> Expr:
        of_type = self._random.choice(list(self._constants))
        left, right = self._term(of_type, scope), self._term(of_type, scope)
        if isinstance(left, Constant) and isinstance(right, Constant):
            left = Variable(self._random.choice(scope[of_type]))
        op = self._random.choice(COMPARISONS)
        return Comparison(op, left, right)  # type: ignore[arg-type]

    # Truths.

    def _truth(self, depth: int, scope: Scope) -> Expr:
        chance = self._random.random()
        if depth == 0 or chance < 0.15:
            return self._leaf(scope)
        if chance < 0.3:
            return Unary("!", self._truth(depth - 1, scope))
        if chance < 0.5 and self._num_quantified < 3:
            return self._quantified(depth - 1, scope)
        op = self._random.choice(LOGIC)
        left, right = self._truth(depth - 1, scope), self._truth(depth - 1, scope)
        return binary(op, left, right)  # type: ignore[arg-type]

    def _leaf(self, scope: Scope) -> Expr:
        if self._chance(0.2):
            return self._compare_terms(scope)
        if self._chance(0.04):
            return Truth(self._chance(0.5))
        truths = [p for p in self._model.predicates if p.domain.is_discrete]
        return self._atom_of(self._random.choice(truths), scope)

    def _quantified(self, depth: int, scope: Scope) -> Expr:
        """A quantifier over variables of its own, as far as its body uses them."""
        inner, names = dict(scope), []
        for _ in range(self._random.choice([1, 1, 2])):
            of_type = self._random.choice(list(self._constants))
            self._num_quantified += 1
            names.append(f"e{self._num_quantified}")
            inner[of_type] = (*inner[of_type], names[-1], names[-1])
        body = self._truth(depth, inner)
        used = tuple(name for name in names if name in free_variables(body))
        if not used:
            return body
        if self._chance(0.25):
            count = Quantified("COUNT", used, body)
            op = self._random.choice(COMPARISONS)
            return Comparison(op, count, Number(float(self._random.randrange(4))))  # type: ignore[arg-type]
        return Quantified(self._random.choice(["EXIST", "FORALL"]), used, body)

    def _sum(self, scope: Scope) -> Expr:
        """A sum over a variable of its own, as far as its body uses it."""
        of_type = self._random.choice(list(self._constants))
        self._num_quantified += 1
        name = f"e{self._num_quantified}"
        inner = scope | {of_type: (*scope[of_type], name, name)}
        body = binary("*", self._leaf(inner), self._number(0, inner))
        return Quantified("SUM", (name,), body) if name in free_variables(body) else body

    # Numbers.

    def _real(self, scope: Scope) -> Expr:
        reals = [p for p in self._model.predicates if not p.domain.is_discrete]
        if not reals:
            return self._literal()
        return self._atom_of(self._random.choice(reals), scope)

    def _literal(self) -> Expr:
        if self._chance(0.2):
            return Parameter(self._random.choice(["W", "K"]))
        return Number(self._random.choice(NUMBERS))

    def _number(self, depth: int, scope: Scope) -> Expr:
        if depth == 0:
            return self._random.choice([self._real, self._real, self._leaf])(scope)
        a, b = self._number(depth - 1, scope), self._number(depth - 1, scope)
        truth = self._truth(1, scope)
        match self._random.randrange(16):
            case 0 | 1 | 2:
                return binary(self._random.choice(["+", "-", "*"]), a, b)
            case 3 | 4:
                return binary("*", truth, b)
            case 5:
                return binary("/", a, self._positive(scope))
            case 6:
                exponent = self._random.choice([2.0, 2.0, 3.0, 0.0, 1.0])
                return Power(a, exponent)
            case 7 | 8:
                return self._soft_comparison(a, b)
            case 9:
                return Unary("-", binary("+", a, self._literal()))
            case 10:
                return self._call(a, b)
            case 11:
                return Normal(self._real(scope), b, self._positive(scope))
            case 12:
                return self._gaussian(scope)
            case 13 | 14 if self._num_quantified < 3:
                return self._sum(scope)
        return truth

    def _positive(self, scope: Scope) -> Expr:
        """A number that is positive whatever its atoms are."""
        if self._chance(0.5):
            choices: list[Expr] = [Number(2.0), Number(0.5), Parameter("W")]
            return self._random.choice(choices)
        return binary("+", Number(1.0), binary("*", Number(3.0), self._leaf(scope)))

    def _soft_comparison(self, a: Expr, b: Expr) -> Expr:
        if self._chance(0.5):
            return Comparison("=", a, b)
        op = self._random.choice(["<", "<=", ">", ">="])
        slope = self._random.choice([None, Number(3.0), Parameter("W")])
        number = binary("+", a, Number(0.5))
        return Comparison(op, number, binary("*", b, Number(1.0)), slope)  # type: ignore[arg-type]

    def _call(self, a: Expr, b: Expr) -> Expr:
        bounded = Call("max", (Call("min", (a, Number(1.0))), Number(-4.0)))
        return self._random.choice(
            [
                Call("abs", (a,)),
                Call("exp", (bounded,)),
                Call("min", (a, b)),
                Call("max", (a, b, Number(0.0))),
                Call("log", (binary("+", Number(1.5), Call("abs", (a,))),)),
            ]
        )

    def _gaussian(self, scope: Scope) -> Expr:
        values = (self._real(scope), binary("-", self._real(scope), self._literal()))
        mean = self._random.choice([(), (Number(1.0), Parameter("K"))])
        cov = ((Number(2.0), Number(0.5)), (Number(0.5), Parameter("W")))
        return Gaussian(values, mean, cov)

    def _chance(self, probability: float) -> bool:
        return self._random.random() < probability
