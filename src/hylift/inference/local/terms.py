"""Terms as single variables see them: the view that kernels of local moves read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hylift.graph import FactorGroup
from hylift.inference.held import Held
from hylift.inference.terms import Terms
from hylift.numerics.segments import first_equal, offsets
from hylift.potentials import ConditionalQuadratic, Potential, Table
from hylift.rewrite.kinds import Kinds

FloatArray = NDArray[np.float64]
Ids = NDArray[np.int64]

FLAT = 2e-15
"""A curvature of at most this, relative to the sum of the sizes of what is added up in it, is none:
rounding may have made it. Whatever asks whether reals are held asks so."""

ROUNDING = 1e-9
"""By so much, relative to their size, reals may be beyond their bounds."""

TERM = np.dtype(
    [
        ("first", np.int64),  # of its entries: discrete slots first,
        ("middle", np.int64),  # then reals,
        ("last", np.int64),
        ("num_joint", np.int64),  # joint states
        ("base", np.int64),  # where its parameters start in `theta`
        ("multiplicity", np.float64),
        ("pair", np.int64),  # first of its pairs of reals, in the order of `triu_indices`
    ]
)
ENTRY = np.dtype([("variable", np.int32), ("stride", np.int32)])
INCIDENCE = np.dtype([("term", np.int32), ("stride", np.int32)])
LINK = np.dtype([("other", np.int32), ("pair", np.int32)])
VARIABLE = np.dtype(
    [
        ("num_states", np.int64),  # 0 for a real
        ("lower", np.float64),
        ("upper", np.float64),
        ("movable", np.int64),  # 0 for those of functions, which kernels do not know
        ("first", np.int64),  # of its incidences: those with tables,
        ("split", np.int64),  # then those with quadratics
        ("last", np.int64),
        ("links", np.int64),  # first of its links to other reals, in their order
        ("links_end", np.int64),
        ("scores", np.int64),  # first of its scores, one per state
        ("flat", np.float64),  # a curvature along a real of at most this size is none
        ("unit", np.float64),  # of lengths along a real: about the least deviation it may have
    ]
)


class LocalTerms(NamedTuple):
    """`Terms`, tables before quadratics, with what it takes to move one variable.

    Records keep the arrays few: Numba compiles each call for every array that it hands on.
    """

    num_tables: int
    term: NDArray[np.void]  # (term,): TERM
    entry: NDArray[np.void]  # (slot,): ENTRY
    theta: FloatArray
    variable: NDArray[np.void]  # (variable,): VARIABLE
    incidence: NDArray[np.void]  # (slot by variable,): INCIDENCE
    pair_of: Ids  # pairs of reals of all terms: the number of that pair
    link: NDArray[np.void]  # LINK
    least: float
    """A smaller gain is no gain: rounding may have made it."""

    @classmethod
    def of(cls, kinds: Kinds) -> LocalTerms:
        """The tables and quadratics of a graph without evidence; functions are left out.

        A class that stands in several slots of a factor stands once in its term, which has the
        values at equal states.
        """
        variables = kinds.graph.variables
        is_lifted = bool((variables.multiplicity != 1).any())
        groups = [*kinds.tables, *kinds.quadratics]
        if is_lifted:
            groups = [part for group in groups for part in _without_repeats(group)]
        flat = Terms.of(groups, variables.num_states)
        num_tables = sum(len(group) for group in kinds.tables)
        term = np.zeros(len(flat), dtype=TERM)
        term["first"], term["last"] = flat.slot_ptr[:-1], flat.slot_ptr[1:]
        term["middle"] = term["first"] + flat.num_discrete
        term["base"], term["num_joint"] = flat.base, flat.num_joint
        term["multiplicity"] = flat.multiplicity
        entry = np.zeros(len(flat.slots), dtype=ENTRY)
        entry["variable"], entry["stride"] = flat.slots, flat.stride
        variable = np.zeros(len(variables), dtype=VARIABLE)
        variable["num_states"] = variables.num_states
        variable["lower"], variable["upper"] = variables.lower, variables.upper
        variable["movable"] = 1
        for group in kinds.functions:
            variable["movable"][group.scope] = 0
        variable["scores"] = offsets(variable["num_states"])[:-1]
        incidence = _incidence(flat, num_tables, variable)
        pair_of, link = _links(term, flat.slots, variable)
        terms = cls(num_tables, term, entry, flat.theta, variable, incidence, pair_of, link, 0.0)
        return terms._replace(least=1e-9 + 1e-13 * _measure(terms))

    @property
    def num_scores(self) -> int:
        """States of all discrete variables."""
        return int(self.variable["num_states"].sum())

    def entry_term(self) -> Ids:
        """(slot,): the term that it is of."""
        return np.repeat(np.arange(len(self.term)), self.term["last"] - self.term["first"])

    def link_source(self) -> Ids:
        """(link,): the real that it leads away from."""
        record = self.variable
        return np.repeat(np.arange(len(record)), record["links_end"] - record["links"])

    def joint_states(self, x: FloatArray) -> Ids:
        """(…, term): the joint state of each term at assignments (…, variable)."""
        if not len(self.term):
            return np.zeros((*x.shape[:-1], 0), dtype=np.int64)
        states = self.entry["stride"] * x[..., self.entry["variable"]]
        return np.add.reduceat(states, self.term["first"], axis=-1).astype(np.int64)

    def held(self, x: FloatArray, *, keeps_bounds: bool = True) -> Held:
        """Assignments (…, variable), with the states and bounds of their variables."""
        record = self.variable
        is_discrete = record["num_states"] > 0
        if not keeps_bounds:
            high = np.where(is_discrete, record["num_states"] - 1.0, np.inf)
            return Held(x, np.where(is_discrete, 0.0, -np.inf), high, is_whole=is_discrete)
        low = np.where(is_discrete, 0.0, record["lower"])
        high = np.where(is_discrete, record["num_states"] - 1.0, record["upper"])
        slack = np.where(is_discrete, 0.0, ROUNDING * np.maximum(1.0, np.abs([low, high])))
        return Held(x, low - slack[0], high + slack[1], is_whole=is_discrete)

    def num_broken(self, joint: Ids) -> float:
        """Multiplicity of the tables at -inf in these joint states."""
        tables = self.term[: self.num_tables]
        values = self.theta[tables["base"] + joint[: self.num_tables]]
        return float(tables["multiplicity"][np.isneginf(values)].sum())

    def rows(self) -> Iterator[Rows]:
        """All terms, by their numbers of reals and joint states."""
        sizes = np.stack([self.term["last"] - self.term["middle"], self.term["num_joint"]])
        span = sizes.max(axis=1, initial=0) + 1
        shapes, shape = np.unique(np.ravel_multi_index(tuple(sizes), span), return_inverse=True)
        for number, key in enumerate(shapes):
            num_reals, num_joint = (int(size) for size in np.unravel_index(key, span))
            some = np.flatnonzero(shape.reshape(-1) == number)
            base, row = np.unique(self.term["base"][some], return_inverse=True)
            starts = np.cumsum([0, num_joint * num_reals**2, num_joint * num_reals, num_joint])
            A, b, c = (
                self.theta[base[:, None] + np.arange(first, last)]
                for first, last in pairwise(starts.tolist())
            )
            shaped = len(base), num_joint, num_reals
            yield Rows(some, row.reshape(-1), A.reshape(*shaped, num_reals), b.reshape(shaped), c)

    def reals(self, rows: Rows) -> Ids:
        """(term, real): the variables of the real slots."""
        at = self.term["middle"][rows.terms, None] + np.arange(rows.num_reals)
        return self.entry["variable"][at].astype(np.int64)


def as_written(group: FactorGroup) -> list[FactorGroup]:
    """The group by itself: for `Kinds.of`, where quadratics are not to be taken apart."""
    return [group]


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Distinct xᵀAx + bᵀx + c by joint state, and the terms that have them; tables have no x."""

    terms: Ids
    row: Ids  # (term,)
    A: FloatArray  # (row, joint state, real, real)
    b: FloatArray  # (row, joint state, real)
    c: FloatArray  # (row, joint state)

    @property
    def num_reals(self) -> int:
        return self.b.shape[2]


