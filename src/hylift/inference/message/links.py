"""Where messages go: from each slot of each factor to the variable that stands there."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hylift.graph import FactorGraph
from hylift.inference.terms import Terms

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Links:
    """The slots of all factors, in the order of `Terms`, and which of them a variable has.

    In a lifted graph a link stands for `count` links of each member of its variable: that many
    equal messages reach it, and to each factor it tells what all others say, and what one less
    than `count` of these say.
    """

    variable: NDArray[np.int32]  # (link,)
    count: FloatArray  # (link,): of one member; 1 in ground graphs
    variable_ptr: NDArray[np.int64]  # (variable + 1,): its entries in `order`
    order: NDArray[np.int64]  # links by variable
    factor: NDArray[np.int64]  # (link,): the factor it belongs to

    @classmethod
    def of(cls, graph: FactorGraph, terms: Terms) -> Links:
        arity = np.diff(terms.slot_ptr)
        multiplicity = np.repeat(terms.multiplicity, arity)
        held = np.bincount(terms.slots, minlength=graph.num_variables)
        return cls(
            terms.slots,
            multiplicity / graph.variables.multiplicity[terms.slots],
            np.concatenate([[0], np.cumsum(held)]),
            np.argsort(terms.slots, kind="stable"),
            np.repeat(np.arange(len(terms)), arity),
        )

    def factors_at(self, variables: NDArray[np.int64]) -> NDArray[np.int64]:
        """The factors in which some variables stand, once each, by increasing ids."""
        held = self.variable_ptr[variables + 1] - self.variable_ptr[variables]
        start = np.cumsum(held) - held
        within = np.arange(held.sum()) - np.repeat(start, held)
        links = self.order[np.repeat(self.variable_ptr[variables], held) + within]
        return np.unique(self.factor[links])

    def __len__(self) -> int:
        return len(self.variable)
