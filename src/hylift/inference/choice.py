"""Default method selection: exact inference where it is cheap, else approximations in turn."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace

from numpy.linalg import LinAlgError

from hylift.errors import (
    HyliftError,
    ImpossibleEvidenceError,
    IntractableError,
    UnsupportedError,
)
from hylift.graph import FactorGraph
from hylift.inference.capabilities import info_of
from hylift.inference.exact import Exact
from hylift.inference.method import Method, Request
from hylift.inference.prepared import Prepared
from hylift.inference.sampling import Gibbs
from hylift.inference.solve import rewritten_for, solve
from hylift.inference.variational import BVI, MeanField
from hylift.posterior import Posterior, Result
from hylift.progress import Progress
from hylift.words import worded

CHEAP_SECONDS = 20.0
"""Predicted time up to which exact inference is chosen, and half the time that the user allows."""
CHEAP_FACTORS = 2_000_000
"""Factors up to which exact inference is planned without being asked for."""
SAMPLED_FACTORS = 100_000
"""Factors up to which Gibbs is tried: it has no lifting, and visits each of them 6,000 times."""
LEAST_SECONDS = 0.1
"""For a method that is called when no time is left, because no other has an answer."""

SAMPLER = Gibbs()
MIXTURE = BVI(components=3, restarts=3, tolerance=1e-5)
"""Takes every graph. Tighter settings change marginals little, and take several times as long."""
PRODUCT = MeanField()
"""Bounds log Z where draws are the answer."""

FINISHED: tuple[Result, ...] = ("converged", "stopped", "interrupted")
"""Results after which no other method is tried."""
REFUSALS = (IntractableError, UnsupportedError, MemoryError, ArithmeticError, LinAlgError)
"""Errors after which another method may have an answer."""


class _OutOfTimeError(Exception):
    """Exact inference takes longer than predicted, and than the user allows."""


@dataclass(slots=True)
class _Clock:
    """The time that the user allows for all methods together, and one of them alone."""

    seconds: float | None
    began: float = field(default_factory=time.perf_counter)

    @property
    def elapsed(self) -> float:
        return time.perf_counter() - self.began

    def left(self, share: float = 1.0) -> float | None:
        """A share of what is left; None for no limit."""
        if self.seconds is None:
            return None
        return max(share * (self.seconds - self.elapsed), LEAST_SECONDS)

    def watched(self, progress: Progress, seconds: float) -> Progress:
        """The same progress, which raises after so many seconds in all."""

        def report(share: float, what: str) -> None:
            if self.elapsed > seconds:
                raise _OutOfTimeError
            progress(share, what)

        return report


def choose_and_solve(
    prepared: Prepared,
    request: Request,
    rewrites: tuple[str, ...] | None = None,
    *,
    exact: bool = True,
) -> Posterior:
    """The posterior by exact inference where it is cheap, else by the first approximation that
    converges, with notes that say so."""
    clock = _Clock(request.seconds)
    why = worded("exact inference is ruled out.")
    if exact:
        found = _exact(prepared, request, rewrites, clock)
        if isinstance(found, Posterior):
            return found
        why = worded("exact inference is not cheap here: ", found)
    found = _approximate(prepared, request, rewrites, clock)
    solution = replace(found.solution, seconds=clock.elapsed)
    note = worded(f"{solution.method} was chosen, because ", why)
    return replace(found, solution=solution).with_note(note)


def _exact(
    prepared: Prepared, request: Request, rewrites: tuple[str, ...] | None, clock: _Clock
) -> Posterior | str:
    """The exact posterior, or why there is none."""
    method, limit = Exact(), CHEAP_SECONDS
    if request.seconds is not None:
        limit = request.seconds / 2
        request = replace(request, progress=clock.watched(request.progress, limit))
    own = rewritten_for(method, prepared, rewrites)
    refused = _why_not_exact(own.source, request)
    if refused is not None:
        return refused
    try:
        posterior = solve(method, prepared, replace(request, seconds=limit), rewrites, own)
    except (IntractableError, UnsupportedError) as error:
        return error.text
    except MemoryError:
        return "its tables do not fit into memory."
    except _OutOfTimeError:
        return f"it had not ended after {clock.elapsed:.2g} seconds."
    seconds = posterior.solution.predicted_seconds or 0.0
    why = "because it is cheap here" if seconds < 1 else f"predicted to take {seconds:.1g} s"
    return posterior.with_note(f"Exact inference was chosen, {why}.")


def _why_not_exact(graph: FactorGraph, request: Request) -> str | None:
    if request.start is not None:
        return "an earlier posterior is given to start from."
    if request.callback is not None:
        return "a callback is given, and exact inference has no steps."
    if (graph.variables.multiplicity != 1).any():
        return "the graph is lifted."
    if graph.num_factors > CHEAP_FACTORS:
        return f"the graph has {graph.num_factors:,} factors, more than {CHEAP_FACTORS:,}."
    return None


def _approximate(
    prepared: Prepared, request: Request, rewrites: tuple[str, ...] | None, clock: _Clock
) -> Posterior:
    """The first answer that converged; draws are taken as they are, with their own warnings."""
    methods = _candidates(prepared, request)
    fallback: Posterior | None = None
    notes: list[str] = []
    for number, method in enumerate(methods):
        is_last = number == len(methods) - 1
        own = replace(request, seconds=clock.left(1.0 if is_last else 0.5))
        if method is SAMPLER:
            own = replace(own, tasks=own.tasks - {"logz"}, seconds=clock.left(0.9))
        try:
            found = solve(method, prepared, own, rewrites)
        except (*REFUSALS, ImpossibleEvidenceError) as error:
            is_proof = isinstance(error, ImpossibleEvidenceError)
            is_proof = is_proof and info_of(method).proves_impossible
            if is_proof or (is_last and fallback is None):
                raise
            text = error.text if isinstance(error, HyliftError) else str(error)
            notes.append(worded(f"{method.name} has no answer here: ", text))
            continue
        if method is SAMPLER and "logz" in request.tasks:
            found = _with_log_z(found, prepared, request, rewrites, clock)
        if method in (SAMPLER, MIXTURE) or found.solution.result in FINISHED:
            return _noted(found, notes)
        fallback = fallback or found
        notes.append(f"{method.name} did not converge, so that other answers may be off, too.")
    assert fallback is not None
    return _noted(fallback, notes)


def _candidates(prepared: Prepared, request: Request) -> tuple[Method, ...]:
    """The methods to try in turn; the last takes every graph."""
    graph = prepared.ground
    if request.start is not None or request.lift == "coarse-to-fine":
        return (MIXTURE,)
    is_ground = (graph.variables.multiplicity == 1).all()
    if "marginals" in request.tasks and is_ground and graph.num_factors <= SAMPLED_FACTORS:
        return (MIXTURE, SAMPLER)
    return (MIXTURE,)


def _noted(found: Posterior, notes: list[str]) -> Posterior:
    for note in reversed(notes):
        found = found.with_note(note)
    return found


def _with_log_z(
    found: Posterior,
    prepared: Prepared,
    request: Request,
    rewrites: tuple[str, ...] | None,
    clock: _Clock,
) -> Posterior:
    """The draws, with a bound on log Z, which they do not estimate."""
    only = replace(
        request, tasks=frozenset({"logz"}), seconds=clock.left(), callback=None, checkpoint=None
    )
    try:
        log_z = solve(PRODUCT, prepared, only, rewrites).log_partition
    except REFUSALS:
        return found.with_note("Gibbs does not estimate log Z, and no bound was found.")
    note = f"log Z is that of {PRODUCT.name}: Gibbs does not estimate it."
    return replace(found, log_partition=log_z).with_note(note)
