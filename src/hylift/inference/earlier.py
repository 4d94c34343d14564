"""What an earlier run knew about variables that have the same names."""

from __future__ import annotations

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from hylift.graph import Variables


def places_among(known: Variables, variables: Variables) -> NDArray[np.int64]:
    """(variable,): where it stands among the known ones, by name; -1 if it is new.

    A variable with another number of states is new.
    """
    if known is variables:
        return np.arange(len(variables))
    found = pc.index_in(variables.names.render(), value_set=known.names.render())
    at = pc.fill_null(found, -1).to_numpy(zero_copy_only=False).astype(np.int64)
    if not len(known):
        return at
    return np.where(known.num_states[at] == variables.num_states, at, -1)
