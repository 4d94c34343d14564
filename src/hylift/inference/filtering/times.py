"""The time of each variable."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hylift.errors import ModelError, UnknownNameError, did_you_mean
from hylift.graph import Atoms, Names
from hylift.graph.names import Selected
from hylift.grounding.constants import as_integers
from hylift.words import listed

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

TIMELESS = -1


def times_of(names: Names, time: str | NDArray[Any]) -> IntArray:
    """(variable,): its time, or -1; from the name of an argument, or from an array that says it."""
    times = _by_argument(names, time) if isinstance(time, str) else _given(names, time)
    if not (times >= 0).any():
        raise ModelError("no variable has a time: there is nothing to filter along")
    return times


def _given(names: Names, time: NDArray[Any]) -> IntArray:
    """An array of times, if it is one."""
    given = np.asarray(time)
    if given.shape != (len(names),) or not np.issubdtype(given.dtype, np.integer):
        raise ModelError(
            f"time is the name of an argument, such as 'month', or whole numbers, one for each of "
            f"{len(names)} variables, not an array of {given.dtype} of shape {given.shape}"
        )
    if len(given) and given.max() > np.iinfo(np.int64).max:
        at = int(np.argmax(given))
        raise ModelError(f"'{names[at]}' has time {given[at]}: a time is less than 2^63")
    if len(given) and given.min() < TIMELESS:
        at = int(np.argmin(given))
        raise ModelError(
            f"'{names[at]}' has time {given[at]}: a time is 0 or more, or -1 for a variable "
            "without one"
        )
    return given.astype(np.int64)


def _by_argument(names: Names, argument: str) -> IntArray:
    """The time of atoms is that argument of theirs; of several, the latest.

    Constants that are whole numbers, none of them negative, are times as they stand; of others
    their place among the constants of their type is.
    """
    blocks = [block for block in names.blocks if isinstance(block, Atoms)]
    if len(names.blocks) == 1 and isinstance(names.blocks[0], Selected):
        inner = names.blocks[0]
        return _by_argument(inner.names, argument)[inner.ids]
    constants = [block.constants[place] for block in blocks for place in _places(block, argument)]
    if not constants:
        raise _no_argument(blocks, argument)
    numbers = [as_integers(words) for words in constants]
    counted = all(found is not None and found.min(initial=0) >= 0 for found in numbers)
    if not counted and not all(words.equals(constants[0]) for words in constants):
        raise ModelError(
            f"the constants of argument '{argument}' are not whole numbers, and not the same for "
            "all predicates, so that their order is not known: give an array of times"
        )
    times = np.full(len(names), TIMELESS, dtype=np.int64)
    for block, offset in zip(names.blocks, names.offsets, strict=False):
        if isinstance(block, Atoms):
            own = times[offset : offset + len(block)]
            ids = block.constant_ids()
            for place in _places(block, argument):
                found = as_integers(block.constants[place]) if counted else None
                np.maximum(own, ids[place] if found is None else found[ids[place]], out=own)
    return times


def _places(block: Atoms, argument: str) -> list[int]:
    """Which arguments of a predicate are called so; a type that occurs twice is numbered."""
    if argument in block.labels:
        return [block.labels.index(argument)]
    numbered = [f"{argument}{1 + number}" for number in range(len(block.labels))]
    places = [place for place, label in enumerate(block.labels) if label in numbered]
    return places if len(places) > 1 else []


def _no_argument(blocks: list[Atoms], argument: str) -> UnknownNameError:
    known = list(dict.fromkeys(label for block in blocks for label in block.labels))
    close = did_you_mean(argument, known)
    if not known:
        close = " The variables here are not atoms with named arguments: give an array of times."
    elif not close:
        close = f" There are {listed([repr(label) for label in known])}."
    return UnknownNameError(f"no predicate has an argument '{argument}'.{close}")
