"""Results as JSON and as tables on disk."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hylift.errors import UnsupportedError
from hylift.files import write_whole
from hylift.posterior.marginals import QUANTILES
from hylift.posterior.posterior import Posterior
from hylift.posterior.summary import ranked
from hylift.words import UNSAFE

ENDINGS = (".csv", ".parquet", ".arrow", ".json", ".nc")


def to_dict(
    posterior: Posterior,
    tasks: Iterable[str],
    *,
    model: str | None = None,
    ids: NDArray[np.int64] | None = None,
) -> dict[str, Any]:
    """The documented JSON result: what `tasks` asked for, of the variables `ids`.

    `model`: where it came from, if that is known.
    """
    ids = posterior.select() if ids is None else ids
    solution = posterior.solution
    result: dict[str, Any] = {} if model is None else {"model": model}
    result |= {"method": solution.method, "seed": solution.seed}
    tasks = set(tasks)
    if "logz" in tasks and posterior.log_partition is not None:
        log_z = posterior.log_partition
        result["log_partition"] = {
            "value": log_z.value,
            "kind": log_z.kind,
            "error": log_z.error,
            "lower": log_z.lower,
            "upper": log_z.upper,
        }
    if "marginals" in tasks:
        rows = posterior.marginals_of(ids).to_pylist()
        errors = {row["atom"]: row for row in posterior.trust.table().to_pylist()}
        result["marginals"] = {
            row["atom"]: _marginal(row) | _errors(errors.get(row["atom"], {})) for row in rows
        }
    if "map" in tasks:
        found = posterior.map()
        result["map"] = {
            "energy": found.energy,
            "kind": found.kind,
            "assignment": found.to_dict(ids),
        }
    result["trust"] = {"verdict": posterior.trust.verdict, "why": posterior.trust.why}
    result["solution"] = {
        "result": solution.result,
        "steps": solution.steps,
        "seconds": solution.seconds,
        "objective": solution.objective,
        "notes": list(solution.notes),
    }
    return result


def write(
    posterior: Posterior,
    path: str | Path,
    atoms: str | Iterable[str] | None,
    *,
    arguments: bool,
    by: str | None,
    top: int | None,
) -> None:
    """Write answers in the format of the file's ending; see `Posterior.write`."""
    ending = Path(path).suffix.lower()
    if ending not in ENDINGS:
        wrong = f"no format has the ending '{ending}'" if ending else "it has no ending"
        raise UnsupportedError(f"{path}: {wrong}; choose among {', '.join(ENDINGS)}")
    if arguments and ending in (".json", ".nc"):
        raise UnsupportedError(f"{path}: only a table has a column per argument")
    ids = posterior.select(atoms)
    if by is not None or top is not None:
        ids = ranked(posterior, ids, by, top)
    if ending == ".nc":
        posterior.to_netcdf(path, posterior.variables.names.render(ids).to_pylist())
    elif ending == ".json":
        there = {
            "logz": posterior.log_partition,
            "marginals": posterior.all_marginals,
            "map": posterior.assignment,
        }
        tasks = [task for task, answer in there.items() if answer is not None]
        write_json(to_dict(posterior, tasks, ids=ids), path)
    else:
        is_ranked = by is not None or top is not None
        named = posterior.marginals_of(ids) if is_ranked else posterior.marginals(atoms)
        write_table(posterior.table_of(ids) if arguments else named, path)


def write_json(result: dict[str, Any], path: str | Path) -> None:
    """Write a result of `to_dict`."""
    write_whole(path, lambda stream: stream.write(json_text(result).encode()))


def json_text(result: dict[str, Any]) -> str:
    """A result of `to_dict` as JSON text, with a final newline."""
    valid = without_infinities(result)
    text = json.dumps(valid, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    return UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def without_infinities(value: Any) -> Any:
    """The value with 'inf', '-inf' and 'nan' as strings, since JSON has no such numbers."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(float(value))
    if isinstance(value, Mapping):
        return {name: without_infinities(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [without_infinities(one) for one in value]
    return value


def write_table(table: pa.Table, path: str | Path) -> None:
    """Write a table as Parquet, Arrow, or CSV with one row per state of a discrete variable."""

    def write(stream: IO[bytes]) -> None:
        ending = Path(path).suffix.lower()
        if ending == ".parquet":
            from pyarrow import parquet

            parquet.write_table(table, stream)
        elif ending == ".arrow":
            with pa.ipc.new_file(stream, table.schema) as writer:
                writer.write_table(table)
        else:
            from pyarrow import csv

            csv.write_csv(by_state(table), stream)

    write_whole(path, write)


def by_state(table: pa.Table) -> pa.Table:
    """Marginals without lists: columns state and prob, one row per state."""
    if "states" not in table.column_names:
        return table
    states = table["states"].combine_chunks()
    size = pc.fill_null(pc.list_value_length(states), 1).to_numpy()
    row = np.repeat(np.arange(len(table)), size)
    flat = table.drop_columns(["states", "probs"]).take(pa.array(row))
    is_discrete = np.repeat(pc.is_valid(states).to_numpy(zero_copy_only=False), size)
    index = np.cumsum(is_discrete) - 1
    position = pa.array(np.where(is_discrete, index, 0), mask=~is_discrete)
    labels, probs = pc.list_flatten(states), pc.list_flatten(table["probs"])
    flat = flat.add_column(1, "state", labels.take(position))
    return flat.add_column(2, "prob", probs.take(position))


def _errors(row: dict[str, Any]) -> dict[str, Any]:
    """The verdict on a marginal and its errors, as far as they are known."""
    return {
        name: value
        for name, value in row.items()
        if name != "atom" and value is not None and value != math.inf
    }


def _marginal(row: dict[str, Any]) -> dict[str, Any]:
    if row["states"] is not None:
        return {"states": row["states"], "probs": row["probs"]}
    quantiles = {str(level): row[name] for name, level in QUANTILES.items()}
    return {name: row[name] for name in ("mean", "std", "mode")} | {"quantiles": quantiles}
