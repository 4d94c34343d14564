"""Mixtures of products over hidden ground variables."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hylift.components import Betas, Categoricals, Family, Gaussians, Layout
from hylift.components.family import FloatArray, IntArray
from hylift.errors import ImpossibleEvidenceError, ModelError, UnsupportedError
from hylift.graph import Variables
from hylift.graph.variables import freeze
from hylift.posterior.distributions import (
    BatchedDistribution,
    BetaMixture,
    Categorical,
    GaussianMixture,
)
from hylift.posterior.distributions.base import log_sum_exp, normalized, real_array
from hylift.posterior.marginals import Marginals

BLOCK = 1 << 20
"""Numbers of the largest temporary."""
MAX_ASCENT_STEPS = 1000
NODES, FEWER_NODES = 16, 11
MAX_POINTS = 1_000_000
DRAWS = 100_000


@dataclass(frozen=True, slots=True)
class Expectation:
    """The mean of a function, and how far to trust it."""

    value: float
    error: float
    """0 for sums over states; the change against a coarser Gauss rule, or a standard error."""
    method: str
    """'sum', 'quadrature' or 'sampling'."""

    def __float__(self) -> float:
        return self.value


Rule = tuple[FloatArray, FloatArray]
"""Nodes and weights of one variable, (component, node)."""


@dataclass(frozen=True, slots=True, eq=False)
class Mixture:
    """q(x) = Σ_k w_k Π_i q_i^k(x_i), where variables of one class share their factors.

    Parameters are stored per class, not per variable.
    """

    weights: FloatArray  # (component,)
    layout: Layout  # of the classes
    entries: FloatArray  # (entry, component)
    variable_to_class: NDArray[np.int32]  # (hidden variable,)
    hidden: NDArray[np.int64]  # (hidden variable,): increasing ids in the posterior's variables

    def __post_init__(self) -> None:
        weights = real_array("weights", self.weights, low=0.0)
        if weights.ndim != 1 or not len(weights):
            raise ModelError(f"weights of shape {weights.shape} are not one per component")
        for name, array, dtype in (
            ("weights", normalized("weights", weights), np.float64),
            ("entries", self.entries, np.float64),
            ("variable_to_class", self.variable_to_class, np.int32),
            ("hidden", self.hidden, np.int64),
        ):
            object.__setattr__(self, name, freeze(array, dtype))
        self.layout.check(self.entries, len(weights))
        if self.hidden.shape != self.variable_to_class.shape or self.hidden.ndim != 1:
            raise ModelError("a mixture needs one class per hidden variable")
        if (np.diff(self.hidden) <= 0).any():
            raise ModelError("the hidden variables of a mixture must have increasing ids")
        classes = self.variable_to_class
        if len(classes) and not (classes.min() >= 0 and classes.max() < len(self.layout)):
            raise ModelError("a hidden variable is in a class that does not exist")

    @property
    def num_components(self) -> int:
        return len(self.weights)

    def check(self, variables: Variables) -> None:
        """Raise an error unless the mixture fits these variables."""
        if len(self.hidden) and not (self.hidden[0] >= 0 and self.hidden[-1] < len(variables)):
            raise ModelError("the mixture has a variable that does not exist")
        states = np.where(self.layout.is_discrete, self.layout.size, 0)[self.variable_to_class]
        wrong = states != variables.num_states[self.hidden]
        if wrong.any():
            name = variables.names[int(self.hidden[np.argmax(wrong)])]
            raise ModelError(f"the mixture has a different number of states for '{name}'")

    def marginals(self, variables: Variables) -> Marginals:
        """The marginals of the hidden variables; variables of a class share a distribution."""
        present = np.zeros(len(self.layout), dtype=bool)
        present[self.variable_to_class] = True
        classes = np.flatnonzero(present)
        member = np.zeros(len(self.layout), dtype=np.int64)
        member[self.variable_to_class] = self.hidden
        domain_id = variables.domain_id[member[classes]]
        is_real = ~self.layout.is_discrete[classes]
        parts: list[tuple[NDArray[Any], BatchedDistribution]] = []
        for number, domain in [(-1, None), *enumerate(variables.domains)]:
            at = np.flatnonzero(is_real if domain is None else ~is_real & (domain_id == number))
            states = None if domain is None else domain.states
            for place, family in self._batches(classes[at], width=None):
                parts.append((at[place], _marginal(family, self.weights, states)))
        position = np.cumsum(present) - 1
        return Marginals.assemble(len(classes), parts).spread(position[self.variable_to_class])

    def log_density_by_component(self, ids: NDArray[Any], values: FloatArray) -> FloatArray:
        """log q^k (point, component) of hidden variables `ids` at values (point, variable)."""
        values = np.asarray(values, dtype=np.float64)
        total = np.zeros((len(values), self.num_components))
        impossible = np.zeros(total.shape, dtype=bool)
        classes = self._classes(ids)
        step = max(1, BLOCK // (4 * self.num_components))
        for first in range(0, len(values), step):
            some = slice(first, first + step)
            width = max(1, BLOCK // len(values[some]))
            for place, family in self._batches(classes, width=width):
                logs = family.log_density(values[some, place])
                impossible[some] |= np.isneginf(logs).any(axis=1)
                with np.errstate(invalid="ignore"):
                    total[some] += logs.sum(axis=1)
        # A density of 0 stays 0, even if that of another variable is infinite.
        total[impossible] = -np.inf
        return total

    def log_density(self, ids: NDArray[Any], values: FloatArray) -> FloatArray:
        """log q (point,) of hidden variables `ids` at values (point, variable)."""
        return log_sum_exp(self._log_weights() + self.log_density_by_component(ids, values))

    def given(self, ids: NDArray[Any], values: FloatArray) -> Mixture:
        """The conditional distribution of the other hidden variables, given values of these.

        Each component's weight changes by its density there: w_k q^k(a) / Σ_j w_j q^j(a).
        """
        weights = reweighted(self.weights, self.log_density_by_component(ids, values[None])[0])
        keep = np.ones(len(self.hidden), dtype=bool)
        keep[self._positions(ids)] = False
        classes, hidden = self.variable_to_class[keep], self.hidden[keep]
        return Mixture(weights, self.layout, self.entries, classes, hidden)

    def of(self, ids: NDArray[Any]) -> Mixture:
        """The joint marginal of some hidden variables, given by increasing ids."""
        classes = self._classes(ids)
        present, position = np.unique(classes, return_inverse=True)
        entries = self.entries[self.layout.entries_of(present)]
        hidden = np.asarray(ids, dtype=np.int64)
        small = self.layout.take(present)
        return Mixture(self.weights, small, entries, position.astype(np.int32), hidden)

    def sample(
        self, size: int, rng: np.random.Generator, ids: NDArray[Any] | None = None
    ) -> FloatArray:
        """Draws (size, variable) of all hidden variables, or of `ids`: states and reals."""
        classes = self.variable_to_class if ids is None else self._classes(ids)
        component = np.sort(rng.choice(self.num_components, size, p=self.weights))
        draws = np.empty((size, len(classes)))
        for chosen, count in zip(*np.unique(component, return_counts=True), strict=True):
            rows = slice(*np.searchsorted(component, [chosen, chosen + 1]))
            width = max(1, BLOCK // int(count))
            for place, family in self._batches(classes, width=width):
                draws[rows, place] = family.draw(int(chosen), int(count), rng)
        return draws[rng.permutation(size)]

    def component_modes(self) -> FloatArray:
        """The mode of each component, (component, hidden variable)."""
        return self._class_modes()[:, self.variable_to_class]

    def marginal_modes(self) -> FloatArray:
        """The mode of each variable's own marginal, (hidden variable,)."""
        modes = self._of_classes(lambda family: _marginal(family, self.weights).mode_number)
        return modes[self.variable_to_class]

    def mode(self, starts: FloatArray | None = None) -> tuple[FloatArray, float]:
        """Values (hidden variable,) where q is largest, as far as found, and log q there.

        From the mode of each component, and from `starts` (start, hidden variable): components
        share in x by r_k ∝ w_k q^k(x), and every x_i moves to the maximum of Σ_k r_k log q_i^k,
        which never lowers q. Within a billionth of an edge, a Beta counts as constant.
        """
        # Each step moves all variables of a class to one value, so classes suffice.
        members = np.bincount(self.variable_to_class, minlength=len(self.layout))
        peaks = self._class_modes()[self.weights > 0]
        found = [self._climb(values, members) for values in peaks]
        if starts is not None:
            at_starts = self._log_weights() + self.log_density_by_component(self.hidden, starts)
            possible = at_starts[at_starts.max(axis=1) > -np.inf]
            found += [self._climb(self._best(_shares(logs)), members) for logs in possible]
        best = max(range(len(found)), key=lambda start: found[start][1])
        return found[best][0][self.variable_to_class], found[best][1]

    def expectation(
        self, function: Callable[..., Any], ids: NDArray[Any], *, seed: int = 0
    ) -> Expectation:
        """The mean of a function of some hidden variables, given whole arrays, one per variable.

        On the grid of states and 16 Gauss nodes, exact for polynomials of degree 31 in each real;
        by 100,000 draws where that would have more than a million points.
        """
        classes = self._classes(ids)
        is_discrete = self.layout.is_discrete[classes]
        sizes = np.where(is_discrete, self.layout.size[classes], NODES)
        if np.prod(sizes, dtype=np.float64) * self.num_components > MAX_POINTS:
            draws = self.sample(DRAWS, np.random.default_rng(seed), ids)
            return _by_draws(function, draws, is_discrete)

        def by_rule(num_nodes: int) -> float:
            rules = self._rules(classes, num_nodes)
            return _by_grid(function, self.weights, rules, is_discrete)

        value = by_rule(NODES)
        if is_discrete.all():
            return Expectation(value, 0.0, "sum")
        return Expectation(value, abs(value - by_rule(FEWER_NODES)), "quadrature")

    def moments(self, ids: NDArray[Any]) -> tuple[FloatArray, FloatArray]:
        """Means and variances (variable, component) of hidden reals under each component."""
        means, variances = np.empty((2, len(ids), self.num_components))
        for place, family in self._batches(self._classes(ids)):
            means[place], variances[place] = family.moments()
        return means, variances

    def nodes(self, ids: NDArray[Any], num_nodes: int = NODES) -> list[Rule]:
        """Per hidden variable: states, or Gauss nodes, and their shares (component, node)."""
        return self._rules(self._classes(ids), num_nodes)

    def state_tables(self, ids: NDArray[Any]) -> list[tuple[tuple[int, ...], FloatArray]]:
        """Positions in `ids` of discrete variables that depend on each other within a component,
        here each by itself, and their probabilities (component, states of each)."""
        return [((place,), shares) for place, (_, shares) in enumerate(self.nodes(ids))]

    def _rules(self, classes: NDArray[Any], num_nodes: int) -> list[Rule]:
        rules: dict[int, Rule] = {}
        for place, family in self._batches(classes):
            nodes, shares, _ = family.nodes(num_nodes)
            rules |= {at: (nodes[i], shares[i]) for i, at in enumerate(place.tolist())}
        return [rules[at] for at in range(len(classes))]

    def _climb(self, values: FloatArray, members: IntArray) -> tuple[FloatArray, float]:
        """The fixed point of the ascent from values (class,), and log q there."""
        logs = self._log_at(values, members)
        height = float(log_sum_exp(logs))
        for _ in range(MAX_ASCENT_STEPS):
            higher = self._best(_shares(logs))
            logs = self._log_at(higher, members)
            now = float(log_sum_exp(logs))
            if not now > height:
                break
            gain, values, height = now - height, higher, now
            if gain <= 1e-13 * max(1.0, abs(height)):
                break
        return values, height

    def _log_at(self, values: FloatArray, members: IntArray) -> FloatArray:
        """(component,): log w_k q^k where each class's members have its value."""
        total = self._log_weights()
        present = np.flatnonzero(members)
        for place, family in self._batches(present):
            at = present[place]
            total = total + members[at] @ family.finite_log_density(values[at])
        return total

    def _best(self, shares: FloatArray) -> FloatArray:
        return self._of_classes(lambda family: family.best(shares))

    def _class_modes(self) -> FloatArray:
        """(component, class)"""
        return self._of_classes(lambda family: family.modes(), self.num_components).T

    def _of_classes(self, compute: Callable[[Family], Any], *shape: int) -> FloatArray:
        """(class, …): a value of each class, computed by family."""
        values = np.zeros((len(self.layout), *shape))
        for place, family in self._batches(np.arange(len(self.layout))):
            values[place] = compute(family)
        return values

    def _batches(
        self, classes: NDArray[Any], *, width: int | None = BLOCK
    ) -> Iterator[tuple[IntArray, Family]]:
        return self.layout.batches(self.entries, classes, width=width)

    def _log_weights(self) -> FloatArray:
        with np.errstate(divide="ignore"):
            return np.log(self.weights)

    def _positions(self, ids: NDArray[Any]) -> IntArray:
        """Positions of variables in `hidden`."""
        position = np.searchsorted(self.hidden, ids)
        at = np.minimum(position, len(self.hidden) - 1) if len(self.hidden) else position[:0]
        if not np.array_equal(self.hidden[at], ids):
            raise ModelError("the variable is not hidden in the mixture")
        return position

    def _classes(self, ids: NDArray[Any]) -> NDArray[np.int32]:
        return self.variable_to_class[self._positions(ids)]


