"""Reals that the common form does not hold: a state that lets them go, or all states one by one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.linalg import ArpackError, eigsh

from hylift.graph import Variables
from hylift.inference.boundedness.definite import MAX_DENSE, CommonForm
from hylift.inference.boundedness.terms import Terms
from hylift.inference.boundedness.violations.possible import Possible
from hylift.inference.boundedness.violations.violation import (
    Scores,
    Violation,
    deciding,
    joint_state,
    least_states,
)
from hylift.potentials.base import FloatArray

ROUNDING = 1e-12
"""Curvatures this small, relative to what is added up, are zero."""

MAX_TURNS = 4
"""How often states are chosen for a direction, and a direction for the states."""


@dataclass(frozen=True, slots=True, eq=False)
class Component:
    """Open reals that are connected by terms, with these terms."""

    reals: NDArray[np.int64]  # variable ids, increasing
    terms: tuple[Terms, ...]
    variables: Variables = field(repr=False)

    @property
    def size(self) -> FloatArray:
        """(real,): the sum of the sizes of all that is added up on the diagonal."""
        found = np.zeros(len(self.reals))
        for term in self.terms:
            largest = np.abs(np.diagonal(term.precision, axis1=-2, axis2=-1)).max(axis=1)
            for slot in range(term.num_open):
                value = term.multiplicity * largest[term.row, slot]
                np.add.at(found, self.local(term.real[:, slot]), value)
        return found

    def local(self, ids: NDArray[np.int64]) -> NDArray[np.int64]:
        """Positions among the reals."""
        return np.searchsorted(self.reals, ids)

    def scores(self, direction: FloatArray) -> list[Scores]:
        """Per factor and state: its curvature along a direction, (real,)."""
        found = []
        for term in self.terms:
            u = term.num_open
            along = direction[self.local(term.open)]
            value = np.einsum("fi,fsij,fj->fs", along, term.precision[term.row][..., :u, :u], along)
            found.append(Scores(term.multiplicity[:, None] * value, term.sizes, term.discrete))
        return found

    def matrix(self, states: NDArray[np.int64]) -> FloatArray:
        """(real, real): the precision in these states, (variable,)."""
        found = np.zeros((len(self.reals), len(self.reals)))
        for term in self.terms:
            u = term.num_open
            B = term.precision[term.row, joint_state(term, states), :u, :u]
            at = self.local(term.open)
            np.add.at(found, (at[:, :, None], at[:, None, :]), term.multiplicity[:, None, None] * B)
        return found

    def slope(self, direction: FloatArray, states: NDArray[np.int64]) -> float:
        """How fast log p grows along a direction that has no curvature at all."""
        total = 0.0
        for term in self.terms:
            h = term.linear[term.row, joint_state(term, states)][:, : term.num_open]
            along = direction[self.local(term.open)]
            total += float(term.multiplicity @ (h * along).sum(axis=1))
        return total


def component(
    terms: Sequence[Terms], label: NDArray[np.int64], number: int, variables: Variables
) -> Component:
    """The component with that number; label: (variable,)."""
    parts = []
    for term in terms:
        if term.num_open:
            factors = np.flatnonzero(label[term.real[:, 0]] == number)
            if len(factors):
                parts.append(term.take(factors))
    return Component(np.flatnonzero(label == number), tuple(parts), variables)


def find_violation(
    found: Component, form: CommonForm, possible: Possible
) -> tuple[Violation | None, str]:
    """A direction and possible states in which nothing holds it; and a doubt, or nothing.

    Directions and states are improved in turn, so that a violation may be missed, but one that
    is found is one.
    """
    size = found.size
    doubt = ""
    for start in _directions(found, form, size):
        direction = start
        for _ in range(MAX_TURNS):
            scores = found.scores(direction)
            states = least_states(scores, found.variables.num_states)
            curvature = sum(float(score.at(states).sum()) for score in scores)
            scale = float(direction**2 @ size)
            if curvature <= ROUNDING * scale:
                outward = _outward(found, direction, states, curvature < -ROUNDING * scale)
                if outward is None:
                    doubt = "a bound on one side may hold what no square holds"
                    break
                fixed = deciding(scores, states)
                allowed = possible.allows(fixed)
                moves = np.flatnonzero(np.abs(outward) > 1e-9 * np.abs(outward).max())
                violation = Violation.of(
                    found.variables,
                    {int(found.reals[i]): float(outward[i]) for i in moves},
                    fixed,
                    curvature if curvature < -ROUNDING * scale else 0.0,
                )
                if allowed:
                    return violation, ""
                if allowed is None:
                    doubt = f"{violation}, if the hard rules allow that, which is not known"
                break
            if len(found.reals) > MAX_DENSE or len(found.reals) == 1:
                break
            direction = _least_direction(found.matrix(states), size)
    return None, doubt


def _directions(found: Component, form: CommonForm, size: FloatArray) -> Iterator[FloatArray]:
    """Where to start: single reals, all together, and the least held by the common form."""
    count = len(found.reals)
    n = form.multiplicity[found.reals]
    alone = np.flatnonzero(form.diagonal[found.reals] * n <= ROUNDING * size)
    for real in alone[:3].tolist():
        direction = np.zeros(count)
        direction[real] = 1.0
        yield direction
    if count == 1:
        return
    yield np.full(count, 1 / np.sqrt(count))
    matrix = form.matrix[found.reals][:, found.reals]
    if count <= MAX_DENSE:
        yield _least_direction(matrix.toarray(), size)
        return
    try:
        _, vectors = eigsh(matrix, k=1, which="SA", maxiter=4, tol=1e-6)
    except ArpackError:
        return
    yield vectors[:, 0]


def _least_direction(matrix: FloatArray, size: FloatArray) -> FloatArray:
    """The direction with the least curvature relative to the sizes of the diagonal."""
    scaling = 1 / np.sqrt(np.where(size > 0, size, 1.0))
    _, vectors = np.linalg.eigh(matrix * scaling[:, None] * scaling[None, :])
    direction = vectors[:, 0] * scaling
    direction /= np.abs(direction).max()
    direction[np.abs(direction) < 1e-9] = 0.0
    return np.asarray(direction)


def _outward(
    found: Component, direction: FloatArray, states: NDArray[np.int64], grows: bool
) -> FloatArray | None:
    """The direction, or its opposite, if it leads out of the domain nowhere and log p does not
    fall along it; None if that is not clear."""
    lower, upper = (bound[found.reals] for bound in (found.variables.lower, found.variables.upper))
    one_sided = np.isfinite(lower) | np.isfinite(upper)
    if not one_sided.any():
        first = direction[np.argmax(np.abs(direction))]
        return direction * np.sign(first)
    for sign in (1.0, -1.0):
        way = sign * direction
        if (np.isfinite(lower) & (way < 0)).any() or (np.isfinite(upper) & (way > 0)).any():
            continue
        if grows:
            return way
        stays = (
            len(found.reals) <= MAX_DENSE
            and (np.abs(found.matrix(states) @ way) <= ROUNDING * found.size).all()
        )
        is_box_free = all(term.num_open == term.real.shape[1] for term in found.terms)
        if stays and is_box_free and found.slope(way, states) >= 0:
            return way
    return None
