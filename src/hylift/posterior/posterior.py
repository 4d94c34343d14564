"""The result of inference."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray

from hylift.errors import ModelError, UnsupportedError
from hylift.files import check_target
from hylift.graph import Evidence, Variables, without_repeats
from hylift.graph.names import hidden_or_all
from hylift.posterior import datasets
from hylift.posterior.answers import Assignment, LogPartition, Solution
from hylift.posterior.comparison import ASK_FOR_MARGINALS, Comparison, compare
from hylift.posterior.counts import expected_counts
from hylift.posterior.datasets import extra
from hylift.posterior.distributions.base import Seed
from hylift.posterior.draws import Draws, sample_dataset, sample_inference_data
from hylift.posterior.formulas import Formula, expected, probability
from hylift.posterior.joint import JointDistribution
from hylift.posterior.mapped import Joint
from hylift.posterior.marginals import Marginals
from hylift.posterior.questions import given, joint_of, sample_of
from hylift.posterior.summary import TOP, Summary, check_rank, summary_of
from hylift.posterior.summing import Expectation
from hylift.posterior.target import Target, energy_of
from hylift.posterior.trust import Trust, trust_of
from hylift.words import counted, shortened_notes, worded


@dataclass(frozen=True, slots=True, eq=False)
class Posterior:
    """The posterior of a model given its evidence: marginals, joints, MAP, log Z and draws."""

    variables: Variables
    observed: NDArray[np.bool_]  # (variable,): observed without error
    solution: Solution
    log_partition: LogPartition | None = None
    """log Z with its kind; None if it was not requested."""
    all_marginals: Marginals | None = None
    assignment: Assignment | None = None
    mixture: Joint | None = None
    """The joint distribution of the hidden variables that variational inference found."""
    target: Target | None = None
    """The approximated distribution, for energies and the MAP assignment; not saved."""
    draws: Draws | None = None
    """The draws of a sampler, with their diagnostics."""
    checked: Trust | None = None
    """The trust that an independent check has found; None where there was none."""
    again: Callable[[Evidence], Posterior] | None = None
    """The same inference with more evidence; not saved."""

    def __post_init__(self) -> None:
        self.observed.flags.writeable = False
        if self.all_marginals is not None:
            self.all_marginals.check(self.variables)
        if self.mixture is not None:
            self.mixture.check(self.variables)
            if not np.array_equal(self.mixture.hidden, np.flatnonzero(~self.observed)):
                raise ModelError("the mixture must cover exactly the hidden variables")

    @property
    def trust(self) -> Trust:
        """The verdict on this answer, a sentence why, and the error of each marginal."""
        if self.checked is None or (self.checked.verdict == "unchecked" and self.solution.doubts):
            return trust_of(self)
        return self.checked

    def marginal(self, atom: str) -> Any:
        """The distribution of one variable.

        A real has `mean, var, std, mode, entropy, pdf(x), cdf(x), quantile(p), interval(mass),
        sample(size, seed=…)`; a discrete variable has `probs, states, prob(state), mode, entropy`.
        """
        return self.known_marginals()[self.variables.id(atom)]

    def marginals(
        self, atoms: str | Iterable[str] | None = None, *, observed: bool = False
    ) -> pa.Table:
        """Marginals as an Arrow table, one row per variable.

        `atoms`: names and patterns such as `posA(*)`, observed or not, or predicates, which stand
        for their atoms that are not observed (for all of them where all are); by default all
        variables that are not observed, or with `observed` all there are.
        Reals fill the columns mean, std, mode, q05, q50, q95; discrete variables states, probs;
        verdict has the trust in each (see `trust`). Of a lifted graph, a predicate has a row for
        each class of its atoms, and size says how many these are. For data frames: `to_pandas()`,
        `to_polars()`.
        """
        names = self.variables.names
        if atoms is None or not names.has_members:
            return self.marginals_of(self.select(atoms, observed=observed))
        own = names.spelt(atoms, self.observed)
        return self.marginals_of(self.variables.ids(own.to_pylist())).set_column(0, "atom", own)

    def marginals_of(self, ids: NDArray[np.int64]) -> pa.Table:
        """The table of `marginals`, for variables by id."""
        table = self.known_marginals().to_arrow(self.variables, ids)
        for name, column in self._sizes(ids).items():
            table = table.append_column(name, column)
        return table.append_column("verdict", self.trust.column(ids))

    def _sizes(self, ids: NDArray[np.int64]) -> dict[str, pa.Array]:
        """The number of atoms that each variable stands for, where some stand for several."""
        size = self.variables.multiplicity
        return {} if (size == 1).all() else {"size": pa.array(size[ids])}

    def table(self, predicate: str, *, observed: bool = False) -> pa.Table:
        """Marginals of one predicate as an Arrow table with a column per argument.

        Reals have mean, std, q05, q50 and q95, Booleans prob (of being true), categorical variables
        a column per state; verdict has the trust in each. Rows are the atoms that are not observed,
        or all where all are; with `observed` always all. Arguments are whole numbers, dates or
        moments where the tables of the evidence have them so, else text.
        """
        every, _ = self.variables.names.predicate(predicate)
        return self.table_of(every if observed else hidden_or_all(every, self.observed))

    def table_of(self, ids: NDArray[np.int64]) -> pa.Table:
        """The table of `table`, for atoms of one predicate by id."""
        arguments = self.variables.names.arguments_of(ids)
        found = {**arguments, **self.known_marginals().columns(self.variables, ids)}
        for name, column in (self._sizes(ids) | {"verdict": self.trust.column(ids)}).items():
            found.setdefault(name, column)  # an argument may have this name
        return pa.table(found)

    def joint(self, atoms: str | Iterable[str], *, seed: int = 0) -> JointDistribution:
        """The joint distribution of some atoms, by names, predicates or patterns.

        It has `pdf(values)`, `probs()`, `table()`, `mean`, `cov`, `corr`, `sample(size, seed=…)`.
        Of BVI, NPVI and MeanField it is that of the mixture, of Gibbs and SMC that of their draws,
        and of Exact that of 10,000 independent draws with this seed. Draws have no density of
        reals. Other methods know the distribution of each variable only, and refuse.
        """
        return joint_of(self, "joint(…)", self._each_once(atoms), seed)

    def given(self, values: Mapping[str, object]) -> Posterior:
        """The posterior given further values: `{"posA(a1)": 2.5, "rain": True}`.

        Of a mixture this reweights the components and does not infer again, so there is no log Z,
        and the only MAP assignment is the mode of the mixture, `map(polish=False)`. For these,
        observe the values and infer again. Other methods infer again with the same settings.
        """
        return given(self, values)

    def prob(self, formula: str, *, seed: int = 0) -> Expectation:
        """The probability of a formula in the language of models: `prob("level(a) > level(b)")`.

        Words in brackets are constants, comparisons are exact, and `Kind(a, red)` is a state. It
        is a sum where all is discrete and the method has one, else by draws with this seed.
        `.error` is the error of that sum or average beside the posterior, whose own is in `trust`.
        """
        return probability(self, formula, seed)

    def expect(
        self,
        function: Callable[..., Any] | str,
        atoms: str | Iterable[str] | None = None,
        *,
        seed: int = 0,
    ) -> Expectation:
        """The mean of a function of some atoms: `expect(lambda x, y: x * y, ["a", "b"])`; or
        of a term, as in `prob`: `expect("level(a) - level(b)")`.

        The function is given whole arrays, one per atom in this order, and returns one; states
        are given by position, so that false is 0 and true is 1. Of a mixture by Gauss quadrature
        where its grid is small, else by draws with this seed; `.error` estimates the error of
        `.value` beside the posterior.
        """
        if isinstance(function, str):
            if atoms is not None:
                raise UnsupportedError("a term names its atoms itself: leave them out")
            return expected(self, Formula.of(self.variables, function), "expect(…)", seed)
        if atoms is None:
            raise UnsupportedError("expect(…) of a function needs the atoms that it is given")
        joint = joint_of(self, "expect(…)", self._each_once(atoms), seed)
        return joint.expect(function, seed=seed)

    def expected_counts(self) -> pa.Table:
        """The expected statistic of each rule: a row per rule, with rule, weight, statistic and
        expected.

        Of a rule with a weight it is the formula summed over all groundings: the number that
        hold, or the sum of a numeric term. Of a rule without one, hard or a density, it is the sum
        of log-values. Observed atoms count with their values. Graphs that do not come from a
        model have a row per group of factors.
        """
        return expected_counts(self)

    def sample(
        self, size: int, *, seed: Seed, atoms: str | Iterable[str] | None = None
    ) -> pa.Table:
        """Joint draws as an Arrow table: a row per draw, a column per atom, states by label.

        They are independent; but of Gibbs and SMC they are taken from the draws of the run.

        `atoms`: names, predicates or patterns; by default all variables that are not observed.
        """
        return sample_of(self, self.select(atoms), size, seed)

    def map(self, *, polish: bool = True) -> Assignment:
        """The most probable joint assignment found, with its energy.

        Without `polish` it is the mode of the mixture; with it, that and other candidates are
        improved on the model itself. Unless 'map' was among the tasks, every call computes it
        again: keep the result.
        """
        if not polish and self.mixture is not None:
            return self._assignment(self.mixture.mode()[0])
        if self.assignment is not None:
            return self.assignment
        if self.target is None:
            always = "; map(polish=False), also after given(…), is the mode of the mixture"
            raise UnsupportedError(
                "this posterior has no MAP assignment: ask for the task 'map' before saving it"
                + (always if self.mixture is not None else "")
            )
        return self.target.map(self.mixture)

    def compare(self, other: Posterior, atoms: str | Iterable[str] | None = None) -> Comparison:
        """The distances of another posterior's marginals from these, which are trusted.

        `exact.compare(found).mean_kl` is the mean of KL(exact || found). `atoms`: names,
        predicates or patterns; by default all variables that are not observed.
        """
        if not isinstance(other, Posterior):
            raise UnsupportedError(f"compare(…) takes another posterior, not {other!r}")
        return compare(self, other, self.select(atoms))

    def marginal_map(self) -> Assignment:
        """The mode of each marginal, and the energy of the joint assignment."""
        return self._assignment(self.known_marginals().modes(np.flatnonzero(~self.observed)))

    def energy(self, values: Assignment | Mapping[str, object] | ArrayLike) -> float:
        """The energy -log ψ of an assignment; lower is more probable.

        `values`: an assignment, values by name of all variables that are not observed, or an
        array (variable,) of states and reals. Observed variables have the values that were seen.
        """
        return energy_of(self, values)

    def with_note(self, note: str) -> Posterior:
        """The same posterior with one more note, in first place."""
        return replace(self, solution=replace(self.solution, notes=(note, *self.solution.notes)))

    def select(
        self, atoms: str | Iterable[str] | None = None, *, observed: bool = False
    ) -> NDArray[np.int64]:
        """Ids of the variables that match names, predicates and patterns, in their order.

        A predicate selects its hidden atoms, or all if all are observed; names and patterns select
        observed atoms, too. No variable is repeated. An unknown name is an error.
        """
        if atoms is None:
            return np.arange(len(self.variables)) if observed else np.flatnonzero(~self.observed)
        return without_repeats(self.variables.matching(atoms, self.observed))

    def to_pandas(self, predicate: str | None = None, *, observed: bool = False) -> Any:
        """The table of a predicate, or that of all marginals, as a pandas DataFrame.

        Rows are hidden atoms (see `table`); with `observed`, observed ones as well.
        """
        extra("pandas")
        return self._table(predicate, observed).to_pandas()

    def to_polars(self, predicate: str | None = None, *, observed: bool = False) -> Any:
        """The table of a predicate, or that of all marginals, as a Polars DataFrame.

        Rows are hidden atoms (see `table`); with `observed`, observed ones as well.
        """
        return extra("polars").from_arrow(self._table(predicate, observed))

    def to_xarray(
        self,
        atoms: str | Iterable[str] | None = None,
        *,
        draws: int | None = None,
        seed: int = 0,
    ) -> Any:
        """Draws of the hidden variables as an `xarray.Dataset`, with a variable per predicate.

        Its axes are chain, draw, and one per argument with its constants as coordinates, or one
        axis of atoms if these do not fill the grid of their arguments. States are numbers, with
        their labels in the attribute `states`. The draws are

        - of BVI, NPVI and MeanField: independent joint draws of the mixture, with this seed;
        - of Gibbs: its own draws, all, or `draws` of each chain, evenly spread;
        - of methods with marginals only: independent draws of each variable, with a warning.

        `draws`: by default 1,000, or all of a sampler. Needs the extra `arviz`.
        """
        return sample_dataset(self, self.select(atoms, observed=True), draws, seed)

    def to_arviz(
        self,
        atoms: str | Iterable[str] | None = None,
        *,
        draws: int | None = None,
        seed: int = 0,
    ) -> Any:
        """The draws of `to_xarray` as an `arviz.InferenceData`.

        Observed atoms are in its group observed_data.
        """
        return sample_inference_data(self, self.select(atoms, observed=True), draws, seed)

    def to_netcdf(
        self,
        path: str | Path,
        atoms: str | Iterable[str] | None = None,
        *,
        draws: int | None = None,
        seed: int = 0,
    ) -> None:
        """Write the data of `to_arviz` to a file for `arviz.from_netcdf`."""
        check_target(path)
        datasets.write_netcdf(self.to_arviz(atoms, draws=draws, seed=seed), path)

    def write(
        self,
        path: str | Path,
        atoms: str | Iterable[str] | None = None,
        *,
        arguments: bool = False,
        by: str | None = None,
        top: int | None = None,
    ) -> None:
        """Write the answers to a file in the format of its ending.

        Marginals: .csv, .parquet, .arrow; all answers: .json; draws: .nc (NetCDF, see `to_netcdf`).
        `arguments`: a column per argument, as in `table`, for atoms of one predicate. `by` and
        `top`: only so many atoms, with the largest numbers (see `summary`). To ask more questions
        later, `save` the posterior.
        """
        from hylift.posterior.export import write

        write(self, path, atoms, arguments=arguments, by=by, top=top)

    def summary(
        self,
        atoms: str | Iterable[str] | None = None,
        *,
        by: str | None = None,
        top: int = TOP,
    ) -> Summary:
        """The verdict, the atoms with the largest numbers, and the notes; it prints as text.

        `by`: 'prob' (of being true, or of the likeliest state), or 'mean', 'std', 'mode', 'q05',
        'q50' or 'q95' of reals; by default 'prob', or 'mean' where all atoms are reals.
        """
        check_rank(by, top)
        return summary_of(self, self.select(atoms), by, top)

    def _each_once(self, atoms: str | Iterable[str]) -> NDArray[np.int64]:
        """Ids of the variables with matching names; an error if one matches twice."""
        ids = self.variables.matching(atoms, self.observed)
        _, first, count = np.unique(ids, return_index=True, return_counts=True)
        if (count > 1).any():
            twice = self.variables.names[int(ids[first[count > 1].min()])]
            raise UnsupportedError(f"'{twice}' is asked for twice: name each atom once")
        return ids

    def _table(self, predicate: str | None, observed: bool) -> pa.Table:
        if predicate is None:
            return self.marginals(observed=observed)
        return self.table(predicate, observed=observed)

    def _assignment(self, hidden_values: NDArray[np.float64]) -> Assignment:
        """An assignment of hidden values and the observed ones; its energy is NaN if loaded."""
        values = np.empty(len(self.variables))
        values[~self.observed] = hidden_values
        values[self.observed] = self.known_marginals().modes(np.flatnonzero(self.observed))
        energy = self.target.energy(values) if self.target is not None else np.nan
        return Assignment(self.variables, values, self.observed, energy, "estimate")

    def known_marginals(self) -> Marginals:
        """All marginals; an error if there are none."""
        if self.all_marginals is None:
            raise UnsupportedError(
                "this posterior has no marginals",
                worded(ASK_FOR_MARGINALS, ", and with a method that finds them"),
            )
        return self.all_marginals

    def save(self, path: str | Path) -> None:
        """Save the posterior to one file, for `Posterior.load`."""
        from hylift.posterior.storage import save

        save(self, path)

    @classmethod
    def load(cls, path: str | Path, *, max_bytes: int | None = None) -> Posterior:
        """Load a saved posterior; the file cannot execute code.

        max_bytes: most memory that its arrays may take; without it 256 MB, or 20 times the file.
        """
        from hylift.posterior.storage import load

        return load(path, max_bytes)

    @property
    def described(self) -> str:
        """The size, the method and log Z in words."""
        log_z = self.log_partition
        total = f", log Z = {log_z.shown(6)} ({log_z.kind})" if log_z else ""
        hidden = counted(int(np.count_nonzero(~self.observed)), "hidden variable")
        result = self.solution.result
        ended = "" if result == "converged" else f", not converged ({result})"
        return f"{hidden}, method {self.solution.method}{ended}{total}"

    def __repr__(self) -> str:
        notes = shortened_notes(self.solution.notes, self.solution.doubts)
        return f"Posterior({self.described}, {self.trust.verdict}{notes})"
