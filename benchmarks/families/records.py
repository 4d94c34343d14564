"""Records for calibration: exact and other answers about many models, as Parquet files."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from rich.progress import Progress

import hylift as hl
from benchmarks.families.practice import written
from hylift.inference.method import Method
from hylift.posterior.mixing import effective_groups

FIRST = 10_000
"""The seed of the first model of a family; smaller ones are for scores."""
AT_ONCE = 20
"""Models of a file."""
LIMIT = 1.0
"""Predicted seconds of exact inference; models that should take longer are skipped."""
SECONDS = 5.0
"""For each run that checks an answer, half of what the default has in all."""
MOST_ERROR = 1e-5
"""Stated error of log Z up to which an exact answer stands for the truth."""

CHECKS: Mapping[str, Method] = {"smc": hl.SMC(), "gibbs": hl.Gibbs()}
"""Flat runs by which answers are checked."""
Columns = dict[str, Any]


def collect(folder: Path, models: int, families: tuple[str, ...], check: str = "smc") -> None:
    """Records of so many models of each family; those that are in the folder are kept."""
    with Progress() as progress:
        bar = progress.add_task(f"records of {check}", total=models * len(families))
        for first in range(FIRST, FIRST + models, AT_ONCE):
            for family in families:
                seeds = range(first, min(first + AT_ONCE, FIRST + models))
                path = folder / check / family / f"{first}-{seeds[-1]}.parquet"
                if not path.exists():
                    found = [recorded(family, seed, check) for seed in seeds]
                    path.parent.mkdir(parents=True, exist_ok=True)
                    partial = path.with_suffix(".partial")
                    pq.write_table(pa.concat_tables(found, promote_options="default"), partial)
                    partial.rename(path)
                progress.advance(bar, len(seeds))


def recorded(family: str, seed: int, check: str) -> pa.Table:
    """A row per real and per state of a discrete variable; one row without values if skipped."""
    began = time.process_time()
    graph = written(family, seed).graph()
    exact = attempt(graph, hl.Exact(), seconds=LIMIT)
    columns: Columns = {"variable": [-1]}
    about: Columns = {"family": family, "seed": seed}
    if exact is not None and is_certain(exact):
        answers = {
            "exact": exact,
            "ep": attempt(graph, hl.EP(), check=False),
            "flat": attempt(graph, CHECKS[check], seconds=SECONDS),
        }
        for name, answer in answers.items():
            if answer is not None:
                columns |= moments(name, answer)
                about |= facts(name, answer)
    about["seconds"] = time.process_time() - began
    size = len(columns["variable"])
    return pa.table({**{name: [value] * size for name, value in about.items()}, **columns})


def is_certain(exact: hl.Posterior) -> bool:
    """True if the answer may stand for the truth."""
    log_z = exact.log_partition
    is_close = log_z is not None and log_z.error < MOST_ERROR
    return is_close and exact.solution.result == "converged"


def attempt(graph: hl.FactorGraph, method: Method, **options: Any) -> hl.Posterior | None:
    """The answer of a method, or None where it has none."""
    try:
        return hl.infer(graph, method, **options)
    except (hl.HyliftError, MemoryError, ArithmeticError):
        return None


def facts(name: str, answer: hl.Posterior) -> Columns:
    """Facts about the answer as a whole."""
    log_z, solution = answer.log_partition, answer.solution
    return {
        f"{name}_result": solution.result,
        f"{name}_seconds": solution.seconds,
        f"{name}_log_z": None if log_z is None else log_z.value,
        f"{name}_log_z_error": None if log_z is None else log_z.error,
    }


def moments(name: str, answer: hl.Posterior) -> Columns:
    """Probabilities or means and deviations, and their standard errors where there are draws."""
    table = answer.marginals()
    probs = table["probs"].combine_chunks()
    size = np.maximum(np.nan_to_num(probs.value_lengths().to_numpy(zero_copy_only=False)), 1)
    size = size.astype(np.int64)
    variable = np.repeat(np.arange(len(size)), size)
    is_real = np.asarray(probs.is_null())[variable]
    value = table["mean"].to_numpy()[variable]
    value[~is_real] = probs.flatten().to_numpy()
    columns: Columns = {
        "variable": variable,
        "is_real": is_real,
        name: value,
        f"{name}_std": table["std"].to_numpy()[variable],
    }
    draws = answer.draws
    if draws is not None:
        found = draws.standard_errors()
        error = np.where(np.isnan(found.mean), found.probability, found.mean)
        columns |= {f"{name}_error": error[variable], f"{name}_std_error": found.std[variable]}
        if draws.weights is not None:
            columns[f"{name}_groups"] = effective_groups(draws.weights)[variable]
    return columns


def read(folder: Path, check: str) -> dict[str, pa.Table]:
    """The records of a check by family, without models that were skipped."""
    found = {}
    for own in sorted((folder / check).glob("*/")):
        tables = [pq.read_table(path) for path in sorted(own.glob("*.parquet"))]
        table = pa.concat_tables(tables, promote_options="default")
        found[own.name] = table.filter(np.asarray(table["variable"]) >= 0)
    return found