def reweighted(weights: FloatArray, logs: FloatArray) -> FloatArray:
    """(component,): the weights of components after values were seen with these log-densities."""
    with np.errstate(divide="ignore"):
        logs = np.log(weights) + logs
    top = logs.max()
    if top == -np.inf:
        raise ImpossibleEvidenceError(
            "every component of the mixture gives probability 0 to these values"
        )
    # Where some densities are infinite, as a Beta's may be at an edge, only those count.
    shares = (logs == np.inf).astype(np.float64) if top == np.inf else np.exp(logs - top)
    return np.asarray(shares / shares.sum())


def _shares(logs: FloatArray) -> FloatArray:
    """Positive numbers that sum to 1, from their logs up to a constant."""
    shares = np.exp(logs - logs.max())
    return np.asarray(shares / shares.sum())


def _marginal(
    batch: Family, weights: FloatArray, states: tuple[str, ...] | None = None
) -> BatchedDistribution:
    """The mixture of each variable's components; `states` labels those of discrete variables."""
    if isinstance(batch, Gaussians):
        return GaussianMixture(weights, batch.mean, batch.var)
    if isinstance(batch, Betas):
        return BetaMixture(weights, batch.alpha, batch.beta, batch.lower, batch.upper)
    assert isinstance(batch, Categoricals)
    labels = states or tuple(str(state) for state in range(batch.probs.shape[1]))
    return Categorical(batch.probs @ weights, labels)


