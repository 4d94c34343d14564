"""Draws from a posterior, for xarray and ArviZ."""

from __future__ import annotations

import warnings
from importlib import metadata
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
    solution, log_z = posterior.solution, posterior.log_partition
    if posterior.draws is not None:
        draws, kind = _of_sampler(posterior.draws, hidden, num_draws), "draws of Markov chains"
        seed = solution.seed
    else:
        size, rng = sample_arguments(num_draws or DRAWS, seed)
        datasets.check_size(size, len(hidden))
        if posterior.mixture is not None:
            values = posterior.mixture.sample(size, rng, hidden)
            kind = "independent draws of the mixture"
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
        UserWarning,
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
    some = draws.of(ids)
    if count == available:
        return some
    every = np.linspace(0, available - 1, count).round().astype(np.int64)
    return Draws(some.variables, some.ids, some.values[:, every])


def _version() -> str:
    try:
        return metadata.version("hylift")
    except metadata.PackageNotFoundError:  # run from a folder that was not installed
        return "unknown"
