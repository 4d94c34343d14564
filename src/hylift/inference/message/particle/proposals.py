"""Gaussian proposals that particles are drawn from: the first ones, and their adaptation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy import special

from hylift.errors import ModelError, UnsupportedError, proper_remedy
from hylift.graph import Evidence, FactorGraph, FactorGroup, Variables
from hylift.inference.message.layout import FloatArray, Points, own_terms
from hylift.numerics.segments import inverse
from hylift.potentials import ConditionalQuadratic
from hylift.potentials.base import QuadraticForm
from hylift.proper.gaussian import GaussianForm

REACH = 6.5
"""Distance of the outermost particles, in standard deviations of the proposals. Particles are drawn
from wider Gaussians, so that their weights fall off to both sides and sums over strata are nearly
exact."""
NOTHING = 1e-10
"""Weight of a particle that proposals need not reach."""
BEYOND, MARGIN = 1.1, 1.3
"""Distance of mass beyond a Gaussian's tails that widens a proposal, and the factor."""
FASTEST = 2.0
"""Factor by which a standard deviation grows or shrinks in a step, at most."""
FIRST_WIDTH = 2.0
"""First standard deviations, relative to those of a real given all others in the loosest state;"""
WIDEST = 1e4
"""variances at most this times those over all states."""
LOG_ROOT = 0.5 * float(np.log(2 * np.pi))


@dataclass(frozen=True, slots=True, eq=False)
class Proposals:
    """Gaussians of the distances of reals from their centres.

    Entries of discrete variables are not used.
    """

    centre: FloatArray  # (variable,)
    lower: FloatArray  # (variable,): distance of the lower bound from the centre
    upper: FloatArray  # (variable,)
    mean: FloatArray  # (variable,)
    sd: FloatArray  # (variable,)
    wider: float
    """Standard deviations of what particles are drawn from, to those of the proposals."""

    def gaps(self, num_particles: int) -> FloatArray:
        """(variable,): how far particles are apart around the mean."""
        return np.asarray(np.sqrt(2 * np.pi) * self.wider * self.sd / num_particles)

    @classmethod
    def of(
        cls, variables: Variables, centre: FloatArray, sd: FloatArray, num_particles: int
    ) -> Proposals:
        """Proposals around centres."""
        return cls(
            centre,
            variables.lower - centre,
            variables.upper - centre,
            np.zeros(len(centre)),
            sd,
            max(1.0, REACH / float(special.ndtri(1.0 - 0.5 / num_particles))),
        )

    def adapted(
        self, points: Points, particles: Particles, probs: FloatArray, damping: float
    ) -> tuple[Proposals, float]:
        """Proposals with the moments of the beliefs `probs` (point,), and their largest change, in
        standard deviations."""
        whose, count, x = points.variable, len(self.mean), particles.point
        mean = np.bincount(whose, probs * x, count)
        # A particle stands for the interval around it.
        around = (x - mean[whose]) ** 2 + _gaps(x, points) ** 2 / 12
        sd = np.sqrt(np.bincount(whose, probs * around, count))
        # Reach other modes that lie beyond a Gaussian's tails, with a margin.
        farthest = np.zeros(count)
        np.maximum.at(farthest, whose, np.where(probs > NOTHING, np.abs(x - mean[whose]), 0.0))
        needed = farthest / REACH
        sd = np.where(needed > BEYOND * sd, MARGIN * needed, sd)
        sd = np.clip(sd, self.sd / FASTEST, self.sd * FASTEST)
        found = replace(
            self,
            mean=damping * self.mean + (1.0 - damping) * mean,
            sd=self.sd**damping * sd ** (1.0 - damping),
        )
        moved = np.abs(found.mean - self.mean) / np.minimum(found.sd, self.sd)
        grown = np.abs(np.log(found.sd / self.sd))
        return found, float(np.maximum(moved, grown)[np.diff(points.first) > 0].max(initial=0.0))


