"""Arrays that the kernels of a Markov chain read and change."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hylift.inference.held import Held, State, held, prefixed
from hylift.inference.local.terms import LocalTerms

FloatArray = NDArray[np.float64]
Ids = NDArray[np.int64]

STALE, FACTORISED, SOLVED, INDEFINITE = 0, 1, 2, 3
"""Knowledge of a component of reals in the states at hand: nothing, its factor, its means
and variances too, or that it has no factor."""


MOST_NEAR = 16
"""Reals that a group of discrete variables takes along."""

MOST_JOINT = 2**10
"""Joint states of a group of discrete variables that are drawn together."""


class RealBlocks(NamedTuple):
    """Components of coupled reals; a real goes by its step in an elimination order."""

    variable: Ids  # (step,)
    ptr: Ids  # (step + 1,)
    later: NDArray[np.int32]  # steps next to each step when its turn comes: its edges
    numbers: Ids  # (step + 1,): 0, 1, 2, …
    edge_pair: Ids  # (edge,): its pair of `LocalTerms`; -1 where elimination adds it
    component_ptr: Ids  # (component + 1,)
    steps: Ids  # the steps of each component, increasing
    term_ptr: Ids  # (component + 1,)
    terms: Ids  # the quadratics of each component
    of_term: Ids  # (term,): its component; -1 for a table
    has_bounds: NDArray[np.uint8]  # (component,): whether one of its reals has a bound
    has_states: NDArray[np.uint8]  # (component,): whether its Gaussian depends on states

    @property
    def num_components(self) -> int:
        return len(self.has_bounds)

    @property
    def component(self) -> Ids:
        """(step,): its component."""
        found = np.empty(len(self.variable), dtype=np.int64)
        found[self.steps] = np.repeat(np.arange(self.num_components), np.diff(self.component_ptr))
        return found


class StateGroups(NamedTuple):
    """Discrete variables that are drawn together, with the few reals next to them.

    Those of a group are tied, so that one by one they could hardly move; or a group has one
    variable, which takes its reals along.
    """

    ptr: Ids  # (group + 1,)
    variable: Ids  # the variables of each group
    num_joint: Ids  # (group,): joint states
    table_ptr: Ids  # (group + 1,)
    table: Ids  # the tables of each group
    quadratic_ptr: Ids  # (group + 1,)
    quadratic: Ids  # the quadratics of each group
    near_ptr: Ids  # (group + 1,)
    near: Ids  # the reals that each group takes along
    collapsed: Ids  # groups of one variable that is recorded with all reals integrated out
    edge: Ids  # (collapsed, pair of near reals): where their covariance is; -1 for 0
    step: Ids  # (near real,): its step
    is_collapsed: NDArray[np.uint8]  # (variable,)

    @property
    def most_joint(self) -> int:
        return int(self.num_joint.max(initial=1))


class Near(NamedTuple):
    """Room for the Gaussian of the reals next to a group: without the terms of the group, then
    with them."""

    outer_precision: FloatArray  # (near real, near real)
    outer_linear: FloatArray  # (near real,)
    outer_size: FloatArray  # (near real,): what the diagonal is the sum of, by size
    precision: FloatArray  # (near real, near real)
    linear: FloatArray  # (near real,)
    size: FloatArray  # (near real,)

    @classmethod
    def empty(cls) -> Near:
        square, line = (MOST_NEAR, MOST_NEAR), MOST_NEAR
        return cls(*(np.zeros(shape) for shape in 2 * (square, line, line)))


class Chain(NamedTuple):
    """An assignment, the Gaussians of its reals given its states, and room to compute."""

    x: FloatArray  # (variable,): states and reals
    joint: Ids  # (term,): its joint state
    curve: FloatArray  # (variable,): half the second derivative along a real
    linear: FloatArray  # (variable,): slope where all reals are 0
    coupling: FloatArray  # (pair of reals,): second derivative; then room for pairs with given ones
    origin: FloatArray  # (variable,): 0, but for reals of functions, which are given
    known: NDArray[np.uint8]  # (component,): STALE, FACTORISED, …
    is_near: NDArray[np.uint8]  # (component,): whether a bound matters in the states at hand
    is_cut: NDArray[np.uint8]  # (component,): whether a bound has mattered
    is_aimed: NDArray[np.uint8]  # (component,): True if its factor gives directions to move in
    factor: FloatArray  # (edge,): of the precision
    pivot: FloatArray  # (step,)
    half: FloatArray  # (step,): L⁻¹ of the linear part, divided by the pivots
    mean: FloatArray  # (step,)
    var: FloatArray  # (step,)
    edges: FloatArray  # (edge,): room
    column: FloatArray  # (step,): room
    drawn: FloatArray  # (step,): room
    lists: Ids  # (3, step): room
    weight: FloatArray  # (most joint states,): room
    near: Near
    best: FloatArray  # (variable,): the most probable assignment so far
    log_density: FloatArray  # (3,): of the best and of the last, without constants; of functions
    order: Ids  # (discrete variable,): in which the last sweep drew them
    group_order: Ids  # (group,)
    random: NDArray[np.uint64]  # (1,): state of the generator

    @classmethod
    def at(
        cls,
        start: FloatArray,
        terms: LocalTerms,
        blocks: RealBlocks,
        groups: StateGroups,
        seed: np.random.SeedSequence,
    ) -> Chain:
        """A chain at its start (variable,)."""
        count, size, fill = len(start), len(blocks.variable), len(blocks.later)
        num_states = terms.variable["num_states"]
        drawn = np.flatnonzero((num_states > 0) & (terms.variable["movable"] == 1))
        chain = cls(
            start.copy(),
            terms.joint_states(start),
            np.zeros(count),
            np.zeros(count),
            np.zeros(len(terms.link) // 2 + 1),
            np.zeros(count),
            np.zeros(blocks.num_components, dtype=np.uint8),
            np.zeros(blocks.num_components, dtype=np.uint8),
            np.zeros(blocks.num_components, dtype=np.uint8),
            np.zeros(blocks.num_components, dtype=np.uint8),
            np.zeros(fill),
            np.zeros(size),
            np.zeros(size),
            np.zeros(size),
            np.zeros(size),
            np.zeros(fill),
            np.zeros(size),
            np.zeros(size),
            np.zeros((3, size), dtype=np.int64),
            np.zeros(0),
            Near.empty(),
            np.zeros(count),
            np.array([-np.inf, -np.inf, 0.0]),
            drawn,
            np.zeros(0, dtype=np.int64),
            seed.generate_state(1, np.uint64).astype(np.uint64),
        )
        return chain.with_groups(terms, groups)

    def arrays(self, terms: LocalTerms) -> State:
        """All that the next sweep depends on; joint states follow from the assignment, and the rest
        is room."""
        names = (
            "curve", "linear", "coupling", "origin", "factor", "pivot", "half", "mean", "var",
            "log_density", "random",
        )  # fmt: skip
        flags = {name: getattr(self, name) for name in ("is_near", "is_cut", "is_aimed")}
        return {
            "x": terms.held(self.x),
            "best": terms.held(self.best, keeps_bounds=False),
            "known": Held(self.known, STALE, INDEFINITE),
            **held(flags, 0, 1),
            "order": Held(self.order, is_order=True),
            "group order": Held(self.group_order, is_order=True),
            **{name: getattr(self, name) for name in names},
        }

    def with_groups(self, terms: LocalTerms, groups: StateGroups) -> Chain:
        """The same chain with room for other groups."""
        most_joint = int(max(terms.variable["num_states"].max(initial=1), groups.most_joint))
        order = np.arange(len(groups.num_joint))
        return self._replace(weight=np.zeros(most_joint), group_order=order)


class GaussianSums(NamedTuple):
    """A mixture of Gaussians for each real, with room for more components."""

    num_components: Ids  # (step,): so far
    weight: FloatArray  # (step, component)
    mean: FloatArray  # (step, component)
    var: FloatArray  # (step, component)
    cost: FloatArray  # (component,): room

    @classmethod
    def empty(cls, size: int, room: int) -> GaussianSums:
        weight, mean, var = np.zeros((3, size, room))
        return cls(np.zeros(size, dtype=np.int64), weight, mean, var, np.zeros(room))

    def arrays(self) -> State:
        """All but the room."""
        return {
            "number": Held(self.num_components, 0, self.weight.shape[1]),
            "weight": Held(self.weight, 0.0),
            "mean": self.mean,
            "var": Held(self.var, 0.0),
        }

    def shares(self) -> FloatArray:
        """(step, component): the weights of those that are there, and else 0."""
        own = np.arange(self.weight.shape[1]) < self.num_components[:, None]
        return np.where(own, self.weight, 0.0)

    def moments(self) -> tuple[FloatArray, FloatArray]:
        """(step,): mean and variance; NaN for those without components."""
        weight = self.shares()
        with np.errstate(invalid="ignore"):
            weight = weight / weight.sum(axis=1, keepdims=True)
        own = weight > 0.0
        mean = (weight * np.where(own, self.mean, 0.0)).sum(axis=1)
        apart = np.where(own, self.mean - mean[:, None], 0.0)
        return mean, (weight * (np.where(own, self.var, 0.0) + apart**2)).sum(axis=1)


class Record(NamedTuple):
    """Sums and values kept of the draws of a chain.

    A real has a mixture of the Gaussians that it had given the states; and, of the draws where a
    bound mattered, a density at the nodes of a grid. While warming up there are no grids, and the
    mixture of a real with a bound shows where its densities lie, and how wide they are.
    """

    values: FloatArray  # (stored draw, variable)
    probs: FloatArray  # (variable and state,): sum of conditional probabilities
    mixtures: GaussianSums
    grid: Ids  # (step,): the row of its grid, or -1
    edges: FloatArray  # (grid, panel + 1)
    nodes: FloatArray  # (grid, node)
    node_weight: FloatArray  # (grid, node): of the quadrature
    density: FloatArray  # (grid, node): a sum over draws
    added: FloatArray  # (grid,): the weight of that sum
    coarse: FloatArray  # (grid,): how much of it is narrower than the panels
    room: FloatArray  # (node,)
    origin: FloatArray  # (step,): from which means are measured
    moments: FloatArray  # (2, step): sums of means given the states, and of squares
    marks: FloatArray  # (batch, score, then two per step): the sums so far at the end of each

    def arrays(self) -> State:
        """The sums that sweeps change."""
        sums = {name: getattr(self, name) for name in ("probs", "density", "added", "coarse")}
        return {
            **held(sums, 0.0, np.inf),
            **prefixed("mixtures", self.mixtures.arrays()),
            "moments": self.moments,
            "marks": self.marks,
        }
