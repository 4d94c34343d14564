"""What a solver sees of a graph: all of it, its lifting, or ever finer liftings."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from hylift.errors import UnsupportedError
from hylift.graph import FactorGraph, conditioned
from hylift.graph.merge import merge_factors
from hylift.inference.gaussian.bounds import LEAK, mass_beyond
from hylift.inference.gaussian.form import GaussianForm, centred
from hylift.inference.method import Lift
from hylift.inference.view import View
from hylift.lifting import (
    Beliefs,
    Choose,
    by_disagreement,
    by_distance,
    coarse_to_fine,
    every_cluster,
    lift,
)
from hylift.potentials import ConditionalQuadratic, Table

MOST_STATES = 100
"""Of a variable, up to which classes are told apart by how much their members disagree."""
GROWTH = 0.5
"""Share by which clusters of evidence become more from level to level, at least."""
ENOUGH = 1e-4
"""Disagreement per variable, in nats, from which on only the exact lifting is worth a look."""


def views(
    graph: FactorGraph,
    how: Lift,
    beliefs: Callable[[], Beliefs],
    *,
    gaussian: Literal["centred", "solved"] | None,
    merge: bool = False,
) -> Iterator[View]:
    """Views from coarse to fine; only with coarse-to-fine lifting there is more than one.

    beliefs: what the solver has come to believe in the last view. gaussian: whether a Gaussian is
    looked at from its maximum, where the values of its evidence break no symmetry; or is solved in
    closed form, which leaves coarse views nothing to save. merge: whether factors with nested
    scopes become one.
    """
    if merge and how == "coarse-to-fine":
        raise UnsupportedError(
            "merge_factors needs the evidence in the factors, and coarse-to-fine lifting must know "
            "it apart: merge with lift='exact' or lift='none'"
        )
    if merge:
        hidden = conditioned(graph)
        inner = merge_factors(hidden.graph, "shared")
        for view in views(inner, how, beliefs, gaussian=gaussian):
            yield replace(view, hidden=hidden.hidden[view.hidden])
        return
    coarse = how == "coarse-to-fine"
    if gaussian == "solved" and coarse and (solved := _solved_view(graph)) is not None:
        yield solved
    elif gaussian == "centred" and (centre := _Centre.of(graph, how)) is not None:
        yield from centre.views(how)
    elif how == "none":
        yield View.whole(graph)
    elif how == "exact":
        lifting = lift(graph)
        tied = _ties_what_must_differ(lifting.graph)
        yield View.whole(graph) if tied else View.lifted(lifting)
    else:
        wide = int(graph.variables.num_states.max(initial=1)) > MOST_STATES
        choose: Choose = every_cluster
        if not wide:
            choose = by_disagreement(lambda level: beliefs(), growth=GROWTH, enough=ENOUGH)
        for number, level in enumerate(coarse_to_fine(graph, choose=choose)):
            if number == 0 and _ties_what_must_differ(level.lifting.graph):
                yield View.whole(graph)
                return
            parent = level.parent if number else None
            yield View.lifted(level.lifting, parent, is_last=level.is_last)


def _solved_view(graph: FactorGraph) -> View | None:
    """The lifting of a Gaussian; None if it is none, or if bounds matter to it."""
    lifting = lift(graph)
    form = GaussianForm.solved(lifting.graph)
    return View.lifted(lifting) if form is not None and _is_inside(form, form.means) else None


def _is_inside(form: GaussianForm, means: NDArray[np.float64]) -> bool:
    """Whether the best product with these means is within the bounds of its reals."""
    lower, upper = form.variables.lower, form.variables.upper
    return bool(mass_beyond(lower, upper, means, np.sqrt(form.var)).max(initial=0.0) <= LEAK)


@dataclass(frozen=True, slots=True, eq=False)
class _Centre:
    """A Gaussian, and where its maximum is."""

    whole: View
    means: NDArray[np.float64]  # (hidden variable,)

    @classmethod
    def of(cls, graph: FactorGraph, how: Lift) -> _Centre | None:
        """None if the graph is no Gaussian, or if bounds matter to it."""
        whole = View.whole(graph)
        form = GaussianForm.of(whole.graph)
        if form is None:
            return None
        # Means are the same for all members of a class.
        lifting = lift(graph) if how == "exact" else None
        small = GaussianForm.solved(lifting.graph if lifting else whole.graph)
        if small is None:
            return None
        means = lifting.spread(small.means) if lifting else small.means
        return cls(whole, means) if _is_inside(form, means) else None

    def views(self, how: Lift) -> Iterator[View]:
        """Views from the maximum."""
        middle = centred(self.whole.graph, self.means)
        found: Iterator[View]
        if how == "coarse-to-fine":
            found = (
                View.lifted(level.lifting, level.parent if number else None, is_last=level.is_last)
                for number, level in enumerate(by_distance(middle))
            )
        else:
            found = iter([View.whole(middle) if how == "none" else View.lifted(lift(middle))])
        ground, hidden = self.whole.ground, self.whole.hidden
        for view in found:
            yield replace(view, ground=ground, hidden=hidden, shift=self.means)


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
