"""Draws as xarray data sets: an array per predicate, an axis per argument."""

from __future__ import annotations

import importlib
import re
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hylift.errors import UnsupportedError
from hylift.files import write_whole
from hylift.graph import Atoms, Domain, Numbered, Variables
from hylift.words import Wording

PROPER = {"arviz": "ArviZ", "xarray": "xarray", "pandas": "pandas", "polars": "Polars"}
"""Names of optional packages, as their authors write them."""
EXTRA = {"xarray": "arviz"}
"""The extra that installs a package, where the names differ."""
MAX_NUMBERS = 50_000_000
"""Most numbers of a data set: 400 MB."""
MAX_STORED_STATES = 4000
"""Most states whose names NetCDF stores with a variable: HDF5 has 64 kB for them."""

OF_DRAWS = ("chain", "draw")
MAX_ARRAYS = 1000
"""Most arrays: names without arguments have one each."""


def extra(package: str) -> Any:
    """The package, or an error that says how to install it."""
    try:
        with warnings.catch_warnings():
            # ArviZ announces its next major version in a warning.
            warnings.simplefilter("ignore", FutureWarning)
            return importlib.import_module(package)
    except ImportError:
        raise UnsupportedError(
            f"this needs {PROPER[package]}, which is not installed: install the extra "
            f"'{EXTRA.get(package, package)}' of hylift, or the package itself"
        ) from None


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
    """Raise an error if a data set would be too large."""
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
    """Write inference data; an existing file is replaced only when the new one is complete."""
    for name, array in data.posterior.data_vars.items():
        array.encoding["zlib"] = array.dtype.kind != "f"  # draws of reals do not get smaller
        if len(array.attrs.get("states", ())) > MAX_STORED_STATES:
            raise UnsupportedError(
                f"{path}: '{name}' has more than {MAX_STORED_STATES:,} states, and NetCDF has no "
                "room for their names",
                Wording("name other atoms, or use to_xarray(…)", "name other atoms with --query"),
            )

    def write(stream: IO[bytes]) -> None:
        # To memory, as HDF5 crashes where a disk is full.
        whole, backends = BytesIO(), importlib.import_module("xarray.backends")
        with importlib.import_module("h5netcdf").File(whole, "w") as file:
            for group in data.groups():
                data[group].dump_to_store(backends.H5NetCDFStore(file.create_group(group)))
        stream.write(whole.getbuffer())

    write_whole(path, write)


Coordinate = tuple[str, pa.Array]
"""The axis of constants or names, and these."""


@dataclass(frozen=True, slots=True, eq=False)
class AtomArray:
    """Some atoms of one predicate and one domain, as an array."""

    name: str
    domain: Domain
    place: NDArray[np.int64]  # (atom,): where each stands among the chosen, in the array's order
    shape: tuple[int, ...]
    axes: tuple[str, ...]
    """One per argument where the atoms fill the grid of their arguments, else one for all."""
    coordinates: dict[str, Coordinate]
    """Names of axes with the constants, or the atoms, along them; and arguments of the atoms."""


@dataclass(frozen=True, slots=True, eq=False)
class _Group:
    """Atoms that become one array."""

    name: str
    place: NDArray[np.int64]  # (atom,): among the chosen
    arguments: dict[str, pa.Array] | None
    """By label, a constant per atom; None where the names have no arguments."""

    def grid(self) -> dict[str, pa.DictionaryArray] | None:
        """The arguments by label, encoded, where the atoms fill their grid."""
        if self.arguments is None:
            return None
        columns = {label: words.dictionary_encode() for label, words in self.arguments.items()}
        sizes = np.array([len(column.dictionary) for column in columns.values()], dtype=np.float64)
        return columns if np.prod(sizes) == len(self.place) else None


def atom_arrays(
    variables: Variables, ids: NDArray[np.int64], *, reserved: tuple[str, ...]
) -> list[AtomArray]:
    """The chosen variables as arrays, none of which, nor an axis, has a reserved name.

    Axes of different predicates are one where their labels and constants are the same. Where only
    the labels are, that with the most constants has the plain one, and the first of equal ones.
    """
    groups = [
        group
        for block in range(len(variables.names.blocks))
        for group in _groups_of_block(variables, ids, block)
    ]
    names: list[str] = []
    for group in groups:
        names.append(_free(_clean(group.name), {*reserved, *names}))
    grids = [group.grid() for group in groups]
    used = _largest(grids)
    return [
        _arranged(variables, ids, group, grid, name, used, {*reserved, *names})
        for group, grid, name in zip(groups, grids, names, strict=True)
    ]


def _largest(grids: list[dict[str, pa.DictionaryArray] | None]) -> dict[str, pa.Array]:
    """By label, the constants of the argument that has the most of them."""
    found: dict[str, pa.Array] = {}
    for grid in grids:
        for label, column in (grid or {}).items():
            axis = _clean(label)
            if axis not in found or len(column.dictionary) > len(found[axis]):
                found[axis] = column.dictionary
    return found


