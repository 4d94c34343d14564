"""Errors of models whose hard constraints leave nothing possible."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from hylift.errors import ImpossibleEvidenceError
from hylift.graph import FactorGraph

MOST_NAMED = 4


def named(graph: FactorGraph, variables: NDArray[Any]) -> str:
    """How errors call the variables of a factor."""
    names = [f"'{graph.variables.names[int(v)]}'" for v in variables[:MOST_NAMED]]
    return ", ".join(names) + (", …" if len(variables) > MOST_NAMED else "")


def contradiction(graph: FactorGraph, variables: NDArray[Any]) -> ImpossibleEvidenceError:
    """The error of variables of which no joint state is possible."""
    state = "state" if len(variables) == 1 else "joint state"
    return ImpossibleEvidenceError(
        f"the model and its evidence contradict each other: no {state} of "
        f"{named(graph, variables)} is possible, by what hard constraints around "
        f"{'it' if len(variables) == 1 else 'them'} say"
    )
