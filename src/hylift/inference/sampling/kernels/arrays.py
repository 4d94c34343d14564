"""What the kernels of a chain read, and what they change."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

STALE, FACTORISED, SOLVED, INDEFINITE = 0, 1, 2, 3
"""What is known of a component of reals in the states at hand: nothing, its factor, its means
and variances too, or that it has no factor."""


MOST_NEAR = 8
"""Reals that a group of discrete variables takes along."""

MOST_JOINT = 2**10
"""Joint states of a group of discrete variables that are drawn together."""


class Reals(NamedTuple):
    """How the reals hang together; a real is called by its step in an elimination order."""

    variable: NDArray[np.int64]  # (step,)
    step: NDArray[np.int64]  # (variable,): -1 for a discrete one
    ptr: NDArray[np.int64]  # (step + 1,)
    later: NDArray[np.int32]  # steps next to each step when its turn comes: its edges
    numbers: NDArray[np.int64]  # (step + 1,): 0, 1, 2, …
    pair_edge: NDArray[np.int64]  # (pair of `LocalTerms`,): its edge
    component_ptr: NDArray[np.int64]  # (component + 1,)
    steps: NDArray[np.int64]  # the steps of each component, increasing
    term_ptr: NDArray[np.int64]  # (component + 1,)
    terms: NDArray[np.int64]  # the quadratics of each component
    of_term: NDArray[np.int64]  # (term,): its component; -1 for a table
    has_bounds: NDArray[np.uint8]  # (component,): whether one of its reals has a bound
    has_states: NDArray[np.uint8]  # (component,): whether its Gaussian depends on states

    @property
    def num_components(self) -> int:
        return len(self.has_bounds)


class Groups(NamedTuple):
    """Discrete variables that are drawn together, with the few reals next to them.

    Those of a group are tied, so that one by one they could hardly move; or a group has one
    variable, which takes its reals along.
    """

    ptr: NDArray[np.int64]  # (group + 1,)
    variable: NDArray[np.int64]  # the variables of each group
    num_joint: NDArray[np.int64]  # (group,): joint states
    table_ptr: NDArray[np.int64]  # (group + 1,)
    table: NDArray[np.int64]  # the tables of each group
    quadratic_ptr: NDArray[np.int64]  # (group + 1,)
    quadratic: NDArray[np.int64]  # the quadratics of each group
    near_ptr: NDArray[np.int64]  # (group + 1,)
    near: NDArray[np.int64]  # the reals that each group takes along


class Near(NamedTuple):
    """Room for the Gaussian of the reals next to a group; each has two halves: without the terms
    of the group, and with them."""

    precision: NDArray[np.float64]  # (2, near real, near real)
    linear: NDArray[np.float64]  # (2, near real)
    size: NDArray[np.float64]  # (2, near real): what the diagonal is the sum of, by size
    before: NDArray[np.int64]  # (variable of the group,): its state

    @classmethod
    def empty(cls) -> Near:
        return cls(
            np.zeros((2, MOST_NEAR, MOST_NEAR)),
            np.zeros((2, MOST_NEAR)),
            np.zeros((2, MOST_NEAR)),
            np.zeros(MOST_JOINT.bit_length(), dtype=np.int64),
        )


class Chain(NamedTuple):
    """An assignment, the Gaussians of its reals given its states, and room to compute."""

    x: NDArray[np.float64]  # (variable,): states and reals
    joint: NDArray[np.int64]  # (term,): its joint state
    known: NDArray[np.uint8]  # (component,): STALE, FACTORISED, …
    is_near: NDArray[np.uint8]  # (component,): whether a bound matters in the states at hand
    is_cut: NDArray[np.uint8]  # (component,): whether a bound has mattered
    is_aimed: NDArray[np.uint8]  # (component,): whether its factor tells directions to move in
    diagonal: NDArray[np.float64]  # (step,): of the precision
    linear: NDArray[np.float64]  # (step,)
    edges: NDArray[np.float64]  # (edge,): of the precision
    factor: NDArray[np.float64]  # (edge,)
    pivot: NDArray[np.float64]  # (step,)
    half: NDArray[np.float64]  # (step,): L⁻¹ of the linear part, divided by the pivots
    mean: NDArray[np.float64]  # (step,)
    var: NDArray[np.float64]  # (step,)
    inverse: NDArray[np.float64]  # (edge,): room
    column: NDArray[np.float64]  # (step,): room
    drawn: NDArray[np.float64]  # (step,): room
    lists: NDArray[np.int64]  # (3, step): room
    weight: NDArray[np.float64]  # (most joint states,): room
    near: Near
    best: NDArray[np.float64]  # (variable,): the most probable assignment so far
    log_density: NDArray[np.float64]  # (2,): of the best and of the last, without constants

    @classmethod
    def empty(cls, num_variables: int, num_terms: int, reals: Reals, most_joint: int) -> Chain:
        """Room for a chain, whose assignment is yet to be filled in."""
        size, fill = len(reals.variable), len(reals.later)
        return cls(
            np.zeros(num_variables),
            np.zeros(num_terms, dtype=np.int64),
            *np.zeros((4, reals.num_components), dtype=np.uint8),
            np.zeros(size),
            np.zeros(size),
            np.zeros(fill),
            np.zeros(fill),
            np.zeros(size),
            np.zeros(size),
            np.zeros(size),
            np.zeros(size),
            np.zeros(fill),
            np.zeros(size),
            np.zeros(size),
            np.zeros((3, size), dtype=np.int64),
            np.zeros(most_joint),
            Near.empty(),
            np.zeros(num_variables),
            np.full(2, -np.inf),
        )


class Mixtures(NamedTuple):
    """A mixture of Gaussians for each real, with room for more components."""

    count: NDArray[np.int64]  # (step,): components so far
    weight: NDArray[np.float64]  # (step, component)
    mean: NDArray[np.float64]  # (step, component)
    var: NDArray[np.float64]  # (step, component)
    cost: NDArray[np.float64]  # (component,): room

    @classmethod
    def empty(cls, size: int, room: int) -> Mixtures:
        return cls(np.zeros(size, dtype=np.int64), *np.zeros((3, size, room)), np.zeros(room))


class Record(NamedTuple):
    """What is kept of the draws of a chain.

    A real has a mixture of the Gaussians that it had given the states; and, of the draws where a
    bound mattered, a density at the nodes of a grid. While warming up there are no grids, and the
    mixture of a real with a bound tells where its densities lie, and how wide they are.
    """

    values: NDArray[np.float64]  # (stored draw, variable)
    probs: NDArray[np.float64]  # (variable and state,): sum of conditional probabilities
    mixtures: Mixtures
    grid: NDArray[np.int64]  # (step,): the row of its grid, or -1
    edges: NDArray[np.float64]  # (grid, panel + 1)
    nodes: NDArray[np.float64]  # (grid, node)
    node_weight: NDArray[np.float64]  # (grid, node): of the quadrature
    density: NDArray[np.float64]  # (grid, node): a sum over draws
    added: NDArray[np.float64]  # (grid,): the weight of that sum
    coarse: NDArray[np.float64]  # (grid,): how much of it is narrower than the panels
    room: NDArray[np.float64]  # (node,)
