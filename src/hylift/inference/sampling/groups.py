"""Groups of discrete variables that are drawn together, with the few reals next to them."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from hylift.inference.local.terms import LocalTerms
from hylift.inference.sampling.kernels.sweep import tie
from hylift.inference.sampling.state import MOST_JOINT, MOST_NEAR, RealBlocks, StateGroups
from hylift.inference.sampling.structure import pointers
from hylift.numerics.segments import counts_up, inverse, offsets, ranges, slices

IntArray = NDArray[np.int64]
Members = tuple[IntArray, IntArray]
"""Groups and their variables, a pair for each membership; groups count from 0, in order."""

MOST_TERMS = 256
"""Quadratics of the reals next to discrete variables up to which these take them along."""

MOST_WORK, MORE_WORK = 1 << 16, 4
"""Of drawing all neighbours together: so much, or so many times that of a plain sweep."""

LINKS = 2
"""Steps along links of reals to those that a group takes along."""

LEAST_CORRELATION, MOST_CORRELATED = 0.25, 6
"""Of neighbours that are drawn together, and the joint states of such a group, as a power of 2."""

BLOCK = 1 << 12
"""Pairs that are looked at together."""

MOST_COLLAPSED, MOST_STEEP = 4, 1e8
"""Reals next to a variable up to which it is recorded with all reals integrated out, and times the
least precision of such a real that it may have."""

SEED = 0
"""Of the choice of neighbours, which is the same in all runs."""


def state_groups(
    terms: LocalTerms, blocks: RealBlocks, tied: IntArray, together: Members
) -> StateGroups:
    """Groups that are tied, others to draw together, and variables that take reals along by
    themselves.

    tied: (variable,), its group of two or more, or -1.
    """
    is_drawn = (terms.variable["num_states"] > 0) & (terms.variable["movable"] == 1)
    alone = np.flatnonzero(is_drawn & (tied < 0))
    held = np.flatnonzero(tied >= 0)
    held = held[np.argsort(tied[held], kind="stable")]
    ties, single = (tied[held], held), (np.arange(len(alone)), alone)
    owner, variable = _joined([ties, together, single])
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
    ptr, near_ptr = pointers(owner, count), pointers(number[of_group], count)
    step = inverse(blocks.variable, len(terms.variable))
    collapsed, edge = _collapsed(terms, blocks, np.diff(ptr) == 1, near_ptr, step[near])
    is_collapsed = np.zeros(len(terms.variable), dtype=np.uint8)
    is_collapsed[variable[ptr[collapsed]]] = 1
    return StateGroups(
        ptr,
        variable,
        num_joint,
        pointers(table_owner, count),
        table,
        pointers(quadratic_owner, count),
        quadratic,
        near_ptr,
        near,
        collapsed,
        edge,
        step[near],
        is_collapsed,
    )


def _collapsed(
    terms: LocalTerms,
    blocks: RealBlocks,
    is_single: NDArray[np.bool_],
    near_ptr: IntArray,
    step: IntArray,
) -> tuple[IntArray, IntArray]:
    """Groups of one variable next to few reals without bounds, and the edges of all pairs of these:
    -1 for those in different components.

    step: (near real,). Reals are left out whose precision would lose its digits were the largest
    part of it subtracted.
    """
    component = blocks.component
    curve = np.zeros((2, len(terms.variable)))
    for rows in terms.rows():
        bends = np.abs(np.diagonal(rows.A, axis1=2, axis2=3))[rows.row]
        bends = bends * terms.term["multiplicity"][rows.terms][:, None, None]
        np.add.at(curve[0], terms.reals(rows), bends.min(axis=1))
        np.add.at(curve[1], terms.reals(rows), bends.max(axis=1))
    is_fit = (curve[1] < MOST_STEEP * curve[0])[blocks.variable]
    is_fit &= (blocks.has_bounds == 0)[component]
    size = np.diff(near_ptr)
    num_unfit = np.bincount(np.repeat(np.arange(len(size)), size), ~is_fit[step], len(size))
    chosen = np.flatnonzero(is_single & (size > 0) & (size <= MOST_COLLAPSED) & (num_unfit == 0))
    code = np.repeat(np.arange(len(blocks.variable)), np.diff(blocks.ptr)) * len(component)
    code += blocks.later
    edge = np.full((len(chosen), MOST_COLLAPSED * (MOST_COLLAPSED - 1) // 2), -1)
    is_known = np.ones(len(chosen), dtype=bool)
    for pair, (i, j) in enumerate(zip(*np.tril_indices(MOST_COLLAPSED, -1), strict=True)):
        some = np.flatnonzero(size[chosen] > i)
        both = np.sort(step[near_ptr[chosen[some]][:, None] + [i, j]], axis=1)
        wanted = both[:, 0] * len(component) + both[:, 1]
        at = np.minimum(np.searchsorted(code, wanted), max(len(code) - 1, 0))
        is_linked = component[both[:, 0]] == component[both[:, 1]]
        is_there = code[at] == wanted if len(code) else np.zeros(len(some), dtype=bool)
        edge[some, pair] = np.where(is_there, at, -1)
        is_known[some] &= is_there | ~is_linked
    return chosen[is_known], edge[is_known]


def _joined(parts: list[Members]) -> Members:
    """The groups of all parts, one after the other."""
    first = offsets(np.array([int(owner.max(initial=-1)) + 1 for owner, _ in parts]))
    owner = np.concatenate([part[0] + start for part, start in zip(parts, first[:-1], strict=True)])
    return owner, np.concatenate([variable for _, variable in parts])


def neighbours(terms: LocalTerms, blocks: RealBlocks) -> Members:
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
    for limit in np.arange(np.log2(MOST_JOINT), widest - 1.0, -1.0):
        owner = _chunks(key, log_states[variable], limit - widest)
        is_group = np.bincount(owner) > 1
        keep, number = is_group[owner], np.cumsum(is_group) - 1
        group, some = number[owner[keep]], variable[keep]
        near: NDArray[Any] = np.zeros(np.count_nonzero(is_group))
        if not len(near) or _work(terms, group, some, near).sum() > most:
            continue
        near = np.bincount(_near(terms, group, some)[0], minlength=len(near))
        if _work(terms, group, some, near).sum() <= most:
            return group, some
    return key[:0], variable[:0]


def correlated(terms: LocalTerms, blocks: RealBlocks, values: NDArray[np.float64]) -> Members:
    """Neighbours that move together in draws (draw, variable): those that are correlated most come
    first, as many together as there is time for."""
    record = terms.variable
    one, other = _close_pairs(terms)
    is_last = values == values[-1]
    score = is_last - is_last.mean(axis=0)
    size = np.sqrt((score**2).sum(axis=0))
    found = np.zeros(len(one))
    for some in slices(len(one), BLOCK):
        found[some] = np.abs((score[:, one[some]] * score[:, other[some]]).sum(axis=0))
    with np.errstate(invalid="ignore", divide="ignore"):
        found = np.nan_to_num(found / (size[one] * size[other]))
    order = np.argsort(-found, kind="stable")
    order = order[found[order] > LEAST_CORRELATION]
    pairs = np.stack([one, other], axis=1)[order]
    sweep = len(terms.entry) + int((np.diff(blocks.ptr) ** 2).sum())
    for limit in range(MOST_CORRELATED, 0, -1):
        log_states = np.log2(np.maximum(record["num_states"], 1).astype(np.float64))
        root = np.arange(len(record))
        tie(np.arange(len(pairs) + 1) * 2, pairs.ravel(), log_states, limit + 1e-9, root)
        variable = np.flatnonzero(np.bincount(root, minlength=len(root))[root] > 1)
        variable = variable[np.argsort(root[variable], kind="stable")]
        owner = np.unique(root[variable], return_inverse=True)[1].reshape(-1)
        near = np.bincount(
            _near(terms, owner, variable)[0], minlength=int(owner.max(initial=-1)) + 1
        )
        if _work(terms, owner, variable, near).sum() <= max(MOST_WORK, MORE_WORK * sweep):
            return owner, variable
    return owner[:0], variable[:0]


def _close_pairs(terms: LocalTerms) -> tuple[IntArray, IntArray]:
    """Pairs of discrete variables that share a term, or reals next to which are linked."""
    record, slots = terms.variable, terms.entry["variable"].astype(np.int64)
    term = terms.entry_term()
    is_drawn = ((record["num_states"] > 0) & (record["movable"] == 1))[slots]
    is_real = (record["num_states"] == 0)[slots]
    count = len(record)

    def among(rows: IntArray, columns: IntArray, width: int) -> sparse.csr_array:
        return sparse.csr_array((np.ones(len(rows)), (rows, columns)), (count, width))

    states = among(slots[is_drawn], term[is_drawn], len(terms.term))
    reals = among(slots[is_real], term[is_real], len(terms.term))
    links = among(terms.link_source(), terms.link["other"].astype(np.int64), count)
    beside = states @ reals.T
    is_few = (beside > 0).sum(axis=0) <= MOST_NEAR  # of the variables next to a real
    beside = beside @ sparse.diags_array(is_few.astype(np.float64))
    found = sparse.triu(states @ states.T + beside @ (links @ beside.T) + beside @ beside.T, 1)
    return found.row.astype(np.int64), found.col.astype(np.int64)


def _work(
    terms: LocalTerms, owner: IntArray, variable: IntArray, near: NDArray[Any]
) -> NDArray[np.float64]:
    """(group,): about the work of drawing it; near: (group,), how many reals it takes along."""
    record, count = terms.variable[variable], len(near)
    log_states = np.log(record["num_states"])
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
