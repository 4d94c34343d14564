"""The certificate that the Bethe free energy of a model is bounded below."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hylift.errors import UnsupportedError
from hylift.graph import FactorGraph, Variables
from hylift.potentials import REAL
from hylift.potentials.base import FloatArray
from hylift.proper.bound import ExponentialBound, GaussianBound, exponential_bound, gaussian_bound
from hylift.proper.common_form import CommonForm, components_of
from hylift.proper.constraints import Constraints
from hylift.proper.improper import ImproperDirection
from hylift.proper.quadratics import (
    Decomposition,
    IntArray,
    OpenFactors,
    open_reals,
    without_couplings,
)
from hylift.proper.search import Component, enumerated, find_improper, improper_one_sided
from hylift.words import listed

MAX_VIOLATIONS = 5
"""Violations after which the search ends."""

MAX_COMPONENTS = 500
"""Components that are searched one by one."""

TOO_DIFFERENT = "quadratics whose coefficients differ too much in size"

UNIFORM, GAUSSIAN, EXPONENTIAL = 0, 1, 2
KINDS = ("uniform", "gaussian", "exponential")


@dataclass(frozen=True, slots=True, eq=False)
class Densities:
    """One density g per hidden variable: the same for each ground variable of a class.

    Uniform over states or an interval; Gaussian, truncated at a bound if there is one; or
    exponential, starting at the only bound of a real.
    """

    variables: Variables
    kind: NDArray[np.int8]  # (variable,): index into KINDS
    mean: NDArray[np.float64]  # (variable,): NaN unless Gaussian
    var: NDArray[np.float64]  # (variable,): NaN unless Gaussian
    rate: NDArray[np.float64]  # (variable,): NaN unless exponential

    @property
    def num_reals(self) -> int:
        return int(np.count_nonzero(self.variables.num_states == REAL))

    def log_sum(self, values: NDArray[np.float64]) -> float:
        """Σ log g at an assignment (variable,); a truncated Gaussian counts as a whole one, which
        is less."""
        with np.errstate(invalid="ignore", divide="ignore"):
            lower, upper = self.variables.lower, self.variables.upper
            num_states = self.variables.num_states
            uniform = -np.log(np.where(num_states > 0, num_states, upper - lower))
            gaussian = -0.5 * np.log(2 * np.pi * self.var)
            gaussian = gaussian - 0.5 * (values - self.mean) ** 2 / self.var
            end = np.where(np.isfinite(lower), lower, upper)
            exponential = np.log(self.rate) - self.rate * np.abs(values - end)
        each = np.choose(self.kind, [uniform, gaussian, exponential])
        return float(self.variables.multiplicity @ each)

    def of(self, name: str) -> dict[str, Any]:
        """One density, as a kind and its parameters."""
        return self._at(self.variables.id(name))

    def _at(self, i: int) -> dict[str, Any]:
        kind = {"kind": KINDS[self.kind[i]]}
        match self.kind[i]:
            case 0 if self.variables.num_states[i] > 0:
                return {**kind, "states": int(self.variables.num_states[i])}
            case 0:
                bounds = self.variables.lower[i], self.variables.upper[i]
                return {**kind, "lower": float(bounds[0]), "upper": float(bounds[1])}
            case 1:
                return {**kind, "mean": float(self.mean[i]), "var": float(self.var[i])}
        return {**kind, "rate": float(self.rate[i])}

    def to_dict(self, limit: int | None = None) -> dict[str, dict[str, Any]]:
        """The densities of the reals by name, or of the first few; the others are uniform."""
        reals = np.flatnonzero(self.variables.num_states == REAL)[:limit]
        names = self.variables.names.render(reals).to_pylist()
        return {name: self._at(i) for name, i in zip(names, reals.tolist(), strict=True)}


@dataclass(frozen=True, slots=True, eq=False)
class BetheCertificate:
    """The answer whether densities g_i exist with p / Π g_i bounded, which bounds the Bethe free
    energy below; with a witness either way."""

    holds: bool | None
    """None: not decided; `undecided` says why."""
    log_bound: float | None
    """log p̃ - Σ log g_i and log Z are at most this, the Bethe free energy at least its negative.
    None where the certificate does not hold, or functions have an unknown maximum."""
    densities: Densities | None = field(repr=False)
    """The g_i, where it holds."""
    violations: tuple[ImproperDirection, ...]
    """Directions and states in which the density is improper: all that were found, or a few."""
    undecided: tuple[str, ...]
    assumptions: tuple[str, ...]
    """About user-defined functions."""

    @property
    def free_energy_bound(self) -> float | None:
        """A lower bound on the Bethe free energy of every distribution."""
        return None if self.log_bound is None else -self.log_bound

    @property
    def sentence(self) -> str:
        """The verdict, and what it means for BVI."""
        if self.holds:
            by = "" if self.log_bound is None else f" by {-self.log_bound:.6g}"
            trust = f" This assumes that {listed(self.assumptions)}."
            return (
                f"The Bethe free energy of this model is bounded below{by}, so BVI cannot diverge, "
                f"for any number of components.{trust if self.assumptions else ''}"
            )
        if self.violations:
            first = self.violations[0]
            return (
                f"The Bethe free energy of this model is not bounded below: {first}. BVI may "
                "diverge with any number of components, and no other method has a right answer; "
                f"{first.remedy}."
            )
        return (
            "The Bethe free energy of this model is not known to be bounded below: "
            f"{self.undecided[0]}. BVI may diverge; give the reals bounds or priors, or use NPVI, "
            "which only needs a finite log Z."
        )

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "holds": self.holds,
            "sentence": self.sentence,
            "log_bound": self.log_bound,
            "free_energy_bound": self.free_energy_bound,
            "densities": None if self.densities is None else self.densities.to_dict(),
            "violations": [violation.to_dict() for violation in self.violations],
            "undecided": list(self.undecided),
            "assumptions": list(self.assumptions),
        }

    def __repr__(self) -> str:
        if self.holds:
            return f"BetheCertificate(holds, log_bound={self.log_bound})"
        if self.violations:
            return f"BetheCertificate(violated: {self.violations[0]})"
        return f"BetheCertificate(undecided: {self.undecided[0]})"


def bethe_certificate(graph: FactorGraph) -> BetheCertificate:
    """Decide whether the Bethe free energy of a graph with its evidence is bounded below.

    It is if there are densities g_i with p / Π g_i bounded. Candidates are Gaussians, and uniform
    densities where there are bounds, that fall off more slowly than a quadratic form below those
    of all joint states. A lifted graph stands for the ground graph in which all members of a class
    have the same factors.
    """
    if not isinstance(graph, FactorGraph):
        raise UnsupportedError(
            "bethe_certificate needs a FactorGraph, such as hl.ground(model, evidence) returns, "
            f"not a value of type '{type(graph).__name__}'"
        )
    parts = Decomposition.of(graph.condition())
    variables = parts.graph.variables
    exponential = exponential_bound(parts.quadratics, variables)
    search = _Examination(parts, parts.is_open & np.isnan(exponential.rate))
    form, share, quadratics = search.run(exponential)
    found = tuple(search.violations), tuple(search.undecided), tuple(parts.assumptions)
    if search.violations or search.undecided:
        return BetheCertificate(False if search.violations else None, None, None, *found)
    try:
        gaussian = gaussian_bound(quadratics, form, share, variables)
    except np.linalg.LinAlgError:
        return BetheCertificate(None, None, None, (), (TOO_DIFFERENT,), found[2])
    log_bound = parts.log_constant + gaussian.log_bound + exponential.log_bound
    log_bound += _log_volume(variables)
    densities = _densities(variables, gaussian, exponential)
    return BetheCertificate(True, log_bound if parts.is_known else None, densities, *found)


def improper_directions(graph: FactorGraph) -> list[ImproperDirection]:
    """Some directions and states in which the density of a graph without evidence is improper."""
    parts = Decomposition.of(graph)
    exponential = exponential_bound(parts.quadratics, parts.graph.variables)
    search = _Examination(parts, parts.is_open & np.isnan(exponential.rate))
    search.run(exponential)
    return search.violations


@dataclass(slots=True, eq=False)
class _Examination:
    """Looks for a positive definite form below all states, and collects what prevents it."""

    parts: Decomposition
    is_open: NDArray[np.bool_]  # (variable,)
    violations: list[ImproperDirection] = field(default_factory=list)
    undecided: list[str] = field(default_factory=list)

    def run(
        self, exponential: ExponentialBound
    ) -> tuple[CommonForm, FloatArray, Sequence[OpenFactors]]:
        """The form, its share of the diagonal, and the quadratics it is made of."""
        variables = self.parts.graph.variables
        self.undecided += self.parts.undecided
        constraints = Constraints.of(self.parts.graph)
        for real in exponential.failing[:MAX_VIOLATIONS].tolist():
            if not self.parts.in_function[real]:
                self._note(improper_one_sided(exponential, real, variables, constraints))
        quadratics = exponential.others
        label = components_of(quadratics, len(variables))
        form, share = self._form(quadratics, label)
        failing = self._failing(share, label)
        if not self.parts.graph.is_ground and failing.size:
            # Couplings among three and more reals weigh less as multiples of the identity.
            looser = [replace(some, lower=without_couplings(some.lower)) for some in quadratics]
            form_2, share_2 = self._form(looser, label)
            failing_2 = self._failing(share_2, label)
            if failing_2.size < failing.size:
                quadratics, form, share, failing = looser, form_2, share_2, failing_2
        merged: dict[int, OpenFactors] = {}
        for number in failing[:MAX_COMPONENTS].tolist():
            if len(self.violations) >= MAX_VIOLATIONS:
                break
            component = Component.of(quadratics, label, number, form, variables)
            found = self._search(component, form, constraints)
            if isinstance(found, OpenFactors):
                merged[number] = found
            else:
                self._note(found)
        if len(failing) > MAX_COMPONENTS and not self.violations:
            name = variables.names[int(np.argmax(label == failing[MAX_COMPONENTS]))]
            self.undecided.append(f"the states of too many reals, such as '{name}', matter")
        if merged and not self.violations and not self.undecided:
            quadratics = _with_merged(quadratics, label, merged)
            form, share = self._form(quadratics, label)
            if self._failing(share, label).size:
                self.undecided.append(TOO_DIFFERENT)
        return form, share, quadratics

    def _form(
        self, quadratics: Sequence[OpenFactors], label: IntArray
    ) -> tuple[CommonForm, FloatArray]:
        form = CommonForm.of(quadratics, self.parts.graph.variables.multiplicity)
        return form, form.shares(label, self.is_open)

    def _failing(self, share: FloatArray, label: IntArray) -> IntArray:
        """Components on which the form is not definite, but for those in user-defined functions."""
        in_function = np.unique(label[self.parts.in_function])
        return np.setdiff1d(label[self.is_open & np.isnan(share)], in_function)

    def _search(
        self, component: Component, form: CommonForm, constraints: Constraints
    ) -> OpenFactors | ImproperDirection | str:
        """An improper direction, or all states of the component as one factor, or a doubt."""
        improper, doubt = find_improper(component, form, constraints)
        if improper is not None:
            return improper
        if not self.parts.graph.is_ground:
            return doubt or (
                f"the classes alone do not show whether the density is proper in "
                f"'{component.name}': try the ground graph"
            )
        found = enumerated(component, constraints)
        return doubt if doubt and isinstance(found, str) else found

    def _note(self, found: ImproperDirection | str) -> None:
        if isinstance(found, ImproperDirection):
            self.violations.append(found)
        else:
            self.undecided.append(found)


def _with_merged(
    quadratics: Sequence[OpenFactors], label: IntArray, merged: dict[int, OpenFactors]
) -> list[OpenFactors]:
    """The quadratics, with those of some components replaced."""
    replaced = np.isin(label, list(merged))
    kept = [
        some.take(np.flatnonzero(~replaced[some.real[:, 0]])) if some.num_open else some
        for some in quadratics
    ]
    return [*(some for some in kept if len(some)), *merged.values()]


def _log_volume(variables: Variables) -> float:
    """-Σ log g of all variables with uniform densities."""
    closed = ~open_reals(variables)
    num_states, width = variables.num_states[closed], (variables.upper - variables.lower)[closed]
    return float(
        variables.multiplicity[closed] @ np.log(np.where(num_states > 0, num_states, width))
    )


def _densities(
    variables: Variables, gaussian: GaussianBound, exponential: ExponentialBound
) -> Densities:
    kind = np.full(len(variables), UNIFORM, dtype=np.int8)
    kind[~np.isnan(gaussian.var)] = GAUSSIAN
    kind[~np.isnan(exponential.rate)] = EXPONENTIAL
    return Densities(variables, kind, gaussian.mean, gaussian.var, exponential.rate)
