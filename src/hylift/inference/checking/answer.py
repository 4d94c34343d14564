"""The check of an answer that any method has found."""

from __future__ import annotations

from dataclasses import replace

from hylift.errors import UnsupportedError
from hylift.graph import FactorGraph
from hylift.inference.attempts import Attempts, Clock
from hylift.inference.checking.check import with_check
from hylift.inference.checkpoint import fingerprint
from hylift.inference.method import Request, interruptible
from hylift.inference.prepared import Prepared
from hylift.inference.settings import check_graph, checked_seconds, checked_seed
from hylift.posterior import Posterior, with_observed
from hylift.posterior.comparison import check_evidence, check_variables
from hylift.posterior.summary import warn_of_doubt
from hylift.progress import announce_compilation, silent

SECONDS = 10.0


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
