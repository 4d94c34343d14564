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
from hylift.inference.expectation import EP
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
SAMPLED_FACTORS = 30_000
"""Factors up to which Gibbs is tried: it has no lifting, and visits each 6,000 times, which takes
some 20 seconds."""
LEAST_SECONDS = 0.1
"""For a method that is called when no time is left, because no other has an answer."""

JOINT_FACTORS = 500_000
"""Factors up to which EP is tried where there are reals, which it does not lift: 15 seconds."""

SAMPLER = Gibbs()
JOINT = EP()
MIXTURE = BVI(components=3, restarts=3, tolerance=1e-5)
"""Tighter settings change marginals little, and take several times as long."""
PRODUCT = MeanField()
"""Takes every graph, and bounds log Z where draws are the answer."""
FINAL: tuple[Method, ...] = (SAMPLER, MIXTURE, PRODUCT)
"""Methods whose answers are taken also where they have not converged."""

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
    for method in methods:
        is_last = method is methods[-1]
        try:
            found = _by(method, prepared, request, rewrites, clock, is_last=is_last)
        except (*REFUSALS, ImpossibleEvidenceError) as error:
            is_proof = isinstance(error, ImpossibleEvidenceError)
            is_proof = is_proof and info_of(method).proves_impossible
            if is_proof or (is_last and fallback is None):
                raise
            text = error.text if isinstance(error, HyliftError) else str(error)
            notes.append(worded(f"{method.name} has no answer here: ", text))
            continue
        if method in FINAL or found.solution.result in FINISHED:
            return _noted(found, notes)
        fallback = fallback or found
        notes.append(f"{method.name} did not converge, and other answers may be off, too.")
    assert fallback is not None
    return _noted(fallback, notes)


def _candidates(prepared: Prepared, request: Request) -> tuple[Method, ...]:
    """The methods to try in turn."""
    graph = prepared.ground
    if request.start is not None or request.lift == "coarse-to-fine":
        return (MIXTURE,)
    is_ground = (graph.variables.multiplicity == 1).all()
    found: list[Method] = [MIXTURE, PRODUCT]
    if graph.num_factors <= JOINT_FACTORS or (graph.variables.num_states > 0).all():
        found.insert(0, JOINT)
    if "marginals" in request.tasks and is_ground and graph.num_factors <= SAMPLED_FACTORS:
        found.insert(0, SAMPLER)
    return tuple(found)


def _by(
    method: Method,
    prepared: Prepared,
    request: Request,
    rewrites: tuple[str, ...] | None,
    clock: _Clock,
    *,
    is_last: bool,
) -> Posterior:
    """The answer of one method, in its share of the time."""
    if method is not SAMPLER:
        own = replace(request, seconds=clock.left(1.0 if is_last else 0.6))
        return solve(method, prepared, own, rewrites)
    own = replace(request, tasks=request.tasks - {"logz"}, seconds=clock.left(0.9))
    found = solve(method, prepared, own, rewrites)
    if "logz" not in request.tasks or found.solution.result == "interrupted":
        return found
    alone = replace(request, tasks=frozenset({"logz"}), callback=None, checkpoint=None)
    for other in (JOINT, PRODUCT):
        try:
            answer = solve(other, prepared, replace(alone, seconds=clock.left(0.5)), rewrites)
        except (*REFUSALS, ImpossibleEvidenceError):
            continue
        if other is PRODUCT or answer.solution.result == "converged":
            note = f"log Z is that of {other.name}: Gibbs does not estimate it."
            return replace(found, log_partition=answer.log_partition).with_note(note)
    return found.with_note("Gibbs does not estimate log Z, and no bound on it was found.")


def _noted(found: Posterior, notes: list[str]) -> Posterior:
    for note in reversed(notes):
        found = found.with_note(note)
    return found
