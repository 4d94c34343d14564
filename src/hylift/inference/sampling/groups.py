"""Groups of discrete variables that are drawn together, with the few reals next to them."""

from __future__ import annotations

from itertools import permutations

import numpy as np
from numpy.typing import NDArray

from hylift.inference.local.terms import LocalTerms
from hylift.inference.sampling.state import MOST_JOINT, MOST_NEAR, RealBlocks, StateGroups
from hylift.inference.sampling.structure import pointers
from hylift.numerics.segments import counts_up, offsets, ranges

IntArray = NDArray[np.int64]
Members = tuple[IntArray, IntArray]
"""Groups and their variables, a pair for each membership; groups count from 0, in order."""

MOST_TERMS = 256
"""Quadratics of the reals next to discrete variables up to which these take them along."""

MOST_WORK, MORE_WORK = 1 << 16, 4
"""Of drawing all neighbours together: so much, or so many times that of a plain sweep."""

LINKS = 2
"""Steps along links of reals to those that a group takes along."""

SEED = 0
"""Of the choice of neighbours, which is the same in all runs."""


def state_groups(terms: LocalTerms, blocks: RealBlocks, tied: IntArray) -> StateGroups:
    """Groups that are tied, neighbours, and variables that take reals along by themselves.

    tied: (variable,), its group of two or more, or -1.
    """
    is_drawn = (terms.variable["num_states"] > 0) & (terms.variable["movable"] == 1)
    alone = np.flatnonzero(is_drawn & (tied < 0))
    held = np.flatnonzero(tied >= 0)
    held = held[np.argsort(tied[held], kind="stable")]
    ties, single = (tied[held], held), (np.arange(len(alone)), alone)
    owner, variable = _joined([ties, _neighbours(terms, blocks), single])
    of_group, near = _near(terms, owner, variable)
    # Of variables by themselves, only those are drawn here that take a real along.
    is_kept = np.bincount(owner) > 1
    is_kept[of_group] = True
    number = np.cumsum(is_kept) - 1
    some = is_kept[owner]
    owner, variable, count = number[owner[some]], variable[some], int(is_kept.sum())
    num_joint = np.ones(count, dtype=np.int64)
    np.multiply.at(num_joint, owner, terms.variable["num_states"][variable])
    record = terms.variable[variable]
    table_owner, table = _distinct_terms(terms, owner, record["first"], record["split"])
    quadratic_owner, quadratic = _distinct_terms(terms, owner, record["split"], record["last"])
    return StateGroups(
        pointers(owner, count),
        variable,
        num_joint,
        pointers(table_owner, count),
        table,
        pointers(quadratic_owner, count),
        quadratic,
        pointers(number[of_group], count),
        near,
    )


def _joined(parts: list[Members]) -> Members:
    """The groups of all parts, one after the other."""
    first = offsets(np.array([int(owner.max(initial=-1)) + 1 for owner, _ in parts]))
    owner = np.concatenate([part[0] + start for part, start in zip(parts, first[:-1], strict=True)])
    return owner, np.concatenate([variable for _, variable in parts])


def _neighbours(terms: LocalTerms, blocks: RealBlocks) -> Members:
    """Neighbours of each real and those close to it, and of each discrete variable: as many
    together as there is time for.

    One after the other they may hardly move: given all other sensors of a room, none believes that
    it alone reads the true temperature.
    """
    record = terms.variable
    rng = np.random.default_rng(SEED)
    key, variable = _around(terms, blocks, rng)
    order = np.lexsort([rng.random(len(key)), key])
    key, variable = key[order], variable[order]
    most = max(MOST_WORK, MORE_WORK * len(terms.entry))
    log_states = np.log2(np.maximum(record["num_states"], 1))
    widest = float(log_states[variable].max(initial=0.0))
    limit = np.log2(MOST_JOINT)
    while True:
        owner = _chunks(key, log_states[variable], limit - widest)
        is_group = np.bincount(owner) > 1
        work = float(_work(terms, owner, variable)[is_group].sum())
        if work <= most or limit <= widest:
            break
        limit -= 1.0
    keep = is_group[owner] & (work <= most)
    number = np.cumsum(is_group) - 1
    return number[owner[keep]], variable[keep]


def _work(terms: LocalTerms, owner: IntArray, variable: IntArray) -> NDArray[np.float64]:
    """(group,): about the work of drawing it."""
    record, count = terms.variable[variable], int(owner.max(initial=-1)) + 1
    log_states = np.log(record["num_states"])
    near = np.bincount(_near(terms, owner, variable)[0], minlength=count)
    tables = np.bincount(owner, record["split"] - record["first"], minlength=count)
    quadratics = np.bincount(owner, record["last"] - record["split"], minlength=count)
    each = tables + 3 * quadratics * (1 + near) + near**3 / 3 + 2
    return np.asarray(np.exp(np.bincount(owner, log_states, minlength=count)) * each)


