"""The factors of the components of a mixture, a family at a time.

A batch holds the parameters of some variables of one family under every component. All arrays
end in (variable, component), those of discrete variables in (variable, state, component).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hylift.numerics.kernels.gauss_beta import gauss_betas
from hylift.numerics.quadrature import hermite_rule
from hylift.posterior.distributions import (
    BatchedDistribution,
    BetaMixture,
    Categorical,
    GaussianMixture,
)
from hylift.posterior.distributions.base import FloatArray, IntArray, draw_states
from hylift.posterior.distributions.beta_density import (
    log_densities,
    log_unit_densities,
    moments,
    peak,
    scaled,
)
from hylift.posterior.mixture.layout import BETA, GAUSSIAN, Layout

LOG_TWO_PI = float(np.log(2.0 * np.pi))

EDGE = 1e-9
"""Share of an interval at its ends in which a joint mode takes a Beta for constant.

So that a density that is infinite at an edge has a finite weight among the others.
"""


class Family(ABC):
    """Some variables of one family."""

    __slots__ = ()

    @abstractmethod
    def log_density(self, values: FloatArray) -> FloatArray:
        """log q_i^k at values (point, variable): (point, variable, component)."""

    @abstractmethod
    def modes(self) -> FloatArray:
        """The mode of each factor, (variable, component)."""

    @abstractmethod
    def best(self, share: FloatArray) -> FloatArray:
        """(variable,): where Σ_k share_k log q_i^k is largest, in closed form."""

    @abstractmethod
    def peaks(self, values: FloatArray) -> FloatArray:
        """log q_i^k (variable, component) at values (variable,), finite at the edges of a Beta."""

    @abstractmethod
    def draw(self, component: int, size: int, rng: np.random.Generator) -> FloatArray:
        """Independent draws from one component, (size, variable)."""

    @abstractmethod
    def marginal(
        self, weights: FloatArray, states: tuple[str, ...] | None = None
    ) -> BatchedDistribution:
        """The mixture of each variable's factors; with labels for states."""

    @abstractmethod
    def rule(self, num_nodes: int) -> tuple[FloatArray, FloatArray]:
        """Nodes, or states, and their weights, (variable, component, node)."""

    @abstractmethod
    def moments(self) -> tuple[FloatArray, FloatArray]:
        """Means and variances of the factors, (variable, component)."""


@dataclass(frozen=True, slots=True, eq=False)
class Gaussians(Family):
    mean: FloatArray  # (variable, component)
    var: FloatArray  # (variable, component)

    def log_density(self, values: FloatArray) -> FloatArray:
        square = (values[..., None] - self.mean) ** 2 / self.var
        return np.asarray(-0.5 * (LOG_TWO_PI + np.log(self.var) + square))

    def modes(self) -> FloatArray:
        return self.mean

    def best(self, share: FloatArray) -> FloatArray:
        precision = share / self.var
        return np.asarray((precision * self.mean).sum(axis=-1) / precision.sum(axis=-1))

    def peaks(self, values: FloatArray) -> FloatArray:
        return self.log_density(values)

    def draw(self, component: int, size: int, rng: np.random.Generator) -> FloatArray:
        noise = rng.standard_normal((size, len(self.mean)))
        return self.mean[:, component] + np.sqrt(self.var[:, component]) * noise

    def marginal(
        self, weights: FloatArray, states: tuple[str, ...] | None = None
    ) -> GaussianMixture:
        return GaussianMixture(weights, self.mean, self.var)

    def rule(self, num_nodes: int) -> tuple[FloatArray, FloatArray]:
        nodes, weights = hermite_rule(num_nodes)
        at = self.mean[..., None] + np.sqrt(self.var)[..., None] * nodes
        return at, np.broadcast_to(weights, at.shape)

    def moments(self) -> tuple[FloatArray, FloatArray]:
        return self.mean, self.var


