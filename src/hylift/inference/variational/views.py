"""What a solver sees of a graph: all of it, its lifting, or ever finer liftings."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hylift.graph import FactorGraph, conditioned
from hylift.inference.method import Lift
from hylift.lifting import Beliefs, Lifting, by_disagreement, coarse_to_fine, lift
from hylift.potentials import ConditionalQuadratic, Table
from hylift.progress import silent


@dataclass(frozen=True, slots=True, eq=False)
class View:
    """A graph to infer in, and how the variables of the user's graph stand in it."""

    graph: FactorGraph
    """Without evidence; lifted or not."""
    ground: FactorGraph
    """Without evidence, not lifted."""
    hidden: NDArray[np.int64]  # (ground variable,): its id in the user's graph
    variable_to_class: NDArray[np.int32]  # (ground variable,): its variable in `graph`
    parent: NDArray[np.int32] | None = None
    """(variable of `graph`,): where it was before, in the coarser view."""
    is_last: bool = True

    @classmethod
    def of_lifting(
        cls, lifting: Lifting, parent: NDArray[np.int32] | None = None, *, is_last: bool = True
    ) -> View:
        return cls(
            lifting.graph,
            lifting.ground,
            lifting.hidden,
            lifting.variable_to_class,
            parent,
            is_last,
        )


def views(graph: FactorGraph, how: Lift, beliefs: Callable[[], Beliefs]) -> Iterator[View]:
    """Views from coarse to fine; only with coarse-to-fine lifting there is more than one.

    beliefs: what the solver has come to believe in the last view.
    """
    if how == "none":
        yield _all(graph)
    elif how == "exact":
        lifting = lift(graph)
        yield View.of_lifting(lifting) if not _ties_what_must_differ(lifting.graph) else _all(graph)
    else:
        choose = by_disagreement(lambda level: beliefs())
        for number, level in enumerate(coarse_to_fine(graph, choose=choose, progress=silent)):
            parent = level.parent if number else None
            yield View.of_lifting(level.lifting, parent, is_last=level.is_last)


def _all(graph: FactorGraph) -> View:
    """The whole graph, not lifted."""
    whole = conditioned(graph)
    same = np.arange(whole.graph.num_variables, dtype=np.int32)
    return View(whole.graph, whole.graph, whole.hidden, same)


def _ties_what_must_differ(graph: FactorGraph) -> bool:
    """Whether members of a class stand together in a hard constraint.

    One distribution for all of them would have to satisfy it whichever way they fall, so that
    `a v b` would leave nothing but a = b = true.
    """
    for group in graph.groups:
        if not isinstance(group.potential, Table | ConditionalQuadratic) or group.arity < 2:
            continue
        hard = (group.potential.flat == -np.inf).any(axis=1)[group.row]
        if not hard.any():
            continue
        scope = np.sort(group.scope[hard], axis=1)
        if (scope[:, 1:] == scope[:, :-1]).any():
            return True
    return False
