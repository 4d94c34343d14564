"""Expectation propagation: settings, solution and notes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hylift.errors import IntractableError, UnsupportedError
from hylift.inference.control import Control
from hylift.inference.expectation.averaged import lower_bound
from hylift.inference.expectation.joint import FloatArray
from hylift.inference.expectation.layout import Sites, with_powers, without_constants
from hylift.inference.expectation.marginals import marginals
from hylift.inference.expectation.merging import with_larger_factors
from hylift.inference.expectation.numeric import FunctionSites
from hylift.inference.expectation.state import Propagation
from hylift.inference.loop import run_steps
from hylift.inference.message.running import (
    SETTLED,
    Decoded,
    Outcome,
    check_settings,
    posterior_of,
    view_of,
)
from hylift.inference.method import Request
from hylift.inference.prepared import Prepared, View
from hylift.inference.settings import check_ground
from hylift.numerics.segments import argmaxima
from hylift.numerics.sparse import SECONDS_PER_PRODUCT
from hylift.posterior import LogPartition, Posterior, Result
from hylift.words import Wording, counted, doubt

SECONDS_PER_NUMERIC, PER_BOUNDED, PER_SHAPE = 3e-5, 5e-4, 1.5e-3
"""For a site without closed form, at each step; for one of several coordinates with bounds, where
ridges are followed along lines; and for the marginals of its reals in the end."""
LEAST_STEPS = 3
"""Steps without which EP is not worth to begin."""


@dataclass(frozen=True, slots=True)
class EP:
    """Expectation propagation: one joint Gaussian of all reals, independent states, and a site
    for each factor that is more than that.

    A site is moved until its factor, in place of itself, would leave means, covariances and
    probabilities as they are. Marginals of reals are those with the factor in place (tilted), which
    keep its modes. On discrete graphs this is belief propagation, on Gaussian ones exact; else
    marginals and log Z are estimates, and steps may not converge (see `solution.result`).
    """

    damping: float | None = None
    """Share of its old parameters that a site keeps; by default 0.5, 0 where sites do not influence
    each other, and more where steps do not converge."""
    max_steps: int = 1000
    tolerance: float = 1e-9
    """Largest change of a probability, or of a mean or covariance in standard deviations, that a
    factor in place of its site makes, at which a site has converged."""
    merge_factors: bool = True
    """Merge factors with nested scopes into one, which leaves fewer and larger sites."""

    def __post_init__(self) -> None:
        check_settings(self.damping, self.max_steps, self.tolerance, self.merge_factors)

    @property
    def name(self) -> str:
        return "EP"

    def solve(self, prepared: Prepared, request: Request) -> Posterior:
        _check_ground(prepared)
        control = Control(request, "largest change")
        prepared.check_proper()
        prepared = without_constants(prepared)
        if self.merge_factors and prepared.ground.is_ground:
            prepared = with_larger_factors(prepared)
        view, classes = _view(
            self.name, prepared.with_ground(with_powers(prepared.ground)), request
        )
        num_classes = view.graph.num_variables if classes is None else int(classes.max()) + 1
        control.enter_level(num_classes)
        sites = Sites.of(view.graph, classes)
        control.check_fits(_least_seconds(sites, request), "EP")
        share = None if self.damping is None else 1.0 - self.damping
        state = Propagation(sites, self.tolerance, self.max_steps, share)
        _check_start(state)
        result = run_steps(state, control)
        state.tilt_all()
        is_exact = _is_exact(view, state, result)
        log_z = LogPartition(state.log_total(), "exact")
        if not is_exact:
            log_z = LogPartition(
                log_z.value, "estimate", at_least=_at_least(sites, state.probs(), control)
            )
        beliefs = marginals(state) if "marginals" in request.tasks else []

        def decode(seconds: float | None) -> Decoded:
            return Decoded(_values(state)[None])

        def draw_reals(size: int, rng: np.random.Generator) -> FloatArray:
            draws = np.tile(_values(state), (size, 1))
            draws[:, sites.joint.real] = state.solved.draw(size, rng)
            return draws

        notes = _notes(view, state, result, is_exact)
        has_reals = len(sites.joint.real) > 0
        outcome = Outcome(result, log_z, beliefs, decode, notes, draw_reals if has_reals else None)
        return posterior_of(self.name, view, outcome, control, request)


def _check_ground(prepared: Prepared) -> None:
    graph = prepared.ground
    for group in graph.groups:
        if group.potential.quadratic() is None and not group.potential.num_reals:
            names = graph.variables.names
            shown = ", ".join(f"'{names[int(at)]}'" for at in group.scope[0, :3])
            raise UnsupportedError(
                f"EP takes tables of discrete variables, and {shown}, … ({group.arity} variables) "
                "have too many joint states",
                Wording("use Exact(), BP() or Gibbs()", "use --method exact, bp or gibbs"),
            )
    if (graph.variables.num_states == 0).any():
        check_ground("EP needs a ground graph where there are reals", graph)


def _view(name: str, prepared: Prepared, request: Request) -> tuple[View, NDArray[np.int32] | None]:
    """The graph to propagate in, lifted where it is discrete; and the classes of its variables
    whose sites are tied, where there are reals: look-alikes may have different covariances, so
    that the Gaussian is that of the ground graph."""
    view = view_of(name, prepared, request)
    if not (prepared.ground.variables.num_states == 0).any():
        return view, None
    whole = View.whole(prepared)
    return whole, view.variable_to_class if request.lift == "exact" else None


def _least_seconds(sites: Sites, request: Request) -> float:
    """Predicted time of the fewest steps that are worth it, and of the marginals after them."""
    step = sites.joint.elimination.num_products * 3 * SECONDS_PER_PRODUCT
    num_bounded = 0
    for piece in sites.pieces:
        numeric = piece.numeric
        if numeric is not None:
            step += len(piece) * SECONDS_PER_NUMERIC
        if isinstance(numeric, FunctionSites) and numeric.is_bounded and piece.dim > 1:
            num_bounded += len(piece)
    step += num_bounded * PER_BOUNDED
    shapes = num_bounded * PER_SHAPE if "marginals" in request.tasks else 0.0
    return LEAST_STEPS * step + shapes


def _check_start(state: Propagation) -> None:
    """Raise if the Gaussian with averaged sites is improper."""
    joint, failed = state.sites.joint, state.solved.failed
    if failed.any():
        first = joint.steps[joint.component_ptr[np.argmax(failed)]]
        name = state.sites.points.graph.variables.names[int(joint.real[first])]
        raise IntractableError(
            f"EP cannot begin: '{name}' and the reals that it is coupled to have no proper "
            "Gaussian distribution if all states are equally probable"
        )


def _is_exact(view: View, state: Propagation, result: Result) -> bool:
    """True if nothing was approximated: a Gaussian, or a discrete forest."""
    if not len(state.sites):
        return True
    is_discrete = bool((view.graph.variables.num_states > 0).all())
    is_settled = result == "converged" and float(state.change.max(initial=0.0)) <= SETTLED
    return is_discrete and is_settled and view.prepared.is_forest


def _at_least(sites: Sites, probs: FloatArray, control: Control) -> float | None:
    """A certain lower bound on log Z: that of independent states near these (point,), beside the
    best joint Gaussian; None where there is no time for it. sites: without copies."""
    if not control.should_continue() or any(piece.numeric is not None for piece in sites.pieces):
        return None
    bound = lower_bound(sites, probs, control.should_continue)
    return bound if np.isfinite(bound) else None


def _values(state: Propagation) -> np.ndarray:
    """(variable,): the most probable state, or the mean."""
    points, joint = state.sites.points, state.sites.joint
    values = np.zeros(len(points.first) - 1)
    discrete = np.flatnonzero(np.diff(points.first))
    first = np.append(points.first[discrete], points.first[-1])
    values[discrete] = argmaxima(state.totals.logs, first)
    values[joint.real] = state.solved.mean
    return values


def _notes(view: View, state: Propagation, result: Result, is_exact: bool) -> tuple[str, ...]:
    notes = []
    if not is_exact:
        notes.append(
            "EP approximates: marginals and log Z are estimates. It may sit in one of several "
            "modes that are far apart."
        )
    open_parts = int(np.count_nonzero(~state.converged))
    if result != "converged" and open_parts:
        notes.append(
            doubt(
                f"EP did not converge in {counted(open_parts, 'part')} of "
                f"{state.sites.num_parts:,}: do not rely on the answers there. Gibbs may do better."
            )
        )
    split_parts = int(np.count_nonzero(state.converged & (state.copies > 1)))
    if split_parts:
        notes.append(
            doubt(
                f"EP converged in {counted(split_parts, 'part')} of {state.sites.num_parts:,} only "
                "with each factor as several copies of its root (power EP): the answers there may "
                "be off, in one of several modes."
            )
        )
    slow_parts = int(np.count_nonzero(state.is_slow & (state.copies == 1)))
    if slow_parts:
        notes.append(
            doubt(
                f"EP converged slowly in {counted(slow_parts, 'part')} of "
                f"{state.sites.num_parts:,}, where factors depend on each other strongly: "
                "the answers there may be off."
            )
        )
    return tuple(notes)
