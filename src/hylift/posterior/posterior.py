"""What inference returns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray

from hylift.errors import (
    EvidenceError,
    ImpossibleEvidenceError,
    ModelError,
    UnsupportedError,
)
from hylift.graph import Evidence, Variables
from hylift.posterior.answers import Assignment, LogPartition, Solution, decoded
from hylift.posterior.comparison import Comparison, compare
from hylift.posterior.distributions.base import Seed
from hylift.posterior.draws import Draws
from hylift.posterior.joint import JointDensity
from hylift.posterior.marginals import Marginals
from hylift.posterior.mixture import Expectation, Mixture
from hylift.posterior.target import Conditioned, Target
from hylift.words import listed


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
    mixture: Mixture | None = None
    """The joint distribution of the hidden variables that variational inference found."""
    target: Target | None = None
    """What was approximated, for energies and the MAP assignment; not saved."""
    draws: Draws | None = None
    """What a sampler has drawn, with its errors; not saved."""

    def __post_init__(self) -> None:
        self.observed.flags.writeable = False
        if self.mixture is not None:
            self.mixture.check(self.variables)
            if not np.array_equal(self.mixture.hidden, np.flatnonzero(~self.observed)):
                raise ModelError("the mixture is not about the variables that are hidden")

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

    def joint(self, atoms: str | Iterable[str]) -> JointDensity:
        """The joint distribution of some atoms, named or by patterns, observed or not.

        It has `pdf(values)`, `probs()`, `table()`, `mean`, `cov`, `corr`, `sample(size, seed=…)`.
        """
        return self._joint("joint(…)", self.select(atoms))

    def given(self, values: Mapping[str, object]) -> Posterior:
        """The posterior that also knows these values: `{"posA(a1)": 2.5, "rain": True}`.

        The components of the mixture are reweighted by how well they fit. Nothing is inferred
        anew, so there is no log Z; to do so, observe the values and infer again.
        """
        mixture = self._mixture("given(…)")
        if not isinstance(values, Mapping):
            raise UnsupportedError(
                f"given(…) takes a mapping from atoms to values, such as {{'rain': True}}, not "
                f"{values!r}"
            )
        found = Evidence.from_mapping(self.variables, values)
        found.check(self.variables)
        if not found.is_hard.all():
            raise UnsupportedError(
                "given(…) takes values without error: observe measurements and infer again"
            )
        new = found.variable[~self.observed[found.variable]].astype(np.int64)
        seen = np.flatnonzero(self.observed)
        known = self._marginals().modes(seen)
        self._check_agreement(found, Evidence.of(seen, known))
        value = found.value[~self.observed[found.variable]]
        try:
            mixture = mixture.given(new, value)
        except ImpossibleEvidenceError:
            wanted = listed([f"{atom} = {value}" for atom, value in list(values.items())[:5]])
            raise ImpossibleEvidenceError(
                f"every component of the mixture gives probability 0 to {wanted}"
            ) from None
        observed = self.observed.copy()
        observed[new] = True
        marginals = mixture.marginals(self.variables).beside(
            self.variables,
            mixture.hidden,
            np.concatenate([seen, new]),
            np.concatenate([known, value]),
        )
        note = "Components were reweighted by how well they fit what is given, not fitted anew."
        return replace(
            self,
            solution=replace(self.solution, notes=(note,)),
            observed=observed,
            log_partition=None,
            all_marginals=marginals,
            assignment=None,
            mixture=mixture,
            target=Conditioned(self.target, Evidence.of(new, value)) if self.target else None,
        )

    def expectation(
        self, function: Callable[..., Any], atoms: str | Iterable[str], *, seed: int = 0
    ) -> Expectation:
        """The mean of a function of some atoms: `expectation(lambda x, y: x * y, ["a", "b"])`.

        The function is given whole arrays, one per atom in this order, and returns one; states
        are given by position, so that false is 0 and true is 1. By Gauss quadrature where its
        grid is small, else by draws with this seed; `.error` tells how far to trust `.value`.
        """
        return self._joint("expectation(…)", self.select(atoms)).expectation(function, seed=seed)

    def sample(
        self, size: int, *, seed: Seed, atoms: str | Iterable[str] | None = None
    ) -> pa.Table:
        """Joint draws as an Arrow table, a row each, with a column per atom and states by label.

        `atoms`: names or patterns; by default all variables that are not observed.
        """
        return self._joint("sample(…)", self.select(atoms)).sample(size, seed=seed)

    def map(self, *, polish: bool = True) -> Assignment:
        """The most probable joint assignment that was found, with its energy.

        Without `polish` it is the mode of the mixture; with it, that and other candidates are
        improved on the model itself. Where 'map' was not among the tasks it is computed at every
        call: keep the result.
        """
        if not polish and self.mixture is not None:
            return self._assignment(self.mixture.mode()[0])
        if self.assignment is not None:
            return self.assignment
        if self.target is None:
            raise UnsupportedError(
                "this posterior has no MAP assignment: ask for the task 'map' before saving it"
            )
        return self.target.map(self.mixture)

    def compare(self, other: Posterior, atoms: str | Iterable[str] | None = None) -> Comparison:
        """How far the marginals of another posterior are from these, which are trusted.

        `exact.compare(found).mean_kl` is the mean of KL(exact || found). `atoms`: names or
        patterns; by default all variables that are not observed.
        """
        if not isinstance(other, Posterior):
            raise UnsupportedError(f"a posterior is compared with another one, not with {other!r}")
        return compare(self, other, self.select(atoms))

    def marginal_map(self) -> Assignment:
        """The most probable value of each variable by itself, and the energy of all together."""
        return self._assignment(self._marginals().modes(np.flatnonzero(~self.observed)))

    def energy(self, values: Assignment | Mapping[str, object] | ArrayLike) -> float:
        """The energy -log ψ of an assignment; lower is more probable.

        `values`: an assignment, values by name of all variables that are not observed, or an
        array (variable,) of states and reals. Observed variables have the values that were seen.
        """
        if self.target is None:
            raise UnsupportedError(
                "energies need the model, which is not saved with a posterior: infer again"
            )
        evidence = self.target.evidence
        seen = Evidence.of(evidence.variable[evidence.is_hard], evidence.value[evidence.is_hard])
        everything = np.full(len(self.variables), np.nan)
        if isinstance(values, Mapping):
            found = Evidence.from_mapping(self.variables, values)
            found.check(self.variables)
            everything[found.variable] = found.value
        else:
            array = values.values if isinstance(values, Assignment) else np.asarray(values, float)
            if array.shape != everything.shape:
                raise EvidenceError(
                    f"an assignment to {len(everything)} variables has as many values, "
                    f"not the shape {array.shape}"
                )
            everything[:] = array
        given = np.flatnonzero(~np.isnan(everything))
        self._check_agreement(Evidence.of(given, everything[given]), seen)
        everything[seen.variable] = seen.value
        left = np.flatnonzero(np.isnan(everything))
        if len(left):
            more = f" (and {len(left) - 1:,} more)" if len(left) > 1 else ""
            raise EvidenceError(
                f"an assignment needs a value for '{self.variables.names[int(left[0])]}'{more}"
            )
        Evidence.of(np.arange(len(everything)), everything).check(self.variables)
        return self.target.energy(everything)

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

    def _joint(self, question: str, ids: NDArray[np.int64]) -> JointDensity:
        mixture = self._mixture(question)
        if not len(ids):
            raise UnsupportedError(f"{question} is about at least one atom")
        known = np.full(len(ids), np.nan)
        seen = self.observed[ids]
        known[seen] = self._marginals().modes(ids[seen])
        return JointDensity(
            tuple(self.variables.names.render(ids).to_pylist()),
            tuple(self.variables.domain(variable) for variable in ids.tolist()),
            ids,
            known,
            mixture.of(np.sort(ids[~seen])),
        )

    def _assignment(self, hidden_values: NDArray[np.float64]) -> Assignment:
        """Values of the hidden variables beside those that were observed; NaN energy if loaded."""
        values = np.empty(len(self.variables))
        values[~self.observed] = hidden_values
        values[self.observed] = self._marginals().modes(np.flatnonzero(self.observed))
        energy = self.target.energy(values) if self.target is not None else np.nan
        return Assignment(self.variables, values, self.observed, energy, "estimate")

    def _check_agreement(self, given: Evidence, seen: Evidence) -> None:
        """Raises if a value that is given is not the one that was observed."""
        values = np.full(len(self.variables), np.nan)
        values[seen.variable] = seen.value
        known = values[given.variable]
        wrong = ~np.isnan(known) & (known != given.value)
        if wrong.any():
            at = int(np.argmax(wrong))
            variable = int(given.variable[at])
            domain = self.variables.domain(variable)
            raise EvidenceError(
                f"'{self.variables.names[variable]}' is observed as {decoded(domain, known[at])} "
                f"and cannot be {decoded(domain, given.value[at])}"
            )

    def _mixture(self, question: str) -> Mixture:
        if self.mixture is None:
            raise UnsupportedError(
                f"{question} needs a posterior of BVI, NPVI or MeanField; "
                "with Exact() observe more and infer again"
            )
        return self.mixture

    def _marginals(self) -> Marginals:
        if self.all_marginals is None:
            raise UnsupportedError(
                "this posterior has no marginals: run infer(…) with 'marginals' among the tasks, "
                "and with a method that finds them, which MaxWalkSAT does not"
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
