"""Joint distributions and draws of a posterior, by whatever its method has found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hylift.errors import UnsupportedError
from hylift.graph import Evidence
from hylift.posterior.datasets import MAX_NUMBERS, check_size
from hylift.posterior.distributions.base import Seed, sample_arguments
from hylift.posterior.joint import JointDensity, JointDistribution, check_columns
from hylift.posterior.sampled import JointDraws
from hylift.posterior.target import agreed, conditioned
from hylift.words import Wording, method_call, worded

if TYPE_CHECKING:
    from hylift.posterior.posterior import Posterior

MOST_RUNS, MOST_SECONDS = 16, 2.0
"""Runs of exact inference, and their predicted time, for the joint states of a question."""

DRAWS, FEWEST_DRAWS = 10_000, 100
"""Draws of an exact posterior for a question; fewer of very many variables."""


def joint_of(
    posterior: Posterior,
    question: str,
    ids: NDArray[np.int64],
    seed: Seed = 0,
    num_draws: int | None = None,
) -> JointDistribution:
    """The joint distribution of some variables; an error that names the question if none is known.

    seed, num_draws: of the draws of an exact posterior.
    """
    variables = posterior.variables
    if not len(ids):
        raise UnsupportedError(f"{question} needs at least one atom")
    if len(ids) > 1:
        variables.check_alone(ids, question)
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
        most = int(np.clip(MAX_NUMBERS // num_hidden, FEWEST_DRAWS, DRAWS))
        size = most if num_draws is None else num_draws
        drawn = independent_draws(posterior, size, seed, ids[~seen])
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
    check_columns(len(ids))
    joint = joint_of(posterior, "sample(…)", ids, rng, size)
    if isinstance(joint, JointDraws) and joint.is_independent:  # as many as are asked for
        return pa.table(joint.columns(list(joint.draws.T)))
    return joint.sample(size, seed=rng)


def independent_draws(
    posterior: Posterior, size: int, seed: Seed, hidden: NDArray[np.int64]
) -> NDArray[np.float64] | None:
    """(draw, variable): independent draws of some hidden variables; None where the method has only
    distributions of single variables."""
    target = posterior.target
    if target is None or target.draw is None:
        return None
    if not target.draws_states and (posterior.variables.num_states[hidden] > 0).any():
        return None
    every = np.flatnonzero(~posterior.observed)
    check_size(size, len(every))
    _, rng = sample_arguments(size, seed)
    draws = target.draw(size, rng)[:, np.searchsorted(every, hidden)]
    return draws if target.draws_states else _with_marginals(posterior, hidden, draws)


def _with_marginals(
    posterior: Posterior, ids: NDArray[np.int64], draws: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Draws (draw, variable) with the ranks of these and the marginals of the posterior: a Gaussian
    copula, where these are of a joint Gaussian."""
    rank = draws.argsort(axis=0).argsort(axis=0)
    levels = (np.arange(len(draws)) + 0.5) / len(draws)
    for place, batch, rows in posterior.known_marginals().by_batch(ids):
        marginals: Any = batch[rows]
        draws[:, place] = np.take_along_axis(marginals.quantile(levels), rank[:, place], axis=0)
    return draws


def exact_probs(
    posterior: Posterior, ids: NDArray[np.int64], num_states: Sequence[int]
) -> NDArray[np.float64] | None:
    """The probability of each joint state of a few discrete variables, by inferring again given the
    states of all but the last; None where that is not cheap, or not exact."""
    seconds = posterior.solution.predicted_seconds
    runs = float(np.prod(np.array(num_states[:-1], dtype=np.float64)))
    if seconds is None or runs > MOST_RUNS or runs * seconds > MOST_SECONDS:
        return None
    return _chained(posterior, ids)


def _chained(posterior: Posterior, ids: NDArray[np.int64]) -> NDArray[np.float64] | None:
    """P(first) P(others | first), variable by variable."""
    if posterior.solution.method != "exact" or posterior.again is None:
        return None
    first = posterior.known_marginals()[int(ids[0])].probs
    if len(ids) == 1:
        return np.asarray(first)
    found = []
    for state in range(len(first)):
        # What is impossible cannot be given; any conditional will do.
        is_needed = 0 < first[state] < 1
        value = Evidence.of(ids[:1], np.array([float(state)]))
        others = _chained(posterior.again(value) if is_needed else posterior, ids[1:])
        if others is None:
            return None
        found.append(first[state] * others)
    return np.stack(found)


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
    name, target = posterior.solution.method, posterior.target
    if target is None and name in ("exact", "EP"):
        raise UnsupportedError(
            f"{question} needs the model, which is not saved with an {name} posterior: infer again"
        )
    which = "each variable only"
    if target is not None and target.draw is not None:
        which = "reals only: leave discrete atoms out"
    raise UnsupportedError(
        f"{question} needs a joint distribution, and {name} finds that of {which}",
        worded(
            "infer with ", Wording("Exact()", "--method exact"), ", ", method_call("Gibbs"),
            ", ", method_call("SMC"), " or ", method_call("BVI"),
        ),
    )  # fmt: skip
