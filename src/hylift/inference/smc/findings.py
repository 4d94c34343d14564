"""The answer of a population: averages over its groups, and errors from the spread between them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy import special

from hylift.graph import Variables
from hylift.inference.smc.answers import GroupAnswers
from hylift.numerics.segments import maxima, offsets
from hylift.posterior import LogPartition
from hylift.posterior.draws import Draws
from hylift.posterior.marginals import Batches
from hylift.posterior.mixing import (
    ALONE,
    effective_groups,
    error_of_groups,
    few_decide,
    variance_of_sums,
    widened,
)
from hylift.words import counted, doubt

FloatArray = NDArray[np.float64]

PROBABILITY_OFF, MEAN_OFF, STD_OFF = 0.025, 0.125, 0.11
"""Standard errors of a probability, of a mean in deviations, and of a deviation relative to it,
beyond which groups disagree."""

SURE, UNSURE = 1.5, 2.1
"""Standard errors of the log Z of a part, in those that `STEPS` changes of temperature would leave
if nothing else differed between groups: up to which modes are probably all seen, and beyond which
some may be missing."""

STEPS, PER_STEP = 25, 0.25
"""Changes of temperature, as a rule, and the variance of the weights of particles at each."""

ROUNDING = 1e-13


@dataclass(frozen=True, eq=False)
class Findings:
    """Averages over groups, each weighted by its own estimate of Z, part by part."""

    answers: GroupAnswers
    log_constant: float

    @cached_property
    def weights(self) -> FloatArray:
        """(group, part): of the groups."""
        return np.asarray(special.softmax(self.answers.log_z, axis=0))

    def log_partition(self) -> LogPartition:
        """The sum of the logarithms of the means of Z over groups, part by part.

        A mean of few is too low in the logarithm by half its relative variance, which is added: it
        would add up over parts. The error is such that log Z is within three of them as often as
        three deviations of a normal distribution are right: the spread is known from few groups
        (Student's t, with Satterthwaite's number of degrees of freedom).
        """
        log_z, spread = self.answers.log_z, self._log_z_variance
        groups = len(log_z)
        means = special.logsumexp(log_z, axis=0) - np.log(groups)
        value = float((means + 0.5 * np.minimum(spread, 0.5)).sum()) + self.log_constant
        total = float(spread.sum())
        error = ROUNDING * float(np.abs(means).sum() + abs(self.log_constant))
        if total > 0.0:
            freedom = total**2 / float((spread**2).sum()) * (groups - 1)
            error += np.sqrt(total) * widened(freedom)
        return LogPartition(value, "estimate", float(error))

    @cached_property
    def _log_z_variance(self) -> FloatArray:
        """(part,): the variance of the mean of Z over groups, relative to it."""
        # Where one group has all the weight, nothing is left of its spread but on the log scale.
        alone = np.where(self._is_alone, self.answers.log_z.var(axis=0), 0.0)
        return np.maximum(variance_of_sums(self.weights), alone)

    @property
    def _usual_error(self) -> float:
        """The standard error of log Z that temperatures alone leave."""
        groups, particles = len(self.weights), self.answers.num_particles
        return widened(groups - 1) * float(np.sqrt(STEPS * PER_STEP / (groups * particles)))

    @cached_property
    def log_z_error(self) -> FloatArray:
        """(part,): the standard error of its log Z, for as few groups as there are."""
        return np.sqrt(self._log_z_variance) * widened(len(self.weights) - 1)

    @cached_property
    def group_probs(self) -> FloatArray:
        """(group, variable and state)."""
        first, sums = self.first, self.answers.probs
        if len(first) < 2:
            return sums
        totals = np.add.reduceat(sums, first[:-1], axis=1)
        return np.asarray(sums / np.repeat(totals, np.diff(first), axis=1))

    @property
    def first(self) -> NDArray[np.int64]:
        """(discrete variable + 1,): its first state in `group_probs`."""
        num_states = self.answers.variables.num_states
        return offsets(num_states[num_states > 0].astype(np.int64))

    @cached_property
    def probs(self) -> tuple[FloatArray, FloatArray]:
        """(variable and state,): probabilities, and their standard errors."""
        num_states = self.answers.variables.num_states
        return self._average(self.group_probs, np.repeat(self.answers.part, num_states))

    def _average(
        self, values: FloatArray, part: NDArray[np.int32]
    ) -> tuple[FloatArray, FloatArray]:
        """Means over groups of values (group, item), and their standard errors."""
        weights = self.weights[:, part]
        return (weights * values).sum(axis=0), error_of_groups(values, weights)

    def errors(self) -> tuple[FloatArray, FloatArray]:
        """(variable,): standard errors of probabilities and means, and of deviations relative to
        them, for as few groups as there are.

        Where log Z of a part is uncertain, there may be states that no group has seen, about which
        all agree: errors are as large as if these had that share of the probability.
        """
        factor, part = widened(len(self.weights) - 1), self.answers.part
        unseen = np.maximum(self.log_z_error - SURE * self._usual_error, 0.0)[part]
        error, std_error = np.zeros((2, len(part)))
        error[self._discrete] = np.hypot(factor * self._by_variable(), 0.5 * unseen[self._discrete])
        if len(self.reals):
            unseen = unseen[self.reals]
            _, std, mean_off, std_off = self.moments
            error[self.reals] = np.hypot(factor * mean_off, 2.0 * unseen * std)
            std_error[self.reals] = np.hypot(factor * std_off / std, 2.0 * unseen)
        return error, std_error

    @property
    def _is_alone(self) -> NDArray[np.bool_]:
        """(part,): true if one group has nearly all the weight, so that their weighted spread says
        nothing."""
        return effective_groups(self.weights) < ALONE

    @property
    def reals(self) -> NDArray[np.int64]:
        return self.answers.reals

    @cached_property
    def moments(self) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """(real,): means and deviations, and the standard errors of both."""
        means, part = self.answers.mean, self.answers.part[self.reals]
        mean, mean_error = self._average(means, part)
        # About the common mean, so that no digits are lost.
        squares = self.answers.var + (means - mean) ** 2
        var, var_error = self._average(squares, part)
        std = np.sqrt(var)
        return mean, std, mean_error, 0.5 * var_error / std

    def batches(self) -> Batches:
        """Distributions of all variables, with the ids of those they are about."""
        return [*self.answers.batches(self.weights)]

    def draws(self, variables: Variables, ids: NDArray[np.int64]) -> Draws:
        """The particles of each group, one after the other, as draws of these variables."""
        weights = self.weights[:, self.answers.part]
        return Draws(variables, ids, self.answers.values, weights, *self.errors())

    def notes(self) -> list[str]:
        """The effort, and the errors."""
        groups, is_enumerated = len(self.weights), self.answers.is_enumerated
        particles = self.answers.num_particles
        notes, count = (
            [f"{counted(groups, 'group')} of {particles:,} particles."],
            int(is_enumerated.sum()),
        )
        if count == len(is_enumerated):
            notes[0] = "All joint states were enumerated."
        elif count:
            notes.append(
                f"{count:,} of {counted(len(is_enumerated), 'part')} have few enough joint states "
                "to be enumerated."
            )
        return [*notes, *self._largest_errors()]

    def _largest_errors(self) -> list[str]:
        names, found = self.answers.variables.names, []
        error = self._by_variable()
        if len(error):
            worst = int(np.argmax(error))
            name = names[int(self._discrete[worst])]
            found.append(
                f"The standard error of a probability is at most {error[worst]:.2g} ('{name}')."
            )
        if len(self.reals):
            _, std, off, _ = self.moments
            worst = int(np.argmax(off / std))
            name = names[int(self.reals[worst])]
            found.append(
                f"The standard error of a mean is at most {off[worst] / std[worst]:.2g} deviations "
                f"('{name}')."
            )
        return found

    @property
    def _discrete(self) -> NDArray[np.int64]:
        return np.flatnonzero(self.answers.variables.num_states > 0)

    def _by_variable(self) -> FloatArray:
        """(discrete variable,): the largest standard error of a probability."""
        return maxima(self.probs[1], self.first)

    def doubts(self) -> list[str]:
        """Reasons not to trust the answer."""
        names, doubts = self.answers.variables.names, []
        error = self._by_variable()
        apart = self._discrete[error > PROBABILITY_OFF].tolist()
        if len(self.reals):
            _, std, off, std_off = self.moments
            differs = (off > MEAN_OFF * std) | (std_off > STD_OFF * std)
            apart += self.reals[differs].tolist()
        if apart:
            doubts.append(
                doubt(
                    f"The groups disagree about {counted(len(apart), 'variable')}, such as "
                    f"'{names[apart[0]]}': the answer may be off. More particles would help."
                )
            )
        if few_decide(self.weights).any():
            doubts.append(
                doubt(
                    "A few groups found far more probable states than the others: modes may have "
                    "been missed. More particles would help."
                )
            )
        elif self.log_z_error.max(initial=0.0) > UNSURE * self._usual_error:
            doubts.append(
                doubt(
                    f"The groups differ in log Z, by a standard error of "
                    f"{self.log_z_error.max():.2g} in a part: modes may have been missed. More "
                    "particles would help."
                )
            )
        return doubts
