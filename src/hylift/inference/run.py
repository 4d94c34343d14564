"""The one entry to inference, and default method selection."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

from hylift.errors import IntractableError, MethodError, UnsupportedError, check_word
from hylift.files import check_target
from hylift.graph import FactorGraph
from hylift.inference.capabilities import Rewrite, info_of
from hylift.inference.checkpoint import Checkpoint, fingerprint
from hylift.inference.exact import Exact
from hylift.inference.method import Callback, Lift, Method, Request, Task, interruptible
from hylift.inference.prepared import Prepared
from hylift.inference.restored import restored
from hylift.inference.settings import (
    check_graph,
    check_tasks,
    checked_seconds,
    checked_seed,
)
from hylift.inference.started import started
from hylift.inference.variational import BVI
from hylift.posterior import LogPartition, Posterior
from hylift.progress import Progress, announce_compilation, silent
from hylift.rewrite.parts import parts_by_copies
from hylift.words import counted, option, worded


def infer(
    graph: FactorGraph,
    method: Method | None = None,
    *,
    lift: Lift = "exact",
    rewrite: bool | str | Iterable[str] | None = None,
    tasks: Task | Iterable[Task] = ("marginals", "logz"),
    seed: int = 0,
    seconds: float | None = None,
    start: Posterior | None = None,
    callback: Callback | None = None,
    progress: Progress | None = None,
    checkpoint: str | Path | None = None,
    exact: bool = True,
) -> Posterior:
    """The posterior of a graph given its evidence.

    Without a method, exact inference where it should take at most 20 seconds, or half of `seconds`,
    and else `BVI()`; `solution.notes` says which, and why. `lift` solves look-alikes once: 'exact'
    (no loss), 'coarse-to-fine' (for real evidence that breaks the symmetry) or 'none'. `rewrite`
    names the rewrites of the graph that are tried first ('hard clusters', 'common means', 'counts',
    'common fields', 'parts'); False is none, and the default those that help the method. With
    coarse-to-fine lifting, which needs the evidence apart, there are none.

    `tasks` are the answers to compute at once: 'marginals', 'logz', 'map'. After `seconds` a method
    that takes steps returns its best answer; exact inference refuses what should take longer.
    Variational methods and MaxWalkSAT can start from an earlier posterior (`start`); others refuse
    it. `callback(step)` is called after each step; if it returns True, the run stops.
    `progress(share, what)` is called from time to time.

    Ctrl-C stops a method that takes steps, and returns the best so far, with a note; a second one
    ends it at once. `checkpoint` is a file in which such a run is stored from time to time. If it
    exists, the run resumes from it, and ends where it would have ended without a break.
    """
    wanted = frozenset([tasks] if isinstance(tasks, str) else tasks)
    check_tasks(wanted)
    _check(graph, method, start, callback)
    check_word("lift", lift, get_args(Lift))
    rewrites = _rewrites(rewrite, is_apart=lift == "coarse-to-fine")
    seconds = None if seconds is None else checked_seconds(seconds)
    seed = checked_seed(seed)
    request = Request(wanted, seed, progress or silent, lift, seconds, start, callback)
    announce_compilation()
    with interruptible() as interrupt:
        request = replace(request, interrupt=interrupt)
        prepared = Prepared.of(graph)
        if checkpoint is not None:
            check_target(checkpoint)
            run = fingerprint(prepared.source, _settings(method, request, rewrites))
            request = replace(request, checkpoint=Checkpoint.open(checkpoint, run))
        if method is None:
            posterior = choose_and_solve(prepared, request, rewrites, exact=exact)
        else:
            posterior = _solve(method, prepared, request, rewrites)
        if request.checkpoint is not None:
            request.checkpoint.try_to_write()
    if posterior.solution.result != "interrupted":
        return posterior
    again = "" if checkpoint is None else f"; the same call resumes from {checkpoint}"
    return posterior.with_note(
        f"Interrupted after {counted(posterior.solution.steps, 'step')}: this is the best answer "
        f"so far{again}."
    )


def _check(graph: Any, method: Any, start: Any, callback: Any) -> None:
    """Raise unless `infer` can take its arguments."""
    if method is not None and (isinstance(method, type) or not hasattr(method, "solve")):
        raise UnsupportedError(f"a method is a value such as BVI() or Exact(), not {method!r}")
    check_graph("inference takes", graph)
    if start is not None and not isinstance(start, Posterior):
        raise UnsupportedError(f"start must be a posterior of an earlier run, not {start!r}")
    if callback is not None and not callable(callback):
        raise UnsupportedError(f"callback must be a function of a step, not {callback!r}")


def _rewrites(
    asked: bool | str | Iterable[str] | None, *, is_apart: bool
) -> tuple[str, ...] | None:
    """The rewrites to try; None leaves them to the method. is_apart: the evidence must stay apart
    from the factors."""
    if asked is None or asked is True:
        return () if is_apart else None
    if asked is False:
        return ()
    names = tuple([asked] if isinstance(asked, str) else asked)
    for name in names:
        check_word("rewrite", name, get_args(Rewrite))
    if names and is_apart:
        raise UnsupportedError(
            "coarse-to-fine lifting takes the graph as it is given, without rewrites",
            worded("leave out ", option("rewrite")),
        )
    return names


def _rewritten(
    method: Method, prepared: Prepared, rewrites: tuple[str, ...] | None, *, maximise: bool = False
) -> Prepared:
    """The graph that suits a method."""
    helpful = info_of(method).rewrites
    names = helpful if rewrites is None else rewrites
    # Other methods solve look-alike parts once by lifting.
    names = tuple(name for name in names if name != "parts" or name in helpful)
    return prepared.rewritten(names, maximise=maximise)


def _solve(
    method: Method,
    prepared: Prepared,
    request: Request,
    rewrites: tuple[str, ...] | None,
    own: Prepared | None = None,
) -> Posterior:
    """The posterior by a method, of the graph that suits it: `own`, where it is known."""
    own = own or _rewritten(method, prepared, rewrites)
    if request.start is not None:
        request = replace(request, start=started(request.start, own))
    if own.keeps_maximum:
        return restored(_solved(method, own, request), own)

    @functools.cache
    def to_maximise() -> Posterior:
        other = _rewritten(method, prepared, rewrites, maximise=True)
        only = replace(request, tasks=frozenset({"map"}))
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
    if len(graphs) > 1:
        alone = replace(request, tasks=frozenset({"logz"}), checkpoint=None)
        found = (method.solve(Prepared.of(graph), alone).log_partition for _, graph in graphs)
        parts = [one for one in found if one is not None]
    assert prepared.whole is not None
    graphs_before = (prepared.whole.ground, *(one.graph for one in prepared.rewrites[:-1]))
    total = LogPartition(
        graphs_before[-1].log_constant
        + sum(weight * one.value for weight, one in zip(weights, parts, strict=True)),
        log_z.kind,
        sum(weight * one.error for weight, one in zip(weights, parts, strict=True)),
    )
    solution = replace(posterior.solution, objective=-total.value)
    return replace(posterior, log_partition=total, solution=solution)


def _settings(method: Method | None, request: Request, rewrites: tuple[str, ...] | None) -> str:
    """Text of everything but the graph that an answer depends on."""
    named = repr(method)
    if type(method).__repr__ is object.__repr__:  # which has an address in it
        named = f"{type(method).__qualname__} {getattr(method, 'name', '')}"
    start = ""
    if request.start is not None:
        found = request.start.solution
        start = f"{found.method}, {found.seed}, {found.steps}, {found.objective!r}"
    changed = "" if rewrites is None else f", {rewrites}"
    return f"{named}, {sorted(request.tasks)}, {request.lift}, {request.seed}, {start}{changed}"


CHEAP_SECONDS = 20.0
"""Predicted time up to which exact inference is chosen, and half the time that the user allows."""
CHEAP_FACTORS = 2_000_000
"""Factors up to which exact inference is planned without being asked for."""
METHOD = BVI(components=3, restarts=3, tolerance=1e-5)
"""The method where exact inference is not cheap. Tighter settings change marginals little, and
take several times as long."""


def choose_and_solve(
    prepared: Prepared,
    request: Request,
    rewrites: tuple[str, ...] | None = None,
    *,
    exact: bool = True,
) -> Posterior:
    """The posterior by exact inference where it is cheap, else by BVI, with a note that says so."""
    if not exact:
        return _solve(METHOD, prepared, request, rewrites)
    exact = Exact()
    own = _rewritten(exact, prepared, rewrites)
    refused = _why_not_exact(own.source, request)
    if refused is None:
        limit = CHEAP_SECONDS if request.seconds is None else request.seconds / 2
        try:
            posterior = _solve(exact, prepared, replace(request, seconds=limit), rewrites, own)
        except (IntractableError, UnsupportedError) as error:
            refused = error.text
        except MemoryError:
            refused = "its tables do not fit into memory."
        else:
            seconds = posterior.solution.predicted_seconds or 0.0
            why = (
                "because it is cheap here" if seconds < 1 else f"predicted to take {seconds:.1g} s"
            )
            return posterior.with_note(f"Exact inference was chosen, {why}.")
    return _solve(METHOD, prepared, request, rewrites).with_note(
        worded(f"{METHOD.name} was chosen, because exact inference is not cheap here: ", refused)
    )


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
