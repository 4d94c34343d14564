"""Checks of formulas and weights: truth values and numbers where they belong, valid densities."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from hylift.errors import did_you_mean
from hylift.language.checks.densities import (
    categorical_problems,
    density_problems,
    gaussian_problems,
    normal_problems,
    positive_problems,
)
from hylift.language.checks.meant import counted_instead
from hylift.language.report import Problem, error, warning
from hylift.language.statements import Model, Rule
from hylift.language.syntax import (
    Atom,
    Call,
    Categorical,
    Comparison,
    Density,
    Expr,
    Gaussian,
    Normal,
    Number,
    Operation,
    Quantified,
    Truth,
    Unary,
    Variable,
    WeightTable,
    compares_counts,
)
from hylift.language.text.formatter import shown
from hylift.language.types import call_fault, constant_or_problem
from hylift.language.walk import atoms, children, free_variables, is_truth, nodes, terms
from hylift.words import counted

Listed = Mapping[str, Collection[str]]
"""The constants of each type that lists them, in their order."""

MAX_WEIGHT = 1e100

MOST_COMPARED = 10_000
"""Maximum number of constants that are compared with a misspelt one."""


def formula_problems(model: Model, rule: Rule) -> Iterator[Problem]:
    """The problems of a rule's formula and conditions, whose names are all known."""
    for node in nodes(*rule.expressions):
        match node:
            case Unary(op="!", operand=operand):
                yield from _truth_problems(model, rule, operand, "'!'")
            case Quantified(quantifier=quantifier, body=body):
                if node.is_truth or quantifier == "COUNT":
                    yield from _truth_problems(model, rule, body, quantifier)
            case Operation() if node.is_logic:
                yield from _logic_problems(model, rule, node)
            case Comparison():
                yield from _comparison_problems(model, node)
            case Call():
                if fault := call_fault(node):
                    yield error(fault, node)
            case Gaussian():
                yield from gaussian_problems(model, node)
            case Normal():
                yield from normal_problems(model, node)
            case Density():
                yield from density_problems(model, node)
            case Categorical():
                yield from categorical_problems(model, rule, node)
    if rule.hard and not is_truth(model, rule.formula):
        is_soft = isinstance(rule.formula, Comparison)
        kind = "a soft comparison of numbers" if is_soft else "a number"
        yield error(
            f"'{shown(rule.formula)}' is {kind}, but a hard rule needs a truth value: "
            f"{_softened(rule.formula)}{_counted_instead(model, rule.formula)}",
            rule.formula,
        )


# Truth values.


def _logic_problems(model: Model, rule: Rule, node: Operation) -> Iterator[Problem]:
    exponent = node.operands[1]
    while isinstance(exponent, Operation) and not exponent.is_logic:
        exponent = exponent.operands[0]
    if node.op == "^" and isinstance(exponent, Number):
        yield error(
            "'^' followed by a space is logical and, which needs truth values: for a power "
            f"write '{shown(node.operands[0])}^{shown(exponent)}', without a space",
            node,
        )
        return
    for operand in node.operands:
        yield from _truth_problems(model, rule, operand, f"'{node.op}'")


def _truth_problems(model: Model, rule: Rule, expr: Expr, user: str) -> Iterator[Problem]:
    """The problem that `user` needs a truth value, but this is a number."""
    if is_truth(model, expr):
        return
    kind, advice = "a number", _bracketing(model, expr, user)
    if isinstance(expr, Atom):
        kind = "real"
        advice = ": compare it with a number, and multiply by that comparison"
    elif isinstance(expr, Comparison):
        kind = "a soft comparison of numbers"
        advice = ": multiply by it instead, as in 'A(x) * (B(x) = 1)'"
    if rule.hard and advice:
        advice += f", and {_softened(expr)}"
    yield error(f"'{shown(expr)}' is {kind}, but {user} needs a truth value{advice}", expr)


def _bracketing(model: Model, expr: Expr, user: str) -> str:
    """The advice where brackets were probably forgotten: before a product, or around a count."""
    word = user.strip("'")
    if isinstance(expr, Quantified) and expr.quantifier == "COUNT":
        counting, body = f"COUNT {', '.join(expr.variables)}:", shown(expr.body)
        meant = f"!(({counting} {body}) >= 2)" if word == "!" else f"{counting} ({body} {word} …)"
        return f": put brackets around what it joins, as in '{meant}'"
    if word not in ("^", "v") or not isinstance(expr, Operation) or expr.op != "*":
        return ""
    if is_truth(model, expr.operands[0]):
        times = shown(replace(expr, operands=(Truth(True), *expr.operands[1:])))
        meant = f"(… {word} {shown(expr.operands[0])}){times.removeprefix('true')}"
        return f": put brackets before the product, as in '{meant}'"
    return ""


