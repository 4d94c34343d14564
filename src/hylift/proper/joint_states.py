"""All joint states of a small component, as one factor."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from hylift.graph import FactorGroup
from hylift.potentials import ConditionalQuadratic
from hylift.potentials.base import FloatArray, QuadraticForm
from hylift.proper.constraints import Constraints
from hylift.proper.improper import ImproperDirection
from hylift.proper.quadratics import IntArray, OpenFactors, joint_state
from hylift.proper.search import ROUNDING, Component

MAX_STATES = 4096
MAX_ENTRIES = 2**22
MAX_FACTORS = 4000
MAX_QUESTIONS = 64
"""Improper joint states up to which it is asked whether hard rules allow them."""


def enumerated(found: Component, constraints: Constraints) -> OpenFactors | ImproperDirection | str:
    """One factor over a component, with a positive definite lower bound; or why there is none."""
    discrete = _ids([some.discrete for some in found.quadratics])
    closed = _ids([some.closed for some in found.quadratics])
    sizes = tuple(found.variables.num_states[discrete].tolist())
    num_states, num_open = math.prod(sizes), len(found.reals)
    num_reals = num_open + len(closed)
    if num_states > MAX_STATES:
        return (
            f"'{found.name}' depends on {num_states:,} joint states of {len(discrete)} discrete "
            "variables, which are too many to enumerate"
        )
    num_factors = sum(map(len, found.quadratics))
    if num_states * num_reals**2 > MAX_ENTRIES or num_factors > MAX_FACTORS:
        return (
            f"the curvature of the density in '{found.name}' and {num_reals - 1:,} reals coupled "
            "with it is too small, or depends on too many factors, to tell"
        )
    bounds = found.variables.lower[found.reals], found.variables.upper[found.reals]
    if np.isfinite(bounds).any():
        return f"'{found.name}' has one bound, and no square makes the density proper in all states"
    digits = np.indices(sizes).reshape(len(sizes), num_states)
    B, h, k = _sums(found, discrete, closed, digits)
    inner = B[:, :num_open, :num_open]
    good = _proper_states(found, inner, discrete, digits, constraints)
    if not isinstance(good, np.ndarray):
        return good
    state = np.where(good, np.arange(num_states), np.argmax(good))[None]  # no impossible ones
    form = QuadraticForm(-0.5 * B[state], h[state], k[state])
    scope = np.concatenate([discrete, found.reals, closed])[None]
    group = FactorGroup(ConditionalQuadratic.of_form(form, sizes), scope.astype(np.int32))
    whole = OpenFactors.of(group, num_open)
    return replace(whole, lower=_positive_lower(inner[good], whole.lower[0])[None])


def _ids(scopes: list[IntArray]) -> IntArray:
    """The distinct variables in some scopes, increasing."""
    return np.unique(np.concatenate([np.zeros(0, dtype=np.int64), *map(np.ravel, scopes)]))


def _sums(
    found: Component, discrete: IntArray, closed: IntArray, digits: IntArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """B (state, real, real), h (state, real) and k (state,) of all factors together."""
    num_states, num_open = digits.shape[1], len(found.reals)
    size = num_open + len(closed)
    B, h, k = np.zeros((num_states, size, size)), np.zeros((num_states, size)), np.zeros(num_states)
    for some in found.quadratics:
        joint = joint_state(np.searchsorted(discrete, some.discrete), some.sizes, digits)
        at = [found.local(some.open), num_open + np.searchsorted(closed, some.closed)]
        for own, where, row, m in zip(
            joint, np.concatenate(at, axis=1), some.row, some.multiplicity, strict=True
        ):
            B[:, where[:, None], where] += -2 * m * some.form.A[row, own]
            h[:, where] += m * some.form.b[row, own]
            k += m * some.form.c[row, own]
    return B, h, k


def _proper_states(
    found: Component,
    inner: FloatArray,
    discrete: IntArray,
    digits: IntArray,
    constraints: Constraints,
) -> NDArray[np.bool_] | ImproperDirection | str:
    """(state,): whether the density of the reals is proper in it; all others are impossible."""
    scaling = found.scaling
    values, vectors = np.linalg.eigh(inner * scaling[:, None] * scaling[None, :])
    good = values[:, 0] > ROUNDING
    bad = np.flatnonzero(~good)
    for state in bad[np.argsort(values[bad, 0], kind="stable")][:MAX_QUESTIONS]:
        fixed = dict(zip(discrete.tolist(), digits[:, state].tolist(), strict=True))
        direction = vectors[state, :, 0] * scaling
        grows = values[state, 0] < -ROUNDING
        curvature = float(direction @ inner[state] @ direction) if grows else 0.0
        improper = found.improper(direction, fixed, curvature)
        allowed = constraints.allow(fixed)
        if allowed:
            return improper
        if allowed is None:
            return f"{improper}, if the hard rules allow that, which is not known"
    if len(bad) > MAX_QUESTIONS or not good.any():
        return f"the density is proper in '{found.name}' in no state, or in too few, to tell"
    return np.asarray(good)


def _positive_lower(matrices: FloatArray, lower: FloatArray) -> FloatArray:
    """(real, real): a positive definite matrix below positive definite ones, (state, ...)."""
    diagonal = np.diagonal(matrices, axis1=-2, axis2=-1).min(axis=0)
    scaling = 1 / np.sqrt(diagonal)
    share = float(np.linalg.eigvalsh(matrices * scaling[:, None] * scaling[None, :])[:, 0].min())
    own = float(np.linalg.eigvalsh(lower * scaling[:, None] * scaling[None, :])[0])
    return lower if own >= 0.5 * share else np.diag((share - 1e-13) * diagonal)
