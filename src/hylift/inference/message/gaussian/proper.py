"""The check that a graph of reals and quadratics is proper without its bounds."""

from __future__ import annotations

import numpy as np

from hylift.errors import DivergentModelError, UnsupportedError
from hylift.graph import FactorGraph
from hylift.inference.message.gaussian.summable import Radius
from hylift.potentials import ConditionalQuadratic
from hylift.proper.check import check_proper
from hylift.proper.gaussian import GaussianForm
from hylift.proper.improper import ImproperDirection


def check_definite(ground: FactorGraph, radius: Radius) -> None:
    """Raise if a ground graph without evidence is improper, or improper without its bounds.

    A walk-summable model is proper.
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
    except DivergentModelError:
        loose = bounded & ~(form.precision > 0)
        at = int(np.argmax(loose if loose.any() else bounded))
        improper = ImproperDirection.of(variables, {at: 1.0})
        raise UnsupportedError(
            f"GaBP ignores bounds, and without them {improper}: {improper.rule}, or use Exact, "
            "EPBP or BVI"
        ) from None
