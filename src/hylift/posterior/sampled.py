"""The joint distribution of a few atoms, by draws."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hylift.errors import UnsupportedError
from hylift.graph import Domain
from hylift.posterior.distributions.base import FloatOrArray, Seed, sample_arguments, unwrap
from hylift.posterior.joint import JointDistribution, check_arity, check_columns
from hylift.posterior.mixing import by_weight, error_of_groups, standard_error, widened
from hylift.posterior.summing import Expectation, evaluate
from hylift.words import method_call, worded

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class JointDraws(JointDistribution):
    """The joint distribution of some atoms by draws of them; observed ones are the same in all."""

    atoms: tuple[str, ...]
    domains: tuple[Domain, ...]
    values: FloatArray  # (chain, draw, atom): states and reals
    weights: FloatArray | None = None  # (chain, atom): see `Draws.weights`
    is_independent: bool = False
    """The draws of a chain do not depend on each other."""

    def __repr__(self) -> str:
        chains, draws, _ = self.values.shape
        return f"JointDraws({self.shown}; {chains * draws:,} draws)"

    @property
    def draws(self) -> FloatArray:
        """(draw, atom): all draws, so that all count the same."""
        values = self.values if self.weights is None else by_weight(self.values, self.weights)
        return values.reshape(-1, values.shape[2])

    def log_pdf(self, values: Mapping[str, Any]) -> FloatOrArray:
        points, shape = self.points(values)
        for atom, domain in zip(self.atoms, self.domains, strict=True):
            if domain.states is None:
                raise UnsupportedError(
                    f"'{atom}' is real, and draws have no density: use mean, cov, sample(…) or "
                    "expect(…)",
                    worded("or infer with ", method_call("BVI")),
                )
        found = self.probs()[tuple(points.astype(np.int64).T)]
        with np.errstate(divide="ignore"):
            return unwrap(np.log(found).reshape(shape))

    def probs(self) -> FloatArray:
        shape, draws = self.states_shape(), self.draws
        joint = np.ravel_multi_index(tuple(draws.astype(np.int64).T), shape)
        return np.bincount(joint, minlength=int(np.prod(shape))).reshape(shape) / len(draws)

    @property
    def mean(self) -> FloatArray:
        self.check_reals()
        return np.asarray(self.draws.mean(axis=0))

    @property
    def cov(self) -> FloatArray:
        self.check_reals()
        return np.atleast_2d(np.cov(self.draws, rowvar=False, ddof=0))

    def sample(self, size: int, *, seed: Seed) -> pa.Table:
        """Draws with replacement as an Arrow table with a column per atom, states by label."""
        check_columns(len(self.atoms))
        size, rng = sample_arguments(size, seed)
        draws = self.draws
        return pa.table(self.columns(list(draws[rng.integers(len(draws), size=size)].T)))

    def expect(self, function: Callable[..., Any], *, seed: int = 0) -> Expectation:
        check_arity(function, len(self.atoms))
        is_discrete = np.array([domain.is_discrete for domain in self.domains])

        def of(draws: FloatArray) -> FloatArray:
            return evaluate(function, list(draws.T), is_discrete, len(draws))

        found = of(self.draws)
        return Expectation(float(found.mean()), self._error(of, found), "sampling", len(found))

    def _error(self, of: Callable[[FloatArray], FloatArray], found: FloatArray) -> float:
        """The standard error of the mean of a function of draws, from its values."""
        chains, draws, _ = self.values.shape
        if self.weights is not None:
            means = of(self.values.reshape(chains * draws, -1)).reshape(chains, draws).mean(axis=1)
            errors = error_of_groups(means[:, None], self.weights)
            return float(widened(chains - 1) * errors.max())
        if self.is_independent:
            return float(found.std(ddof=1) / np.sqrt(len(found)))
        return float(standard_error(found.reshape(chains, draws)))
