"""Checks of answers: of any method, and of exact inference on nodes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from hylift.errors import UnsupportedError
from hylift.graph import FactorGraph
from hylift.inference.attempts import Attempts, Clock
from hylift.inference.checking.better import corrected, excess
from hylift.inference.checking.check import Check
from hylift.inference.checking.gaps import Gaps
from hylift.inference.checkpoint import fingerprint
from hylift.inference.exact.nodes.conditional import known_reals
from hylift.inference.method import Request, interruptible
from hylift.inference.prepared import Prepared
from hylift.inference.settings import check_graph, checked_seconds, checked_seed
from hylift.posterior import Posterior, Trust, with_observed
from hylift.posterior.comparison import check_evidence, check_variables
from hylift.posterior.summary import warn_of_doubt
from hylift.posterior.trust import Verdict
from hylift.progress import announce_compilation, silent
from hylift.rewrite.kinds import Kinds
from hylift.words import Wording, worded

SECONDS = 10.0
COARSE = 0.01
"""Error of log Z from which on a grid is too coarse to stand by itself."""
MORE_TIME = Wording("hl.check_answer(posterior, graph, seconds=…)", "--check with more --seconds")


def check_answer(
    posterior: Posterior, graph: FactorGraph, *, seconds: float = SECONDS, seed: int = 0
) -> Posterior:
    """The posterior with a verdict of runs that know nothing of it (`posterior.trust`).

    graph: the one that was inferred in, with the same evidence. Where particles that begin flat, or
    chains from different starts, agree with the answer, it is returned with the errors that are
    left. Where they do not, theirs is returned, and a note says so. What is certified already is
    not checked again, unless it was loaded: then nothing shows that it is of this graph.
    """
    if not isinstance(posterior, Posterior):
        raise UnsupportedError(f"a check takes a posterior, not {posterior!r}")
    check_graph("a check takes", graph)
    seconds, seed = checked_seconds(seconds), checked_seed(seed)
    prepared = Prepared.of(graph)
    _check_same(posterior, prepared)
    announce_compilation()
    with interruptible() as interrupt:
        request = Request(frozenset({"marginals", "logz"}), seed, silent, interrupt=interrupt)
        if posterior.target is None:
            solution = replace(posterior.solution, is_certified=False)
            posterior = replace(posterior, solution=solution, checked=None)
        attempts = Attempts(prepared, request, None, Clock(seconds, request.began))
        checked = with_check(posterior, attempts)
        if checked is not posterior:
            posterior = replace(checked, again=posterior.again)
    warn_of_doubt(posterior, stacklevel=2)
    return posterior


def _check_same(posterior: Posterior, prepared: Prepared) -> None:
    """Raise unless the answer is of this model and this evidence, as far as it is known."""
    graph, found = prepared.source, posterior.known_marginals()
    check_variables(posterior.variables, graph.variables)
    given = with_observed(graph, prepared.hidden, found.spread(prepared.hidden))
    check_evidence(posterior.observed, found, prepared.observed, given, graph.variables)
    target = posterior.target
    if target is not None and fingerprint(target.graph, "") != fingerprint(graph, ""):
        raise UnsupportedError(
            "this posterior is of another model, or other evidence, than the graph: check it with "
            "the graph that it was inferred in"
        )


def with_check(posterior: Posterior, attempts: Attempts) -> Posterior:
    """The posterior with the verdict of independent runs, or theirs where it is off."""
    if posterior.trust.verdict == "certified" or posterior.all_marginals is None:
        return posterior
    found = Check(attempts, posterior).run()
    found = unchecked(posterior, attempts) if found is None else corrected(posterior, found)
    return with_notes(found, attempts)


def with_notes(found: Posterior, attempts: Attempts) -> Posterior:
    """The answer, with the notes of all attempts before its own."""
    for note in reversed(attempts.notes):
        if note not in found.solution.notes:
            found = found.with_note(note)
    return found


def unchecked(posterior: Posterior, attempts: Attempts) -> Posterior:
    """The posterior, with a verdict that says why it was not checked."""
    if posterior.trust.verdict == "doubtful" or posterior.all_marginals is None:
        return posterior
    why = worded("An independent run would take too long here: ", MORE_TIME, " allows it.")
    if (posterior.variables.multiplicity != 1).any():
        why = worded("The graph is lifted, and an independent run needs the ground one.")
    elif attempts.request.interrupt.requested:
        why = worded("The check was interrupted.")
    ids = np.flatnonzero(~posterior.observed)
    return replace(posterior, checked=Trust.same(posterior.variables, ids, "unchecked", why))


def rests_on_nodes(posterior: Posterior, prepared: Prepared) -> bool:
    """True if marginals of exact inference are of functions whose reals are all on nodes: unlike
    variances, these may have peaks anywhere."""
    if posterior.all_marginals is None or posterior.trust.verdict == "certified":
        return False
    kinds = Kinds.of(prepared.ground)
    on_nodes = known_reals(kinds)
    return any(on_nodes[group.reals].all(axis=1).any() for group in kinds.functions)


def checked_on_nodes(posterior: Posterior, attempts: Attempts) -> Posterior:
    """The answer with the verdict of particles, or theirs where it has missed something.

    A finer grid cannot show what lies between all nodes. Particles that are in doubt themselves
    leave the answer unchecked, unless they contradict it.
    """
    check = Check(attempts, posterior)
    found = check.run()
    if found is None or found.log_partition is None or posterior.log_partition is None:
        return with_notes(posterior, attempts)
    more, slack = excess(found, posterior)
    name, own = found.solution.method, found.all_marginals is posterior.all_marginals
    if own and more == 0.0:  # nodes have smaller errors of log Z than particles
        found = replace(found, log_partition=posterior.log_partition)
    if own or (found.trust.verdict == "checked" and more >= -slack) or more > slack:
        return with_notes(corrected(posterior, found), attempts)
    size = np.nanmax(Gaps.between(posterior, found).size, initial=0.0)
    is_near = size <= 1.0 and abs(more) <= slack
    ids = np.flatnonzero(~posterior.observed)
    verb = "agrees" if is_near else "does not agree"
    why = f"{name} {verb} with this answer, but is in doubt itself, and knows of nothing more."
    is_coarse = posterior.log_partition.error > COARSE
    is_doubted = check.is_blind or is_coarse or (found.trust.verdict == "checked" and not is_near)
    verdict: Verdict = "doubtful" if is_doubted else "unchecked"
    trust = Trust.same(posterior.variables, ids, verdict, why)
    return with_notes(replace(posterior, checked=trust), attempts)
