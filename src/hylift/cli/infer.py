"""`hylift infer`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import get_args

import numpy as np
from numpy.typing import NDArray

from hylift.cli.render import progress_bar, show
from hylift.errors import UnsupportedError
from hylift.formats import uai
from hylift.graph import FactorGraph
from hylift.infer import Exact, Method, Task, check_tasks, infer
from hylift.posterior import Posterior
from hylift.posterior.export import json_text, to_dict, write_json, write_table

METHODS: dict[str, type[Method]] = {"exact": Exact}

DEFAULT_TASKS: tuple[Task, ...] = ("marginals", "logz")

RESULT_TASK: dict[str, Task] = {".mar": "marginals", ".pr": "logz", ".mpe": "map"}
"""UAI result files, by ending, with the one task each of them holds."""

ENDINGS = (".json", ".csv", ".parquet", ".MAR", ".PR", ".MPE")


def run(
    model: Path,
    *,
    evidence: Path | None,
    method: str,
    named_tasks: list[str] | None,
    query: list[str] | None,
    output: str | None,
    seed: int,
    quiet: bool,
) -> None:
    """Reads, infers, and shows or writes what was asked for."""
    tasks = _tasks(named_tasks, output)
    graph = _read_model(model, evidence)
    ids = _queried(graph, query)
    with progress_bar(quiet) as progress:
        posterior = infer(graph, METHODS[method](), tasks=tasks, seed=seed, progress=progress)
    if ids is None:
        ids = posterior.select()
    if output == "-":
        sys.stdout.write(json_text(to_dict(posterior, tasks, model=str(model), ids=ids)))
        return
    if output is not None:
        _write(posterior, tasks, str(model), ids, Path(output))
    if not quiet:
        show(posterior, tasks, title=model.name, ids=ids, output=output)


def _tasks(named: list[str] | None, output: str | None) -> list[Task]:
    """The tasks in a fixed order; where none are named, those that the output file holds."""
    words = [word.strip() for name in named or [] for word in name.split(",")]
    only = None
    if output is not None and output != "-":
        ending = Path(output).suffix.lower()
        if ending not in {known.lower() for known in ENDINGS}:
            raise UnsupportedError(
                f"{output}: no output format has the ending '{ending}'; choose among "
                f"{', '.join(ENDINGS)}"
            )
        only = RESULT_TASK.get(ending)
        if only is not None and words and only not in words:
            raise UnsupportedError(
                f"{output}: such a file holds the task '{only}', not {', '.join(words)}"
            )
    wanted = words or ([only] if only else DEFAULT_TASKS)
    check_tasks(wanted)
    return [task for task in get_args(Task) if task in wanted]


def _read_model(model: Path, evidence: Path | None) -> FactorGraph:
    if model.suffix.lower() != ".uai":
        raise UnsupportedError(f"{model}: models are read from .uai files, not '{model.suffix}'")
    graph = uai.read_uai(model)
    if evidence is None:
        return graph
    return graph.observe(uai.read_evidence(evidence, graph.variables.num_states))


def _queried(graph: FactorGraph, query: list[str] | None) -> NDArray[np.int64] | None:
    """Ids of the queried variables; checked before inference, so that a slip costs no time."""
    if query is None:
        return None
    ids = [
        uai.read_query(pattern, graph.num_variables)
        if pattern.lower().endswith(".query")
        else graph.variables.names.matching(pattern)
        for pattern in query
    ]
    return np.unique(np.concatenate(ids))


def _write(
    posterior: Posterior, tasks: list[Task], model: str, ids: NDArray[np.int64], output: Path
) -> None:
    ending = output.suffix.lower()
    if ending == ".json":
        write_json(to_dict(posterior, tasks, model=model, ids=ids), output)
    elif ending in (".csv", ".parquet"):
        if "marginals" in tasks:
            write_table(posterior.marginals_of(ids), output)
        elif "map" in tasks:
            write_table(posterior.map().to_arrow(ids), output)
        else:
            raise UnsupportedError(f"{output}: a table holds marginals or the MAP assignment")
    elif ending == ".mar":
        everything = np.arange(len(posterior.variables))
        probs = posterior.marginals_of(everything)["probs"].to_pylist()
        uai.write_marginals(probs, output)
    elif ending == ".pr":
        assert posterior.log_partition is not None
        uai.write_log_partition(posterior.log_partition.value, output)
    else:
        uai.write_assignment(posterior.map().values, output)
