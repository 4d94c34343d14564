"""Mixtures of products over hidden ground variables."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from hylift.components import Betas, Categoricals, Family, Gaussians, Layout
from hylift.components.categorical import draw_states
from hylift.components.family import FloatArray, IntArray
from hylift.errors import ImpossibleEvidenceError, ModelError
from hylift.graph import Variables
from hylift.graph.variables import freeze
from hylift.numerics.grouping import first_members, group_pairs
from hylift.numerics.segments import number_rows, offsets, slices
from hylift.posterior.climbing import Climb
from hylift.posterior.distributions import (
    BatchedDistribution,
    BetaMixture,
    Categorical,
    GaussianMixture,
)
from hylift.posterior.distributions.base import log_sum_exp, normalized, real_array
from hylift.posterior.marginals import Batches, Marginals
from hylift.posterior.summing import Expectation, Rule, by_draws, by_grid, is_truth

BLOCK = 1 << 20
"""Numbers of the largest temporary."""
NODES, FEWER_NODES = 16, 11
MAX_POINTS = 1_000_000
DRAWS = 100_000
SMALL = 1e-6
"""Error of a sum over nodes, as a share of the mean, below which draws could not be better."""


@dataclass(frozen=True, slots=True, eq=False)
class Mixture:
    """q(x) = Σ_k w_k Π_i q_i^k(x_i), where variables of one class share their factors; or, with
    parts, a product of such mixtures, one for each part.

    Parameters are stored per class, not per variable.
    """

    weights: FloatArray  # (component,), or (part, component)
    layout: Layout  # of the classes
    entries: FloatArray  # (entry, component)
    variable_to_class: NDArray[np.int32]  # (hidden variable,)
    hidden: NDArray[np.int64]  # (hidden variable,): increasing ids in the posterior's variables
    part: NDArray[np.int32] | None = None
    """(hidden variable,): the part that it is in, where parts have weights of their own."""

    def __post_init__(self) -> None:
        weights = real_array("weights", self.weights, low=0.0)
        if weights.ndim != (1 if self.part is None else 2) or not weights.shape[-1]:
            raise ModelError(f"weights of shape {weights.shape} are not one per component")
        if self.part is not None:
            part = freeze(self.part, np.int32)
            object.__setattr__(self, "part", part)
            if part.shape != self.hidden.shape or (
                len(part) and not (part.min() >= 0 and part.max() < len(weights))
            ):
                raise ModelError("a hidden variable is in a part that does not exist")
        for name, array, dtype in (
            ("weights", normalized("weights", weights), np.float64),
            ("entries", self.entries, np.float64),
            ("variable_to_class", self.variable_to_class, np.int32),
            ("hidden", self.hidden, np.int64),
        ):
            object.__setattr__(self, name, freeze(array, dtype))
        self.layout.check(self.entries, weights.shape[-1])
        if self.hidden.shape != self.variable_to_class.shape or self.hidden.ndim != 1:
            raise ModelError("a mixture needs one class per hidden variable")
        if (np.diff(self.hidden) <= 0).any():
            raise ModelError("the hidden variables of a mixture must have increasing ids")
        classes = self.variable_to_class
        if len(classes) and not (classes.min() >= 0 and classes.max() < len(self.layout)):
            raise ModelError("a hidden variable is in a class that does not exist")

    @classmethod
    def by_parts(
        cls,
        weights: FloatArray,
        layout: Layout,
        entries: FloatArray,
        variable_to_class: NDArray[np.int32],
        hidden: NDArray[np.int64],
        part: NDArray[np.int32],
    ) -> Mixture:
        """With weights (part, component) of each part; where there is but one, or one component, a
        plain mixture."""
        if len(weights) == 1 or weights.shape[1] == 1:
            return cls(weights[0], layout, entries, variable_to_class, hidden)
        return cls(weights, layout, entries, variable_to_class, hidden, part)

    @property
    def num_components(self) -> int:
        return int(self.weights.shape[-1])

    @property
    def part_weights(self) -> FloatArray:
        """(part, component)"""
        return np.atleast_2d(self.weights)

    def parts(self, ids: NDArray[Any] | None = None) -> NDArray[np.int32]:
        """(variable,): the part of each hidden variable, or of `ids`."""
        at = np.arange(len(self.hidden)) if ids is None else positions(self.hidden, ids)
        return np.zeros(len(at), dtype=np.int32) if self.part is None else self.part[at]

    def weights_of(self, ids: NDArray[Any] | None = None) -> FloatArray:
        """(variable, component): the weights of the part of each hidden variable, or of `ids`."""
        return np.asarray(self.part_weights[self.parts(ids)])

    def class_weights(self) -> FloatArray:
        """(class, component): the weights of a member of each class."""
        found = np.full((len(self.layout), self.num_components), 1.0 / self.num_components)
        found[self.variable_to_class] = self.weights_of()
        return found

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
        """The marginals of the hidden variables; those of a class, with the same weights, share a
        distribution."""
        number, example = self._kinds()
        classes, weights = self.variable_to_class[example], self.weights_of()[example]
        domain_id = variables.domain_id[self.hidden[example]]
        is_real = ~self.layout.is_discrete[classes]
        parts: Batches = []
        for domain_number, domain in [(-1, None), *enumerate(variables.domains)]:
            chosen = is_real if domain is None else ~is_real & (domain_id == domain_number)
            at = np.flatnonzero(chosen)
            states = None if domain is None else domain.states
            for place, family in self._batches(classes[at], width=None):
                own = self.weights if self.part is None else weights[at[place]]
                parts.append((at[place], _marginal(family, own, states)))
        return Marginals.assemble(len(example), parts).spread(number)

    def _kinds(self) -> tuple[IntArray, IntArray]:
        """(hidden variable,): equal for those of one class and of the same weights; and for each
        number a hidden variable that has it."""
        columns = [self.variable_to_class.astype(np.int64)]
        if self.part is not None:
            _, row = np.unique(self.weights, axis=0, return_inverse=True)
            columns.append(row.reshape(-1)[self.part].astype(np.int64))
        return number_rows(*columns)

    def log_density_by_part(self, ids: NDArray[Any], values: FloatArray) -> FloatArray:
        """log q^k (point, part, component) of hidden variables `ids` at values (point, variable);
        of parts without any of them, 0."""
        values = np.asarray(values, dtype=np.float64)
        shape = (len(values), len(self.part_weights), self.num_components)
        total, impossible = np.zeros(shape), np.zeros(shape, dtype=bool)
        classes, part = self._classes(ids), self.parts(ids)
        step = max(1, BLOCK // (4 * shape[1] * shape[2]))
        for some in slices(len(values), step):
            width = max(1, BLOCK // len(values[some]))
            for place, family in self._batches(classes, width=width):
                logs = family.log_density(values[some, place])
                of, own = np.unique(part[place], return_inverse=True)
                order = np.argsort(own, kind="stable")
                begin = offsets(np.bincount(own))[:-1]
                logs = logs[:, order]
                found = np.logical_or.reduceat(np.isneginf(logs), begin, axis=1)
                impossible[some, of] |= found
                with np.errstate(invalid="ignore"):
                    total[some, of] += np.add.reduceat(logs, begin, axis=1)
        # A density of 0 stays 0, even if that of another variable is infinite.
        total[impossible] = -np.inf
        return total

    def log_density(self, ids: NDArray[Any], values: FloatArray) -> FloatArray:
        """log q (point,) of hidden variables `ids` at values (point, variable)."""
        if self.part is not None and len(self.weights) > len(ids):  # leave other parts alone
            ids = np.asarray(ids)
            order = np.argsort(ids, kind="stable")
            return self.of(ids[order]).log_density(ids[order], np.asarray(values)[:, order])
        logs = self._log_weights() + self.log_density_by_part(ids, values)
        return np.asarray(log_sum_exp(logs).sum(axis=1))

    def given(self, ids: NDArray[Any], values: FloatArray) -> Mixture:
        """The conditional distribution of the other hidden variables, given values of these.

        Each component's weight changes by its density there: w_k q^k(a) / Σ_j w_j q^j(a).
        """
        logs = self.log_density_by_part(ids, values[None])[0]
        weights = reweighted(self.part_weights, logs).reshape(self.weights.shape)
        keep = np.ones(len(self.hidden), dtype=bool)
        keep[positions(self.hidden, ids)] = False
        classes, hidden = self.variable_to_class[keep], self.hidden[keep]
        part = None if self.part is None else self.part[keep]
        return Mixture(weights, self.layout, self.entries, classes, hidden, part)

    def shifted(self, by: FloatArray) -> Mixture:
        """The distribution of variables plus by (hidden variable,), 0 of all but Gaussians."""
        # Members of a class that move by different numbers are classes of their own.
        classes, _ = group_pairs(self.variable_to_class, (by + 0.0).view(np.uint64))
        first = first_members(classes)
        old = self.variable_to_class[first]
        layout, entries = self.layout.take(old), self.entries[self.layout.entries_of(old)]
        moves = layout.has(Gaussians)
        entries[layout.first[:-1][moves]] += by[first[moves], None]
        return replace(self, layout=layout, entries=entries, variable_to_class=classes)

    def of(self, ids: NDArray[Any]) -> Mixture:
        """The joint marginal of some hidden variables, given by increasing ids."""
        classes = self._classes(ids)
        present, position = np.unique(classes, return_inverse=True)
        entries = self.entries[self.layout.entries_of(present)]
        hidden = np.asarray(ids, dtype=np.int64)
        small, own = self.layout.take(present), position.astype(np.int32)
        if self.part is None:
            return Mixture(self.weights, small, entries, own, hidden)
        parts, part = np.unique(self.parts(ids), return_inverse=True)
        weights = self.weights[parts] if len(parts) else self.weights[:1]
        return Mixture.by_parts(weights, small, entries, own, hidden, part.astype(np.int32))

    def expanded(self) -> Mixture:
        """The same as a single mixture: a component for each choice of one from every part."""
        if self.part is None:
            return self
        count, size = len(self.weights), self.num_components
        digit = np.stack(np.unravel_index(np.arange(size**count), (size,) * count))
        weights = np.prod(self.weights[np.arange(count)[:, None], digit], axis=0)
        number, example = number_rows(
            self.variable_to_class.astype(np.int64), self.part.astype(np.int64)
        )
        classes = self.variable_to_class[example]
        layout, entry = self.layout.take(classes), self.layout.entries_of(classes)
        part = np.repeat(self.part[example], layout.size)
        entries = np.take_along_axis(self.entries[entry], digit[part], axis=1)
        return Mixture(weights, layout, entries, number.astype(np.int32), self.hidden)

    def sample(
        self, size: int, rng: np.random.Generator, ids: NDArray[Any] | None = None
    ) -> FloatArray:
        """Draws (size, variable) of all hidden variables, or of `ids`: states and reals."""
        classes = self.variable_to_class if ids is None else self._classes(ids)
        draws = np.empty((size, len(classes)))
        if self.part is not None:
            parts, part = np.unique(self.parts(ids), return_inverse=True)
            component = draw_states(self.weights[parts], size, rng)[:, part]
            for chosen in range(self.num_components):
                for place, family in self._batches(classes, width=max(1, BLOCK // size)):
                    drawn = family.draw(chosen, size, rng)
                    draws[:, place] = np.where(
                        component[:, place] == chosen, drawn, draws[:, place]
                    )
            return draws
        component = np.sort(rng.choice(self.num_components, size, p=self.weights))
        for chosen, count in zip(*np.unique(component, return_counts=True), strict=True):
            rows = slice(*np.searchsorted(component, [chosen, chosen + 1]))
            width = max(1, BLOCK // int(count))
            for place, family in self._batches(classes, width=width):
                draws[rows, place] = family.draw(int(chosen), int(count), rng)
        return draws[rng.permutation(size)]

    def component_modes(self) -> FloatArray:
        """The mode of each component, (component, hidden variable); with parts, first of the
        heaviest component of each."""
        modes = self._class_modes()
        if self.part is None:
            return modes[:, self.variable_to_class]
        order = np.argsort(-self.weights, axis=1, kind="stable")[self.part]
        return np.asarray(modes.T[self.variable_to_class[:, None], order].T)

    def marginal_modes(self) -> FloatArray:
        """The mode of each variable's own marginal, (hidden variable,)."""
        number, example = self._kinds()
        modes, weights = np.empty(len(example)), self.weights_of()[example]
        for place, family in self._batches(self.variable_to_class[example]):
            modes[place] = _marginal(family, weights[place]).mode_number
        return modes[number]

    def mode(self, starts: FloatArray | None = None) -> tuple[FloatArray, float]:
        """Values (hidden variable,) where q is largest, as far as found, and log q there.

        From the mode of each component, and from `starts` (start, hidden variable): components
        share in x by r_k ∝ w_k q^k(x), and every x_i moves to the maximum of Σ_k r_k log q_i^k,
        which never lowers q. Within a billionth of an edge, a Beta counts as constant.
        """
        # Each step moves all variables of a class and part to one value, so kinds suffice.
        columns = self.variable_to_class.astype(np.int64), self.parts().astype(np.int64)
        number, example = number_rows(*columns)
        places = self.variable_to_class[example], self.parts()[example], np.bincount(number)
        climb = Climb(self._log_weights(), self.layout, self.entries, *places)
        peaks = self.component_modes()[:, example]
        if self.part is None:
            peaks = peaks[self.weights > 0]
        found = [climb.from_values(values) for values in peaks]
        if starts is not None:
            logs = self._log_weights() + self.log_density_by_part(self.hidden, starts)
            for one in logs[(logs.max(axis=2) > -np.inf).all(axis=1)]:
                found.append(climb.from_values(climb.best(special.softmax(one, axis=1))))
        heights = np.array([height for _, height in found])  # (start, part)
        best = np.argmax(heights, axis=0)
        values = np.array([values for values, _ in found])
        chosen = values[best[climb.part], np.arange(values.shape[1])]
        return chosen[number], float(heights.max(axis=0).sum())

    def expect(
        self, function: Callable[..., Any], ids: NDArray[Any], *, seed: int = 0
    ) -> Expectation:
        """The mean of a function of some hidden variables, given whole arrays, one per variable.

        On the grid of states and 16 Gauss nodes, exact for polynomials of degree 31 in each real;
        by 100,000 draws where that would have more than a million points, or would miss jumps.
        """
        classes = self._classes(ids)
        is_discrete = self.layout.is_discrete[classes]
        sizes = np.where(is_discrete, self.layout.size[classes], NODES)
        num_parts = len(np.unique(self.parts(ids)))
        points = np.prod(sizes, dtype=np.float64) * float(self.num_components) ** max(1, num_parts)
        if self.part is not None and points <= MAX_POINTS:
            order = np.argsort(ids, kind="stable")
            small = self.of(np.asarray(ids)[order]).expanded()
            return small.expect(function, ids, seed=seed)
        rng, found = np.random.default_rng(seed), list[Expectation]()
        has_jumps = not is_discrete.all() and is_truth(
            function, self.sample(2, rng, ids), is_discrete
        )
        if points <= MAX_POINTS and not has_jumps:
            found.append(self._on_grid(function, classes, is_discrete))
            if found[0].error <= SMALL * max(1.0, abs(found[0].value)):
                return found[0]
        found.append(by_draws(function, self.sample(DRAWS, rng, ids), is_discrete))
        return min(found, key=lambda one: one.error)

    def _on_grid(
        self, function: Callable[..., Any], classes: NDArray[Any], is_discrete: NDArray[np.bool_]
    ) -> Expectation:
        def by_rule(num_nodes: int) -> float:
            rules = self._rules(classes, num_nodes)
            return by_grid(function, self.weights, rules, is_discrete)

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

    def _class_modes(self) -> FloatArray:
        """(component, class)"""
        values = np.zeros((len(self.layout), self.num_components))
        for place, family in self._batches(np.arange(len(self.layout))):
            values[place] = family.modes()
        return values.T

    def _batches(
        self, classes: NDArray[Any], *, width: int | None = BLOCK
    ) -> Iterator[tuple[IntArray, Family]]:
        return self.layout.batches(self.entries, classes, width=width)

    def _log_weights(self) -> FloatArray:
        with np.errstate(divide="ignore"):
            return np.log(self.part_weights)

    def _classes(self, ids: NDArray[Any]) -> NDArray[np.int32]:
        return self.variable_to_class[positions(self.hidden, ids)]


