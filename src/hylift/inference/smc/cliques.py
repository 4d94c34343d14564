"""Reals of a graph in a tree of cliques, and the discrete variables at the cliques they change."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hylift.inference.exact.elimination import Elimination, eliminate_reals
from hylift.inference.local.terms import LocalTerms
from hylift.inference.smc.kernels.cliques import mark_busy
from hylift.numerics.segments import counts_up, inverse, number_lists, offsets, ranges

Ids = NDArray[np.int64]

LIMITS = (256, 16, 4)
"""Reals that a discrete variable may tie into one clique: that limit is taken which costs least."""

CLIQUE = np.dtype(
    [
        ("first", np.int64),  # of its members: its own reals, then those of its parent
        ("last", np.int64),
        ("num_own", np.int64),
        ("parent", np.int64),  # or -1
        ("children", np.int64),
        ("children_end", np.int64),
        ("square", np.int64),  # where its matrices start
        ("terms", np.int64),
        ("terms_end", np.int64),
        ("locals", np.int64),  # discrete variables that are drawn there
        ("locals_end", np.int64),
        ("is_busy", np.int64),  # whether such a variable is there or below
    ]
)
MEMBER = np.dtype([("variable", np.int64), ("real", np.int64), ("into", np.int64)])
HOSTED = np.dtype([("term", np.int64), ("place", np.int64)])
LOCAL = np.dtype(
    [
        ("variable", np.int64),
        ("near", np.int64),  # its reals, by their places in the clique
        ("near_end", np.int64),
        ("is_curved", np.int64),  # whether it changes precisions
    ]
)
PART = np.dtype(
    [
        (name, np.int64)
        for what in ("cliques", "plain", "wide", "discrete", "terms", "variables")
        for name in (what, f"{what}_end")
    ]
    + [("num_joint", np.int64), ("is_hard", np.int64)]
)
"""`num_joint`: joint states, where there are so few that each gets a particle, or else 0."""


class Cliques(NamedTuple):
    """The connected parts of a graph, and the cliques of their reals, children before parents."""

    part: NDArray[np.void]  # PART
    clique: NDArray[np.void]  # CLIQUE
    member: NDArray[np.void]  # MEMBER; `into`: its place in the parent, or -1
    hosted: NDArray[np.void]  # HOSTED: the quadratics of each clique
    local: NDArray[np.void]  # LOCAL
    lists: Ids  # what follows, each from its place on: few arrays compile faster
    child: int  # the children of each clique
    place: int  # of the reals of hosted terms, in the clique
    near: int
    of_term: int  # (term,): its clique; -1 for a table
    near_place_ptr: int  # (incidence,): of a variable with a quadratic: where its reals stand
    near_place: int  # among those near the variable
    discrete: int  # discrete variables by part
    plain: int  # those without reals
    wide: int  # those whose reals are not in one clique
    terms: int  # terms by part
    variables: int  # all variables by part

    @property
    def num_discrete(self) -> int:
        return self.plain - self.discrete

    @property
    def most_members(self) -> int:
        return int((self.clique["last"] - self.clique["first"]).max(initial=1))

    def work(self) -> Ids:
        """(part,): about the operations of a sweep."""
        size = (self.clique["last"] - self.clique["first"]).astype(np.float64)
        near = (self.local["near_end"] - self.local["near"]).astype(np.float64)
        up = np.add.reduceat(np.append(size**3 + 40, 0.0), self.part["cliques"])
        up = np.where(self.part["cliques_end"] > self.part["cliques"], up, 0.0)
        flips = offsets(30 + near**3)
        first, last = np.append(self.clique["locals"], len(near)), self.part
        cliques = last["cliques"], last["cliques_end"]
        local = flips[first[cliques[1]]] - flips[first[cliques[0]]]
        num_wide = last["wide_end"] - last["wide"]
        num_terms = last["terms_end"] - last["terms"]
        return (3 * up * (1 + num_wide) + 2 * local + 8 * num_terms + 20).astype(np.int64)


def cliques_of(terms: LocalTerms, part: NDArray[np.int32], num_parts: int, most: int) -> Cliques:
    """The cliques of a graph. part: (variable,); most: joint states that are enumerated."""
    record = terms.variable
    is_real = record["num_states"] == 0
    reals = np.flatnonzero(is_real)
    number = inverse(reals, len(record))
    near = _Near.of(terms, number)
    tree = min(
        (_Tree.of(terms, number, near, limit) for limit in LIMITS), key=lambda one: one.cost(near)
    )
    return tree.cliques(terms, number, near, part, num_parts, most)


@dataclass(frozen=True, slots=True, eq=False)
class _Near:
    """The reals that share terms with each discrete variable."""

    ptr: Ids  # (variable + 1,)
    real: Ids  # increasing for each variable
    is_curved: NDArray[np.bool_]  # (variable,)
    num_states: Ids

    @classmethod
    def of(cls, terms: LocalTerms, number: Ids) -> _Near:
        record, term = terms.variable, terms.term
        count = np.where(record["num_states"] > 0, record["last"] - record["split"], 0)
        variable = np.repeat(np.arange(len(record)), count)
        which = terms.incidence["term"][ranges(record["split"], count)].astype(np.int64)
        size = (term["last"] - term["middle"])[which]
        slot = ranges(term["middle"][which], size)
        real = number[terms.entry["variable"][slot]]
        code = np.unique(np.repeat(variable, size) * np.int64(len(number)) + real)
        owner, real = np.divmod(code, max(len(number), 1))
        curved = np.zeros(len(term), dtype=bool)
        for rows in terms.rows():
            if rows.num_reals:
                own = (rows.A[:, :1] != rows.A).any(axis=(1, 2, 3))
                curved[rows.terms] = own[rows.row]
        is_curved = np.bincount(variable, curved[which], len(record)) > 0
        ptr = offsets(np.bincount(owner, minlength=len(record)))
        return cls(ptr, real, is_curved, record["num_states"].astype(np.int64))

    def pairs(self, limit: int) -> NDArray[np.int32]:
        """(pair, 2): reals near the same variable, of variables with few enough."""
        count = np.diff(self.ptr)
        found = [np.zeros((0, 2), dtype=np.int64)]
        for size in np.unique(count[(count > 1) & (count <= limit)]).tolist():
            some = self.ptr[:-1][count == size]
            rows = np.unique(self.real[some[:, None] + np.arange(size)], axis=0)
            left, right = np.triu_indices(size, 1)
            found.append(np.stack([rows[:, left].ravel(), rows[:, right].ravel()], axis=1))
        return np.concatenate(found).astype(np.int32)


@dataclass(frozen=True, slots=True, eq=False)
class _Tree:
    """Cliques of reals, by an order in which these are eliminated."""

    elimination: Elimination
    of_step: Ids  # (step,): the clique in which it is eliminated
    ptr: Ids  # (clique + 1,)
    step: Ids  # members of each clique, its own first
    num_own: Ids  # (clique,)
    parent: Ids  # (clique,)
    key: Ids  # clique and member of each place, sorted
    place: Ids  # that place
    home: Ids  # (variable,): the clique that has all its reals, or -1

    @classmethod
    def of(cls, terms: LocalTerms, number: Ids, near: _Near, limit: int) -> _Tree:
        source, other = terms.link_source(), terms.link["other"].astype(np.int64)
        linked = np.stack([number[source], number[other]], axis=1)[source < other]
        num_reals = int(number.max(initial=-1)) + 1
        pairs = np.concatenate([linked.astype(np.int32), near.pairs(limit)])
        found = eliminate_reals(num_reals, np.unique(pairs, axis=0))
        top = _tops(found)
        tops, of_step = np.unique(top, return_inverse=True)
        of_step = of_step.reshape(-1).astype(np.int64)
        order = np.argsort(of_step, kind="stable")
        num_own = np.bincount(of_step, minlength=len(tops))
        num_shared = np.diff(found.ptr)[tops]
        ptr = offsets(num_own + num_shared)
        step = np.empty(ptr[-1], dtype=np.int64)
        step[ranges(ptr[:-1], num_own)] = order
        step[ranges(ptr[:-1] + num_own, num_shared)] = found.later[
            ranges(found.ptr[tops], num_shared)
        ]
        parent = np.append(of_step, -1)[found.parent[tops]]
        parent = _few_children(parent, ptr, num_own, step)
        key = np.repeat(np.arange(len(tops)), np.diff(ptr)) * max(num_reals, 1) + step
        by_key = np.argsort(key)
        place = counts_up(np.diff(ptr))[by_key]
        none = np.zeros(0, dtype=np.int64)
        tree = cls(found, of_step, ptr, step, num_own, parent, key[by_key], place, none)
        return replace(tree, home=tree._homes(near))

    def places(self, clique: Ids, real: Ids) -> Ids:
        """Places of reals in cliques; -1 where one is not in its clique."""
        if not len(self.key):
            return np.full(len(real), -1, dtype=np.int64)
        wanted = clique * max(len(self.of_step), 1) + self.elimination.step[real]
        at = np.minimum(np.searchsorted(self.key, wanted), len(self.key) - 1)
        return np.where(self.key[at] == wanted, self.place[at], -1)

    def _first_clique(self, owner: Ids, real: Ids, count: int) -> Ids:
        """(owner,): the clique in which the first of its reals is eliminated, or -1."""
        first = np.full(count, len(self.of_step), dtype=np.int64)
        np.minimum.at(first, owner, self.elimination.step[real])
        return np.append(self.of_step, -1)[first]

    def _homes(self, near: _Near) -> Ids:
        count = len(near.ptr) - 1
        owner = np.repeat(np.arange(count), np.diff(near.ptr))
        home = self._first_clique(owner, near.real, count)
        outside = self.places(home[owner], near.real) < 0
        return np.where(np.bincount(owner, outside, count) > 0, -1, home)

    def cost(self, near: _Near) -> float:
        """About the operations of a sweep."""
        size, count = np.diff(self.ptr).astype(np.float64), np.diff(near.ptr).astype(np.float64)
        pass_cost = float((size**3 + 40).sum())
        at = np.flatnonzero(self.home >= 0)
        power = np.where(near.is_curved[at], 3, 2)
        local = near.num_states[at] * count[at] ** power + count[at] * size[self.home[at]] ** 2
        wide = near.num_states[(self.home < 0) & (count > 0)].sum()
        return 3 * pass_cost + float(local.sum()) + float(wide) * pass_cost

    def cliques(
        self,
        terms: LocalTerms,
        number: Ids,
        near: _Near,
        part: NDArray[np.int32],
        num_parts: int,
        most: int,
    ) -> Cliques:
        record, num_cliques = terms.variable, len(self.num_own)
        reals = np.flatnonzero(record["num_states"] == 0)
        variable = reals[self.elimination.order]
        of_clique = part[variable[self.step[self.ptr[:-1]]]] if num_cliques else part[:0]
        order = np.argsort(of_clique, kind="stable")
        new = inverse(order, num_cliques)
        clique = np.zeros(num_cliques, dtype=CLIQUE)
        size = np.diff(self.ptr)[order]
        ptr = offsets(size)
        clique["first"], clique["last"], clique["num_own"] = ptr[:-1], ptr[1:], self.num_own[order]
        clique["parent"] = np.append(new, -1)[self.parent[order]]
        clique["square"] = offsets(size * size)[:-1]
        member = np.zeros(ptr[-1], dtype=MEMBER)
        step = self.step[ranges(self.ptr[order], size)]
        member["variable"] = variable[step]
        member["real"] = number[member["variable"]]
        old_parent = np.repeat(self.parent[order], size)
        is_own = counts_up(size) < np.repeat(clique["num_own"], size)
        into = self.places(np.maximum(old_parent, 0), member["real"])
        member["into"] = np.where(is_own, -1, into)
        child = _listed(clique["parent"], clique, "children")
        of_term, hosted, place = self._hosts(terms, number, new, clique)
        local, places, near_ptr, near_place = self._locals(terms, number, near, new, clique)
        mark_busy(clique)
        parts, lists = _parts(terms, near, self.home, part, num_parts, of_clique[order], most)
        every = [child, place, places, of_term, near_ptr, near_place, *lists]
        starts = offsets(np.array([len(one) for one in every]))[:-1].tolist()
        joined = np.concatenate(every).astype(np.int64)
        return Cliques(parts, clique, member, hosted, local, joined, *starts)

    def _hosts(
        self, terms: LocalTerms, number: Ids, new: Ids, clique: NDArray[np.void]
    ) -> tuple[Ids, NDArray[np.void], Ids]:
        """Of each quadratic the clique; the quadratics of each clique; places of their reals."""
        term, first = terms.term, terms.num_tables
        which = np.arange(first, len(term))
        size = (term["last"] - term["middle"])[which]
        real = number[terms.entry["variable"][ranges(term["middle"][which], size)]]
        owner = np.repeat(np.arange(len(which)), size)
        host = self._first_clique(owner, real, len(which))
        # Where a term is at the clique of its variable, no message must be sent again.
        num_states = term["middle"][which] - term["first"][which]
        slot = terms.entry["variable"][ranges(term["first"][which], num_states)]
        home = self.home[slot]
        of_slot = np.repeat(np.arange(len(which)), num_states)[home >= 0]
        host[of_slot[::-1]] = home[home >= 0][::-1]
        place = self.places(host[owner], real)
        of_term = np.full(len(term), -1, dtype=np.int64)
        of_term[first:] = new[host]
        order = np.argsort(of_term[first:], kind="stable")
        hosted = np.zeros(len(which), dtype=HOSTED)
        hosted["term"], hosted["place"] = which[order], offsets(size)[:-1][order]
        ends = offsets(np.bincount(of_term[first:], minlength=len(clique)))
        clique["terms"], clique["terms_end"] = ends[:-1], ends[1:]
        return of_term, hosted, place

    def _locals(
        self, terms: LocalTerms, number: Ids, near: _Near, new: Ids, clique: NDArray[np.void]
    ) -> tuple[NDArray[np.void], Ids, Ids, Ids]:
        """The variables of each clique, with the places of their reals in it; and, of each
        incidence with a quadratic, the places of its reals among these."""
        record, term = terms.variable, terms.term
        variable = np.flatnonzero(self.home >= 0)
        variable = variable[np.argsort(new[self.home[variable]], kind="stable")]
        count = np.diff(near.ptr)[variable]
        local = np.zeros(len(variable), dtype=LOCAL)
        local["variable"], local["is_curved"] = variable, near.is_curved[variable]
        ends = offsets(count)
        local["near"], local["near_end"] = ends[:-1], ends[1:]
        real = near.real[ranges(near.ptr[variable], count)]
        places = self.places(np.repeat(self.home[variable], count), real)
        ends = offsets(np.bincount(new[self.home[variable]], minlength=len(clique)))
        clique["locals"], clique["locals_end"] = ends[:-1], ends[1:]
        of_incidence = np.repeat(np.arange(len(record)), record["last"] - record["first"])
        is_near = np.arange(len(of_incidence)) >= record["split"][of_incidence]
        is_near &= record["num_states"][of_incidence] > 0
        which = terms.incidence["term"].astype(np.int64)
        size = np.where(is_near, (term["last"] - term["middle"])[which], 0)
        real = number[terms.entry["variable"][ranges(term["middle"][which], size)]]
        owner = np.repeat(of_incidence, size)
        width = max(len(self.of_step), 1)
        keys = np.repeat(np.arange(len(record)), np.diff(near.ptr)) * width + near.real
        at = np.searchsorted(keys, owner * width + real) - near.ptr[owner]
        return local, places, offsets(size), at.astype(np.int64)


def _tops(found: Elimination) -> Ids:
    """(step,): the last step of its clique: a step goes with its parent, where that is next to the
    same later ones, and no other goes with it."""
    count, parent = np.diff(found.ptr), found.parent.astype(np.int64)
    steps = np.arange(len(count))
    joins = np.flatnonzero((parent >= 0) & (count == np.append(count, 0)[parent] + 1))
    joined = np.full(len(count) + 1, -1, dtype=np.int64)
    joined[parent[joins]] = joins  # of several the last
    top = np.where((parent >= 0) & (joined[parent] == steps), parent, steps)
    while (top[top] != top).any():
        top = top[top]
    return top


def _few_children(parent: Ids, ptr: Ids, num_own: Ids, step: Ids) -> Ids:
    """The parents after cliques that share the same reals with one parent form a binary tree
    below it: a clique with many children would have to add up their messages for each."""
    num_shared = np.diff(ptr) - num_own
    some = np.flatnonzero(num_shared > 0)
    if not len(some):
        return parent
    items = step[ranges(ptr[some] + num_own[some], num_shared[some])]
    shared, _ = number_lists(np.repeat(np.arange(len(some)), num_shared[some]), items)
    order = np.lexsort([-some, shared])
    counts = np.bincount(shared)
    rank, begin = counts_up(counts), np.repeat(offsets(counts)[:-1], counts)
    found = parent.copy()
    below = np.flatnonzero(rank > 0)
    found[some[order[below]]] = some[order[begin[below] + (rank[below] - 1) // 2]]
    return found


def _listed(owner: Ids, record: NDArray[np.void], name: str) -> Ids:
    """Items by owner, those of -1 left out; the record gets where they are."""
    items = np.flatnonzero(owner >= 0)
    ends = offsets(np.bincount(owner[items], minlength=len(record)))
    record[name], record[f"{name}_end"] = ends[:-1], ends[1:]
    return items[np.argsort(owner[items], kind="stable")]


def _parts(
    terms: LocalTerms,
    near: _Near,
    home: Ids,
    part: NDArray[np.int32],
    num_parts: int,
    of_clique: NDArray[np.int32],
    most: int,
) -> tuple[NDArray[np.void], list[Ids]]:
    """The parts, and their discrete variables, those without reals, wide ones, terms, variables."""
    record, term = terms.variable, terms.term
    parts = np.zeros(num_parts, dtype=PART)
    _listed(of_clique.astype(np.int64), parts, "cliques")
    is_discrete = record["num_states"] > 0
    has_reals = np.diff(near.ptr) > 0
    lists = []
    kinds = {
        "discrete": is_discrete,
        "plain": is_discrete & ~has_reals,
        "wide": has_reals & (home < 0),
    }
    for name, chosen in kinds.items():
        lists.append(_listed(np.where(chosen, part, -1).astype(np.int64), parts, name))
    of_term = part[terms.entry["variable"][term["first"]]].astype(np.int64)
    lists.append(_listed(of_term, parts, "terms"))
    lists.append(_listed(part.astype(np.int64), parts, "variables"))
    log_joint = np.bincount(part, np.log(np.maximum(record["num_states"], 1)), num_parts)
    joint = np.rint(np.exp(np.minimum(log_joint, np.log(most) + 1)))
    parts["num_joint"] = np.where(joint <= most, joint, 0)
    tables = np.arange(len(term)) < terms.num_tables
    hard = np.zeros(len(term), dtype=bool)
    for rows in terms.rows():
        if not rows.num_reals:
            hard[rows.terms] = np.asarray(np.isneginf(rows.c).any(axis=1))[rows.row]
    parts["is_hard"] = np.bincount(of_term, hard & tables, num_parts) > 0
    return parts, lists
