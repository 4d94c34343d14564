"""Disagreement of the objective's gradients within classes: which clusters to split first."""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hylift.errors import ModelError
from hylift.graph import Variables
from hylift.lifting.coarse.levels import Choose, Level
from hylift.lifting.kernels.coarse import add_rows
from hylift.numerics.grouping import first_members, group_pairs
from hylift.numerics.quadrature import hermite_rule, nodes_per_slot
from hylift.numerics.segments import offsets, slices
from hylift.potentials import REAL, Potential
from hylift.potentials.base import expectation_given, on_grid

FloatArray = NDArray[np.float64]

MAX_POINTS = 1 << 17
"""Log-potentials that are evaluated at once: more of them leave the cache."""

IMPOSSIBLE = -1e6
"""Stands for a log-potential of -inf, from which nothing can be subtracted."""


def by_disagreement(
    beliefs: Callable[[Level], Beliefs],
    share: float = 0.5,
    *,
    growth: float = 0.0,
    enough: float = 0.0,
) -> Choose:
    """Picks the fewest clusters that together have at least this share of the disagreement.

    beliefs: those of a solver at a level, about the classes of its lifting. growth: least relative
    growth of the number of clusters, where so many disagree, to avoid many levels that hardly
    differ. enough: the disagreement per ground variable up to which the next level is the last.
    """
    if not isinstance(share, numbers.Real) or not 0 < share <= 1:
        raise ModelError(f"share must be above 0 and at most 1, not {share!r}")
    for name, value in (("growth", growth), ("enough", enough)):
        if not isinstance(value, numbers.Real) or not 0 <= value < np.inf:
            raise ModelError(f"{name} must be finite and non-negative, not {value!r}")

    def choose(level: Level) -> NDArray[np.bool_] | None:
        found = np.where(level.splittable, disagreement(level, beliefs(level)), 0.0)
        order = np.argsort(-found, kind="stable")
        so_far = np.cumsum(found[order])
        if enough > 0 and found.sum() <= enough * level.lifting.ground.num_variables:
            return None
        chosen = np.zeros(len(found), dtype=bool)
        # One more is needed as long as those before it fall short.
        chosen[order[np.concatenate([[0.0], so_far[:-1]]) < share * so_far[-1:]]] = True
        chosen[order[: math.ceil(growth * len(found))]] = True
        return chosen & (found > 0)

    return choose


def disagreement(level: Level, beliefs: Beliefs) -> FloatArray:
    """(cluster,): disagreement of members of a class about its beliefs, due to its observations.

    While the beliefs about all members of a class are the same, the gradients of the objective with
    respect to single members differ only through evidence that their factors have absorbed. The
    disagreement of a cluster is the squared length of its contribution to these differences, in the
    metric of the Fisher information, summed over members and components. It is the rate at which
    the objective would fall along the natural gradient if all members were free, beyond the rate
    that beliefs about classes allow.
    """
    beliefs.check(level.lifting.graph.variables)
    groups = _unlike_factors(level)
    shares = _Shares.of(level, groups)
    found = np.zeros(len(level.clusters))
    for component, weight in enumerate(beliefs.weights):
        total = np.zeros(shares.begin[-1])
        for group, pairs in zip(groups, shares.pair, strict=True):
            _add_differences(level, group, pairs, shares, beliefs, component, total)
        # The gradient has the factor w_k, and so has the Fisher information.
        if len(shares.cluster):
            norm = np.add.reduceat(total**2, shares.begin[:-1])
            norm *= weight / shares.multiplicity
            found += np.bincount(shares.cluster, norm, len(found))
    return found


@dataclass(frozen=True, slots=True, eq=False)
class _Unlike:
    """Factors of one group in classes whose members have absorbed different evidence."""

    potential: Potential
    row: NDArray[np.int32]  # (factor,)
    scope: NDArray[np.int32]
    """(factor, slot): exchangeable slots are sorted by class, so that slots of a class match."""
    multiplicity: FloatArray  # (factor,)
    factor_class: NDArray[np.int32]  # (factor,): dense
    num_classes: int
    clusters: NDArray[np.int32]
    """(place, factor): of the observations that it has absorbed, each once; -1 beyond."""


def _unlike_factors(level: Level) -> list[_Unlike]:
    """All factors, group by group, in classes with different parameters due to evidence."""
    coloring, absorbed, offsets = level.coloring, level.absorbed, level.structure.offsets
    size = np.diff(absorbed.first)
    found = []
    for place, group in enumerate(level.lifting.ground.groups):
        begin, end = int(offsets[place]), int(offsets[place + 1])
        to_class = coloring.factor[begin:end]
        leader = coloring.first_factor[to_class] - begin
        varied, touched = np.zeros((2, coloring.num_factor_classes), dtype=bool)
        varied[to_class[group.row != group.row[leader]]] = True
        touched[to_class[size[begin:end] > 0]] = True
        factors = np.flatnonzero((varied & touched)[to_class])
        if not len(factors):
            continue
        factor_class, num_classes = group_pairs(
            to_class[factors], np.zeros(len(factors), dtype=np.uint64)
        )
        found.append(
            _Unlike(
                group.potential,
                group.row[factors],
                _aligned(level, begin, factors, group.scope[factors]),
                group.multiplicity[factors],
                factor_class,
                num_classes,
                _clusters(level, begin + factors),
            )
        )
    return found


