"""What to say about an answer of Gaussian belief propagation."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hylift.graph import Variables
from hylift.inference.bounds import LEAK
from hylift.inference.message.answer import SETTLED
from hylift.inference.message.gaussian.summable import Radius
from hylift.inference.message.links import FloatArray
from hylift.posterior import Result

ROUNDING = 1e-9
"""Error of rounding up to which an answer is called exact."""
NEGLIGIBLE = 1e-12
"""Mass beyond bounds, of all reals together, up to which log Z is called exact."""


@dataclass(frozen=True, slots=True, eq=False)
class Findings:
    """How messages ended, and what was seen of the model."""

    result: Result
    num_steps: int
    cause: str
    """Why it diverged, if it did."""
    is_alone: bool
    """Whether the answer is that of no messages."""
    on_forest: bool
    radius: Radius
    beyond: FloatArray  # (variable,): mass of its belief beyond its bounds
    variables: Variables
    change: float
    """The last one of a message."""
    rounding: float

    @property
    def is_exact(self) -> bool:
        """Whether marginals and log Z are exact."""
        lost = float(self.variables.multiplicity @ self.beyond)
        is_settled = self.result == "converged" and self.change <= SETTLED
        return self.on_forest and is_settled and lost <= NEGLIGIBLE and self.rounding <= ROUNDING

    def notes(self) -> tuple[str, ...]:
        found = []
        if not self.on_forest and self.radius.is_above_one:
            found.append(
                f"The model is not walk-summable (spectral radius {self.radius.lower:.2f} >= 1): "
                "Gaussian BP may diverge, and where it converges its means are exact but its "
                "variances are not."
            )
        elif not self.on_forest:
            found.append(
                "The graph has loops: where Gaussian BP converges its means are exact, its "
                "variances and log Z are estimates."
            )
        if self.result == "diverged":
            found.append(self._of_divergence())
        if self.result == "max_steps" and self.rounding <= ROUNDING:
            found.append("Messages did not converge: more steps, or some damping, may help.")
        if self.rounding > ROUNDING:
            found.append(
                f"Rounding may change log Z, and means in standard deviations, by about "
                f"{self.rounding:.1e}: the model's numbers differ too much in size. Centring or "
                "rescaling its reals would help."
            )
        if (self.beyond > LEAK).any():
            at = int(np.argmax(self.beyond))
            found.append(
                f"GaBP ignores bounds, and {self.beyond[at]:.2g} of the mass of "
                f"'{self.variables.names[at]}' lies beyond its own: marginals and log Z are "
                "estimates. Exact, EPBP and BVI respect bounds."
            )
        return tuple(found)

    def _of_divergence(self) -> str:
        answer = f"that of step {self.num_steps}"
        if self.is_alone:
            answer = "that of each real by itself, with all others at 0"
        return (
            f"Gaussian BP diverged after step {self.num_steps}: {self.cause}. The answer is "
            f"{answer}: do not rely on it. Damping may help; Exact and BVI do not diverge."
        )
