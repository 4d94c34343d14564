"""The one entry to inference."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import numpy as np

from hylift.errors import ImpossibleEvidenceError, UnsupportedError, check_word
from hylift.files import check_target
from hylift.graph import Evidence, FactorGraph
from hylift.inference.attempts import Attempts, Clock
from hylift.inference.capabilities import Rewrite
from hylift.inference.checking.answer import with_check
from hylift.inference.checking.quick import with_quick_check
from hylift.inference.checkpoint import Checkpoint, fingerprint
from hylift.inference.choice import choose_and_solve
from hylift.inference.exact import Exact
from hylift.inference.method import (
    Callback,
    Lift,
    Method,
    Request,
    Task,
    interruptible,
    named_method,
)
from hylift.inference.prepared import Prepared
from hylift.inference.settings import (
    check_graph,
    check_tasks,
    checked_seconds,
    checked_seed,
)
from hylift.inference.solve import solve
from hylift.posterior import Posterior
from hylift.posterior.summary import warn_of_doubt
from hylift.posterior.trust import of_assignment
from hylift.progress import Progress, announce_compilation, reported
from hylift.words import Wording, counted, listed, option, worded

MOST_RULES = 5
"""Hard rules that are named where they contradict each other."""


def infer(
    graph: FactorGraph,
    method: Method | str | None = None,
    *,
    lift: Lift = "exact",
    rewrite: bool | str | Iterable[str] | None = None,
    tasks: Task | Iterable[Task] = ("marginals", "logz"),
    seed: int = 0,
    seconds: float | None = None,
    start: Posterior | None = None,
    callback: Callback | None = None,
    progress: Progress | bool | None = None,
    checkpoint: str | Path | None = None,
    exact: bool = True,
    check: bool | None = None,
) -> Posterior:
    """The posterior of a graph given its evidence.

    `method` is one with its settings, such as `BVI(components=5)`, or the name of one on the
    command line, such as 'gibbs'.

    Without a method, exact inference where it should take at most 20 seconds, or half of `seconds`
    (never with `exact=False`), and else EP, checked by SMC or Gibbs, which answer in its place, in
    about 10 seconds or `seconds`. `solution.notes` says which, and why; `trust` has the verdict.
    `check=False` leaves the check out; `check=True` checks the answer of a named method, too
    (see `check_answer`). `lift` solves look-alikes once:
    'exact' (no loss), 'coarse-to-fine' (for real evidence that breaks the symmetry) or 'none'.
    `rewrite` names the rewrites of the graph that are tried first ('hard clusters', 'chains',
    'common means', 'counts', 'common fields', 'parts'); False is none, and the default those that
    help the method.
    With coarse-to-fine lifting, which needs the evidence apart, there are none.

    `tasks` are the answers to compute at once: 'marginals', 'logz', 'map'. After `seconds`, which
    all methods that are tried share, a method that takes steps returns its best answer; exact
    inference refuses what should take longer, as do EP, Gibbs and SMC where a few steps would.
    Variational methods and MaxWalkSAT can start from an earlier posterior (`start`); others refuse
    it. `callback(step)` is called after each step; if it returns True, the run stops.
    `progress(share, what)` is called from time to time; True is a bar.

    Ctrl-C stops a method that takes steps, and returns the best so far, with a note; a second one
    ends it at once. `checkpoint` is a file in which such a run is stored from time to time. If it
    exists, the run resumes from it, and ends where it would have ended without a break.

    A short run of particles from flat starts checks the answer of a method that may miss modes;
    a note says where it disagrees. `check=False` leaves it out.
    """
    wanted = frozenset([tasks] if isinstance(tasks, str) else tasks)
    check_tasks(wanted)
    method = named_method(method)
    _check(graph, method, start, callback)
    _check_choice(method, exact, check)
    check_word("lift", lift, get_args(Lift))
    rewrites = _rewrites(rewrite, is_apart=lift == "coarse-to-fine")
    seconds = None if seconds is None else checked_seconds(seconds)
    seed = checked_seed(seed)
    announce_compilation()
    with interruptible() as interrupt, _naming_hard_rules(graph), reported(progress) as report:
        request = Request(wanted, seed, report, lift, seconds, start, callback, interrupt)
        prepared = Prepared.of(graph)
        if checkpoint is not None:
            check_target(checkpoint)
            settings = _settings(method, request, rewrites) + ("" if exact else ", not exact")
            run = fingerprint(prepared.source, settings)
            request = replace(request, checkpoint=Checkpoint.open(checkpoint, run))
        if method is None:
            posterior = choose_and_solve(
                prepared, request, rewrites, exact=exact, check=check is not False
            )
        else:
            posterior = solve(method, prepared, request, rewrites)
            if not wanted - {"map"}:
                posterior = replace(posterior, checked=of_assignment(posterior))
            elif check and posterior.solution.result != "interrupted":
                clock = Clock(request.seconds, request.began)
                posterior = with_check(posterior, Attempts(prepared, request, rewrites, clock))
            elif check is None:
                posterior = with_quick_check(posterior, method, prepared, request)
        if request.checkpoint is not None:
            request.checkpoint.try_to_write()
        if interrupt.requested:
            posterior = _interrupted(posterior)

    def again(given: Evidence) -> Posterior:
        found = infer(
            graph.observe(given), method, lift=lift, rewrite=rewrite, tasks="marginals", seed=seed,
            seconds=seconds, exact=exact, check=check,
        )  # fmt: skip
        return replace(found, log_partition=None)

    posterior = replace(posterior, again=again if "marginals" in wanted else None)
    warn_of_doubt(posterior, stacklevel=2)
    if posterior.solution.result != "interrupted":
        return posterior
    resumes = "" if checkpoint is None else f"; the same call resumes from {checkpoint}"
    return posterior.with_note(
        f"Interrupted {interrupted_at(posterior)}: this is the best answer so far{resumes}."
    )


def interrupted_at(posterior: Posterior) -> str:
    """In words when Ctrl-C has ended a run."""
    is_checked = posterior.checked is not None
    steps = counted(posterior.solution.steps, "step")
    return "during the check" if is_checked else f"after {steps}"


def _interrupted(posterior: Posterior) -> Posterior:
    """The answer, which says that it was interrupted, if only in its check."""
    trust, solution = posterior.trust, posterior.solution
    if solution.result == "interrupted" or trust.verdict == "certified":
        return posterior
    return replace(posterior, solution=replace(solution, result="interrupted"), checked=trust)


@contextmanager
def _naming_hard_rules(graph: FactorGraph) -> Iterator[None]:
    """Within it, an error that the evidence is impossible names the hard rules of the model."""
    try:
        yield
    except ImpossibleEvidenceError as error:
        groups = () if graph.rules is None else graph.groups
        potentials = {group.label: group.potential for group in groups if group.label}
        hard = [
            f"'{label}'"
            for label, potential in potentials.items()
            if (form := potential.quadratic()) is not None and np.isneginf(form.c).any()
        ]
        message = str(error.args[0]).removesuffix(".")
        if hard and not any(rule in message for rule in hard):
            more = [f"{len(hard) - MOST_RULES} more"] if len(hard) > MOST_RULES else []
            named = listed(hard[:MOST_RULES] + more)
            error.args = (f"{message}. The model's hard rules are {named}.",)
        raise


def _check(graph: Any, method: Any, start: Any, callback: Any) -> None:
    """Raise unless `infer` can take its arguments."""
    if method is not None and (isinstance(method, type) or not hasattr(method, "solve")):
        raise UnsupportedError(
            f"a method is a value such as BVI() or Exact(), or a name such as 'bvi', not {method!r}"
        )
    check_graph("inference takes", graph)
    if start is not None and not isinstance(start, Posterior):
        raise UnsupportedError(f"start must be a posterior of an earlier run, not {start!r}")
    if callback is not None and not callable(callback):
        raise UnsupportedError(f"callback must be a function of a step, not {callback!r}")


def _check_choice(method: Any, exact: Any, check: Any) -> None:
    """Raise unless `infer` can choose and check a method by these."""
    for name, value in (("exact", exact), ("check", check if check is not None else True)):
        if not isinstance(value, bool):
            raise UnsupportedError(f"{name} must be True or False, not {value!r}")
    if not exact and isinstance(method, Exact):
        named = Wording("exact=False", "--no-exact")
        raise UnsupportedError(worded(named, " rules out exact inference: leave out one of them"))


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
