"""Proven limits to log Z, which an estimate must keep."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from hylift.inference.attempts import Attempts
from hylift.inference.bounds import MiniBuckets
from hylift.inference.method import Method, Task
from hylift.inference.variational import MeanField
from hylift.posterior import LogPartition, Posterior

LOWER, UPPER = MeanField(), MiniBuckets(max_entries=1 << 14, max_steps=20, lower=False)
SEARCHED_FACTORS, BOUNDED_FACTORS = 30_000, 1_000
"""Of a discrete graph in which the best assignment is looked for, and log Z is bounded from above:
a tenth of a second."""
TIGHT = 0.1
"""Width of an interval in which log Z is known for all that matters."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Ends between which log Z is, and their source."""

    source: str
    lower: float
    upper: float = np.inf


def limits_to_sum(answer: Posterior | None, flat: Posterior, attempts: Attempts) -> list[Limits]:
    """Limits by the answer, by mean field, by a single state, and by mini-buckets."""
    graph = attempts.prepared.ground
    is_discrete = bool((graph.variables.num_states > 0).all())
    found = [answer, bound(LOWER, attempts)]
    if is_discrete and graph.num_factors <= BOUNDED_FACTORS:
        found.append(bound(UPPER, attempts))
    limits = [
        Limits(one.solution.method, one.log_partition.lower, one.log_partition.upper)
        for one in found
        if one is not None and one.log_partition is not None
    ]
    if is_discrete and graph.num_factors <= SEARCHED_FACTORS:
        # One state, which search may find where particles do not, weighs less than all.
        limits.append(Limits("the best assignment", -flat.map().energy))
    return limits


def bound(method: Method, attempts: Attempts) -> Posterior | None:
    """log Z by a method that bounds it, unless that has doubts itself."""
    only: frozenset[Task] = frozenset({"logz"})
    notes = len(attempts.notes)
    found = attempts.attempt(method, tasks=only, callback=None, checkpoint=None)
    del attempts.notes[notes:]
    return None if found is None or found.solution.doubts else found


def within(found: Posterior, limits: list[Limits]) -> Posterior:
    """The answer, with an interval as its log Z where limits leave next to nothing open."""
    own = found.log_partition
    if own is None or own.kind != "estimate" or not limits:
        return found
    lower, upper = max(one.lower for one in limits), min(one.upper for one in limits)
    if not 0.0 <= upper - lower <= min(TIGHT, 2.0 * own.error):
        return found
    return replace(found, log_partition=LogPartition.between(lower, upper))
