"""What inference returns."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hylift.errors import UnsupportedError
from hylift.graph import Variables
from hylift.posterior.answers import Assignment, LogPartition, Solution
from hylift.posterior.marginals import Marginals


@dataclass(frozen=True, slots=True, eq=False)
class Posterior:
    """The answers to a model and its evidence; every question is a method or an attribute."""

    variables: Variables
    observed: NDArray[np.bool_]  # (variable,): observed without error
    solution: Solution
    log_partition: LogPartition | None = None
    """log Z with its kind; None where it was not asked for."""
    all_marginals: Marginals | None = None
    assignment: Assignment | None = None
    find_assignment: Callable[[], Assignment] | None = None
    """Computes the MAP assignment where it was not asked for at once; not saved."""

    def __post_init__(self) -> None:
        self.observed.flags.writeable = False

    def marginal(self, atom: str) -> Any:
        """The distribution of one variable.

        A real has `mean, var, std, mode, entropy, pdf(x), cdf(x), quantile(p), interval(mass),
        sample(size, seed=…)`; a discrete variable has `probs, states, prob(state), mode, entropy`.
        """
        return self._marginals()[self.variables.names.id(atom)]

    def marginals(
        self, atoms: str | Iterable[str] | None = None, *, observed: bool = False
    ) -> pa.Table:
        """Marginals as an Arrow table, one row per variable.

        `atoms`: names, or patterns such as `posA(*)`, observed or not; by default all variables
        that are not observed, or with `observed` all there are.
        Reals fill the columns mean, var, mode, q05, q50, q95; discrete variables states, probs.
        For data frames: `.to_pandas()`, or `polars.from_arrow(…)`.
        """
        return self.marginals_of(self.select(atoms, observed=observed))

    def marginals_of(self, ids: NDArray[np.int64]) -> pa.Table:
        """The table of `marginals`, for variables by id."""
        return self._marginals().to_arrow(self.variables, ids)

    def table(self, predicate: str, *, observed: bool = False) -> pa.Table:
        """Marginals of one predicate as an Arrow table with a column per argument.

        Reals have mean, std, q05, q50 and q95, Booleans prob (of being true), categorical variables
        a column per state. Observed atoms are left out unless asked for.
        """
        ids, block = self.variables.names.predicate(predicate)
        keep = np.ones(len(ids), dtype=bool) if observed else ~self.observed[ids]
        arguments = {
            label: column.filter(pa.array(keep))
            for label, column in block.argument_columns().items()
        }
        return pa.table({**arguments, **self._marginals().columns(self.variables, ids[keep])})

    def map(self) -> Assignment:
        """The most probable joint assignment, with its energy.

        Where 'map' was not among the tasks it is computed at every call: keep the result.
        """
        if self.assignment is not None:
            return self.assignment
        if self.find_assignment is None:
            raise UnsupportedError(
                "this posterior has no MAP assignment: ask for the task 'map' before saving it"
            )
        return self.find_assignment()

    def select(
        self, atoms: str | Iterable[str] | None = None, *, observed: bool = False
    ) -> NDArray[np.int64]:
        """Ids of the variables whose names match a pattern, in the order of the patterns.

        An unknown name is an error.
        """
        if atoms is None:
            return np.arange(len(self.variables)) if observed else np.flatnonzero(~self.observed)
        patterns = [atoms] if isinstance(atoms, str) else list(atoms)
        chosen = [self.variables.names.matching(pattern) for pattern in patterns]
        ids = np.concatenate([np.zeros(0, dtype=np.int64), *chosen])
        _, first = np.unique(ids, return_index=True)
        return ids[np.sort(first)]

    def _marginals(self) -> Marginals:
        if self.all_marginals is None:
            raise UnsupportedError(
                "this posterior has no marginals: run infer(…) with 'marginals' among the tasks"
            )
        return self.all_marginals

    def save(self, path: str | Path) -> None:
        """Writes the posterior to one file that `Posterior.load` reads."""
        from hylift.posterior.storage import save

        save(self, path)

    @classmethod
    def load(cls, path: str | Path) -> Posterior:
        """A posterior that was saved; nothing in the file is run."""
        from hylift.posterior.storage import load

        return load(path)

    def __repr__(self) -> str:
        log_z = self.log_partition
        total = f", log Z = {log_z.value:.6g} ({log_z.kind})" if log_z else ""
        hidden = int(np.count_nonzero(~self.observed))
        return f"Posterior({hidden} hidden variables, method {self.solution.method}{total})"
