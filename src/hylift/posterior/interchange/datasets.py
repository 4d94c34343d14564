"""Draws as xarray data sets, for ArviZ and for NetCDF."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from hylift.errors import UnsupportedError
from hylift.files import write_whole
from hylift.graph import Variables
from hylift.posterior.interchange.axes import atom_arrays
from hylift.posterior.interchange.extras import extra

MAX_NUMBERS = 50_000_000
"""Most numbers of a data set: 400 MB."""
MAX_STORED_STATES = 4000
"""Most states whose names NetCDF stores with a variable: HDF5 has 64 kB for them."""

OF_DRAWS = ("chain", "draw")


def dataset(
    variables: Variables,
    ids: NDArray[np.int64],
    values: NDArray[np.float64],
    attributes: Mapping[str, Any],
) -> Any:
    """An `xarray.Dataset` with a variable per predicate, and an axis per argument.

    values: (chain, draw, variable), or (variable,) of what was observed. States are numbers, whose
    labels are the attribute `states` of their variable: ArviZ plots no labels, nor truth values.
    """
    xarray = extra("xarray")
    leading = OF_DRAWS[: values.ndim - 1]
    arrays, coordinates = (
        {},
        {axis: (axis, np.arange(size)) for axis, size in zip(leading, values.shape, strict=False)},
    )
    for atoms in atom_arrays(variables, ids, reserved=OF_DRAWS):
        some = values[..., atoms.place].reshape(*values.shape[:-1], *atoms.shape)
        states = atoms.domain.states
        arrays[atoms.name] = (
            (*leading, *atoms.axes),
            some if states is None else some.astype(np.int64),
            {} if states is None else {"states": list(states)},
        )
        coordinates |= {
            name: (axis, words.to_numpy(zero_copy_only=False))
            for name, (axis, words) in atoms.coordinates.items()
        }
    return xarray.Dataset(arrays, coordinates, dict(attributes))


def check_size(num_draws: int, num_variables: int) -> None:
    """Raises if a data set would be too large."""
    if num_draws * num_variables > MAX_NUMBERS:
        raise UnsupportedError(
            f"{num_draws:,} draws of {num_variables:,} atoms are more than {MAX_NUMBERS:,} numbers:"
            " name the atoms you need, or ask for fewer draws"
        )


def inference_data(posterior: Any, observed: Any | None) -> Any:
    """An `arviz.InferenceData` of data sets of draws and, where there are some, of observations."""
    groups = {"posterior": posterior} | ({} if observed is None else {"observed_data": observed})
    return extra("arviz").InferenceData(**groups)


def write_netcdf(data: Any, path: str | Path) -> None:
    """Writes inference data; an existing file is replaced only when the new one is complete."""
    for name, array in data.posterior.data_vars.items():
        array.encoding["zlib"] = array.dtype.kind != "f"  # draws of reals do not get smaller
        if len(array.attrs.get("states", ())) > MAX_STORED_STATES:
            raise UnsupportedError(
                f"{path}: '{name}' has more than {MAX_STORED_STATES:,} states, and NetCDF has no "
                "room for their names: name other atoms, or use to_xarray(…)"
            )

    def write(stream: IO[bytes]) -> None:
        # HDF5 writes to a file by name, and may leave it open where that fails.
        with TemporaryDirectory(prefix="hylift") as folder:
            whole = Path(folder, "whole.nc")
            try:
                data.to_netcdf(str(whole), compress=False)
            except OSError as error:
                raise _in_short(error) from None
            with open(whole, "rb") as source:
                shutil.copyfileobj(source, stream)

    write_whole(path, write)


def _in_short(error: OSError) -> OSError:
    """HDF5 tells of a full disk in many lines, with the number of the error among them."""
    number = re.search(r"errno = (\d+)", str(error))
    return OSError(int(number[1]), os.strerror(int(number[1]))) if number else error