def _measure(terms: LocalTerms) -> float:
    """About the largest size of a log-value; fills in what is flat, and the units.

    Nothing here changes if a real is measured in other units.
    """
    variable = terms.variable
    curve, slope, largest = np.zeros(len(variable)), np.zeros(len(variable)), 0.0
    for rows in terms.rows():
        m = terms.term["multiplicity"][rows.terms]
        values = np.abs(np.where(np.isfinite(rows.c), rows.c, 0)).max(axis=1, initial=0)
        largest = max(largest, float((m * values[rows.row]).max(initial=0)))
        reals = terms.reals(rows)
        bends = np.abs(np.diagonal(rows.A, axis1=2, axis2=3)).max(axis=1, initial=0)
        slopes = np.abs(rows.b).max(axis=1, initial=0)
        np.add.at(curve, reals, m[:, None] * bends[rows.row])
        np.add.at(slope, reals, m[:, None] * slopes[rows.row])
    curved, sloped = curve > 0, slope > 0
    width = variable["upper"] - variable["lower"]
    unit = np.where(sloped, 1 / np.where(sloped, slope, 1), 1.0)
    unit = np.where(curved, 1 / np.sqrt(np.where(curved, curve, 1)), unit)
    variable["unit"] = np.where(width > 0, np.minimum(unit, width), 1.0)
    variable["flat"] = FLAT * curve
    return max(largest, float(((slope * unit) ** 2)[curved].max(initial=0)))


