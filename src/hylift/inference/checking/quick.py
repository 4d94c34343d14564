"""A quick check of an approximation: a few particles or draws from flat starts."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from hylift.errors import HyliftError
from hylift.graph import FactorGraph
from hylift.inference.capabilities import info_of
from hylift.inference.checking.gaps import Gaps, difference
from hylift.inference.method import Method, Request
from hylift.inference.prepared import Prepared
from hylift.inference.sampling import Gibbs
from hylift.inference.smc import SMC
from hylift.inference.smc.cost import particle_seconds
from hylift.inference.solve import solve
from hylift.posterior import Posterior
from hylift.posterior.trust import HOW_TO_CHECK, Trust
from hylift.progress import silent
from hylift.words import Doubt, Suspicion, doubt, worded

CLEAR = 3.0
"""Gap, as a multiple of what is still right, from which on no longer run need confirm it."""
PARTICLES, DRAWS = SMC(particles=16, sweeps=5), Gibbs(draws=200, warm_up=50, longer=1)
MOST_FACTORS, MOST_REWRITTEN, MOST_SECONDS = 2_000_000, 3_000, 0.25
"""Factors of a graph that is rewritten for the check, of one that is drawn from, and the predicted
time of particles."""
LEAST_SECONDS = 2 * MOST_SECONDS
"""For the check of an answer that has used up its time: a wrong one would be unchecked only."""
UNCHECKED = (
    "The answer is unchecked: a short run from flat starts, which would show what it misses, takes "
    "too long here, or is not possible."
)
FAILURES = (HyliftError, MemoryError, ArithmeticError, np.linalg.LinAlgError)


def with_quick_check(
    posterior: Posterior, method: Method, prepared: Prepared, request: Request
) -> Posterior:
    """The posterior of an approximation, with a doubt where a flat run has another answer.

    Only what converged, and is neither exact nor in doubt anyway, is worth the check. Where the run
    agrees, what the method suspects to have missed is no doubt.
    """
    log_z = posterior.log_partition
    if not info_of(method).is_checked or posterior.all_marginals is None:
        return posterior
    notes, doubts = posterior.solution.notes, posterior.solution.doubts
    is_open = posterior.trust.verdict == "unchecked"
    if doubts and posterior.solution.result == "converged":
        is_open = all(isinstance(one, Suspicion) for one in doubts)
    is_sure = log_z is not None and log_z.kind == "exact"
    if log_z is not None and "marginals" not in request.tasks:
        is_sure = log_z.kind != "estimate"  # a bound holds whatever the marginals are
    if not is_open or is_sure:
        return posterior
    began, left = time.perf_counter(), None
    if request.seconds is not None:
        left = max(request.seconds - posterior.solution.seconds, LEAST_SECONDS)
    asked = Request(
        frozenset({"marginals"}), request.seed, silent, "none", left, interrupt=request.interrupt
    )
    note = _comparison(posterior, prepared, asked)
    seconds = posterior.solution.seconds + time.perf_counter() - began
    solution = replace(posterior.solution, seconds=seconds)
    if isinstance(note, Doubt) or note is UNCHECKED:
        return replace(posterior, solution=replace(solution, notes=(*notes, note)))
    solution = replace(solution, notes=tuple(map(_dispelled, notes)))
    trust = Trust.same(posterior.variables, posterior.trust.ids, "unchecked", note)
    return replace(posterior, solution=solution, checked=trust)


def _dispelled(note: str) -> str:
    return worded(note) if isinstance(note, Suspicion) else note


def _comparison(posterior: Posterior, prepared: Prepared, request: Request) -> str:
    """A doubt where flat runs have another answer, and otherwise what is known."""
    own, rewrites = prepared, info_of(PARTICLES).rewrites
    if prepared.ground.num_factors <= MOST_FACTORS:
        own = prepared.rewritten(rewrites)

    def run(method: Method) -> Posterior | None:
        try:
            found = solve(method, prepared, request, rewrites, own)
        except FAILURES:
            return None
        return None if found.solution.result in ("out_of_time", "interrupted") else found

    for short, longer in _runs(own.ground):
        found = run(short)
        if found is None:
            continue
        worst, size = _largest_gap(posterior, found)
        if 1.0 < size <= CLEAR and (more := run(longer)) is not None:
            found, (worst, size) = more, _largest_gap(posterior, more)
        short_run = f"short run of {found.solution.method} from flat starts"
        if not size > 1.0:
            return worded(f"A {short_run} agrees; ", HOW_TO_CHECK, " finds how far it is off.")
        name = posterior.variables.names[worst]
        return doubt(
            f"This answer may be off: by a {short_run} "
            f"{difference(name, posterior.marginal(name), found.marginal(name))}."
        )
    return UNCHECKED


def _runs(graph: FactorGraph) -> Iterator[tuple[Method, Method]]:
    """Flat runs that the graph allows, short and longer: particles where cheap, then draws."""
    if graph.num_factors > MOST_REWRITTEN:
        return
    if particle_seconds(graph, PARTICLES) <= MOST_SECONDS:
        yield PARTICLES, replace(PARTICLES, particles=4 * PARTICLES.particles)
    yield DRAWS, replace(DRAWS, draws=4 * DRAWS.draws)


def _largest_gap(posterior: Posterior, found: Posterior) -> tuple[int, float]:
    """The variable about which two answers differ most, and how much, relative to what is right."""
    ids = np.flatnonzero(~posterior.observed)
    if not len(ids):
        return -1, 0.0
    size = np.nan_to_num(Gaps.between(posterior, found).size)
    return int(ids[np.argmax(size)]), float(size.max())
