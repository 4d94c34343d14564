"""UAI files: models, evidence and queries in; models and results out."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hylift.errors import FormatError, UnsupportedError
from hylift.files import write_whole
from hylift.formats.tokens import NumberFile, listed
from hylift.graph import (
    Evidence,
    FactorGraph,
    FactorGroup,
    Names,
    Variables,
    categorical,
)
from hylift.potentials import Table

MAX_STATES = 1_000_000
"""Largest number of states of a variable that is taken for real and not for a broken file."""


def read_uai(path: str | Path) -> FactorGraph:
    """A MARKOV or BAYES network; its variables are named x0, x1, …"""
    file = NumberFile(path, ("MARKOV", "BAYES"))
    num_variables = int(file.whole(0, 1, "the number of variables")[0])
    states = file.whole(1, num_variables, "a number of states", low=1, high=MAX_STATES + 1).astype(
        np.int32
    )
    position = 1 + num_variables
    num_factors = int(file.whole(position, 1, "the number of factors")[0])
    scope_at, position = file.lists(position + 1, num_factors, "scope")
    table_at, position = file.lists(position, num_factors, "table")
    file.end(position, f"the tables of {num_factors} factors")
    _check_tables(file, table_at)

    sizes, domain_id = np.unique(states, return_inverse=True)
    domains = tuple(categorical(int(size)) for size in sizes)
    variables = Variables(
        domains, domain_id.astype(np.int32), Names.numbered(num_variables), np.ones(num_variables)
    )
    arity = file.values[scope_at[:-1]].astype(np.int64)
    groups, constant = [], 0.0
    for size in np.unique(arity):
        factors = np.flatnonzero(arity == size)
        if size == 0:
            constant += _constant(file, table_at, factors)
            continue
        scope = _scopes(file, scope_at, factors, num_variables)
        shapes, which = np.unique(states[scope], axis=0, return_inverse=True)
        for place, shape in enumerate(shapes):
            some = np.flatnonzero(which.reshape(-1) == place)
            log_table = _log_tables(file, table_at, factors[some], shape)
            groups.append(FactorGroup(Table(log_table), scope[some]))
    return FactorGraph(variables, tuple(groups), log_constant=constant)


def read_evidence(path: str | Path, num_states: NDArray[np.int32]) -> Evidence:
    """Observed states, in either dialect: `k v x v x …`, or with a leading sample count of 1."""
    file = NumberFile(path)
    if len(file) == 0:
        return Evidence.none()
    values, start = file.values, 0
    if len(values) % 2 == 0:
        if values[0] != 1:
            file.fail(
                0,
                f"expected the number of observations, or one sample of them; "
                f"found {len(values)} numbers that begin with {values[0]:g}",
            )
        start = 1
    count = int(file.whole(start, 1, "the number of observations")[0])
    pairs = file.whole(start + 1, 2 * count, "an observation").reshape(-1, 2)
    file.end(start + 1 + 2 * count, f"{count} observations")
    variable = _below(file, start + 1, pairs[:, 0], len(num_states), "variable")
    for number in np.flatnonzero(pairs[:, 1] >= num_states[variable])[:1]:
        file.fail(
            start + 2 + 2 * int(number),
            f"x{variable[number]} has states 0 to {num_states[variable[number]] - 1}, "
            f"not {pairs[number, 1]}",
        )
    ids, repeats = np.unique(variable, return_counts=True)
    if (repeats > 1).any():
        twice = int(np.argmax(repeats > 1))
        later = int(np.flatnonzero(variable == ids[twice])[1])
        file.fail(start + 1 + 2 * later, f"x{ids[twice]} is observed more than once")
    return Evidence.of(variable.astype(np.int32), pairs[:, 1].astype(np.float64))


def read_query(path: str | Path, num_variables: int) -> NDArray[np.int64]:
    """The queried variables: `k v …`."""
    file = NumberFile(path)
    count = int(file.whole(0, 1, "the number of queried variables")[0])
    queried = file.whole(1, count, "a queried variable", high=num_variables)
    file.end(1 + count, f"{count} queried variables")
    return queried


def write_uai(graph: FactorGraph, path: str | Path) -> None:
    """A discrete graph as a MARKOV network, its evidence absorbed."""
    graph = graph.condition()
    if (graph.variables.num_states == 0).any():
        real = int(np.argmax(graph.variables.num_states == 0))
        raise UnsupportedError(
            f"a UAI file holds discrete variables only; '{graph.variables.names[real]}' is real"
        )
    if (graph.variables.multiplicity != 1).any():
        raise UnsupportedError("a UAI file holds ground graphs only; this one is lifted")
    scopes: list[str] = []
    tables: list[str] = []
    for group in graph.groups:
        values = _values_of(group)
        scopes.extend(f"{group.arity} {' '.join(map(str, s))}" for s in group.scope.tolist())
        tables.extend(f"{values.shape[1]}\n {_numbers(table)}" for table in values)
    if graph.log_constant:
        scopes.append("0")
        tables.append(f"1\n {_numbers(np.exp([graph.log_constant]))}")
    cards = " ".join(map(str, graph.variables.num_states.tolist()))
    head = f"MARKOV\n{graph.num_variables}\n{cards}\n{len(scopes)}"
    text = "\n".join([head, *scopes, "", *tables, ""])
    write_whole(path, lambda stream: stream.write(text.encode()))


def write_marginals(probs: Sequence[NDArray[np.float64]], path: str | Path) -> None:
    """A MAR file: the probabilities of the states of every variable, in order."""
    words = [str(len(probs)), *(f"{len(row)} {_numbers(row)}" for row in probs)]
    _write_result("MAR", " ".join(words), path)


def write_log_partition(log_partition: float, path: str | Path) -> None:
    """A PR file: log10 of the partition function."""
    _write_result("PR", repr(log_partition / np.log(10.0)), path)


def write_assignment(states: NDArray[Any], path: str | Path) -> None:
    """An MPE file: the state of every variable, in order."""
    words = [str(len(states)), *(str(int(state)) for state in states)]
    _write_result("MPE", " ".join(words), path)


def read_marginals(path: str | Path) -> list[NDArray[np.float64]]:
    """The probabilities in a MAR file."""
    file = NumberFile(path, ("MAR",))
    count = int(file.whole(0, 1, "the number of variables")[0])
    at, position = file.lists(1, count, "marginal")
    file.end(position, f"{count} marginals")
    return [file.values[a + 1 : b] for a, b in pairwise(at.tolist())]


def _write_result(kind: str, line: str, path: str | Path) -> None:
    write_whole(path, lambda stream: stream.write(f"{kind}\n{line}\n".encode()))


def _numbers(values: NDArray[np.float64]) -> str:
    return " ".join(map(repr, np.asarray(values, dtype=np.float64).tolist()))


def _values_of(group: FactorGroup) -> NDArray[np.float64]:
    """(factor, joint state): what each factor multiplies, its multiplicity included."""
    if not isinstance(group.potential, Table):
        raise UnsupportedError(
            f"{group.named()} has a potential that is not a table, which a UAI file cannot hold"
        )
    rows = group.potential.log_table.reshape(group.potential.num_rows, -1)[group.row]
    values: NDArray[np.float64] = np.exp(group.multiplicity[:, None] * rows)
    return values


def _below(
    file: NumberFile, start: int, values: NDArray[np.int64], limit: int, what: str
) -> NDArray[np.int64]:
    """Checks every second number from `start` on against the number of variables."""
    wrong = values >= limit
    if wrong.any():
        at = int(np.argmax(wrong))
        file.fail(start + 2 * at, f"{what} {values[at]} does not exist: there are {limit}")
    return values


def _check_tables(file: NumberFile, table_at: NDArray[np.int64]) -> None:
    if len(table_at) < 2:
        return
    inside = np.arange(table_at[0], table_at[-1])
    values = file.values[inside]
    is_length = np.isin(inside, table_at)
    wrong = ~is_length & ~((values >= 0) & np.isfinite(values))
    if wrong.any():
        at = int(np.argmax(wrong))
        file.fail(
            int(inside[at]), f"a table's entries must be finite and not negative: {values[at]:g}"
        )


def _constant(file: NumberFile, at: NDArray[np.int64], factors: NDArray[np.int64]) -> float:
    for factor in factors:
        if file.values[at[factor]] != 1:
            file.fail(
                int(at[factor]), f"factor {factor} has no variables, so its table has 1 entry"
            )
    with np.errstate(divide="ignore"):
        total = float(np.log(listed(file, at, factors)).sum())
    if total == -np.inf:
        raise FormatError(file.path, "a factor without variables is 0: nothing is possible")
    return total


def _scopes(
    file: NumberFile, at: NDArray[np.int64], factors: NDArray[np.int64], num_variables: int
) -> NDArray[np.int32]:
    scope = listed(file, at, factors)
    wrong = ~((scope == np.floor(scope)) & (scope >= 0) & (scope < num_variables))
    if wrong.any():
        factor, slot = np.argwhere(wrong)[0]
        file.fail(
            int(at[factors[factor]]) + 1 + int(slot),
            f"the scope of factor {factors[factor]} names variable {scope[factor, slot]:g}; "
            f"there are {num_variables} (0 to {num_variables - 1})",
        )
    ordered = np.sort(scope, axis=1)
    twice = (ordered[:, 1:] == ordered[:, :-1]).any(axis=1)
    if twice.any():
        factor = int(factors[np.argmax(twice)])
        file.fail(int(at[factor]), f"the scope of factor {factor} names a variable twice")
    return scope.astype(np.int32)


def _log_tables(
    file: NumberFile, at: NDArray[np.int64], factors: NDArray[np.int64], shape: NDArray[np.int32]
) -> NDArray[np.float64]:
    """(factor, states...): the tables of factors whose variables have these numbers of states."""
    size = float(np.prod(shape.astype(np.float64)))
    wrong = file.values[at[factors]] != size
    if wrong.any():
        factor = int(factors[np.argmax(wrong)])
        file.fail(
            int(at[factor]),
            f"the table of factor {factor} has {file.values[at[factor]]:g} entries; "
            f"its variables have {' x '.join(map(str, shape.tolist()))} = {size:g} joint states",
        )
    with np.errstate(divide="ignore"):
        return np.log(listed(file, at, factors)).reshape(len(factors), *shape)