def _softened(expr: Expr) -> str:
    """The remedy for a hard rule that is a number, in text or in Python."""
    is_built = expr.place is None
    instead = "with 'm.rule' in place of 'm.hard'" if is_built else "in place of the period"
    return f"give the rule a weight {instead}"


def _counted_instead(model: Model, expr: Expr) -> str:
    """The other remedy for a hard rule that compares a sum of truth values."""
    sides = (expr.left, expr.right) if isinstance(expr, Comparison) else ()
    advice = next(filter(None, (counted_instead(model, side) for side in sides)), "")
    return f"; {advice}" if advice else ""


# Comparisons.


def _comparison_problems(model: Model, node: Comparison) -> Iterator[Problem]:
    yield from _slope_problems(model, node)
    if node.is_logical:
        return
    if compares_counts(node):
        yield from _count_problems(model, node)
        return
    truths = [side for side in (node.left, node.right) if is_truth(model, side)]
    meant = _declared_real(model, truths)
    if node.op in ("=", "!=") and len(truths) == 2:
        same = f"{shown(node.left)} <=> {shown(node.right)}"
        instead = same if node.op == "=" else f"!({same})"
        message = f"'{shown(node)}' compares truth values: write '{instead}'"
        yield error(message + (f", or {meant}" if meant else ""), node)
    elif node.op == "!=" and not node.is_exact:
        yield error(
            f"'{shown(node)}' compares numbers, which always differ: '!=' is for logical terms",
            node,
        )
    elif node.op not in ("=", "!="):
        for side in truths:
            message = f"'{node.op}' compares numbers, but '{shown(side)}' is a truth value"
            yield error(message + (f": {meant}" if meant else ""), side)


def _declared_real(model: Model, truths: list[Expr]) -> str:
    """The advice if two compared atoms were meant to be numbers."""
    names = dict.fromkeys(side.predicate for side in truths if isinstance(side, Atom))
    declared = (model.predicate_by_name[name] for name in names)
    are_atoms = len(truths) == 2 and all(isinstance(side, Atom) for side in truths)
    if not are_atoms or any(predicate.unique is not None for predicate in declared):
        return ""
    they = "it is a number" if len(names) == 1 else "they are numbers"
    return f"declare {' and '.join(map(repr, names))} with ': real' if {they}"


def _slope_problems(model: Model, node: Comparison) -> Iterator[Problem]:
    if node.slope is None:
        return
    if node.is_logical or node.op in ("=", "!="):
        yield error(
            "a slope belongs to <, <=, > or >= between numbers, "
            f"not to '{shown(replace(node, slope=None))}'",
            node,
        )
    else:
        yield from positive_problems(model, node.slope, "a slope")


def _count_problems(model: Model, node: Comparison) -> Iterator[Problem]:
    """The problems of a comparison of counts."""
    if node.slope is not None:
        yield error("a comparison of counts is true or false, and has no slope", node.slope)
    for side in (node.left, node.right):
        for other in _uncounted(side):
            yield error(
                f"'{shown(node)}' compares a count, but '{shown(other)}' is none: counts are "
                "compared with numbers and with counts",
                other,
            )
        if node.op == "=" and not atoms(side):
            value = constant_or_problem(model, side, "a count")
            if isinstance(value, float) and (value < 0 or value != round(value)):
                yield error(f"no count is {value:g}", side)


def _uncounted(expr: Expr) -> Iterator[Expr]:
    """The parts of a number that are neither counts nor constants."""
    if isinstance(expr, Quantified) and expr.quantifier == "COUNT":
        return
    if isinstance(expr, Atom | Quantified):
        yield expr
        return
    for child in children(expr):
        yield from _uncounted(child)


# Weights.


def weight_problems(
    model: Model, rule: Rule, types: Mapping[str, str], listed: Listed, *, kind_known: bool
) -> Iterator[Problem]:
    """The problems of a rule's weight; kind_known: all names in its formula are known."""
    if kind_known:
        yield from _missing_weight(model, rule)
    free = free_variables(rule.formula)
    for name in rule.per_constant:
        if name not in free:
            yield error(f"'+{name}' asks for a weight per constant, but '{name}' is not free", rule)
    if rule.hard and rule.weight is not None:
        yield error("a hard rule has no weight", rule.weight)
        return
    for expr in rule.weights:
        weight = constant_or_problem(model, expr, "a weight")
        if isinstance(weight, Problem):
            yield weight
        elif weight == 0 and expr is rule.weight:
            yield warning("a rule of weight 0 has no effect", expr)
        elif abs(weight) > MAX_WEIGHT:
            yield error(
                f"a weight of {weight:g} is too large; the maximum is {MAX_WEIGHT:g}. "
                "For a hard rule, end it with a period instead",
                expr,
            )
    if isinstance(rule.weight, WeightTable):
        yield from _table_problems(rule, rule.weight, types, listed)


