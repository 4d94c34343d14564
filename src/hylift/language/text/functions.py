"""Functions of constants, `Friends(x, motherOf(x))`: predicates of which one value holds.

`person motherOf(person)` declares `motherOf(person, person!)`. In a rule, `F(motherOf(x))` becomes
`motherOf(x, value) ^ F(value)`: of all groundings of `value` only the one that is the value counts.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from lark import Tree

from hylift.language.statements import Model
from hylift.language.syntax import (
    Atom,
    BinaryOp,
    Comparison,
    Expr,
    Operation,
    Place,
    Quantified,
    Term,
    Truth,
    Unary,
    Variable,
)
from hylift.language.text.notation import ALL_FUNCTIONS, word_hint
from hylift.language.text.tokens import Branch, quoted

_ARGUMENTS = (
    f"the arguments of atoms are variables and constants, and {ALL_FUNCTIONS}; a function of "
    "constants is declared with the type of its values, as in 'person motherOf(person)'"
)

Application = tuple[str, tuple[Term, ...]]
"""A function and its arguments."""


@dataclass(frozen=True, slots=True)
class FunctionValues:
    """The variables for the values of functions in one rule."""

    model: Model
    taken: set[str]
    """The other variables of the rule."""
    found: dict[Application, Variable] = field(default_factory=dict)

    def is_application(self, branch: Branch) -> bool:
        """True for a predicate marked at its last argument, which is left out here."""
        if not isinstance(branch, Tree) or branch.data not in ("atom", "applied"):
            return False
        declared = self.model.predicate_by_name.get(str(branch.children[0]))
        if declared is None or declared.unique is None:
            return False
        return declared.unique == len(declared.arguments) - 1 == len(branch.children) - 1

    def no_function(self, name: str, owner: str) -> str:
        """The error about a term, in the arguments of `owner`, that applies no function."""
        if name in ("succ", "pred"):
            return f"{quoted(name)} is not a function: write 't{'+' if name == 'succ' else '-'}1'"
        if owner == "P" and "P" not in self.model.predicate_by_name:
            return "constraints on probabilities, 'P(f) = p', are not supported: give f a weight"
        message = f"{quoted(name)} is not a function of constants"
        hint = word_hint(name) or word_hint(owner) or _ARGUMENTS
        return f"{message}, in the arguments of {quoted(owner)}; {hint}"

    def variable(self, given: Application, place: Place) -> Variable:
        """The variable for the value of a function."""
        if given not in self.found:
            taken = self.taken | self.model.words | {v.name for v in self.found.values()}
            names = ("value", *(f"value{number}" for number in range(2, len(taken) + 3)))
            free = next(name for name in names if name not in taken)
            self.found[given] = Variable(free, place=place)
        return self.found[given]

    def around(self, formula: Expr, is_hard: bool) -> Expr:
        """The formula of a rule where the variables have the values of the functions."""
        if not self.found:
            return formula
        atoms = [Atom(name, (*given, value)) for (name, given), value in self.found.items()]
        if not is_hard and _is_truth(formula, self.model):
            return Operation("^", (*atoms, formula), place=formula.place)
        joined = atoms[0] if len(atoms) == 1 else Operation("^", tuple(atoms), place=formula.place)
        op: BinaryOp = "=>" if is_hard else "*"
        return Operation(op, (joined, formula), place=formula.place)


def _is_truth(expr: Expr, model: Model) -> bool:
    match expr:
        case Atom(predicate=name):
            return name not in model.real_predicates
        case Operation() as operation:
            return operation.is_logic
        case Unary(op=op):
            return op == "!"
        case Comparison() as comparison:
            return comparison.is_logical or comparison.is_exact
        case Quantified() as quantified:
            return quantified.is_truth
    return isinstance(expr, Truth)
