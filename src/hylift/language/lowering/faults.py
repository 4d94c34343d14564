"""Errors about potentials that formulas cannot have."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hylift.errors import ModelError
from hylift.language.lowering.evaluate import QuadraticPolynomial, Value, evaluate
from hylift.language.syntax import DENSITIES, Density, Expr, Normal, Parameter
from hylift.language.text.formatter import shown
from hylift.language.walk import nodes
from hylift.potentials.base import FloatArray
from hylift.words import worded

MAX_QUOTED = 200
"""Maximum number of characters of a formula in an error."""

DETERMINISTIC = "a variance of 0, a deterministic relation, is no density; use a small one"

MAX_ENTRIES = 2**22
"""Maximum number of entries per row of a table or quadratic."""

MAX_NUMBERS = 2**26
"""Maximum number of entries of all rows together."""


def check_size(
    formula: Expr,
    num_rows: int,
    entries: int,
    num_variables: int,
    rule: str,
    remedy: Callable[[], str] | None,
) -> None:
    """Raise if a potential would have too many entries.

    rule, remedy: what to call the formula, and what to do about it, if that is known.
    """
    if entries <= MAX_ENTRIES and num_rows * entries <= MAX_NUMBERS:
        return
    what = f"the rule '{rule}'" if rule else quoted(formula)
    if entries > MAX_ENTRIES:
        raise ModelError(
            f"{what} is a potential of {_count(entries)} numbers over {num_variables:,} variables, "
            f"more than the maximum of {MAX_ENTRIES:,}",
            worded(remedy() if remedy else "split it into smaller formulas"),
        )
    raise ModelError(
        f"{what} is {num_rows:,} potentials of {entries:,} numbers each, more than the "
        f"{MAX_NUMBERS:,} numbers that are possible in all: restrict its groundings with "
        "constants or 'where', or list fewer constants"
    )


def quoted(formula: Expr) -> str:
    """The formula as errors name it."""
    text = shown(formula)
    return f"the formula '{text if len(text) <= MAX_QUOTED else f'{text[:MAX_QUOTED]}…'}'"


def check_constant(
    formula: Expr, constant: FloatArray | None, leaves: Mapping[Expr, Value]
) -> None:
    """Raise if the formula is NaN or inf where it does not depend on reals.

    leaves: the values of its atoms, tests and constants, which broadcast together.
    """
    if constant is None:
        return
    bad = np.isnan(constant) | (constant == np.inf)
    if not bad.any():
        return
    arrays = {n: np.asarray(v) for n, v in leaves.items() if not isinstance(v, QuadraticPolynomial)}
    dims = max([bad.ndim, *(array.ndim for array in arrays.values())])
    full = np.broadcast_to(bad, np.broadcast_shapes(bad.shape, (1,) * dims))
    at = tuple(np.argwhere(full)[0])
    here = {node: _at(array, at) for node, array in arrays.items()}
    varied = (n for n, array in arrays.items() if array.ndim and not isinstance(n, Parameter))
    words = [_held(n, here[n]) for n in varied if not any(np.greater(arrays[n].shape, full.shape))]
    where = f" where {' and '.join(words)}" if words else ""
    for fault, advice in _impossible_parameters(formula, here):
        raise ModelError(f"{fault}{where}: {advice}")
    value = np.broadcast_to(constant, full.shape)[at]
    raise ModelError(
        f"{quoted(formula)} is {value}{where}; a log-potential is a number, or -inf for what is "
        "impossible"
    )


def _impossible_parameters(
    formula: Expr, here: Mapping[Expr, NDArray[Any]]
) -> list[tuple[str, str]]:
    """The parameters of densities that are impossible at a point, and what to do about each."""
    found = []
    for node in nodes(formula):
        parameters: list[tuple[str, Expr]] = []
        if isinstance(node, Normal):
            parameters = [("the variance", node.var)]
        elif isinstance(node, Density):
            names = [f"'{name}'" for name in DENSITIES[node.name]]
            parameters = list(zip(names, node.parameters, strict=True))
        for name, parameter in parameters:
            try:
                value = evaluate(parameter, here.__getitem__)
            except KeyError:  # it depends on a real that is not known here
                continue
            number = float(np.asarray(value))
            may_be_0 = isinstance(node, Density) and node.name == "poisson"
            if not (may_be_0 and number == 0) and (advice := _advice(name, number)):
                found.append((f"{name} in '{shown(node)}' is {number:g}", advice))
    return found


def _advice(name: str, value: float) -> str:
    """The remedy for a parameter of this value; empty where it is possible."""
    if name == "'p'" and not 0 <= value <= 1:
        return "a probability is between 0 and 1"
    if name in ("'p'", "'m'", "'score'") or value > 0:
        return ""
    if name == "the variance" and value == 0:
        return DETERMINISTIC
    if value == 0:
        return "it must be positive"
    return "it must be positive, so give the reals in it bounds, as in 'noise: real[0, inf]'"


def _at(array: NDArray[Any], at: tuple[np.intp, ...]) -> NDArray[Any]:
    """The value at a point of the grid; an axis of length 1 stands for all of its positions."""
    point = (i if size > 1 else 0 for i, size in zip(at, array.shape, strict=False))
    return np.asarray(array[tuple(point)])


def _held(node: Expr, value: NDArray[Any]) -> str:
    """`In(p, t) is true`, `x(p) is 0.5`."""
    if value.dtype != np.bool_:
        return f"{shown(node)} is {value:g}"
    return f"{shown(node)} is {'true' if value else 'false'}"


def _count(number: int) -> str:
    """The number, or its order of magnitude if it is too long to read."""
    return f"{number:,}" if number < 10**15 else f"about 10^{math.log10(number):.0f}"
