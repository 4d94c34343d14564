"""The state of an optimiser as arrays that can be kept, and back."""

from __future__ import annotations

import numpy as np

from hylift.archive import Arrays
from hylift.errors import UnsupportedError
from hylift.inference.variational.objective import Evaluation
from hylift.inference.variational.optimisers import State
from hylift.inference.variational.optimisers.adam import Averages
from hylift.inference.variational.optimisers.base import Memory
from hylift.inference.variational.optimisers.newton import Curvature
from hylift.inference.variational.problem import Mixtures


def arrays_of(state: State) -> Arrays:
    """All that the next step depends on."""
    arrays = {
        "weights": state.q.weights,
        "entries": state.q.entries,
        "value": state.at.value,
        "of_weights": state.at.of_weights,
        "of_entries": state.at.of_entries,
        "step": np.array(state.step),
        "rho": state.rho,
        "calm": state.calm,
    }
    match state.memory:
        case Curvature() as memory:
            place = np.array([memory.count, memory.newest])
            arrays |= {"steps": memory.steps, "changes": memory.changes, "place": place}
        case Averages() as memory:
            arrays |= {"mean": memory.mean, "square": memory.square}
            arrays["count"] = np.array(memory.count)
        case None:
            pass
        case other:
            raise UnsupportedError(
                f"checkpoints know what our own optimisers remember, not '{type(other).__name__}'"
            )
    return arrays


def state_of(arrays: Arrays) -> State:
    """The state of which these are the arrays."""
    memory: Memory | None = None
    if "steps" in arrays:
        count, newest = arrays["place"].tolist()
        memory = Curvature(arrays["steps"], arrays["changes"], count, newest)
    elif "mean" in arrays:
        memory = Averages(arrays["mean"], arrays["square"], int(arrays["count"]))
    return State(
        Mixtures(arrays["weights"], arrays["entries"]),
        Evaluation(arrays["value"], arrays["of_weights"], arrays["of_entries"]),
        int(arrays["step"]),
        arrays["rho"],
        arrays["calm"],
        memory,
    )
