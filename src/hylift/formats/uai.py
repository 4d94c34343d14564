"""UAI files: models, evidence and queries in; models and results out."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hylift.errors import UnsupportedError
from hylift.files import write_whole
from hylift.formats.tokens import NumberFile
from hylift.graph import Evidence, FactorGraph, FactorGroup, Names, Variables, categorical
from hylift.graph.domains import MAX_STATES
from hylift.potentials import Table
from hylift.rewrite.kinds import tabulated
from hylift.words import counted

MAX_DISTINCT_STATES = 2 * MAX_STATES
MAX_TOTAL_STATES = 100 * MAX_STATES
"""Most states, summed over distinct domains and over all variables; more mean a broken file."""

MAX_ARITY = 60
"""Longest scope: tables are arrays, which have at most 64 axes."""

MAX_LOG = 700.0
"""Largest magnitude of a log-value whose number a file can hold."""

MAX_COPIES = 1000
"""Most factors that are written for one whose values overflow."""


def read_uai(path: str | Path) -> FactorGraph:
    """A MARKOV or BAYES network; its variables are named x0, x1, …"""
    file = NumberFile(path, ("MARKOV", "BAYES"))
    num_variables = int(file.whole(0, 1, "the number of variables")[0])
    states = file.whole(1, num_variables, "a number of states", low=1, high=MAX_STATES + 1)
    sizes, domain_id = np.unique(states, return_inverse=True)
    _check_states(file, states, sizes)
    position = 1 + num_variables
    num_factors = int(file.whole(position, 1, "the number of factors")[0])
    scope_at, position = file.lists(position + 1, num_factors, "scope")
    scopes = _scopes(file, scope_at, num_variables)
    table_at = _table_positions(file, position, scope_at, scopes, states)
    _check_entries(file, table_at)

    groups = []
    for factors, scope in scopes:
        if not scope.shape[1]:
            continue
        shapes, which = np.unique(states[scope], axis=0, return_inverse=True)
        for place, shape in enumerate(shapes):
            some = np.flatnonzero(which.reshape(-1) == place)
            with np.errstate(divide="ignore"):
                log_table = np.log(file.items(table_at[factors[some]]))
            table = Table(log_table.reshape(-1, *shape))
            groups.append(FactorGroup(table, scope[some], label=file.path.name))
    domains = tuple(categorical(int(size)) for size in sizes)
    variables = Variables(
        domains, domain_id.astype(np.int32), Names.numbered(num_variables), np.ones(num_variables)
    )
    constant = _constant(file, scope_at, table_at)
    return FactorGraph(variables, tuple(groups), log_constant=constant)


def read_evidence(path: str | Path, num_states: NDArray[np.int32]) -> Evidence:
    """Observed states, in either dialect: `k v x v x …`, or with a leading sample count of 1."""
    file = NumberFile(path)
    if len(file) == 0:
        return Evidence.none()
    start = int(len(file) % 2 == 0 and file.values[0] == 1)
    count = int(file.whole(start, 1, "the number of observations")[0])
    follow = len(file) - start - 1
    if follow != 2 * count:
        sample = "after a sample count of 1, " if start else ""
        file.fail(
            start,
            f"{sample}the number of observations is {count}, so {2 * count} numbers (a variable "
            f"and its state, each time) should follow, not {follow}",
        )
    pairs = file.whole(start + 1, 2 * count, "a variable or state").reshape(-1, 2)
    variable, state = pairs[:, 0], pairs[:, 1]
    _check_variables(file, start + 1 + 2 * np.arange(count), variable, len(num_states))
    for at in np.flatnonzero(state >= num_states[variable])[:1].tolist():
        file.fail(
            start + 2 + 2 * at,
            f"x{variable[at]} has the states 0 to {num_states[variable[at]] - 1}, not {state[at]}",
        )
    first = np.unique(variable, return_index=True)[1]
    for at in np.setdiff1d(np.arange(count), first)[:1].tolist():
        file.fail(start + 1 + 2 * at, f"x{variable[at]} is observed more than once")
    return Evidence.of(variable.astype(np.int32), state.astype(np.float64))


def read_query(path: str | Path, num_variables: int) -> NDArray[np.int64]:
    """The queried variables: `k v …`."""
    file = NumberFile(path)
    count = int(file.whole(0, 1, "the number of queried variables")[0])
    queried = file.whole(1, count, "a queried variable")
    file.end(1 + count, counted(count, "queried variable"))
    _check_variables(file, 1 + np.arange(count), queried, num_variables)
    return queried


def write_uai(graph: FactorGraph, path: str | Path) -> None:
    """A discrete graph as a MARKOV network, its evidence absorbed."""
    graph = graph.condition()
    if (graph.variables.num_states == 0).any():
        real = int(np.argmax(graph.variables.num_states == 0))
        raise UnsupportedError(
            f"a UAI file holds discrete variables only; '{graph.variables.names[real]}' is real"
        )
    if not graph.is_ground:
        raise UnsupportedError("a UAI file holds ground graphs only; this one is lifted")
    scopes: list[str] = []
    tables: list[str] = []
    for group in graph.groups:
        for table in tabulated(group, graph.variables.num_states):
            _add_factors(scopes, tables, table.scope, _log_values(table))
    if graph.log_constant:
        nothing = np.zeros((1, 0), dtype=np.int32)
        _add_factors(scopes, tables, nothing, np.array([[graph.log_constant]]))
    cards = " ".join(map(str, graph.variables.num_states.tolist()))
    head = f"MARKOV\n{graph.num_variables}\n{cards}\n{len(scopes)}"
    text = "\n".join([head, *scopes, "", *tables, ""])
    write_whole(path, lambda stream: stream.write(text.encode()))


def write_marginals(probs: Sequence[NDArray[np.float64]], path: str | Path) -> None:
    """A MAR file: the probabilities of the states of every variable, in order."""
    rows = (f"{len(row)} {' '.join(map(repr, np.asarray(row, float).tolist()))}" for row in probs)
    _write_result("MAR", " ".join([str(len(probs)), *rows]), path)


def write_log_partition(log_partition: float, path: str | Path) -> None:
    """A PR file: log10 of the partition function."""
    _write_result("PR", repr(float(log_partition / np.log(10.0))), path)


def write_assignment(states: NDArray[Any], path: str | Path) -> None:
    """An MPE file: the state of every variable, in order."""
    words = [str(len(states)), *(str(int(state)) for state in states)]
    _write_result("MPE", " ".join(words), path)


def read_marginals(path: str | Path) -> list[NDArray[np.float64]]:
    """The probabilities in a MAR file."""
    file = NumberFile(path, ("MAR",))
    count = int(file.whole(0, 1, "the number of variables")[0])
    at, position = file.lists(1, count, "marginal")
    file.end(position, counted(count, "marginal"))
    return [file.values[a + 1 : b] for a, b in pairwise(at.tolist())]


def _write_result(kind: str, line: str, path: str | Path) -> None:
    write_whole(path, lambda stream: stream.write(f"{kind}\n{line}\n".encode()))


def _log_values(group: FactorGroup) -> NDArray[np.float64]:
    """(factor, joint state): log of what each factor multiplies, its multiplicity included."""
    form = group.potential.quadratic()
    if form is None:
        raise UnsupportedError(
            f"{group.named()} has too many joint states for a table, as a UAI file needs it"
        )
    return np.asarray(group.multiplicity[:, None] * form.c[group.row])


def _add_factors(
    scopes: list[str],
    tables: list[str],
    scope: NDArray[np.int32],
    log_values: NDArray[np.float64],
) -> None:
    """Append a line to `scopes` and lines to `tables` for each factor.

    A factor whose values overflow becomes the product of several. scope: (factor, slot);
    log_values: (factor, joint state).
    """
    finite = np.where(np.isfinite(log_values), log_values, 0.0)
    copies = np.maximum(1.0, np.ceil(np.abs(finite).max(axis=1, initial=0.0) / MAX_LOG))
    if copies.max(initial=0.0) > MAX_COPIES:
        raise UnsupportedError(
            "a UAI file cannot hold a factor whose log-values are as large as "
            f"{np.abs(finite).max():.3g}"
        )
    values = np.exp(log_values / copies[:, None])
    for variables, table, times in zip(
        scope.tolist(), values.tolist(), copies.astype(np.int64).tolist(), strict=True
    ):
        scopes += [" ".join(map(str, [len(variables), *variables]))] * times
        tables += [f"{len(table)}\n {' '.join(map(repr, table))}"] * times


def _check_variables(
    file: NumberFile, at: NDArray[np.int64], variables: NDArray[np.int64], num_variables: int
) -> None:
    """Raise if one of the variables at these positions does not exist."""
    for wrong in np.flatnonzero(variables >= num_variables)[:1].tolist():
        file.fail(
            int(at[wrong]),
            f"there is no variable {variables[wrong]}: the model has {_range(num_variables)}",
        )


def _range(num_variables: int) -> str:
    return f"{num_variables} (0 to {num_variables - 1})" if num_variables else "none"


def _check_states(file: NumberFile, states: NDArray[np.int64], sizes: NDArray[np.int64]) -> None:
    """Raise where small variables would make a huge model; sizes: the distinct `states`."""
    total, distinct = int(states.sum()), int(sizes.sum())
    if total > MAX_TOTAL_STATES or distinct > MAX_DISTINCT_STATES:
        file.fail(
            0,
            f"the variables have {total} states together, in domains of {distinct} states; "
            f"at most {MAX_TOTAL_STATES} and {MAX_DISTINCT_STATES} are supported",
        )


def _scopes(
    file: NumberFile, at: NDArray[np.int64], num_variables: int
) -> list[tuple[NDArray[np.int64], NDArray[np.int32]]]:
    """Per arity, shortest first: the factors, and their scopes (factor, slot)."""
    arity = np.diff(at) - 1
    by_arity = (np.flatnonzero(arity == size) for size in np.unique(arity))
    return [(factors, _checked_scope(file, at, factors, num_variables)) for factors in by_arity]


def _checked_scope(
    file: NumberFile, at: NDArray[np.int64], factors: NDArray[np.int64], num_variables: int
) -> NDArray[np.int32]:
    scope = file.items(at[factors])
    wrong = ~((scope == np.floor(scope)) & (scope >= 0) & (scope < num_variables))
    if wrong.any():
        row, slot = np.argwhere(wrong)[0].tolist()
        where = int(at[factors[row]]) + 1 + slot
        file.fail(
            where,
            f"the scope of factor {factors[row]} names variable {file.quoted(where)}; "
            f"the model has {_range(num_variables)}",
        )
    ordered = np.sort(scope, axis=1)
    twice = (ordered[:, 1:] == ordered[:, :-1]).any(axis=1)
    for factor in factors[twice][:1].tolist():
        file.fail(int(at[factor]), f"the scope of factor {factor} names a variable twice")
    if scope.shape[1] > MAX_ARITY:
        file.fail(
            int(at[factors[0]]),
            f"factor {factors[0]} has {scope.shape[1]} variables; at most {MAX_ARITY} are "
            "supported",
        )
    return scope.astype(np.int32)


def _table_positions(
    file: NumberFile,
    start: int,
    scope_at: NDArray[np.int64],
    scopes: list[tuple[NDArray[np.int64], NDArray[np.int32]]],
    states: NDArray[np.int64],
) -> NDArray[np.int64]:
    """(factor + 1,): where the size of each table stands, and where the file ends."""
    size = np.ones(len(scope_at) - 1)
    with np.errstate(over="ignore"):
        for factors, scope in scopes:
            size[factors] = states[scope].prod(axis=1, dtype=np.float64)
    # Sizes may be absurd, so positions stay floats until they are known to be in the file.
    at = start + np.concatenate([[0.0], np.cumsum(size + 1)])
    found = file.values[np.minimum(at[:-1], len(file) - 1).astype(np.int64)]
    for factor in np.flatnonzero((at[1:] > len(file)) | (found != size))[:1].tolist():
        whose = f"the table of factor {factor}"
        if at[factor] >= len(file):
            file.fail_at_end(f"the file ends where {whose} should follow")
        where = int(at[factor])
        if found[factor] != size[factor]:
            scope = file.values[scope_at[factor] + 1 : scope_at[factor + 1]].astype(np.int64)
            product = " x ".join(map(str, states[scope].tolist())) + " = "
            file.fail(
                where,
                f"{whose} should have the size {product if len(scope) > 1 else ''}"
                f"{size[factor]:.15g}, not {file.quoted(where)}",
            )
        file.fail_at_end(
            f"the file ends within {whose}, after {len(file) - where - 1} of its "
            f"{size[factor]:.15g} entries"
        )
    file.end(int(at[-1]), f"the tables of {counted(len(size), 'factor')}")
    return at.astype(np.int64)


def _check_entries(file: NumberFile, table_at: NDArray[np.int64]) -> None:
    entries = file.values[table_at[0] :].copy()
    entries[table_at[:-1] - table_at[0]] = 0  # the sizes
    wrong = ~((entries >= 0) & np.isfinite(entries))
    if wrong.any():
        at = int(table_at[0]) + int(np.argmax(wrong))
        file.fail(at, f"an entry of a table must be finite and not negative, not {file.quoted(at)}")


def _constant(file: NumberFile, scope_at: NDArray[np.int64], table_at: NDArray[np.int64]) -> float:
    """Summed log-value of the factors without variables."""
    at = table_at[:-1][np.diff(scope_at) == 1] + 1
    values = file.values[at]
    for zero in at[values == 0][:1].tolist():
        file.fail(zero, "a factor without variables is 0, so that nothing is possible")
    return float(np.log(values).sum())
