"""The distribution with which particles begin: independent variables, flat or by a start."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from hylift.graph import FactorGroup, Variables
from hylift.inference.control import Control
from hylift.inference.local.terms import LocalTerms
from hylift.inference.sampling.chains import Chains, Layout
from hylift.inference.sampling.starts import random_starts
from hylift.numerics.segments import inverse, offsets
from hylift.posterior import Categorical, Mixture, Posterior
from hylift.potentials import ConditionalQuadratic, Table
from hylift.rewrite.kinds import Kinds

FloatArray = NDArray[np.float64]

LEAST_SHARE = 0.02
"""Of a start that is uniform, so that nothing that it has missed is out of reach."""

SCOUTS, SWEEPS = 8, 32
"""Chains that show about where reals are, and their sweeps, of which half count."""

AROUND, UNSURE, FARTHEST = 4.0, 10.0, 1000.0
"""Deviations of scouts that a flat start is wide: at least; where the quadratics by themselves hold
a real nowhere; and at most, else that counts as nowhere."""

WIDER = 2.0
"""Deviations of a start that particles begin within."""

MOST_DENSE = 1000
"""Reals whose prior deviations are computed."""


@dataclass(frozen=True, slots=True, eq=False)
class Base:
    """Independent variables: probabilities of states; reals uniform between two bounds, or Gaussian
    and cut off at a bound."""

    variables: Variables
    log_probs: FloatArray  # (variable and state,)
    mean: FloatArray  # (variable,)
    std: FloatArray  # (variable,): inf for a uniform distribution
    is_flat: bool

    @property
    def is_gaussian(self) -> NDArray[np.bool_]:
        return (self.variables.num_states == 0) & np.isfinite(self.std)

    @property
    def is_proper(self) -> bool:
        """True if no real is uniform without two bounds."""
        width = self.variables.upper - self.variables.lower
        is_real = self.variables.num_states == 0
        return bool(np.isfinite(np.minimum(self.std, width))[is_real].all())

    def overlaid(self, other: Base | None) -> Base:
        """The other one, where it is Gaussian or has states, and else this one."""
        if other is None:
            return self
        known = other.is_gaussian
        mean, std = np.where(known, other.mean, self.mean), np.where(known, other.std, self.std)
        return Base(self.variables, other.log_probs, mean, std, is_flat=False)

    def _ends(self) -> tuple[FloatArray, FloatArray]:
        """(variable,): the cumulative probabilities of the bounds."""
        std = np.where(self.is_gaussian, self.std, 1.0)
        lower, upper = self.variables.lower, self.variables.upper
        return special.ndtr((lower - self.mean) / std), special.ndtr((upper - self.mean) / std)

    def draw(self, rng: np.random.Generator, size: tuple[int, int]) -> FloatArray:
        """(*size, variable)"""
        variables = self.variables
        share = rng.random((*size, len(variables)))
        low, high = self._ends()
        with np.errstate(invalid="ignore"):
            between = variables.lower + share * (variables.upper - variables.lower)
            near = self.mean + self.std * special.ndtri(low + share * (high - low))
        x = np.where(self.is_gaussian, np.clip(near, variables.lower, variables.upper), between)
        first = offsets(variables.num_states)[:-1]
        for domain in np.unique(variables.num_states[variables.num_states > 0]):
            some = np.flatnonzero(variables.num_states == domain)
            ends = np.cumsum(np.exp(self.log_probs[first[some][:, None] + np.arange(domain)]), 1)
            state = (share[..., some, None] > ends).sum(axis=-1)
            x[..., some] = np.minimum(state, domain - 1)
        return x

    def log_constants(self) -> FloatArray:
        """(variable,): its log-density where no factor of `tables` and `quadratics` has it."""
        variables = self.variables
        width = np.where(self.is_gaussian, 1.0, variables.upper - variables.lower)
        width = np.where(variables.num_states > 0, 1.0, width)
        flat = np.log(np.maximum(variables.num_states, 1)) if self.is_flat else 0.0
        return np.asarray(-np.log(width) - flat)

    def tables(self) -> list[FactorGroup]:
        """The log-probabilities of discrete variables; none where all are equally probable."""
        groups, num_states = [], self.variables.num_states
        first = offsets(num_states)[:-1]
        for size in np.unique(num_states[num_states > 0]) if not self.is_flat else ():
            some = np.flatnonzero(num_states == size)
            values = self.log_probs[first[some][:, None] + np.arange(size)]
            groups.append(FactorGroup(Table(values), some[:, None].astype(np.int32)))
        return groups

    def quadratics(self) -> list[FactorGroup]:
        """The log-densities of Gaussian reals."""
        some = np.flatnonzero(self.is_gaussian)
        if not len(some):
            return []
        low, high = self._ends()
        mean, precision = self.mean[some], self.std[some] ** -2.0
        inside = np.log(self.std[some] * np.sqrt(2 * np.pi) * (high - low)[some])
        potential = ConditionalQuadratic(
            -0.5 * precision[:, None, None],
            (precision * mean)[:, None],
            -0.5 * precision * mean**2 - inside,
        )
        return [FactorGroup(potential, some[:, None].astype(np.int32))]


def flat_probs(variables: Variables) -> FloatArray:
    """(variable and state,): all states of a variable equally probable."""
    num_states = variables.num_states.astype(np.int64)
    return np.repeat(1.0 / np.maximum(num_states, 1), num_states)


def flat_base(kinds: Kinds, control: Control, seed: np.random.SeedSequence) -> Base:
    """All states equally probable, and reals far more spread than they turn out to be."""
    variables = kinds.graph.variables
    is_closed = np.isfinite(variables.lower) & np.isfinite(variables.upper)
    mean, std = np.zeros(len(variables)), np.full(len(variables), np.inf)
    is_open = (variables.num_states == 0) & ~is_closed
    if is_open.any():
        layout, (mean, scouted) = _scouted(kinds, control, seed)
        own = np.flatnonzero(is_open)
        middle, wide = _prior(layout.terms, scouted)
        known = wide < FARTHEST * scouted
        std[own] = np.where(known, np.maximum(wide, AROUND * scouted), UNSURE * scouted)[own]
        middle = np.where(known & (wide > AROUND * scouted), middle, mean)
        std[own] = np.hypot(std, middle - mean)[own]
        mean = np.clip(middle, variables.lower, variables.upper)
    return Base(variables, np.log(flat_probs(variables)), mean, std, is_flat=True)


def _scouted(
    kinds: Kinds, control: Control, seed: np.random.SeedSequence
) -> tuple[Layout, tuple[FloatArray, FloatArray]]:
    """(variable,): means and deviations of a few short chains from random starts."""
    *seeds, own = seed.spawn(SCOUTS + 1)
    layout, graph = Layout.of(kinds, SCOUTS, own), kinds.graph
    rngs = [np.random.default_rng(one) for one in seeds]
    seconds = control.request.seconds
    starts = random_starts(graph, layout.terms, rngs, seconds=seconds and seconds / 4)
    chains = Chains.at(starts, seeds, graph, layout, control, SWEEPS)
    values = chains.scout(SWEEPS)[:, SWEEPS // 2 :].reshape(-1, graph.num_variables)
    std = values.std(axis=0)
    return layout, (values.mean(axis=0), np.where(std > 0, std, layout.terms.variable["unit"]))


def _prior(terms: LocalTerms, scouted: FloatArray) -> tuple[FloatArray, FloatArray]:
    """(variable,): means and deviations by the quadratics alone, each in its flattest state."""
    reals = np.flatnonzero(terms.variable["num_states"] == 0)
    mean, std = np.zeros(len(scouted)), np.full(len(scouted), np.inf)
    if len(reals) > MOST_DENSE:
        return mean, std
    place = inverse(reals, len(scouted))
    # Where nothing holds a real, this does, loosely.
    precision, linear = np.diag((0.1 / (FARTHEST * scouted[reals])) ** 2), np.zeros(len(reals))
    for rows in terms.rows():
        if rows.num_reals:
            flattest = np.argmax(np.trace(rows.A, axis1=2, axis2=3), axis=1)
            number, at = np.arange(len(rows.A)), place[terms.reals(rows)]
            weight = terms.term["multiplicity"][rows.terms]
            A, b = rows.A[number, flattest][rows.row], rows.b[number, flattest][rows.row]
            np.add.at(precision, (at[:, :, None], at[:, None]), -2.0 * weight[:, None, None] * A)
            np.add.at(linear, at, weight[:, None] * b)
    try:
        root = np.linalg.inv(np.linalg.cholesky(precision))
    except np.linalg.LinAlgError:
        return mean, std
    mean[reals] = root.T @ (root @ linear)
    std[reals] = np.sqrt((root**2).sum(axis=0))
    return mean, std


def started_base(variables: Variables, start: Posterior) -> Base:
    """States and reals as another posterior has them, somewhat more spread."""
    num_states, flat = variables.num_states.astype(np.int64), flat_probs(variables)
    first, probs = offsets(num_states), flat.copy()
    mean, std = np.zeros(len(variables)), np.full(len(variables), np.inf)
    marginals, at = start.all_marginals, variables.places_in(start.variables)
    if marginals is None and isinstance(start.mixture, Mixture):  # of a rewritten graph
        marginals = start.mixture.marginals(start.variables)
        at = variables.places_in(start.variables, start.mixture.hidden)
    marginals = marginals or start.known_marginals()
    for number, batch in enumerate(marginals.batches):
        is_categorical = isinstance(batch, Categorical)
        known = np.flatnonzero((at >= 0) & ((num_states > 0) == is_categorical))
        known = known[marginals.batch[at[known]] == number]
        own: Any = batch[marginals.row[at[known]]]
        if isinstance(own, Categorical):
            where = first[known][:, None] + np.arange(own.num_states)
            probs[where] = own.probs
        elif len(known):
            mean[known], std[known] = own.mean, WIDER * own.std
    probs = (1.0 - LEAST_SHARE) * probs + LEAST_SHARE * flat
    mean = np.clip(mean, variables.lower, variables.upper)
    return Base(variables, np.log(probs), mean, std, is_flat=False)