def _aligned(
    level: Level, begin: int, factors: NDArray[np.int64], scope: NDArray[np.int32]
) -> NDArray[np.int32]:
    """The scope with exchangeable slots sorted by the classes of their variables."""
    first = int(level.structure.first[begin]) + factors * scope.shape[1]
    orbit = level.structure.orbit[first[:, None] + np.arange(scope.shape[1])]
    if (orbit == np.arange(scope.shape[1])).all():
        return scope
    classes = level.coloring.variable[scope]
    sorted_slots = np.lexsort((classes, orbit), axis=1)
    places = np.argsort(orbit, axis=1, kind="stable")
    aligned = np.empty_like(scope)
    np.put_along_axis(aligned, places, np.take_along_axis(scope, sorted_slots, axis=1), axis=1)
    return aligned


def _clusters(level: Level, factors: NDArray[np.int64]) -> NDArray[np.int32]:
    """(place, factor): clusters of what factors have absorbed, each once; -1 beyond."""
    first = level.absorbed.first[factors]
    size = level.absorbed.first[factors + 1] - first
    clusters = np.full((int(size.max(initial=0)), len(factors)), -1, dtype=np.int32)
    for place, row in enumerate(clusters):
        has = size > place
        row[has] = level.clusters.cluster[level.absorbed.observation[first[has] + place]]
        row[(clusters[:place] == row).any(axis=0)] = -1
    return clusters


@dataclass(frozen=True, slots=True, eq=False)
class _Shares:
    """Each cluster with each variable that has a factor which absorbed some of the cluster; such a
    pair has a stretch of a flat array, for its share in the gradient."""

    pair: tuple[NDArray[np.int32], ...]
    """Per group (place, slot, factor); -1 where nothing was absorbed."""
    begin: NDArray[np.int64]  # (pair + 1,)
    cluster: NDArray[np.int32]  # (pair,)
    multiplicity: FloatArray  # (pair,), of the variable

    @classmethod
    def of(cls, level: Level, groups: list[_Unlike]) -> _Shares:
        variables = level.lifting.ground.variables
        shapes = [(len(group.clusters), *group.scope.T.shape) for group in groups]
        clusters = (group.clusters[:, None] for group in groups)
        cluster = _laid_out(clusters, shapes)
        variable = _laid_out((group.scope.T for group in groups), shapes)
        has = np.flatnonzero(cluster >= 0)
        number, _ = group_pairs(cluster[has], variable[has].astype(np.uint64))
        pair = np.full(len(cluster), -1, dtype=np.int32)
        pair[has] = number
        member = has[first_members(number)]
        num_states = variables.num_states[variable[member]]
        width = np.where(num_states > 0, num_states, 2)  # mean and variance
        ends = offsets([math.prod(shape) for shape in shapes])
        return cls(
            tuple(
                pair[a:b].reshape(s) for a, b, s in zip(ends[:-1], ends[1:], shapes, strict=True)
            ),
            offsets(width),
            cluster[member],
            variables.multiplicity[variable[member]],
        )

    def add(
        self, total: FloatArray, pair: NDArray[np.int32], weight: FloatArray, rows: FloatArray
    ) -> None:
        """Adds rows (factor, direction) to the stretches of pairs (factor,)."""
        begin = np.where(pair >= 0, self.begin[pair], -1)
        add_rows(total, begin, self.begin[pair + 1] - begin, weight, rows)


def _laid_out(
    columns: Iterable[NDArray[np.int32]], shapes: list[tuple[int, ...]]
) -> NDArray[np.int32]:
    """The columns of all groups, each spread to its shape, one behind the other."""
    spread = (np.broadcast_to(c, shape).ravel() for c, shape in zip(columns, shapes, strict=True))
    return np.concatenate([np.zeros(0, dtype=np.int32), *spread])


def _add_differences(
    level: Level,
    group: _Unlike,
    pairs: NDArray[np.int32],
    shares: _Shares,
    beliefs: Beliefs,
    component: int,
    total: FloatArray,
) -> None:
    """Adds, for each factor, its gradient minus the mean gradient of its class."""
    weight = group.multiplicity
    class_weight = np.bincount(group.factor_class, weight, group.num_classes)[:, None]
    sums: list[FloatArray] = []
    classes = level.coloring.variable[group.scope]
    batches = gradients(
        group.potential, group.row, classes, level.lifting.graph.variables, beliefs, component
    )
    for batch, by_slot in batches:
        sums = sums or [np.zeros((group.num_classes, rows.shape[1])) for rows in by_slot]
        for slot, rows in enumerate(by_slot):
            width = np.full(len(rows), rows.shape[1])
            begin = group.factor_class[batch].astype(np.int64) * rows.shape[1]
            add_rows(sums[slot].reshape(-1), begin, width, weight[batch], rows)
            for place in range(len(pairs)):
                shares.add(total, pairs[place, slot, batch], weight[batch], rows)
    for slot, class_sums in enumerate(sums):
        mean = class_sums / class_weight
        for batch in slices(len(weight), MAX_POINTS):
            rows = mean[group.factor_class[batch]]
            for place in range(len(pairs)):
                shares.add(total, pairs[place, slot, batch], -weight[batch], rows)


