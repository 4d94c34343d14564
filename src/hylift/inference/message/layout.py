"""Where messages go, and sums over the entries of each variable."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hylift.errors import HyliftError, ImpossibleEvidenceError, IntractableError
from hylift.graph import FactorGraph, FactorGroup, Variables
from hylift.inference.terms import Terms
from hylift.numerics.segments import counts_up, offsets
from hylift.numerics.threads import in_order

FloatArray = NDArray[np.float64]
Ids = NDArray[np.int64]
Blocks = list[tuple[int, int]]

MOST_NAMED = 4
"""Variables that an error lists."""


@dataclass(frozen=True, slots=True, eq=False)
class Links:
    """The slots of all factors, in the order of `Terms`, and the slots of each variable.

    In a lifted graph a link stands for `count` links of each member of its variable: the variable
    receives that many equal messages, and its message to each factor leaves out one of them.
    """

    variable: NDArray[np.int32]  # (link,)
    count: FloatArray  # (link,): of one member; 1 in ground graphs
    variable_ptr: Ids  # (variable + 1,): its entries in `order`
    order: Ids  # links by variable
    factor: Ids  # (link,)

    @classmethod
    def of(cls, graph: FactorGraph, terms: Terms) -> Links:
        arity = np.diff(terms.slot_ptr)
        multiplicity = np.repeat(terms.multiplicity, arity)
        return cls(
            terms.slots,
            multiplicity / graph.variables.multiplicity[terms.slots],
            offsets(np.bincount(terms.slots, minlength=graph.num_variables)),
            np.argsort(terms.slots, kind="stable"),
            np.repeat(np.arange(len(terms)), arity),
        )

    def factors_at(self, variables: Ids) -> Ids:
        """The factors of some variables, increasing, each once."""
        held = self.variable_ptr[variables + 1] - self.variable_ptr[variables]
        links = self.order[np.repeat(self.variable_ptr[variables], held) + counts_up(held)]
        return np.unique(self.factor[links])

    def __len__(self) -> int:
        return len(self.variable)


def bethe_log_z(
    graph: FactorGraph, terms: Terms, of_factor: FloatArray, of_variable: FloatArray
) -> float:
    """Σ n_v log Z_v + Σ n_c (log Z_c - Σ log Z_v of its slots), without the graph's constant.

    Correct at a fixed point, and to second order near one.
    """
    factor = np.repeat(np.arange(len(terms)), np.diff(terms.slot_ptr))
    told = np.bincount(factor, of_variable[terms.slots], minlength=len(terms))
    own = float(graph.variables.multiplicity @ of_variable)
    return own + float(terms.multiplicity @ (of_factor - told))


def own_terms(variables: Variables, groups: Iterable[FactorGroup]) -> tuple[FloatArray, FloatArray]:
    """(variable,): precision given all others, and slope at 0, of one member; from quadratics of
    reals alone."""
    precision, slope = np.zeros(len(variables)), np.zeros(len(variables))
    for group in groups:
        form = group.potential.quadratic()
        if form is None or not form.num_reals:
            continue
        at, weight = group.scope.ravel(), group.multiplicity[:, None]
        diagonal = -2 * np.diagonal(form.A[:, 0], axis1=1, axis2=2)
        precision += np.bincount(at, (weight * diagonal[group.row]).ravel(), len(variables))
        slope += np.bincount(at, (weight * form.b[:, 0][group.row]).ravel(), len(variables))
    return precision / variables.multiplicity, slope / variables.multiplicity


def in_blocks(kernel: Callable[..., Any], blocks: Blocks, *arguments: Any) -> list[Any]:
    """The results of kernel(begin, end, *arguments) for all blocks, computed by several threads."""
    return list(in_order(lambda begin, end: kernel(begin, end, *arguments), blocks))


def quoted_names(graph: FactorGraph, variables: NDArray[Any]) -> str:
    names = [f"'{graph.variables.names[int(v)]}'" for v in variables[:MOST_NAMED]]
    return ", ".join(names) + (", …" if len(variables) > MOST_NAMED else "")


def contradiction(graph: FactorGraph, variables: NDArray[Any]) -> HyliftError:
    """The error to raise where no joint state or particle of some variables is possible."""
    names = quoted_names(graph, variables)
    if (graph.variables.num_states == 0).any():
        return IntractableError(
            f"no joint particle of {names} is possible, by what hard constraints around them say: "
            "they contradict each other, or leave too little room for so few particles"
        )
    state, them = ("state", "it") if len(variables) == 1 else ("joint state", "them")
    return ImpossibleEvidenceError(
        f"the model and its evidence contradict each other: no {state} of {names} is possible, "
        f"by what hard constraints around {them} say"
    )
