"""The way back from the posterior of a rewritten graph to one of the user's graph."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hylift.graph import Evidence, FactorGraph, FactorGroup, Variables
from hylift.inference.prepared import Prepared
from hylift.numerics.segments import number_rows, offsets, ranges
from hylift.posterior import Assignment, Categorical, Marginals, Mixture, Posterior, Target
from hylift.posterior.counts import Expect
from hylift.posterior.datasets import check_size
from hylift.posterior.draws import Draws
from hylift.posterior.mapped import Joint, MappedMixture
from hylift.posterior.marginals import Batches, categoricals
from hylift.posterior.target import Draw
from hylift.rewrite.parts import Copies
from hylift.rewrite.rewritten import SAME, Rewritten, StateMap, WayBack

FloatArray = NDArray[np.float64]


def restored(
    posterior: Posterior, prepared: Prepared, best: Callable[[], Assignment] | None = None
) -> Posterior:
    """The posterior of the user's variables, from one of the graph that a method was given.

    best: finds the best assignment, where that graph does not have it.
    """
    whole = prepared.whole
    if whole is None:
        return posterior
    path = _Path(whole, prepared.rewrites, posterior.solution.seed)
    target, assignment, draws = posterior.target, posterior.assignment, posterior.draws
    return replace(
        posterior,
        variables=whole.source.variables,
        observed=whole.observed,
        all_marginals=path.marginals(posterior.all_marginals),
        mixture=path.joint(posterior.mixture),
        assignment=None if assignment is None else path.assignment(assignment),
        target=None if target is None else RestoredTarget(target, path, best),
        draws=None if draws is None else path.draws(draws),
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Path:
    """The rewrites of a graph, and the way back through all of them."""

    whole: Prepared
    rewrites: tuple[Rewritten, ...]
    seed: int

    @property
    def graphs(self) -> list[FactorGraph]:
        """The graph before each rewrite."""
        after = (one.graph for one in self.rewrites)
        return [self.whole.ground, *after][: len(self.rewrites)]

    def values(self, values: FloatArray, rng: np.random.Generator | None = None) -> FloatArray:
        """(…, hidden variable), from values of the last graph."""
        rng = np.random.default_rng(self.seed) if rng is None else rng
        for one in reversed(self.rewrites):
            values = one.back.values(values, rng)
        return values

    def marginals(self, found: Marginals | None) -> Marginals | None:
        if found is None:
            return None
        for one, graph in zip(reversed(self.rewrites), reversed(self.graphs), strict=True):
            found = _marginals(one.back, found, graph.variables, one.graph.variables)
        return self.whole.marginals(found)

    def joint(self, found: Joint | None) -> Joint | None:
        """The joint distribution; None where a rewrite does not keep it."""
        for one, graph in zip(reversed(self.rewrites), reversed(self.graphs), strict=True):
            if isinstance(found, Mixture) and isinstance(one.back, Copies):
                number, example = number_rows(
                    found.parts()[one.back.variable].astype(np.int64),
                    one.back.part.astype(np.int64),
                )
                classes = found.variable_to_class[one.back.variable]
                weights = found.weights_of()[one.back.variable[example]]
                found = Mixture.by_parts(
                    weights, found.layout, found.entries, classes, np.arange(len(classes)),
                    number.astype(np.int32),
                )  # fmt: skip
                continue
            if found is None or not isinstance(one.back, StateMap):
                return None
            back, num_states = one.back, graph.variables.num_states
            inner = found if isinstance(found, Mixture) else found.inner
            if not isinstance(found, Mixture):
                back = back.then(found.map, _num_states(found.inner))
            found = MappedMixture(inner, back, num_states, np.arange(len(back)))
        if found is None:
            return None
        found = replace(found, hidden=self.whole.hidden)
        origin = self.whole.origin
        return found if origin is None else found.shifted(origin[found.hidden])

    def assignment(self, found: Assignment) -> Assignment:
        values, energy = self.values(found.values), found.energy
        if self.rewrites and self.rewrites[-1].copies is not None:
            energy = -self.whole.ground.log_density(values)
        return self.whole.assignment(values, energy, found.kind, found.gap)

    def draws(self, found: Draws) -> Draws:
        values, whole = self.whole.uncentred(self.values(found.values)), self.whole
        weights, errors, std_errors = found.weights, found.errors, found.std_errors
        for one in reversed(self.rewrites):
            variable = one.back.variable
            # Variables that are known come from -1: the last one, which is added here.
            if weights is not None:
                even = np.full((len(weights), 1), 1.0 / len(weights))
                weights = np.concatenate([weights, even], axis=1)[:, variable]
            same = one.back.table == SAME
            if errors is not None and std_errors is not None:
                errors = np.where(same, np.append(errors, np.nan)[variable], np.nan)
                std_errors = np.where(same, np.append(std_errors, np.nan)[variable], np.nan)
        return Draws(whole.source.variables, whole.hidden, values, weights, errors, std_errors)

    def drawn(self, draw: Draw, size: int, rng: np.random.Generator) -> FloatArray:
        """(draw, hidden variable): independent draws, from those of the last graph."""
        last = self.rewrites[-1].back if self.rewrites else None
        if not isinstance(last, Copies):
            return self.whole.uncentred(self.values(draw(size, rng), rng))
        # Each copy of a part has draws of its own.
        number = last.number
        most = int(number.max(initial=0)) + 1
        check_size(size * most, self.rewrites[-1].graph.num_variables)
        found = draw(size * most, rng).reshape(size, most, -1)
        values = found[:, number[last.part], last.variable]
        for one in reversed(self.rewrites[:-1]):
            values = one.back.values(values, rng)
        return self.whole.uncentred(values)

    def groups(self, groups: Sequence[FactorGroup]) -> tuple[Sequence[FactorGroup], float]:
        """Factors of the first graph as factors of the last one, and a constant."""
        total = 0.0
        for one in self.rewrites:
            groups, constant = one.back.in_other(groups, one.graph.variables.num_states)
            total += constant
        return groups, total


@dataclass(frozen=True, slots=True, eq=False)
class RestoredTarget(Target):
    """The model as the user gave it, and a way to its best assignment in a rewritten one."""

    inner: Target
    path: _Path
    best: Callable[[], Assignment] | None

    @property
    def graph(self) -> FactorGraph:
        return self.path.whole.source

    @property
    def evidence(self) -> Evidence:
        return self.path.whole.source.evidence

    @property
    def origin(self) -> FloatArray | None:
        return self.path.whole.origin

    @property
    def expect(self) -> Expect | None:
        inner = self.inner.expect
        if inner is None:
            return None

        def expect(sets: Sequence[Sequence[FactorGroup]]) -> FloatArray:
            found = [self.path.groups(groups) for groups in sets]
            constants = np.array([constant for _, constant in found])
            return np.asarray(inner([groups for groups, _ in found]) + constants)

        return expect

    @property
    def draw(self) -> Draw | None:
        inner, path = self.inner.draw, self.path
        return None if inner is None else lambda size, rng: path.drawn(inner, size, rng)

    @property
    def draws_states(self) -> bool:
        return self.inner.draws_states

    def energy(self, values: FloatArray) -> float:
        return self.path.whole.energy(values)

    def map(self, mixture: Joint | None) -> Assignment:
        if self.best is not None:
            return self.best()
        inner = mixture.inner if isinstance(mixture, MappedMixture) else mixture
        return self.path.assignment(self.inner.map(inner))


def _num_states(mixture: Mixture) -> NDArray[np.int64]:
    """(hidden variable,): its number of states; 0 for a real."""
    layout = mixture.layout
    return np.where(layout.is_discrete, layout.size, 0)[mixture.variable_to_class]


def _marginals(back: WayBack, found: Marginals, before: Variables, after: Variables) -> Marginals:
    """The marginals of the variables before a rewrite, from those after it."""
    known = back.variable < 0
    kept = np.flatnonzero(~known)
    own = np.flatnonzero(~known & (back.table != SAME))
    spread = found.spread(back.variable[kept])
    if len(own):
        there = back.variable[own]
        columns = found.batch[there], found.row[there], back.table[own], before.domain_id[own]
        number, example = number_rows(*(column.astype(np.int64) for column in columns))
        parts = _sums(back, own[example], found, before, after.num_states)
        new = Marginals.assemble(len(example), parts).spread(number)
        at = np.searchsorted(kept, own)
        batch, row = spread.batch.copy(), spread.row.copy()
        batch[at], row[at] = len(found.batches) + new.batch, new.row
        spread = Marginals((*found.batches, *new.batches), batch, row)
    seen = np.flatnonzero(known)
    state = back.values(np.zeros(len(after)), np.random.default_rng(0))[seen]
    return spread.beside(before, kept, seen, state) if len(seen) else spread


def _sums(
    back: WayBack,
    ids: NDArray[Any],
    found: Marginals,
    before: Variables,
    num_states: NDArray[np.int32],
) -> Batches:
    """Discrete variables by domain, as positions in `ids`, with their distributions."""
    there = back.variable[ids]
    size = num_states[there].astype(np.int64)
    start = offsets(size)
    probs = np.empty(start[-1])
    for number, batch in enumerate(found.batches):
        some = np.flatnonzero(found.batch[there] == number)
        if len(some):
            assert isinstance(batch, Categorical)
            rows = found.row[there[some]]
            probs[ranges(start[some], size[some])] = batch.probs[rows].reshape(-1)
    entries = back.entries(ids, size)
    first = offsets(before.num_states[ids])
    weights = entries.share * probs[start[entries.place] + entries.there]
    total = np.bincount(first[entries.place] + entries.here, weights, first[-1])
    return categoricals(before.take(ids), first, total.astype(np.float64, copy=False))
