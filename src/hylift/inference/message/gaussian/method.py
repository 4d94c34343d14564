"""Gaussian belief propagation: its settings, and the way from a graph to a posterior."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hylift.compilation import announce_compilation
from hylift.inference.bounds import mass_beyond
from hylift.inference.control import Control
from hylift.inference.message.answer import Decoded, Outcome, posterior_of
from hylift.inference.message.gaussian.damping import Damping
from hylift.inference.message.gaussian.notes import Findings
from hylift.inference.message.gaussian.passing import Passing
from hylift.inference.message.gaussian.proper import check_definite
from hylift.inference.message.gaussian.quadratics import Quadratics, check_gaussian, linked
from hylift.inference.message.gaussian.summable import Radius
from hylift.inference.message.kernels.gaussian import send
from hylift.inference.message.prepare import check_settings, view_of
from hylift.inference.message.steps import Steps
from hylift.inference.method import Request
from hylift.inference.prepared import Prepared
from hylift.posterior import GaussianMixture, LogPartition, Posterior, Result

GROWN = 1e6
"""Largest change of a message, in the size of the first means and changes, from which on they
are taken to grow without end. In a walk-summable model they do not grow."""


@dataclass(frozen=True, slots=True)
class GaBP:
    """Gaussian belief propagation for reals and quadratics, with look-alikes' messages sent once.

    Exact on forests. On graphs with loops means are exact where it converges, variances and log Z
    are estimates; it converges where the model is walk-summable. Elsewhere it may diverge:
    `solution.result` and `solution.notes` say so. Bounds of reals are ignored, and it is said
    where they matter.
    """

    damping: float | None = None
    """Share of its old precision and linear part that a message keeps; by default 0, and 0.5 on
    graphs with loops from when on messages swing instead of coming closer."""
    max_steps: int = 1000
    tolerance: float = 1e-10
    """Largest change of a message at which it has converged, in parts of the receiving belief's
    precision and standard deviation."""
    merge_factors: bool = True
    """Whether factors whose scopes are nested become one. Gaussian belief propagation is defined
    on the matrix of precisions, where all that links two reals is one entry."""

    def __post_init__(self) -> None:
        damping = 0.0 if self.damping is None else self.damping
        check_settings(damping, self.max_steps, self.tolerance, self.merge_factors)

    @property
    def name(self) -> str:
        return "GaBP"

    def solve(self, prepared: Prepared, request: Request) -> Posterior:
        check_gaussian(prepared.ground)
        announce_compilation(send)
        control = Control.of(request, "largest change")
        links = linked(prepared.ground, merge=self.merge_factors)
        view = view_of(self.name, prepared.with_ground(links), request)
        control.num_classes = view.graph.num_variables
        quadratics = Quadratics.of(view.graph)
        radius = Radius.of(quadratics)
        check_definite(view.ground, radius)
        on_forest = view.prepared.is_forest
        damping = Damping.of(self.damping, on_forest=on_forest)
        passing, result, cause = self._passed(quadratics, damping, control)
        means, variances = passing.means, passing.variances
        variables = view.graph.variables
        beyond = mass_beyond(variables.lower, variables.upper, means, np.sqrt(variances))
        change = control.rows[-1][1] if control.rows else 0.0
        findings = Findings(
            result, len(control.rows), cause, not passing.message.any(), on_forest, radius, beyond,
            variables, change, passing.rounding(),
        )  # fmt: skip

        def decode(seconds: float | None) -> Decoded:
            least = None
            if findings.is_exact:
                least = -view.graph.log_density(means)
            return Decoded(means[None], least)

        mixture = GaussianMixture(np.ones(1), means[:, None], variances[:, None])
        outcome = Outcome(
            result,
            LogPartition(
                passing.log_total(),
                "exact" if findings.is_exact else "estimate",
                findings.rounding if findings.is_exact else 0.0,
            ),
            [(np.arange(len(means)), mixture)],
            decode,
            findings.notes(),
        )
        return posterior_of(self.name, view, outcome, control, request)

    def _passed(
        self, quadratics: Quadratics, damping: Damping, control: Control
    ) -> tuple[Passing, Result, str]:
        """Messages after as many steps as are needed or allowed, how they ended, and why they
        diverged if they did."""
        passing = Passing.start(quadratics)
        scale = max(1.0, passing.size)
        steps = Steps.of(control, lambda: passing.arrays() | damping.arrays(), self.max_steps)
        for _ in steps:
            change = passing.step(damping.share)
            if change is None:
                return passing, "diverged", "the precision of some belief is no longer positive"
            damping.follow(change)
            steps.end_step(change, is_converged=change <= self.tolerance)
            first = control.rows[0][1]
            if change > GROWN * max(scale, first):
                return Passing.start(quadratics), "diverged", "messages grow without end"
        return passing, steps.result, ""