def _by_grid(
    function: Callable[..., Any],
    weights: FloatArray,
    rules: list[Rule],
    is_discrete: NDArray[np.bool_],
) -> float:
    """Σ_k w_k times the sum over the product grid of each component's nodes."""
    total = 0.0
    for component in np.flatnonzero(weights > 0).tolist():
        axes = [nodes[component] for nodes, _ in rules]
        grid = [axis.ravel() for axis in np.meshgrid(*axes, indexing="ij")]
        shares = np.ones(1)
        for _, share in rules:
            shares = np.multiply.outer(shares, share[component]).ravel()
        # States of probability 0 are skipped: the function may be infinite there.
        used = shares > 0
        values = _evaluate(function, [axis[used] for axis in grid], is_discrete, int(used.sum()))
        total += float(weights[component] * (shares[used] @ values))
    return total


def _by_draws(
    function: Callable[..., Any], draws: FloatArray, is_discrete: NDArray[np.bool_]
) -> Expectation:
    """The mean over draws (draw, variable)."""
    values = _evaluate(function, list(draws.T), is_discrete, len(draws))
    error = float(values.std(ddof=1) / np.sqrt(len(values)))
    return Expectation(float(values.mean()), error, "sampling")


def _evaluate(
    function: Callable[..., Any],
    columns: list[FloatArray],
    is_discrete: NDArray[np.bool_],
    size: int,
) -> FloatArray:
    """The function at points given as one array per variable; states as integers."""
    arguments = [
        column.astype(np.int64) if discrete else column
        for column, discrete in zip(columns, is_discrete.tolist(), strict=True)
    ]
    values = np.asarray(function(*arguments), dtype=np.float64)
    if values.shape not in ((), (size,)):
        raise UnsupportedError(
            f"the function must return one number per point, an array of shape ({size},), "
            f"not of shape {values.shape}: it is given whole arrays, one per atom"
        )
    return np.broadcast_to(values, (size,))
