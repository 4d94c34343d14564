"""Models and facts that others wrote: how many are read, and why the others are not."""

from __future__ import annotations

import math
import re
from collections import Counter
from pathlib import Path

from benchmarks.setting import Setting
from hylift.errors import HyliftError
from hylift.formats.alchemy_db import read_facts
from hylift.language.checks.check import problems
from hylift.language.statements import Model
from hylift.language.syntax import Expr, Operation, Quantified, Unary
from hylift.language.text.parser import read_model

REASONS = {
    "the rule needs a weight": "a template: weights are to be learned",
    "cannot be included": "an included file is missing",
    r"unknown predicate|neither a constant nor a predicate": "an undeclared name",
    r"not '\*'; Alchemy's": "`*P(x)`",
    r"'#' is not allowed|'\\' is not|'~' is not|after 'Sun'": "WFOMC's language, `#unique`",
    "utilities are not supported": "utilities",
    "constraints on probabilities": "`P(f) = 0.4`",
    "Forclift's weights": "`P(t) 3.7 1.0`",
    "is not a function": "an undeclared function",
    "expected an operator before this|after '0', not ','": "a computed weight",
    r"'\$' is not allowed": "`$N = 3`",
    "several databases": "several databases in one file",
    "lists no constants": "an empty list of constants",
    "is both a predicate and a type": "a predicate called like a type",
    "to continue a line": "an operator at the start of a line",
}
"""Why a file is refused, by its error."""

READ, TEMPLATE = "read", REASONS["the rule needs a weight"]


def run(setting: Setting) -> None:
    """models and facts of other systems, in the folder foreign of the data, by origin"""
    folder = setting.published("foreign")
    if folder is None:
        return
    found = [(path, *outcome(path)) for path in sorted(folder.rglob("*")) if is_foreign(path)]
    counts = Counter((path.relative_to(folder).parts[0], path.suffix, o) for path, o, _ in found)
    print("| origin | `.mln` | read | templates | refused | `.db` | read | refused |")
    print("|---|--:|--:|--:|--:|--:|--:|--:|")
    for origin in [*sorted({origin for origin, _, _ in counts}), "all"]:
        print(f"| {origin} | {' | '.join(map(str, _row(counts, origin)))} |")
    print("\n| refused for | files |\n|---|--:|")
    reasons = Counter(o for _, o, _ in found if o not in (READ, TEMPLATE))
    for reason, count in reasons.most_common():
        print(f"| {reason} | {count} |")
    divided = sum(text == "divided" for _, _, text in found)
    print(f"\n{divided} models that are read have weights that Alchemy divides among clauses")
    for path, told, text in found:
        if setting.lists_failures and told != READ:
            print(f"{path.relative_to(folder)}: {text}")


def _row(counts: Counter[tuple[str, str, str]], origin: str) -> list[int]:
    """The numbers of models and of facts, by outcome."""
    row = []
    for suffix, outcomes in ((".mln", [READ, TEMPLATE]), (".db", [READ])):
        here: Counter[str] = Counter()
        for (where, kind, told), count in counts.items():
            if kind == suffix and origin in (where, "all"):
                here[told] += count
        read = [here[told] for told in outcomes]
        row += [here.total(), *read, here.total() - sum(read)]
    return row


def is_foreign(path: Path) -> bool:
    """True for a model or facts."""
    return path.is_file() and path.suffix in (".mln", ".db")


def outcome(path: Path) -> tuple[str, str]:
    """`read`, or why not; and the first line of the error, or whether weights are divided."""
    try:
        if path.suffix == ".db":
            read_facts(path)
            return READ, ""
        model = read_model(path)
        wrong = [str(problem) for problem in problems(model) if problem.severity == "error"]
    except HyliftError as error:
        wrong = [str(error)]
    if not wrong:
        return READ, "divided" if has_divided_weights(model) else ""
    # What else is wrong with a template matters more than that it is one.
    wrong = [text for text in wrong if "needs a weight" not in text] or wrong
    first = wrong[0].splitlines()[0]
    return next((told for key, told in REASONS.items() if re.search(key, first)), first), first


def has_divided_weights(model: Model) -> bool:
    """True if a soft rule is several clauses, among which Alchemy divides its weight."""
    return any(not rule.hard and num_clauses(rule.formula) > 1 for rule in model.rules)


def num_clauses(expr: Expr, is_true: bool = True) -> int:
    """The clauses that say that a formula is true, or that it is false."""
    match expr:
        case Unary(op="!", operand=operand):
            return num_clauses(operand, not is_true)
        case Quantified(quantifier="FORALL" | "EXIST", body=body):
            return num_clauses(body, is_true)
        case Operation(op="=>", operands=(first, second)):
            parts = [num_clauses(first, not is_true), num_clauses(second, is_true)]
            return parts[0] * parts[1] if is_true else sum(parts)
        case Operation(op="<=>", operands=(first, second)):
            one, not_one = num_clauses(first), num_clauses(first, is_true=False)
            other, not_other = num_clauses(second), num_clauses(second, is_true=False)
            if is_true:
                return not_one * other + one * not_other
            return one * other + not_one * not_other
        case Operation(op="^" | "v" as op, operands=operands):
            parts = [num_clauses(operand, is_true) for operand in operands]
            if (op == "^") == is_true:
                return sum(parts)
            return math.prod(parts)
    return 1
