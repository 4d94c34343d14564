"""Complete pair groups of reals or Booleans as stars: each of them tied to a common mean.

If all pairs of n reals have the same coupling a x y, with a > 0, then

    Σ_{i<j} a x_i x_j = -½an Σ_i (x_i - x̄)² + ½a(n - 1) Σ_i x_i²,
    exp(-½an Σ_i (x_i - x̄)²) = n √(a / 2π) ∫ exp(-½an Σ_i (x_i - m)²) dm,

so that n pairs with one real more do the work of n(n - 1)/2. Booleans are the numbers 0 and 1. With
a < 0 there is no such real.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hylift.graph.domains import real
from hylift.graph.evidence import Evidence
from hylift.graph.factor_graph import FactorGraph
from hylift.graph.factors import FactorGroup
from hylift.graph.names import Names
from hylift.graph.variables import Variables
from hylift.numerics.grouping import first_members, group_rows
from hylift.numerics.segments import counts_up, first_of_each, inverse, offsets
from hylift.potentials import REAL, ConditionalQuadratic, Potential, Table
from hylift.potentials.quadratic import as_quadratic, as_table
from hylift.rewrite.counting.twins import number_kinds
from hylift.rewrite.rewritten import Rewritten, StateMap
from hylift.words import counted

Floats = NDArray[np.float64]
Ids = NDArray[np.int64]
Numbers = NDArray[np.int32]

LEAST = 4
"""Reals from which on a star has fewer factors than all pairs."""
LEAST_BOOLEANS = 24
"""Booleans from which on an integral over their mean is cheaper than a table of all of them."""


def common_means(graph: FactorGraph, *, maximise: bool = False) -> Rewritten | None:
    """The graph with complete pair groups of reals as stars; None where there are none.

    graph: ground, without evidence.
    """
    quadratics = {at: as_quadratic(group.potential) for at, group in enumerate(graph.groups)}
    pairs = {
        at: quadratic
        for at, quadratic in quadratics.items()
        if quadratic is not None and quadratic.slot_states == (REAL, REAL)
    }
    found = _starred(graph, pairs, LEAST, maximise=maximise)
    if found is None:
        return None
    return _rewritten("common means", graph, *found, ("real", "around", "mean"))


def common_fields(graph: FactorGraph, *, maximise: bool = False) -> Rewritten | None:
    """The graph with complete pair groups of Booleans as stars; None where there are none or a
    Boolean is in several, and for the best assignment, which is easier to find without.

    graph: ground, without evidence.
    """
    if maximise:
        return None
    tables = {at: as_table(group.potential) for at, group in enumerate(graph.groups)}
    pairs = {
        at: _of_numbers(table)
        for at, table in tables.items()
        if table is not None and table.slot_states == (2, 2)
    }
    found = _starred(graph, pairs, LEAST_BOOLEANS, maximise=False)
    if found is None or len(np.unique(found[1])) < len(found[1]):
        return None
    return _rewritten("common fields", graph, *found, ("Boolean", "in", "field"))


def _rewritten(
    name: str, graph: FactorGraph, starred: FactorGraph, members: Numbers, words: tuple[str, ...]
) -> Rewritten:
    """A rewrite of a graph, summed up in words for a member, where it is, and a centre."""
    member, near, centre = words
    num_centres = starred.num_variables - graph.num_variables
    summary = f"{counted(len(np.unique(members)), member)} {near} {counted(num_centres, centre)}"
    back = StateMap.same(graph.num_variables)
    return Rewritten(name, starred, back, summary, keeps_maximum=False)


def _of_numbers(table: Table) -> ConditionalQuadratic:
    """Tables of two Booleans as quadratics of the numbers 0 and 1; impossible where a table is."""
    possible = np.asarray(np.isfinite(table.log_table).all(axis=(1, 2)))
    T = np.where(possible[:, None, None], table.log_table, 0.0)
    c = T[:, 0, 0]
    half = 0.5 * (T[:, 1, 1] - T[:, 1, 0] - T[:, 0, 1] + c)
    none = np.zeros_like(half)
    A = np.stack([none, half, half, none], axis=1).reshape(-1, 2, 2)
    b = np.stack([T[:, 1, 0] - c, T[:, 0, 1] - c], axis=1)
    return ConditionalQuadratic(A, b, np.where(possible, c, -np.inf))


def _starred(
    graph: FactorGraph, pairs: Mapping[int, ConditionalQuadratic], least: int, *, maximise: bool
) -> tuple[FactorGraph, Numbers] | None:
    """The graph with some of its groups as stars, and their members.

    pairs: potentials of groups by position, as quadratics of two numbers.
    """
    if not graph.is_ground:
        return None
    groups, log_constant, found = list[FactorGroup](), graph.log_constant, list[_Cliques]()
    for at, group in enumerate(graph.groups):
        cliques = _Cliques.of(group, pairs[at], least) if at in pairs else None
        if cliques is None:
            groups.append(group)
            continue
        rest = np.flatnonzero(cliques.stays)
        groups += [group.take(rest)] if len(rest) else []
        first = graph.num_variables + sum(len(one.size) for one in found)
        groups += cliques.factors(first, of_states=not group.potential.num_reals)
        log_constant += cliques.log_constant(maximise=maximise)
        found.append(cliques)
    if not found:
        return None
    variables = _with_means(graph.variables, np.concatenate([one.first_member for one in found]))
    starred = FactorGraph.unchecked(variables, groups, Evidence.none(), log_constant)
    return starred, np.concatenate([one.member for one in found])


@dataclass(frozen=True, slots=True, eq=False)
class _Cliques:
    """The factors of a group that are the same for all pairs of some reals."""

    inside: FactorGroup
    """All of their factors."""
    quadratic: ConditionalQuadratic  # of two numbers, with the rows of the group
    stays: NDArray[np.bool_]  # (factor of the group,): whether it is none of them
    member: Numbers  # (member,): its variable; those of one clique after those of another
    size: Ids  # (clique,): its members
    coupling: Floats  # (clique,): a, of all factors of a pair together
    ends: Numbers  # (2, factor inside): members, that of the smaller variable first

    @classmethod
    def of(cls, group: FactorGroup, potential: ConditionalQuadratic, least: int) -> _Cliques | None:
        usable = (potential.A[:, 0, 1] > 0) & np.isfinite(potential.c)
        fits = Ellipsis if usable.all() else np.flatnonzero(usable[group.row])
        kind, scope = number_kinds(group)[0][fits], group.scope[fits]
        if not len(kind):
            return None
        low, high, variable = _nodes(kind, scope)
        found = _complete(low, high, len(variable), least)
        if found is None:
            return None
        clique, times, inside = found
        size = np.bincount(clique[clique >= 0])
        member = np.argsort(clique, kind="stable")[-int(size.sum()) :]
        place = inverse(member, len(clique), np.int32)
        if len(inside) < len(low):
            low, high = low[inside], high[inside]
        of_group = inside if fits is Ellipsis else fits[inside]
        stays = np.ones(len(group), dtype=bool)
        stays[of_group] = False
        part = group if not stays.any() else group.take(of_group)
        example = first_of_each(clique[low].astype(np.int64))
        coupling = 2 * potential.A[part.row[example], 0, 1] * part.multiplicity[example] * times
        return cls(
            part, potential, stays, variable[member], size, coupling,
            np.stack([place[low], place[high]]),
        )  # fmt: skip

    @property
    def first_member(self) -> Numbers:
        """(clique,): one of its reals."""
        return self.member[np.cumsum(self.size) - self.size]

    def log_constant(self, *, maximise: bool) -> float:
        """The log-constant that the stars leave out."""
        own, c = 0.0, self.quadratic.c
        if c.any():
            own = float(self.inside.multiplicity @ c[self.inside.row])
        integral = np.log(self.size) + 0.5 * np.log(self.coupling / (2 * np.pi))
        return own if maximise else own + float(integral.sum())

    def factors(self, first: int, *, of_states: bool) -> list[FactorGroup]:
        """The factors of the stars, whose means are variables from `first` on; members are reals,
        or states as the numbers 0 and 1."""
        label = self.inside.label
        clique = np.repeat(np.arange(len(self.size)), self.size)
        weight, row = np.unique(0.5 * self.coupling * self.size, return_inverse=True)
        star = ConditionalQuadratic.squared_distance(weight, [1.0, -1.0])
        left = self._left()
        some = np.flatnonzero(left.any(axis=1))
        own_row, _ = group_rows(left[some].view(np.int32))
        values = left[some][first_members(own_row)]
        own: Potential = ConditionalQuadratic(
            values[:, :1, None], values[:, 1:], np.zeros(len(values))
        )
        if of_states:
            x = np.array([0.0, 1.0])
            square = np.broadcast_to(-weight[:, None], (len(weight), 2))[..., None, None]
            star = ConditionalQuadratic(
                square, (2 * weight[:, None] * x)[..., None], -weight[:, None] * x
            )
            own = Table(values.sum(axis=1)[:, None] * x)
        scope = np.column_stack([self.member, first + clique]).astype(np.int32)
        ones = np.ones(len(clique))
        stars = FactorGroup.unchecked(
            star, scope, row.reshape(-1)[clique].astype(np.int32), ones, label
        )
        if not len(some):
            return [stars]
        owns = FactorGroup.unchecked(own, self.member[some][:, None], own_row, ones[some], label)
        return [stars, owns]

    def _left(self) -> Floats:
        """(member, 2): coefficients of its square and of itself that are left; 0 for (x - y)²."""
        A, b = self.quadratic.A, self.quadratic.b
        square = np.stack([A[:, 0, 0] + A[:, 0, 1], A[:, 1, 1] + A[:, 0, 1]], axis=1)  # (row, slot)
        left = np.zeros((len(self.member), 2))
        scope, row, times = self.inside.scope, self.inside.row, self.inside.multiplicity
        for place, values in enumerate((square, b)):
            if values.any():
                swapped = (scope[:, 0] > scope[:, 1]).astype(np.int64)
                for end, members in enumerate(self.ends):
                    own = times * values[row, swapped ^ end]
                    left[:, place] += np.bincount(members, own, len(left))
        return left


def _nodes(kind: Numbers, scope: Numbers) -> tuple[Numbers, Numbers, Numbers]:
    """(factor,): nodes at both ends, a real with a kind of factors each, the smaller real first;
    and (node,): its variable."""
    low, high = np.minimum(*scope.T), np.maximum(*scope.T)
    num_variables = int(high.max()) + 1
    if not kind.any():
        return low, high, np.arange(num_variables, dtype=np.int32)
    both = np.concatenate([kind, kind]) * np.int64(num_variables) + np.concatenate([low, high])
    nodes, place = np.unique(both, return_inverse=True)
    low, high = place.reshape(2, -1).astype(np.int32)
    return low, high, (nodes % num_variables).astype(np.int32)


def _complete(
    low: Numbers, high: Numbers, num_nodes: int, least: int
) -> tuple[Numbers, Ids, Ids] | None:
    """(node,): the clique that it is in, or -1; (clique,): how often each pair is linked; and the
    links of cliques. None without cliques of so many nodes.

    low, high: (link,): nodes that it links.
    """
    # In a clique, each node and those linked to it have the same smallest node.
    smallest = np.arange(num_nodes, dtype=np.int32)
    np.minimum.at(smallest, high, low)
    clique = smallest[low]
    size = np.bincount(smallest, minlength=num_nodes)
    pairs = np.maximum(size * (size - 1) // 2, 1)
    times = np.bincount(clique, minlength=num_nodes) // pairs
    is_clique = (size >= least) & (np.bincount(clique, minlength=num_nodes) == times * pairs)
    is_clique &= times > 0
    outside = np.flatnonzero(smallest[high] != clique)
    is_clique[clique[outside]] = False
    is_clique[smallest[high[outside]]] = False
    if not is_clique.any():
        return None
    inside = np.flatnonzero(is_clique[clique])
    if len(inside) < len(low):
        low, high, clique = low[inside], high[inside], clique[inside]
    # As many links as there should be: none may be there more often than its share.
    own = np.where(is_clique, size, 0)
    member = np.argsort(np.where(is_clique[smallest], smallest, num_nodes), kind="stable")
    place = np.zeros(num_nodes, dtype=np.int64)
    place[member[: own.sum()]] = counts_up(own)
    start = offsets(own * own)[:-1]
    pair = start[clique] + place[low] * size[clique] + place[high]
    too_often = np.bincount(pair)[pair] > times[clique]
    if too_often.any():
        is_clique[clique[too_often]] = False
        inside = inside[is_clique[clique]]
    if not len(inside):
        return None
    number = np.where(is_clique, np.cumsum(is_clique) - 1, -1).astype(np.int32)
    return number[smallest], times[is_clique], inside


def _with_means(variables: Variables, member: Numbers) -> Variables:
    """The variables, and a mean for each clique; member: (clique,), one of it."""
    number = pa.array(np.arange(1, 1 + len(member)).astype(str))
    labels = pc.binary_join_element_wise(
        "mean", number, "of atoms like", variables.names.render(member), " "
    )
    return variables.with_more([real], np.zeros(len(member)), Names.listed(labels))
