"""Distances between two answers, and the calibrated errors that follow from them."""

from __future__ import annotations

import functools
import json
from dataclasses import dataclass
from importlib import resources
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from hylift.numerics.segments import maxima, offsets
from hylift.posterior import Categorical, Posterior
from hylift.posterior.comparison import check_comparable
from hylift.posterior.mixing import StandardErrors
from hylift.posterior.trust import relative_size

FloatArray = NDArray[np.float64]
Kind = Literal["smc", "gibbs"]
"""Kinds of independent runs, which have multipliers of their own."""


@dataclass(frozen=True, slots=True, eq=False)
class Gaps:
    """Distances of an answer from another; each is (hidden variable,), nan where it has no such."""

    prob: FloatArray
    """Largest difference of the probabilities of a state."""
    mean: FloatArray
    """Difference of the means, in deviations: the smaller one of both answers."""
    log_std: FloatArray
    """Difference of the logarithms of the deviations."""
    std: FloatArray
    """The smaller deviation."""

    @classmethod
    def between(cls, answer: Posterior, other: Posterior) -> Gaps:
        if answer is not other:
            check_comparable(answer, other)
        ids = np.flatnonzero(~answer.observed)
        (first, probs, mean, std), (_, others, other_mean, other_std) = (
            _numbers(posterior, ids) for posterior in (answer, other)
        )
        prob = _largest(np.abs(probs - others), first)
        smaller = np.maximum(np.minimum(std, other_std), np.finfo(float).tiny)
        larger = np.maximum(np.maximum(std, other_std), np.finfo(float).tiny)
        log_std = np.log(larger) - np.log(smaller)
        return cls(prob, np.abs(mean - other_mean) / smaller, log_std, smaller)

    def and_from(self, other: Gaps) -> Gaps:
        """The larger of these distances and those from a third answer."""
        return Gaps(
            np.fmax(self.prob, other.prob),
            np.fmax(self.mean, other.mean),
            np.fmax(self.log_std, other.log_std),
            self.std,
        )

    @property
    def size(self) -> FloatArray:
        """(hidden variable,): the largest distance, as a multiple of what is still right."""
        with np.errstate(over="ignore"):
            return relative_size(self.prob, self.mean, np.exp(self.log_std))

    def errors(
        self, known: StandardErrors, kind: Kind
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """(hidden variable,): errors of probabilities, of means, and of deviations as factors.

        known: of the other answer. Of each kind, one of twenty random models exceeds them.
        """
        calibration = _calibration()
        floor, multiplier = calibration["floor"], calibration["multiplier"][kind]

        def error(name: str, gap: FloatArray, standard: FloatArray) -> FloatArray:
            return np.asarray(gap + multiplier[name] * np.maximum(2.0 * standard, floor[name]))

        with np.errstate(over="ignore"):
            return (
                error("prob", self.prob, known.probability),
                error("mean", self.mean, known.mean / self.std),
                np.exp(error("std", self.log_std, known.std)),
            )


def missed(flat: Posterior, informed: Posterior) -> tuple[FloatArray, FloatArray, FloatArray]:
    """(hidden variable,): what an informed run knows of that a flat one has missed: probability of
    a state, distance of the mean in deviations, and a factor of the deviation.

    A share exp(d) of the distribution is as the informed run has it, where d is the difference of
    its log Z from the other one's; so no probability may be below that share of its own. The
    mean may be elsewhere as far as the rest can balance it without a larger deviation.
    """
    assert flat.log_partition is not None
    assert informed.log_partition is not None
    share = np.exp(min(0.0, informed.log_partition.value - flat.log_partition.value))
    ids = np.flatnonzero(~flat.observed)
    first, probs, mean, std = _numbers(flat, ids)
    _, known, known_mean, known_std = _numbers(informed, ids)
    with np.errstate(divide="ignore", invalid="ignore"):
        factor = np.sqrt(share * (known_std**2 + (known_mean - mean) ** 2)) / std
        off = np.abs(known_mean - mean) / std - np.sqrt((1.0 - share) / share)
    return _largest(share * known - probs, first), np.maximum(off, 0.0), np.maximum(factor, 1.0)


def _largest(values: FloatArray, first: NDArray[np.int64]) -> FloatArray:
    """(variable,): the largest value of its states; nan where it has none."""
    found = np.full(len(first) - 1, np.nan)
    has_states = np.flatnonzero(np.diff(first))
    found[has_states] = maxima(values, np.append(first[has_states], first[-1]))
    return found


def difference(name: str, own: Any, other: Any) -> str:
    """In words what two marginals differ in."""
    if isinstance(own, Categorical):
        at = int(np.argmax(np.abs(own.probs - other.probs)))
        state = own.states[at]
        return f"P('{name}' = {state}) is {other.probs[at]:.2f}, not {own.probs[at]:.2f}"
    told = [f"{one.mean:.3g} and {one.std:.2g}" for one in (other, own)]
    return f"mean and deviation of '{name}' are {told[0]}, not {told[1]}"


@functools.cache
def _calibration() -> dict[str, Any]:
    """The multipliers and floors that `benchmarks` has found on random models."""
    file = resources.files("hylift.inference.checking") / "calibration.json"
    found: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return found


def _numbers(
    posterior: Posterior, ids: NDArray[np.int64]
) -> tuple[NDArray[np.int64], FloatArray, FloatArray, FloatArray]:
    """Positions at which the states of each variable begin, probabilities, means, deviations."""
    first = offsets(posterior.variables.num_states[ids].astype(np.int64))
    probs = np.empty(first[-1])
    mean, std = np.full(len(ids), np.nan), np.full(len(ids), np.nan)
    for place, batch, rows in posterior.known_marginals().by_batch(ids):
        some: Any = batch
        if isinstance(batch, Categorical):
            probs[first[place][:, None] + np.arange(batch.num_states)] = batch.probs[rows]
        else:
            mean[place], std[place] = np.asarray(some.mean)[rows], np.asarray(some.std)[rows]
    return first, probs, mean, std
