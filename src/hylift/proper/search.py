"""Search for a direction and a joint state in which a density is improper."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.linalg import ArpackError, eigsh

from hylift.graph import FactorGroup, Variables
from hylift.potentials import ConditionalQuadratic
from hylift.potentials.base import FloatArray, QuadraticForm
from hylift.proper.bound import ExponentialBound
from hylift.proper.common_form import MAX_DENSE, CommonForm
from hylift.proper.constraints import Constraints
from hylift.proper.improper import ImproperDirection
from hylift.proper.quadratics import IntArray, OpenFactors, joint_state

ROUNDING = 1e-12
"""Curvatures this small, relative to their summands, count as zero."""

MAX_TURNS = 4
"""Times that states are chosen for a direction, and a direction for the states."""

MAX_SWEPT = 300
"""Discrete variables up to which their states are improved one by one."""

MAX_SWEEPS = 4


@dataclass(frozen=True, slots=True, eq=False)
class Component:
    """Open reals that are connected by factors, with these factors."""

    reals: IntArray  # variable ids, increasing
    quadratics: tuple[OpenFactors, ...]
    size: FloatArray  # (real,): sum of the absolute summands of the diagonal
    variables: Variables = field(repr=False)

    @classmethod
    def of(
        cls,
        quadratics: Sequence[OpenFactors],
        label: IntArray,
        number: int,
        form: CommonForm,
        variables: Variables,
    ) -> Component:
        """The component with that number; label: (variable,)."""
        open_ = [some for some in quadratics if some.num_open]
        parts = [some.take(np.flatnonzero(label[some.real[:, 0]] == number)) for some in open_]
        reals = np.flatnonzero(label == number)
        size = form.size[reals] * form.multiplicity[reals]
        return cls(reals, tuple(part for part in parts if len(part)), size, variables)

    @property
    def name(self) -> str:
        """Of one real."""
        return self.variables.names[int(self.reals[0])]

    @property
    def scaling(self) -> FloatArray:
        """(real,): units in which the diagonal is about 1."""
        return 1 / np.sqrt(np.where(self.size > 0, self.size, 1.0))

    def local(self, ids: IntArray) -> IntArray:
        """Positions among the reals."""
        return np.searchsorted(self.reals, ids)

    def scores(self, direction: FloatArray) -> list[Scores]:
        """Per factor and state: its curvature along a direction, (real,)."""
        found = []
        for some in self.quadratics:
            u = some.num_open
            along = direction[self.local(some.open)]
            value = np.einsum("fi,fsij,fj->fs", along, some.curvature[..., :u, :u], along)
            found.append(Scores(some.multiplicity[:, None] * value, some.sizes, some.discrete))
        return found

    def matrix(self, states: IntArray) -> FloatArray:
        """(real, real): the precision in these states, (variable,)."""
        found = np.zeros((len(self.reals), len(self.reals)))
        for some in self.quadratics:
            u, at = some.num_open, self.local(some.open)
            B = -2 * some.form.A[some.row, some.joint_state(states), :u, :u]
            np.add.at(found, (at[:, :, None], at[:, None, :]), some.multiplicity[:, None, None] * B)
        return found

    def size_in(self, states: IntArray) -> FloatArray:
        """(real,): sum of the absolute summands of the diagonal in these states, (variable,)."""
        found = np.zeros(len(self.reals))
        for some in self.quadratics:
            u, A = some.num_open, some.form.A[some.row, some.joint_state(states)]
            own = 2 * some.multiplicity[:, None] * np.abs(np.diagonal(A, axis1=1, axis2=2)[:, :u])
            np.add.at(found, self.local(some.open), own)
        return found

    def slope(self, direction: FloatArray, states: IntArray) -> float:
        """The slope of log p along a direction without curvature."""
        total = 0.0
        for some in self.quadratics:
            h = some.form.b[some.row, some.joint_state(states)]
            along = direction[self.local(some.open)]
            total += float(some.multiplicity @ (h[:, : some.num_open] * along).sum(axis=1))
        return total

    def improper(
        self, direction: FloatArray, states: dict[int, int], curvature: float
    ) -> ImproperDirection:
        """The answer for a direction (real,); reals that hardly move are left out."""
        moves = np.flatnonzero(np.abs(direction) > 1e-9 * np.abs(direction).max())
        reals = {int(self.reals[i]): float(direction[i]) for i in moves}
        return ImproperDirection.of(self.variables, reals, states, curvature)


def find_improper(
    found: Component, form: CommonForm, constraints: Constraints
) -> tuple[ImproperDirection | None, str]:
    """A direction and possible states without positive curvature; and a doubt, or nothing.

    Directions and states are improved in turn. The search may miss an improper direction, but one
    that it finds is improper.
    """
    doubt = ""
    for start in _directions(found, form):
        direction = start
        for _ in range(MAX_TURNS):
            scores = found.scores(direction)
            states = least_states(scores, found.variables)
            curvature = sum(float(score.at(states).sum()) for score in scores)
            rounding = ROUNDING * float(direction**2 @ found.size_in(states))
            if curvature <= rounding:
                curvature = curvature if curvature < -rounding else 0.0
                outward = _outward(found, direction, states, curvature)
                if outward is None:
                    doubt = "a bound on one side may make proper what no square does"
                    break
                fixed = deciding(scores, states)
                improper = found.improper(outward, fixed, curvature)
                allowed = constraints.allow(fixed)
                if allowed:
                    return improper, ""
                if allowed is None:
                    doubt = f"{improper}, if the hard rules allow that, which is not known"
                break
            if len(found.reals) > MAX_DENSE or len(found.reals) == 1:
                break
            direction = _least_direction(found, found.matrix(states))
    return None, doubt


def improper_one_sided(
    bound: ExponentialBound, real: int, variables: Variables, constraints: Constraints
) -> ImproperDirection | str:
    """States in which log p does not fall away from the one bound of a real; or a doubt."""
    sign = 1.0 if np.isfinite(variables.lower[real]) else -1.0
    scores = []
    for whole in bound.own:
        some = whole.take(np.flatnonzero(whole.real[:, 0] == real))
        if len(some):
            value = -sign * some.multiplicity[:, None] * some.slope[..., 0]
            scores.append(Scores(value, some.sizes, some.discrete))
    states = least_states(scores, variables)
    fixed = deciding(scores, states)
    if sum(float(score.at(states).sum()) for score in scores) <= 0 and constraints.allow(fixed):
        return ImproperDirection.of(variables, {real: sign}, fixed)
    return f"the density may be improper in '{variables.names[real]}' away from its bound"


def _directions(found: Component, form: CommonForm) -> Iterator[FloatArray]:
    """Directions to start from: single reals, all together, and the least curved one of the common
    form."""
    count = len(found.reals)
    n = form.multiplicity[found.reals]
    alone = np.flatnonzero(form.diagonal[found.reals] * n <= ROUNDING * found.size)
    for real in alone[:3]:
        yield (np.arange(count) == real).astype(np.float64)
    if count == 1:
        return
    yield np.full(count, 1 / np.sqrt(count))
    matrix = form.matrix[found.reals][:, found.reals]
    if count <= MAX_DENSE:
        yield _least_direction(found, matrix.toarray())
        return
    try:
        _, vectors = eigsh(matrix, k=1, which="SA", maxiter=4, tol=1e-6)
    except ArpackError:
        return
    yield vectors[:, 0]


def _least_direction(found: Component, matrix: FloatArray) -> FloatArray:
    """The direction of least curvature, in units in which the diagonal is about 1."""
    scaling = found.scaling
    _, vectors = np.linalg.eigh(matrix * scaling[:, None] * scaling[None, :])
    direction = vectors[:, 0] * scaling
    direction /= np.abs(direction).max()
    direction[np.abs(direction) < 1e-9] = 0.0
    return np.asarray(direction)


def _outward(
    found: Component, direction: FloatArray, states: IntArray, curvature: float
) -> FloatArray | None:
    """The direction or its opposite, if it stays inside the domain and log p does not fall along
    it; None if that is not clear."""
    lower, upper = (bound[found.reals] for bound in (found.variables.lower, found.variables.upper))
    if not (np.isfinite(lower) | np.isfinite(upper)).any():
        return direction * np.sign(direction[np.argmax(np.abs(direction))])
    for way in (direction, -direction):
        if (np.isfinite(lower) & (way < 0)).any() or (np.isfinite(upper) & (way > 0)).any():
            continue
        if curvature < 0:
            return way
        is_flat = (
            len(found.reals) <= MAX_DENSE
            and (np.abs(found.matrix(states) @ way) <= ROUNDING * found.size).all()
        )
        is_box_free = all(some.num_open == some.real.shape[1] for some in found.quadratics)
        if is_flat and is_box_free and found.slope(way, states) >= 0:
            return way
    return None


@dataclass(frozen=True, slots=True, eq=False)
class Scores:
    """Numbers for each joint state of some factors' discrete slots, whose sum is minimised."""

    value: FloatArray  # (factor, state)
    sizes: tuple[int, ...]
    discrete: IntArray  # (factor, discrete slot): variable ids

    def at(self, states: IntArray) -> FloatArray:
        """(factor,): the numbers where variables have these states, (variable,)."""
        joint = joint_state(self.discrete, self.sizes, states)
        return self.value[np.arange(len(self.value)), joint]

    def by_slot(self) -> Iterator[tuple[IntArray, FloatArray]]:
        """Per slot: its variables (factor,), and the numbers (factor, state, other states)."""
        grid = self.value.reshape(len(self.value), *self.sizes)
        for slot, size in enumerate(self.sizes):
            along = np.moveaxis(grid, 1 + slot, 1).reshape(len(grid), size, -1)
            yield self.discrete[:, slot], along


