"""Gaussian belief propagation: settings, solution and notes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hylift.components.gaussian import LEAK, mass_beyond
from hylift.graph import Variables
from hylift.inference.control import Control
from hylift.inference.held import State
from hylift.inference.loop import run_steps
from hylift.inference.message.gaussian.couplings import (
    Couplings,
    Radius,
    check_definite,
    check_gaussian,
    linked,
)
from hylift.inference.message.gaussian.messages import Damping, GaussianMessages
from hylift.inference.message.layout import FloatArray
from hylift.inference.message.running import (
    SETTLED,
    Decoded,
    Exchange,
    Outcome,
    check_settings,
    posterior_of,
    view_of,
)
from hylift.inference.method import Request
from hylift.inference.prepared import Prepared
from hylift.posterior import GaussianMixture, LogPartition, Posterior, Result
from hylift.posterior.marginals import Batches
from hylift.words import doubt

GROWN = 1e6
"""Largest change of a message, relative to the first means and changes, from which messages are
taken to diverge. In a walk-summable model they do not grow."""
ROUNDING = 1e-9
"""Rounding error up to which an answer is called exact."""
NEGLIGIBLE = 1e-12
"""Mass beyond bounds, of all reals together, up to which log Z is called exact."""


@dataclass(frozen=True, slots=True)
class GaBP:
    """Gaussian belief propagation for reals and quadratics, with look-alikes' messages sent once.

    Exact on forests. On graphs with loops it converges where the model is walk-summable, and may
    diverge elsewhere (see `solution.result`). Where it converges, means are exact, variances and
    log Z are estimates. Bounds of reals are ignored; a note says where they matter.
    """

    damping: float | None = None
    """Share of its old precision and linear part that a message keeps; by default 0, and 0.5 on
    graphs with loops once messages oscillate."""
    max_steps: int = 1000
    tolerance: float = 1e-10
    """Largest change of a message at which it has converged, relative to the precision and standard
    deviation of the receiving belief."""
    merge_factors: bool = True
    """Merge factors with nested scopes into one. Gaussian belief propagation is defined
    on the precision matrix, where all that couples two reals is one entry."""

    def __post_init__(self) -> None:
        check_settings(self.damping, self.max_steps, self.tolerance, self.merge_factors)

    @property
    def name(self) -> str:
        return "GaBP"

    def solve(self, prepared: Prepared, request: Request) -> Posterior:
        check_gaussian(prepared.ground)
        control = Control(request, "largest change")
        links = linked(prepared.ground, merge=self.merge_factors)
        view = view_of(self.name, prepared.with_ground(links), request)
        control.enter_level(view.graph.num_variables)
        couplings = Couplings.of(view.graph)
        radius = Radius.of(couplings)
        check_definite(view.ground, radius)
        on_forest = view.prepared.is_forest
        damping = Damping.of(self.damping, on_forest=on_forest)
        passing, result, cause = self._passed(couplings, damping, control)
        means, variances = passing.means, passing.variances
        variables = view.graph.variables
        beyond = mass_beyond(variables.lower, variables.upper, means, np.sqrt(variances))
        change = control.steps[-1].objective if control.steps else 0.0
        findings = Findings(
            result, len(control.steps), cause, not passing.message.any(), on_forest, radius, beyond,
            variables, change, passing.rounding(),
        )  # fmt: skip
        is_exact = findings.is_exact

        def decode(seconds: float | None) -> Decoded:
            return Decoded(means[None], -view.graph.log_density(means) if is_exact else None)

        log_z = LogPartition(passing.log_total(), "estimate")
        if is_exact:
            log_z = LogPartition(log_z.value, "exact", findings.rounding)
        mixture = GaussianMixture(np.ones(1), means[:, None], variances[:, None])
        beliefs: Batches = [(np.arange(len(means)), mixture)]
        outcome = Outcome(result, log_z, beliefs, decode, findings.notes())
        return posterior_of(self.name, view, outcome, control, request)

    def _passed(
        self, couplings: Couplings, damping: Damping, control: Control
    ) -> tuple[GaussianMessages, Result, str]:
        """The final messages, how they ended, and why they diverged if they did."""
        passing, cause = GaussianMessages.start(couplings), ""
        most = np.array([max(1.0, passing.size)])  # change that messages of a proper model make

        def advance(step: int) -> tuple[float | None, Result | None]:
            nonlocal passing, cause
            change = passing.step(damping.share)
            if change is None:
                cause = "the precision of some belief is no longer positive"
                return None, "diverged"
            damping.follow(change)
            if step == 0:
                most[0] = max(most[0], change)
            if change <= self.tolerance:
                return change, "converged"
            if change / GROWN > most[0]:
                passing, cause = GaussianMessages.start(couplings), "messages grow without end"
                return change, "diverged"
            return change, None

        def state() -> State:
            return {**passing.arrays(), "damping": damping.state, "most": most}

        result = run_steps(Exchange(advance, state, self.max_steps), control)
        return passing, result, cause


@dataclass(frozen=True, slots=True, eq=False)
class Findings:
    """The end of message passing, and properties of the model that the notes mention."""

    result: Result
    num_steps: int
    cause: str
    """The reason for divergence, if it diverged."""
    is_alone: bool
    """True if the answer ignores all couplings."""
    on_forest: bool
    radius: Radius
    beyond: FloatArray  # (variable,): mass of its belief beyond its bounds
    variables: Variables
    change: float
    """The last change of a message."""
    rounding: float

    @property
    def is_exact(self) -> bool:
        """True if marginals and log Z are exact."""
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
            found.append(doubt("Messages did not converge: more steps, or some damping, may help."))
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
        return doubt(
            f"Gaussian BP diverged after step {self.num_steps}: {self.cause}. The answer is "
            f"{answer}: do not rely on it. Damping may help; Exact and BVI do not diverge."
        )
