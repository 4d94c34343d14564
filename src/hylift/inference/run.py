"""The one entry to inference."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from typing import get_args

from hylift.compilation import announce_compilation
from hylift.errors import UnsupportedError, did_you_mean
from hylift.graph import FactorGraph
from hylift.inference.exact import Exact
from hylift.inference.exact.kernels.elimination import greedy
from hylift.inference.method import Method, Request, Task
from hylift.posterior import Posterior
from hylift.progress import Progress


def infer(
    graph: FactorGraph,
    method: Method | None = None,
    *,
    tasks: Task | Iterable[Task] = ("marginals", "logz"),
    seed: int = 0,
    progress: Progress | None = None,
) -> Posterior:
    """The posterior of a graph given its evidence.

    `tasks` says what to compute at once: 'marginals', 'logz', 'map'. `progress(share, what)` is
    called as the work goes on. Without a method, `Exact()`.
    """
    wanted = frozenset([tasks] if isinstance(tasks, str) else tasks)
    check_tasks(wanted)
    request = Request(wanted, operator.index(seed), progress or (lambda share, what: None))
    if method is not None and (isinstance(method, type) or not hasattr(method, "solve")):
        raise UnsupportedError(f"a method is a value such as Exact(), not {method!r}")
    if not isinstance(graph, FactorGraph):
        raise UnsupportedError(
            f"inference takes a FactorGraph, such as hl.ground(model, evidence) makes, not a value "
            f"of type '{type(graph).__name__}'"
        )
    announce_compilation(greedy)
    return (method or Exact()).solve(graph, request)


def check_tasks(tasks: Iterable[str]) -> None:
    """Raises if one of the tasks does not exist."""
    for task in tasks:
        if task not in get_args(Task):
            raise UnsupportedError(
                f"there is no task '{task}': choose among {', '.join(get_args(Task))}."
                f"{did_you_mean(task, get_args(Task))}"
            )
