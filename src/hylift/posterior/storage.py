"""A posterior in one file: arrays in NumPy's zip format, and a JSON header. Never pickle."""

from __future__ import annotations

import json
from dataclasses import asdict
from io import BytesIO
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hylift.errors import FormatError, HyliftError
from hylift.files import read_bytes, write_whole
from hylift.graph import Domain, Names, Variables
from hylift.posterior.answers import Assignment, Kind, LogPartition, Solution
from hylift.posterior.distributions import (
    BatchedDistribution,
    Categorical,
    GaussianMixture,
    PiecewiseDensity,
    PointMass,
)
from hylift.posterior.marginals import Marginals
from hylift.posterior.posterior import Posterior

FORMAT = "hylift posterior"
VERSION = 1

ARRAYS: dict[type[BatchedDistribution], tuple[str, ...]] = {
    Categorical: ("probs",),
    GaussianMixture: ("weights", "means", "variances"),
    PiecewiseDensity: ("edges", "coefficients"),
    PointMass: ("value",),
}
"""Families that can be stored, with their array fields."""


def save(posterior: Posterior, path: str | Path) -> None:
    """Writes the posterior; an existing file is replaced only when the new one is complete."""
    variables = posterior.variables
    text = variables.names.render()
    offsets = np.frombuffer(text.buffers()[1], dtype=np.int32)[text.offset :][: len(text) + 1]
    data = text.buffers()[2]
    letters = np.frombuffer(data, dtype=np.uint8) if data is not None else np.zeros(0, np.uint8)
    arrays: dict[str, NDArray[Any]] = {
        "name_offsets": offsets if len(text) else np.zeros(1, np.int32),
        "name_letters": letters,
        "domain_id": variables.domain_id,
        "multiplicity": variables.multiplicity,
        "observed": posterior.observed,
    }
    header: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "domains": [[d.states, d.lower, d.upper] for d in variables.domains],
        "solution": asdict(posterior.solution),
        "log_partition": asdict(posterior.log_partition) if posterior.log_partition else None,
    }
    if posterior.all_marginals is not None:
        header["batches"] = _store_marginals(posterior.all_marginals, arrays)
    if posterior.assignment is not None:
        arrays["map_values"] = posterior.assignment.values
        header["map"] = {"energy": posterior.assignment.energy, "kind": posterior.assignment.kind}
    arrays["header"] = np.frombuffer(json.dumps(header).encode(), dtype=np.uint8)
    write_whole(path, lambda stream: np.savez_compressed(stream, allow_pickle=False, **arrays))


def load(path: str | Path) -> Posterior:
    """Reads what `save` wrote."""
    content = BytesIO(read_bytes(path))
    try:
        with np.load(content, allow_pickle=False) as stored:
            arrays = {name: stored[name] for name in stored.files}
        header = json.loads(arrays["header"].tobytes())
        if header.get("format") != FORMAT:
            raise FormatError(
                path, f"is not a saved posterior (its format is '{header['format']}')"
            )
        if header["version"] != VERSION:
            raise FormatError(
                path, f"was saved by another version: format {header['version']}, not {VERSION}"
            )
        return _restore(header, arrays)
    except HyliftError:
        raise
    except Exception as error:  # a damaged archive can fail in any of the layers that read it
        raise FormatError(
            path, f"is not a saved posterior, or is damaged ({type(error).__name__})"
        ) from None


def _store_marginals(marginals: Marginals, arrays: dict[str, NDArray[Any]]) -> list[dict[str, Any]]:
    arrays["batch"], arrays["row"] = marginals.batch, marginals.row
    described = []
    for number, batch in enumerate(marginals.batches):
        for field in ARRAYS[type(batch)]:
            arrays[f"batch{number}_{field}"] = getattr(batch, field)
        states = batch.states if isinstance(batch, Categorical) else None
        described.append({"family": type(batch).__name__, "states": states})
    return described


def _restore(header: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Posterior:
    domains = tuple(
        Domain(tuple(states) if states is not None else None, lower, upper)
        for states, lower, upper in header["domains"]
    )
    offsets = arrays["name_offsets"]
    names = pa.StringArray.from_buffers(
        len(offsets) - 1, pa.py_buffer(offsets), pa.py_buffer(arrays["name_letters"])
    )
    names.validate(full=True)
    variables = Variables(domains, arrays["domain_id"], Names.listed(names), arrays["multiplicity"])
    _check(arrays["observed"], np.bool_, len(variables))
    solution = dict(header["solution"], notes=tuple(header["solution"]["notes"]))
    log_partition = header["log_partition"]
    if log_partition:
        _check_kind(log_partition)
    assignment = None
    if "map" in header:
        _check(arrays["map_values"], np.float64, len(variables))
        _check_kind(header["map"])
        assignment = Assignment(
            variables, arrays["map_values"], arrays["observed"], **header["map"]
        )
    return Posterior(
        variables,
        arrays["observed"],
        Solution(**solution),
        LogPartition(**log_partition) if log_partition else None,
        _restore_marginals(header, arrays) if "batches" in header else None,
        assignment,
    )


def _restore_marginals(header: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Marginals:
    families = {family.__name__: family for family in ARRAYS}
    batches = []
    for number, described in enumerate(header["batches"]):
        family = families[described["family"]]
        fields: dict[str, Any] = {
            field: arrays[f"batch{number}_{field}"] for field in ARRAYS[family]
        }
        if described["states"] is not None:
            fields["states"] = tuple(described["states"])
        batches.append(family(**fields))
    batch, row = arrays["batch"], arrays["row"]
    _check(batch, np.int32, len(arrays["observed"]))
    _check(row, np.signedinteger, len(arrays["observed"]))
    sizes = np.array([batch.batch_shape[0] for batch in batches], dtype=np.int64)
    if len(batch) and not (batch.min() >= 0 and batch.max() < len(sizes)):
        raise ValueError("a batch of marginals that is not there")
    if len(row) and not ((row >= 0) & (row < sizes[batch])).all():
        raise ValueError("a row of marginals that is not there")
    return Marginals(tuple(batches), batch, row.astype(np.int32, copy=False))


def _check(array: NDArray[Any], dtype: Any, size: int) -> None:
    """Raises unless the array has such a type and that many entries."""
    if not np.issubdtype(array.dtype, dtype) or array.shape != (size,):
        raise ValueError(f"an array of {array.dtype} {array.shape} where ({size},) was stored")


def _check_kind(answer: dict[str, Any]) -> None:
    """Raises unless an answer has one of the kinds, and numbers as its values."""
    if answer["kind"] not in get_args(Kind):
        raise ValueError(f"the kind {answer['kind']!r}")
    for name, value in answer.items():
        if name != "kind" and not isinstance(value, int | float):
            raise TypeError(f"{name} is {value!r}")
