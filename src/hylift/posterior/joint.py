"""The joint distribution of a few atoms."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hylift.errors import (
    EvidenceError,
    IntractableError,
    UnknownNameError,
    UnsupportedError,
    did_you_mean,
)
from hylift.graph import Domain
from hylift.posterior.distributions.base import FloatOrArray, Seed, sample_arguments, unwrap
from hylift.posterior.mapped import Joint
from hylift.posterior.summing import Expectation
from hylift.words import counted, listed, printable

MAX_STATES = 1 << 24
"""Most joint states whose probabilities are listed."""
MAX_COLUMNS = 100_000
"""Most atoms of a table of draws."""


class JointDistribution(ABC):
    """The joint distribution of some atoms; observed ones are certain."""

    __slots__ = ()

    atoms: tuple[str, ...]
    domains: tuple[Domain, ...]

    @abstractmethod
    def log_pdf(self, values: Mapping[str, Any]) -> FloatOrArray:
        """The log of `pdf`, also where that underflows."""

    @abstractmethod
    def probs(self) -> NDArray[np.float64]:
        """The probability of each joint state, with an axis per atom; for discrete atoms only."""

    @property
    @abstractmethod
    def mean(self) -> NDArray[np.float64]:
        """(atom,): the means of reals."""

    @property
    @abstractmethod
    def cov(self) -> NDArray[np.float64]:
        """(atom, atom): the covariances of reals."""

    @abstractmethod
    def sample(self, size: int, *, seed: Seed) -> pa.Table:
        """Draws as an Arrow table with a column per atom, states by label."""

    @abstractmethod
    def expect(self, function: Callable[..., Any], *, seed: int = 0) -> Expectation:
        """The mean of a function of arrays, one per atom.

        States are given by position: false is 0, true is 1.
        """

    @property
    def shown(self) -> str:
        """Names of the first atoms."""
        names = ", ".join(printable(atom, one_line=True) for atom in self.atoms[:6])
        return names + (", …" if len(self.atoms) > 6 else "")

    def pdf(self, values: Mapping[str, Any]) -> FloatOrArray:
        """The density at values of all atoms, scalars or arrays that fit each other.

        States are given by label and count with their probability.
        """
        return unwrap(np.exp(np.asarray(self.log_pdf(values))))

    def table(self) -> pa.Table:
        """The joint states and their probabilities: a column of labels per atom, and prob."""
        probs = self.probs()
        states = np.unravel_index(np.arange(probs.size), probs.shape)
        return pa.table({**self.columns(list(states)), "prob": probs.ravel()})

    @property
    def corr(self) -> NDArray[np.float64]:
        """(atom, atom): the correlations of reals; NaN for an observed one."""
        cov = self.cov
        sd = np.sqrt(np.diag(cov))
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(cov / np.multiply.outer(sd, sd))

    def points(self, values: Mapping[str, Any]) -> tuple[NDArray[np.float64], tuple[int, ...]]:
        """(point, atom): values by name as numbers, and the shape of the points."""
        self._check_atoms(values)
        columns = np.broadcast_arrays(
            *(_encoded(d, values[a], a) for a, d in zip(self.atoms, self.domains, strict=True))
        )
        return np.stack([column.ravel() for column in columns], axis=1), columns[0].shape

    def states_shape(self) -> tuple[int, ...]:
        """The number of states of each atom; raises where they cannot be listed."""
        for atom, domain in zip(self.atoms, self.domains, strict=True):
            if domain.states is None:
                raise UnsupportedError(f"'{atom}' is real: ask for pdf(…), or leave it out")
        shape = tuple(domain.num_states for domain in self.domains)
        if np.prod(np.array(shape, dtype=np.float64)) > MAX_STATES:
            raise IntractableError(
                f"{len(self.atoms)} atoms have more than {MAX_STATES:,} joint states: "
                "ask for fewer atoms, or for sample(…)"
            )
        return shape

    def check_reals(self) -> None:
        """Raise unless all atoms are reals."""
        for atom, domain in zip(self.atoms, self.domains, strict=True):
            if domain.states is not None:
                raise UnsupportedError(
                    f"'{atom}' has states: means and covariances are of reals; leave it out, "
                    "or use expect(…)"
                )

    def columns(self, values: list[NDArray[Any]]) -> dict[str, pa.Array]:
        """A column per atom, states by label."""
        columns = zip(self.atoms, self.domains, values, strict=True)
        return {atom: labelled_column(domain, column) for atom, domain, column in columns}

    def _check_atoms(self, values: Mapping[str, Any]) -> None:
        for atom in values:
            if atom not in self.atoms:
                raise UnknownNameError(
                    f"this joint density is not about '{atom}'."
                    f"{did_you_mean(str(atom), self.atoms)}"
                )
        missing = [f"'{atom}'" for atom in self.atoms if atom not in values]
        if missing:
            verb = "has" if len(missing) == 1 else "have"
            raise EvidenceError(
                f"a density needs a value for each atom: {listed(missing)} {verb} none"
            )


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class JointDensity(JointDistribution):
    """The joint distribution of some atoms under a mixture; observed ones are certain."""

    atoms: tuple[str, ...]
    domains: tuple[Domain, ...]
    ids: NDArray[np.int64]  # (atom,): the variables
    known: NDArray[np.float64]  # (atom,): the value of an observed one; NaN where hidden
    mixture: Joint
    """The joint distribution of the hidden ones among the atoms."""

    def __repr__(self) -> str:
        return f"JointDensity({self.shown}; components={self.mixture.num_components})"

    def log_pdf(self, values: Mapping[str, Any]) -> FloatOrArray:
        points, shape = self.points(values)
        hidden = self._is_hidden
        for atom, domain, unseen in zip(self.atoms, self.domains, hidden, strict=True):
            if domain.states is None and not unseen:
                raise UnsupportedError(
                    f"'{atom}' is observed: it has one value and no density, so leave it out"
                )
        logs = self.mixture.log_density(self.ids[hidden], points[:, hidden])
        agrees = (points[:, ~hidden] == self.known[~hidden]).all(axis=1)
        return unwrap(np.where(agrees, logs, -np.inf).reshape(shape))

    def probs(self) -> NDArray[np.float64]:
        shape = self.states_shape()
        hidden = np.flatnonzero(self._is_hidden)
        ids, axes, total = self.ids[hidden], [], np.ones(())
        found, part = self.mixture.state_tables(ids), self.mixture.parts(ids)
        for one in np.unique(part).tolist():
            own = [(places, probs) for places, probs in found if part[places[0]] == one]
            axes += [at for places, _ in own for at in hidden[list(places)].tolist()]
            weights = self.mixture.weights_of(ids[[own[0][0][0]]])[0]
            of_part = sum(
                reduce(np.multiply.outer, (probs[component] for _, probs in own), weight)
                for component, weight in enumerate(weights)
            )
            total = np.multiply.outer(total, of_part)
        for at in np.flatnonzero(~self._is_hidden).tolist():
            axes.append(at)
            certain = np.arange(shape[at]) == self.known[at]
            total = np.multiply.outer(total, certain.astype(np.float64))
        return total.transpose(np.argsort(axes))

    @property
    def mean(self) -> NDArray[np.float64]:
        means = (self._moments()[0] * self._weights()[0]).sum(axis=1)
        return np.where(self._is_hidden, means, self.known)

    @property
    def cov(self) -> NDArray[np.float64]:
        means, variances = self._moments()
        weights, part = self._weights()
        offsets = means - self.mean[:, None]
        together = (offsets * weights) @ offsets.T * (part[:, None] == part)
        return np.asarray(together + np.diag((variances * weights).sum(axis=1)))

    def sample(self, size: int, *, seed: Seed) -> pa.Table:
        """Independent draws as an Arrow table with a column per atom, states by label."""
        check_columns(len(self.atoms))
        size, rng = sample_arguments(size, seed)
        return pa.table(self.columns(list(self.drawn(size, rng).T)))

    def drawn(self, size: int, rng: np.random.Generator) -> NDArray[np.float64]:
        """(draw, atom): independent draws, states and reals."""
        draws = np.tile(self.known, (size, 1))
        hidden = self._is_hidden
        draws[:, hidden] = self.mixture.sample(size, rng, self.ids[hidden])
        return draws

    def expect(self, function: Callable[..., Any], *, seed: int = 0) -> Expectation:
        check_arity(function, len(self.atoms))
        hidden = self._is_hidden

        def of_hidden(*columns: Any) -> Any:
            rest = iter(columns)
            return function(
                *(
                    next(rest) if unseen else int(value) if domain.is_discrete else value
                    for unseen, value, domain in zip(hidden, self.known, self.domains, strict=True)
                )
            )

        return self.mixture.expect(of_hidden, self.ids[hidden], seed=seed)

    @property
    def _is_hidden(self) -> NDArray[np.bool_]:
        return np.isnan(self.known)

    def _moments(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Means and variances (atom, component)."""
        self.check_reals()
        shape = (len(self.atoms), self.mixture.num_components)
        means = np.broadcast_to(self.known[:, None], shape).copy()
        variances = np.zeros(shape)
        hidden = self._is_hidden
        means[hidden], variances[hidden] = self.mixture.moments(self.ids[hidden])
        return means, variances

    def _weights(self) -> tuple[NDArray[np.float64], NDArray[np.int32]]:
        """(atom, component): the weights of the part of each atom; and (atom,): that part."""
        hidden = self._is_hidden
        weights = np.full((len(hidden), self.mixture.num_components), 0.0)
        weights[:, 0], part = 1.0, np.full(len(hidden), -1, dtype=np.int32)
        ids = self.ids[hidden]
        weights[hidden], part[hidden] = self.mixture.weights_of(ids), self.mixture.parts(ids)
        return weights, part


