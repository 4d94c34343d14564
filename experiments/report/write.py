"""An outcome in files."""

from __future__ import annotations

import math
import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv

from experiments.report.answers import answers
from experiments.report.outcome import Outcome
from hylift.files import OutputError, write_whole
from hylift.plot.style import write_figure
from hylift.posterior.export import write_json


def make_folder(path: Path) -> None:
    """Makes a folder for files, if it is not there; raises where none can be written."""
    try:
        path.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path):
            pass
    except OSError as error:
        raise OutputError(
            f"{path}: cannot be a folder for results: {error.strerror or error}"
        ) from None


def write(outcome: Outcome, name: str, folder: Path) -> list[Path]:
    """Writes tables (.csv), all numbers (.json) and pictures (.png); returns the files."""
    make_folder(folder)
    rows = [row.to_dict() for row in outcome.rows]
    speeds = [one.to_dict() for one in outcome.speeds]
    content = {
        "experiment": name,
        "title": outcome.title,
        "evidence": outcome.source,
        "figures": rows,
        "speeds": speeds,
        "answers": {one.question: one.sentence for one in answers(outcome)},
        "notes": list(outcome.notes),
        "tables": outcome.tables,
    }
    json = folder / f"{name}.json"
    write_json(_finite(content), json)
    written = [json]
    tables = {"figures": rows, "speeds": speeds, **outcome.tables}
    for what, lines in tables.items():
        if lines:
            path = folder / f"{name}-{what}.csv"
            _write_csv(lines, path)
            written.append(path)
    for what, draw in outcome.figures.items():
        path = folder / f"{name}-{what}.png"
        write_figure(draw(), path)
        written.append(path)
    return written


def _finite(content: Any) -> Any:
    """The content with words for what is no number in JSON: 'inf', 'nan'."""
    if isinstance(content, dict):
        return {name: _finite(value) for name, value in content.items()}
    if isinstance(content, list | tuple):
        return [_finite(value) for value in content]
    return str(content) if isinstance(content, float) and not math.isfinite(content) else content


def _write_csv(lines: list[dict[str, Any]], path: Path) -> None:
    table = pa.Table.from_pylist(lines)
    write_whole(path, lambda stream: pyarrow.csv.write_csv(table, stream))
