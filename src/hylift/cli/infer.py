"""`hylift infer`."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import numpy as np
from numpy.typing import NDArray

from hylift.cli.model import Given, as_text, check_not_read, read_graph
from hylift.cli.render import print_json, print_notes, progress_bar, show
from hylift.errors import UnsupportedError, did_you_mean
from hylift.files import check_target
from hylift.formats import uai
from hylift.graph import FactorGraph
from hylift.inference import Exact, Method, Task, check_tasks, infer
from hylift.posterior import Posterior
from hylift.posterior.export import to_dict, write_json, write_table

METHODS: dict[str, type[Method]] = {"exact": Exact}

DEFAULT_TASKS: tuple[Task, ...] = ("marginals", "logz")

RESULT_TASK: dict[str, Task] = {".mar": "marginals", ".pr": "logz", ".mpe": "map"}
"""UAI result files, by ending, with the one task each of them holds."""

TABLES = (".csv", ".parquet")

ENDINGS = (".json", ".csv", ".parquet", ".MAR", ".PR", ".MPE")


def run(
    model: Path,
    *,
    given: Given,
    method: str,
    named_tasks: list[str] | None,
    query: list[str] | None,
    output: str | None,
    seed: int,
    quiet: bool,
) -> None:
    """Reads, infers, and shows or writes what was asked for."""
    chosen = _method(method)
    tasks = _tasks(named_tasks)
    if output is not None and output != "-":
        tasks = _check_output(output, tasks, query)
        check_not_read(output, model, given)
    tasks = tasks or list(DEFAULT_TASKS)
    with progress_bar(quiet) as progress:
        graph, notes = read_graph(model, given, progress)
    if not quiet:
        print_notes(notes)
    _check_holds(output, graph)
    ids = _queried(graph, query)
    with progress_bar(quiet) as progress:
        posterior = infer(graph, chosen, tasks=tasks, seed=seed, progress=progress)
    if ids is None:
        ids = posterior.select()
    if output == "-":
        print_json(to_dict(posterior, tasks, model=as_text(model), ids=ids))
        return
    if output is not None:
        _write(posterior, tasks, as_text(model), ids, Path(output))
    if not quiet:
        show(posterior, tasks, title=model.name, ids=ids, output=output)


def _method(name: str) -> Method:
    if name not in METHODS:
        raise UnsupportedError(
            f"there is no method '{name}': choose among {', '.join(METHODS)}."
            f"{did_you_mean(name, METHODS)}"
        )
    return METHODS[name]()


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


def _check_holds(output: str | None, graph: FactorGraph) -> None:
    """Raises if a graph has reals and the file is one of UAI's lists of states."""
    ending = Path(output or "").suffix.lower()
    real = np.flatnonzero(graph.variables.num_states == 0)
    if RESULT_TASK.get(ending) in ("marginals", "map") and len(real):
        raise UnsupportedError(
            f"{output}: such a file holds discrete variables only; "
            f"'{graph.variables.names[int(real[0])]}' is real"
        )


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
        write_json(to_dict(posterior, tasks, model=model, ids=ids), output)
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