def _gaps(x: FloatArray, points: Points) -> FloatArray:
    """(point,): mean distance of each particle from its neighbours."""
    first, last = points.first[points.variable], points.first[points.variable + 1] - 1
    place = np.arange(len(x))
    before, after = np.maximum(place - 1, first), np.minimum(place + 1, last)
    return np.asarray((x[after] - x[before]) / np.maximum(after - before, 1))


@dataclass(frozen=True, slots=True, eq=False)
class Particles:
    """The points of all variables; of reals their distances from the centres."""

    point: FloatArray  # (point,)
    log_base: FloatArray  # (point,): weights with which sums over points stand for integrals

    @classmethod
    def drawn(
        cls, proposals: Proposals, points: Points, states: FloatArray, at: float
    ) -> Particles:
        """One particle from each of equally probable strata, at the same position from 0 to 1.

        The same for all variables, so that look-alikes stay alike: sums run over all combinations
        of particles anyway. states: (point,), of discrete variables.
        """
        mean, sd = proposals.mean, proposals.wider * proposals.sd
        whose = points.variable
        real = (points.graph.variables.num_states == 0)[whose]
        of, count = whose[real], np.diff(points.first)[whose[real]]
        stratum = np.flatnonzero(real) - points.first[of]
        low = special.ndtr((proposals.lower - mean) / sd)
        share = special.ndtr((proposals.upper - mean) / sd) - low
        z = special.ndtri(low[of] + share[of] * (stratum + at) / count)
        point, log_base = states.copy(), np.zeros(len(states))
        point[real] = np.clip(mean[of] + sd[of] * z, proposals.lower[of], proposals.upper[of])
        z = (point[real] - mean[of]) / sd[of]
        log_base[real] = 0.5 * z**2 + LOG_ROOT + np.log(sd * share)[of] - np.log(count)
        return cls(point, log_base)


def first_proposals(graph: FactorGraph) -> tuple[FloatArray, FloatArray]:
    """(variable,): centres and standard deviations; 0 and 1 of discrete variables.

    Centres maximise the density with quadratics averaged over discrete states, and bounds replaced
    by Gaussians. Widths are those in the loosest states: adapted proposals become narrower, but
    find no other mode.
    """
    variables = graph.variables
    centre, sd = np.zeros(len(variables)), np.ones(len(variables))
    reals = np.flatnonzero(variables.num_states == 0)
    if not len(reals):
        return centre, sd
    own_id = inverse(reals, len(variables), np.int32)
    groups = [_averaged(group, form, own_id) for group, form in _quadratics(graph.groups)]
    own = variables.take(reals)
    held = _held(own, groups)
    try:
        form = GaussianForm.solved(_of_reals(own, [*groups, held]))
    except ModelError:
        form = None
    if form is None:
        form = GaussianForm.solved(_of_reals(own, [*groups, held, _dominant(own, groups)]))
    assert form is not None
    centre[reals] = np.clip(form.means, own.lower, own.upper)
    loosest = _loosest(graph)[reals] + own_terms(own, [held])[0]
    var = 1.0 / np.maximum(loosest, form.precision / WIDEST)
    var += _switching(graph, centre, reals, form.var) ** 2
    sd[reals] = FIRST_WIDTH * np.sqrt(var)
    return centre, sd


def narrowest(graph: FactorGraph) -> FloatArray:
    """(variable,): the least standard deviation that one quadratic gives a real, in any state and
    with all others fixed; infinite where there is none."""
    precision = np.zeros(graph.num_variables)
    for group, form in _quadratics(graph.groups):
        held = _precisions(form)
        most = held.max(axis=1, initial=0.0, where=np.isfinite(held))[group.row]
        np.maximum.at(precision, group.reals.ravel(), most.ravel())
    with np.errstate(divide="ignore"):
        return np.asarray(1.0 / np.sqrt(np.abs(precision)))  # -0.0 is none


