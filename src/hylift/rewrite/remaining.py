"""A graph without some of its leaves, and the way back."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from hylift.graph.factor_graph import FactorGraph
from hylift.graph.factors import FactorGroup
from hylift.numerics.segments import inverse

Floats = NDArray[np.float64]
Ids = NDArray[np.int64]


class Leaves(ABC):
    """Variables that were eliminated; ids are of the graph before."""

    __slots__ = ()

    @property
    @abstractmethod
    def variables(self) -> NDArray[np.int32]:
        """Their ids."""

    @abstractmethod
    def restore(self, values: Floats, rng: np.random.Generator | None) -> None:
        """Fill in values (…, variable) of leaves from those of others: drawn, or the best ones."""


L = TypeVar("L", bound=Leaves)


@dataclass(frozen=True, slots=True, eq=False)
class Remaining(Generic[L]):
    """A graph without some of its leaves."""

    graph: FactorGraph
    kept: Ids
    """(variable of `graph`,): its id in the graph before."""
    eliminated: tuple[L, ...]
    """In the order in which they can be restored: after all that they depend on."""

    @classmethod
    def whole(cls, graph: FactorGraph) -> Remaining[L]:
        """The graph itself, where there are no leaves."""
        return cls(graph, np.arange(graph.num_variables), ())

    @classmethod
    def of(
        cls,
        graph: FactorGraph,
        eliminated: Sequence[L],
        groups: Iterable[FactorGroup],
        log_constant: float,
    ) -> Remaining[L]:
        """groups: of the variables that are left, with their ids in the graph before."""
        stays = np.ones(graph.num_variables, dtype=bool)
        for one in eliminated:
            stays[one.variables] = False
        smaller = graph.of_some(stays, groups, log_constant)
        return cls(smaller, np.flatnonzero(stays), tuple(eliminated))

    @property
    def new_id(self) -> NDArray[np.int32]:
        """(variable of the graph before,): its id in `graph`, -1 for leaves."""
        size = len(self.kept) + sum(one.variables.size for one in self.eliminated)
        return inverse(self.kept, size, np.int32)

    def restored(self, values: Floats, rng: np.random.Generator | None = None) -> Floats:
        """(…, variable of the graph before): values of `graph`'s, (…, its variable), and of leaves
        given these: the best ones, or drawn."""
        found = np.empty((*values.shape[:-1], len(self.new_id)))
        found[..., self.kept] = values
        for one in self.eliminated:
            one.restore(found, rng)
        return found
