"""Default method selection: exact inference where it is cheap, else EP, and a check of it."""

from __future__ import annotations

from dataclasses import replace

from hylift.errors import IntractableError, UnsupportedError
from hylift.graph import FactorGraph
from hylift.inference.attempts import Attempts, Clock
from hylift.inference.checking.answer import (
    COARSE,
    checked_on_nodes,
    rests_on_nodes,
    unchecked,
    with_notes,
)
from hylift.inference.checking.check import BOTH, Check
from hylift.inference.checking.cost import affords_check
from hylift.inference.exact import Exact
from hylift.inference.exact.elimination import DenselyCoupledError
from hylift.inference.expectation import EP
from hylift.inference.method import Request
from hylift.inference.prepared import Prepared
from hylift.inference.solve import rewritten_for, solve
from hylift.inference.variational import BVI, MeanField
from hylift.posterior import Posterior
from hylift.progress import Progress
from hylift.words import doubt, duration, worded

CHEAP_SECONDS = 20.0
"""Predicted time up to which exact inference is chosen, and half the time that the user allows."""
CHEAP_FACTORS = 2_000_000
"""Factors up to which exact inference is planned without being asked for."""
JOINT_FACTORS = 500_000
"""Factors up to which EP is tried where there are reals, which it does not lift: 15 seconds."""

JOINT = EP()
MIXTURE = BVI(components=3, restarts=3, tolerance=1e-5)
"""Tighter settings change marginals little, and take several times as long."""
PRODUCT = MeanField()
"""Takes every graph."""


class _OutOfTimeError(Exception):
    """Exact inference takes longer than predicted, and than the user allows."""


def choose_and_solve(
    prepared: Prepared,
    request: Request,
    rewrites: tuple[str, ...] | None = None,
    *,
    exact: bool = True,
    check: bool = True,
) -> Posterior:
    """The posterior by exact inference where it is cheap, else by EP or by the runs that check it,
    with notes that say so."""
    clock = Clock(request.seconds, request.began)
    attempts = Attempts(prepared, request, rewrites, clock)
    why = worded("exact inference is ruled out.")
    if exact:
        found = _exact(attempts)
        if isinstance(found, Posterior):
            if check and rests_on_nodes(found, prepared):
                found = checked_on_nodes(found, attempts)
                solution = replace(found.solution, seconds=clock.elapsed)
                found = _as_asked(replace(found, solution=solution), request)
            return found
        why = worded("exact inference is not cheap here: ", found)
    found = with_notes(_approximated(attempts, check), attempts)
    solution = replace(found.solution, seconds=clock.elapsed)
    note = worded(f"{solution.method} was chosen, because ", why)
    return _as_asked(replace(found, solution=solution).with_note(note), request)


def _exact(attempts: Attempts) -> Posterior | str:
    """The exact posterior, or why there is none."""
    prepared, request, rewrites = attempts.prepared, attempts.request, attempts.rewrites
    method, limit, clock = Exact(), CHEAP_SECONDS, attempts.clock
    if request.seconds is not None:
        limit = request.seconds / 2
        request = replace(request, progress=_watched(clock, request.progress, limit))
    own = rewritten_for(method, prepared, rewrites)
    refused = _why_not_exact(own.source, request)
    if refused is not None:
        return refused
    try:
        posterior = solve(method, prepared, request.within(limit), rewrites, own)
    except (IntractableError, UnsupportedError) as error:
        attempts.is_dense = isinstance(error, DenselyCoupledError)
        return error.text
    except MemoryError:
        return "its tables do not fit into memory."
    except _OutOfTimeError:
        return f"it had not ended after {duration(clock.elapsed)}."
    log_z = posterior.log_partition
    if posterior.solution.result == "max_steps" and log_z is not None and log_z.error > COARSE:
        return f"its nodes are too coarse, and more of them change log Z by {log_z.error:.1g}."
    seconds = posterior.solution.predicted_seconds or 0.0
    why = "because it is cheap here" if seconds < 1 else f"predicted to take {duration(seconds)}"
    return posterior.with_note(f"Exact inference was chosen, {why}.")


def _watched(clock: Clock, progress: Progress, seconds: float) -> Progress:
    """The same progress, which raises after so many seconds in all."""

    def report(share: float, what: str) -> None:
        if clock.elapsed > seconds:
            raise _OutOfTimeError
        progress(share, what)

    return report


def _why_not_exact(graph: FactorGraph, request: Request) -> str | None:
    if request.start is not None:
        return "an earlier posterior is given to start from."
    if request.callback is not None:
        return "a callback is given, and exact inference has no steps."
    if not graph.is_ground:
        return "the graph is lifted."
    if graph.num_factors > CHEAP_FACTORS:
        return f"the graph has {graph.num_factors:,} factors, more than {CHEAP_FACTORS:,}."
    return None


def _approximated(attempts: Attempts, check: bool) -> Posterior:
    """The answer of EP with a verdict, or of the run that checks it; else of a mixture."""
    graph, request = attempts.prepared.ground, attempts.request
    joint: Posterior | None = None
    if request.start is None and request.lift != "coarse-to-fine" and not attempts.is_dense:
        wants_sums = bool(request.tasks & BOTH)
        tasks = request.tasks | BOTH if wants_sums else request.tasks
        if graph.num_factors <= JOINT_FACTORS or (graph.variables.num_states > 0).all():
            # Checkpoints are for long runs: this one is run again.
            leaves_time = check and wants_sums and affords_check(graph, attempts.clock)
            share = 0.3 if leaves_time else 0.95
            joint = attempts.attempt(JOINT, share, tasks=tasks, checkpoint=None)
        if joint is not None and _is_final(joint):
            return joint
        is_open = joint is None or joint.solution.result != "converged"
        if wants_sums and (check or is_open):
            found = Check(attempts, joint, keeps=False).run()
            if found is not None:
                return found
    if joint is not None and joint.solution.result in ("converged", "out_of_time"):
        return unchecked(joint, attempts) if check else joint
    if joint is not None:
        attempts.notes.append(doubt("EP did not converge, and other answers may be off, too."))
    is_late = request.seconds is not None and attempts.clock.for_checks <= 0
    found = (None if is_late else attempts.attempt(MIXTURE)) or attempts.attempt(PRODUCT) or joint
    if found is None:
        assert attempts.error is not None
        raise attempts.error
    return found


def _is_final(joint: Posterior) -> bool:
    """True if no other run is needed: EP is exact here, or the user has stopped it."""
    is_over = joint.solution.result in ("stopped", "interrupted")
    return is_over or joint.trust.verdict == "certified"


def _as_asked(found: Posterior, request: Request) -> Posterior:
    """The answer, without what was not asked for."""
    if "logz" not in request.tasks:
        found = replace(found, log_partition=None)
    if "marginals" not in request.tasks:
        found = replace(found, all_marginals=None, draws=None)
    return found
