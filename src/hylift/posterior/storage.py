"""A posterior in one file."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hylift.archive import Archive, Arrays
from hylift.components import Layout
from hylift.graph import Atoms, Domain, Evidence, NameBlock, Names, Numbered, Variables
from hylift.graph.name_blocks import TEXT, has_own_type, read_as
from hylift.posterior.answers import (
    Assignment,
    History,
    Kind,
    LogPartition,
    Measure,
    Result,
    Solution,
)
from hylift.posterior.distributions import (
    BatchedDistribution,
    BetaMixture,
    Categorical,
    GaussianMixture,
    PiecewiseDensity,
    PointMass,
)
from hylift.posterior.draws import Draws
from hylift.posterior.marginals import Marginals
from hylift.posterior.mixture import Mixture
from hylift.posterior.posterior import Posterior

FILE = Archive("a saved posterior", "hylift posterior", 4, "infer again and save it")

FAMILIES: dict[str, type[BatchedDistribution]] = {
    family.__name__: family
    for family in (BetaMixture, Categorical, GaussianMixture, PiecewiseDensity, PointMass)
}
"""Marginals that can be stored."""
LAYOUT = {"family": np.int8, "first": np.int64, "lower": np.float64, "upper": np.float64}
MIXTURE = {
    "weights": np.float64,
    "entries": np.float64,
    "variable_to_class": np.int32,
    "hidden": np.int64,
}
HISTORY = {
    "seconds": np.float64,
    "objective": np.float64,
    "num_classes": np.int64,
    "level": np.int32,
}
"""Array fields and their types."""


def save(posterior: Posterior, path: str | Path) -> None:
    """Write the posterior; an existing file is replaced only when the new one is complete."""
    variables = posterior.variables
    solution = posterior.solution
    arrays: Arrays = {
        "domain_id": variables.domain_id,
        "multiplicity": variables.multiplicity,
        "observed": posterior.observed,
    }
    header: dict[str, Any] = {
        "names": _store_names(variables.names, arrays),
        "domains": [[d.states, d.lower, d.upper] for d in variables.domains],
        "solution": asdict(replace(solution, history=None)),
        "log_partition": asdict(posterior.log_partition) if posterior.log_partition else None,
        "mixture": posterior.mixture is not None,
        "history": None if solution.history is None else solution.history.measure,
    }
    if posterior.mixture is not None:
        _store_fields(posterior.mixture.layout, LAYOUT, "layout", arrays)
        _store_fields(posterior.mixture, MIXTURE, "mixture", arrays)
    if solution.history is not None:
        _store_fields(solution.history, HISTORY, "history", arrays)
    if posterior.all_marginals is not None:
        header["batches"] = _store_marginals(posterior.all_marginals, arrays)
    if posterior.assignment is not None:
        arrays["map_values"] = posterior.assignment.values
        header["map"] = {"energy": posterior.assignment.energy, "kind": posterior.assignment.kind}
    if posterior.draws is not None:
        _store_draws(posterior.draws, arrays)
    # Draws of reals take long to compress, and do not get smaller.
    has_reals = "draws_reals" in arrays and arrays["draws_reals"].size > 0
    FILE.write(path, header, arrays, compress=not has_reals)


def load(path: str | Path) -> Posterior:
    """Read a file written by `save`."""
    return FILE.read(path, _restore)


def _store_marginals(marginals: Marginals, arrays: Arrays) -> list[dict[str, Any]]:
    arrays["batch"], arrays["row"] = marginals.batch, marginals.row
    described = []
    for number, batch in enumerate(marginals.batches):
        for field in batch._event_ndims:
            arrays[f"batch{number}_{field}"] = getattr(batch, field)
        states = batch.states if isinstance(batch, Categorical) else None
        described.append({"family": type(batch).__name__, "states": states})
    return described


def _restore(header: dict[str, Any], arrays: Arrays) -> Posterior:
    domains = tuple(
        Domain(tuple(states) if states is not None else None, lower, upper)
        for states, lower, upper in header["domains"]
    )
    names = _restore_names(header["names"], arrays)
    variables = Variables(domains, arrays["domain_id"], names, arrays["multiplicity"])
    _check(arrays["observed"], np.bool_, len(variables))
    mixture = None
    if header["mixture"]:
        layout = Layout(**_restore_fields(LAYOUT, "layout", arrays))
        mixture = Mixture(layout=layout, **_restore_fields(MIXTURE, "mixture", arrays))
    log_partition = header["log_partition"]
    if log_partition:
        _check_kind(log_partition)
    assignment = None
    if "map" in header:
        _check(arrays["map_values"], np.float64, len(variables))
        _check_kind(header["map"])
        Evidence.of(np.arange(len(variables)), arrays["map_values"]).check(variables)
        assignment = Assignment(
            variables, arrays["map_values"], arrays["observed"], **header["map"]
        )
    return Posterior(
        variables,
        arrays["observed"],
        _restore_solution(header, arrays),
        LogPartition(**log_partition) if log_partition else None,
        _restore_marginals(header, arrays, variables) if "batches" in header else None,
        assignment,
        mixture,
        draws=_restore_draws(arrays, variables) if "draws_ids" in arrays else None,
    )


def _store_draws(draws: Draws, arrays: Arrays) -> None:
    """States and reals apart, since states need a byte or two each."""
    num_states = draws.variables.num_states[draws.ids]
    is_real = num_states == 0
    states = np.min_scalar_type(max(int(num_states.max(initial=0)) - 1, 0))
    arrays["draws_ids"] = draws.ids
    arrays["draws_reals"] = draws.values[:, :, is_real]
    arrays["draws_states"] = draws.values[:, :, ~is_real].astype(states)


def _restore_draws(arrays: Arrays, variables: Variables) -> Draws:
    ids, reals, states = (arrays[f"draws_{part}"] for part in ("ids", "reals", "states"))
    _check(ids, np.int64, int(np.count_nonzero(~arrays["observed"])))
    if (ids != np.flatnonzero(~arrays["observed"])).any():
        raise ValueError("draws of variables that are not the hidden ones")
    num_states = variables.num_states[ids]
    is_real = num_states == 0
    shape = reals.shape[:2]
    widths = int(is_real.sum()), int((~is_real).sum())
    if (reals.shape, states.shape) != ((*shape, widths[0]), (*shape, widths[1])):
        raise ValueError(f"draws of shapes {reals.shape} and {states.shape}")
    if not np.issubdtype(states.dtype, np.unsignedinteger) or reals.dtype != np.float64:
        raise ValueError(f"draws of {states.dtype} and {reals.dtype}")
    if not (states < num_states[~is_real]).all() or not np.isfinite(reals).all():
        raise ValueError("draws of a state or a number that is none")
    values = np.empty((*shape, len(ids)))
    values[:, :, is_real], values[:, :, ~is_real] = reals, states
    return Draws(variables, ids, values)


def _restore_solution(header: dict[str, Any], arrays: Arrays) -> Solution:
    stored = dict(header["solution"], notes=tuple(header["solution"]["notes"]), history=None)
    if header["history"] is not None:
        if header["history"] not in get_args(Measure):
            raise ValueError(f"a history of {header['history']!r}")
        fields = _restore_fields(HISTORY, "history", arrays)
        stored["history"] = History(**fields, measure=header["history"])
    solution = Solution(**stored)
    numbers = (solution.seed, solution.steps, solution.seconds, solution.objective or 0.0)
    if solution.result not in get_args(Result) or not isinstance(solution.method, str):
        raise ValueError(f"the result {solution.result!r} of {solution.method!r}")
    if not all(isinstance(number, int | float) for number in numbers):
        raise TypeError(f"the numbers of a solution are {numbers}")
    return solution


def _store_fields(value: object, fields: dict[str, Any], name: str, arrays: Arrays) -> None:
    arrays |= {f"{name}_{field}": np.asarray(getattr(value, field)) for field in fields}


def _restore_fields(fields: dict[str, Any], name: str, arrays: Arrays) -> Arrays:
    """The stored fields, with checked types; their class checks shapes and values."""
    found = {field: arrays[f"{name}_{field}"] for field in fields}
    for field, array in found.items():
        if array.dtype != fields[field]:
            raise ValueError(f"{name}_{field} has the type {array.dtype}")
    return found


def _restore_marginals(header: dict[str, Any], arrays: Arrays, variables: Variables) -> Marginals:
    batches = []
    for number, described in enumerate(header["batches"]):
        family = FAMILIES[described["family"]]
        fields: dict[str, Any] = {
            field: arrays[f"batch{number}_{field}"] for field in family._event_ndims
        }
        if described["states"] is not None:
            fields["states"] = tuple(described["states"])
        batches.append(family(**fields))
    batch, row = arrays["batch"], arrays["row"]
    _check(batch, np.int32, len(arrays["observed"]))
    _check(row, np.signedinteger, len(arrays["observed"]))
    if any(len(batch.batch_shape) != 1 for batch in batches):
        raise ValueError("marginals that are not in rows")
    sizes = np.array([batch.batch_shape[0] for batch in batches], dtype=np.int64)
    if len(batch) and not (batch.min() >= 0 and batch.max() < len(sizes)):
        raise ValueError("a batch of marginals that is not there")
    if len(row) and not ((row >= 0) & (row < sizes[batch])).all():
        raise ValueError("a row of marginals that is not there")
    num_states = [len(batch.states) if isinstance(batch, Categorical) else 0 for batch in batches]
    if (np.array(num_states, dtype=np.int64)[batch] != variables.num_states).any():
        raise ValueError("a marginal of a variable with other states")
    return Marginals(tuple(batches), batch, row.astype(np.int32, copy=False))


def _check(array: NDArray[Any], dtype: Any, size: int) -> None:
    """Raise an error unless the array has this type and size."""
    if not np.issubdtype(array.dtype, dtype) or array.shape != (size,):
        raise ValueError(f"an array of {array.dtype} {array.shape} where ({size},) was stored")


def _check_kind(answer: dict[str, Any]) -> None:
    """Raise an error unless an answer has a known kind and numeric values."""
    if answer["kind"] not in get_args(Kind):
        raise ValueError(f"the kind {answer['kind']!r}")
    for name, value in answer.items():
        if name != "kind" and not isinstance(value, int | float):
            raise TypeError(f"{name} is {value!r}")


def _store_names(names: Names, arrays: Arrays) -> list[dict[str, Any]]:
    """A description of each block for the header; its words go to `arrays`."""
    numbers: dict[int, int] = {}  # of lists of words, by identity: arguments share them

    def number(words: pa.StringArray) -> int:
        if id(words) not in numbers:
            numbers[id(words)] = len(numbers)
            kept.append(words)
            _store_words(words, f"words{numbers[id(words)]}", arrays)
        return numbers[id(words)]

    kept: list[pa.StringArray] = []  # so that no identity is used twice
    described: list[dict[str, Any]] = []
    for place, (block, first) in enumerate(zip(names.blocks, names.offsets, strict=False)):
        if isinstance(block, Numbered):
            described.append({"kind": "numbered", "prefix": block.prefix, "count": block.count})
        elif isinstance(block, Atoms):
            if block.arguments is not None:
                arrays[f"arguments{place}"] = block.arguments
            described.append(
                {
                    "kind": "atoms",
                    "predicate": block.predicate,
                    "constants": [number(words) for words in block.constants],
                    "labels": list(block.labels),
                    "types": [_type_text(kind) for kind in block.types],
                }
            )
        else:
            text = names.render(np.arange(first, first + len(block)))
            described.append({"kind": "listed", "words": number(text)})
    return described


def _restore_names(described: list[dict[str, Any]], arrays: Arrays) -> Names:
    """The names stored by `_store_names`; an error if they are inconsistent."""
    restored: dict[int, pa.StringArray] = {}

    def words(number: int) -> pa.StringArray:
        if number not in restored:
            restored[number] = _restore_words(f"words{number}", arrays)
        return restored[number]

    blocks: list[NameBlock] = []
    for place, block in enumerate(described):
        if block["kind"] == "numbered":
            blocks.append(Numbered(_text(block["prefix"]), _count(block["count"])))
        elif block["kind"] == "atoms":
            constants = tuple(words(number) for number in block["constants"])
            arguments = arrays.get(f"arguments{place}")
            if arguments is not None and arguments.dtype != np.int32:
                raise ValueError(f"arguments of {arguments.dtype}")
            labels = tuple(_text(label) for label in block["labels"])
            if labels and len(labels) != len(constants):
                raise ValueError("labels that do not fit the arguments")
            types = tuple(_type_of(text) for text in block["types"])
            for column, kind in zip(constants, types, strict=False):
                read_as(column, kind)  # raises if they are not of the type
            predicate = _text(block["predicate"])
            blocks.append(Atoms(predicate, constants, arguments, labels=labels, types=types))
        elif block["kind"] == "listed":
            blocks += Names.listed(words(block["words"])).blocks
        else:
            raise ValueError(f"a block of names of kind {block['kind']!r}")
    return Names(tuple(blocks))


def _store_words(words: pa.StringArray, name: str, arrays: Arrays) -> None:
    offsets = np.frombuffer(words.buffers()[1], dtype=np.int32)[words.offset :][: len(words) + 1]
    data = words.buffers()[2]
    arrays[f"{name}_offsets"] = offsets if len(words) else np.zeros(1, np.int32)
    letters = np.frombuffer(data, dtype=np.uint8) if data is not None else np.zeros(0, np.uint8)
    arrays[f"{name}_letters"] = letters


def _restore_words(name: str, arrays: Arrays) -> pa.StringArray:
    offsets, letters = arrays[f"{name}_offsets"], arrays[f"{name}_letters"]
    if offsets.dtype != np.int32 or letters.dtype != np.uint8 or offsets.ndim != 1:
        raise ValueError(f"words of {offsets.dtype} and {letters.dtype}")
    words = pa.StringArray.from_buffers(
        len(offsets) - 1, pa.py_buffer(offsets), pa.py_buffer(letters)
    )
    words.validate(full=True)
    return words


def _type_text(kind: pa.DataType) -> list[str | None]:
    """The name of a type, and the time zone of moments that have one."""
    if pa.types.is_timestamp(kind):
        return [str(pa.timestamp(kind.unit)), kind.tz]
    return [str(kind), None]


def _type_of(text: list[str | None]) -> pa.DataType:
    name, zone = text
    kind = pa.type_for_alias(_text(name))
    if zone is not None:
        kind = pa.timestamp(kind.unit, _text(zone))
    if kind != TEXT and not has_own_type(kind):
        raise ValueError(f"constants of the type {kind}")
    return kind


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is not a text")
    return value


def _count(value: Any) -> int:
    if not isinstance(value, int) or value < 0:
        raise TypeError(f"{value!r} is not a number of names")
    return value
