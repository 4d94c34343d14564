"""The distribution that a posterior approximates, and conditioning on further values."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hylift.errors import EvidenceError, ImpossibleEvidenceError, UnsupportedError
from hylift.graph import Evidence, FactorGraph, Variables
from hylift.posterior.answers import Assignment, decoded
from hylift.posterior.mapped import Joint
from hylift.words import listed

if TYPE_CHECKING:
    from hylift.posterior.counts import Expect
    from hylift.posterior.posterior import Posterior

Draw = Callable[[int, np.random.Generator], NDArray[np.float64]]
"""So many independent draws (draw, hidden variable): states and reals."""

NOTE = "Components were reweighted by how well they fit what is given, not fitted again."


class Target(ABC):
    """True energies, and the best assignment by them. Not saved with a posterior."""

    __slots__ = ()

    @property
    @abstractmethod
    def graph(self) -> FactorGraph:
        """The model, with its evidence and rules."""

    @property
    @abstractmethod
    def evidence(self) -> Evidence:
        """The evidence of the model."""

    @property
    def origin(self) -> NDArray[np.float64] | None:
        """(variable,): what reals were measured from in inference; None for 0."""
        return None

    @property
    def expect(self) -> Expect | None:
        """Expected log-values under the joint distribution, where the method can find them."""
        return None

    @property
    def draw(self) -> Draw | None:
        """Independent draws of the joint distribution, where the method can make them."""
        return None

    @property
    def draws_states(self) -> bool:
        """False if draws are of reals alone, and only their dependence is that of the answer."""
        return True

    @abstractmethod
    def energy(self, values: NDArray[np.float64]) -> float:
        """-log ψ of values (variable,), where the observed ones have the values that were seen."""

    @abstractmethod
    def map(self, mixture: Joint | None) -> Assignment:
        """The best assignment that can be found, starting from a mixture where there is one."""


@dataclass(frozen=True, slots=True, eq=False)
class GivenTarget(Target):
    """A target with values that became known after inference."""

    whole: Target
    given: Evidence

    @property
    def graph(self) -> FactorGraph:
        return self.whole.graph

    @property
    def evidence(self) -> Evidence:
        return self.whole.evidence.joined(self.given)

    @property
    def origin(self) -> NDArray[np.float64] | None:
        return self.whole.origin

    def energy(self, values: NDArray[np.float64]) -> float:
        return self.whole.energy(values)

    def map(self, mixture: Joint | None) -> Assignment:
        raise UnsupportedError(
            "after given(…) there is no polished MAP assignment: map(polish=False) is the mode of "
            "the conditional mixture; for a better one observe the values and infer again"
        )


def conditioned(posterior: Posterior, values: Mapping[str, object]) -> Posterior:
    """The posterior given further values, by name; see `Posterior.given`."""
    mixture = posterior.mixture
    assert mixture is not None
    variables, was_observed = posterior.variables, posterior.observed
    given = agreed(posterior, values)
    new, value = given.variable.astype(np.int64), given.value
    seen = np.flatnonzero(was_observed)
    known = posterior.known_marginals().modes(seen)
    try:
        mixture = mixture.given(new, value)
    except ImpossibleEvidenceError:
        wanted = listed([f"{atom} = {value}" for atom, value in list(values.items())[:5]])
        raise ImpossibleEvidenceError(
            f"every component of the mixture gives probability 0 to {wanted}"
        ) from None
    observed = was_observed.copy()
    observed[new] = True
    marginals = mixture.marginals(variables).beside(
        variables, mixture.hidden, np.concatenate([seen, new]), np.concatenate([known, value])
    )
    target = posterior.target
    return replace(
        posterior,
        solution=replace(
            posterior.solution, notes=(NOTE, *posterior.solution.doubts), is_certified=False
        ),
        observed=observed,
        log_partition=None,
        all_marginals=marginals,
        assignment=None,
        checked=None,
        mixture=mixture,
        target=GivenTarget(target, given) if target else None,
    )


def agreed(posterior: Posterior, values: Mapping[str, object]) -> Evidence:
    """Values by name, without those observed already; raises where they contradict these."""
    variables, was_observed = posterior.variables, posterior.observed
    found = _values_without_error(variables, values)
    seen = np.flatnonzero(was_observed)
    seen_values = posterior.known_marginals().modes(seen) if len(seen) else np.zeros(0)
    check_agreement(variables, found, Evidence.of(seen, seen_values))
    new = ~was_observed[found.variable]
    return Evidence.of(found.variable[new], found.value[new])


def energy_of(posterior: Posterior, values: Assignment | Mapping[str, object] | ArrayLike) -> float:
    """The energy of an assignment; see `Posterior.energy`."""
    variables, target = posterior.variables, posterior.target
    if target is None:
        raise UnsupportedError(
            "energies need the model, which is not saved with a posterior: infer again"
        )
    everything = np.full(len(variables), np.nan)
    if isinstance(values, Mapping):
        found = Evidence.from_mapping(variables, values)
        found.check(variables)
        everything[found.variable] = found.value
    else:
        array = values.values if isinstance(values, Assignment) else np.asarray(values, float)
        if array.shape != everything.shape:
            raise EvidenceError(
                f"an assignment to {len(everything)} variables has as many values, "
                f"not the shape {array.shape}"
            )
        everything[:] = array
    evidence = target.evidence
    seen = Evidence.of(evidence.variable[evidence.is_hard], evidence.value[evidence.is_hard])
    given = np.flatnonzero(~np.isnan(everything))
    check_agreement(variables, Evidence.of(given, everything[given]), seen)
    everything[seen.variable] = seen.value
    missing = np.flatnonzero(np.isnan(everything))
    if len(missing):
        more = f" (and {len(missing) - 1:,} more)" if len(missing) > 1 else ""
        raise EvidenceError(
            f"an assignment needs a value for '{variables.names[int(missing[0])]}'{more}"
        )
    Evidence.of(np.arange(len(everything)), everything).check(variables)
    return target.energy(everything)


def check_agreement(variables: Variables, given: Evidence, seen: Evidence) -> None:
    """Raise an error if a given value differs from the observed one."""
    values = np.full(len(variables), np.nan)
    values[seen.variable] = seen.value
    known = values[given.variable]
    wrong = ~np.isnan(known) & (known != given.value)
    if wrong.any():
        at = int(np.argmax(wrong))
        variable = int(given.variable[at])
        domain = variables.domain(variable)
        raise EvidenceError(
            f"'{variables.names[variable]}' is observed as {decoded(domain, known[at])} "
            f"and cannot be {decoded(domain, given.value[at])}"
        )


def _values_without_error(variables: Variables, values: Mapping[str, object]) -> Evidence:
    if not isinstance(values, Mapping):
        raise UnsupportedError(
            f"given(…) takes a mapping from atoms to values, such as {{'rain': True}}, not "
            f"{values!r}"
        )
    found = Evidence.from_mapping(variables, values)
    variables.check_alone(found.variable, "given(…)")
    found.check(variables)
    if not found.is_hard.all():
        raise UnsupportedError(
            "given(…) takes values without error: observe measurements and infer again"
        )
    return found