def least_states(scores: Sequence[Scores], variables: Variables) -> IntArray:
    """(variable,): states with a small sum of scores, each the best given the others.

    The search starts at the states that each factor by itself prefers.
    """
    num_states = variables.num_states
    states = np.zeros(len(num_states), dtype=np.int64)
    involved = np.unique(np.concatenate([states[:0], *(s.discrete.ravel() for s in scores)]))
    if not len(involved):
        return states
    sums = np.zeros((len(involved), int(num_states[involved].max())))
    sums[np.arange(sums.shape[1]) >= num_states[involved][:, None]] = np.inf
    for score in scores:
        for ids, along in score.by_slot():
            best = along.min(axis=2)
            np.add.at(sums[:, : best.shape[1]], np.searchsorted(involved, ids), best)
    states[involved] = np.argmin(sums, axis=1)
    for _ in range(MAX_SWEEPS if len(involved) <= MAX_SWEPT else 0):
        before = states.copy()
        for variable in involved.tolist():
            _improve(scores, states, variable, int(num_states[variable]))
        if np.array_equal(before, states):
            break
    return states


def _improve(scores: Sequence[Scores], states: IntArray, variable: int, num_states: int) -> None:
    """Give a variable the state with the least sum of scores."""
    near = [Scores(s.value[at], s.sizes, s.discrete[at]) for s in scores
            if (at := (s.discrete == variable).any(axis=1)).any()]  # fmt: skip
    sums = []
    now = int(states[variable])
    for state in range(num_states):
        states[variable] = state
        sums.append(sum(float(s.at(states).sum()) for s in near))
    best = int(np.argmin(sums))
    states[variable] = best if sums[best] < sums[now] else now


