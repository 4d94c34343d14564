"""All joint states of a small component, as one factor."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hylift.inference.boundedness.lower import common_lower
from hylift.inference.boundedness.terms import Terms
from hylift.inference.boundedness.violations.possible import Possible, num_joint
from hylift.inference.boundedness.violations.search import ROUNDING, Component
from hylift.inference.boundedness.violations.violation import Violation
from hylift.potentials.base import FloatArray

MAX_STATES = 4096
MAX_ENTRIES = 2**22
MAX_FACTORS = 4000
MAX_QUESTIONS = 64
"""Joint states that let a real go, of which it is asked whether they are possible."""


def merge(found: Component, possible: Possible) -> Terms | Violation | str:
    """One factor over a component, with a positive definite lower bound; or why there is none."""
    discrete = _ids([term.discrete for term in found.terms])
    closed = _ids([term.closed for term in found.terms])
    sizes = found.variables.num_states[discrete]
    num_states, num_reals = num_joint(sizes), len(found.reals) + len(closed)
    num_factors = sum(map(len, found.terms))
    name = found.variables.names[int(found.reals[0])]
    if num_states > MAX_STATES:
        return (
            f"'{name}' depends on {num_states:,} joint states of {len(discrete)} discrete "
            "variables, which are too many to look at one by one"
        )
    if num_states * num_reals**2 > MAX_ENTRIES or num_factors > MAX_FACTORS:
        return (
            f"'{name}' and {num_reals - 1:,} reals coupled with it are held too weakly, or in too "
            "many ways, to tell"
        )
    if (found.variables.lower[found.reals] > -np.inf).any() or (
        found.variables.upper[found.reals] < np.inf
    ).any():
        return f"'{name}' has no square that holds it in all states, and is bounded on one side"
    digits = np.stack(np.unravel_index(np.arange(num_states), tuple(sizes) or (1,)))
    precision, linear, constant = _sums(found, discrete, closed, digits[: len(discrete)])
    u = len(found.reals)
    inner = precision[:, :u, :u]
    good = _states_that_hold(found, inner, discrete, digits, possible)
    if not isinstance(good, np.ndarray):
        return good
    stand_in = np.where(good, np.arange(num_states), np.argmax(good))
    return Terms(
        precision[stand_in][None],
        linear[stand_in][None],
        constant[stand_in][None],
        tuple(sizes.tolist()),
        discrete[None],
        np.concatenate([found.reals, closed])[None],
        np.zeros(1, dtype=np.int64),
        np.ones(1),
        _positive_lower(inner[good])[None],
        " + ".join(dict.fromkeys(term.label for term in found.terms if term.label)),
    )


def _ids(scopes: list[NDArray[np.int64]]) -> NDArray[np.int64]:
    """The distinct variables in some scopes, increasing."""
    return np.unique(np.concatenate([np.zeros(0, dtype=np.int64), *map(np.ravel, scopes)]))


def _sums(
    found: Component,
    discrete: NDArray[np.int64],
    closed: NDArray[np.int64],
    digits: NDArray[np.int64],
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """B (state, real, real), h (state, real) and k (state,) of all factors together."""
    num_states, num_open = digits.shape[1] if len(digits) else 1, len(found.reals)
    size = num_open + len(closed)
    precision = np.zeros((num_states, size, size))
    linear, constant = np.zeros((num_states, size)), np.zeros(num_states)
    for term in found.terms:
        slot_at = np.searchsorted(discrete, term.discrete)
        at = np.concatenate(
            [found.local(term.open), num_open + np.searchsorted(closed, term.closed)], axis=1
        )
        for factor in range(len(term)):
            joint = np.zeros(num_states, dtype=np.int64)
            for place, states in zip(slot_at[factor], term.sizes, strict=True):
                joint = joint * states + digits[place]
            row, m, where = term.row[factor], term.multiplicity[factor], at[factor]
            precision[:, where[:, None], where] += m * term.precision[row, joint]
            linear[:, where] += m * term.linear[row, joint]
            constant += m * term.constant[row, joint]
    return precision, linear, constant


def _states_that_hold(
    found: Component,
    inner: FloatArray,
    discrete: NDArray[np.int64],
    digits: NDArray[np.int64],
    possible: Possible,
) -> NDArray[np.bool_] | Violation | str:
    """(state,): whether it holds the reals; the others are impossible."""
    size = found.size
    scaling = 1 / np.sqrt(np.where(size > 0, size, 1.0))
    values, vectors = np.linalg.eigh(inner * scaling[:, None] * scaling[None, :])
    good = values[:, 0] > ROUNDING
    bad = np.flatnonzero(~good)
    for state in bad[np.argsort(values[bad, 0], kind="stable")][:MAX_QUESTIONS]:
        fixed = dict(zip(discrete.tolist(), digits[: len(discrete), state].tolist(), strict=True))
        direction = vectors[state, :, 0] * scaling
        moves = np.flatnonzero(np.abs(direction) > 1e-9 * np.abs(direction).max())
        curvature = float(direction @ inner[state] @ direction)
        violation = Violation.of(
            found.variables,
            {int(found.reals[i]): float(direction[i]) for i in moves},
            fixed,
            curvature if values[state, 0] < -ROUNDING else 0.0,
        )
        match possible.allows(fixed):
            case True:
                return violation
            case None:
                return f"{violation}, if the hard rules allow that, which is not known"
    if len(bad) > MAX_QUESTIONS or not good.any():
        name = found.variables.names[int(found.reals[0])]
        return f"'{name}' is held in no state, or in too few, that the hard rules allow"
    return np.asarray(good)


def _positive_lower(matrices: FloatArray) -> FloatArray:
    """(real, real): a positive definite matrix below positive definite ones, (state, ...)."""
    lower = common_lower(matrices[None])[0]
    diagonal = np.diagonal(matrices, axis1=-2, axis2=-1).min(axis=0)
    scaling = 1 / np.sqrt(diagonal)
    scaled = matrices * scaling[:, None] * scaling[None, :]
    share = float(np.linalg.eigvalsh(scaled)[:, 0].min())
    own = float(np.linalg.eigvalsh(lower * scaling[:, None] * scaling[None, :])[0])
    return lower if own >= 0.5 * share else np.diag((share - 1e-13) * diagonal)
