"""Reals in mini-buckets: integrated out before all discrete variables, in closed form.

Where the joint states of the discrete neighbours of a real are too many, its factors are split by
Hölder's inequality as tables are. With -½ D x² + h x in a replica of weight w its integral is
w log ∫ exp((h x - ½ D x²) / w) dx = ½ w log(2π w / D) + h² / 2D: a quadratic of the later reals.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hylift.graph import FactorGroup, Variables
from hylift.inference.bounds.boxes import Boxes
from hylift.inference.bounds.buckets import LARGE, Split, fitting
from hylift.inference.bounds.kernels import buckets, reals
from hylift.inference.bounds.shares import centre_of, centred, least_curvature, shares
from hylift.inference.exact.elimination import (
    Flags,
    FloatArray,
    Ids,
    Ids32,
    number_axes,
    order_of_reals,
    scope_edges,
    scopes_by_arity,
)
from hylift.inference.terms import Terms
from hylift.numerics.segments import inverse, offsets, ranges, strides

LOG_REAL = 0.2
"""Size of a real in a mini-bucket, as the log of states. Storage grows with the square only."""


@dataclass(frozen=True, slots=True, eq=False)
class RealBuckets:
    """The mini-buckets of reals, their replicas, and the tables that they leave behind."""

    layout: tuple[Any, ...]  # arguments that both kernels share
    terms: tuple[Any, ...]  # quadratics, about a centre of each real
    gain_ptr: Ids  # (mini-bucket + 1,)
    variable: Ids  # (mini-bucket,): its real
    curvature: FloatArray  # (mini-bucket,): costs that make all of them proper
    scale: FloatArray  # (mini-bucket,): of its real, in which costs are measured
    boxes: Boxes  # bounds of reals
    table: Terms  # of the discrete variables, without values
    table_at: Ids  # (entry of a table,): its place among messages
    constant_at: Ids  # of integrals without discrete variables
    lost: float  # rounding errors before any elimination

    @property
    def num_messages(self) -> int:
        return int(self.layout[-1][-1])

    @property
    def count(self) -> Ids:
        """(mini-bucket,): replicas of its real."""
        return np.bincount(self.variable)[self.variable]

    @property
    def split(self) -> Flags:
        """(mini-bucket,): whether its real has other replicas, too."""
        return self.count > 1

    @property
    def owner(self) -> Ids:
        """(replica of a split real,): numbers of these from 0."""
        return np.unique(self.variable[self.split], return_inverse=True)[1]

    def tables(
        self, curvature: FloatArray, slope: FloatArray, weight: FloatArray
    ) -> tuple[FloatArray, float, FloatArray, float]:
        """Entries of the tables, the sum of constants, gains for `slopes`, and rounding errors."""
        messages, gains = np.empty(self.num_messages), np.empty(self.gain_ptr[-1])
        rounding = reals.collect(
            *self.layout, *self.terms, messages, self.curvature + curvature, slope, weight,
            self.gain_ptr, gains,
        )  # fmt: skip
        constant = float(messages[self.constant_at].sum())
        return messages[self.table_at], constant, gains, rounding + self.lost

    def slopes(
        self, weight: FloatArray, gains: FloatArray, probabilities: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """(mini-bucket,): slopes in its curvature, slope and weight; probabilities: of entries."""
        moments = np.zeros(self.num_messages)
        moments[self.constant_at], moments[self.table_at] = 1.0, probabilities
        found = np.zeros((3, len(weight)))
        reals.distribute(*self.layout, moments, weight, self.gain_ptr, gains, *found)
        return found[0], found[1], found[2]


def split_reals(
    variables: Variables, quadratics: list[FactorGroup], max_entries: int
) -> RealBuckets:
    """Mini-buckets of all reals; raises where those that must be split cannot be made proper."""
    num_states = variables.num_states
    real = np.flatnonzero(num_states == 0)
    number, states = number_axes(num_states)
    number = number + np.int32(len(real))
    number[real] = np.arange(len(real), dtype=np.int32)
    plain = Terms.of(quadratics, num_states)
    slots, slot_ptr = number[plain.slots], plain.slot_ptr
    inner = scopes_by_arity(slot_ptr[:-1] + plain.num_discrete, plain.num_reals, slots)
    order = order_of_reals(len(real), scope_edges(inner, len(real)))
    last = len(real) + np.arange(len(states), dtype=np.int32)
    step = np.concatenate([inverse(order, len(order), np.int32), last])
    sizes = np.concatenate([np.full(len(real), LOG_REAL), np.log(states)])
    slots = step[slots].astype(np.int32)
    made = fitting(sizes, slot_ptr, slots, len(real), max_entries, _entries)
    return _laid_out(variables, quadratics, plain, real, order, slots, states, made)


def _entries(sizes: FloatArray, made: Split) -> float:
    """Numbers in all messages together; the sizes of reals are LOG_REAL."""
    variable, _, scope_of, _, steps = made
    inside = steps[scope_of[0, 0] :]
    first = offsets(scope_of[:, 1] - scope_of[:, 0])[:-1]
    is_real = inside < int(variable.max()) + 1
    later = np.add.reduceat(is_real.astype(np.int64), first) - 1
    log_states = np.add.reduceat(np.where(is_real, 0.0, sizes[inside]), first)
    return float((np.exp(np.minimum(log_states, LARGE)) * (later**2 + later + 1)).sum())


def _laid_out(
    variables: Variables,
    quadratics: list[FactorGroup],
    plain: Terms,
    real: Ids,
    order: Ids32,
    slots: Ids32,
    states: Ids32,
    made: Split,
) -> RealBuckets:
    """The mini-buckets as kernels read them; order: (step,), numbers of reals; slots: steps."""
    variable, parent, scope_of, home, steps = made
    count_made, stop = len(variable), len(real)
    ptr = offsets(scope_of[:, 1] - scope_of[:, 0] - 1)
    later, slots = np.empty(ptr[-1], dtype=np.int32), slots.astype(np.int32)
    buckets.name_replicas(variable, parent, scope_of, steps, stop, ptr, later)
    buckets.rename_slots(plain.slot_ptr, slots, home, variable, scope_of, steps, ptr, later)
    by_name = np.concatenate([np.zeros(count_made, dtype=np.int64), states])
    owner = np.repeat(np.arange(count_made), np.diff(ptr))
    num_reals = np.bincount(owner[later < count_made], minlength=count_made)
    stride = strides(np.maximum(by_name[later], 1), ptr)
    log_count = np.bincount(owner, np.log(np.maximum(by_name[later], 1)), minlength=count_made)
    count = np.rint(np.exp(log_count)).astype(np.int64)
    message_ptr = offsets(count * (num_reals**2 + num_reals + 1))
    inner = np.flatnonzero(parent >= 0)
    layout = (
        ptr, later, num_reals, count, stride, by_name,
        offsets(np.bincount(home, minlength=count_made)), np.argsort(home, kind="stable"),
        offsets(np.bincount(parent[inner], minlength=count_made)),
        inner[np.argsort(parent[inner], kind="stable")], message_ptr,
    )  # fmt: skip
    centre = centre_of(variables, quadratics)
    base, theta, lost = centred(quadratics, centre)
    own = real[order[variable]]
    J = least_curvature(quadratics, slots, count_made)
    precision = np.zeros(len(variables))
    np.add.at(precision, own, J.diagonal())
    boxes = Boxes.of(variables, centre, precision)
    extra = boxes.costs(boxes.start, len(variables))[0]
    curvature, scale, times = shares(variables, J, own, extra)
    discrete = np.flatnonzero(variables.num_states > 0).astype(np.int32)
    width = np.diff(ptr)
    alone, roots = (np.flatnonzero((num_reals == 0) & some) for some in (width == 0, width > 0))
    width = width[roots]
    table = Terms(
        variables.num_states,
        offsets(width),
        discrete[later[ranges(ptr[roots], width)] - count_made],
        width.astype(np.int32),
        offsets(count[roots])[:-1],
        np.ones(len(roots)),
        np.zeros(int(count[roots].sum())),
    )
    return RealBuckets(
        layout,
        (plain.slot_ptr, slots, plain.num_discrete, base, plain.multiplicity, theta),
        offsets(count * (num_reals + 2)),
        own,
        curvature,
        scale,
        replace(boxes, start=boxes.start + np.log(times)),
        table,
        ranges(message_ptr[roots], count[roots]),
        message_ptr[alone],
        lost,
    )