def deciding(scores: Sequence[Scores], states: IntArray) -> dict[int, int]:
    """The discrete variables that make a difference to the scores, with their states."""
    found: dict[int, int] = {}
    for score in scores:
        for ids, along in score.by_slot():
            varying = ids[(along != along[:, :1]).any(axis=(1, 2))]
            found.update(zip(varying.tolist(), states[varying].tolist(), strict=True))
    return dict(sorted(found.items()))


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
            "with it is too small, or depends on too many factors, to decide"
        )
    bounds = found.variables.lower[found.reals], found.variables.upper[found.reals]
    if np.isfinite(bounds).any():
        return f"'{found.name}' has one bound, and no square makes the density proper in all states"
    digits = np.indices(sizes).reshape(len(sizes), num_states)
    B, h, k, size = _sums(found, discrete, closed, digits)
    inner = B[:, :num_open, :num_open]
    good = _proper_states(found, inner, size[:, :num_open], discrete, digits, constraints)
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
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """B (state, real, real), h (state, real) and k (state,) of all factors together, and (state,
    real) the sum of the absolute summands of the diagonal of B."""
    num_states, num_open = digits.shape[1], len(found.reals)
    h = np.zeros((num_states, num_open + len(closed)))
    B, k, size = np.zeros((*h.shape, h.shape[1])), np.zeros(num_states), np.zeros(h.shape)
    for some in found.quadratics:
        joint = joint_state(np.searchsorted(discrete, some.discrete), some.sizes, digits)
        at = [found.local(some.open), num_open + np.searchsorted(closed, some.closed)]
        for own, where, row, m in zip(
            joint, np.concatenate(at, axis=1), some.row, some.multiplicity, strict=True
        ):
            A = some.form.A[row, own]
            B[:, where[:, None], where] += -2 * m * A
            size[:, where] += 2 * m * np.abs(np.diagonal(A, axis1=1, axis2=2))
            h[:, where] += m * some.form.b[row, own]
            k += m * some.form.c[row, own]
    return B, h, k, size


