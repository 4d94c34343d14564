"""The answers of all groups of particles, before they are averaged."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hylift.graph import Variables
from hylift.numerics.segments import offsets, ranges
from hylift.posterior.marginals import Batches

FloatArray = NDArray[np.float64]
Ids = NDArray[np.int64]

LEAST_WEIGHT = 1e-300
"""Of a component of a mixture: those of improbable groups must not vanish."""


@dataclass(frozen=True, slots=True, eq=False)
class GroupAnswers:
    """The answer of each group, by variables and connected parts."""

    num_particles: int  # of a group
    variables: Variables
    part: NDArray[np.int32]  # (variable,)
    log_z: FloatArray  # (group, part)
    probs: FloatArray  # (group, variable and state): up to a factor
    mean: FloatArray  # (group, real)
    var: FloatArray  # (group, real)
    values: FloatArray  # (group, draw, variable)
    best: FloatArray  # (group, variable): the most probable particle
    batches: Callable[[FloatArray], Batches]
    """Distributions of all variables, with the ids of those they are about, by the weights (group,
    part) of groups."""
    is_enumerated: NDArray[np.bool_]  # (part,)

    @property
    def reals(self) -> Ids:
        return np.flatnonzero(self.variables.num_states == 0)


def joined(variables: Variables, answers: Sequence[tuple[Ids, GroupAnswers]]) -> GroupAnswers:
    """The answers about some variables each as one about all of them."""
    if len(answers) == 1:
        return answers[0][1]
    num_draws = min(one.values.shape[1] for _, one in answers)
    groups, count = len(answers[0][1].log_z), len(variables)
    size = variables.num_states.astype(np.int64)
    first, is_real = offsets(size), size == 0
    place = np.cumsum(is_real) - 1
    part, num_parts = np.zeros(count, dtype=np.int32), 0
    probs, values = np.zeros((groups, first[-1])), np.zeros((groups, num_draws, count))
    mean, var, best = (np.zeros((groups, n)) for n in (is_real.sum(), is_real.sum(), count))
    spans = []
    for ids, one in answers:
        part[ids] = one.part + num_parts
        spans.append(slice(num_parts, num_parts + one.log_z.shape[1]))
        num_parts += one.log_z.shape[1]
        probs[:, ranges(first[ids], size[ids])] = one.probs
        values[:, :, ids], best[:, ids] = one.values[:, :num_draws], one.best
        reals = place[ids[is_real[ids]]]
        mean[:, reals], var[:, reals] = one.mean, one.var

    def batches(weights: FloatArray) -> Batches:
        return [
            (ids[own], found)
            for (ids, one), span in zip(answers, spans, strict=True)
            for own, found in one.batches(weights[:, span])
        ]

    log_z = np.concatenate([one.log_z for _, one in answers], axis=1)
    is_enumerated = np.concatenate([one.is_enumerated for _, one in answers])
    return GroupAnswers(
        answers[0][1].num_particles,
        variables,
        part,
        log_z,
        probs,
        mean,
        var,
        values,
        best,
        batches,
        is_enumerated,
    )
