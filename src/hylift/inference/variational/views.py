"""What a solver sees of a graph: all of it, its lifting, or ever finer liftings."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from hylift.errors import UnsupportedError
from hylift.graph import FactorGraph, conditioned
from hylift.graph.merge import merge_factors
from hylift.inference.gaussian.bounds import LEAK, mass_beyond
from hylift.inference.gaussian.form import GaussianForm, centred
from hylift.inference.method import Lift
from hylift.inference.view import View
from hylift.lifting import (
    Beliefs,
    by_disagreement,
    by_distance,
    coarse_to_fine,
    every_cluster,
    lift,
)
from hylift.potentials import ConditionalQuadratic, Table

MOST_STATES = 100
"""Of a variable, up to which classes are told apart by how much their members disagree."""


def views(
    graph: FactorGraph,
    how: Lift,
    beliefs: Callable[[], Beliefs],
    *,
    centre: bool,
    merge: bool = False,
) -> Iterator[View]:
    """Views from coarse to fine; only with coarse-to-fine lifting there is more than one.

    beliefs: what the solver has come to believe in the last view. centre: whether a Gaussian is
    looked at from its maximum, where the values of its evidence break no symmetry. merge: whether
    factors with nested scopes become one.
    """
    if merge and how == "coarse-to-fine":
        raise UnsupportedError(
            "merge_factors needs the evidence in the factors, and coarse-to-fine lifting must know "
            "it apart: merge with lift='exact' or lift='none'"
        )
    if merge:
        hidden = conditioned(graph)
        inner = merge_factors(hidden.graph, "shared")
        for view in views(inner, how, beliefs, centre=centre):
            yield replace(view, hidden=hidden.hidden[view.hidden])
        return
    if centre and (found := _centred_views(graph, how)) is not None:
        yield from found
    elif how == "none":
        yield View.whole(graph)
    elif how == "exact":
        lifting = lift(graph)
        tied = _ties_what_must_differ(lifting.graph)
        yield View.whole(graph) if tied else View.lifted(lifting)
    else:
        wide = int(graph.variables.num_states.max(initial=1)) > MOST_STATES
        choose = every_cluster if wide else by_disagreement(lambda level: beliefs())
        for number, level in enumerate(coarse_to_fine(graph, choose=choose)):
            if number == 0 and _ties_what_must_differ(level.lifting.graph):
                yield View.whole(graph)
                return
            parent = level.parent if number else None
            yield View.lifted(level.lifting, parent, is_last=level.is_last)


def _centred_views(graph: FactorGraph, how: Lift) -> Iterator[View] | None:
    """Views of a Gaussian from its maximum; None if it is none, or if bounds matter to it."""
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
    variables = whole.graph.variables
    leak = mass_beyond(variables.lower, variables.upper, means, np.sqrt(form.var))
    if leak.max(initial=0.0) > LEAK:
        return None
    middle = centred(whole.graph, means)

    def see() -> Iterator[View]:
        if how == "coarse-to-fine":
            for number, found in enumerate(by_distance(middle)):
                parent = found.parent if number else None
                yield View.lifted(found.lifting, parent, is_last=found.is_last)
        else:
            yield View.whole(middle) if how == "none" else View.lifted(lift(middle))

    return (replace(view, ground=whole.ground, hidden=whole.hidden, shift=means) for view in see())


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
