"""Leaves that nothing depends on are eliminated: reals whose integral is the same for all others.

An example is a reading that was not taken: a hidden real y in a single factor normal(y | a·x, v),
which integrates to the same number whatever x is. Left in the graph it costs time, and
approximations that make y and x independent make x too certain.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar, final

import numpy as np
from numpy.typing import NDArray

from hylift.graph.factor_graph import FactorGraph
from hylift.graph.factors import FactorGroup
from hylift.numerics.segments import inverse
from hylift.potentials import ConditionalQuadratic, Table
from hylift.potentials.quadratic import as_quadratic

Floats = NDArray[np.float64]
Ids = NDArray[np.int64]

MOST_ROUNDS = 50
"""Longest chain of leaves that is eliminated; the rest of a longer one stays in the graph."""
CANCELLED = 1e-14
"""Relative rounding error of numbers that cancel. Small, since the effect of a narrow link is."""
ROUNDING, NO_DIFFERENCE = 1e-12, 1e-9
"""Relative rounding error of differences of logarithms, and the largest that changes nothing."""


class Leaves(ABC):
    """Variables that were eliminated; ids are of the graph before."""

    __slots__ = ()

    @property
    @abstractmethod
    def variables(self) -> NDArray[np.int32]:
        """Their ids."""

    @abstractmethod
    def restore(self, values: Floats, rng: np.random.Generator | None) -> None:
        """Fill in values (…, variable) of leaves from those of others: drawn, or the best ones."""


L = TypeVar("L", bound=Leaves)


@dataclass(frozen=True, slots=True, eq=False)
class Remaining(Generic[L]):
    """A graph without some of its leaves."""

    graph: FactorGraph
    kept: Ids
    """(variable of `graph`,): its id in the graph before."""
    eliminated: tuple[L, ...]
    """In the order in which they can be restored: after all that they depend on."""

    @classmethod
    def whole(cls, graph: FactorGraph) -> Remaining[L]:
        """The graph itself, where there are no leaves."""
        return cls(graph, np.arange(graph.num_variables), ())

    @classmethod
    def of(
        cls,
        graph: FactorGraph,
        eliminated: Sequence[L],
        groups: Iterable[FactorGroup],
        log_constant: float,
    ) -> Remaining[L]:
        """groups: of the variables that are left, with their ids in the graph before."""
        stays = np.ones(graph.num_variables, dtype=bool)
        for one in eliminated:
            stays[one.variables] = False
        smaller = graph.of_some(stays, groups, log_constant)
        return cls(smaller, np.flatnonzero(stays), tuple(eliminated))

    @property
    def new_id(self) -> NDArray[np.int32]:
        """(variable of the graph before,): its id in `graph`, -1 for leaves."""
        size = len(self.kept) + sum(one.variables.size for one in self.eliminated)
        return inverse(self.kept, size, np.int32)

    def restored(self, values: Floats, rng: np.random.Generator | None = None) -> Floats:
        """(…, variable of the graph before): values of `graph`'s, (…, its variable), and of leaves
        given these: the best ones, or drawn."""
        found = np.empty((*values.shape[:-1], len(self.new_id)))
        found[..., self.kept] = values
        for one in self.eliminated:
            one.restore(found, rng)
        return found


@final
@dataclass(frozen=True, slots=True, eq=False)
class ConstantLeaves(Leaves):
    """Leaves eliminated from factors with one potential, each in the same slot."""

    group: FactorGroup
    """Their factors, over the variables of the whole graph."""
    slot: int

    @property
    def quadratic(self) -> ConditionalQuadratic:
        """The potential of their factors."""
        found = as_quadratic(self.group.potential)
        assert found is not None
        return found

    @property
    def variables(self) -> NDArray[np.int32]:
        """(factor,): the real of each factor."""
        return self.group.scope[:, self.slot]

    @property
    def others(self) -> list[int]:
        """The other slots."""
        return [slot for slot in range(self.group.arity) if slot != self.slot]

    def given_others(self) -> tuple[Floats, Floats, Floats]:
        """The Gaussian of a real given the rest of its factor, per row of the potential: offset
        (row, states…), coefficients (row, states…, other real slot), variance (row, states…)."""
        parts = _Parts.of(self.quadratic, self.slot - self.quadratic.num_discrete_slots)
        square = np.where(parts.square < 0, parts.square, -1.0)  # states that are impossible
        offset = -parts.linear / (2 * square)
        return offset, -parts.cross / square[..., None], -0.5 / square

    def restore(self, values: Floats, rng: np.random.Generator | None) -> None:
        offset, coefficients, variance = self.given_others()
        scope, num_discrete = self.group.scope, offset.ndim - 1
        states = values[..., scope[:, :num_discrete]].astype(np.int64)
        at = (self.group.row, *np.moveaxis(states, -1, 0))
        others = [slot for slot in self.others if slot >= num_discrete]
        mean = offset[at] + (coefficients[at] * values[..., scope[:, others]]).sum(axis=-1)
        noise = 0.0 if rng is None else np.sqrt(variance[at]) * rng.standard_normal(mean.shape)
        values[..., self.variables] = mean + noise


def eliminate_leaves(
    graph: FactorGraph, keep: NDArray[np.bool_] | None = None
) -> Remaining[ConstantLeaves]:
    """The graph without leaves that nothing depends on, except those (variable,) to keep.

    Bounds of leaves are ignored: the caller checks afterwards that little mass lies beyond them.
    """
    may_go = graph.variables.num_states == 0
    may_go[graph.evidence.variable] = False
    if keep is not None:
        may_go &= ~keep
    hidden = graph.is_hidden
    groups, eliminated = list(graph.groups), list[ConstantLeaves]()
    log_constant = graph.log_constant
    for _ in range(MOST_ROUNDS):
        num_factors = np.zeros(graph.num_variables, dtype=np.int64)
        for group in groups:
            num_factors += np.bincount(group.scope.reshape(-1), minlength=graph.num_variables)
        is_leaf = may_go & (num_factors == 1)
        if not is_leaf.any():
            break
        found: list[ConstantLeaves] = []
        remaining: list[FactorGroup] = []
        for group in groups:
            left, gone = _split(group, is_leaf, hidden, graph.variables.multiplicity)
            found += gone
            remaining += left
        if not found:
            break
        for one in found:
            rest, constant = _integrated(one)
            remaining += rest
            log_constant += constant
        groups = [group for group in remaining if len(group)]
        eliminated += found
    if not eliminated:
        return Remaining.whole(graph)
    # What a leaf depends on was eliminated after it, if at all.
    return Remaining.of(graph, eliminated[::-1], groups, log_constant)


def _split(
    group: FactorGroup,
    is_leaf: NDArray[np.bool_],
    hidden: NDArray[np.bool_],
    multiplicity: Floats,
) -> tuple[list[FactorGroup], list[ConstantLeaves]]:
    """The factors that stay, and those with a leaf to eliminate, by its slot.

    A leaf that is the only hidden variable of its factor stays. Members of a class must each have a
    factor of their own.
    """
    potential = as_quadratic(group.potential)
    if potential is None or not is_leaf[group.scope].any():
        return [group], []
    stays = np.ones(len(group), dtype=bool)
    has_others = hidden[group.scope].sum(axis=1) > 1
    found = []
    for slot in range(potential.num_discrete_slots, group.arity):
        leaf = group.scope[:, slot]
        fits = stays & has_others & is_leaf[leaf] & (group.multiplicity == multiplicity[leaf])
        if not fits.any():
            continue
        fits &= _can_eliminate(potential, slot - potential.num_discrete_slots)[group.row]
        if fits.any():
            found.append(ConstantLeaves(group.take(np.flatnonzero(fits)), slot))
            stays &= ~fits
    return ([group] if stays.all() else [group.take(np.flatnonzero(stays))]), found


def _can_eliminate(potential: ConditionalQuadratic, real: int) -> NDArray[np.bool_]:
    """(row,): whether the integral over one real exists, and depends on no other real."""
    parts = _Parts.of(potential, real)
    possible = potential.c > -np.inf
    square = np.where(parts.square < 0, parts.square, -1.0)[..., None]
    gone = parts.cross * parts.linear[..., None] / square
    both = parts.cross[..., None] * parts.cross[..., None, :] / square[..., None]
    fits = (parts.square < 0) & _cancel(parts.rest_linear, gone).all(axis=-1)
    fits &= _cancel(parts.rest, both).all(axis=(-1, -2))
    axes = tuple(range(1, possible.ndim))
    return np.asarray((fits | ~possible).all(axis=axes))


def _cancel(one: Floats, other: Floats) -> NDArray[np.bool_]:
    return np.abs(one - other) <= CANCELLED * (np.abs(one) + np.abs(other))


def _integrated(leaves: ConstantLeaves) -> tuple[list[FactorGroup], float]:
    """Factors without their leaf: tables of their states, and the sum of constants."""
    group, potential = leaves.group, leaves.quadratic
    parts = _Parts.of(potential, leaves.slot - potential.num_discrete_slots)
    square = np.where(parts.square < 0, parts.square, -1.0)
    integral = 0.5 * np.log(np.pi / -square) - parts.linear**2 / (4 * square)
    table = np.where(potential.c == -np.inf, -np.inf, potential.c + integral)
    flat = table.reshape(len(table), -1)
    with np.errstate(invalid="ignore"):
        spread = flat.max(axis=1) - flat.min(axis=1)
    size = np.abs(potential.c.reshape(flat.shape)) + np.abs(integral.reshape(flat.shape))
    rounding = ROUNDING * (1.0 + np.where(np.isfinite(size), size, 0).max(axis=1))
    is_constant = spread <= np.minimum(rounding, NO_DIFFERENCE)
    constant = float((group.multiplicity * flat[group.row, 0])[is_constant[group.row]].sum())
    some = np.flatnonzero(~is_constant[group.row])
    if not len(some):
        return [], constant
    scope = group.scope[some][:, : potential.num_discrete_slots]
    return [group.take(some).changed(potential=Table(table), scope=scope)], constant


@dataclass(frozen=True, slots=True, eq=False)
class _Parts:
    """A quadratic in y and x: square y² + 2 (cross·x) y + linear y + x·rest·x + rest_linear·x,
    each (row, states…, …)."""

    square: Floats
    cross: Floats
    linear: Floats
    rest: Floats
    rest_linear: Floats

    @classmethod
    def of(cls, potential: ConditionalQuadratic, real: int) -> _Parts:
        others = [place for place in range(potential.num_reals) if place != real]
        A, b = potential.A, potential.b
        return cls(
            A[..., real, real],
            A[..., real, others],
            b[..., real],
            A[..., others, :][..., others],
            b[..., others],
        )