def _proper_states(
    found: Component,
    inner: FloatArray,
    size: FloatArray,
    discrete: IntArray,
    digits: IntArray,
    constraints: Constraints,
) -> NDArray[np.bool_] | ImproperDirection | str:
    """(state,): whether the density of the reals is proper in it; all others are impossible."""
    scaling = 1 / np.sqrt(np.where(size > 0, size, 1.0))
    values, vectors = np.linalg.eigh(inner * scaling[:, :, None] * scaling[:, None, :])
    good = values[:, 0] > ROUNDING
    bad = np.flatnonzero(~good)
    for state in bad[np.argsort(values[bad, 0], kind="stable")][:MAX_QUESTIONS]:
        fixed = dict(zip(discrete.tolist(), digits[:, state].tolist(), strict=True))
        direction = vectors[state, :, 0] * scaling[state]
        grows = values[state, 0] < -ROUNDING
        curvature = float(direction @ inner[state] @ direction) if grows else 0.0
        improper = found.improper(direction, fixed, curvature)
        allowed = constraints.allow(fixed)
        if allowed:
            return improper
        if allowed is None:
            return f"{improper}, if the hard rules allow that, which is not known"
    if len(bad) > MAX_QUESTIONS or not good.any():
        return f"the density is proper in '{found.name}' in no state, or in too few to decide"
    return np.asarray(good)


def _positive_lower(matrices: FloatArray, lower: FloatArray) -> FloatArray:
    """(real, real): a positive definite matrix below positive definite ones, (state, ...)."""
    diagonal = np.diagonal(matrices, axis1=-2, axis2=-1).min(axis=0)
    scaling = 1 / np.sqrt(diagonal)
    share = float(np.linalg.eigvalsh(matrices * scaling[:, None] * scaling[None, :])[:, 0].min())
    own = float(np.linalg.eigvalsh(lower * scaling[:, None] * scaling[None, :])[0])
    return lower if own >= 0.5 * share else np.diag((share - 1e-13) * diagonal)
