"""Parts of a posterior: log Z, an assignment with its energy, how the solver ended."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hylift.errors import ArgumentError
from hylift.graph import Domain, Variables
from hylift.graph.names import hidden_or_all
from hylift.numerics.segments import offsets
from hylift.posterior.datasets import extra
from hylift.words import Doubt, counted, doubt

Kind = Literal["exact", "lower bound", "upper bound", "interval", "estimate"]
Result = Literal["converged", "max_steps", "out_of_time", "diverged", "stopped", "interrupted"]
"""Reason for termination; 'stopped' by a callback, 'interrupted' by Ctrl-C."""

Measure = Literal["free energy", "energy", "largest change"]
"""The quantity recorded at each step: the free energy, the lowest energy of an assignment so far
or the mean energy of chains, or the largest change of a message."""

ENDS: dict[Result, str] = {
    "converged": "converged",
    "max_steps": "not converged",
    "out_of_time": "out of time",
    "diverged": "diverged",
    "stopped": "stopped",
    "interrupted": "interrupted",
}
"""Reasons for termination, in words."""


EXACT = 1e-9
"""Error of a probability, and of log Z in units of its size if that is more than 1, up to which
answers are called exact."""


DOUBTFUL_ODDS = 0.1
"""Error of log-odds from which on rounding makes an answer doubtful."""


def is_exact(value: float, error: float, marginal_error: float, tolerance: float = EXACT) -> bool:
    """True if these errors of log Z and of probabilities are small enough to be called exact."""
    return marginal_error <= tolerance and error <= tolerance * max(1.0, abs(value))


def rounding_note(error: float, marginal_error: float) -> str:
    """A note on an answer that rounding keeps from being exact."""
    note = (
        f"Rounding may change log Z, and bounds on it, by about {error:.1e}, and log-odds by "
        f"{marginal_error:.1e}: the model's numbers differ too much in size. Smaller "
        "weights would help, or a typical value subtracted from columns of large numbers."
    )
    return note if marginal_error <= DOUBTFUL_ODDS else doubt(note)


@dataclass(frozen=True, slots=True)
class LogPartition:
    """The logarithm of the partition function, and how far to trust it."""

    value: float
    kind: Kind
    error: float = 0.0
    """Bound on, or estimate of, the numerical error of `value` beyond rounding. The value of an
    interval is its middle, and the error half its width."""
    at_least: float | None = None
    """A certain lower bound beside an estimate, where one is known."""

    @classmethod
    def between(cls, lower: float, upper: float) -> LogPartition:
        """The interval between two certain bounds."""
        middle = 0.5 * lower + 0.5 * upper
        # Rounded outwards: value ± error must not be narrower.
        error = max(upper - middle, middle - lower, 0.0) + np.spacing(abs(lower) + abs(upper))
        return cls(float(middle), "interval", float(error))

    @property
    def lower(self) -> float:
        """A certain lower bound; -inf where none is known."""
        known = -np.inf if self.at_least is None else self.at_least
        return known if self.kind in ("upper bound", "estimate") else self.value - self.error

    @property
    def upper(self) -> float:
        """A certain upper bound; inf where none is known."""
        return np.inf if self.kind in ("lower bound", "estimate") else self.value + self.error

    def __float__(self) -> float:
        return self.value

    def shown(self, digits: int) -> str:
        """The value with so many digits, or both ends of an interval."""
        if self.kind == "interval":
            return f"{self.lower:.{digits}g} to {self.upper:.{digits}g}"
        return f"{self.value:.{digits}g}"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class History:
    """The objective and the size of the problem at each step of a solver."""

    seconds: NDArray[np.float64]  # (step,): since the start
    objective: NDArray[np.float64]  # (step,)
    num_classes: NDArray[np.int64]  # (step,): of variables
    level: NDArray[np.int32]  # (step,): of a coarse-to-fine run, from 0
    measure: Measure = "free energy"
    """The quantity in `objective`."""

    def __post_init__(self) -> None:
        arrays = (self.seconds, self.objective, self.num_classes, self.level)
        if len({array.shape for array in arrays}) > 1 or self.seconds.ndim != 1:
            raise ArgumentError("the columns of a history must have one entry per step")
        for array in arrays:
            array.flags.writeable = False

    def __len__(self) -> int:
        return len(self.seconds)

    def __repr__(self) -> str:
        return f"History({counted(len(self), 'step')})"

    def to_arrow(self) -> pa.Table:
        """Columns seconds, objective, num_classes and level, one row per step."""
        names = ("seconds", "objective", "num_classes", "level")
        return pa.table({name: getattr(self, name) for name in names})


@dataclass(frozen=True, slots=True)
class Solution:
    """The outcome of a solver: termination, steps, time and notes."""

    method: str
    seed: int
    result: Result
    steps: int
    seconds: float
    objective: float | None
    notes: tuple[str, ...] = ()
    """Remarks on this answer for the user, in sentences."""
    history: History | None = field(default=None, compare=False, repr=False)
    """The steps of an iterative solver."""
    predicted_seconds: float | None = field(default=None, compare=False)
    """The time that the plan of exact inference predicted; not saved."""
    marginal_error: float | None = field(default=None, compare=False)
    """The error that exact inference leaves to any probability; not saved."""
    is_certified: bool = False
    """True if it is proven that marginals are exact, up to `marginal_error`."""

    @property
    def doubts(self) -> tuple[str, ...]:
        """The notes that say why this answer may be wrong."""
        return tuple(note for note in self.notes if isinstance(note, Doubt))


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Assignment:
    """A value for every variable, and its energy -log ψ."""

    variables: Variables
    values: NDArray[np.float64]  # (variable,): states and reals
    observed: NDArray[np.bool_]  # (variable,)
    energy: float
    kind: Kind
    gap: float = np.inf
    """Bound on how much lower the energy of another assignment is, where known; not saved."""

    def __repr__(self) -> str:
        count = counted(len(self.values), "variable")
        return f"Assignment({count}, energy {self.energy:.6g}, {self.kind})"

    def __getitem__(self, name: str) -> str | float:
        return self._decoded(self.variables.id(name))

    def _decoded(self, variable: int) -> str | float:
        return decoded(self.variables.domain(variable), self.values[variable])

    def to_dict(self, ids: NDArray[np.int64] | None = None) -> dict[str, str | float]:
        """Values by name, states by label; by default those of hidden variables."""
        ids = np.flatnonzero(~self.observed) if ids is None else ids
        names = self.variables.names.render(ids).to_pylist()
        return {
            name: self._decoded(variable)
            for name, variable in zip(names, ids.tolist(), strict=True)
        }

    def to_arrow(self, ids: NDArray[np.int64] | None = None) -> pa.Table:
        """Columns atom, state (of a discrete variable) and value (of a real)."""
        ids = np.flatnonzero(~self.observed) if ids is None else ids
        labels = pa.array([label for d in self.variables.domains for label in d.states or ()])
        first = offsets([d.num_states for d in self.variables.domains])
        is_real = self.variables.num_states[ids] == 0
        values = self.values[ids]
        state = first[self.variables.domain_id[ids]] + np.where(is_real, 0, values).astype(np.int64)
        return pa.table(
            {
                "atom": self.variables.names.render(ids),
                "state": labels.cast(pa.string()).take(pa.array(state, mask=is_real)),
                "value": pa.array(values, mask=~is_real),
            }
        )

    def table(self, predicate: str) -> pa.Table:
        """The values of the hidden atoms of a predicate, or of all where all are observed, with a
        column per argument, and state (of discrete variables) or value (of reals)."""
        every, _ = self.variables.names.predicate(predicate)
        return self.table_of(hidden_or_all(every, self.observed))

    def table_of(self, ids: NDArray[np.int64]) -> pa.Table:
        """The table of `table`, for atoms of one predicate by id."""
        found, is_real = self.to_arrow(ids), self.variables.num_states[ids[0]] == 0
        name = "value" if is_real else "state"
        columns = self.variables.names.arguments_of(ids)
        columns.setdefault(name, found[name])  # an argument may have this name
        return pa.table(columns)

    def to_pandas(self, predicate: str | None = None) -> Any:
        """The table of a predicate, or of `to_arrow` of all hidden variables, as a pandas
        DataFrame."""
        extra("pandas")
        return (self.to_arrow() if predicate is None else self.table(predicate)).to_pandas()

    def to_polars(self, predicate: str | None = None) -> Any:
        """The table of a predicate, or of `to_arrow` of all hidden variables, as a Polars
        DataFrame."""
        found = self.to_arrow() if predicate is None else self.table(predicate)
        return extra("polars").from_arrow(found)


def decoded(domain: Domain, value: float) -> str | float:
    """The label of a state, or the value of a real."""
    return float(value) if domain.states is None else domain.states[int(value)]
