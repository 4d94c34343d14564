"""The check that a model is a distribution, before any inference."""

from __future__ import annotations

import numpy as np

from hylift.errors import ImpossibleEvidenceError
from hylift.graph import FactorGraph
from hylift.proper.certificate import improper_directions
from hylift.proper.gaussian import GaussianForm, is_dominant
from hylift.proper.improper import LIST_ALL
from hylift.proper.quadratics import open_reals
from hylift.words import worded

MOST_FACTORS = 200_000
"""Factors up to which a model with discrete variables and open reals is checked."""


def check_proper(graph: FactorGraph) -> None:
    """Raise if a ground graph without evidence is impossible, or improper in some joint state.

    Reals with two bounds are always proper. Large graphs with discrete variables are not checked.
    """
    check_possible(graph)
    variables = graph.variables
    if not open_reals(variables).any() or is_dominant(graph):
        return
    bounded = np.isfinite(variables.lower) | np.isfinite(variables.upper)
    form = None if bounded.any() else GaussianForm.of(graph)
    if form is not None:
        form.check_definite()
    elif graph.num_factors <= MOST_FACTORS:
        for found in improper_directions(graph):
            raise found.error(remedy=worded(found.remedy, LIST_ALL))


def check_possible(graph: FactorGraph) -> None:
    """Raise if some factor has density zero in all states of its variables."""
    for group in graph.groups:
        form = group.potential.quadratic()
        if form is None:
            continue
        never = (form.c == -np.inf).all(axis=1)
        if never.any() and never[group.row].any():
            scope = group.scope[np.argmax(never[group.row])]
            names = ", ".join(f"'{graph.variables.names[int(v)]}'" for v in scope[:4])
            raise ImpossibleEvidenceError(
                f"the evidence breaks a hard constraint: no value of {names} is possible any more"
            )
