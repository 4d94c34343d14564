"""Mixtures of products some of whose variables stand for several: the members of a hard cluster."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hylift.components import Layout
from hylift.components.family import FloatArray, IntArray
from hylift.errors import ModelError
from hylift.graph import FactorGroup, Variables
from hylift.graph.variables import freeze
from hylift.numerics.segments import counts_up, number_rows, offsets, ranges
from hylift.posterior.distributions.base import log_sum_exp
from hylift.posterior.marginals import Marginals
from hylift.posterior.mixture import BLOCK, Mixture, positions, reweighted
from hylift.posterior.summing import Expectation
from hylift.rewrite.rewritten import SAME, StateMap


@dataclass(frozen=True, slots=True, eq=False)
class MappedMixture:
    """A mixture of products, and variables that are functions of those of the mixture.

    It answers what `Mixture` answers; variables that depend on the same one are dependent within
    a component, too.
    """

    inner: Mixture
    """Its hidden variables are numbered from 0."""
    map: StateMap
    """(hidden variable,): as a function of one of `inner`."""
    num_states: NDArray[np.int32]  # (hidden variable,)
    hidden: NDArray[np.int64]  # (hidden variable,): increasing ids in the posterior's variables

    def __post_init__(self) -> None:
        object.__setattr__(self, "num_states", freeze(self.num_states, np.int32))
        object.__setattr__(self, "hidden", freeze(self.hidden, np.int64))
        inner, found = self.inner, self.map
        if not len(found) == len(self.hidden) == len(self.num_states):
            raise ModelError("a mixture needs one table of states per hidden variable")
        if not np.array_equal(inner.hidden, np.arange(len(inner.hidden))):
            raise ModelError("the variables inside a mixture must be numbered from 0")
        if (np.diff(self.hidden) <= 0).any():
            raise ModelError("the hidden variables of a mixture must have increasing ids")
        if (found.variable < -1).any() or (found.variable >= len(inner.hidden)).any():
            raise ModelError("a hidden variable depends on one that does not exist")
        size = self._size(np.arange(len(found)))
        own = found.table != SAME
        if (found.table[own] < 0).any() or (found.table + size > len(found.states))[own].any():
            raise ModelError("a hidden variable has no table of states")
        if (own & (self.num_states == 0)).any():
            raise ModelError("a real cannot be a function of states")
        states = found.states[ranges(found.table[own], size[own])]
        if (states < 0).any() or (states >= np.repeat(self.num_states[own], size[own])).any():
            raise ModelError("a table has a state that does not exist")

    @property
    def weights(self) -> FloatArray:
        return self.inner.weights

    @property
    def num_components(self) -> int:
        return self.inner.num_components

    @property
    def layout(self) -> Layout:
        """Of the classes of the mixture inside."""
        return self.inner.layout

    def check(self, variables: Variables) -> None:
        """Raise an error unless the mixture fits these variables."""
        self.product().check(variables)

    def product(self) -> Mixture:
        """The mixture with the same marginals of each component, its variables independent."""
        inner, found = self.inner, self.map
        own = np.flatnonzero(found.table != SAME)
        classes = np.zeros(len(found), dtype=np.int32)
        rest = found.table == SAME
        classes[rest] = inner.variable_to_class[found.variable[rest]]
        part = None if inner.part is None else np.append(inner.part, 0)[found.variable]
        if not len(own):
            return Mixture(inner.weights, inner.layout, inner.entries, classes, self.hidden, part)
        of = np.append(inner.variable_to_class, -1)[found.variable[own]].astype(np.int64)
        columns = of + 1, found.table[own], self.num_states[own].astype(np.int64)
        number, example = number_rows(*columns)
        place, state, probs = self._by_state(own[example])
        first = offsets(self.num_states[own[example]])
        entries = np.zeros((first[-1], self.num_components))
        np.add.at(entries, first[place] + state, probs)
        classes[own] = len(inner.layout) + number
        layout = inner.layout.with_categoricals(np.diff(first))
        both = np.concatenate([inner.entries, entries])
        return Mixture(inner.weights, layout, both, classes, self.hidden, part)

    def parts(self, ids: NDArray[Any]) -> NDArray[np.int32]:
        """(variable,): the part of each of these; that of a known one does not matter."""
        part = np.append(self.inner.parts(), np.int32(0))
        return np.asarray(part[self.map.variable[self._positions(ids)]])

    def weights_of(self, ids: NDArray[Any]) -> FloatArray:
        """(variable, component): the weights of the part of each of these."""
        return np.asarray(self.inner.part_weights[self.parts(ids)])

    def marginals(self, variables: Variables) -> Marginals:
        """The marginals of the hidden variables."""
        return self.product().marginals(variables)

    def log_density_by_part(self, ids: NDArray[Any], values: FloatArray) -> FloatArray:
        """log q^k (point, part, component) of hidden variables `ids` at values (point, variable);
        of parts without any of them, 0."""
        values = np.asarray(values, dtype=np.float64)
        at = self._positions(ids)
        plain = self.map.table[at] == SAME
        total = self.inner.log_density_by_part(self.map.variable[at[plain]], values[:, plain])
        if plain.all():
            return total
        own = np.flatnonzero(~plain)
        cluster, entry_ptr, probs, allowed = self._allowed(at[own], values[:, own])
        part = np.append(self.inner.parts(), np.int32(0))[np.maximum(cluster, -1)]
        width = max(1, BLOCK // max(1, probs.size))
        with np.errstate(divide="ignore"):
            for first in range(0, len(values), width):
                some = allowed[first : first + width]
                share = np.add.reduceat(some[:, :, None] * probs, entry_ptr[:-1], axis=1)
                logs = np.log(share)
                for one in np.unique(part).tolist():  # few clusters are asked for at once
                    total[first : first + width, one] += logs[:, part == one].sum(axis=1)
        return total

    def log_density(self, ids: NDArray[Any], values: FloatArray) -> FloatArray:
        """log q (point,) of hidden variables `ids` at values (point, variable)."""
        logs = self.log_density_by_part(ids, values)
        with np.errstate(divide="ignore"):
            found = log_sum_exp(np.log(self.inner.part_weights) + logs)
        return np.asarray(found.sum(axis=1))

    def given(self, ids: NDArray[Any], values: FloatArray) -> MappedMixture:
        """The conditional distribution of the other hidden variables, given values of these."""
        at = self._positions(ids)
        inner = self.inner
        logs = self.log_density_by_part(ids, values[None])[0]
        weights = reweighted(inner.part_weights, logs).reshape(inner.weights.shape)
        own = self.map.is_mapped[at]
        classes, layout, entries = inner.variable_to_class.copy(), inner.layout, inner.entries
        if own.any():
            cluster, ptr, probs, allowed = self._allowed(at[own], values[None, own])
            left = probs * allowed[0][:, None]
            total = np.repeat(np.add.reduceat(left, ptr[:-1], axis=0), np.diff(ptr), axis=0)
            # Components that leave nothing have no weight.
            left = np.where(total > 0, left / np.where(total > 0, total, 1.0), probs)
            classes[cluster] = len(layout) + np.arange(len(cluster))
            layout = layout.with_categoricals(np.diff(ptr))
            entries = np.concatenate([entries, left])
        rest = np.ones(len(self.hidden), dtype=bool)
        rest[at] = False
        small = Mixture(weights, layout, entries, classes, inner.hidden, inner.part)
        keep = np.flatnonzero(rest)
        return MappedMixture(small, self.map.take(keep), self.num_states[keep], self.hidden[keep])

    def shifted(self, by: FloatArray) -> MappedMixture:
        """The distribution of variables plus by (hidden variable,), 0 of all but Gaussians."""
        moves = np.flatnonzero(by)
        inside = np.zeros(len(self.inner.hidden))
        inside[self.map.variable[moves]] = by[moves]
        return replace(self, inner=self.inner.shifted(inside))

    def of(self, ids: NDArray[Any]) -> MappedMixture:
        """The joint marginal of some hidden variables, given by increasing ids."""
        at = self._positions(ids)
        inside, place = self._inside(at)
        small = self.inner.of(inside)
        numbered = Mixture(
            small.weights, small.layout, small.entries, small.variable_to_class,
            np.arange(len(inside)), small.part,
        )  # fmt: skip
        found = StateMap(place, self.map.table[at], self.map.states)
        return MappedMixture(numbered, found, self.num_states[at], self.hidden[at])

    def sample(
        self, size: int, rng: np.random.Generator, ids: NDArray[Any] | None = None
    ) -> FloatArray:
        """Draws (size, variable) of all hidden variables, or of `ids`: states and reals."""
        at = np.arange(len(self.hidden)) if ids is None else self._positions(ids)
        inside, place = self._inside(at)
        drawn = self.inner.sample(size, rng, inside)
        return StateMap(place, self.map.table[at], self.map.states).values(drawn)

    def component_modes(self) -> FloatArray:
        """The mode of each component, (component, hidden variable)."""
        return self.map.values(self.inner.component_modes())

    def marginal_modes(self) -> FloatArray:
        """The mode of each variable's own marginal, (hidden variable,)."""
        return self.product().marginal_modes()

    def mode(self) -> tuple[FloatArray, float]:
        """Values (hidden variable,) where the mixture inside is largest, as far as found, and its
        logarithm there."""
        values, height = self.inner.mode()
        return self.map.values(values), height

    def expect(
        self, function: Callable[..., Any], ids: NDArray[Any], *, seed: int = 0
    ) -> Expectation:
        """The mean of a function of some hidden variables; see `Mixture.expect`."""
        at = self._positions(ids)
        inside, place = self._inside(at)
        found = StateMap(place, self.map.table[at], self.map.states)
        is_discrete = (self.num_states[at] > 0).tolist()

        def of_inside(*columns: NDArray[Any]) -> Any:
            shape = np.broadcast_shapes(*(np.shape(column) for column in columns))
            flat = [np.broadcast_to(column, shape).reshape(-1) for column in columns]
            values = found.values(np.stack(flat, axis=1))
            return function(
                *(
                    column.astype(np.int64).reshape(shape) if discrete else column.reshape(shape)
                    for column, discrete in zip(values.T, is_discrete, strict=True)
                )
            )

        return self.inner.expect(of_inside, inside, seed=seed)

    def moments(self, ids: NDArray[Any]) -> tuple[FloatArray, FloatArray]:
        """Means and variances (variable, component) of hidden reals under each component."""
        return self.inner.moments(self.map.variable[self._positions(ids)])

    def state_tables(self, ids: NDArray[Any]) -> list[tuple[tuple[int, ...], FloatArray]]:
        """Positions in `ids` of variables that depend on each other within a component, and their
        probabilities (component, states of each)."""
        at = self._positions(ids)
        of = np.where(self.map.is_known[at], -1 - np.arange(len(at)), self.map.variable[at])
        tables = []
        for one in dict.fromkeys(of.tolist()):
            places = np.flatnonzero(of == one)
            sizes = self.num_states[at[places]]
            joint = np.zeros(1, dtype=np.int64)
            for place, size in zip(places.tolist(), sizes.tolist(), strict=True):
                _, state, probs = self._by_state(at[[place]])
                joint = joint * size + state
            table = np.zeros((int(np.prod(sizes)), self.num_components))
            np.add.at(table, joint, probs)
            shape = (self.num_components, *sizes.tolist())
            tables.append((tuple(places.tolist()), table.T.reshape(shape)))
        return tables

    def factors_inside(self, groups: Sequence[FactorGroup]) -> tuple[Sequence[FactorGroup], float]:
        """Factors of positions among the hidden variables as factors of variables of `inner`, and
        the sum of those that are constant."""
        layout, classes = self.inner.layout, self.inner.variable_to_class
        states = np.where(layout.is_discrete, layout.size, 0)[classes].astype(np.int32)
        return self.map.in_other(groups, states)

    def _allowed(
        self, at: IntArray, values: FloatArray
    ) -> tuple[IntArray, IntArray, FloatArray, NDArray[np.bool_]]:
        """The variables inside that some hidden variables depend on (known ones on none: a
        variable of one state), where their states begin, the probabilities of these (entry,
        component), and (point, entry): whether the values agree with a state."""
        order = np.argsort(self.map.variable[at], kind="stable")
        at, values = at[order], values[:, order]
        known = self.map.is_known[at]
        label = np.where(known, -1 - np.arange(len(at)), self.map.variable[at])
        cluster, which = np.unique(label, return_inverse=True)
        which = which.reshape(-1)
        member = np.zeros(len(cluster), dtype=np.int64)
        member[which] = at
        place, _, probs = self._by_state(member)
        ptr = offsets(np.bincount(place, minlength=len(cluster)))
        allowed = np.ones((len(values), len(place)), dtype=bool)
        size = np.diff(ptr)[which]
        # Each member excludes states; members of one cluster follow each other in rounds.
        turn = counts_up(np.bincount(np.sort(which), minlength=len(cluster)))
        rank = np.empty(len(which), dtype=np.int64)
        rank[np.argsort(which, kind="stable")] = turn
        for number in range(int(rank.max(initial=-1)) + 1):
            some = np.flatnonzero(rank == number)
            entry = ranges(ptr[which[some]], size[some])
            _, state, _ = self._by_state(at[some])
            owner = np.repeat(some, size[some])
            allowed[:, entry] &= values[:, owner] == state
        return cluster, ptr, probs, allowed

    def _by_state(self, at: IntArray) -> tuple[IntArray, IntArray, FloatArray]:
        """Each state of the variable inside that a discrete one depends on: the position in `at`,
        the state there, and the probabilities (entry, component)."""
        size = self._size(at)
        place, inside = np.repeat(np.arange(len(at)), size), counts_up(size)
        found, variable = self.map, self.map.variable[at]
        table = found.table[at][place]
        state = np.where(table == SAME, inside, np.append(found.states, 0)[
            np.where(table == SAME, -1, table + inside)
        ])  # fmt: skip
        probs = np.ones((len(place), self.num_components))
        known = (variable == -1)[place]
        classes = self.inner.variable_to_class[variable[place[~known]]]
        probs[~known] = self.inner.entries[self.inner.layout.first[classes] + inside[~known]]
        return place, state, probs

    def _size(self, at: IntArray) -> IntArray:
        """States of the variable inside that each depends on; 1 where it is known."""
        classes = np.append(self.inner.variable_to_class, 0)[self.map.variable[at]]
        size = self.inner.layout.size[classes] if len(self.inner.layout) else np.ones(len(at))
        return np.where(self.map.is_known[at], 1, size).astype(np.int64)

    def _inside(self, at: IntArray) -> tuple[IntArray, NDArray[np.int32]]:
        """Variables inside that some depend on, and the position of each one's among them."""
        variable = self.map.variable[at]
        inside = np.unique(variable[variable >= 0]).astype(np.int64)
        place = np.where(variable >= 0, np.searchsorted(inside, variable), -1)
        return inside, place.astype(np.int32)

    def _positions(self, ids: NDArray[Any]) -> IntArray:
        return positions(self.hidden, ids)


Joint = Mixture | MappedMixture
"""A joint distribution of the hidden variables."""
