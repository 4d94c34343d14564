"""Exact inference: settings and solution."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hylift.errors import UnsupportedError
from hylift.graph import FactorGraph
from hylift.inference.control import Control
from hylift.inference.exact.draws import draw
from hylift.inference.exact.elimination import FloatArray, check_tables
from hylift.inference.exact.expected import expected_sums
from hylift.inference.exact.integral import Integral, integrate
from hylift.inference.exact.maximum import maximise
from hylift.inference.exact.meter import SECONDS_PER_FACTOR, Meter
from hylift.inference.exact.nodes.axes import Axes
from hylift.inference.exact.nodes.placement import density_panels
from hylift.inference.exact.one_pass import PassResult
from hylift.inference.finish import Answer, finish
from hylift.inference.method import Request
from hylift.inference.prepared import Prepared
from hylift.inference.settings import check_ground, refuse_start
from hylift.numerics.segments import offsets
from hylift.posterior import Assignment, GaussianMixture, LogPartition, PiecewiseDensity, Posterior
from hylift.posterior.distributions import BatchedDistribution
from hylift.posterior.marginals import Batches, categoricals
from hylift.rewrite.kinds import Kinds
from hylift.words import doubt

LEAST_TOLERANCE = 1e-13

UNRESOLVED = 1e-3
"""Difference of moments, in deviations, from which on a density counts as not resolved."""

LEAST_WEIGHT = 1e-18
"""Weight of a Gaussian at the node of a lattice that is left out of a marginal."""

LARGEST = 1e290
"""Finite log-values beyond this, in size, are refused: their sums would pass for infinite ones."""


@dataclass(frozen=True, slots=True)
class Exact:
    """Exact marginals, log Z and MAP, or an error that names the obstacle.

    Answers are estimates, and say so, with a user's own functions, with unknown variances and
    scales, and where rounding errors are large.

    Discrete variables are eliminated in tables, Gaussian reals by sparse factorisation; reals
    that depend on discrete variables come out as exact Gaussian mixtures, or where these would be
    too many, as densities on lattices, whose error is bounded. Reals on an interval are integrated
    numerically where their bounds matter.
    """

    max_entries: int = 2**28
    """Largest table (or set of Gaussians) that may be built, in numbers of eight bytes."""
    tolerance: float = 1e-9
    """Error allowed to log Z, and to any probability, where reals have bounds."""
    map_seconds: float = 60.0
    """Time that MAP may spend on branch and bound, where tables would not fit."""

    def __post_init__(self) -> None:
        if not self.max_entries >= 1:
            raise UnsupportedError(f"max_entries must be at least 1, not {self.max_entries}")
        if not self.tolerance >= LEAST_TOLERANCE:
            raise UnsupportedError(
                f"tolerance must be at least {LEAST_TOLERANCE:g}, not {self.tolerance}: "
                "rounding allows no less"
            )
        if not self.map_seconds > 0:
            raise UnsupportedError(f"map_seconds must be positive, not {self.map_seconds}")

    @property
    def name(self) -> str:
        return "exact"

    def solve(self, prepared: Prepared, request: Request) -> Posterior:
        refuse_start("Exact", request.start)
        control = Control(request)
        limit, whole = request.seconds, prepared.whole or prepared
        meter = Meter(request.progress, np.inf if limit is None else limit, request.began)
        meter.seconds = SECONDS_PER_FACTOR * whole.source.num_factors
        kinds = _kinds_of(prepared.ground)
        log_partition, marginals, objective, expect, drawn = None, None, None, None, None
        notes: tuple[str, ...] = ()
        settled, marginal_error = True, None
        if request.tasks & {"marginals", "logz"}:
            num_states = kinds.graph.variables.num_states
            check_tables(num_states, [g.scope for g in kinds.tables], self.max_entries)
            integral = integrate(
                kinds,
                max_entries=self.max_entries,
                tolerance=self.tolerance,
                marginals="marginals" in request.tasks,
                meter=meter,
            )
            notes, settled = integral.notes, integral.settled
            marginal_error = integral.marginal_error
            log_partition = LogPartition(integral.outcome.log_total, integral.kind, integral.error)
            if "marginals" in request.tasks:
                marginals = _marginals(kinds, integral)
                if doubt := _unresolved(kinds, integral.outcome, marginals):
                    notes, settled = (*notes, doubt), False
            objective = -log_partition.value
            reals = integral.outcome.reals
            expect = functools.partial(expected_sums, kinds, reals, max_entries=self.max_entries)
            drawn = functools.partial(draw, kinds, reals, max_entries=self.max_entries)

        @functools.cache
        def best() -> Assignment:
            values, energy, kind, gap = maximise(
                kinds,
                max_entries=self.max_entries,
                seconds=self.map_seconds,
                progress=request.progress,
            )
            return prepared.assignment(values, energy, kind, gap)

        answer = Answer(
            "converged" if settled else "max_steps",
            objective,
            notes,
            lambda *_: best(),
            log_partition,
            marginals,
            expect=expect,
            draw=drawn,
            steps=kinds.graph.num_variables,
            predicted_seconds=meter.seconds,
            marginal_error=marginal_error,
        )
        return finish(self.name, prepared, request, control, answer)


def _kinds_of(graph: FactorGraph) -> Kinds:
    """The factors of a ground graph without evidence; raises where they cannot be computed with."""
    check_ground("exact inference needs a ground graph", graph)
    kinds = Kinds.of(graph)
    found = 0.0 if kinds.log_constant == -np.inf else abs(kinds.log_constant)
    whose = "the factors of what is observed add up to"
    for group in kinds.tables:
        values = group.potential.flat
        largest = np.abs(values).max(axis=1, where=values > -np.inf, initial=0.0)
        if largest.max(initial=0.0) * group.multiplicity.max(initial=1.0) <= LARGEST:
            continue
        of_factor = largest[group.row] * group.multiplicity
        worst = int(np.argmax(of_factor))
        if of_factor[worst] > found:
            found = float(of_factor[worst])
            names = ", ".join(f"'{graph.variables.names[v]}'" for v in group.scope[worst].tolist())
            whose = f"a factor of {names} has"
    if not found <= LARGEST:
        raise UnsupportedError(
            f"exact inference computes with finite log-values up to {LARGEST:.0e}, and {whose} "
            f"{found:.3g}. A rule that must hold has the weight inf, and what is impossible the "
            "log-value -inf."
        )
    return kinds


def _marginals(kinds: Kinds, integral: Integral) -> Batches:
    """Batches of one family and size each, with the positions of their variables."""
    outcome = integral.outcome
    assert outcome.marginals is not None
    axes = outcome.reals.axes
    batches = categoricals(kinds.graph.variables, axes.first, outcome.marginals)
    if len(axes.real):
        shape = len(axes.real), axes.edges.shape[1] - 1, -1
        panels = (axes.on_nodes(outcome.marginals) / axes.weights).reshape(shape)
        log_density = axes.log_density(outcome.marginals).reshape(shape)
        bent = axes.scale.unit > 0
        for rows in (np.flatnonzero(~bent), np.flatnonzero(bent)):
            if not len(rows):
                continue
            edges, values = axes.edges[rows], panels[rows]
            if bent[rows[0]]:
                edges, values = density_panels(axes.scale.take(rows), edges, log_density[rows])
            found = PiecewiseDensity.from_gauss_legendre(edges, values)
            good = _moments_off(axes, outcome.marginals, rows, found) <= UNRESOLVED
            batches.append((axes.real[rows[good]], found[good]))
            if not good.all():
                linear = _between_nodes(axes, outcome.marginals, rows[~good])
                batches.append((axes.real[rows[~good]], linear))

    if outcome.reals.promoted is not None:
        batches += outcome.reals.promoted.lattice.densities(outcome.on_lattice)
    return [*batches, *_mixtures(outcome)]


def _moments_off(
    axes: Axes, marginals: FloatArray, rows: NDArray[Any], found: PiecewiseDensity
) -> FloatArray:
    """(row,): how far mean and deviation of densities are from those of nodes, in deviations."""
    probs, nodes = axes.on_nodes(marginals)[rows], axes.nodes[rows]
    likeliest = np.take_along_axis(nodes, np.argmax(probs, axis=1)[:, None], axis=1)
    mean = likeliest[:, 0] + (probs * (nodes - likeliest)).sum(axis=1)
    std = np.sqrt((probs * (nodes - mean[:, None]) ** 2).sum(axis=1))
    with np.errstate(divide="ignore", invalid="ignore"):
        off = np.abs(np.asarray(found.mean) - mean) / std
        off = np.maximum(off, np.abs(np.asarray(found.std) / std - 1))
    return np.where(np.isnan(off), 0.0, off)


def _between_nodes(axes: Axes, marginals: FloatArray, rows: NDArray[Any]) -> PiecewiseDensity:
    """Densities that are linear between nodes, where series through them have not converged."""
    nodes = axes.nodes[rows]
    density = axes.on_nodes(marginals)[rows] / axes.weights[rows]
    share = 0.5 + 0.5 * np.array([-1.0, 1.0]) / np.sqrt(3.0)
    values = density[:, :-1, None] * (1 - share) + density[:, 1:, None] * share
    return PiecewiseDensity.from_gauss_legendre(nodes, values)


def _unresolved(
    kinds: Kinds,
    outcome: PassResult,
    marginals: Batches,
) -> str | None:
    """A note on reals whose density between nodes does not have the moments of the nodes."""
    axes = outcome.reals.axes
    assert outcome.marginals is not None
    for ids, found in marginals:
        if isinstance(found, PiecewiseDensity) and len(ids) and (axes.row[ids] >= 0).all():
            off = _moments_off(axes, outcome.marginals, axes.row[ids], found)
            if off.max() > UNRESOLVED:
                name = kinds.graph.variables.names[int(ids[np.argmax(off)])]
                return doubt(
                    f"The density of '{name}' is not resolved between its nodes: its mean or "
                    f"deviation may be off by {off.max():.1g} deviations."
                )
    return None


def _mixtures(outcome: PassResult) -> Iterator[tuple[NDArray[Any], BatchedDistribution]]:
    """The free reals: a Gaussian for every state of their component that is not negligible."""
    components, gaussian = outcome.reals.components, outcome.reals.gaussian
    assert outcome.weights is not None
    count = np.diff(gaussian.state_ptr)
    kept = np.arange(len(outcome.weights))
    if outcome.reals.promoted is not None:
        kept = np.flatnonzero(outcome.weights > LEAST_WEIGHT)
        count = np.bincount(np.repeat(np.arange(len(count)), count)[kept], minlength=len(count))
    first = offsets(count)[:-1]
    # Batches of equal sizes; the rest of a row has no weight.
    room = count if outcome.reals.promoted is None else 2 ** np.ceil(np.log2(count)).astype(int)
    for size in np.unique(room[components.of_step]):
        steps = np.flatnonzero(room[components.of_step] == size)
        own = components.of_step[steps]
        place = np.minimum(np.arange(size), count[own][:, None] - 1)
        shared = kept[first[own][:, None] + place]
        weights = np.where(np.arange(size) < count[own][:, None], outcome.weights[shared], 0.0)
        weights /= weights.sum(axis=1, keepdims=True)
        at = gaussian.real_ptr[steps][:, None] + shared - gaussian.state_ptr[own][:, None]
        mixture = GaussianMixture(weights, gaussian.mean[at], gaussian.var[at])
        yield components.real[steps], mixture
