"""The race itself."""

from __future__ import annotations

import gc
import numbers
import time
from collections.abc import Iterable
from dataclasses import dataclass, replace

from numba.core import event

from hylift.errors import (
    HyliftError,
    IntractableError,
    UnsupportedError,
)
from hylift.graph import FactorGraph
from hylift.inference import Lift, Method, Task, infer
from hylift.posterior import Posterior
from hylift.progress import Progress, silent
from hylift.racing.entrants import Entrant, entrants
from hylift.racing.finish import Finish, Skipped
from hylift.racing.memory import MemoryMark
from hylift.racing.race import Race
from hylift.racing.yardstick import Yardstick, choose_yardstick

TASKS: tuple[Task, ...] = ("marginals", "logz", "map")

SHORT = 1.0
"""Runs below so many seconds are timed again: the first one may have loaded code. So are those that
compiled some, whatever their length."""


def race(
    graph: FactorGraph,
    methods: Iterable[Method | str] | None = None,
    *,
    seconds: float = 30.0,
    lift: Lift = "exact",
    seed: int = 0,
    progress: Progress | None = None,
) -> Race:
    """All methods on one graph: their time, log Z, marginals and MAP beside each other.

    `methods` are values such as `BVI(5)` or names such as 'gabp'; by default all that there are.
    Those that cannot take the graph are skipped, with the reason. Each may take `seconds`; exact
    inference refuses what would take much longer. Marginals are compared with those of exact
    inference, or else with the most trustworthy ones.
    """
    _check(graph, seconds)
    field = entrants(graph, methods, lift, float(seconds))
    report = progress or silent
    finished: list[tuple[Entrant, Finish]] = []
    skipped: list[Skipped] = []
    for number, entrant in enumerate(field):
        try:
            part = _part(report, entrant.label, number, len(field))
            finished.append((entrant, _finish(graph, entrant, float(seconds), seed, part)))
        except (HyliftError, MemoryError) as error:
            skipped.append(Skipped(entrant.label, error))
    if not finished:
        raise _why_nobody(skipped)
    yardstick = choose_yardstick(finished)
    trusted = next(
        (f.posterior for _, f in finished if yardstick and f.label == yardstick.label), None
    )
    finishes = tuple(_compared(finish, yardstick, trusted) for _, finish in finished)
    report(1.0, "finished")
    return Race(finishes, tuple(skipped), yardstick, float(seconds))


@dataclass(frozen=True, slots=True, eq=False)
class _Run:
    """One run of a method."""

    seconds: float
    memory: int | None
    posterior: Posterior
    has_compiled: bool
    """Whether some of the time went into kernels that were not on disk yet."""


def _finish(
    graph: FactorGraph, entrant: Entrant, seconds: float, seed: int, progress: Progress
) -> Finish:
    """What a method has to show; where its limits stand against the rest, a MAP assignment."""
    refused = None

    def run(*tasks: Task) -> _Run:
        gc.collect()
        with event.install_recorder("numba:compile") as compiled:
            mark, start = MemoryMark.here(), time.perf_counter()
            posterior = infer(
                graph,
                entrant.method,
                lift=entrant.lift,
                tasks=tasks,
                seed=seed,
                seconds=seconds,
                progress=progress,
            )
            took = time.perf_counter() - start
        return _Run(took, mark.growth(), posterior, bool(compiled.buffer))

    try:
        tasks = TASKS
        found = run(*tasks)
    except IntractableError as error:
        tasks, refused = ("map",), str(error)
        found = run(*tasks)
    if found.seconds < SHORT or found.has_compiled:
        found = run(*tasks)
    return Finish(
        entrant.label, entrant.lift, found.seconds, found.memory, found.posterior, refused=refused
    )


def _compared(finish: Finish, yardstick: Yardstick | None, trusted: Posterior | None) -> Finish:
    """The finish with its distance from the yardstick, if it has any."""
    if yardstick is None or trusted is None or finish.label == yardstick.label:
        return finish
    if finish.posterior.all_marginals is None:
        return finish
    return replace(finish, comparison=trusted.compare(finish.posterior))


def _part(progress: Progress, label: str, number: int, total: int) -> Progress:
    """The progress of one of the methods, as a part of all."""
    return lambda share, what: progress((number + min(share, 1.0)) / total, f"{label}: {what}")


def _why_nobody(skipped: list[Skipped]) -> Exception:
    """What to raise where no method finished: what is wrong with the model, if anything is."""
    refusals = (UnsupportedError, IntractableError, MemoryError)
    for one in skipped:
        if not isinstance(one.error, refusals):
            return one.error
    if len(skipped) == 1:
        return skipped[0].error
    reasons = "\n".join(f"  {one.label}: {one.reason}" for one in skipped)
    return UnsupportedError(f"no method of the race takes this graph:\n{reasons}")


def _check(graph: FactorGraph, seconds: float) -> None:
    if not isinstance(graph, FactorGraph):
        raise UnsupportedError(
            f"a race takes a FactorGraph, such as hl.ground(model, evidence) makes, not a value of "
            f"type '{type(graph).__name__}'"
        )
    if not isinstance(seconds, numbers.Real) or not seconds > 0:
        raise UnsupportedError(f"seconds is a positive number, not {seconds!r}")
