"""The answer of a population: averages over its groups, and errors from the spread between them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from hylift.inference.finish import categoricals
from hylift.inference.sampling.kernels.records import gather
from hylift.inference.sampling.marginals import mixtures_of
from hylift.inference.sampling.state import GaussianSums
from hylift.inference.smc.population import Population
from hylift.numerics.segments import maxima, offsets
from hylift.posterior import LogPartition
from hylift.posterior.distributions import BatchedDistribution
from hylift.posterior.mixing import ALONE, error_of_groups, widened
from hylift.words import counted, doubt

FloatArray = NDArray[np.float64]

PROBABILITY_OFF, MEAN_OFF, STD_OFF = 0.025, 0.125, 0.06
"""Standard errors of a probability, of a mean in deviations, and of a deviation relative to it,
beyond which groups disagree."""

FEW_GROUPS = 3.0
"""Effective number of groups below which one of them decides alone."""

LEAST_WEIGHT = 1e-300
"""Of a component of a mixture: those of improbable groups must not vanish."""

ROUNDING = 1e-13


@dataclass(frozen=True, eq=False)
class Findings:
    """Averages over groups, each weighted by its own estimate of Z, part by part."""

    population: Population
    log_constant: float
    part: NDArray[np.int32]  # (variable,)

    @classmethod
    def of(cls, population: Population, log_constant: float, part: NDArray[np.int32]) -> Findings:
        return cls(population, log_constant, part)

    @cached_property
    def weights(self) -> FloatArray:
        """(group, part): of the groups."""
        return np.asarray(special.softmax(self.population.cells.log_z, axis=0))

    def log_partition(self) -> LogPartition:
        """The sum of the logarithms of the means of Z over groups, part by part.

        A mean of few is too low in the logarithm by half its relative variance, which is added: it
        would add up over parts. The error is such that log Z is within three of them as often as
        three deviations of a normal distribution are right: the spread is known from few groups
        (Student's t, with Satterthwaite's number of degrees of freedom).
        """
        log_z = self.population.cells.log_z
        groups = len(log_z)
        means = special.logsumexp(log_z, axis=0) - np.log(groups)
        spread = ((groups * self.weights - 1.0) ** 2).sum(axis=0) / (groups * (groups - 1))
        # Where one group has all the weight, nothing is left of its spread but on the log scale.
        spread = np.maximum(spread, np.where(self._is_alone, log_z.var(axis=0), 0.0))
        value = float((means + 0.5 * np.minimum(spread, 0.5)).sum()) + self.log_constant
        total = float(spread.sum())
        error = ROUNDING * float(np.abs(means).sum() + abs(self.log_constant))
        if total > 0.0:
            freedom = total**2 / float((spread**2).sum()) * (groups - 1)
            error += np.sqrt(total) * widened(freedom)
        return LogPartition(value, "estimate", float(error))

    @cached_property
    def group_probs(self) -> FloatArray:
        """(group, variable and state)."""
        first, sums = self.first, self.population.probs
        if len(first) < 2:
            return sums
        totals = np.add.reduceat(sums, first[:-1], axis=1)
        return np.asarray(sums / np.repeat(totals, np.diff(first), axis=1))

    @property
    def first(self) -> NDArray[np.int64]:
        """(discrete variable + 1,): its first state in `group_probs`."""
        num_states = self.population.terms.variable["num_states"]
        return offsets(num_states[num_states > 0].astype(np.int64))

    @cached_property
    def probs(self) -> tuple[FloatArray, FloatArray]:
        """(variable and state,): probabilities, and their standard errors."""
        num_states = self.population.terms.variable["num_states"].astype(np.int64)
        return self._average(self.group_probs, np.repeat(self.part, num_states))

    def _average(
        self, values: FloatArray, part: NDArray[np.int32]
    ) -> tuple[FloatArray, FloatArray]:
        """Means over groups of values (group, item), and their standard errors."""
        weights = self.weights[:, part]
        return (weights * values).sum(axis=0), error_of_groups(values, weights)

    def errors(self) -> tuple[FloatArray, FloatArray]:
        """(variable,): standard errors of probabilities and means, and of deviations relative to
        them, for as few groups as there are."""
        factor = widened(len(self.weights) - 1)
        error, std_error = np.zeros((2, len(self.part)))
        error[self._discrete] = factor * self._by_variable()
        if len(self.reals):
            _, std, mean_off, std_off = self.moments
            error[self.reals], std_error[self.reals] = factor * mean_off, factor * std_off / std
        return error, std_error

    @property
    def _effective(self) -> FloatArray:
        """(part,): effective number of groups."""
        return np.asarray(1.0 / (self.weights**2).sum(axis=0))

    @property
    def _is_alone(self) -> NDArray[np.bool_]:
        """(part,): whether one group has nearly all the weight, so that their weighted spread says
        nothing."""
        return self._effective < ALONE

    @property
    def reals(self) -> NDArray[np.int64]:
        return np.flatnonzero(self.population.terms.variable["num_states"] == 0)

    @cached_property
    def moments(self) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """(real,): means and deviations, and the standard errors of both."""
        found = [_moments(one) for one in self.population.mixtures]
        means, seconds = (np.stack(rows) for rows in zip(*found, strict=True))
        part = self.part[self.reals]
        mean, mean_error = self._average(means, part)
        # About the common mean, so that no digits are lost.
        squares = seconds + (means - mean) ** 2
        var, var_error = self._average(squares, part)
        std = np.sqrt(var)
        return mean, std, mean_error, 0.5 * var_error / std

    @cached_property
    def mixtures(self) -> GaussianSums:
        """Of the reals, over all groups."""
        parts = self.population.mixtures
        size, room = parts[0].weight.shape
        whole = GaussianSums.empty(size, room)
        part = self.part[self.reals]
        for group, one in enumerate(parts):
            own = np.arange(room) < one.num_components[:, None]
            total = np.where(own, one.weight, 0.0).sum(axis=1)
            share = self.weights[group, part] / total
            weight = np.maximum(one.weight * share[:, None], LEAST_WEIGHT)
            gather(whole, one._replace(weight=weight), max(room // 2, 1))
        return whole

    def batches(self) -> list[tuple[NDArray[Any], BatchedDistribution]]:
        """Distributions of all variables, with the ids of those they are about."""
        variables = self.population.graph.variables
        start = offsets(variables.num_states)[:-1]
        return [
            *categoricals(variables, start, self.probs[0]),
            *mixtures_of(self.mixtures, self.reals),
        ]

    def draws(self) -> FloatArray:
        """(group, draw, variable): the particles of each group, one after the other."""
        values = self.population.values[:, :, : self._num_stored]
        groups, kept, sweeps, count = values.shape
        return values.reshape(groups, kept * sweeps, count)

    @property
    def _num_stored(self) -> int:
        """Sweeps whose particles are stored."""
        most = self.population.values.shape[2]
        return int(self.population.cells.made.min(initial=most))

    def best(self) -> FloatArray:
        """(group, variable): a particle of each group whose states are the most probable."""
        cells, values = self.population.cells, self.population.values
        last = self._num_stored - 1
        total = cells.value[:, :, : values.shape[1]]
        at = np.where(np.isfinite(total), total, -np.inf).argmax(axis=2)  # (group, part)
        group = np.arange(len(values))[:, None]
        return np.asarray(values[group, at[:, self.part], last, np.arange(len(self.part))])

    def notes(self) -> list[str]:
        """The effort, and the errors."""
        cells, cliques = self.population.cells, self.population.cliques
        groups, particles, _ = cells.states.shape
        notes = [f"{counted(groups, 'group')} of {particles:,} particles."]
        count = int((cliques.part["num_joint"] > 0).sum())
        if count == len(cliques.part):
            notes[0] = "All joint states were enumerated."
        elif count:
            notes.append(
                f"{count:,} of {counted(len(cliques.part), 'part')} have few enough joint states "
                "to be enumerated."
            )
        wide = int((cliques.part["wide_end"] - cliques.part["wide"]).sum())
        if wide:
            notes.append(f"{counted(wide, 'variable')} with reals in many places made sweeps slow.")
        return [*notes, *self._largest_errors()]

    def _largest_errors(self) -> list[str]:
        names, found = self.population.graph.variables.names, []
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
                f"That of a mean is at most {off[worst] / std[worst]:.2g} deviations ('{name}')."
            )
        return found

    @property
    def _discrete(self) -> NDArray[np.int64]:
        return np.flatnonzero(self.population.terms.variable["num_states"] > 0)

    def _by_variable(self) -> FloatArray:
        """(discrete variable,): the largest standard error of a probability."""
        return maxima(self.probs[1], self.first)

    def doubts(self) -> list[str]:
        """Reasons not to trust the answer."""
        names, doubts = self.population.graph.variables.names, []
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
        if (self._effective < min(FEW_GROUPS, 0.5 * len(self.weights))).any():
            doubts.append(
                doubt(
                    "A few groups found far more probable states than the others: modes may have "
                    "been missed. More particles would help."
                )
            )
        return doubts


def _moments(mixtures: GaussianSums) -> tuple[FloatArray, FloatArray]:
    """(real,): mean and variance of each mixture."""
    own = np.arange(mixtures.weight.shape[1]) < mixtures.num_components[:, None]
    weight = np.where(own, mixtures.weight, 0.0)
    weight = weight / weight.sum(axis=1, keepdims=True)
    mean = (weight * np.where(own, mixtures.mean, 0.0)).sum(axis=1)
    apart = np.where(own, mixtures.mean - mean[:, None], 0.0)
    var = (weight * (np.where(own, mixtures.var, 0.0) + apart**2)).sum(axis=1)
    return mean, var