@dataclass(frozen=True, slots=True, eq=False)
class Beliefs:
    """Σ_k w_k Π_i q_i^k over variables: the current state of a variational solver."""

    weights: FloatArray  # (component,)
    mean: FloatArray  # (component, variable), of reals
    var: FloatArray  # (component, variable), of reals
    probs: FloatArray  # (component, variable, state), 0 beyond the last state

    def check(self, variables: Variables) -> None:
        """Raises unless the beliefs are finite and fit these variables."""
        for name in ("weights", "mean", "var", "probs"):
            if not np.isfinite(getattr(self, name)).all():
                raise ModelError(f"beliefs must be finite, but some of their {name} are not")
        shape = (len(self.weights), len(variables))
        most = int(variables.num_states.max(initial=0))
        shapes = self.mean.shape, self.var.shape, self.probs.shape[:2]
        if any(found != shape for found in shapes) or self.probs.shape[2] < most:
            raise ModelError(
                f"beliefs of {shape[0]} components about {shape[1]} variables must have means and "
                f"variances of shape {shape} and probabilities of shape {(*shape, most)}, not "
                f"{self.mean.shape}, {self.var.shape} and {self.probs.shape}"
            )


@dataclass(frozen=True, slots=True, eq=False)
class SlotPoints:
    """One component's beliefs about the variables in one slot, as weighted points."""

    points: NDArray[Any]  # (factor, point): nodes, or states
    weights: FloatArray  # (factor, point)
    directions: FloatArray | None  # (point, 2), of a real

    def gradient(self, at_points: FloatArray) -> FloatArray:
        """(factor, direction): the gradient of the expectation of f, of which E[f | point] is
        given for each point, in coordinates in which the Fisher information is the identity.

        Of a Gaussian these are E[f z] = σ ∂/∂μ and E[f (z² - 1)] / √2 = √2 σ² ∂/∂σ². Of
        probabilities p they are √p (E[f | state] - E[f]).
        """
        if self.directions is not None:
            return at_points @ self.directions
        mean = (self.weights * at_points).sum(axis=1, keepdims=True)
        return np.asarray(np.sqrt(self.weights) * (at_points - mean))


def gradients(
    potential: Potential,
    row: NDArray[np.int32],
    scope: NDArray[np.int32],
    variables: Variables,
    beliefs: Beliefs,
    component: int,
) -> Iterator[tuple[slice, list[FloatArray]]]:
    """Factors, batch by batch, and per slot the gradients (factor, direction) of their expected
    log-potentials under one component, divided by its weight.

    scope: (factor, slot), of variables that the beliefs are about.
    """
    num_states = variables.num_states
    sizes = [int(num_states[column].max(initial=0)) for column in scope.T]
    num_reals = sizes.count(REAL)
    # Three nodes are exact for quadratics: with the score it is degree 4 that is integrated.
    num_nodes = nodes_per_slot(num_reals) if potential.quadratic() is None else 3
    num_points = np.prod([size or num_nodes for size in sizes])
    for batch in slices(len(row), int(MAX_POINTS // num_points)):
        slots = [
            _slot_points(beliefs, component, column, num_states[column], size, num_nodes)
            for column, size in zip(scope[batch].T, sizes, strict=True)
        ]
        values = on_grid(potential, row[batch], [slot.points for slot in slots])
        values = np.where(values == -np.inf, IMPOSSIBLE, values)
        weights = [slot.weights for slot in slots]
        yield (
            batch,
            [
                slot.gradient(expectation_given(values, weights, at))
                for at, slot in enumerate(slots)
            ],
        )


def _slot_points(
    beliefs: Beliefs,
    component: int,
    variable: NDArray[np.int32],
    num_states: NDArray[np.int32],
    size: int,
    num_nodes: int,
) -> SlotPoints:
    if size:
        # Where a function takes variables of any size, the states beyond the last have no weight.
        states = np.minimum(np.arange(size), num_states[:, None] - 1)
        return SlotPoints(states, beliefs.probs[component, variable, :size], None)
    nodes, weights = hermite_rule(num_nodes)
    sd = np.sqrt(beliefs.var[component, variable])
    points = beliefs.mean[component, variable][:, None] + sd[:, None] * nodes
    scores = np.stack([nodes, (nodes**2 - 1) / np.sqrt(2)], axis=1)
    return SlotPoints(points, np.broadcast_to(weights, points.shape), weights[:, None] * scores)
