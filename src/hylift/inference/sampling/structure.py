"""How the reals of a graph hang together, whatever the states."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hylift.errors import IntractableError
from hylift.inference.exact.elimination import connected, eliminate_reals
from hylift.inference.sampling.kernels.arrays import MOST_NEAR, Groups, Reals
from hylift.inference.search.kernels.arrays import Terms
from hylift.words import counted

IntArray = NDArray[np.int64]

MOST_NUMBERS = 2**28
"""Of eight bytes, for the precisions of all reals and their factors, of all chains together."""

PER_EDGE = 3
"""Numbers that a chain keeps for each edge: the precision, its factor, its inverse."""

MOST_TERMS = 256
"""Quadratics of the reals next to discrete variables up to which these take them along."""


def structure_of(terms: Terms, num_chains: int) -> Reals:
    """The components of the reals, with an elimination order that serves for all states."""
    record = terms.variable
    variables = np.flatnonzero(record["num_states"] == 0)
    number = np.full(len(record), -1, dtype=np.int64)
    number[variables] = np.arange(len(variables))
    pairs = number[_pairs(terms)].astype(np.int32)
    elimination = eliminate_reals(len(variables), pairs)
    numbers = PER_EDGE * len(elimination.later) * num_chains
    if numbers > MOST_NUMBERS:
        raise IntractableError(
            f"block draws of these {len(variables):,} reals need {numbers:,} numbers for "
            f"{counted(num_chains, 'chain')}, more than {MOST_NUMBERS:,}: fewer chains, or "
            "evidence on some of the reals, would make it less"
        )
    step = number.copy()
    step[variables] = elimination.step
    component = connected(len(variables), pairs) if len(variables) else np.zeros(0, np.int32)
    count = int(component.max(initial=-1)) + 1
    of_step = component[elimination.order]
    of_term = np.full(len(terms.term), -1, dtype=np.int64)
    first_real = terms.entry["variable"][terms.term["middle"][terms.num_tables :]]
    of_quadratic = component[number[first_real]]
    of_term[terms.num_tables :] = of_quadratic
    has_states = terms.term["num_joint"][terms.num_tables :] > 1
    has_bound = np.isfinite(record["lower"][variables]) | np.isfinite(record["upper"][variables])
    return Reals(
        variables[elimination.order],
        step,
        elimination.ptr,
        elimination.later,
        np.arange(len(variables) + 1),
        _edges_of(pairs, elimination.step, elimination.ptr, elimination.later),
        _pointers(of_step, count),
        np.argsort(of_step, kind="stable"),
        _pointers(of_term[terms.num_tables :], count),
        terms.num_tables + np.argsort(of_term[terms.num_tables :], kind="stable"),
        of_term,
        (np.bincount(component, has_bound, count) > 0).astype(np.uint8),
        (np.bincount(of_quadratic, has_states, count) > 0).astype(np.uint8),
    )


def groups_of(terms: Terms, reals: Reals, tied: IntArray) -> Groups:
    """Groups that are tied, and variables that take reals along by themselves.

    tied: (variable,), its group of two or more, or -1.
    """
    is_discrete = terms.variable["num_states"] > 0
    num_tied = int(tied.max(initial=-1)) + 1
    alone = np.flatnonzero(is_discrete & (tied < 0))
    group = tied.copy()
    group[alone] = num_tied + np.arange(len(alone))
    num_groups = num_tied + len(alone)
    of_group, near = _near(terms, group, num_groups)
    # Of variables by themselves, only those are drawn here that take a real along.
    is_kept = np.arange(num_groups) < num_tied
    is_kept[of_group] = True
    number = np.cumsum(is_kept) - 1
    members = np.flatnonzero(is_discrete)
    members = members[is_kept[group[members]]]
    owner = number[group[members]]
    order = np.argsort(owner, kind="stable")
    members, owner, count = members[order], owner[order], int(is_kept.sum())
    num_joint = np.ones(count, dtype=np.int64)
    np.multiply.at(num_joint, owner, terms.variable["num_states"][members])
    record = terms.variable
    table_owner, table = _distinct_terms(
        terms, owner, record["first"][members], record["split"][members]
    )
    quadratic_owner, quadratic = _distinct_terms(
        terms, owner, record["split"][members], record["last"][members]
    )
    return Groups(
        _pointers(owner, count),
        members,
        num_joint,
        _pointers(table_owner, count),
        table,
        _pointers(quadratic_owner, count),
        quadratic,
        _pointers(number[of_group], count),
        near,
    )


def _distinct_terms(
    terms: Terms, owner: IntArray, first: IntArray, last: IntArray
) -> tuple[IntArray, IntArray]:
    """Owners and their terms, each once and sorted; of incidences from first to last."""
    size = last - first
    at = np.arange(size.sum()) + np.repeat(first - np.cumsum(size) + size, size)
    num_terms = max(len(terms.term), 1)
    code = np.repeat(owner, size) * num_terms + terms.incidence["term"][at]
    found, term = np.divmod(np.unique(code), num_terms)
    return found, term


def _pairs(terms: Terms) -> NDArray[np.int64]:
    """(pair, 2): the variables of each pair of reals that share a term."""
    record = terms.variable
    source = np.repeat(np.arange(len(record)), record["links_end"] - record["links"])
    once = source < terms.link["other"]
    pairs = np.empty((len(terms.link) // 2, 2), dtype=np.int64)
    pairs[terms.link["pair"][once]] = np.stack([source, terms.link["other"]], axis=1)[once]
    return pairs


def _near(terms: Terms, group: IntArray, num_groups: int) -> tuple[IntArray, IntArray]:
    """Groups, and the reals that share a term with them, for those that have few of
    them, in few terms. group: (variable,)."""
    record, slots = terms.variable, terms.entry["variable"].astype(np.int64)
    quadratics = terms.term[terms.num_tables :]
    num_discrete = quadratics["middle"] - quadratics["first"]
    num_reals = quadratics["last"] - quadratics["middle"]
    codes = [np.zeros(0, dtype=np.int64)]
    for discrete in range(int(num_discrete.max(initial=0))):
        for real in range(int(num_reals.max(initial=0))):
            some = quadratics[(num_discrete > discrete) & (num_reals > real)]
            variable, near = slots[some["first"] + discrete], slots[some["middle"] + real]
            codes.append(np.unique(group[variable] * len(record) + near))
    found, near = np.divmod(np.unique(np.concatenate(codes)), max(len(record), 1))
    count = np.bincount(found, minlength=num_groups)
    degree = record["last"] - record["split"]
    num_terms = np.bincount(found, degree[near], minlength=num_groups)
    keep = ((count <= MOST_NEAR) & (num_terms <= MOST_TERMS))[found]
    return found[keep], near[keep]


def _edges_of(
    pairs: NDArray[np.int32],
    step: NDArray[np.int32],
    ptr: NDArray[np.int64],
    later: NDArray[np.int32],
) -> NDArray[np.int64]:
    """(pair,): its place among the edges, which are sorted by their steps."""
    size = len(step)
    low, high = np.sort(step[pairs].astype(np.int64), axis=1).T
    owner = np.repeat(np.arange(size, dtype=np.int64), np.diff(ptr))
    return np.searchsorted(owner * size + later, low * size + high).astype(np.int64)


def _pointers(owner: NDArray[np.integer], count: int) -> NDArray[np.int64]:
    """(owner + 1,): where the things of each begin, were they sorted by owner."""
    return np.concatenate([[0], np.cumsum(np.bincount(owner, minlength=count))]).astype(np.int64)
