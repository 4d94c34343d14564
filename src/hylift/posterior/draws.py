"""Draws of a sampler with convergence diagnostics, and draws from any posterior for ArviZ."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from importlib import metadata
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hylift.errors import ArgumentError, HyliftWarning, UnsupportedError
from hylift.graph import Variables, boolean, without_repeats
from hylift.numerics.segments import inverse, slices
from hylift.posterior import datasets
from hylift.posterior.datasets import check_size, dataset, extra, inference_data
from hylift.posterior.distributions.base import normalized, real_array, sample_arguments
from hylift.posterior.joint import check_columns, labelled_column
from hylift.posterior.mixing import (
    Diagnostics,
    StandardErrors,
    by_weight,
    diagnosed,
    weighted_moments,
)
from hylift.posterior.questions import independent_draws
from hylift.words import method_call, worded

if TYPE_CHECKING:
    from hylift.posterior.posterior import Posterior


FloatArray = NDArray[np.float64]

BLOCK = 1 << 22
"""Numbers that are processed together."""

MOST_BY_ARVIZ = 1000
"""Most variables diagnosed by ArviZ, which takes some milliseconds for each."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Draws:
    """The values of the hidden variables in every draw of every chain.

    States are numbers from 0, so that the mean of a Boolean is the probability that it is true.
    """

    variables: Variables
    """All variables, observed ones too."""
    ids: NDArray[np.int64]  # (hidden variable,)
    values: FloatArray  # (chain, draw, hidden variable)
    weights: FloatArray | None = None  # (chain, hidden variable)
    """Weights of chains that are groups of particles with common ancestors: only the spread between
    groups tells how far off a mean may be."""
    errors: FloatArray | None = None  # (hidden variable,)
    """The error of a group's answer that is not an average of draws: of the probability of a state,
    or of a mean; NaN where it is unknown."""
    std_errors: FloatArray | None = None  # (hidden variable,)
    """The same of the deviation of a real, relative to it."""

    def __post_init__(self) -> None:
        if self.values.ndim != 3 or self.values.shape[2] != len(self.ids):
            raise ArgumentError(
                f"draws of {len(self.ids)} variables have the shape (chain, draw, {len(self.ids)}),"
                f" not {self.values.shape}"
            )
        if not ((self.ids >= 0) & (self.ids < len(self.variables))).all():
            raise ArgumentError("draws of a variable that does not exist")
        chains, _, count = self.values.shape
        for name, array, shape in (
            ("weights", self.weights, (chains, count)),
            ("errors", self.errors, (count,)),
            ("std_errors", self.std_errors, (count,)),
        ):
            if array is not None and array.shape != shape:
                raise ArgumentError(f"{name} of draws have the shape {shape}, not {array.shape}")
        if self.weights is not None:
            normalized("weights", real_array("weights", self.weights, low=0.0).T)
        self.values.flags.writeable = False

    def __repr__(self) -> str:
        chains, draws, count = self.values.shape
        return f"Draws({chains} chains of {draws} draws of {count} variables)"

    @property
    def mean(self) -> FloatArray:
        """(hidden variable,): average over all draws."""
        return weighted_moments(self.values, self.weights)[0]

    @property
    def mcse(self) -> FloatArray:
        """(hidden variable,): standard error of `mean`, by batch means over all chains.

        At most about one in three means is further off; and less than one in a hundred by more
        than three times that, where the chains have mixed.
        """
        return self.diagnostics().mcse

    def diagnostics(self) -> Diagnostics:
        """Standard errors, R-hat and effective sample sizes of all variables, without ArviZ."""
        num_states = self.variables.num_states[self.ids]
        found = [
            diagnosed(
                self.values[:, :, some],
                num_states[some],
                None if self.weights is None else self.weights[:, some],
            )
            for some in self._blocks()
        ]
        return Diagnostics(*np.concatenate([np.zeros((6, 0)), *found], axis=1))

    def standard_errors(self) -> StandardErrors:
        """Standard errors of the sampler's marginals: of probabilities, means and deviations."""
        error, std_error = self.errors, self.std_errors
        if error is None or std_error is None or np.isnan(error + std_error).any():
            found = self.diagnostics()
            error = found.mcse if error is None else np.where(np.isnan(error), found.mcse, error)
            if std_error is None:
                std_error = found.sd_error
            std_error = np.where(np.isnan(std_error), found.sd_error, std_error)
        is_real = self.variables.num_states[self.ids] == 0
        of_real, of_state = np.where(is_real, error, np.nan), np.where(is_real, np.nan, error)
        return StandardErrors(of_state, of_real, np.where(is_real, std_error, np.nan))

    def resampled(self) -> Draws:
        """The draws with those of each group repeated by its weight, so that all count the same."""
        if self.weights is None:
            return self
        return replace(self, values=by_weight(self.values, self.weights), weights=None)

    def to_arrow(self, atoms: str | Iterable[str] | None = None) -> pa.Table:
        """Columns chain, draw, and one per atom, states by label; one row per draw."""
        place = self._places(atoms)
        check_columns(len(place))
        chains, draws, _ = self.values.shape
        values = self.of(self.ids[place]).resampled().values
        columns: dict[str, Any] = {
            "chain": np.repeat(np.arange(chains), draws),
            "draw": np.tile(np.arange(draws), chains),
        }
        names = self.variables.names.render(self.ids[place]).to_pylist()
        for number, (name, at) in enumerate(zip(names, place.tolist(), strict=True)):
            domain = self.variables.domain(int(self.ids[at]))
            columns[name] = labelled_column(domain, values[:, :, number].reshape(-1))
        return pa.table(columns)

    def to_xarray(
        self,
        atoms: str | Iterable[str] | None = None,
        *,
        attributes: Mapping[str, Any] | None = None,
    ) -> Any:
        """An `xarray.Dataset`, a variable per predicate: axes chain, draw, and one per argument.

        States are numbers, with their labels in the attribute `states`. Needs xarray
        (the extra `arviz`).
        """
        some = self.of(self.ids[self._places(atoms)]).resampled()
        check_size(some.values[..., 0].size, len(some.ids))
        return dataset(self.variables, some.ids, some.values, attributes or {})

    def to_arviz(self, atoms: str | Iterable[str] | None = None) -> Any:
        """An `arviz.InferenceData` with the data set of `to_xarray` as its posterior."""
        return inference_data(self.to_xarray(atoms), None)

    def of(self, ids: NDArray[np.int64]) -> Draws:
        """The draws of some hidden variables."""
        if np.array_equal(ids, self.ids):
            return self
        place = self._positions(ids)
        return replace(
            self,
            ids=self.ids[place],
            values=self.values[:, :, place],
            weights=None if self.weights is None else self.weights[:, place],
            errors=None if self.errors is None else self.errors[place],
            std_errors=None if self.std_errors is None else self.std_errors[place],
        )

    def summary(self, atoms: str | Iterable[str] | None = None) -> pa.Table:
        """Columns atom, mean, sd, mcse, ess and r_hat, one row per variable.

        Bulk effective size and rank-normalised R-hat are ArviZ's, where it is installed, there are
        several chains and at most 1,000 variables, and else the simpler ones of `diagnostics()`.
        For a variable that never changed they are null. Means, sds and their errors are of reals
        and truth values: for other discrete variables they are null, and `marginals()` has the
        probabilities of their states.
        """
        own = self.of(self.ids[self._places(atoms)])
        found = own.diagnostics()
        ess = np.where(found.sd > 0, found.ess, np.nan)
        r_hat = np.where(found.sd > 0, found.r_hat, np.nan)
        changed = np.flatnonzero(found.sd > 0)
        arviz = _arviz_or_none() if len(changed) <= MOST_BY_ARVIZ else None
        if arviz is not None and len(changed) and len(self.values) > 1:
            data = arviz.convert_to_dataset({"value": own.values[:, :, changed]})
            ess[changed] = arviz.ess(data)["value"].to_numpy()
            # ArviZ divides 0 by 0 for a Boolean that is as often false as true.
            with np.errstate(divide="ignore", invalid="ignore"):
                ranked = arviz.rhat(data)["value"].to_numpy()
            r_hat[changed] = np.where(np.isnan(ranked), r_hat[changed], ranked)
        # State numbers have no meaning, except for Booleans.
        domains = self.variables.domains
        is_named = np.array([d.is_discrete and d != boolean for d in domains], dtype=bool)
        has_states = is_named[self.variables.domain_id[own.ids]]
        return pa.table(
            {
                "atom": self.variables.names.render(own.ids),
                "mean": pa.array(found.mean, mask=has_states),
                "sd": pa.array(found.sd, mask=has_states),
                "mcse": pa.array(found.mcse, mask=has_states),
                "ess": pa.array(ess, mask=np.isnan(ess)),
                "r_hat": pa.array(r_hat, mask=np.isnan(r_hat)),
            }
        )

    def _blocks(self) -> Iterator[slice]:
        """Blocks of variables of bounded size."""
        chains, draws, count = self.values.shape
        return slices(count, BLOCK // max(chains * draws, 1))

    def _places(self, atoms: str | Iterable[str] | None) -> NDArray[np.int64]:
        """Positions of the variables with matching names among the hidden ones."""
        if atoms is None:
            return np.arange(len(self.ids))
        observed = np.ones(len(self.variables), dtype=bool)
        observed[self.ids] = False
        return self._positions(without_repeats(self.variables.matching(atoms, observed)))

    def _positions(self, wanted: NDArray[np.int64]) -> NDArray[np.int64]:
        """Positions of variables among the hidden ones."""
        place = inverse(self.ids, len(self.variables))
        is_missing = place[wanted] < 0
        if is_missing.any():
            name = self.variables.names[int(wanted[np.argmax(is_missing)])]
            raise UnsupportedError(f"'{name}' is observed: there are no draws of it")
        return place[wanted]


def _arviz_or_none() -> Any:
    try:
        return extra("arviz")
    except UnsupportedError:
        return None


DRAWS = 1000
"""Default number, for posteriors without draws of their own."""


def sample_dataset(
    posterior: Posterior, ids: NDArray[np.int64], num_draws: int | None, seed: int
) -> Any:
    """An `xarray.Dataset` of draws of the hidden ones among the variables `ids`.

    Those of a sampler, or independent ones of the mixture, or of each marginal by itself;
    num_draws: by default 1,000, or all of a sampler.
    """
    if num_draws is not None and (not isinstance(num_draws, int | np.integer) or num_draws < 1):
        raise UnsupportedError(f"draws must be an integer of at least 1, not {num_draws!r}")
    hidden = ids[~posterior.observed[ids]]
    if not len(hidden):
        raise UnsupportedError(
            "there is nothing to draw: "
            + ("all these atoms are observed" if len(ids) else "no atoms were asked for")
        )
    posterior.variables.check_alone(hidden, "a set of joint draws")
    solution, log_z = posterior.solution, posterior.log_partition
    if posterior.draws is not None:
        draws, kind = _of_sampler(posterior.draws, hidden, num_draws), "draws of Markov chains"
        if posterior.draws.weights is not None:
            kind = "particles, by groups"
        elif solution.method.startswith("NPVI"):
            kind = "independent draws of the mixture"
        seed = solution.seed
    else:
        size, rng = sample_arguments(num_draws or DRAWS, seed)
        datasets.check_size(size, len(hidden))
        drawn = independent_draws(posterior, size, rng, hidden)
        if posterior.mixture is not None:
            values = posterior.mixture.sample(size, rng, hidden)
            kind = "independent draws of the mixture"
        elif drawn is not None:
            values, kind = drawn, "independent draws"
        else:
            values = posterior.known_marginals().sample(hidden, size, rng)
            kind = "draws of each variable by itself, without dependence"
            _warn_of_independence(solution.method)
        draws = Draws(posterior.variables, hidden, values[None])
    attributes: dict[str, Any] = {
        "inference_library": "hylift",
        "inference_library_version": _version(),
        "method": solution.method,
        "result": solution.result,
        "seed": solution.seed,
        "samples": kind,
        "samples_seed": seed,
    }
    if log_z is not None:
        attributes |= {"log_partition": log_z.value, "log_partition_kind": log_z.kind}
    return draws.to_xarray(attributes=attributes)


def sample_inference_data(
    posterior: Posterior, ids: NDArray[np.int64], num_draws: int | None, seed: int
) -> Any:
    """An `arviz.InferenceData` of the draws and of what was observed among the variables."""
    drawn = sample_dataset(posterior, ids, num_draws, seed)
    seen = ids[posterior.observed[ids]]
    observed = None
    if len(seen):
        values = posterior.known_marginals().modes(seen)
        observed = datasets.dataset(posterior.variables, seen, values, {})
    return datasets.inference_data(drawn, observed)


def _warn_of_independence(method: str) -> None:
    warnings.warn(
        worded(
            f"'{method}' finds the distribution of each variable only, so each is drawn by itself: "
            "pairs of variables look independent here. For joint draws infer with ",
            method_call("BVI"),
            " or ",
            method_call("Gibbs"),
        ),
        HyliftWarning,
        stacklevel=4,
    )


def _of_sampler(draws: Draws, ids: NDArray[np.int64], wanted: int | None) -> Draws:
    """The draws of some variables: all, or evenly spaced ones of each chain."""
    chains, available, _ = draws.values.shape
    count = available if wanted is None else wanted
    if count > available:
        raise UnsupportedError(
            f"each chain has {available:,} draws, not {count:,}",
            worded("infer again with ", method_call("Gibbs", draws=count)),
        )
    datasets.check_size(chains * count, len(ids))
    some = draws.of(ids).resampled()
    if count == available:
        return some
    every = np.linspace(0, available - 1, count).round().astype(np.int64)
    return replace(some, values=some.values[:, every])


def _version() -> str:
    try:
        return metadata.version("hylift")
    except metadata.PackageNotFoundError:  # run from a folder that was not installed
        return "unknown"
