"""Joint distributions and draws of a posterior, by whatever its method has found."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NoReturn

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hylift.errors import UnsupportedError
from hylift.posterior.datasets import MAX_NUMBERS, check_size
from hylift.posterior.distributions.base import Seed, sample_arguments
from hylift.posterior.joint import JointDensity, JointDistribution, check_columns, labelled_column
from hylift.posterior.sampled import JointDraws
from hylift.posterior.target import agreed, conditioned
from hylift.words import Wording, method_call, worded

if TYPE_CHECKING:
    from hylift.posterior.posterior import Posterior

DRAWS, FEWEST_DRAWS = 10_000, 100
"""Draws of an exact posterior for a question; fewer of very many variables."""


def joint_of(
    posterior: Posterior, question: str, ids: NDArray[np.int64], seed: Seed = 0
) -> JointDistribution:
    """The joint distribution of some variables; an error that names the question if none is known.

    seed: of the draws of an exact posterior.
    """
    variables = posterior.variables
    if not len(ids):
        raise UnsupportedError(f"{question} needs at least one atom")
    known, seen = np.full(len(ids), np.nan), posterior.observed[ids]
    if seen.any():
        known[seen] = posterior.known_marginals().modes(ids[seen])
    atoms = tuple(variables.names.render(ids).to_pylist())
    domains = tuple(variables.domain(variable) for variable in ids.tolist())
    if posterior.mixture is not None:
        mixture = posterior.mixture.of(np.sort(ids[~seen]))
        return JointDensity(atoms, domains, ids, known, mixture)
    draws = posterior.draws
    if draws is None:
        num_hidden = max(1, int(np.count_nonzero(~posterior.observed)))
        size = int(np.clip(MAX_NUMBERS // num_hidden, FEWEST_DRAWS, DRAWS))
        drawn = exact_draws(posterior, size, seed, ids[~seen])
        if drawn is None:
            raise_unknown(posterior, question)
        values = np.tile(known, (1, size, 1))
        values[0][:, ~seen] = drawn
        return JointDraws(atoms, domains, values, is_independent=True)
    some = draws.of(ids[~seen])
    values, weights = np.tile(known, (*some.values.shape[:2], 1)), None
    values[..., ~seen] = some.values
    if some.weights is not None:
        weights = np.full((len(values), len(ids)), 1.0 / len(values))
        weights[:, ~seen] = some.weights
    return JointDraws(atoms, domains, values, weights)


def sample_of(posterior: Posterior, ids: NDArray[np.int64], size: int, seed: Seed) -> pa.Table:
    """The table of `Posterior.sample`."""
    size, rng = sample_arguments(size, seed)
    if posterior.mixture is not None or posterior.draws is not None:
        return joint_of(posterior, "sample(…)", ids).sample(size, seed=rng)
    check_columns(len(ids))
    hidden = ids[~posterior.observed[ids]]
    drawn = exact_draws(posterior, size, rng, hidden)
    if drawn is None:
        raise_unknown(posterior, "sample(…)")
    values = np.empty((size, len(ids)))
    values[:, ~posterior.observed[ids]] = drawn
    seen = ids[posterior.observed[ids]]
    if len(seen):
        values[:, posterior.observed[ids]] = posterior.known_marginals().modes(seen)
    names = posterior.variables.names.render(ids).to_pylist()
    domains = [posterior.variables.domain(variable) for variable in ids.tolist()]
    columns = zip(names, domains, values.T, strict=True)
    return pa.table({name: labelled_column(domain, column) for name, domain, column in columns})


def exact_draws(
    posterior: Posterior, size: int, seed: Seed, hidden: NDArray[np.int64]
) -> NDArray[np.float64] | None:
    """(draw, variable): independent draws of some hidden variables; None where the method has only
    distributions of single variables."""
    draw = None if posterior.target is None else posterior.target.draw
    if draw is None:
        return None
    every = np.flatnonzero(~posterior.observed)
    check_size(size, len(every))
    _, rng = sample_arguments(size, seed)
    return draw(size, rng)[:, np.searchsorted(every, hidden)]


def given(posterior: Posterior, values: Mapping[str, object]) -> Posterior:
    """The posterior given further values; see `Posterior.given`."""
    if posterior.mixture is not None:
        return conditioned(posterior, values)
    new = agreed(posterior, values)
    posterior.known_marginals()
    if posterior.again is None:
        raise UnsupportedError(
            "given(…) needs the model, which is not saved with a posterior: observe the values and "
            "infer again"
        )
    return posterior.again(new)


def raise_unknown(posterior: Posterior, question: str) -> NoReturn:
    """Raise the error of a question about joint distributions that the method does not know."""
    posterior.known_marginals()  # which other tasks leave out
    name = posterior.solution.method
    if posterior.target is None and name == "exact":
        raise UnsupportedError(
            f"{question} needs the model, which is not saved with an exact posterior: infer again"
        )
    raise UnsupportedError(
        f"{question} needs a joint distribution, and {name} finds that of each variable only",
        worded(
            "infer with ", Wording("Exact()", "--method exact"), ", ", method_call("Gibbs"),
            ", ", method_call("SMC"), " or ", method_call("BVI"),
        ),
    )  # fmt: skip
