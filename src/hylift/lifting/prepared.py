"""A graph made ready for color passing."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass

from hylift.compilation import announce_compilation
from hylift.errors import ModelError
from hylift.graph import Conditioned, FactorGraph, conditioned
from hylift.lifting.coloring import Structure
from hylift.lifting.coloring.parameters import check_tolerance
from hylift.lifting.coloring.structure import Links
from hylift.lifting.kernels.coloring import collect


@dataclass(frozen=True, slots=True, eq=False)
class Prepared:
    """A graph whose evidence is absorbed and whose scopes are laid out flat."""

    source: FactorGraph
    """As it was given, with its evidence."""
    conditioned: Conditioned
    structure: Structure
    """Of the conditioned graph."""
    links: Callable[[], Links]
    """Those of the structure, made when they are first asked for."""
    tolerance: float

    @classmethod
    def of(cls, graph: FactorGraph, tolerance: float) -> Prepared:
        if not isinstance(graph, FactorGraph):
            raise ModelError(
                f"a FactorGraph is lifted, not a value of type '{type(graph).__name__}'"
            )
        tolerance = check_tolerance(tolerance)
        announce_compilation(collect)
        hidden = conditioned(graph)
        structure = Structure.of(hidden.graph, tolerance)
        return cls(graph, hidden, structure, functools.cache(structure.links), tolerance)