@dataclass(frozen=True, slots=True, eq=False)
class Betas(Family):
    alpha: FloatArray  # (variable, component)
    beta: FloatArray  # (variable, component)
    lower: FloatArray  # (variable,)
    upper: FloatArray  # (variable,)

    def log_density(self, values: FloatArray) -> FloatArray:
        return log_densities(values, self.alpha, self.beta, self.lower, self.upper)

    def modes(self) -> FloatArray:
        share = peak(self.alpha - 1.0, self.beta - 1.0)
        return scaled(share.T, self.lower, self.upper).T

    def best(self, share: FloatArray) -> FloatArray:
        near, far = (self.alpha - 1.0) @ share, (self.beta - 1.0) @ share
        return scaled(peak(near, far), self.lower, self.upper)

    def peaks(self, values: FloatArray) -> FloatArray:
        width = self.upper - self.lower
        near = np.clip((values - self.lower) / width, EDGE, 1.0 - EDGE)
        logs = log_unit_densities(near, 1.0 - near, self.alpha, self.beta)
        return np.asarray(logs - np.log(width)[:, None])

    def draw(self, component: int, size: int, rng: np.random.Generator) -> FloatArray:
        shape = (size, len(self.alpha))
        shares = rng.beta(self.alpha[:, component], self.beta[:, component], shape)
        return scaled(shares, self.lower, self.upper)

    def marginal(self, weights: FloatArray, states: tuple[str, ...] | None = None) -> BetaMixture:
        return BetaMixture(weights, self.alpha, self.beta, self.lower, self.upper)

    def rule(self, num_nodes: int) -> tuple[FloatArray, FloatArray]:
        shape = (*self.alpha.shape, num_nodes)
        near, weights = gauss_betas(self.alpha.ravel(), self.beta.ravel(), num_nodes)
        width = (self.upper - self.lower)[:, None, None]
        return self.lower[:, None, None] + width * near.reshape(shape), weights.reshape(shape)

    def moments(self) -> tuple[FloatArray, FloatArray]:
        return moments(self.alpha, self.beta, self.lower, self.upper)


@dataclass(frozen=True, slots=True, eq=False)
class Categoricals(Family):
    probs: FloatArray  # (variable, state, component)

    def log_density(self, values: FloatArray) -> FloatArray:
        state = np.rint(values).astype(np.int64)
        known = (state >= 0) & (state < self.probs.shape[1]) & (state == values)
        variable = np.arange(len(self.probs))
        with np.errstate(divide="ignore"):
            logs = np.log(self.probs[variable, np.where(known, state, 0)])
        return np.where(known[..., None], logs, -np.inf)

    def modes(self) -> FloatArray:
        return np.argmax(self.probs, axis=1).astype(np.float64)

    def best(self, share: FloatArray) -> FloatArray:
        # A component without a share must not matter, even where its probability is 0.
        some = share > 0
        with np.errstate(divide="ignore"):
            sums = np.log(self.probs[:, :, some]) @ share[some]
        return np.argmax(sums, axis=1).astype(np.float64)

    def peaks(self, values: FloatArray) -> FloatArray:
        return self.log_density(values)

    def draw(self, component: int, size: int, rng: np.random.Generator) -> FloatArray:
        return draw_states(self.probs[:, :, component], size, rng).astype(np.float64)

    def marginal(self, weights: FloatArray, states: tuple[str, ...] | None = None) -> Categorical:
        labels = states or tuple(str(state) for state in range(self.probs.shape[1]))
        return Categorical(self.probs @ weights, labels)

    def rule(self, num_nodes: int) -> tuple[FloatArray, FloatArray]:
        weights = np.swapaxes(self.probs, 1, 2)
        states = np.arange(self.probs.shape[1], dtype=np.float64)
        return np.broadcast_to(states, weights.shape), weights

    def moments(self) -> tuple[FloatArray, FloatArray]:
        raise TypeError("states have no mean")


def batches(
    layout: Layout, entries: FloatArray, classes: NDArray[Any], *, width: int | None = None
) -> Iterator[tuple[IntArray, Family]]:
    """Positions in `classes`, and the parameters there: a family, or a number of states, at a time.

    With a width, in blocks of about that many numbers.
    """
    size = np.diff(layout.first)
    code = 4 * size + layout.family
    kinds = np.unique(code)
    code = code[classes]
    for kind in kinds.tolist():
        place = np.flatnonzero(code == kind)
        states, family = divmod(kind, 4)
        step = len(place) if width is None else width // (states * entries.shape[1])
        for first in range(0, len(place), max(1, step)):
            some = place[first : first + max(1, step)]
            yield some, _batch(layout, entries, classes[some], family, states)


def _batch(
    layout: Layout, entries: FloatArray, classes: NDArray[Any], kind: int, states: int
) -> Family:
    first = layout.first[classes]
    if kind == GAUSSIAN:
        return Gaussians(entries[first], entries[first + 1])
    if kind == BETA:
        bounds = layout.lower[classes], layout.upper[classes]
        return Betas(entries[first], entries[first + 1], *bounds)
    return Categoricals(entries[first[:, None] + np.arange(states)])