def _around(terms: LocalTerms, blocks: RealBlocks, rng: np.random.Generator) -> Members:
    """Discrete variables around others, numbered in order: in each case around a discrete
    variable, or around the reals of a ball."""
    record, slots = terms.variable, terms.entry["variable"].astype(np.int64)
    is_drawn = (record["num_states"] > 0) & (record["movable"] == 1)
    is_real = np.zeros(len(record), dtype=bool)
    is_real[blocks.variable] = True
    found, span = [np.zeros((2, 0), dtype=np.int64)], max(len(record), 1)
    arity = terms.term["last"] - terms.term["first"]
    for one, two in permutations(range(int(arity.max(initial=0))), 2):
        start = terms.term["first"][arity > max(one, two)]
        at, other = slots[start + one], slots[start + two]
        found.append(np.stack([other, at])[:, is_drawn[at] & (is_drawn[other] | is_real[other])])
        found.append(np.stack([at, at])[:, is_drawn[at] & is_drawn[other]])  # itself among them
    centre, variable = np.divmod(np.unique(span * (both := np.hstack(found))[0] + both[1]), span)
    ptr = pointers(centre, len(record))
    of_ball, member = _balls(terms, blocks, rng)
    size = np.diff(ptr)[member]
    inside = variable[ranges(ptr[member], size)]
    codes = [
        span * centre[is_drawn[centre]] + variable[is_drawn[centre]],
        span * np.repeat(of_ball, size) + inside,
    ]
    key, variable = np.divmod(np.unique(np.concatenate(codes)), span)
    # Balls around the same variables are one.
    key = np.unique(key, return_inverse=True)[1].reshape(-1)
    rank = rng.permutation(span).astype(np.float64)
    looks = np.stack([np.bincount(key, rank[variable]), np.bincount(key, rank[variable] ** 2)])
    first = np.unique(looks, axis=1, return_index=True)[1]
    keep = np.isin(key, first)
    return np.unique(key[keep], return_inverse=True)[1].reshape(-1), variable[keep]


def _balls(
    terms: LocalTerms, blocks: RealBlocks, rng: np.random.Generator
) -> tuple[IntArray, IntArray]:
    """Pairs of a real and another that is linked to it, by one or two steps: few of each, and
    itself."""
    span = max(len(terms.variable), 1)
    ptr = np.append(terms.variable["links"], len(terms.link))
    size = terms.variable["links_end"] - terms.variable["links"]
    of_ball, member, steps = blocks.variable, blocks.variable, np.zeros(len(blocks.variable))
    for step in (1, 2):
        count = size[member]
        other = terms.link["other"][ranges(ptr[member], count)].astype(np.int64)
        code = np.concatenate([of_ball * span + member, np.repeat(of_ball, count) * span + other])
        far = np.concatenate([steps, np.full(len(other), float(step))])
        order = np.lexsort([far, code])
        code, first = np.unique(code[order], return_index=True)
        far = far[order][first]
        of_ball, member = np.divmod(code, span)
        order = np.lexsort([rng.random(len(far)), far, of_ball])  # the closest ones are kept
        order = order[counts_up(np.bincount(of_ball[order]))[: len(order)] < MOST_NEAR]
        of_ball, member, steps = of_ball[order], member[order], far[order]
    return of_ball, member


def _chunks(key: IntArray, size: NDArray[np.float64], limit: float) -> IntArray:
    """(member,): numbers of chunks, in order, of members that are sorted by their keys, such that
    the sizes of a chunk without its last member sum to less than the limit."""
    if not len(key):
        return key
    before = np.cumsum(size) - size
    is_first = np.append(True, key[1:] != key[:-1])
    before -= np.repeat(before[is_first], np.diff(np.append(np.flatnonzero(is_first), len(key))))
    chunk = np.floor(before / max(limit, 1e-9) + 1e-9)
    return np.cumsum(is_first | np.append(True, chunk[1:] != chunk[:-1])) - 1


def _distinct_terms(
    terms: LocalTerms, owner: IntArray, first: IntArray, last: IntArray
) -> tuple[IntArray, IntArray]:
    """Owners and their terms, each once and sorted; of incidences from first to last."""
    num_terms = max(len(terms.term), 1)
    inside = terms.incidence["term"][ranges(first, last - first)]
    code = np.repeat(owner, last - first) * num_terms + inside
    found, term = np.divmod(np.unique(code), num_terms)
    return found, term


def _near(terms: LocalTerms, owner: IntArray, variable: IntArray) -> tuple[IntArray, IntArray]:
    """Groups, and the reals that share a term with them, for those that have few of them, in few
    terms, and none of a function. Groups of several take along what is linked to those as well,
    again if it is little."""
    record, num_groups = terms.variable, int(owner.max(initial=-1)) + 1
    members, span = record[variable], max(len(terms.variable), 1)
    group, term = _distinct_terms(terms, owner, members["split"], members["last"])
    first, size = terms.term["middle"][term], (terms.term["last"] - terms.term["middle"])[term]
    real = terms.entry["variable"][ranges(first, size)].astype(np.int64)
    code = np.unique(np.repeat(group, size) * span + real)
    num_given = np.bincount(code // span, record["movable"][code % span] == 0, num_groups)
    code = _few(terms, code, num_groups, num_given == 0)
    is_several = np.bincount(owner, minlength=num_groups) > 1
    for _ in range(LINKS):
        found, near = np.divmod(code, span)
        count = np.where(is_several[found], (record["links_end"] - record["links"])[near], 0)
        other = terms.link["other"][ranges(record["links"][near], count)]
        wider = np.union1d(code, np.repeat(found, count) * span + other)
        wider = _few(terms, wider, num_groups, np.ones(num_groups, dtype=bool))
        code = np.union1d(code, wider)
    return np.divmod(code, span)


def _few(terms: LocalTerms, code: IntArray, num_groups: int, is_fit: NDArray[np.bool_]) -> IntArray:
    """The codes of groups that are fit, and have few reals, in few terms."""
    found, near = np.divmod(code, max(len(terms.variable), 1))
    count = np.bincount(found, minlength=num_groups)
    degree = terms.variable["last"] - terms.variable["split"]
    num_terms = np.bincount(found, degree[near], minlength=num_groups)
    return code[((count <= MOST_NEAR) & (num_terms <= MOST_TERMS) & is_fit)[found]]