def positions(hidden: NDArray[Any], ids: NDArray[Any]) -> IntArray:
    """Positions of variables among the hidden ones, whose ids increase."""
    position = np.searchsorted(hidden, ids)
    at = np.minimum(position, len(hidden) - 1) if len(hidden) else position[:0]
    if not np.array_equal(hidden[at], ids):
        raise ModelError("the variable is not hidden in the mixture")
    return position


def reweighted(weights: FloatArray, logs: FloatArray) -> FloatArray:
    """(part, component): the weights of components after values were seen with these
    log-densities."""
    with np.errstate(divide="ignore"):
        logs = np.log(weights) + logs
    top = logs.max(axis=1, keepdims=True)
    if (top == -np.inf).any():
        raise ImpossibleEvidenceError(
            "every component of the mixture gives probability 0 to these values"
        )
    # Where some densities are infinite, as a Beta's may be at an edge, only those count.
    with np.errstate(invalid="ignore"):
        shares = np.where(top == np.inf, logs == np.inf, np.exp(logs - top))
    return np.asarray(shares / shares.sum(axis=1, keepdims=True))


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
    if weights.ndim == 1:
        return Categorical(batch.probs @ weights, labels)
    return Categorical(np.einsum("vsk,vk->vs", batch.probs, weights), labels)