def check_columns(count: int) -> None:
    """Raise an error if a table of draws would have too many columns."""
    if count > MAX_COLUMNS:
        raise UnsupportedError(
            f"a table of draws has at most {MAX_COLUMNS:,} columns, not {count:,}: "
            "name the atoms you need"
        )


def labelled_column(domain: Domain, values: NDArray[Any]) -> pa.Array:
    """Values as an Arrow column, states by label."""
    if domain.states is None:
        return pa.array(values)
    labels = pa.array(list(domain.states), pa.string())
    return pa.DictionaryArray.from_arrays(pa.array(values.astype(np.int32)), labels)


def check_arity(function: Callable[..., Any], num_atoms: int) -> None:
    """Raise an error unless the function takes one argument per atom, if it has a signature."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # not a function, or one without a signature
        if callable(function):
            return
        raise UnsupportedError(f"expect(…) takes a function, not {function!r}") from None
    try:
        signature.bind(*range(num_atoms))
    except TypeError as error:
        raise UnsupportedError(
            f"the function cannot be called with {counted(num_atoms, 'argument')}, one per atom: "
            f"{error}"
        ) from None


def _encoded(domain: Domain, values: Any, atom: str) -> NDArray[np.float64]:
    """States as positions and reals as they are; a real outside its domain has density 0."""
    if domain.states is None:
        try:
            numbers = np.asarray(values, dtype=np.float64)
        except (TypeError, ValueError):
            raise EvidenceError(f"{atom} is real and cannot be {values!r}") from None
        if np.isnan(numbers).any():
            raise EvidenceError(f"{atom} is real and cannot be NaN")
        return numbers
    if isinstance(values, str):
        return np.asarray(domain.encode(values, atom))
    states = np.asarray(values)
    codes = {state: domain.encode(state, atom) for state in dict.fromkeys(states.ravel().tolist())}
    flat = np.array([codes[state] for state in states.ravel().tolist()], dtype=np.float64)
    return flat.reshape(states.shape)
