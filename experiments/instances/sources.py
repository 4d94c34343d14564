"""Where instances come from: the models of the examples, and the files of published data."""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import scipy.io
from numpy.typing import NDArray

import hylift as hl
from hylift.errors import FormatError, did_you_mean
from hylift.files import read_bytes
from hylift.language.syntax import Number

MODELS = Path(__file__).parents[2] / "examples" / "models"


class MissingDataError(hl.HyliftError, FileNotFoundError):
    """A file of the published data that is not there."""


def model(name: str) -> hl.Model:
    """A model of the examples."""
    return hl.read_model(MODELS / f"{name}.mln")


def with_constants(model: hl.Model, values: Mapping[str, float]) -> hl.Model:
    """The model with other values of some of its constants."""
    parameters = tuple(
        replace(each, value=Number(values[each.name])) if each.name in values else each
        for each in model.parameters
    )
    return replace(model, parameters=parameters)


def with_reals_on(model: hl.Model, domain: hl.Domain) -> hl.Model:
    """The model with another domain of all its reals."""
    predicates = tuple(
        each if each.domain.is_discrete else replace(each, domain=domain)
        for each in model.predicates
    )
    return replace(model, predicates=predicates)


def published_file(path: Path, content: str) -> Path:
    """The path of a file with this content, which is there."""
    if not path.is_file():
        raise MissingDataError(
            f"{path}: no such file; expected {content}. Name the folder of the published data, or "
            f"none at all: evidence is then generated"
        )
    return path


def read_matrix(path: Path, name: str, shape: tuple[int, int]) -> NDArray[np.float64]:
    """A matrix of a file of MATLAB."""
    size = "{:,} × {:,}".format(*shape)
    content = read_bytes(published_file(path, f"a file of MATLAB with a matrix '{name}', {size}"))
    try:
        found = scipy.io.loadmat(io.BytesIO(content))
    except Exception as error:  # SciPy's reader raises whatever it stumbles over
        raise FormatError(path, f"is not a file of MATLAB up to version 7.2: {error}") from None
    matrices = {key: matrix for key, matrix in found.items() if not key.startswith("__")}
    if name not in matrices:
        known = ", ".join(f"'{key}'" for key in matrices) or "nothing"
        raise FormatError(
            path, f"has no matrix '{name}', but {known}.{did_you_mean(name, matrices)}"
        )
    matrix = np.asarray(matrices[name])
    if matrix.shape != shape or matrix.dtype.kind not in "biuf":
        actual = " × ".join(f"{length:,}" for length in matrix.shape) or "a single value"
        raise FormatError(
            path, f"'{name}' is {actual} of type {matrix.dtype}; expected numbers, {size}"
        )
    return matrix.astype(np.float64)