def _missing_weight(model: Model, rule: Rule) -> Iterator[Problem]:
    formula = rule.formula
    if not atoms(formula):
        yield error("the rule mentions no atom", formula)
    elif rule.weight is not None or rule.hard:
        return
    elif is_truth(model, formula):
        if _mixes_numbers(model, formula):
            return  # that is the error, and a weight would not mend it
        message = "the rule needs a weight, or a period at its end to be hard"
        if isinstance(formula, Atom) and _is_declaration(model, formula):
            place = model.predicate_by_name[formula.predicate].place
            where = "" if place is None else f" in line {place.line}"
            message = f"'{formula.predicate}' is declared already{where}; {message}"
        yield error(message, formula)
    elif (constant := _leading_constant(formula)) is not None:
        number = shown(constant)
        yield error(
            f"'{shown(formula)}' is a sum or difference that starts with {number}: "
            f"for a rule of weight {number} write '{number} (…)'",
            formula,
        )


def _mixes_numbers(model: Model, formula: Expr) -> bool:
    """True if a product of a density is joined by a logical operator."""
    if not (isinstance(formula, Operation) and formula.is_logic):
        return False
    products = (part for part in formula.operands if isinstance(part, Operation))
    return any(part.op == "*" and not is_truth(model, part) for part in products)


def _is_declaration(model: Model, atom: Atom) -> bool:
    """True if the arguments of an atom are types, as in a declaration."""
    words = (term.name for term in atom.arguments if isinstance(term, Variable))
    return any(word in model.type_by_name for word in words)


def _leading_constant(formula: Expr) -> Expr | None:
    """The constant term that a sum or a difference starts with."""
    first = formula
    while isinstance(first, Operation) and first.op in ("+", "-"):
        first = first.operands[0]
    return None if first is formula or atoms(first) or any(terms(first)) else first


def _table_problems(
    rule: Rule, table: WeightTable, types: Mapping[str, str], listed: Listed
) -> Iterator[Problem]:
    if not rule.per_constant:
        message = "a table of weights needs a variable marked '+' in the formula, as in 'A(+x)'"
        yield error(message, table)
        return
    columns = [listed.get(types.get(name, "")) for name in rule.per_constant]
    seen: set[tuple[str, ...]] = set()
    places = table.key_places or itertools.repeat(table.place)
    for (key, _), place in zip(table.entries, places, strict=False):
        if key in seen:
            yield Problem("error", f"the table of weights has '{', '.join(key)}' twice", place)
        seen.add(key)
        for message in _key_faults(rule, key, columns, types):
            yield Problem("error", message, place)
    if table.default is None:
        yield from _missing_keys(table, seen, columns)


def _key_faults(
    rule: Rule,
    key: tuple[str, ...],
    columns: Sequence[Collection[str] | None],
    types: Mapping[str, str],
) -> Iterator[str]:
    wanted = len(rule.per_constant)
    if len(key) != wanted:
        names = ", ".join(f"+{name}" for name in rule.per_constant)
        yield (
            f"a key of this table has {counted(wanted, 'constant')} ({names}), "
            f"but '{', '.join(key)}' has {len(key)}"
        )
        return
    for name, constant, constants in zip(rule.per_constant, key, columns, strict=True):
        if constants is not None and constant not in constants:
            yield unlisted_fault(constants, types[name], constant)


def unlisted_fault(constants: Collection[str], type_name: str, constant: str) -> str:
    """The error about a constant that its type does not list."""
    close = did_you_mean(constant, itertools.islice(constants, MOST_COMPARED))
    return f"type '{type_name}' has no constant '{constant}'.{close}"


def _missing_keys(
    table: WeightTable,
    given: set[tuple[str, ...]],
    columns: Sequence[Collection[str] | None],
) -> Iterator[Problem]:
    enough = len(given) + 4  # of each column, to find the first few
    known = [tuple(itertools.islice(c, enough)) for c in columns if c is not None]
    if len(known) < len(columns):
        return
    combinations = itertools.product(*known)
    missing = list(itertools.islice((key for key in combinations if key not in given), 4))
    if missing:
        names = "; ".join(", ".join(key) for key in missing[:3])
        more = "; …" if len(missing) > 3 else ""
        message = f"the table has no weight for {names}{more}: add it, or a default, '*: 0'"
        yield error(message, table)
