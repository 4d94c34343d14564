"""`hylift infer`."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from hylift.cli.method import MethodOptions
from hylift.cli.model import Given, as_text, check_not_read, read_graph
from hylift.cli.render import num_classes_of, print_json, print_notes, progress_bar, show
from hylift.errors import UnsupportedError
from hylift.files import check_figure, check_target
from hylift.formats import uai
from hylift.graph import FactorGraph
from hylift.inference import Task, check_tasks, infer
from hylift.plot.marginals import check_panels
from hylift.posterior import Posterior
from hylift.posterior.export import to_dict, write_json, write_table

DEFAULT_TASKS: tuple[Task, ...] = ("marginals", "logz")

RESULT_TASK: dict[str, Task] = {".mar": "marginals", ".pr": "logz", ".mpe": "map"}
"""UAI result files, by ending, with the one task each of them holds."""

TABLES = (".csv", ".parquet")

ENDINGS = (".json", ".csv", ".parquet", ".MAR", ".PR", ".MPE")


@dataclass(frozen=True, slots=True)
class Files:
    """Where the options of the command want the answer, beside the screen."""

    output: str | None = None
    save: Path | None = None
    figure: Path | None = None
    convergence: Path | None = None

    @property
    def written(self) -> list[tuple[str, str | Path]]:
        """What is written, in words, and the file it is written to."""
        named = (
            ("Written to", None if self.output == "-" else self.output),
            ("Posterior:", self.save),
            ("Figure:", self.figure),
            ("Convergence:", self.convergence),
        )
        return [(what, path) for what, path in named if path is not None]

    def check(self, model: Path, given: Given) -> None:
        """Raises if one cannot be written, or would replace what is read."""
        for figure in (self.figure, self.convergence):
            if figure is not None:
                check_figure(figure)
        if self.save is not None:
            check_target(self.save)
            if self.save.suffix.lower() != ".npz":
                raise UnsupportedError(f"{self.save}: a posterior is saved to a file in .npz")
        for number, (_, path) in enumerate(self.written):
            check_not_read(path, model, given)
            for _, other in self.written[:number]:
                if os.path.realpath(path) == os.path.realpath(other):
                    raise UnsupportedError(f"{path}: is to hold two things; name two files")


def run(
    model: Path,
    *,
    given: Given,
    how: MethodOptions,
    named_tasks: list[str] | None,
    query: list[str] | None,
    files: Files,
    seed: int,
    quiet: bool,
) -> None:
    """Reads, infers, and shows or writes what was asked for."""
    tasks, output = _tasks(named_tasks), files.output
    if output is not None and output != "-":
        tasks = _check_output(output, tasks, query)
    tasks = how.tasks(tasks, DEFAULT_TASKS)
    files.check(model, given)
    if files.figure is not None and "marginals" not in tasks:
        raise UnsupportedError("--figure draws marginals: ask for the task 'marginals' too")
    if files.convergence is not None:
        how.check_fits("convergence")
    start = None if how.start is None else Posterior.load(how.start)
    method = how.chosen(start)
    with progress_bar(quiet) as progress:
        graph, notes = read_graph(model, given, progress)
    if not quiet:
        print_notes(notes)
    ids = _queried(graph, query)
    _check_room(files, graph, ids)
    with progress_bar(quiet) as progress:
        posterior = infer(
            graph,
            method,
            lift=how.chosen_lift,
            tasks=tasks,
            seed=seed,
            seconds=how.seconds,
            start=start,
            progress=progress,
        )
    if ids is None:
        ids = posterior.select()
    if output == "-":
        print_json(_result(posterior, tasks, as_text(model), ids))
    elif output is not None:
        _write(posterior, tasks, as_text(model), ids, Path(output))
    _draw_and_save(posterior, ids, files)
    if not quiet and output != "-":
        show(posterior, tasks, title=model.name, ids=ids, written=files.written)


def _draw_and_save(posterior: Posterior, ids: NDArray[np.int64], files: Files) -> None:
    if files.save is not None:
        posterior.save(files.save)
    if files.figure is not None:
        from hylift.plot import plot_marginals

        names = posterior.variables.names.render(ids).to_pylist()
        plot_marginals(posterior, names, path=files.figure)
    if files.convergence is not None:
        from hylift.plot import plot_convergence

        plot_convergence(posterior, path=files.convergence)


def _result(
    posterior: Posterior, tasks: list[Task], model: str, ids: NDArray[np.int64]
) -> dict[str, Any]:
    """The JSON result, with the number of classes that a variational method has solved."""
    result = to_dict(posterior, tasks, model=model, ids=ids)
    result["solution"]["num_classes"] = num_classes_of(posterior)
    return result


def _tasks(named: list[str] | None) -> list[Task]:
    """The named tasks, in a fixed order."""
    words = [word.strip() for name in named or [] for word in name.split(",")]
    check_tasks(words)
    return [task for task in get_args(Task) if task in words]


def _check_output(output: str, tasks: list[Task], query: list[str] | None) -> list[Task]:
    """The tasks, or the one that the file holds where none are named.

    All that can be wrong with the file is found here, before any work.
    """
    check_target(output)
    ending = Path(output).suffix.lower()
    if ending not in {known.lower() for known in ENDINGS}:
        wrong = f"no output format has the ending '{ending}'" if ending else "it has no ending"
        raise UnsupportedError(f"{output}: {wrong}; choose among {', '.join(ENDINGS)}")
    only = RESULT_TASK.get(ending)
    if only is not None and tasks and only not in tasks:
        raise UnsupportedError(
            f"{output}: such a file holds the task '{only}', not {', '.join(tasks)}"
        )
    if only in ("marginals", "map") and query is not None:
        raise UnsupportedError(f"{output}: such a file holds all variables, so it takes no --query")
    if ending in TABLES and tasks == ["logz"]:
        raise UnsupportedError(
            f"{output}: a table holds marginals or the MAP assignment, not the task 'logz'"
        )
    return tasks or ([only] if only else [])


def _check_room(files: Files, graph: FactorGraph, ids: NDArray[np.int64] | None) -> None:
    """Raises if a graph has reals and the output is one of UAI's lists of states, or if it has
    more variables than a figure has room for."""
    ending = Path(files.output or "").suffix.lower()
    real = np.flatnonzero(graph.variables.num_states == 0)
    if RESULT_TASK.get(ending) in ("marginals", "map") and len(real):
        raise UnsupportedError(
            f"{files.output}: such a file holds discrete variables only; "
            f"'{graph.variables.names[int(real[0])]}' is real"
        )
    if files.figure is not None:
        num_hidden = graph.num_variables - int(np.count_nonzero(graph.evidence.is_hard))
        check_panels(num_hidden if ids is None else len(ids))


def _queried(graph: FactorGraph, query: list[str] | None) -> NDArray[np.int64] | None:
    """Ids of the queried variables; checked before inference, so that a slip costs no time."""
    if query is None:
        return None
    ids = [
        uai.read_query(pattern, graph.num_variables)
        if pattern.lower().endswith(".query")
        else graph.variables.names.matching(as_text(pattern))
        for pattern in query
    ]
    return np.unique(np.concatenate(ids))


def _write(
    posterior: Posterior, tasks: list[Task], model: str, ids: NDArray[np.int64], output: Path
) -> None:
    ending = output.suffix.lower()
    if ending == ".json":
        write_json(_result(posterior, tasks, model, ids), output)
    elif ending in TABLES:
        held = posterior.marginals_of if "marginals" in tasks else posterior.map().to_arrow
        write_table(held(ids), output)
    elif ending == ".mar":
        everything = np.arange(len(posterior.variables))
        probs = posterior.marginals_of(everything)["probs"].to_pylist()
        uai.write_marginals(probs, output)
    elif ending == ".pr":
        assert posterior.log_partition is not None
        uai.write_log_partition(posterior.log_partition.value, output)
    else:
        uai.write_assignment(posterior.map().values, output)
