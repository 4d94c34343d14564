"""What the rules tell about predicates that are declared without a domain."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from hylift.language.syntax import Atom, Comparison, Expr, Gaussian, Normal, Power, Rule
from hylift.language.walk import nodes


def numeric_predicates(rules: Iterable[Rule]) -> set[str]:
    """The predicates whose atoms stand where only a number makes sense.

    That is as a side of a comparison between numbers, under a power, or as what a Gaussian or
    normal density is about.
    """
    expressions = (expr for rule in rules for expr in (rule.formula, *rule.where))
    numbers = (part for expr in expressions for node in nodes(expr) for part in _numbers(node))
    return {part.predicate for part in numbers if isinstance(part, Atom)}


def _numbers(expr: Expr) -> Iterator[Expr]:
    match expr:
        case Comparison(left=left, right=right):
            yield from (left, right)
        case Power(base=base):
            yield base
        case Gaussian(values=values):
            yield from values
        case Normal(value=value):
            yield value
