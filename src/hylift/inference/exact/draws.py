"""Independent draws of the exact posterior: states by elimination backwards, then Gaussian reals.

Reals on lattices are drawn anew with the other Gaussians, given the discrete variables: the sum
over a lattice is their integral. Reals on nodes are spread evenly over the share of their node.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from hylift.graph import FactorGroup
from hylift.inference.exact import tables
from hylift.inference.exact.elimination import FloatArray, Ids, Ids32
from hylift.inference.exact.gaussian import draw_reals, find_components
from hylift.inference.exact.integrated import Integrated
from hylift.inference.exact.nodes.axes import Axes, put_on_axes
from hylift.inference.exact.one_pass import plan_tables
from hylift.inference.terms import Terms
from hylift.numerics.segments import offsets
from hylift.potentials import ConditionalQuadratic
from hylift.rewrite.kinds import Kinds

BLOCK = 1 << 22
"""Numbers of the Gaussians that are factorised together."""


def draw(
    kinds: Kinds, reals: Integrated, size: int, rng: np.random.Generator, *, max_entries: int
) -> FloatArray:
    """(draw, variable): states and reals, from an exact pass over a graph without evidence."""
    plan, order, *_ = plan_tables(reals, max_entries)
    messages, _, _ = tables.collect(plan, maximise=False)
    variables, axes = kinds.graph.variables, reals.bare_axes
    states = np.zeros((size, len(variables)), dtype=np.int32)
    states[:, reals.axes.num_states > 0] = tables.draw(plan, messages, size, rng)[:, order.step]
    values = states.astype(np.float64)
    if len(axes.real):
        values[:, axes.real] = _on_nodes(axes, states[:, axes.real], rng)
    if len(axes.free):
        _, quadratics = put_on_axes(kinds, axes, max_entries, maximise=True)
        _draw_free(axes, quadratics, states, values, rng)
        bounds = variables.lower[axes.free], variables.upper[axes.free]
        values[:, axes.free] = np.clip(values[:, axes.free], *bounds)
    return values


def _on_nodes(axes: Axes, node: Ids32, rng: np.random.Generator) -> FloatArray:
    """(draw, gridded): reals between the ends of the shares that their nodes have."""
    ends = axes.scale.value(axes.edges[:, [0, -1]])
    share = np.cumsum(axes.weights, axis=1)
    share = np.concatenate([np.zeros((len(share), 1)), share / share[:, -1:]], axis=1)
    place = ends[:, :1] + (ends[:, 1:] - ends[:, :1]) * share
    row = np.arange(len(place))
    low, high = place[row, node], place[row, node + 1]
    return np.asarray(low + rng.random(low.shape) * (high - low))


def _draw_free(
    axes: Axes,
    quadratics: list[FactorGroup],
    states: Ids32,
    values: FloatArray,
    rng: np.random.Generator,
) -> None:
    """Write Gaussian reals, given the states (draw, variable) of axes, into values."""
    groups = [group for group in quadratics if len(group)]
    scopes = [group.scope[:, : group.potential.num_discrete_slots].ravel() for group in groups]
    near = np.unique(np.concatenate([np.zeros(0, dtype=np.int32), *scopes]))
    rows, which = np.unique(states[:, near], axis=0, return_inverse=True)
    which = which.reshape(-1)
    draws, ptr = np.argsort(which, kind="stable"), offsets(np.bincount(which))
    numbers = sum(
        len(group) * group.reals.shape[1] * (1 + group.reals.shape[1]) for group in groups
    )
    width = max(1, BLOCK // max(numbers, 1))
    for first in range(0, len(rows), width):
        some = slice(first, first + width)
        own = draws[ptr[first] : ptr[min(first + width, len(rows))]]
        given = np.zeros((len(rows[some]), states.shape[1]), dtype=np.int64)
        given[:, near] = rows[some]
        num_states = np.append(axes.num_states, np.int32(len(given)))
        num_states[axes.real] = 0
        terms = Terms.of([_at_states(axes, group, given) for group in groups], num_states)
        components = find_components(terms, axes.free)
        noise = rng.standard_normal((len(own), len(axes.free)))
        ends = ptr[first : first + len(given) + 1] - ptr[first]
        values[own[:, None], components.real] = draw_reals(components, terms, ends, noise)


def _at_states(axes: Axes, group: FactorGroup, given: Ids) -> FactorGroup:
    """Quadratics of the reals alone in each of some joint states (state, variable), which become
    one axis behind all others."""
    split, form = group.potential.num_discrete_slots, group.potential.quadratic()
    assert form is not None
    joint = np.zeros((len(group), len(given)), dtype=np.int64)
    for variable in group.scope[:, :split].T:
        joint = joint * axes.num_states[variable[0]] + given[:, variable].T
    row = group.row[:, None]
    own = ConditionalQuadratic(form.A[row, joint], form.b[row, joint], np.zeros(joint.shape))
    axis = np.full((len(group), 1), given.shape[1], dtype=np.int32)
    scope = np.concatenate([axis, group.scope[:, split:]], axis=1)
    return replace(group, potential=own, scope=scope, row=np.arange(len(group), dtype=np.int32))
