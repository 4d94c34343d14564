"""What is known of a model's Bethe free energy: bounded below, not, or not known."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hylift.graph import Variables
from hylift.inference.boundedness.violations.violation import Violation
from hylift.potentials import REAL
from hylift.words import listed

UNIFORM, GAUSSIAN, EXPONENTIAL = 0, 1, 2
KINDS = ("uniform", "gaussian", "exponential")


@dataclass(frozen=True, slots=True, eq=False)
class Densities:
    """One density g per hidden variable: the same for each ground variable of a class.

    Uniform over states or an interval; Gaussian, cut off at a bound if there is one; or
    exponential, from the one bound of a real outwards.
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
        """Σ log g at an assignment (variable,) of states and reals; a cut off Gaussian counts as
        a whole one, which is less."""
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
    """Whether densities g_i exist with p / Π g_i bounded, so that the Bethe free energy is bounded
    below; and a witness of it either way."""

    holds: bool | None
    """None: not decided; `undecided` says why."""
    log_bound: float | None
    """log p̃ - Σ log g_i is never more than this. So the Bethe free energy is never less than
    its negative, and log Z is never more than it. None where it does not hold or rests on
    functions whose largest value is not known."""
    densities: Densities | None = field(repr=False)
    """The g_i, where it holds."""
    violations: tuple[Violation, ...]
    """States and directions in which nothing holds some reals: all that were found, or a few."""
    undecided: tuple[str, ...]
    assumptions: tuple[str, ...]
    """What is taken for granted of functions of the user's own."""

    @property
    def free_energy_bound(self) -> float | None:
        """A number below the Bethe free energy of every distribution."""
        return None if self.log_bound is None else -self.log_bound

    @property
    def sentence(self) -> str:
        """What it means for BVI."""
        if self.holds:
            by = "" if self.log_bound is None else f" by {-self.log_bound:.6g}"
            trust = f" This takes for granted that {listed(self.assumptions)}."
            return (
                f"The Bethe free energy of this model is bounded below{by}, so BVI cannot diverge, "
                f"for any number of components.{trust if self.assumptions else ''}"
            )
        if self.violations:
            first = self.violations[0]
            name = first.reals[0][0]
            return (
                f"The Bethe free energy of this model is not bounded below: {first}. The model has "
                "no finite integral, so BVI may diverge, with one component and with more, and no "
                f"other method has a right answer. Add a prior such as '-0.01 {name}^2', or give "
                "it an interval."
            )
        return (
            "The Bethe free energy of this model is not known to be bounded below: "
            f"{self.undecided[0]}. BVI may diverge; give the reals intervals or priors, or use "
            "NPVI, whose bound needs no more than a finite log Z."
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
        return f"BetheCertificate(not decided: {self.undecided[0]})"
