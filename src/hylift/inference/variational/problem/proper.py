"""Whether a model is a distribution, before anything is inferred in it."""

from __future__ import annotations

import numpy as np

from hylift.errors import ModelError
from hylift.graph import FactorGraph
from hylift.inference.boundedness import bethe_certificate
from hylift.inference.variational.starts.gaussian import GaussianForm

MOST_FACTORS = 200_000
"""Factors up to which a model with discrete variables and open reals is looked at."""


def check_proper(graph: FactorGraph) -> None:
    """Raises if nothing holds some real of a ground graph without evidence, in some states.

    Reals with two bounds are always held. Large graphs with discrete variables are not looked at.
    """
    variables = graph.variables
    is_open = (variables.num_states == 0) & ~np.isfinite(variables.upper - variables.lower)
    if not is_open.any():
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
