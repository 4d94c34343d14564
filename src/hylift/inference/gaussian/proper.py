"""Whether a model is a distribution, before anything is inferred in it."""

from __future__ import annotations

import numpy as np

from hylift.errors import ImpossibleEvidenceError, ModelError
from hylift.graph import FactorGraph, FactorGroup
from hylift.inference.boundedness import bethe_certificate
from hylift.inference.gaussian.form import GaussianForm, is_dominant
from hylift.potentials import ConditionalQuadratic, Table

MOST_FACTORS = 200_000
"""Factors up to which a model with discrete variables and open reals is looked at."""


def check_proper(graph: FactorGraph) -> None:
    """Raises if a ground graph without evidence has no possible values, or if nothing holds some
    real of it, in some states.

    Reals with two bounds are always held. Large graphs with discrete variables are not looked at.
    """
    for group in graph.groups:
        _check_possible(graph, group)
    variables = graph.variables
    is_open = (variables.num_states == 0) & ~np.isfinite(variables.upper - variables.lower)
    if not is_open.any():
        return
    if is_dominant(graph):
        return
    bounded = np.isfinite(variables.lower) | np.isfinite(variables.upper)
    form = None if bounded.any() else GaussianForm.of(graph)
    if form is not None:
        form.check_definite()
    elif graph.num_factors <= MOST_FACTORS:
        certificate = bethe_certificate(graph)
        if certificate.holds is False:
            violation = certificate.violations[0]
            name = violation.reals[0][0]
            raise ModelError(
                f"inference diverges: {violation}. The model has no finite integral. Give '{name}' "
                f"bounds, or add a rule such as '-0.01 {name}^2'; `hylift check --bethe` and "
                "bethe_certificate(graph) tell all that is not held"
            )


def _check_possible(graph: FactorGraph, group: FactorGroup) -> None:
    """Raises if nothing is possible for the variables of a factor, whatever their states."""
    potential = group.potential
    if not isinstance(potential, Table | ConditionalQuadratic):
        return
    values = potential.c if isinstance(potential, ConditionalQuadratic) else potential.flat
    never = (values.reshape(len(values), -1) == -np.inf).all(axis=1)
    if never.any() and never[group.row].any():
        scope = group.scope[np.argmax(never[group.row])]
        names = ", ".join(f"'{graph.variables.names[int(v)]}'" for v in scope[:4])
        raise ImpossibleEvidenceError(
            f"the evidence breaks a hard constraint: no value of {names} is possible any more"
        )
