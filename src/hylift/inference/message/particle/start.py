"""First proposals: where quadratics and bounds say that reals may be."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from hylift.errors import ModelError, UnsupportedError, proper_remedy
from hylift.graph import Evidence, FactorGraph, FactorGroup, Variables
from hylift.inference.message.links import FloatArray
from hylift.potentials import REAL, ConditionalQuadratic
from hylift.proper.gaussian import GaussianForm

FIRST_WIDTH = 2.0
"""First standard deviations, to those that a real has given all others, in the state that holds it
least;"""
WIDEST = 1e4
"""or, in terms of variances, at most this times as much as over all states."""


def first_proposals(graph: FactorGraph) -> tuple[FloatArray, FloatArray]:
    """(variable,): centres and standard deviations; 0 and 1 of discrete variables.

    Quadratics are averaged over the states of discrete variables, and bounds are taken for
    Gaussians. The centres are where the density of the reals is then largest. Widths are those in
    the states that hold reals least: adapted proposals become narrower, but find no other mode.
    """
    variables = graph.variables
    centre, sd = np.zeros(len(variables)), np.ones(len(variables))
    reals = np.flatnonzero(variables.num_states == 0)
    if not len(reals):
        return centre, sd
    own_id = np.full(len(variables), -1, dtype=np.int32)
    own_id[reals] = np.arange(len(reals))
    groups = [
        _averaged(group, own_id)
        for group in graph.groups
        if isinstance(group.potential, ConditionalQuadratic) and len(group)
    ]
    own = variables.take(reals)
    held = _held(own, groups)
    try:
        form = GaussianForm.solved(_of_reals(own, [*groups, *held]))
    except ModelError:
        form = None
    if form is None:
        form = GaussianForm.solved(_of_reals(own, [*groups, *held, _dominant(own, groups)]))
    assert form is not None
    centre[reals] = np.clip(form.means, own.lower, own.upper)
    loosest = _loosest(graph)[reals] + _own(own, held)[0]
    var = 1.0 / np.maximum(loosest, form.precision / WIDEST)
    var += _switching(graph, centre, reals, form.var) ** 2
    sd[reals] = FIRST_WIDTH * np.sqrt(var)
    return centre, sd


def narrowest(graph: FactorGraph) -> FloatArray:
    """(variable,): the least standard deviation that one quadratic gives a real, in some state and
    with all others fixed; infinite where there is none."""
    precision = np.zeros(graph.num_variables)
    for group, held in _precisions(graph):
        most = held.max(axis=1, initial=0.0, where=np.isfinite(held))[group.row]
        np.maximum.at(precision, _reals(group).ravel(), most.ravel())
    with np.errstate(divide="ignore"):
        return np.asarray(1.0 / np.sqrt(precision))


def _loosest(graph: FactorGraph) -> FloatArray:
    """(variable,): the least precision that all quadratics give one member, whatever the states."""
    precision = np.zeros(graph.num_variables)
    for group, held in _precisions(graph):
        least = np.where(np.isfinite(held), held, np.inf).min(axis=1)[group.row]
        least = np.where(np.isfinite(least), least, 0.0) * group.multiplicity[:, None]
        precision += np.bincount(_reals(group).ravel(), least.ravel(), len(precision))
    return precision / graph.variables.multiplicity


def _precisions(graph: FactorGraph) -> Iterator[tuple[FactorGroup, FloatArray]]:
    """Quadratics, and the precision (row, joint state, real slot) that each gives its reals; NaN
    in states that are impossible."""
    for group in graph.groups:
        potential = group.potential
        if isinstance(potential, ConditionalQuadratic) and len(group):
            held = -2 * np.diagonal(potential.A, axis1=-2, axis2=-1)
            held = np.where(np.isfinite(potential.c)[..., None], held, np.nan)
            yield group, held.reshape(len(held), -1, potential.num_reals)


def _reals(group: FactorGroup) -> NDArray[np.int32]:
    """(factor, real slot)"""
    states = group.potential.slot_states
    return group.scope[:, sum(size != REAL for size in states) :]


def _averaged(group: FactorGroup, own_id: NDArray[np.int32]) -> FactorGroup:
    """Quadratics of reals alone: the averages over the possible states of discrete slots."""
    potential = group.potential
    assert isinstance(potential, ConditionalQuadratic)
    rows, reals = potential.num_rows, potential.num_reals
    weight = _possible(potential)
    A = np.einsum("rs,rsij->rij", weight, potential.A.reshape(rows, -1, reals, reals))
    b = np.einsum("rs,rsi->ri", weight, potential.b.reshape(rows, -1, reals))
    scope = own_id[group.scope[:, potential.num_discrete :]]
    mean = ConditionalQuadratic(A, b, np.zeros(rows))
    return FactorGroup.unchecked(mean, scope, group.row, group.multiplicity, group.label)


def _possible(potential: ConditionalQuadratic) -> FloatArray:
    """(row, joint state): equal weights of the states that are possible."""
    possible = np.isfinite(potential.c.reshape(potential.num_rows, -1)).astype(np.float64)
    return np.asarray(possible / np.maximum(possible.sum(axis=1, keepdims=True), 1.0))


def _held(variables: Variables, groups: Sequence[FactorGroup]) -> list[FactorGroup]:
    """What bounds add: on an interval the precision of a uniform density.

    With one bound alone a real that no square holds falls off exponentially, if at all.
    """
    lower, upper = variables.lower, variables.upper
    closed = np.isfinite(lower) & np.isfinite(upper)
    with np.errstate(invalid="ignore"):
        precision = np.where(closed, 12.0 / (upper - lower) ** 2, 0.0)
        middle = np.where(closed, 0.5 * (upper + lower), 0.0)
    square, slope = _own(variables, groups)
    loose = ~closed & ~(square > 0)
    bound = np.where(np.isfinite(lower), lower, upper)
    falls = np.where(np.isfinite(lower), -slope, slope)
    lost = loose & ~(np.isfinite(bound) & (falls > 0))
    if lost.any():
        name = variables.names[int(np.argmax(lost))]
        raise UnsupportedError(
            f"EPBP cannot choose first particles for '{name}', which has no bounds and no "
            f"quadratic factor with a maximum: {proper_remedy(name)}"
        )
    precision[loose] = falls[loose] ** 2
    middle[loose] = (bound + np.where(np.isfinite(lower), 1, -1) / np.where(loose, falls, 1))[loose]
    return [_squares(variables, np.flatnonzero(precision > 0), precision, middle)]


def _own(variables: Variables, groups: Sequence[FactorGroup]) -> tuple[FloatArray, FloatArray]:
    """(variable,): precision given all others, and slope at 0, of one member."""
    square, slope = np.zeros(len(variables)), np.zeros(len(variables))
    for group in groups:
        A, b = group.potential.A[group.row], group.potential.b[group.row]  # type: ignore[attr-defined]
        weight = group.multiplicity[:, None]
        diagonal = np.diagonal(A, axis1=1, axis2=2)
        at = group.scope.ravel()
        square += np.bincount(at, (-2 * weight * diagonal).ravel(), len(variables))
        slope += np.bincount(at, (weight * b).ravel(), len(variables))
    return square / variables.multiplicity, slope / variables.multiplicity


def _dominant(variables: Variables, groups: Sequence[FactorGroup]) -> FactorGroup:
    """Squares around 0 that outweigh all products of reals, for a start where nothing else is a
    distribution: bounds or discrete states make it one."""
    beside = np.zeros(len(variables))
    for group in groups:
        A = np.abs(group.potential.A[group.row])  # type: ignore[attr-defined]
        off = 2 * (A.sum(axis=2) - np.diagonal(A, axis1=1, axis2=2))
        off = group.multiplicity[:, None] * off
        beside += np.bincount(group.scope.ravel(), off.ravel(), len(variables))
    square, _ = _own(variables, groups)
    missing = 1.01 * beside / variables.multiplicity + np.maximum(-square, 0.0)
    return _squares(variables, np.flatnonzero(missing > 0), missing, np.zeros(len(variables)))


def _squares(
    variables: Variables, ids: NDArray[np.int64], precision: FloatArray, middle: FloatArray
) -> FactorGroup:
    """-½ precision (x - middle)² for some reals."""
    p, m = precision[ids], middle[ids]
    potential = ConditionalQuadratic(-0.5 * p[:, None, None], (p * m)[:, None], -0.5 * p * m**2)
    row = np.arange(len(ids), dtype=np.int32)
    scope = ids.astype(np.int32)[:, None]
    return FactorGroup.unchecked(potential, scope, row, variables.multiplicity[ids], "bounds")


def _switching(
    graph: FactorGraph, centre: FloatArray, reals: NDArray[np.int64], var: FloatArray
) -> FloatArray:
    """(real,): how far discrete states push each real from its centre, if they do so together."""
    push = np.zeros(graph.num_variables)
    for group in graph.groups:
        potential = group.potential
        if not isinstance(potential, ConditionalQuadratic) or not potential.num_discrete:
            continue
        rows, size = potential.num_rows, potential.num_reals
        A = potential.A.reshape(rows, -1, size, size)[group.row]
        b = potential.b.reshape(rows, -1, size)[group.row]
        scope = group.scope[:, potential.num_discrete :]
        weight = _possible(potential)[group.row][:, :, None]
        slope = b + 2 * np.einsum("fsij,fj->fsi", A, centre[scope])
        mean = (weight * slope).sum(axis=1, keepdims=True)
        spread = np.sqrt((weight * (slope - mean) ** 2).sum(axis=1))
        each = (group.multiplicity[:, None] * spread).ravel()
        push += np.bincount(scope.ravel(), each, graph.num_variables)
    return push[reals] / graph.variables.multiplicity[reals] * var


def _of_reals(variables: Variables, groups: Sequence[FactorGroup]) -> FactorGraph:
    return FactorGraph.unchecked(variables, groups, Evidence.none(), 0.0)
