"""Checks of densities: values of the right kind, and parameters that are possible."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

import numpy as np

from hylift.errors import did_you_mean
from hylift.language.lowering.faults import DETERMINISTIC
from hylift.language.report import Problem, error
from hylift.language.statements import Model, Rule
from hylift.language.syntax import (
    DENSITIES,
    OF_TRUTHS,
    POSITIVE,
    Atom,
    Categorical,
    Density,
    Expr,
    Gaussian,
    Normal,
    Variable,
    WeightTable,
)
from hylift.language.text.formatter import shown
from hylift.language.types import constant_or_problem
from hylift.language.walk import atoms, free_variables, is_truth
from hylift.words import counted


def positive_problems(model: Model, expr: Expr, what: str) -> Iterator[Problem]:
    """The problem of arithmetic on constants that must be positive."""
    value = constant_or_problem(model, expr, what)
    if isinstance(value, Problem):
        yield value
    elif value <= 0:
        advice = f": {DETERMINISTIC}" if value == 0 and "variance" in what else ""
        yield error(f"{what} must be positive, not {value:g}{advice}", expr)


def gaussian_problems(model: Model, node: Gaussian) -> Iterator[Problem]:
    for value in node.values:
        if is_truth(model, value):
            message = f"the values of gaussian are real, but '{shown(value)}' is a truth value"
            yield error(message, value)
    size = len(node.values)
    if size == 0:
        yield error("gaussian needs at least one value", node)
        return
    owner = f"gaussian of {counted(size, 'value')}"
    if node.mean and len(node.mean) != size:
        message = f"{owner} needs {counted(size, 'mean')}, not {len(node.mean)}"
        yield Problem("error", message, node.mean[0].place or node.place)
    means = [constant_or_problem(model, entry, "a mean of gaussian") for entry in node.mean]
    yield from (mean for mean in means if isinstance(mean, Problem))
    if len(node.cov) != size or any(len(row) != size for row in node.cov):
        yield error(f"{owner} needs a cov of {counted(size, 'row')} of {size}", node)
    else:
        yield from _cov_problems(model, node)


def _cov_problems(model: Model, node: Gaussian) -> Iterator[Problem]:
    entries = [constant_or_problem(model, e, "an entry of cov") for row in node.cov for e in row]
    wrong = [entry for entry in entries if isinstance(entry, Problem)]
    yield from wrong
    if wrong:
        return
    size = len(node.cov)
    cov = np.array(entries, dtype=float).reshape(size, size)
    unlike = np.argwhere(~np.isclose(cov, cov.T, rtol=1e-9, atol=0))
    if len(unlike):
        i, j = unlike[0]
        message = (
            f"cov of gaussian must be symmetric, but entry ({i + 1}, {j + 1}) is {cov[i, j]:g} "
            f"and entry ({j + 1}, {i + 1}) is {cov[j, i]:g}"
        )
        yield Problem("error", message, node.cov[j][i].place or node.place)
        return
    least, most = np.linalg.eigvalsh(cov)[[0, -1]]
    if least <= size * np.finfo(float).eps * abs(most):
        message = (
            f"cov of gaussian must be positive definite, but its least eigenvalue is {least:.3g}"
        )
        yield Problem("error", message, node.cov[0][0].place or node.place)


def normal_problems(model: Model, node: Normal) -> Iterator[Problem]:
    if is_truth(model, node.value):
        message = f"the value of normal is real, but '{shown(node.value)}' is a truth value"
        yield error(message, node.value)
    if not atoms(node.var):
        yield from positive_problems(model, node.var, "the variance of normal")
    yield from _sign_problems(model, node.var, "the variance of normal")


def _sign_problems(model: Model, parameter: Expr, what: str) -> Iterator[Problem]:
    """The warning about a real that may be negative, but is a positive parameter."""
    if isinstance(parameter, Atom) and not is_truth(model, parameter):
        declared = model.predicate_by_name[parameter.predicate]
        if declared.domain.lower < 0:
            ends = f"real[0, {declared.domain.upper:g}]"
            yield Problem(
                "warning",
                f"{what} is positive, but '{shown(parameter)}' may be negative: declare "
                f"'{declared.name}' as {ends}",
                parameter.place,
                declared.name,
            )


_SUPPORT = {"beta": (0.0, 1.0)}
_SUPPORT |= dict.fromkeys(("exponential", "gamma", "lognormal"), (0.0, math.inf))
"""The least and greatest values of distributions that do not take all numbers."""


def density_problems(model: Model, node: Density) -> Iterator[Problem]:
    wanted, given = DENSITIES[node.name], len(node.parameters)
    if given != len(wanted):
        form = f"{node.name}(value | {', '.join(wanted)})"
        number = counted(len(wanted), "parameter")
        yield error(f"'{node.name}' takes {number}, not {given}: write '{form}'", node)
        return
    is_of_truths = node.name in OF_TRUTHS
    if is_truth(model, node.value) != is_of_truths:
        kinds = ("a truth value", "a number") if is_of_truths else ("a number", "a truth value")
        yield error(
            f"the value of {node.name} is {kinds[0]}, but '{shown(node.value)}' is {kinds[1]}",
            node.value,
        )
    for name, parameter in zip(wanted, node.parameters, strict=True):
        what = f"'{name}' of {node.name}"
        if not atoms(parameter) and name not in ("m", "score"):
            yield from positive_problems(model, parameter, what)
        if name in POSITIVE:
            yield from _sign_problems(model, parameter, what)
        value = constant_or_problem(model, parameter, what) if not atoms(parameter) else None
        if name == "p" and isinstance(value, float) and value > 1:
            yield error(f"{what} is a probability, not {value:g}", parameter)
    yield from _support_problems(model, node)


def _support_problems(model: Model, node: Density) -> Iterator[Problem]:
    """The error about a real that may be where its distribution has no density."""
    if node.name not in _SUPPORT or not isinstance(node.value, Atom):
        return
    lower, upper = _SUPPORT[node.name]
    declared = model.predicate_by_name[node.value.predicate]
    if declared.domain.is_discrete:
        return
    if declared.domain.lower < lower or declared.domain.upper > upper:
        ends = f"real[{lower:g}, {upper:g}]"
        yield error(
            f"'{shown(node.value)}' may be where {node.name} has no density: declare "
            f"'{declared.name}' as {ends}",
            node.value,
        )


def categorical_problems(model: Model, rule: Rule, node: Categorical) -> Iterator[Problem]:
    """The problems of a lookup in a table that the rules alone show."""
    bound = set(free_variables(node)) - set(free_variables(rule.formula))
    for part in node.subjects:
        is_value = part is node.value
        if isinstance(part, Variable) and not is_value:
            if part.name in bound:
                yield error(
                    f"'{part.name}' is bound by a quantifier: the columns of a table are about "
                    "atoms, and about variables of the rule",
                    part,
                )
        elif not isinstance(part, Atom) or not is_truth(model, part):
            kinds = "an atom that is true or false or has states"
            what = "the value" if is_value else "a condition"
            other = "" if is_value else ", or a variable"
            yield error(f"{what} of categorical is {kinds}{other}, not '{shown(part)}'", part)
    if isinstance(node.table, WeightTable):
        yield from _written_table_problems(model, node, node.table)
    elif isinstance(node.table, str) and node.table not in model.table_names:
        close = did_you_mean(node.table, model.table_names)
        yield error(
            f"there is no table '{node.table}': declare it as '{node.table}: table', and give its "
            f"rows as evidence.{close}",
            node,
        )


def _written_table_problems(
    model: Model, node: Categorical, table: WeightTable
) -> Iterator[Problem]:
    if table.default is not None:
        yield error("a table of probabilities has no '*': write all states", table.default)
    places = table.key_places or itertools.repeat(table.place)
    seen = set()
    for (key, value), place in zip(table.entries, places, strict=False):
        if len(key) != len(node.subjects):
            subjects = ", ".join(map(shown, node.subjects))
            message = f"a key of this table has a state of each of ({subjects}), not {len(key)}"
            yield Problem("error", message, place)
        if key in seen:
            yield Problem("error", f"the table has '{', '.join(key)}' twice", place)
        seen.add(key)
        found = constant_or_problem(model, value, "a probability")
        if isinstance(found, Problem):
            yield found
        elif not 0 <= found <= 1:
            yield error(f"a probability is a number from 0 to 1, not {found:g}", value)
