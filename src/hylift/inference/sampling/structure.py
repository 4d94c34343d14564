"""How the reals of a graph hang together, whatever the states."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hylift.errors import IntractableError
from hylift.inference.exact.elimination import connected, eliminate_reals
from hylift.inference.sampling.kernels.arrays import MOST_NEAR, Reals
from hylift.inference.search.kernels.arrays import Terms

MOST_EDGES = 2**26
"""Largest factor of the precision of all reals, in numbers of eight bytes; a chain has three."""


MOST_LINKS = 64
"""Links of the reals next to a discrete variable up to which it takes them along."""


def structure_of(terms: Terms) -> Reals:
    """The components of the reals, with an elimination order that serves for all states."""
    record = terms.variable
    variables = np.flatnonzero(record["num_states"] == 0)
    number = np.full(len(record), -1, dtype=np.int64)
    number[variables] = np.arange(len(variables))
    pairs = number[_pairs(terms)].astype(np.int32)
    elimination = eliminate_reals(len(variables), pairs)
    if len(elimination.later) > MOST_EDGES:
        raise IntractableError(
            f"block draws of these {len(variables):,} reals need a factor of "
            f"{len(elimination.later):,} numbers for each chain, more than {MOST_EDGES:,}: "
            "evidence on some of them would make it smaller"
        )
    step = number.copy()
    step[variables] = elimination.step
    component = connected(len(variables), pairs) if len(variables) else np.zeros(0, np.int32)
    count = int(component.max(initial=-1)) + 1
    of_step = component[elimination.order]
    of_term = np.full(len(terms.term), -1, dtype=np.int64)
    first_real = terms.entry["variable"][terms.term["middle"][terms.num_tables :]]
    of_term[terms.num_tables :] = component[number[first_real]]
    near_ptr, near = _near(terms, step)
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
        near_ptr,
        near,
    )


def _pairs(terms: Terms) -> NDArray[np.int64]:
    """(pair, 2): the variables of each pair of reals that share a term."""
    record = terms.variable
    source = np.repeat(np.arange(len(record)), record["links_end"] - record["links"])
    once = source < terms.link["other"]
    pairs = np.empty((len(terms.link) // 2, 2), dtype=np.int64)
    pairs[terms.link["pair"][once]] = np.stack([source, terms.link["other"]], axis=1)[once]
    return pairs


def _near(terms: Terms, step: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Pointers per variable, and the steps of the reals that share a term with it, for discrete
    variables that have few of them, with few links."""
    record, slots = terms.variable, terms.entry["variable"].astype(np.int64)
    quadratics = terms.term[terms.num_tables :]
    num_discrete = quadratics["middle"] - quadratics["first"]
    num_reals = quadratics["last"] - quadratics["middle"]
    codes = [np.zeros(0, dtype=np.int64)]
    for discrete in range(int(num_discrete.max(initial=0))):
        for real in range(int(num_reals.max(initial=0))):
            some = quadratics[(num_discrete > discrete) & (num_reals > real)]
            variable, near = slots[some["first"] + discrete], slots[some["middle"] + real]
            codes.append(np.unique(variable * len(record) + step[near]))
    variable, near = np.divmod(np.unique(np.concatenate(codes)), max(len(record), 1))
    degree = np.zeros(len(record), dtype=np.int64)
    degree[step >= 0] = (record["links_end"] - record["links"])[step >= 0]
    of_step = np.zeros(len(record), dtype=np.int64)
    of_step[step[step >= 0]] = degree[step >= 0]
    count = np.bincount(variable, minlength=len(record))
    links = np.bincount(variable, of_step[near], minlength=len(record))
    keep = ((count <= MOST_NEAR) & (links <= MOST_LINKS))[variable]
    return _pointers(variable[keep], len(record)), near[keep]


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