def _loosest(graph: FactorGraph) -> FloatArray:
    """(variable,): the least precision that all quadratics give one member, in any state."""
    precision = np.zeros(graph.num_variables)
    for group, form in _quadratics(graph.groups):
        held = _precisions(form)
        least = np.where(np.isfinite(held), held, np.inf).min(axis=1)[group.row]
        least = np.where(np.isfinite(least), least, 0.0) * group.multiplicity[:, None]
        precision += np.bincount(group.reals.ravel(), least.ravel(), len(precision))
    return precision / graph.variables.multiplicity


def _quadratics(groups: Sequence[FactorGroup]) -> Iterator[tuple[FactorGroup, QuadraticForm]]:
    """The groups that are quadratic in some reals."""
    for group in groups:
        form = group.potential.quadratic()
        if len(group) and form is not None and form.num_reals:
            yield group, form


def _precisions(form: QuadraticForm) -> FloatArray:
    """(row, joint state, real slot): given all other reals; NaN in impossible states."""
    held = -2 * np.diagonal(form.A, axis1=-2, axis2=-1)
    return np.where(np.isfinite(form.c)[..., None], held, np.nan)


def _averaged(group: FactorGroup, form: QuadraticForm, own_id: NDArray[np.int32]) -> FactorGroup:
    """Quadratics of reals alone: averages over the possible states of discrete slots."""
    weight = _possible(form)
    A = np.einsum("rs,rsij->rij", weight, form.A)
    b = np.einsum("rs,rsi->ri", weight, form.b)
    mean = ConditionalQuadratic(A, b, np.zeros(len(b)))
    scope = own_id[group.reals]
    return group.changed(potential=mean, scope=scope)


def _possible(form: QuadraticForm) -> FloatArray:
    """(row, joint state): equal weights of the possible states."""
    possible = np.isfinite(form.c).astype(np.float64)
    return np.asarray(possible / np.maximum(possible.sum(axis=1, keepdims=True), 1.0))


def _held(variables: Variables, groups: Sequence[FactorGroup]) -> FactorGroup:
    """Gaussians in place of bounds: on an interval with the variance of a uniform density; with one
    bound alone, and no square, with that of an exponential one."""
    lower, upper = variables.lower, variables.upper
    closed = np.isfinite(lower) & np.isfinite(upper)
    with np.errstate(invalid="ignore"):
        precision = np.where(closed, 12.0 / (upper - lower) ** 2, 0.0)
        middle = np.where(closed, 0.5 * (upper + lower), 0.0)
    square, slope = own_terms(variables, groups)
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
    return _squares(variables, np.flatnonzero(precision > 0), precision, middle)


def _dominant(variables: Variables, groups: Sequence[FactorGroup]) -> FactorGroup:
    """Squares around 0 that outweigh all products of reals, for models that only bounds or discrete
    states make proper."""
    beside = np.zeros(len(variables))
    for group, form in _quadratics(groups):
        A = np.abs(form.A[group.row, 0])
        off = 2 * (A.sum(axis=2) - np.diagonal(A, axis1=1, axis2=2))
        off = group.multiplicity[:, None] * off
        beside += np.bincount(group.scope.ravel(), off.ravel(), len(variables))
    square, _ = own_terms(variables, groups)
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
    """(real,): how far discrete states push it from its centre, if they all push together."""
    push = np.zeros(graph.num_variables)
    for group, form in _quadratics(graph.groups):
        scope, weight = group.reals, _possible(form)[group.row][:, :, None]
        pull = 2 * np.einsum("fsij,fj->fsi", form.A[group.row], centre[scope])
        slope = form.b[group.row] + pull
        mean = (weight * slope).sum(axis=1, keepdims=True)
        spread = np.sqrt((weight * (slope - mean) ** 2).sum(axis=1))
        each = (group.multiplicity[:, None] * spread).ravel()
        push += np.bincount(scope.ravel(), each, graph.num_variables)
    return push[reals] / graph.variables.multiplicity[reals] * var


def _of_reals(variables: Variables, groups: Sequence[FactorGroup]) -> FactorGraph:
    return FactorGraph.unchecked(variables, groups, Evidence.none(), 0.0)
