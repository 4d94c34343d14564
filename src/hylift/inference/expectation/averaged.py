"""The best joint Gaussian beside independent states, and the lower bound on log Z of both."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy import special

from hylift.inference.control import always
from hylift.inference.expectation.joint import FloatArray, Ids, Solved
from hylift.inference.expectation.kernels import averages as kernels
from hylift.inference.expectation.kernels import joint as joint_kernels
from hylift.inference.expectation.layout import Sites
from hylift.inference.message.layout import Work, in_blocks
from hylift.numerics.segments import offsets

SWEEPS = 4
"""Of coordinate ascent, before a bound is reported."""
CERTAIN = 0.96
"""Probability of a state that is thought to be the right one, at a start."""


class Averages(NamedTuple):
    """Sites averaged over the states of their variables."""

    precision: FloatArray  # (site's matrix entry,)
    linear: FloatArray  # (site's coordinate,)
    constant: FloatArray  # (site,): -inf where something impossible has a probability


def averaged(sites: Sites, probs: FloatArray, some: Work) -> Averages:
    """Averages of some sites in closed form; probs: (point,), of states."""
    found = Averages(
        np.zeros(sites.matrix_ptr[-1]), np.zeros(sites.dim_ptr[-1]), np.zeros(len(sites))
    )
    in_blocks(
        kernels.averages, some.blocks, some.ids, sites.layout, sites.terms.slots,
        sites.points.first, probs, int(sites.terms.num_discrete.max(initial=0)), *found,
    )  # fmt: skip
    return found


def solved_given(sites: Sites, given: Averages) -> Solved:
    """The Gaussian N(Σ E[A], Σ E[b]): of all, the one that makes the bound highest."""
    found = Solved.start(sites.joint)
    every = np.arange(sites.joint.num_components)
    some, once = np.arange(len(sites)), np.ones(len(sites))
    sites.solve(found, some, every, once, given.precision, given.linear)
    return found


def projected(
    sites: Sites, some: Work, vector: FloatArray, matrix: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """A vector (step,) and a symmetric matrix (entry,) in the coordinates of some sites."""
    found = np.zeros(sites.dim_ptr[-1]), np.zeros(sites.matrix_ptr[-1])
    in_blocks(joint_kernels.project, some.blocks, some.ids, sites.layout, vector, matrix, *found)
    return found


def tables_of(
    sites: Sites,
    some: Work,
    vector: FloatArray,
    matrix: FloatArray,
    table_ptr: Ids,
    *,
    is_whole: bool,
) -> FloatArray:
    """A(s) · matrix + b(s) · vector of the joint states of some sites, whose tables begin at
    table_ptr; if they are whole, with c(s)."""
    own, table = projected(sites, some, vector, matrix), np.zeros(table_ptr[-1])
    in_blocks(
        kernels.expected_tables, some.blocks, some.ids, sites.layout, *own, is_whole, table_ptr,
        table,
    )  # fmt: skip
    return table


class Climbed(NamedTuple):
    """Independent states, and the bound on log Z that they make with the best Gaussian."""

    probs: FloatArray  # (point,)
    bound: FloatArray  # (part,): without constants; -inf where something impossible is left


def climbed(
    sites: Sites, probs: FloatArray, sweeps: int, go_on: Callable[[], bool] = always
) -> Climbed:
    """The best states, in each part of the graph, on the way of coordinate ascent from these
    (point,): all reals together given the states, then one variable after the other. On a ground
    graph every sweep raises the bound. Sites must be in closed form.
    """
    joint, terms, points = sites.joint, sites.terms, sites.points
    every = Work.of(np.arange(len(sites)), sites.cost)
    table_ptr, order = offsets(terms.num_joint), np.flatnonzero(terms.num_states > 0)
    part, probs = sites.part_of_variable[points.variable], probs.copy()
    best = Climbed(probs.copy(), np.full(sites.num_parts, -np.inf))
    for number in range(sweeps + 1):
        given = averaged(sites, probs, every)
        solved = solved_given(sites, given)
        bound = _bound(sites, probs, given, solved, every)
        is_better = bound > best.bound
        best.bound[is_better] = bound[is_better]
        np.copyto(best.probs, probs, where=is_better[part])
        if number == sweeps or solved.failed.any() or not go_on():
            break
        second = solved.covariance + joint.square(solved.mean)
        table = tables_of(sites, every, solved.mean, second, table_ptr, is_whole=True)
        kernels.sweep_states(
            order, *terms.incidence, terms.term, terms.slot_ptr, terms.slots, terms.num_discrete,
            terms.stride, terms.multiplicity, points.graph.variables.multiplicity, points.first,
            table_ptr, table, np.empty(points.most), probs,
        )  # fmt: skip
    return best


def lower_bound(sites: Sites, probs: FloatArray, go_on: Callable[[], bool] = always) -> float:
    """E[log ψ] + H of independent states and the best joint Gaussian beside them, near to these
    states (point,) or to the most probable ones, in each part of the graph: at most log Z; -inf
    where something impossible keeps a probability."""
    points = sites.points
    top = np.zeros(points.graph.num_variables)
    np.maximum.at(top, points.variable, probs)
    likely = (1 - CERTAIN) * probs + CERTAIN * (probs == top[points.variable])
    likely /= np.bincount(points.variable, likely)[points.variable]
    best = climbed(sites, probs, SWEEPS, go_on).bound
    if go_on():
        best = np.maximum(best, climbed(sites, likely, SWEEPS, go_on).bound)
    return float(best.sum()) + points.graph.log_constant + sites.joint.constant


def _bound(
    sites: Sites, probs: FloatArray, given: Averages, solved: Solved, every: Work
) -> FloatArray:
    """(part,): the bound of these states with their Gaussian, without constants."""
    points, joint, num_parts = sites.points, sites.joint, sites.num_parts
    mean, square = projected(sites, every, solved.mean, joint.square(solved.mean))
    site = (
        np.repeat(np.arange(len(sites)), sites.dim),
        np.repeat(np.arange(len(sites)), sites.dim**2),
    )
    expected = sites.terms.multiplicity * given.constant
    expected += np.bincount(site[0], given.linear * mean, len(sites))
    expected -= 0.5 * np.bincount(site[1], given.precision * square, len(sites))
    # The covariance adds -n/2 to the expectation, and n/2 to the entropy.
    of_step = solved.mean * (joint.linear - 0.5 * joint.times(joint.base, solved.mean))
    of_step += 0.5 * np.log(2 * np.pi)
    entropy = points.graph.variables.multiplicity[points.variable] * special.entr(probs)
    found = np.bincount(sites.part, expected, num_parts)
    found = found + np.bincount(sites.part_of_variable[joint.real], of_step, num_parts)
    found += np.bincount(sites.part_of_variable[points.variable], entropy, num_parts)
    volume = np.where(solved.failed, np.inf, solved.log_det)
    return np.asarray(found - 0.5 * np.bincount(sites.of_component, volume, num_parts))
