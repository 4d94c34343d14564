"""Draws from a posterior, for xarray and ArviZ."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hylift.errors import UnsupportedError
from hylift.posterior import datasets
from hylift.posterior.distributions.base import sample_arguments
from hylift.posterior.draws import Draws
from hylift.words import method_call, worded

if TYPE_CHECKING:
    from hylift.posterior.posterior import Posterior

DRAWS = 1000
"""Default number, for posteriors without draws of their own."""


@dataclass(frozen=True, slots=True, eq=False)
class Samples:
    """Draws of the hidden ones among the chosen variables, and their origin."""

    posterior: Posterior
    draws: Draws
    seen: NDArray[np.int64]  # (observed variable,): ids of the chosen ones
    kind: str
    seed: int

    @classmethod
    def of(
        cls,
        posterior: Posterior,
        ids: NDArray[np.int64],
        num_draws: int | None,
        seed: int,
    ) -> Samples:
        """Those of a sampler, or independent ones of the mixture, or of each marginal by itself.

        ids: of the chosen variables; num_draws: by default 1,000, or all of a sampler.
        """
        if num_draws is not None and (not isinstance(num_draws, int | np.integer) or num_draws < 1):
            raise UnsupportedError(f"draws must be an integer of at least 1, not {num_draws!r}")
        is_seen = posterior.observed[ids]
        hidden, seen = ids[~is_seen], ids[is_seen]
        if not len(hidden):
            raise UnsupportedError(
                "there is nothing to draw: "
                + ("all these atoms are observed" if len(ids) else "no atoms were asked for")
            )
        if posterior.draws is not None:
            draws = _of_sampler(posterior.draws, hidden, num_draws)
            return cls(posterior, draws, seen, "draws of Markov chains", posterior.solution.seed)
        size, rng = sample_arguments(num_draws or DRAWS, seed)
        datasets.check_size(size, len(hidden))
        if posterior.mixture is not None:
            values = posterior.mixture.sample(size, rng, hidden)
            kind = "independent draws of the mixture"
        else:
            values = posterior.known_marginals().sample(hidden, size, rng)
            kind = "draws of each variable by itself: they tell nothing of dependence"
            warnings.warn(
                worded(
                    f"'{posterior.solution.method}' knows the distribution of each variable only, "
                    "so each is drawn by itself: pairs of variables seem independent here. For "
                    "joint draws infer with ",
                    method_call("BVI"),
                    " or ",
                    method_call("Gibbs"),
                ),
                UserWarning,
                stacklevel=3,
            )
        return cls(posterior, Draws(posterior.variables, hidden, values[None]), seen, kind, seed)

    def dataset(self) -> Any:
        """An `xarray.Dataset` of the draws."""
        return self.draws.to_xarray(attributes=self._attributes())

    def inference_data(self) -> Any:
        """An `arviz.InferenceData` of the draws and of what was observed."""
        observed = None
        if len(self.seen):
            values = self.posterior.known_marginals().modes(self.seen)
            observed = datasets.dataset(self.posterior.variables, self.seen, values, {})
        return datasets.inference_data(self.dataset(), observed)

    def _attributes(self) -> dict[str, Any]:
        solution, log_z = self.posterior.solution, self.posterior.log_partition
        attributes: dict[str, Any] = {
            "inference_library": "hylift",
            "inference_library_version": _version(),
            "method": solution.method,
            "result": solution.result,
            "seed": solution.seed,
            "samples": self.kind,
            "samples_seed": self.seed,
        }
        if log_z is not None:
            attributes |= {"log_partition": log_z.value, "log_partition_kind": log_z.kind}
        return attributes


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
    some = draws.of(ids)
    if count == available:
        return some
    every = np.linspace(0, available - 1, count).round().astype(np.int64)
    return Draws(some.variables, some.ids, some.values[:, every])


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("hylift")
    except PackageNotFoundError:  # run from a folder that was not installed
        return "unknown"
