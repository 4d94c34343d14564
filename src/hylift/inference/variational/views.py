"""Views of a graph to fit: the graph itself, its lifting, or ever finer liftings."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from hylift.components.gaussian import LEAK, mass_beyond
from hylift.errors import UnsupportedError
from hylift.graph import FactorGraph
from hylift.inference.method import Lift
from hylift.inference.prepared import Prepared, View
from hylift.lifting import (
    Beliefs,
    Choose,
    Level,
    Surroundings,
    by_disagreement,
    by_distance,
    coarse_to_fine,
    every_cluster,
)
from hylift.proper.gaussian import GaussianForm, centred
from hylift.words import option, worded

MOST_STATES = 100
"""Of a variable, up to which classes are split by how much their members disagree."""
GROWTH = 0.5
"""Share by which clusters of evidence become more from level to level, at least."""
ENOUGH = 1e-4
"""Disagreement per variable, in nats, from which on only the exact lifting is worth a look."""


def views(
    prepared: Prepared,
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
            worded(
                option("merge_factors"),
                " needs the evidence in the factors, and coarse-to-fine lifting must know it apart",
            ),
            worded("merge with ", option("lift", "exact"), " or ", option("lift", "none")),
        )
    if merge:
        prepared = prepared.with_merged_factors()
    coarse = how == "coarse-to-fine"
    if gaussian == "solved" and coarse and (solved := _solved_view(prepared)) is not None:
        yield solved
    elif gaussian == "centred" and (centre := _Centre.of(prepared, how)) is not None:
        yield from centre.views(how)
    elif not coarse:
        tied = how == "exact" and _ties_what_must_differ(prepared.lifting.graph)
        yield prepared.view(is_lifted=how == "exact" and not tied)
    else:
        graph = prepared.source
        wide = int(graph.variables.num_states.max(initial=1)) > MOST_STATES
        choose: Choose = every_cluster
        if not wide:
            choose = by_disagreement(lambda level: beliefs(), growth=GROWTH, enough=ENOUGH)
        for view in _lifted_views(prepared, coarse_to_fine(prepared.conditioned, choose=choose)):
            if view.parent is None and _ties_what_must_differ(view.graph):
                yield View.whole(prepared)
                return
            yield view


def _solved_view(prepared: Prepared) -> View | None:
    """The lifting of a Gaussian; None if it is none, or if bounds matter to it."""
    form = GaussianForm.solved(prepared.lifting.graph)
    is_one = form is not None and _is_inside(form, form.means)
    return prepared.view(is_lifted=True) if is_one else None


def _is_inside(form: GaussianForm, means: NDArray[np.float64]) -> bool:
    """True if the best product with these means is within the bounds of its reals."""
    lower, upper = form.variables.lower, form.variables.upper
    return bool(mass_beyond(lower, upper, means, np.sqrt(form.var)).max(initial=0.0) <= LEAK)


@dataclass(frozen=True, slots=True, eq=False)
class _Centre:
    """A Gaussian, and where its maximum is."""

    prepared: Prepared
    means: NDArray[np.float64]  # (hidden variable,)

    @classmethod
    def of(cls, prepared: Prepared, how: Lift) -> _Centre | None:
        """None if the graph is no Gaussian, or if bounds matter to it."""
        form = GaussianForm.of(prepared.ground)
        if form is None:
            return None
        # Means are the same for all members of a class.
        view = prepared.view(is_lifted=how == "exact")
        small = GaussianForm.solved(view.graph)
        if small is None:
            return None
        means = small.means[view.variable_to_class]
        return cls(prepared, means) if _is_inside(form, means) else None

    def views(self, how: Lift) -> Iterator[View]:
        """Views from the maximum."""
        middle = self.prepared.with_ground(centred(self.prepared.ground, self.means))
        if how == "coarse-to-fine":
            found = _lifted_views(middle, by_distance(middle.ground))
        else:
            found = iter([middle.view(is_lifted=how == "exact")])
        for view in found:
            yield replace(view, prepared=self.prepared, shift=self.means)


def _lifted_views(prepared: Prepared, levels: Iterable[Level | Surroundings]) -> Iterator[View]:
    """Views of ever finer liftings."""
    for number, level in enumerate(levels):
        parent = level.parent if number else None
        yield View.lifted(prepared, level.lifting, parent, is_last=level.is_last)


def _ties_what_must_differ(graph: FactorGraph) -> bool:
    """True if members of a class are together in a hard constraint.

    One distribution for all of them would have to satisfy it whichever way they fall, so that
    `a v b` would leave nothing but a = b = true.
    """
    for group in graph.groups:
        form = group.potential.quadratic()
        if form is None or group.arity < 2:
            continue
        hard = (form.c == -np.inf).any(axis=1)[group.row]
        if not hard.any():
            continue
        scope = np.sort(group.scope[hard], axis=1)
        if (scope[:, 1:] == scope[:, :-1]).any():
            return True
    return False
