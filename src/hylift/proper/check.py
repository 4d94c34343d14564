"""The check that a model is a distribution, before any inference."""

from __future__ import annotations

import numpy as np

from hylift.errors import ImpossibleEvidenceError, ModelError
from hylift.graph import FactorGraph
from hylift.graph.domains import MOST
from hylift.potentials.about import about_points
from hylift.proper.certificate import improper_directions
from hylift.proper.gaussian import GaussianForm, is_dominant
from hylift.proper.improper import LIST_ALL
from hylift.proper.quadratics import open_reals
from hylift.rewrite.centred import is_quadratic
from hylift.words import worded

MOST_FACTORS = 200_000
"""Factors up to which a model with discrete variables and open reals is checked."""

USUAL_PRECISION, USUAL_SLOPE = (1e-40, 1e100), 1e15
"""Coefficients of quadratics with which no sum of them is extreme."""


def check_units(graph: FactorGraph) -> None:
    """Raise if a real has so large or small a deviation, or so large a mean, by the factors around
    it, that its powers have no digits left."""
    least, most = USUAL_PRECISION
    found, is_usual = [], True
    for group in filter(is_quadratic, graph.groups):
        form, origin = about_points(group.potential)
        A = np.abs(np.diagonal(form.A, axis1=-2, axis2=-1))
        with np.errstate(over="ignore", invalid="ignore"):
            slope = (np.abs(form.b) + 2 * A * np.abs(origin)).max(axis=1)
        precision = A.max(axis=1)
        is_usual &= bool(((precision == 0) | ((precision > least) & (precision < most))).all())
        is_usual &= bool((slope < USUAL_SLOPE).all())
        found.append((group, precision, slope))
    e = graph.evidence
    is_usual &= bool(((e.var == 0) | ((e.var > 1 / most) & (e.var < 1 / least))).all())
    if is_usual:
        return
    size = graph.num_variables
    with np.errstate(all="ignore"):
        weight = np.where(e.var > 0, 0.5 / e.var, 0.0)
        precision = np.bincount(e.variable, weight, size).astype(np.float64)
        slope = np.bincount(e.variable, 2 * weight * np.abs(e.value), size).astype(np.float64)
        for group, own, tilt in found:
            precision += np.bincount(group.reals.ravel(), own[group.row].ravel(), size)
            slope += np.bincount(group.reals.ravel(), tilt[group.row].ravel(), size)
        std, mean = np.sqrt(0.5 / precision), 0.5 * slope / precision
    is_extreme = (precision > 0) & ~((std >= 1 / MOST) & (std <= MOST) & (mean <= MOST))
    if not is_extreme.any():
        return
    v = int(np.argmax(is_extreme))
    is_odd = not 1 / MOST <= std[v] <= MOST
    what = f"{'deviation' if is_odd else 'mean'} of about {std[v] if is_odd else mean[v]:.0e}"
    by_rule = {"": float(weight[e.variable == v].max(initial=0.0))}
    for group, own, tilt in found:
        here = (own if is_odd else tilt)[group.row][group.reals == v]
        by_rule[group.label] = max(by_rule.get(group.label, 0.0), float(here.max(initial=0.0)))
    most_of_it = max(by_rule, key=by_rule.__getitem__)
    rule = f" by '{most_of_it}'" if most_of_it else ""
    raise ModelError(
        f"'{graph.variables.names[v]}' has a {what}{rule}: deviations are from {1 / MOST:g} to "
        f"{MOST:g}, and means at most {MOST:g}; give it another unit"
    )


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
