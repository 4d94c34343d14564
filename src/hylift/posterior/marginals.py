"""Marginals of all variables of a graph, stored as batches of distributions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hylift.errors import ModelError
from hylift.graph import FactorGraph, Variables, boolean
from hylift.numerics.segments import number_rows, offsets, slices
from hylift.posterior.distributions import (
    BatchedDistribution,
    Categorical,
    PointMass,
    RealDistribution,
)

QUANTILES = {"q05": 0.05, "q50": 0.5, "q95": 0.95}
"""Columns of tables, and which quantiles they are."""
STATISTICS = ("mean", "std", "mode", *QUANTILES)
"""Columns of reals."""
BLOCK = 1 << 20
"""Numbers that are drawn together."""

Batches = list[tuple[NDArray[Any], BatchedDistribution]]
"""Ids of variables, or positions among some, with their distributions."""


@dataclass(frozen=True, slots=True, eq=False)
class Marginals:
    """One distribution per variable; variables may share one."""

    batches: tuple[BatchedDistribution, ...]
    batch: NDArray[np.int32]  # (variable,): which batch
    row: NDArray[np.int32]  # (variable,): which row of it

    def __post_init__(self) -> None:
        shapes = [batch.batch_shape for batch in self.batches]
        if any(len(shape) != 1 for shape in shapes):
            raise ModelError("the batches of marginals must have the shape (row,)")
        sizes = np.array(shapes, dtype=np.int64).reshape(-1)
        if self.batch.ndim != 1 or self.batch.shape != self.row.shape:
            raise ModelError("marginals need one batch and one row per variable")
        missing = (self.batch < 0) | (self.batch >= len(sizes)) | (self.row < 0)
        if not missing.any():
            missing = self.row >= sizes[self.batch]
        if missing.any():
            raise ModelError(f"variable {int(np.argmax(missing))} has no marginal")
        object.__setattr__(self, "batch", self.batch.astype(np.int32, copy=False))
        object.__setattr__(self, "row", self.row.astype(np.int32, copy=False))

    @classmethod
    def assemble(cls, num_variables: int, parts: Batches) -> Marginals:
        """Assemble marginals from batches with the ids of their variables."""
        batch = np.full(num_variables, -1, dtype=np.int32)
        row = np.zeros(num_variables, dtype=np.int32)
        for place, (ids, _) in enumerate(parts):
            batch[ids] = place
            row[ids] = np.arange(len(ids))
        return cls(tuple(distribution for _, distribution in parts), batch, row)

    def check(self, variables: Variables) -> None:
        """Raise an error unless there is one marginal per variable, with its states."""
        num_states = np.array([batch.num_states for batch in self.batches], dtype=np.int64)
        if len(self) != len(variables):
            raise ModelError(f"{len(self)} marginals of {len(variables)} variables")
        wrong = num_states[self.batch] != variables.num_states
        if wrong.any():
            name = variables.names[int(np.argmax(wrong))]
            raise ModelError(f"the marginal of '{name}' has a different number of states")

    def spread(self, variable_to_class: NDArray[np.integer[Any]]) -> Marginals:
        """The marginals of ground variables, from these of their classes.

        They share the distributions: only an index per variable is new.
        """
        return Marginals(self.batches, self.batch[variable_to_class], self.row[variable_to_class])

    def beside(
        self,
        variables: Variables,
        hidden: NDArray[np.int64],
        observed: NDArray[Any],
        value: NDArray[np.float64],
    ) -> Marginals:
        """Marginals of all variables: these for the hidden ones, certainty for the observed.

        hidden, observed: ids; value (observed,): the states and reals seen.
        """
        batches = list(self.batches)
        batch = np.full(len(variables), -1, dtype=np.int32)
        row = np.zeros(len(variables), dtype=np.int32)
        batch[hidden], row[hidden] = self.batch, self.row
        domain_id = variables.domain_id[observed]
        for number in np.unique(domain_id).tolist():
            at, states = observed[domain_id == number], variables.domains[number].states
            seen, row[at] = value[domain_id == number], np.arange(len(at))
            batch[at] = len(batches)
            if states is None:
                batches.append(PointMass(seen))
            else:
                seen, row[at] = np.unique(seen, return_inverse=True)
                certain = np.zeros((len(seen), len(states)))
                certain[np.arange(len(seen)), seen.astype(np.int64)] = 1.0
                batches.append(Categorical(certain, states))
        return Marginals(tuple(batches), batch, row)

    def shifted(self, by: NDArray[np.float64]) -> Marginals:
        """The marginals of variables plus by (variable,), which is 0 of discrete ones."""
        batches, batch, row = list(self.batches), self.batch.copy(), self.row.copy()
        for number, found in enumerate(self.batches):
            ids = np.flatnonzero((self.batch == number) & (by != 0))
            if not len(ids) or not isinstance(found, RealDistribution):
                continue
            # Variables that share a distribution may differ in what is added.
            alike, example = number_rows(
                self.row[ids].astype(np.int64), np.unique(by[ids], return_inverse=True)[1]
            )
            batch[ids], row[ids] = len(batches), alike
            batches.append(found[self.row[ids[example]]].shifted(by[ids[example]]))
        return Marginals(tuple(batches), batch, row)

    def modes(self, ids: NDArray[Any]) -> NDArray[np.float64]:
        """(variable,): the mode of each marginal, a state's position or a real."""
        modes = np.zeros(len(ids))
        for place, batch, rows in self.by_batch(ids):
            some, at = _once(batch, rows)
            modes[place] = some.mode_number[at]
        return modes

    def sample(self, ids: NDArray[Any], size: int, rng: np.random.Generator) -> NDArray[np.float64]:
        """(size, variable): independent draws of each variable by itself, states and reals."""
        draws = np.empty((size, len(ids)))
        for place, batch, rows in self.by_batch(ids):
            for some in slices(len(place), BLOCK // max(size, 1)):
                distribution: Any = batch[rows[some]]
                draws[:, place[some]] = distribution.sample(size, seed=rng)
        return draws

    def __getitem__(self, variable: int) -> Any:
        return self.batches[self.batch[variable]][int(self.row[variable])]

    def __len__(self) -> int:
        return len(self.batch)

    def to_arrow(self, variables: Variables, ids: NDArray[Any]) -> pa.Table:
        """Columns atom, mean, std, mode, q05, q50, q95 (reals), states, probs (discrete)."""
        statistics = np.full((len(STATISTICS), len(ids)), np.nan)
        size = variables.num_states[ids].astype(np.int64)
        first = offsets(size)
        probs = np.empty(first[-1])
        for place, batch, rows in self.by_batch(ids):
            some, at = _once(batch, rows)
            if isinstance(some, Categorical):
                probs[first[place][:, None] + np.arange(some.num_states)] = some.probs[at]
            else:
                values = [some.mean, some.std, some.mode, *some.quantile(list(QUANTILES.values()))]
                statistics[:, place] = np.stack(values)[:, at]
        columns: dict[str, Any] = {"atom": variables.names.render(ids)}
        for name, column in zip(STATISTICS, statistics, strict=True):
            columns[name] = pa.array(column, mask=size > 0)
        labels = pa.array(
            [None if d.states is None else list(d.states) for d in variables.domains],
            pa.list_(pa.string()),
        )
        columns["states"] = labels.take(pa.array(variables.domain_id[ids]))
        columns["probs"] = pa.ListArray.from_arrays(
            pa.array(first, pa.int32()), pa.array(probs), mask=pa.array(size == 0)
        )
        return pa.table(columns)

    def columns(self, variables: Variables, ids: NDArray[Any]) -> dict[str, Any]:
        """A column per statistic of reals, or per state; the variables have one domain."""
        table = self.to_arrow(variables, ids)
        domain = variables.domain(int(ids[0])) if len(ids) else None
        if domain is None or domain.states is None:
            return {name: table[name] for name in STATISTICS if name != "mode"}
        probs = pc.list_flatten(table["probs"]).to_numpy().reshape(len(ids), domain.num_states)
        if domain == boolean:
            return {"prob": probs[:, 1]}
        return {state: probs[:, place] for place, state in enumerate(domain.states)}

    def statistic(self, ids: NDArray[Any], name: str) -> NDArray[np.float64]:
        """(variable,): a statistic of reals, or as 'prob' the probability of being true, or of the
        likeliest state; NaN where a variable has none."""
        values = np.full(len(ids), np.nan)
        for place, batch, rows in self.by_batch(ids):
            some, at = _once(batch, rows)
            if isinstance(some, Categorical) != (name == "prob"):
                continue
            if name == "prob":
                values[place] = (some.probs[:, 1] if some.is_boolean else some.probs.max(axis=1))[
                    at
                ]
            elif name in QUANTILES:
                values[place] = some.quantile(QUANTILES[name])[at]
            else:
                values[place] = getattr(some, name)[at]
        return values

    def by_batch(
        self, ids: NDArray[Any]
    ) -> list[tuple[NDArray[np.int64], BatchedDistribution, NDArray[np.int32]]]:
        """Per batch: positions in `ids`, the batch, and the rows there."""
        which = self.batch[ids]
        found = []
        for number, batch in enumerate(self.batches):
            place = np.flatnonzero(which == number)
            if len(place):
                found.append((place, batch, self.row[ids[place]]))
        return found


def _once(
    batch: BatchedDistribution, rows: NDArray[np.int32]
) -> tuple[Any, NDArray[np.int32] | slice]:
    """Distributions, and the positions of rows among them; shared ones are evaluated once."""
    if batch.batch_shape[0] < len(rows):
        return batch, rows
    return batch[rows], slice(None)


def with_observed(
    graph: FactorGraph,
    hidden: NDArray[np.int64],
    of_hidden: Marginals | Batches,
) -> Marginals:
    """Marginals of all variables: these of the hidden ones, certainty for the observed.

    of_hidden: marginals, or positions in `hidden` and the distributions there.
    """
    if not isinstance(of_hidden, Marginals):
        of_hidden = Marginals.assemble(len(hidden), of_hidden)
    evidence, hard = graph.evidence, graph.evidence.is_hard
    seen = evidence.variable[hard], evidence.value[hard]
    return of_hidden.beside(graph.variables, hidden, *seen)


def categoricals(
    variables: Variables, start: NDArray[np.int64], probs: NDArray[np.float64]
) -> Batches:
    """Discrete variables by domain, with their distributions.

    start: (variable,), where its states begin in `probs`
    """
    found: Batches = []
    for number, domain in enumerate(variables.domains):
        ids = np.flatnonzero(variables.domain_id == number)
        if len(ids) and domain.states is not None:
            own = probs[start[ids][:, None] + np.arange(domain.num_states)]
            found.append((ids, Categorical(own / own.sum(axis=1, keepdims=True), domain.states)))
    return found
