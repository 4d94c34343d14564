"""Reals measured from an origin of their own, so that few digits are lost where they are large.

Quadratics are expanded at the origin before evidence is absorbed: with readings around 1.7e9 the
squares of the readings would cancel each other, and their differences do not.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from hylift.graph.condition import Conditioned, measurements
from hylift.graph.evidence import Evidence
from hylift.graph.factor_graph import FactorGraph
from hylift.graph.factors import FactorGroup, merge_groups
from hylift.numerics.kernels import expansion as kernels
from hylift.numerics.sparse import SymmetricFactors, connected_by, sum_of_blocks
from hylift.potentials.about import about_points
from hylift.potentials.base import FloatArray, QuadraticForm
from hylift.potentials.quadratic import ConditionalQuadratic, as_quadratic, as_table

EPS = float(np.finfo(np.float64).eps)
FEW_LOST, DIGITS = 1e-9, 28
"""Rounding error that is not worth an origin for each real, and binary digits of such origins."""
LARGEST_FACTORISED = 50_000
"""Variables of a graph up to which means of all reals are solved for together."""
OF_MEANS = 1e-3
"""Share of a rounding error that counts where there are only reals: a mean may be off by as many
deviations, which matters less than log-odds."""


class Beliefs(NamedTuple):
    """Marginals of the variables of a graph, as far as rounding errors depend on them."""

    probs: FloatArray
    """Of states of discrete variables; whatever is impossible loses no digits."""
    first: NDArray[np.int64]  # (variable,): where its states begin in `probs`
    size: FloatArray  # (variable,): root mean square of a hidden real, from its origin


class Lost(NamedTuple):
    """Rough rounding errors that evaluating factors leaves."""

    total: float
    """Of log Z."""
    marginal: float
    """Of the log-odds of states, in the connected part where it is largest; less of reals alone."""


def shifted(groups: list[FactorGroup], at: FloatArray) -> tuple[FactorGroup, ...]:
    """The same factors of reals less at (variable,); quadratics only."""
    found = []
    for group in groups:
        form, origin = about_points(group.potential)
        x = at[group.reals]
        # Differences of reals do not change where all of them move together.
        together = (form.A.sum(axis=-1) == 0).all(axis=(1, 2)) & (form.b == 0).all(axis=(1, 2))
        still = together[group.row] & (x == x[:, :1]).all(axis=1) | (x == 0).all(axis=1)
        if origin.any():
            still[:] = False
        if still.any():
            found.append(group.take(np.flatnonzero(still)))
        some = group.take(np.flatnonzero(~still))
        if len(some):
            row = np.arange(len(some), dtype=np.int32)
            slope = np.empty((len(some), *form.b.shape[1:]))
            value = np.empty(slope.shape[:2])
            kernels.expand(*form, some.row, _from(origin, some.row, x[~still]), slope, value)
            moved = QuadraticForm(form.A[some.row], slope, value)
            sizes = group.potential.slot_states[: group.potential.num_discrete_slots]
            potential = ConditionalQuadratic.of_form(moved, sizes)
            found.append(some.changed(potential=potential, row=row))
    return merge_groups(found)


def _from(origin: FloatArray, row: NDArray[np.int32], x: FloatArray) -> FloatArray:
    """(factor, joint state or 1, real): points x (factor, real) less the origins of their rows."""
    own = origin[row] if len(origin) > 1 else origin
    return np.ascontiguousarray(x[:, None, :] - own)


def is_quadratic(group: FactorGroup) -> bool:
    return len(group) > 0 and as_quadratic(group.potential) is not None


def _parted(groups: Iterable[FactorGroup]) -> tuple[list[FactorGroup], list[FactorGroup]]:
    """Quadratics with reals, and all others."""
    found: tuple[list[FactorGroup], list[FactorGroup]] = [], []
    for group in groups:
        found[not is_quadratic(group)].append(group)
    return found


@dataclass(frozen=True, slots=True, eq=False)
class ByOrigin:
    """A graph in standard form, with its evidence absorbed but for that of quadratics, whose values
    may be large and cancel."""

    graph: FactorGraph
    quadratics: list[FactorGroup]
    rest: Conditioned
    """All other factors, without measurements with errors."""

    @classmethod
    def of(cls, graph: FactorGraph) -> ByOrigin:
        early, late = _parted(graph.groups)
        hard = graph.evidence.is_hard
        seen = Evidence.of(graph.evidence.variable[hard], graph.evidence.value[hard])
        rest = Conditioned.of(FactorGraph.unchecked(graph.variables, late, seen, 0.0))
        return cls(graph, early, rest)

    def centred(self, origin: FloatArray) -> FactorGraph:
        """The graph of hidden variables with all evidence absorbed, each real less its origin
        (variable,), which is 0 of discrete and observed variables, and of `fixed_reals`.

        Each quadratic has at most the value 0 at the origin: the rest is in the constant of the
        graph.
        """
        graph, rest = self.graph, self.rest
        at, evidence = self._points(origin), graph.evidence
        is_real = graph.variables.num_states[evidence.variable] == 0
        value = np.where(is_real, evidence.value - at[evidence.variable], evidence.value)
        moved = Evidence.of(evidence.variable, value, evidence.var)
        early = shifted(self.quadratics, at)
        first = Conditioned.of(
            FactorGraph.unchecked(graph.variables, early, moved, graph.log_constant)
        )
        closed, others = _parted(rest.graph.groups)
        groups = merge_groups(
            [
                *first.graph.groups,
                *shifted(closed, origin[rest.hidden]),
                *others,
            ]
        )
        constant, found = first.graph.log_constant + rest.graph.log_constant, []
        for group in groups:
            if is_quadratic(group):
                group, added = _levelled(group)
                constant += added
            found.append(group)
        return FactorGraph.unchecked(first.graph.variables, found, Evidence.none(), constant)

    def lost(
        self,
        origin: FloatArray,
        beliefs: Beliefs | None = None,
        part: NDArray[np.int32] | None = None,
    ) -> Lost:
        """Rough rounding errors from evaluating the quadratics at an origin (variable,); without
        beliefs a bound, for reals at their origins.

        A relative error of eps in a term changes log Z by eps times the term, even where other
        terms cancel it. Terms without reals change no odds where one state is certain.
        part: (variable,), the connected part of a hidden one, and -1 of others; by default all are
        one
        """
        is_discrete = self.graph.variables.num_states > 0
        return _lost(self._expanded(origin), is_discrete, beliefs, part)

    def _points(self, origin: FloatArray) -> FloatArray:
        """(variable,): the origin of hidden reals, and observed values."""
        at, evidence = origin.copy(), self.graph.evidence
        seen = evidence.is_hard & (self.graph.variables.num_states[evidence.variable] == 0)
        at[evidence.variable[seen]] = evidence.value[seen]
        return at

    def _expanded(
        self, origin: FloatArray
    ) -> Iterator[tuple[FactorGroup, FloatArray, NDArray[np.int64]]]:
        """All quadratics, with the points at which they are expanded, and the ids of their
        variables."""
        graph, rest = self.graph, self.rest
        at, every = self._points(origin), np.arange(graph.num_variables)
        yield from ((group, at, every) for group in self.quadratics)
        measured = np.flatnonzero(~graph.evidence.is_hard)
        if len(measured):
            yield measurements(graph, measured), at, every
        for group in rest.graph.groups:
            if is_quadratic(group):
                yield group, origin[rest.hidden], rest.hidden


def _levelled(group: FactorGroup) -> tuple[FactorGroup, float]:
    """Quadratics whose best state has the value 0 at the origin, and what was taken off."""
    quadratic = as_quadratic(group.potential)
    assert quadratic is not None
    axes = tuple(range(1, quadratic.c.ndim))
    top = quadratic.c.max(axis=axes, keepdims=True)
    top = np.where(np.isfinite(top), top, 0.0)
    potential = ConditionalQuadratic(quadratic.A, quadratic.b, quadratic.c - top)
    added = float(group.multiplicity @ top.reshape(-1)[group.row])
    return group.changed(potential=potential), added


def fixed_reals(graph: FactorGraph) -> NDArray[np.bool_]:
    """(variable,): reals that keep the origin 0: with bounds, or in functions; graph: hidden."""
    variables = graph.variables
    fixed = np.isfinite(variables.lower) | np.isfinite(variables.upper)
    for group in graph.groups:
        if not is_quadratic(group) and group.potential.num_reals:
            fixed[group.reals] = True
    return np.asarray(fixed | (variables.num_states > 0))


def typical_origin(graph: FactorGraph) -> FloatArray:
    """(variable,): the median, over the reals that factors couple, of the means that factors of
    one real have where they are most precise; graph: hidden."""
    scopes, ids, means = [], [], []
    for group in graph.groups:
        if not is_quadratic(group):
            continue
        reals, form = group.reals, group.potential.quadratic()
        assert form is not None
        scopes.append(reals)
        if reals.shape[1] == 1:
            A = np.where(np.isfinite(form.c), form.A[..., 0, 0], 0.0)
            best = np.argmin(A, axis=1)[:, None]
            A, b = np.take_along_axis(A, best, 1)[:, 0], np.take_along_axis(form.b[..., 0], best, 1)
            some = np.flatnonzero((A < 0)[group.row])
            ids.append(reals[some, 0])
            means.append((-0.5 * b[:, 0] / np.where(A < 0, A, -1.0))[group.row[some]])
    origin = np.zeros(graph.num_variables)
    if not ids:
        return origin
    component = connected_by(graph.num_variables, scopes)
    of, mean = component[np.concatenate(ids)], np.concatenate(means)
    order = np.lexsort((mean, of))
    start = np.flatnonzero(np.append(True, np.diff(of[order]) > 0))
    count = np.diff(np.append(start, len(order)))
    typical = np.zeros(int(component.max()) + 1)
    typical[of[order[start]]] = mean[order[start + count // 2]]
    return np.asarray(np.where(fixed_reals(graph), 0.0, typical[component]))


def likely_means(graph: FactorGraph) -> FloatArray | None:
    """(variable,): means of reals if each factor is in the state where it is most precise, to some
    digits, so that look-alikes have the same; None if there are none. graph: hidden"""
    blocks, linear = [], np.zeros(graph.num_variables)
    for group in filter(is_quadratic, graph.groups):
        form, row = group.potential.quadratic(), group.row
        assert form is not None
        precision = np.where(np.isfinite(form.c), -np.trace(form.A, axis1=2, axis2=3), -np.inf)
        at, times = (row, np.argmax(precision, axis=1)[row]), group.multiplicity
        blocks.append((group.reals, -2.0 * form.A[at] * times[:, None, None]))
        np.add.at(linear, group.reals, form.b[at] * times[:, None])
    J = sum_of_blocks(blocks, graph.num_variables)
    bare = (J.diagonal() <= 0.0).astype(float)
    if not 0 < graph.num_variables <= LARGEST_FACTORISED:
        return None
    means = SymmetricFactors.solution(J + sp.diags_array(bare), linear)
    if means is None:
        return None
    fraction, exponent = np.frexp(means)
    mean = np.ldexp(np.round(np.ldexp(fraction, DIGITS)), exponent - DIGITS)
    return np.where(fixed_reals(graph) | ~np.isfinite(mean), 0.0, mean)


def far_origin(graph: FactorGraph, ids: NDArray[np.int64], source: ByOrigin) -> FloatArray:
    """(variable of the source,): an origin for its hidden reals, at which few digits are lost.

    graph: of the hidden variables, which have these ids in the source
    """
    origin = np.zeros(source.graph.num_variables)
    origin[ids] = typical_origin(graph)  # which look-alikes have in common
    lost = source.lost(origin).total
    if lost > FEW_LOST and (means := likely_means(graph)) is not None:
        other = np.zeros(source.graph.num_variables)
        other[ids] = means
        if 10.0 * source.lost(other).total < lost:
            return other
    return origin


def lost_in_tables(
    graph: FactorGraph, ids: NDArray[np.int64], beliefs: Beliefs | None, part: NDArray[np.int32]
) -> Lost:
    """Rough rounding errors of the tables of hidden variables, which have these ids: large
    log-values lose digits where they cancel."""
    at = np.zeros(graph.num_variables)
    tables = (group for group in graph.groups if as_table(group.potential) is not None)
    every = np.ones(len(part), dtype=bool)
    return _lost(((group, at, ids) for group in tables), every, beliefs, part)


def _lost(
    groups: Iterable[tuple[FactorGroup, FloatArray, NDArray[np.int64]]],
    is_discrete: NDArray[np.bool_],
    beliefs: Beliefs | None,
    part: NDArray[np.int32] | None,
) -> Lost:
    """Of factors, with the points at which they are expanded, and the ids of their variables.

    is_discrete: (variable,), by these ids
    """
    total, by_part = 0.0, np.zeros(1 if part is None else int(part.max(initial=0)) + 1)
    has_states = np.full(len(by_part), part is None and bool(is_discrete.any()))
    if part is not None:
        has_states[part[is_discrete & (part >= 0)]] = True
    probs = np.zeros(0) if beliefs is None else beliefs.probs
    for group, at, ids in groups:
        (form, about), reals = about_points(group.potential), group.reals
        num_discrete = group.potential.num_discrete_slots
        sizes = np.array(group.potential.slot_states[:num_discrete], dtype=np.int64)
        first = np.zeros((len(group), len(sizes)), dtype=np.int64)
        size, own = np.zeros(reals.shape), np.zeros(len(group), dtype=np.int32)
        if part is not None:
            own = part[ids[group.scope]].max(axis=1)
        if beliefs is not None:
            first = beliefs.first[ids[group.scope[:, : len(sizes)]]]
            size = beliefs.size[ids[reals]]
        x = _from(about, group.row, at[reals])
        total += kernels.lost(
            *form, group.row, x, size, group.multiplicity, first, sizes, probs, own, by_part
        )
    by_part[~has_states] *= OF_MEANS
    return Lost(EPS * total, EPS * float(by_part.max(initial=0.0)))
