"""A method applied to the graph that suits it, and the way back."""

from __future__ import annotations

import functools
from dataclasses import replace

from hylift.errors import MethodError
from hylift.inference.capabilities import info_of
from hylift.inference.centring import near_origin, solve_centred, with_rounding
from hylift.inference.method import Method, Request
from hylift.inference.prepared import Prepared
from hylift.inference.restored import restored
from hylift.inference.started import started
from hylift.posterior import LogPartition, Posterior
from hylift.posterior.answers import is_exact
from hylift.rewrite.parts import parts_by_copies


def rewritten_for(
    method: Method, prepared: Prepared, rewrites: tuple[str, ...] | None, *, maximise: bool = False
) -> Prepared:
    """The graph that suits a method."""
    helpful = info_of(method).rewrites
    names = helpful if rewrites is None else rewrites
    # Other methods solve look-alike parts once by lifting.
    names = tuple(name for name in names if name != "parts" or name in helpful)
    return prepared.rewritten(names, maximise=maximise)


def solve(
    method: Method,
    prepared: Prepared,
    request: Request,
    rewrites: tuple[str, ...] | None,
    own: Prepared | None = None,
) -> Posterior:
    """The posterior by a method, of the graph that suits it: `own`, where it is known."""
    if request.tasks == {"map"} or not info_of(method).is_centred:
        near = prepared
        if request.start is None and request.lift != "coarse-to-fine":  # which know of the evidence
            near = near_origin(prepared)
        own = own if near is prepared else None
        found = _solve_once(method, near, request, rewrites, own)
        return found if request.tasks == {"map"} else with_rounding(found, near)

    def solve_once(centred: Prepared) -> Posterior:
        known = own if centred is prepared else None
        return _solve_once(method, centred, request, rewrites, known)

    return solve_centred(solve_once, prepared)


def _solve_once(
    method: Method,
    prepared: Prepared,
    request: Request,
    rewrites: tuple[str, ...] | None,
    own: Prepared | None,
) -> Posterior:
    own = own or rewritten_for(method, prepared, rewrites)
    if request.start is not None:
        request = replace(request, start=started(request.start, own))
    if own.keeps_maximum:
        return restored(_solved(method, own, request), own)

    @functools.cache
    def to_maximise() -> Posterior:
        other = rewritten_for(method, prepared, rewrites, maximise=True)
        only = replace(request, tasks=frozenset({"map"})).within(request.seconds)
        return restored(_solved(method, other, only), other)

    sums = request.tasks - {"map"}
    if not sums:
        return to_maximise()
    found = _solved(method, own, replace(request, tasks=sums))
    posterior = restored(found, own, lambda: to_maximise().map())
    return (
        replace(posterior, assignment=to_maximise().map()) if "map" in request.tasks else posterior
    )


def _solved(method: Method, prepared: Prepared, request: Request) -> Posterior:
    """The posterior of a prepared graph, with log Z of all copies of its parts."""
    posterior = method.solve(prepared, request)
    if not isinstance(posterior, Posterior):
        raise MethodError(f"solve returned {posterior!r}, not a Posterior")
    copies = prepared.rewrites[-1].copies if prepared.rewrites else None
    log_z = posterior.log_partition
    if copies is None or log_z is None:
        return posterior
    graphs = parts_by_copies(prepared.source, copies)
    weights, parts = [weight for weight, _ in graphs], [log_z]
    seconds = posterior.solution.predicted_seconds
    if len(graphs) > 1:
        alone = replace(request, tasks=frozenset({"logz"}), checkpoint=None)
        found = [method.solve(Prepared.of(graph), alone) for _, graph in graphs]
        parts = [one.log_partition for one in found if one.log_partition is not None]
        if seconds is not None:
            seconds += sum(one.solution.predicted_seconds or 0.0 for one in found)
    assert prepared.whole is not None
    graphs_before = (prepared.whole.ground, *(one.graph for one in prepared.rewrites[:-1]))
    value = graphs_before[-1].log_constant
    value += sum(weight * one.value for weight, one in zip(weights, parts, strict=True))
    error = sum(weight * one.error for weight, one in zip(weights, parts, strict=True))
    kind = log_z.kind
    if kind == "exact" and not is_exact(value, error, posterior.solution.marginal_error or 0.0):
        kind = "estimate"
    total = LogPartition(value, kind, error)
    solution = replace(posterior.solution, objective=-total.value, predicted_seconds=seconds)
    return replace(posterior, log_partition=total, solution=solution)
