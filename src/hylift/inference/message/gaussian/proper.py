"""Whether a graph of reals and quadratics has an integral without its bounds."""

from __future__ import annotations

import numpy as np

from hylift.errors import UnsupportedError
from hylift.graph import FactorGraph
from hylift.inference.gaussian.form import GaussianForm, NotHeldError
from hylift.inference.gaussian.proper import check_proper
from hylift.inference.message.gaussian.summable import Radius
from hylift.potentials import ConditionalQuadratic


def check_definite(ground: FactorGraph, radius: Radius) -> None:
    """Raises if a ground graph without evidence is no distribution, or none without its bounds.

    A walk-summable model is one.
    """
    possible = all(
        np.isfinite(group.potential.c).all()
        for group in ground.groups
        if isinstance(group.potential, ConditionalQuadratic)
    )
    if possible and radius.is_below_one:
        return
    variables = ground.variables
    bounded = np.isfinite(variables.lower) | np.isfinite(variables.upper)
    if not bounded.any():
        check_proper(ground)
        return
    form = GaussianForm.of(ground)
    if form is None:
        check_proper(ground)
        return
    try:
        form.check_definite()
    except NotHeldError:
        loose = bounded & ~(form.precision > 0)
        at = int(np.argmax(loose if loose.any() else bounded))
        raise UnsupportedError(
            f"GaBP ignores bounds, and without those of '{variables.names[at]}' the model is not "
            f"a distribution: add a rule such as '-0.01 {variables.names[at]}^2', or use Exact, "
            "EPBP or BVI"
        ) from None
