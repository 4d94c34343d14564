"""Model -> text, such that parsing the text gives the same model again."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial

from hylift.errors import UnsupportedError
from hylift.graph.domains import boolean
from hylift.language.statements import (
    Model,
    ParameterDeclaration,
    PredicateDeclaration,
    Rule,
    TableDeclaration,
    TypeDeclaration,
)
from hylift.language.syntax import (
    BUILT_IN,
    COMPARISON_LEVEL,
    OPERATORS,
    Apply,
    Atom,
    Call,
    Categorical,
    Comparison,
    Constant,
    Density,
    Expr,
    Gaussian,
    Normal,
    Number,
    Operation,
    Parameter,
    Power,
    Quantified,
    Term,
    Truth,
    Unary,
    Variable,
    WeightTable,
)
from hylift.language.text.notation import (
    constant_list,
    is_capital,
    is_name,
    is_numeral,
    key_text,
    number_text,
    quote,
)
from hylift.language.walk import (
    TOO_DEEP,
    nodes,
    numeric_predicates,
    occurrences,
    size_fault,
)

# How tightly expressions bind, as `OPERATORS` does.
_LOOSEST, _SUM, _UNARY, _POWER, _PRIMARY = 0, OPERATORS["+"].level, 8, 9, 10

_STARTS_WITH_OPERATOR = re.compile(r"-|v\b")
_STARTS_WITH_V = re.compile(r"v\b")


def format_model(model: Model) -> str:
    """The model as text: types, predicates, constants and rules, with minimal brackets."""
    return _joined(_sections(model, lambda write: write()))


def show_model(model: Model) -> str:
    """The model as text for reading, whatever it contains.

    Python functions are shown by name, and a comment stands for what cannot be written.
    """
    faults = [next(filter(None, map(size_fault, r.expressions)), None) for r in model.rules]
    flat = tuple(r for r, fault in zip(model.rules, faults, strict=True) if fault is None)
    sections = _sections(replace(model, rules=flat), _or_comment, functions="<function {}>")
    return _joined([*sections, [f"// {fault}" for fault in faults if fault]])


def format_rule(rule: Rule) -> str:
    """A rule as text that is unambiguous without the declarations of its model."""
    return _rule(rule, Model())


def format_expression(expr: Expr, functions: str = "") -> str:
    """An expression with minimal brackets."""
    return _Writer(Model(), _variables(expr), functions).text(expr)


def shown(expr: Expr) -> str:
    """The expression as text for messages, or dots if it cannot be written."""
    if size_fault(expr):
        return "…"
    try:
        return format_expression(expr, functions="{}")
    except UnsupportedError:
        return str(expr.value) if isinstance(expr, Number) else "…"


def _sections(
    model: Model, line: Callable[[Callable[[], str]], str], functions: str = ""
) -> list[list[str]]:
    """The statements by kind; line: calls what writes one, or raises `UnsupportedError`."""
    booleans = {d.name for d in model.predicates if d.domain.is_discrete}
    ambiguous = numeric_predicates(model.rules, booleans, model.real_predicates)
    predicates = []
    for declared in model.predicates:
        # Without its domain, the declaration would be read as something else.
        needs_domain = declared.name in ambiguous or not declared.arguments
        ambiguous.add(declared.name)
        predicates.append(line(partial(_predicate, declared, needs_domain)))
    return [
        [line(partial(_type, declared)) for declared in model.types],
        predicates,
        [line(partial(_parameter, declared)) for declared in model.parameters],
        [line(partial(_table, declared)) for declared in model.tables],
        [line(partial(_rule, rule, model, functions)) for rule in model.rules],
    ]


def _joined(sections: list[list[str]]) -> str:
    return "\n".join("".join(f"{line}\n" for line in section) for section in sections if section)


def _or_comment(write: Callable[[], str]) -> str:
    try:
        return write()
    except UnsupportedError as error:
        return f"// {error}"
    except RecursionError:
        return f"// {TOO_DEEP}"


# Statements.


def _type(declared: TypeDeclaration) -> str:
    name, constants = _checked(declared.name, "type"), declared.constants
    return name if constants is None else f"{name} = {constant_list(constants)}"


def _parameter(declared: ParameterDeclaration) -> str:
    value = _Writer(Model(), frozenset()).text(declared.value)
    return f"const {_checked(declared.name, 'constant')} = {value}"


def _table(declared: TableDeclaration) -> str:
    return f"{_checked(declared.name, 'table')}: table"


def _rule(rule: Rule, model: Model, functions: str = "") -> str:
    variables, unmarked = _variables(*rule.expressions), list(reversed(rule.per_constant))
    return _Writer(model, variables, functions, unmarked).rule(rule)


def _predicate(declared: PredicateDeclaration, needs_domain: bool) -> str:
    name = _checked(declared.name, "predicate")
    types = [_checked(argument, "type") for argument in declared.arguments]
    if declared.unique is not None:
        types[declared.unique] += "!"
    text = f"{name}({', '.join(types)})" if types else name
    domain = declared.domain
    if domain == boolean:
        return f"{text}: boolean" if declared.unique is None and needs_domain else text
    if domain.is_discrete:
        states = ", ".join(domain.states or ())
        raise UnsupportedError(f"{declared.name} cannot be written with the states {states}")
    if math.isinf(domain.lower) and math.isinf(domain.upper):
        return f"{text}: real"
    return f"{text}: real[{number_text(domain.lower)}, {number_text(domain.upper)}]"


def _checked(name: str, role: str) -> str:
    """The name, if it can be written."""
    if not is_name(name) or (role != "type" and name in BUILT_IN):
        raise UnsupportedError(f"the {role} {name!r} cannot be written: its name is not a word")
    return name


# Rules and expressions.


def _variables(*exprs: Expr) -> frozenset[str]:
    """The variables of atoms and of quantifiers."""
    in_atoms = {found.variable.name for found in occurrences(*exprs) if found.atom}
    quantified = (node for node in nodes(*exprs) if isinstance(node, Quantified))
    return frozenset(in_atoms.union(*(node.variables for node in quantified)))


@dataclass(slots=True)
class _Writer:
    """Writes one rule, from left to right."""

    model: Model
    """The declarations before the rule."""
    variables: frozenset[str]
    functions: str = ""
    """Template for Python functions, with {} for the name; empty: raise, as no text has them."""
    unmarked: list[str] = field(default_factory=list)
    """Variables whose `+` is still to be written, the next one last."""

    def rule(self, rule: Rule) -> str:
        formula = self.text(rule.formula)
        if self.unmarked:
            name = self.unmarked[-1]
            raise UnsupportedError(f"'+{name}' cannot be written: no atom has it in this order")
        is_alone = rule.weight is None and not rule.where and not rule.hard
        if (is_alone and self._would_declare(rule.formula)) or (
            isinstance(rule.weight, Expr) and _STARTS_WITH_OPERATOR.match(formula)
        ):
            formula = f"({formula})"
        text = self._weight(rule.weight, formula) + formula
        if rule.where:
            text += f" where {', '.join(map(self._condition, rule.where))}"
        return f"{text}." if rule.hard else text

    def _would_declare(self, formula: Expr) -> bool:
        """True if a formula without a weight would be parsed as a declaration or a weight."""
        if not isinstance(formula, Atom):
            return isinstance(formula, Parameter | Number)
        return not formula.arguments or formula.predicate not in self.model.predicate_by_name

    def _condition(self, expr: Expr) -> str:
        # What `^` joins would be read as several conditions.
        is_conjunction = isinstance(expr, Operation) and expr.op == "^"
        return self.text(expr, _PRIMARY if is_conjunction else _LOOSEST)

    def _weight(self, weight: Expr | WeightTable | None, formula: str) -> str:
        """The weight and a space."""
        if weight is None:
            return ""
        if isinstance(weight, WeightTable):
            return f"{self._table(weight)} "
        text = self.text(weight, _UNARY, is_last=False)
        # An undeclared word is a predicate before brackets, and a type before a function.
        word = text.lstrip("-!")
        is_type = word == text and not is_capital(word)
        is_new = is_name(word) and word not in self.model.parameter_by_name
        if is_new and (is_type or formula.startswith("(")):
            return f"({text}) "
        return f"{text} "

    def _table(self, table: WeightTable) -> str:
        entries = [f"{key_text(names)}: {self.text(value)}" for names, value in table.entries]
        if table.default is not None:
            entries.append(f"*: {self.text(table.default)}")
        return f"{{{', '.join(entries)}}}"

    def text(self, expr: Expr, level: int = _LOOSEST, is_last: bool = True) -> str:
        """The expression, in brackets if it binds more loosely than `level`.

        is_last: nothing follows that a quantifier would take into its scope.
        """
        if isinstance(expr, Quantified):
            return self._quantified(expr) if is_last else f"({self._quantified(expr)})"
        if _level(expr) < level:
            return f"({self._open_text(expr, True)})"
        return self._open_text(expr, is_last)

    def _open_text(self, expr: Expr, is_last: bool) -> str:
        match expr:
            case Truth(value=truth):
                return "true" if truth else "false"
            case Number(value=value) | Power(exponent=value) if not math.isfinite(value):
                raise UnsupportedError(f"the number {value} cannot be written")
            case Number(value=value):
                return number_text(value)
            case Parameter(name=name):
                return _checked(name, "constant")
            case Variable() | Constant():
                return self._term(expr, in_atom=False)
            case Atom():
                return self._atom(expr)
            case Unary(op="-", operand=Number(value=value)) if not _is_negative(value):
                return f"-({number_text(value)})"  # without brackets it is a number
            case Unary(op="!", operand=Quantified(is_truth=False) as number):
                return f"!({self._quantified(number)})"  # without brackets it is an error
            case Unary(op=op, operand=operand):
                return f"{op}{self.text(operand, _UNARY, is_last)}"
            case Operation():
                return self._operation(expr, is_last)
            case Power(base=base, exponent=exponent):
                return f"{self.text(base, _PRIMARY, is_last=False)}^{number_text(exponent)}"
            case Comparison():
                return self._comparison(expr, is_last)
            case Call(function=function, arguments=arguments):
                return f"{function}({self._list(arguments)})"
            case Gaussian():
                return self._gaussian(expr)
            case Normal(value=subject, mean=mean, var=var):
                return f"normal({self.text(subject)} | {self.text(mean)}, {self.text(var)})"
            case Density(name=name, value=subject, parameters=parameters):
                return f"{name}({self.text(subject)} | {self._list(parameters)})"
            case Categorical(value=subject, table=str() | WeightTable() as table):
                written = self._table(table) if isinstance(table, WeightTable) else table
                conditions = "".join(f", {self.text(part)}" for part in expr.conditions)
                return f"categorical({self.text(subject)} | {written}{conditions})"
            case Apply():
                return f"{self._function_name(expr)}({self._list(expr.arguments)})"
        raise TypeError(f"not an expression: {expr!r}")

    def _function_name(self, expr: Apply) -> str:
        name: str = getattr(expr.function, "__name__", repr(expr.function))
        if not self.functions:
            raise UnsupportedError(f"the function {name!r} of a rule cannot be written as text")
        return self.functions.format(name)

    def _list(self, expressions: tuple[Expr, ...]) -> str:
        return ", ".join(map(self.text, expressions))

    def _quantified(self, expr: Quantified) -> str:
        names = ", ".join(map(_variable, expr.variables))
        if not expr.is_truth:
            return f"{expr.quantifier} {names}: {self.text(expr.body, OPERATORS['*'].level)}"
        body = self.text(expr.body)
        if _STARTS_WITH_V.match(body):
            body = f"({body})"
        return f"{expr.quantifier} {names} {body}"

    def _operation(self, expr: Operation, is_last: bool) -> str:
        operator, (first, *middle, last) = OPERATORS[expr.op], expr.operands
        inner = operator.level + 1
        texts = [
            self.text(first, operator.level + operator.is_right, is_last=False),
            *(self.text(operand, inner, is_last=False) for operand in middle),
            self.text(last, inner - operator.is_right, is_last),
        ]
        return f" {expr.op} ".join(texts)

    def _comparison(self, expr: Comparison, is_last: bool) -> str:
        is_last = is_last or expr.slope is not None
        left = self.text(expr.left, _SUM, is_last=False)
        right = self.text(expr.right, _SUM, is_last)
        if expr.is_logical:
            if is_numeral(left) and is_numeral(right):
                left = quote(left)
        elif {type(expr.left), type(expr.right)} != {Number} and (
            self._may_be_term(expr.left) and self._may_be_term(expr.right)
        ):
            left = f"({left})"  # without brackets, it would compare logical terms
        text = f"{left} {expr.op} {right}"
        return text if expr.slope is None else f"({text}; slope={self.text(expr.slope)})"

    def _may_be_term(self, expr: Expr) -> bool:
        """True if a side of a comparison would be parsed as a logical term."""
        match expr:
            case Variable() | Constant() | Number():
                return True
            case Parameter(name=name) | Atom(predicate=name, arguments=()):
                return name in self.variables or name not in self.model.words
            case Operation(op="+" | "-", operands=(left, Number(value=value))):
                is_word = isinstance(left, Variable | Parameter | Atom)
                return is_word and value >= 0 and value.is_integer() and self._may_be_term(left)
        return False

    def _atom(self, atom: Atom) -> str:
        name = _checked(atom.predicate, "predicate")
        if atom.arguments:
            terms = (self._term(term, in_atom=True) for term in atom.arguments)
            return f"{name}({', '.join(terms)})"
        is_word = name in self.model.propositions or name not in self.variables
        return name if is_word and name not in self.model.parameter_by_name else f"{name}()"

    def _term(self, term: Term, in_atom: bool) -> str:
        if isinstance(term, Constant):
            return self._constant(term.name, in_atom)
        text = _variable(term.name)
        if in_atom and self.unmarked and self.unmarked[-1] == term.name:
            self.unmarked.pop()
            text = f"+{text}"
        sign = "-" if term.shift < 0 else "+"
        sign = sign if in_atom else f" {sign} "
        return f"{text}{sign}{abs(term.shift)}" if term.shift else text

    def _constant(self, name: str, in_atom: bool) -> str:
        is_taken = not in_atom and (name in self.model.words or name in self.model.type_by_name)
        is_bare = is_name(name) and is_capital(name) and not is_taken
        return name if is_bare or is_numeral(name) else quote(name)

    def _gaussian(self, expr: Gaussian) -> str:
        values = self._list(expr.values)
        mean = f"mean=[{self._list(expr.mean)}], " if expr.mean else ""
        rows = ", ".join(f"[{self._list(row)}]" for row in expr.cov)
        return f"gaussian({values}; {mean}cov=[{rows}])"


def _level(expr: Expr) -> int:
    """The level at which an expression binds."""
    match expr:
        case Operation(op=op):
            return OPERATORS[op].level
        case Comparison(slope=None):
            return COMPARISON_LEVEL
        case Unary():
            return _UNARY
        case Number(value=value) if _is_negative(value):
            return _UNARY
        case Power():
            return _POWER
        case Variable(shift=shift) if shift:
            return _SUM
    return _PRIMARY


def _is_negative(value: float) -> bool:
    return math.copysign(1.0, value) < 0


def _variable(name: str) -> str:
    if not is_name(name) or is_capital(name):
        raise UnsupportedError(
            f"the variable {name!r} cannot be written: variables begin with a small letter"
        )
    return name