def _groups_of_block(variables: Variables, ids: NDArray[np.int64], number: int) -> Iterator[_Group]:
    """The chosen atoms of one block of names."""
    offsets = variables.names.offsets
    block, first = variables.names.blocks[number], offsets[number]
    place = np.flatnonzero((ids >= first) & (ids < offsets[number + 1]))
    domain_id = variables.domain_id[ids[place]].astype(np.int64)
    if isinstance(block, Atoms):
        index = pa.array(ids[place] - first)
        columns = {label: words.take(index) for label, words in block.argument_columns().items()}
        for at in _by_key(domain_id):
            some = {label: words.take(pa.array(at)) for label, words in columns.items()}
            yield _Group(block.predicate, place[at], some)
    elif isinstance(block, Numbered):
        for at in _by_key(domain_id):
            yield _Group(block.prefix, place[at], None)
    elif len(place):
        text = variables.names.render(ids[place])
        predicate = pc.replace_substring_regex(text, r"(?s)\(.*$", "").dictionary_encode()
        which = predicate.indices.to_numpy().astype(np.int64)
        found = _by_key(which * len(variables.domains) + domain_id)
        if len(found) > MAX_ARRAYS:
            raise UnsupportedError(
                f"a data set has at most {MAX_ARRAYS:,} variables, one per predicate, not "
                f"{len(found):,}: name the atoms you need"
            )
        for at in found:
            name = predicate.dictionary[int(which[at[0]])].as_py()
            yield _Group(name, place[at], _arguments(name, text.take(pa.array(at))))


def _by_key(key: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    """Positions of equal keys, in the order of first occurrence."""
    _, first, which = np.unique(key, return_index=True, return_inverse=True)
    order = np.argsort(which, kind="stable")
    parts = np.split(order, np.cumsum(np.bincount(which))[:-1]) if len(key) else []
    return [parts[at] for at in np.argsort(first)]


def _arguments(predicate: str, atoms: pa.StringArray) -> dict[str, pa.StringArray] | None:
    """The arguments in the names of atoms of one predicate; None where they are ambiguous."""
    if len(atoms) == 1 and atoms[0].as_py() == predicate:
        return {}
    inside = pc.utf8_slice_codeunits(atoms, len(predicate) + 1, -1)
    plain = pc.and_(
        pc.match_substring_regex(atoms, r'(?s)^[^"]*\)$'), pc.match_substring(atoms, "(")
    )
    commas = pc.count_substring(inside, ",")
    if not pc.all(plain).as_py() or len(pc.unique(commas)) > 1:
        return None
    words = pc.utf8_trim_whitespace(pc.list_flatten(pc.split_pattern(inside, ",")))
    arity = commas[0].as_py() + 1
    return {
        f"arg{argument + 1}": words.take(pa.array(np.arange(argument, len(words), arity)))
        for argument in range(arity)
    }


def _arranged(
    variables: Variables,
    ids: NDArray[np.int64],
    group: _Group,
    grid: dict[str, pa.DictionaryArray] | None,
    name: str,
    used: dict[str, pa.Array],
    taken: set[str],
) -> AtomArray:
    """A group as an array; its axes are added to `used`, the axes and their constants so far."""
    domain = variables.domain(int(ids[group.place[0]]))
    if grid is not None:
        shape = tuple(len(column.dictionary) for column in grid.values())
        axes: list[str] = []
        for label, column in grid.items():
            own = _axis(label, name, column.dictionary, used, taken | set(axes))
            axes.append(own)
            used[own] = column.dictionary
        codes = tuple(column.indices.to_numpy() for column in grid.values())
        # Without arguments there is a single atom.
        order = np.argsort(np.ravel_multi_index(codes, shape)) if codes else np.zeros(1, np.int64)
        coordinates = {axis: (axis, used[axis]) for axis in axes}
        return AtomArray(name, domain, group.place[order], shape, tuple(axes), coordinates)
    axis = _free(f"{name}_atom", taken | set(used))
    used[axis] = variables.names.render(ids[group.place])
    coordinates = {axis: (axis, used[axis])}
    for label, words in (group.arguments or {}).items():
        beside = _free(f"{name}_{_clean(label)}", taken | set(used))
        used[beside] = words
        coordinates[beside] = (axis, words)
    return AtomArray(name, domain, group.place, (len(group.place),), (axis,), coordinates)


def _axis(
    label: str, name: str, words: pa.Array, used: dict[str, pa.Array], taken: set[str]
) -> str:
    """The label, prefixed by the predicate if it already names other constants."""
    label = _clean(label)
    for axis in (label, f"{name}_{label}"):
        if axis not in taken and (axis not in used or used[axis].equals(words)):
            return axis
    return _free(f"{name}_{label}", taken | set(used))


def _free(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "_"
    return name


def _clean(name: str) -> str:
    """A valid name in NetCDF, where a slash separates groups."""
    return re.sub(r"[/\x00-\x1f]", "_", name).strip() or "value"
