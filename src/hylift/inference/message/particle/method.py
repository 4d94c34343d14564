"""Expectation particle belief propagation: settings, solution and notes."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from hylift.inference.control import Control
from hylift.inference.held import Held, State
from hylift.inference.loop import run_steps
from hylift.inference.message.layout import CutShortError, FloatArray
from hylift.inference.message.particle.density import RealBeliefs, densities
from hylift.inference.message.particle.factors import HybridTerms
from hylift.inference.message.particle.messages import MIDDLE, ParticleMessages
from hylift.inference.message.particle.proposals import narrowest
from hylift.inference.message.running import (
    DIVERGED,
    Decoded,
    Exchange,
    Outcome,
    check_settings,
    grows_without_end,
    notes_on_loops,
    posterior_of,
    view_of,
)
from hylift.inference.method import Request
from hylift.inference.prepared import Prepared, View
from hylift.inference.settings import check_whole
from hylift.numerics.segments import argmaxima
from hylift.posterior import LogPartition, Posterior, Result
from hylift.posterior.marginals import Batches, categoricals
from hylift.words import doubt, suspicion

MOST_ADAPTING = 100
"""Steps that adapt proposals, at most."""
PATIENCE, DAMPING = 100, 0.5
"""Steps between fixed particles after which messages are damped, and the default damping."""
AT_REST = 0.05
"""Change of proposals, in standard deviations, at which adaptation ends."""
LEAST_PARTICLES = 8
"""With fewer, beliefs have no shape that proposals could follow."""
FAR = 0.02
"""Relative error of sums over particles above which a note is made."""
UNSURE = 0.05
"""Change of a belief, as total variation, when particles are moved, above which marginals are not
to be trusted. Where particles made some KL to the exact marginal larger than 1, 0.08 or more was
seen; of right answers most change by less than 0.04, some by up to 0.08."""
LOST = 2.0
"""Effective particles of a real at some step below which modes between them may be lost."""
APART = 2.5
"""Gap of particles, in standard deviations of a factor, from which sums are some per cent off."""


@dataclass(frozen=True, slots=True)
class EPBP:
    """Expectation particle belief propagation (Lienart, Teh & Doucet 2015), for any graph.

    Discrete variables are summed exactly. Each real has particles with importance weights, drawn
    by strata from a Gaussian that takes on the moments of the belief, step by step; then messages
    are passed between fixed particles until they converge. All answers are estimates, with the
    error of Bethe's approximation where there are loops, and that of sums over particles.
    """

    particles: int = 50
    """Of each real. The work grows with their number to the power of a factor's reals."""
    damping: float | None = None
    """Share of its old logarithm that a message keeps, and of its old self that a proposal; by
    default 0 at first, and 0.5 where messages take long to converge."""
    max_steps: int = 1000
    tolerance: float = 1e-9
    """Largest change of a message, as of a probability, at which it has converged."""
    merge_factors: bool = False
    """Merge factors with nested scopes into one, which leaves fewer loops."""

    def __post_init__(self) -> None:
        check_settings(self.damping, self.max_steps, self.tolerance, self.merge_factors)
        check_whole("particles", self.particles, LEAST_PARTICLES)

    @property
    def name(self) -> str:
        return f"EPBP({self.particles})"

    def solve(self, prepared: Prepared, request: Request) -> Posterior:
        control = Control(request, "largest change")
        view = view_of(self.name, prepared, request, merge=self.merge_factors)
        view.prepared.check_proper()
        control.enter_level(view.graph.num_variables)
        passing = ParticleMessages.start(HybridTerms.of(view.graph), self.particles)
        result, damping = self._pass(passing, control, np.random.default_rng(request.seed))
        passing.go_on = control.has_grace
        found = unsure = log_z = None
        if request.tasks & {"marginals", "map"}:
            found = densities(passing, control.should_continue)
            if passing.factors.is_real.any() and control.should_continue():
                with suppress(CutShortError):
                    unsure = passing.sensitivity(damping)
        if result != "diverged":
            with suppress(CutShortError):
                log_z = LogPartition(passing.log_total(), "estimate")

        def decode(seconds: float | None) -> Decoded:
            own = found
            if own is None:
                clock = control.inner(seconds)
                passing.go_on = clock.has_grace
                own = densities(passing, clock.should_continue)
            return Decoded(_modes(passing, own)[None])

        outcome = Outcome(
            result,
            log_z,
            _beliefs(passing, found) if "marginals" in request.tasks else [],
            decode,
            (*_notes_on_messages(view, result, control), *self._notes(passing, found, unsure)),
        )
        return posterior_of(self.name, view, outcome, control, request)

    def _pass(
        self, passing: ParticleMessages, control: Control, rng: np.random.Generator
    ) -> tuple[Result, float]:
        """Take steps until convergence or a limit; returns how they ended, and the last damping."""
        most = min(MOST_ADAPTING, self.max_steps // 2) if passing.factors.is_real.any() else 0
        adapting = np.array(most)  # steps that adapt particles

        def advance(step: int) -> tuple[float | None, Result | None]:
            damping = self._damping_at(step, int(adapting))
            # Without the first step there is no answer.
            passing.go_on = control.should_continue if step else control.has_grace
            # Messages to new particles were not damped; from here on they are.
            if step in (adapting + 1, adapting + PATIENCE):
                passing.forget_if_grown()
            # Before the first step there are no messages to adapt to.
            if 0 < step <= adapting:
                at = MIDDLE if step == adapting else float(rng.random())
                change = passing.adapt(at, damping)
                if change <= AT_REST:
                    adapting[...] = min(adapting, step + 1)
                return change, None
            change = passing.step(damping if step else 0.0)
            if grows_without_end(passing.message, step):
                return change, "diverged"
            is_at_rest = change <= self.tolerance and step >= adapting
            return change, "converged" if is_at_rest else None

        def state() -> State:
            return {**passing.arrays(), "adapting": Held(adapting, 0, most)}

        steps = Exchange(advance, state, self.max_steps, rng)
        return run_steps(steps, control), self._damping_at(steps.taken - 1, int(adapting))

    def _damping_at(self, step: int, adapting: int) -> float:
        if self.damping is not None:
            return self.damping
        return 0.0 if step < adapting + PATIENCE else DAMPING

    def _notes(
        self, passing: ParticleMessages, found: RealBeliefs | None, unsure: FloatArray | None
    ) -> tuple[str, ...]:
        if found is None:
            return ()
        names = passing.factors.graph.variables.names
        effective = passing.effective(passing.probs())[found.real]
        worst, farthest = int(np.argmin(effective)), int(np.argmax(found.error))
        notes = [
            f"Each real has {self.particles} particles; '{names[int(found.real[worst])]}' has the "
            f"fewest effective ones, {effective[worst]:.1f}."
        ]
        is_unsure = unsure is not None and unsure.max() > UNSURE
        if unsure is None:
            notes.append(
                doubt(
                    "The marginals are unchecked: time ran out before finding out how much they "
                    "depend on where particles lie."
                )
            )
        elif is_unsure:
            most = int(np.argmax(unsure))
            notes.append(
                doubt(
                    "The marginals are not to be trusted, even if messages have converged: they "
                    "depend on where particles lie. Moving the particles within their strata "
                    f"changes the belief about '{names[most]}' by {unsure[most]:.0%} (total "
                    "variation). Use many more particles, or another method, such as BVI."
                )
            )
        if found.is_cut:
            notes.append(doubt("Time was too short for densities: reals are taken as Gaussian."))
        lost = int(np.argmin(passing.fewest[found.real]))
        if passing.fewest[found.real][lost] < LOST:
            notes.append(
                suspicion(
                    f"While proposals were adapted, '{names[int(found.real[lost])]}' had "
                    f"{passing.fewest[found.real][lost]:.1f} effective particles: what lies "
                    "between particles, such as another narrow mode, may have been missed. Compare "
                    "with more."
                )
            )
        gap = passing.proposals.gaps(self.particles)[found.real]
        width = narrowest(passing.factors.graph)[found.real]
        tight = int(np.argmax(gap / width))
        if gap[tight] > APART * width[tight]:
            notes.append(
                suspicion(
                    f"A factor holds '{names[int(found.real[tight])]}' within {width[tight]:.2g}, "
                    f"in some state, and particles are {gap[tight]:.2g} apart: sums over them may "
                    "miss that. Use more particles."
                )
            )
        elif found.error[farthest] > FAR and not is_unsure:
            notes.append(
                doubt(
                    f"The particles of '{names[int(found.real[farthest])]}' are too far apart to "
                    f"resolve its factors: sums over them are {found.error[farthest]:.0%} off. Use "
                    "more particles."
                )
            )
        return tuple(notes)


def _notes_on_messages(view: View, result: Result, control: Control) -> list[str]:
    notes = []
    if not view.prepared.is_forest:
        notes = notes_on_loops("EPBP", view, is_settled=result == "converged")
    if result == "max_steps":
        notes.append(
            doubt(
                "Messages did not converge, so the marginals are not to be trusted: more steps, or "
                "some damping, may help."
            )
        )
    if result == "diverged":
        notes.append(DIVERGED)
    if not control.steps:
        notes.append(
            doubt("Time was too short for one step: the marginals are those of first proposals.")
        )
    return notes


def _beliefs(passing: ParticleMessages, found: RealBeliefs | None) -> Batches:
    beliefs = categoricals(passing.factors.graph.variables, passing.points.first, passing.probs())
    return beliefs if found is None else [*beliefs, (found.real, found.density)]


def _modes(passing: ParticleMessages, found: RealBeliefs | None) -> FloatArray:
    """(variable,): the most probable value of each belief."""
    values = argmaxima(passing.probs(), passing.points.first).astype(np.float64)
    if found is not None:
        values[found.real] = found.density.mean if found.is_cut else found.density.mode
    return values
