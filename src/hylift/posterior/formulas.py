"""Questions in the language of models: formulas and terms of atoms of a posterior."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hylift.errors import ModelError, UnknownNameError, UnsupportedError
from hylift.graph import Domain, Variables, boolean
from hylift.graph.name_blocks import split_atom
from hylift.language.lowering.evaluate import QuadraticPolynomial, evaluate
from hylift.language.statements import Model
from hylift.language.syntax import Apply, Atom, Comparison, Constant, Expr, Number, Quantified, Term
from hylift.language.syntax import Variable as Word
from hylift.language.text.notation import is_numeral, quote
from hylift.language.text.parser import parse
from hylift.language.walk import atoms, nodes, rebuild
from hylift.posterior.joint import JointDensity
from hylift.posterior.questions import exact_probs, joint_of
from hylift.posterior.summing import Expectation, by_draws, by_states

if TYPE_CHECKING:
    from hylift.posterior.posterior import Posterior

NUM_DRAWS = 100_000
"""Draws of a mixture, or of one variable, for one question."""
ATOM = re.compile(r'(?:"(?:[^"\\]|\\.)*")|\b(\w+)\s*\(')
"""The beginning of an atom; quoted words are passed over."""


@dataclass(frozen=True, slots=True, eq=False)
class Formula:
    """A formula or a term of variables of a posterior, whose comparisons are exact."""

    text: str
    expr: Expr
    ids: NDArray[np.int64]  # (variable,): those that it is about
    domains: tuple[Domain, ...]
    leaves: dict[Expr, tuple[int, int | None]]
    """Of each atom the variable, as a position in `ids`, and the state that it stands for."""

    @classmethod
    def of(cls, variables: Variables, text: str) -> Formula:
        """The formula of a text; an error names what is unknown in it."""
        expr = _resolved(_expression(text, variables), variables)
        leaves: dict[Expr, tuple[int, int | None]] = {}
        ids: list[int] = []
        for atom in atoms(expr):
            variable, state = _variable(variables, atom)
            if variable not in ids:
                ids.append(variable)
            leaves[atom] = ids.index(variable), state
        if not ids:
            raise UnsupportedError(f"'{text}' is about no atom of this posterior")
        if len(leaves) > 1:
            variables.check_alone(np.array(ids), f"'{text}'")
        domains = tuple(variables.domain(variable) for variable in ids)
        return cls(text, expr, np.array(ids, dtype=np.int64), domains, leaves)

    @property
    def is_truth(self) -> bool:
        """True if it is true or false, and not a number."""
        return self._value(*(np.zeros(1) for _ in self.domains)).dtype == np.bool_

    def __call__(self, *columns: NDArray[Any]) -> NDArray[np.float64]:
        """Its value, truth being 1, at values of the variables: one array for each."""
        found = self._value(*columns).astype(np.float64)
        shape = np.broadcast_shapes(found.shape, *(np.shape(column) for column in columns))
        if np.isnan(found).any():
            raise UnsupportedError(f"'{self.text}' is undefined at some values of its atoms")
        return np.broadcast_to(found, shape)

    def _value(self, *columns: NDArray[Any]) -> NDArray[Any]:
        def leaf(expr: Expr) -> NDArray[Any]:
            place, state = self.leaves[expr]
            column = np.asarray(columns[place])
            return column if state is None else column == state

        found = evaluate(self.expr, leaf)
        assert not isinstance(found, QuadraticPolynomial)
        return np.asarray(found)


def expected(posterior: Posterior, formula: Formula, question: str, seed: int) -> Expectation:
    """The mean of a formula: a sum over states where it is cheap, else an average over draws."""
    variables, observed = posterior.variables, posterior.observed[formula.ids]
    is_discrete = np.array([domain.is_discrete for domain in formula.domains])
    rng = np.random.default_rng(seed)
    if len(formula.ids) == 1:
        (variable,) = formula.ids.tolist()
        marginal = posterior.known_marginals()[variable]
        if is_discrete[0]:
            found = by_states(formula, marginal.probs)
        else:
            size = 2 if observed[0] else NUM_DRAWS
            found = by_draws(formula, marginal.sample(size, seed=rng)[:, None], is_discrete)
        if posterior.draws is None or observed[0]:
            return found
        # The marginal is an average over the draws of the run, which has an error of its own.
        run = joint_of(posterior, question, formula.ids, seed).expect(formula, seed=seed)
        return replace(found, error=float(np.hypot(found.error, run.error)))
    if is_discrete.all() and posterior.mixture is None:
        shape = [domain.num_states for domain in formula.domains]
        probs = exact_probs(posterior, formula.ids, shape)
        if probs is not None:
            states = np.indices(shape).reshape(len(shape), -1)
            return Expectation(float(probs.ravel() @ formula(*states)), 0.0, "sum")
    joint = joint_of(posterior, question, formula.ids, seed)
    has_reals = (variables.num_states[formula.ids[~observed]] == 0).any()
    if isinstance(joint, JointDensity) and has_reals:
        # Quadrature would miss the jumps of comparisons.
        return by_draws(formula, joint.drawn(NUM_DRAWS, rng), is_discrete)
    return joint.expect(formula, seed=seed)


def probability(posterior: Posterior, text: str, seed: int) -> Expectation:
    """The probability that a formula holds, with its error."""
    formula = Formula.of(posterior.variables, text)
    if not formula.is_truth:
        raise UnsupportedError(
            f"'{text}' is a number, and has no probability: compare it, or use expect(…)"
        )
    found = expected(posterior, formula, "prob(…)", seed)
    if found.method != "sampling":
        return found
    # What was never drawn may still happen as often as once in all draws.
    return replace(found, error=max(found.error, 1.0 / found.num_points))


def _expression(text: str, variables: Variables) -> Expr:
    """The expression of a text without weight, conditions and declarations."""
    if not isinstance(text, str):
        raise UnsupportedError(f"a question is a text such as 'level(a) > level(b)', not {text!r}")
    model = _parsed(text, variables)
    # An atom alone, `Hot(a)` or `Rain`, is also the declaration of a predicate or type.
    is_atom = all(one.domain == boolean for one in model.predicates)
    is_atom &= all(one.constants is None for one in model.types)
    if not model.rules and len(model.predicates) + len(model.types) == 1 and is_atom:
        model = parse(f"({text})", name="<question>")
    (rule, *more) = model.rules or (None,)
    if rule is None or more or model.predicates or model.types:
        raise UnsupportedError(f"a question is one formula or term, not '{text}'")
    if rule.weight is not None or rule.hard or rule.where:
        raise UnsupportedError(
            f"a question is a formula alone, without weight, condition and full stop: '{text}'"
        )
    for node in nodes(rule.formula):
        if isinstance(node, Quantified | Apply):
            raise UnsupportedError(
                f"a question names its atoms, and has no quantifiers and functions: '{text}'"
            )
    return rule.formula


def _parsed(text: str, variables: Variables) -> Model:
    """The model that the text alone is; names of atoms need no quotes in it."""
    try:
        return parse(text, name="<question>")
    except ModelError:
        try:
            return parse(_quoted(text, variables), name="<question>")
        except ModelError:
            pass
        raise  # the first error, whose places are in the user's text


def _quoted(text: str, variables: Variables) -> str:
    """The text with quotes around the constants of the atoms that it names, as in
    `sold(Shop 1, 2024-03-01)`."""
    predicates, parts, start = set(variables.names.predicates), [], 0
    for found in ATOM.finditer(text):
        if found.start() < start or found[1] not in predicates:
            continue
        for end in re.finditer(r"\)", text[found.end() :]):
            words = _constants(text[found.start() : found.end() + end.end()], variables)
            if words:
                parts += [text[start : found.start()], _name(found[1], words)]
                start = found.end() + end.end()
                break
    return "".join([*parts, text[start:]])


def _constants(name: str, variables: Variables) -> tuple[Constant, ...]:
    """The constants in the name of a variable, or of a state of one; none of any other."""
    predicate, words = split_atom(name)
    whole = _name(predicate, tuple(map(Constant, words[:-1])))
    own, of_state = variables.names.find([name, whole]).tolist()
    if own >= 0:
        words = split_atom(variables.names[own])[1]
    elif of_state < 0 or words[-1] not in (variables.domain(of_state).states or ()):
        return ()
    return tuple(map(Constant, words))


def _resolved(expr: Expr, variables: Variables) -> Expr:
    """The expression with exact comparisons, and with atoms where words alone are names of some."""
    if isinstance(expr, Word | Constant):
        if isinstance(expr, Constant) and is_numeral(expr.name):
            return Number(float(expr.name))
        return Atom(expr.name)
    if isinstance(expr, Comparison):
        left, right = _resolved(expr.left, variables), _resolved(expr.right, variables)
        return Comparison(expr.op, left, right, is_exact=True)
    return rebuild(expr, lambda part: _resolved(part, variables))


def _variable(variables: Variables, atom: Atom) -> tuple[int, int | None]:
    """The variable of an atom, and the state that it stands for: true, or its last argument."""
    name = _name(atom.predicate, atom.arguments)
    (found,) = variables.names.find([name]).tolist()
    if found >= 0:
        domain = variables.domain(found)
        if domain == boolean:
            return found, 1
        if domain.states is not None:
            states = ", ".join(domain.states[:3])
            raise UnsupportedError(
                f"'{name}' has the states {states}: ask for one of them, "
                f"'{_name(atom.predicate, (*atom.arguments, Constant(domain.states[0])))}'"
            )
        return found, None
    if atom.arguments:
        whole = _name(atom.predicate, atom.arguments[:-1])
        (found,) = variables.names.find([whole]).tolist()
        if found >= 0 and variables.domain(found).states is not None:
            state = variables.domain(found).encode(_word(atom.arguments[-1]), whole)
            return found, int(state)
    (found,) = variables.ids([name]).tolist()  # raises, with the closest name
    raise UnknownNameError(f"there is no variable '{name}'")


def _name(predicate: str, arguments: tuple[Term, ...]) -> str:
    if not arguments:
        return predicate
    return f"{predicate}({','.join(quote(_word(term)) for term in arguments)})"


def _word(term: Term) -> str:
    if isinstance(term, Constant):
        return term.name
    return term.name + (f"{term.shift:+d}" if term.shift else "")
