"""A look at reals that a product takes for independent although the model ties them closely."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.linalg import splu

from hylift.graph import Evidence, FactorGraph, FactorGroup
from hylift.inference.prepared import View
from hylift.posterior import Mixture
from hylift.potentials import ConditionalQuadratic
from hylift.proper.gaussian import LARGEST_FACTORISED, GaussianForm
from hylift.words import method_call, worded

FloatArray = NDArray[np.float64]

MOST_NUMBERS = 20_000_000
"""Of the averaged quadratics; larger graphs are not looked at."""
MOST_LOOKED = 64
"""Reals whose deviations are compared: a solve each."""
TOO_SMALL = 1.25
"""How many times as large another deviation is before the user is told."""


def note_on_tied_reals(view: View, mixture: Mixture) -> str | None:
    """What the user should know of deviations that are too small; None if they look right.

    The model is a Gaussian once its states are known. With each quadratic averaged over the states
    as the largest component sees them, its deviations are compared with those of the mixture.
    """
    if len(mixture.layout.reals) < 2:
        return None
    form = _averaged_form(view.ground, mixture)
    if form is None:
        return None
    reals = np.flatnonzero(view.ground.variables.num_states == 0)
    looked = np.random.default_rng(0).permutation(len(reals))[:MOST_LOOKED]
    within = _deviations(form, looked)
    if within is None:
        return None
    mean, var = mixture.moments(mixture.hidden[reals[looked]])
    centre = mean @ mixture.weights
    own = np.sqrt((var + (mean - centre[:, None]) ** 2) @ mixture.weights)
    variables = view.ground.variables.take(reals)
    # On an interval no deviation is much larger than that of a uniform density.
    widest = (variables.upper - variables.lower)[looked] / np.sqrt(12)
    within = np.minimum(within, widest)
    ratio = within / own
    worst = int(np.argmax(ratio))
    if not ratio[worst] > TOO_SMALL:
        return None
    name = view.ground.variables.names[int(reals[looked[worst]])]
    return worded(
        "The model ties reals closely, and a mixture of few products makes their deviations too "
        f"small: that of '{name}' is {own[worst]:.3g}, and {within[worst]:.3g} in the Gaussian "
        "that the model has in the states it holds for likely. Use ",
        method_call("Gibbs"),
        " where it applies; means and probabilities suffer less.",
    )


def _averaged_form(ground: FactorGraph, mixture: Mixture) -> GaussianForm | None:
    """The Gaussian of all hidden reals, with quadratics averaged over states; None where there is
    more to it, or too much of it."""
    variables = ground.variables
    is_real = variables.num_states == 0
    quadratics = [g for g in ground.groups if isinstance(g.potential, ConditionalQuadratic)]
    numbers = sum(g.potential.flat.shape[1] * len(g) for g in quadratics)
    others = any(group.potential.quadratic() is None for group in ground.groups)
    if others or numbers > MOST_NUMBERS or is_real.sum() > LARGEST_FACTORISED:
        return None
    new_id = (np.cumsum(is_real) - 1).astype(np.int32)
    component = int(np.argmax(mixture.weights))
    first = mixture.layout.first[mixture.variable_to_class]
    groups = []
    for group in quadratics:
        A = _averaged(group, mixture.entries[:, component], first)
        zero = np.zeros(A.shape[:2])
        scope = new_id[group.scope[:, group.arity - A.shape[-1] :]]
        potential = ConditionalQuadratic(A, zero, zero[:, 0])
        groups.append(FactorGroup(potential, scope, multiplicity=group.multiplicity))
    reals = variables.take(np.flatnonzero(is_real))
    return GaussianForm.of(FactorGraph.unchecked(reals, groups, Evidence.none(), 0.0))


def _averaged(group: FactorGroup, entries: FloatArray, first: NDArray[np.int64]) -> FloatArray:
    """(factor, real slot, real slot): A of each factor, averaged over its states."""
    potential = group.potential
    assert isinstance(potential, ConditionalQuadratic)
    A = np.where(np.isfinite(potential.c)[..., None, None], potential.A, 0.0)[group.row]
    for slot in range(potential.num_discrete):
        states = np.arange(A.shape[1])
        share = entries[first[group.scope[:, slot]][:, None] + states]
        A = np.einsum("fs,fs...->f...", share, A)
    return A


def _deviations(form: GaussianForm, at: NDArray[np.int64]) -> FloatArray | None:
    """Standard deviations of some reals; None where the form is no Gaussian."""
    size = len(form.h)
    try:
        factors = splu(form.J.tocsc(), permc_spec="MMD_AT_PLUS_A")
    except RuntimeError:  # exactly singular
        return None
    ones = np.zeros((size, len(at)))
    ones[at, np.arange(len(at))] = 1.0
    var = factors.solve(ones)[at, np.arange(len(at))]
    return np.sqrt(var) if (var > 0).all() else None
