"""The race itself."""

from __future__ import annotations

import gc
import time
import warnings
from dataclasses import dataclass, replace
from typing import get_args

from numba.core import event

from hylift.errors import (
    DoubtWarning,
    ImpossibleEvidenceError,
    IntractableError,
    UnsupportedError,
    check_word,
)
from hylift.graph import FactorGraph
from hylift.inference import Lift, Task, infer
from hylift.inference.capabilities import info_of
from hylift.inference.settings import check_graph, checked_seconds, checked_seed
from hylift.posterior import Posterior
from hylift.progress import Progress, part_of, silent
from hylift.racing.entrants import Entrant, Methods, entrants
from hylift.racing.finish import Finish, Skipped
from hylift.racing.memory import MemoryMark
from hylift.racing.result import Race
from hylift.racing.yardstick import Yardstick, choose_yardstick
from hylift.words import printable

TASKS: tuple[Task, ...] = ("marginals", "logz", "map")

SHORT = 1.0
"""Seconds below which a run is timed again: the first one may have loaded code."""


def race(
    graph: FactorGraph,
    methods: Methods | None = None,
    *,
    seconds: float = 30.0,
    lift: Lift = "exact",
    seed: int = 0,
    progress: Progress | None = None,
) -> Race:
    """All methods on one graph: their time, log Z, marginals and MAP beside each other.

    `methods` are values such as `BVI(5)` or names such as 'gabp'; by default all that there are.
    Those that cannot take the graph, or fail, are skipped, with the reason. Each may take
    `seconds`; exact inference refuses what would take much longer. Marginals are compared with
    those of exact inference, or else with the most trustworthy ones. Raises where a method proves
    that the evidence is impossible. Interrupted, it returns what has finished.
    """
    check_graph("a race takes", graph)
    check_word("lift", lift, get_args(Lift))
    seconds, seed = checked_seconds(seconds), checked_seed(seed)
    field = entrants(graph, methods, lift, seconds)
    report = progress or silent
    finished: list[tuple[Entrant, Finish]] = []
    skipped: list[Skipped] = []
    for number, entrant in enumerate(field):
        part = part_of(report, entrant.label, number, len(field))
        try:
            found = _finish_or_skip(graph, entrant, seconds, seed, part)
        except KeyboardInterrupt:
            if not finished:
                raise
            # What has finished is not lost.
            stopped = UnsupportedError("the race was interrupted before it had finished")
            skipped += [Skipped(other.label, stopped) for other in field[number:]]
            break
        if isinstance(found, Skipped):
            skipped.append(found)
        else:
            finished.append((entrant, found))
    if not finished:
        raise _why_nobody(skipped)
    yardstick = choose_yardstick(graph, finished)
    trusted = next(
        (f.posterior for _, f in finished if yardstick and f.label == yardstick.label), None
    )
    finishes = []
    for _, finish in finished:
        try:
            finishes.append(_compared(finish, yardstick, trusted))
        except Exception as error:  # marginals of a method of the user's own
            skipped.append(Skipped(finish.label, error))
    report(1.0, "finished")
    return Race(tuple(finishes), tuple(skipped), yardstick, seconds)


@dataclass(frozen=True, slots=True, eq=False)
class _Run:
    """One run of a method."""

    seconds: float
    """Without those for kernels that were not on disk yet."""
    memory: int | None
    posterior: Posterior


def _finish_or_skip(
    graph: FactorGraph, entrant: Entrant, seconds: float, seed: int, progress: Progress
) -> Finish | Skipped:
    """The finish of a method, or why it has none; its errors do not stop the race."""
    try:
        return _finish(graph, entrant, seconds, seed, progress)
    except Exception as error:
        is_proof = info_of(entrant.method).proves_impossible
        if isinstance(error, ImpossibleEvidenceError) and is_proof:
            raise
        return Skipped(entrant.label, error)


def _finish(
    graph: FactorGraph, entrant: Entrant, seconds: float, seed: int, progress: Progress
) -> Finish:
    """The answers of a method; where they exceed its limits, a MAP assignment only."""
    refused = None

    def run(*tasks: Task) -> _Run:
        gc.collect()
        with event.install_listener("numba:compile", event.TimingListener()) as compilation:
            mark, start = MemoryMark.here(), time.perf_counter()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DoubtWarning)  # the table of the race has verdicts
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
        if posterior.solution.result == "interrupted":
            raise KeyboardInterrupt
        compiled = compilation.duration if compilation.done else 0.0
        return _Run(max(took - compiled, 0.0), mark.growth(), posterior)

    try:
        tasks = TASKS
        runs = [run(*tasks)]
    except IntractableError as error:
        tasks, refused = ("map",), error.text
        runs = [run(*tasks)]
    if runs[0].seconds < SHORT:
        runs.append(run(*tasks))
    # What a first run has taken from the system a second one finds there.
    memory = max((one.memory for one in runs if one.memory is not None), default=None)
    last = runs[-1]
    return Finish(
        entrant.label, entrant.lift, last.seconds, memory, last.posterior, refused=refused
    )


def _compared(finish: Finish, yardstick: Yardstick | None, trusted: Posterior | None) -> Finish:
    """The finish with its distance from the yardstick, if it has any."""
    if yardstick is None or trusted is None or finish.label == yardstick.label:
        return finish
    if finish.posterior.all_marginals is None:
        return finish
    return replace(finish, comparison=trusted.compare(finish.posterior))


def _why_nobody(skipped: list[Skipped]) -> Exception:
    """The error to raise where no method finished: a fault of the model, if there is one."""
    refusals = (UnsupportedError, IntractableError, MemoryError)
    for one in skipped:
        if not isinstance(one.error, refusals):
            return one.error
    if len(skipped) == 1:
        return skipped[0].error
    reasons = [printable(f"  {one.label}: {one.reason}", one_line=True) for one in skipped]
    lines = "\n".join(["no method of the race takes this graph:", *reasons])
    return UnsupportedError(lines).in_lines()
