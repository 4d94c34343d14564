"""`hylift infer`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray
from rich.console import Console

from hylift.cli import outputs, show_pandas
from hylift.cli.method import MethodOptions
from hylift.cli.model import Given, as_text, queried, read_graph
from hylift.cli.outputs import TABLES, Output, Write
from hylift.cli.render import (
    MAX_ROWS,
    num_classes_of,
    progress_bar,
    show,
    tell_drawn,
    verdict_words,
)
from hylift.cli.stderr import InterruptedAnswerError, tell
from hylift.errors import UnsupportedError
from hylift.formats import uai
from hylift.graph import Evidence, FactorGraph
from hylift.inference import Task, infer
from hylift.inference.run import interrupted_at
from hylift.inference.settings import check_tasks
from hylift.plot import plot_convergence, plot_marginals
from hylift.plot.marginals import MAX_PANELS, check_panels
from hylift.posterior import Posterior
from hylift.posterior.datasets import extra
from hylift.posterior.export import to_dict
from hylift.posterior.summary import check_rank, ranked
from hylift.words import listed

DEFAULT_TASKS: tuple[Task, ...] = ("marginals", "logz")

RESULT_TASK: dict[str, Task] = {".mar": "marginals", ".pr": "logz", ".mpe": "map"}
"""UAI result files, by ending, with the one task each of them holds."""

NETCDF = ".nc"


@dataclass(frozen=True, slots=True)
class Found:
    """A posterior, and what was asked about it."""

    model: Path
    evidence: Evidence
    posterior: Posterior
    tasks: list[Task]
    ids: NDArray[np.int64]
    most: int = MAX_ROWS
    """Variables that are listed in a terminal."""
    arguments: bool = False
    """Tables have a column per argument."""

    @property
    def names(self) -> list[str]:
        names: list[str] = self.posterior.variables.names.render(self.ids).to_pylist()
        return names

    def to_dict(self) -> dict[str, Any]:
        """The JSON result, with the number of classes that a variational method has solved."""
        found = to_dict(self.posterior, self.tasks, model=as_text(self.model), ids=self.ids)
        found["solution"]["num_classes"] = num_classes_of(self.posterior)
        return found

    @property
    def answer(self) -> outputs.CommandResult:
        posterior = self.posterior
        held = posterior.table_of if self.arguments else posterior.marginals_of
        if "marginals" not in self.tasks:
            best = posterior.map()
            held = best.table_of if self.arguments else best.to_arrow
        formats: dict[str, Write] = {
            ".mar": self._write_marginals,
            ".pr": self._write_log_partition,
            ".mpe": lambda path: uai.write_assignment(posterior.map().values, path),
            NETCDF: lambda path: posterior.to_netcdf(
                path, self.names, seed=posterior.solution.seed
            ),
        }
        return outputs.CommandResult(self._show, self.to_dict, lambda: held(self.ids), formats)

    def _show(self, out: Console) -> None:
        show(
            out,
            self.posterior,
            self.tasks,
            title=self.model.name,
            evidence=self.evidence,
            ids=self.ids,
            most=self.most,
        )

    def _write_marginals(self, path: Path) -> None:
        everything = np.arange(len(self.posterior.variables))
        uai.write_marginals(self.posterior.marginals_of(everything)["probs"].to_pylist(), path)

    def _write_log_partition(self, path: Path) -> None:
        assert self.posterior.log_partition is not None
        uai.write_log_partition(self.posterior.log_partition.value, path)


def run(
    model: Path,
    *,
    given: Given,
    task: list[str] | None,
    query: list[str] | None,
    top: int | None,
    by: str | None,
    output: str | None,
    arguments: bool,
    save: Path | None,
    max_bytes: int | None,
    figure: Path | None,
    convergence: Path | None,
    seed: int,
    quiet: bool,
    method: str,
    **settings: Any,
) -> None:
    """Read, infer, and show or write what was asked for."""
    how = MethodOptions.of(method, settings)
    written = outputs.result(output, "a result", NETCDF, ".MAR", ".PR", ".MPE")
    saved = Output(save, "a posterior", (".npz",), "Posterior:")
    drawn, steps = outputs.figure(figure), outputs.figure(convergence, "Convergence:")
    kept = Output(how.checkpoint, "a checkpoint")
    read = [*given.read(model), *([] if how.start is None else [how.start])]
    outputs.check_outputs([written, saved, drawn, steps, kept], read)
    tasks = how.tasks(_tasks_of(written, _tasks(task), query), DEFAULT_TASKS)
    _check_order(top, by, arguments, tasks, written)
    if figure is not None and "marginals" not in tasks:
        raise UnsupportedError("--figure draws marginals: ask for the task 'marginals' too")
    if convergence is not None:
        how.check_converges()
    start = None if how.start is None else Posterior.load(how.start, max_bytes=max_bytes)
    chosen = how.chosen(start)
    graph, _ = read_graph(model, given, quiet=quiet)
    ids = queried(graph.variables, query, ~graph.is_hidden) if query else None
    _check_states_only(written, graph)
    if arguments:
        graph.variables.names.common_predicate(
            np.flatnonzero(graph.is_hidden) if ids is None else ids
        )
    if figure is not None:
        num_atoms = np.count_nonzero(graph.is_hidden) if ids is None else len(ids)
        check_panels(min(int(num_atoms), MAX_PANELS))
    with progress_bar(quiet) as progress:
        posterior = infer(
            graph,
            chosen,
            lift=how.lift,
            rewrite=how.rewrite,
            tasks=tasks,
            seed=seed,
            seconds=how.seconds,
            start=start,
            progress=progress,
            checkpoint=how.checkpoint,
            exact=how.exact,
            check=how.check,
        )
    was_interrupted = posterior.solution.result == "interrupted"
    if was_interrupted:
        _tell_interrupted(posterior, how.checkpoint)
    elif quiet and posterior.trust.verdict == "doubtful":
        tell(f"doubtful: {verdict_words(posterior)}")
    ids = posterior.select() if ids is None else ids
    if top is not None or by is not None:
        ids = ranked(posterior, ids, by, top)
    found = Found(model, graph.evidence, posterior, tasks, ids, top or MAX_ROWS, arguments)
    if figure is not None and len(ids) > MAX_PANELS and not quiet:
        tell_drawn(f"the first {MAX_PANELS} of {len(ids):,} atoms")
    others: list[tuple[Output, Write]] = [
        (saved, posterior.save),
        (drawn, lambda path: plot_marginals(posterior, found.names[:MAX_PANELS], path=path)),
        (steps, lambda path: plot_convergence(posterior, path=path)),
    ]
    outputs.deliver(found.answer, written, others, quiet=quiet)
    if was_interrupted:
        raise InterruptedAnswerError


def _tell_interrupted(posterior: Posterior, checkpoint: Path | None) -> None:
    go_on = f" (resume with the same command: --checkpoint {checkpoint})" if checkpoint else ""
    tell(f"interrupted {interrupted_at(posterior)}: this is the best answer so far{go_on}")


def _tasks(named: list[str] | None) -> list[Task]:
    """The named tasks, in a fixed order."""
    words = [word.strip() for name in named or [] for word in name.split(",")]
    check_tasks(words)
    return [task for task in get_args(Task) if task in words]


def _tasks_of(output: Output, tasks: list[Task], query: list[str] | None) -> list[Task]:
    """The tasks, or the one that the file holds where none are named.

    What its format cannot hold is found here, before any work.
    """
    ending, path = output.ending, output.path
    only = RESULT_TASK.get(ending)
    needed = "marginals" if ending == NETCDF else only
    if needed is not None and tasks and needed not in tasks:
        raise UnsupportedError(
            f"{path}: such a file holds the task '{needed}', not {', '.join(tasks)}"
        )
    if only in ("marginals", "map") and query is not None:
        raise UnsupportedError(f"{path}: such a file holds all variables, so it takes no --query")
    if ending in TABLES and tasks == ["logz"]:
        raise UnsupportedError(
            f"{path}: a table holds marginals or the MAP assignment, not the task 'logz'"
        )
    if ending == NETCDF:
        show_pandas()
        extra("arviz")
    return tasks or ([only] if only else [])


def _check_order(
    top: int | None, by: str | None, arguments: bool, tasks: list[Task], output: Output
) -> None:
    """Raise if options about tables of marginals are wrong, before any work."""
    asked = [("--top", top), ("--by", by), ("--arguments", arguments or None)]
    for name, value in asked:
        is_of_map = name == "--arguments" and "map" in tasks
        if value is not None and "marginals" not in tasks and not is_of_map:
            raise UnsupportedError(f"{name} is about marginals: ask for the task 'marginals' too")
        if value is not None and RESULT_TASK.get(output.ending) is not None:
            raise UnsupportedError(
                f"{output.path}: such a file holds all variables, so it takes no {name}"
            )
    if arguments and output.ending not in TABLES:
        raise UnsupportedError(f"--arguments is about tables: name an --output in {listed(TABLES)}")
    check_rank(by, top)


def _check_states_only(output: Output, graph: FactorGraph) -> None:
    """Raise if a graph has reals and the output is one of UAI's lists of states."""
    real = np.flatnonzero(graph.variables.num_states == 0)
    if RESULT_TASK.get(output.ending) in ("marginals", "map") and len(real):
        raise UnsupportedError(
            f"{output.path}: such a file holds discrete variables only; "
            f"'{graph.variables.names[int(real[0])]}' is real"
        )