def _without_repeats(group: FactorGroup) -> Iterator[FactorGroup]:
    """The group, taken apart by which of its slots hold the same class."""
    first = first_equal(group.scope)
    if (first == np.arange(group.arity)).all():
        yield group
        return
    patterns, which = np.unique(first, axis=0, return_inverse=True)
    for number, pattern in enumerate(patterns):
        some = group.take(np.flatnonzero(which.reshape(-1) == number))
        kept, place = np.unique(pattern, return_inverse=True)
        potential = _at_equal_states(some.potential, kept, place)
        yield some.changed(potential=potential, scope=some.scope[:, kept])


def _at_equal_states(potential: Potential, kept: Ids, place: Ids) -> Potential:
    """The potential of the kept slots; slot i has the value of kept slot place[i]."""
    form, num_discrete = potential.quadratic(), potential.num_discrete_slots
    assert form is not None
    states = [size for size in (potential.slot_states[slot] for slot in kept) if size]
    grid = np.indices(states)
    at = (slice(None), *(grid[place[slot]] for slot in range(num_discrete)))
    shape = potential.slot_states[:num_discrete]
    A, b, c = (part.reshape(len(part), *shape, *part.shape[2:])[at] for part in form)
    if not form.num_reals:
        return Table(c)
    # xᵀAx + bᵀx at x = Bz
    B = np.eye(len(kept) - len(states))[place[num_discrete:] - len(states)]
    return ConditionalQuadratic(B.T @ A @ B, b @ B, c)


def _incidence(terms: Terms, num_tables: int, variable: NDArray[np.void]) -> NDArray[np.void]:
    """Per variable the terms where it stands, tables first; `variable` gets where they are."""
    ptr, slot = terms.incidence
    incidence = np.zeros(len(slot), dtype=INCIDENCE)
    incidence["term"], incidence["stride"] = terms.term[slot], terms.stride[slot]
    in_tables = terms.slots[: terms.slot_ptr[num_tables]]
    variable["first"], variable["last"] = ptr[:-1], ptr[1:]
    variable["split"] = ptr[:-1] + np.bincount(in_tables, minlength=len(variable))
    return incidence


def _links(
    term: NDArray[np.void], slots: NDArray[np.int32], variable: NDArray[np.void]
) -> tuple[Ids, NDArray[np.void]]:
    """The pairs of reals of each term, and the links between reals that share a term.

    `term` and `variable` get where theirs are.
    """
    num_variables = len(variable)
    num_reals = term["last"] - term["middle"]
    ptr = offsets(num_reals * (num_reals - 1) // 2)
    term["pair"] = ptr[:-1]
    key = np.empty(ptr[-1], dtype=np.int64)
    for size in np.unique(num_reals[num_reals > 1]):
        some = np.flatnonzero(num_reals == size)
        for at, (i, j) in enumerate(zip(*np.triu_indices(size, 1), strict=True)):
            left, right = slots[term["middle"][some] + i], slots[term["middle"][some] + j]
            low = np.minimum(left, right).astype(np.int64)
            key[ptr[some] + at] = low * num_variables + np.maximum(left, right)
    keys, pair_of = np.unique(key, return_inverse=True)
    low, high = np.divmod(keys, max(num_variables, 1))
    source, target = np.concatenate([low, high]), np.concatenate([high, low])
    order = np.lexsort([target, source])
    link = np.zeros(len(order), dtype=LINK)
    link["other"], link["pair"] = target[order], np.tile(np.arange(len(keys)), 2)[order]
    ends = offsets(np.bincount(source, minlength=num_variables))
    variable["links"], variable["links_end"] = ends[:-1], ends[1:]
    return pair_of.reshape(-1), link
