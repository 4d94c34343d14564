"""Default method selection: exact inference where it is cheap, else approximations in turn."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

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
from hylift.inference.method import Method, Request, Task
from hylift.inference.prepared import Prepared
from hylift.inference.sampling import Gibbs
from hylift.inference.smc import SMC
from hylift.inference.smc.cost import particle_seconds
from hylift.inference.solve import rewritten_for, solve
from hylift.inference.variational import BVI, MeanField
from hylift.posterior import Posterior
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

PARTICLE_SECONDS = 10.0
"""Predicted time up to which particles are tried."""
MOST_ERROR = 1.0
"""Standard error of log Z from which on particles have missed what matters."""

PARTICLES = SMC()
SAMPLER = Gibbs()
JOINT = EP()
MIXTURE = BVI(components=3, restarts=3, tolerance=1e-5)
"""Tighter settings change marginals little, and take several times as long."""
PRODUCT = MeanField()
"""Takes every graph, and bounds log Z where draws are the answer."""
APART = 0.3
"""Divergence of EP's marginal from that of draws, in nats, from which on one may be wrong. EP is
wrong more often: a smaller limit would warn of many right answers."""
SEPARATE = 1.2
"""R-hat from which on chains are in different modes, whose weights they do not tell."""
REFUSALS = (IntractableError, UnsupportedError, MemoryError, ArithmeticError, np.linalg.LinAlgError)
"""Errors after which another method may have an answer."""


class _OutOfTimeError(Exception):
    """Exact inference takes longer than predicted, and than the user allows."""


@dataclass(slots=True)
class _Clock:
    """The time that the user allows for all methods together, and one of them alone."""

    seconds: float | None
    began: float

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
    clock = _Clock(request.seconds, request.began)
    why = worded("exact inference is ruled out.")
    if exact:
        found = _exact(prepared, request, rewrites, clock)
        if isinstance(found, Posterior):
            return found
        why = worded("exact inference is not cheap here: ", found)
    approximation = _Approximation(prepared, request, rewrites, clock)
    found = approximation.posterior()
    for note in reversed(approximation.notes):
        found = found.with_note(note)
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
        posterior = solve(method, prepared, request.within(limit), rewrites, own)
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


@dataclass(slots=True)
class _Approximation:
    """Approximations in turn: particles, or draws beside EP, where they are affordable, else EP,
    else mixtures."""

    prepared: Prepared
    request: Request
    rewrites: tuple[str, ...] | None
    clock: _Clock
    notes: list[str] = field(default_factory=list)
    error: Exception | None = None
    """Of the last method without an answer."""

    def posterior(self) -> Posterior:
        graph, request = self.prepared.ground, self.request
        joint: Posterior | None = None
        if request.start is None and request.lift != "coarse-to-fine":
            is_ground = (graph.variables.multiplicity == 1).all()
            is_small = is_ground and graph.num_factors <= SAMPLED_FACTORS
            draws = is_small and "marginals" in request.tasks
            tasks = request.tasks | {"logz"}
            if graph.num_factors <= JOINT_FACTORS or (graph.variables.num_states > 0).all():
                # Checkpoints are for long runs: these are run again.
                joint = self._attempt(JOINT, 0.3 if draws else 0.95, tasks=tasks, checkpoint=None)
            if joint is not None and _is_final(joint):
                return self._as_asked(joint)
            if draws and particle_seconds(graph, PARTICLES) <= PARTICLE_SECONDS:
                found = self._attempt(PARTICLES, 0.5, tasks=tasks, checkpoint=None)
                if found is not None and _is_usable(found):
                    return self._as_asked(found)
            found = self._attempt(SAMPLER, 0.95) if draws else None
            if found is not None:
                return self._beside(found, joint)
        if joint is not None:
            if joint.solution.result in ("converged", "out_of_time"):
                return self._as_asked(joint)
            self.notes.append("EP did not converge, and other answers may be off, too.")
        found = self._attempt(MIXTURE) or self._attempt(PRODUCT)
        if found is None and joint is not None:
            return self._as_asked(joint)
        if found is None:
            assert self.error is not None
            raise self.error
        return found

    def _as_asked(self, found: Posterior) -> Posterior:
        """The answer, with log Z only where it was asked for."""
        return found if "logz" in self.request.tasks else replace(found, log_partition=None)

    def _attempt(self, method: Method, share: float = 1.0, **changes: Any) -> Posterior | None:
        """The answer of a method in a share of the time; None where it has none."""
        request = replace(self.request, **changes).within(self.clock.left(share))
        request = replace(request, tasks=request.tasks & {*info_of(method).answers})
        try:
            return solve(method, self.prepared, request, self.rewrites)
        except (*REFUSALS, ImpossibleEvidenceError) as error:
            is_impossible = isinstance(error, ImpossibleEvidenceError)
            if is_impossible and info_of(method).proves_impossible:
                raise
            text = error.text if isinstance(error, HyliftError) else str(error)
            self.notes.append(worded(f"{method.name} has no answer here: ", text))
            self.error = error
            return None

    def _beside(self, draws: Posterior, joint: Posterior | None) -> Posterior:
        """The answer from draws and EP: that of EP where the draws are of no use."""
        result = draws.solution.result
        if joint is not None and joint.solution.result == "converged":
            if (why := _why_not_draws(draws)) is not None:
                self.notes.append(why)
                return self._as_asked(joint)
            if "logz" in self.request.tasks:
                self.notes.append("log Z is that of EP: Gibbs does not estimate it.")
            if (name := _most_different(draws, joint)) is not None:
                self.notes.append(
                    f"EP has another answer for '{name}', so one of them may be off: "
                    f"{joint.marginal(name)} instead of {draws.marginal(name)}."
                )
            return replace(draws, log_partition=self._as_asked(joint).log_partition)
        if "logz" not in self.request.tasks or result in ("stopped", "interrupted"):
            return draws
        tasks: frozenset[Task] = frozenset({"logz"})
        bound = self._attempt(PRODUCT, tasks=tasks, callback=None, checkpoint=None)
        if bound is None:
            return draws
        self.notes.append(f"log Z is that of {PRODUCT.name}: Gibbs does not estimate it.")
        return replace(draws, log_partition=bound.log_partition)


def _is_usable(found: Posterior) -> bool:
    """True if groups of particles agree about log Z, more or less; time and Ctrl-C apart."""
    log_z, result = found.log_partition, found.solution.result
    if result in ("converged", "stopped", "interrupted"):
        return True
    return result == "max_steps" and log_z is not None and log_z.error <= MOST_ERROR


def _why_not_draws(found: Posterior) -> str | None:
    """The reason not to use draws, if there is one."""
    if found.solution.result == "out_of_time":
        return "Time was too short for Gibbs."
    r_hat = found.draws.diagnostics().r_hat.max(initial=1.0) if found.draws is not None else 1.0
    if r_hat < SEPARATE:
        return None
    return (
        f"The chains of Gibbs stay apart (R-hat {r_hat:.2g}): there may be several modes, and "
        "this answer of EP may be off."
    )


def _is_final(joint: Posterior) -> bool:
    """True if no other method is to be tried: EP is exact here, or the user has stopped it."""
    is_exact = joint.log_partition is not None and joint.log_partition.kind == "exact"
    return is_exact or joint.solution.result in ("stopped", "interrupted")


def _most_different(draws: Posterior, joint: Posterior) -> str | None:
    """The variable about which two answers differ most, if that matters."""
    found = draws.compare(joint)
    if not found.max_kl > APART:
        return None
    return draws.variables.names[int(found.ids[np.argmax(found.kl)])]
