"""An answer beside runs that begin flat: particles, more of them while in doubt, then chains."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hylift.graph import FactorGraph
from hylift.inference.attempts import Attempts
from hylift.inference.checking.better import (
    SIGNIFICANT,
    UNSURE_SUM,
    are_messages_better,
    with_sum,
)
from hylift.inference.checking.cost import FEWEST_DRAWS, affordable_chains
from hylift.inference.checking.gaps import Gaps, Kind, missed
from hylift.inference.checking.limits import LOWER, Limits, bound, limits_to_sum, within
from hylift.inference.checking.peak import start_at_peak
from hylift.inference.method import Method, Task
from hylift.inference.sampling import Gibbs
from hylift.inference.search.landmarks import Landmarks
from hylift.inference.smc import SMC
from hylift.inference.smc.cost import particle_seconds
from hylift.inference.smc.run import needs_values
from hylift.inference.solve import rewritten_for
from hylift.posterior import Posterior, Trust
from hylift.posterior.draws import Draws
from hylift.posterior.mixing import few_decide, tail_shape, variance_of_sums, widened
from hylift.posterior.trust import (
    CHECKED,
    DOUBTFUL,
    MOST_MEAN,
    MOST_PROB,
    MOST_STD,
    UNCHECKED,
    Verdict,
    relative_size,
)
from hylift.rewrite.kinds import Kinds
from hylift.words import counted, duration, listed

PARTICLES = (64, 256, 1024)
"""Of each group: more where fewer leave variables in doubt."""
PRECISE, PRECISE_SUM = 0.5, 0.15
"""Errors, as multiples of what is still right, and of log Z, above which more particles follow."""
NO_VARIANCE = 0.5
"""Shape of a tail from which on it has none."""
BOTH: frozenset[Task] = frozenset({"marginals", "logz"})


@dataclass(slots=True)
class Check:
    """Independent runs on one model, and an answer that they are compared with."""

    attempts: Attempts
    answer: Posterior | None
    keeps: bool = True
    """The answer is returned where it is confirmed; else the run that confirms it is."""
    limits: list[Limits] = field(default_factory=list)
    informed: list[Posterior] = field(default_factory=list)
    """Particles that began at the answer, or at a peak of functions: they may know what others have
    missed."""
    is_blind: bool = False
    """True if a function may have peaks that no run would meet."""
    num_runs: int = 0
    has_ended: bool = False
    """True once the user has stopped it."""

    def run(self) -> Posterior | None:
        """The better answer with its trust; None where no independent run was affordable."""
        if not self.attempts.prepared.ground.is_ground:
            return None
        found = self._by_particles()
        if self.has_ended or (found is not None and found.trust.verdict == "checked"):
            return found and within(found, self.limits)
        told = len(self.attempts.notes)
        chains = self._by_chains(found)
        if found is None or (chains is not None and chains.trust.verdict == "checked"):
            return chains
        if chains is not None:
            self.attempts.notes[told:] = ["Gibbs came next, and was in doubt, too."]
        # Particles are right more often where both are in doubt, unless they are lost.
        if self.answer is None or not are_messages_better(self.answer, found, self.limits):
            return found
        return self._by_messages(self.answer, found)

    def _by_messages(self, answer: Posterior, found: Posterior) -> Posterior:
        """The answer, with the doubts of particles that are lost."""
        own, name = answer.solution.method, found.solution.method
        self.attempts.notes.append(f"{name} is lost here: these are the marginals of {own}.")
        if answer.log_partition is not None and answer.log_partition.kind == "estimate":
            answer = replace(answer, log_partition=replace(answer.log_partition, error=np.inf))
        return replace(answer, checked=self._trust(answer, found, "smc", None))

    def _by_particles(self) -> Posterior | None:
        found: Posterior | None = None
        graph = rewritten_for(SMC(), self.attempts.prepared, self.attempts.rewrites).ground
        for particles in PARTICLES:
            method = SMC(particles=particles)
            seconds = particle_seconds(graph, method)
            if self.has_ended:
                break
            if not self.attempts.clock.affords(seconds):
                if found is None:
                    self._note_untried(method, f"it should take about {duration(seconds)}")
                break
            own = flat = self._attempt(method)
            if own is None or flat is None:
                break
            if found is None:
                flat = self._informed(own, method, seconds, graph)
                self.limits = self._limits(flat)
            else:
                self._note_escalation(found, f"{particles} particles in each group")
            found = self._judged(flat, "smc")
            if found.trust.verdict == "checked" and (self._is_kept(found) or _is_precise(found)):
                break
            if flat is not own or self.is_blind:  # more flat ones would not see more
                break
        return found

    def _informed(
        self, flat: Posterior, method: SMC, seconds: float, graph: FactorGraph
    ) -> Posterior:
        """The flat run; or one from a peak of functions that it has not seen, if that has more of
        the distribution. Those from there and from the answer are kept."""
        clock = self.attempts.clock
        if self.answer is not None and clock.affords(seconds):
            self._inform(method, replace(self.answer, mixture=None))
        landmarks = Landmarks.of(Kinds.of(graph))
        self.is_blind = landmarks.is_blind
        start = start_at_peak(graph, landmarks, flat, clock.left())
        peak = None
        if start is not None and clock.affords(seconds):
            peak = self._inform(method, start)
        if peak is None or _log_sum(peak) <= _log_sum(flat):
            return flat
        self.informed[-1] = flat
        self.attempts.notes.append(
            "Particles that began flat missed most of the distribution, which is at a narrow peak "
            "of functions: these began there."
        )
        return peak

    def _inform(self, method: SMC, start: Posterior) -> Posterior | None:
        found = self._attempt(method, start=start, callback=None)
        if found is not None:
            self.informed.append(found)
        return found

    def _by_chains(self, before: Posterior | None) -> Posterior | None:
        """The answer of Gibbs; before: a doubtful one of particles, which it must agree with."""
        attempts = self.attempts
        graph = rewritten_for(Gibbs(), attempts.prepared, attempts.rewrites).ground
        method = affordable_chains(graph, attempts.clock)
        if method is None:
            self._note_untried(Gibbs(), f"it should take {FEWEST_DRAWS} draws of each chain")
        flat = None if method is None else self._attempt(method)
        if flat is None:
            return None
        if before is not None:
            self._note_escalation(before, "Gibbs")
        other = before or self.answer
        if other is None and "logz" in attempts.request.tasks:
            other = bound(LOWER, attempts)
        if other is not None and other.log_partition is not None:
            log_z, name = other.log_partition, other.solution.method
            if before is None and log_z.kind == "estimate":
                log_z = replace(log_z, error=np.inf)
                name += ", and nothing is known of its error"
            flat = replace(flat, log_partition=log_z)
            attempts.notes.append(f"log Z is that of {name}: Gibbs does not estimate it.")
        return self._judged(flat, "gibbs", before)

    def _attempt(self, method: Method, **changes: Any) -> Posterior | None:
        """The answer of a run; None if it ended early, and there is another answer."""
        request = self.attempts.request
        tasks = BOTH if self.answer is not None else BOTH | request.tasks
        # An answer that is to be confirmed may be of the same method, with the seed of the user.
        number, self.num_runs = self.num_runs + self.keeps, self.num_runs + 1
        seed = request.seed
        if number:
            seed = int(np.random.SeedSequence([seed, number]).generate_state(1)[0])
        found = self.attempts.attempt(method, tasks=tasks, checkpoint=None, seed=seed, **changes)
        if found is not None:
            found = replace(found, solution=replace(found.solution, seed=request.seed))
        if found is None or found.solution.result in ("converged", "max_steps"):
            return found
        self.has_ended = found.solution.result in ("stopped", "interrupted")
        if self.answer is None or not found.solution.doubts:
            return found
        why = (
            f"{method.name} was stopped"
            if self.has_ended
            else f"Time was too short for {method.name}"
        )
        self.attempts.notes.append(f"{why}, which was to check the answer.")
        return None

    def _limits(self, flat: Posterior) -> list[Limits]:
        return limits_to_sum(self.answer, flat, self.attempts)

    def _judged(self, flat: Posterior, kind: Kind, before: Posterior | None = None) -> Posterior:
        """The answer where the run confirms it, else that run, with its trust."""
        if self.answer is not None and self.keeps:
            trust = self._trust(self.answer, flat, kind, before)
            if trust.verdict == "checked":
                return replace(with_sum(self.answer, flat), checked=trust)
        found = replace(flat, checked=self._trust(flat, flat, kind, before))
        return found if self.answer is None else replace(found, assignment=self.answer.assignment)

    def _trust(
        self, answer: Posterior, flat: Posterior, kind: Kind, before: Posterior | None
    ) -> Trust:
        assert flat.draws is not None
        gaps = Gaps.between(answer, flat)
        if before is not None:
            gaps = gaps.and_from(Gaps.between(answer, before))
        prob, mean, std = gaps.errors(flat.draws.standard_errors(), kind)
        for one in self.informed if kind == "smc" else ():
            prob, mean, std = map(np.maximum, (prob, mean, std), missed(flat, one))
        std = np.where(self._has_heavy_tail(flat.draws), np.inf, std)
        errors = prob, mean, std
        is_wrong = ~(relative_size(*errors) <= 1.0)
        weights = flat.draws.weights
        if weights is not None:
            is_wrong |= few_decide(weights)
        ids = np.flatnonzero(~answer.observed)
        of_run = self._why_not(flat, before or flat)
        why = of_run or _why_doubtful(answer, ids, is_wrong)
        verdict: Verdict = "checked" if why is None else "doubtful"
        rest = CHECKED if of_run is None else UNCHECKED  # a run in doubt confirms nothing
        level = np.where(is_wrong, DOUBTFUL, rest).astype(np.int8)
        why = why or _why_checked(answer, flat, *errors[:2])
        return Trust(answer.variables, ids, verdict, why, level, *errors)

    def _has_heavy_tail(self, draws: Draws) -> NDArray[np.bool_]:
        """(hidden variable,): true if draws without bounds have a tail so heavy that their
        deviation says little: most of it may be beyond the last of them."""
        graph = self.attempts.prepared.ground
        low, high = graph.variables.lower, graph.variables.upper
        found = np.zeros(graph.num_variables, dtype=bool)
        # Other reals are Gaussian given the states.
        some = np.flatnonzero(needs_values(graph) & (graph.variables.num_states == 0))
        if not len(some):
            return found
        values = draws.resampled().values[:, :, some].reshape(-1, len(some))
        for sign, end in ((1.0, high[some]), (-1.0, -low[some])):
            found[some] |= (end == np.inf) & (tail_shape(sign * values) > NO_VARIANCE)
        return found

    def _why_not(self, flat: Posterior, particles: Posterior) -> str | None:
        """Something that is wrong with a run as a whole; particles: the one that sums."""
        if flat.solution.doubts:
            return flat.solution.doubts[0]
        if self.is_blind:
            return (
                "A function is the same number at all points where it was looked at: it may have "
                "a peak that no run has met."
            )
        log_z = particles.log_partition
        if log_z is None or particles.draws is None or particles.draws.weights is None:
            return None
        weights = particles.draws.weights
        off = widened(len(weights) - 1) * float(variance_of_sums(weights).max(initial=0.0)) ** 0.5
        if off > UNSURE_SUM:
            return (
                f"Groups of particles disagree about log Z of a part, by {off:.2g}: modes may have "
                "been missed."
            )
        slack = SIGNIFICANT * log_z.error
        for one in self.limits:
            if one.lower > log_z.value + slack or one.upper < log_z.value - slack:
                end = f"at least {one.lower:.6g}"
                if one.upper < log_z.value:
                    end = f"at most {one.upper:.6g}"
                return (
                    f"log Z is {log_z.value:.6g} by particles that begin flat, and {end} by the "
                    f"bound of {one.source}: modes may have been missed."
                )
        return None

    def _is_kept(self, found: Posterior) -> bool:
        return self.answer is not None and found.all_marginals is self.answer.all_marginals

    def _note_untried(self, method: Method, why: str) -> None:
        note = f"{method.name} was not tried: {why}, more than there is time for."
        self.attempts.notes.append(note)

    def _note_escalation(self, found: Posterior, what: str) -> None:
        name, trust = found.solution.method, found.trust
        count = int((trust.size > PRECISE).sum())
        about = counted(count, "variable") if count else "log Z"
        self.attempts.notes.append(f"{name} was not sure enough of {about}, and {what} came next.")


def _log_sum(posterior: Posterior) -> float:
    assert posterior.log_partition is not None
    return posterior.log_partition.value


def _is_precise(found: Posterior) -> bool:
    """True if more particles would change little."""
    log_z = found.log_partition
    is_sure = log_z is None or log_z.error <= PRECISE_SUM
    return is_sure and bool(np.nanmax(found.trust.size, initial=0.0) <= PRECISE)


def _why_doubtful(
    answer: Posterior, ids: NDArray[np.int64], is_wrong: NDArray[np.bool_]
) -> str | None:
    if not is_wrong.any():
        return None
    name = answer.variables.names[int(ids[np.argmax(is_wrong)])]
    return (
        f"{counted(int(is_wrong.sum()), 'variable')} of {len(ids):,}, such as '{name}', may be off "
        f"by more than {MOST_PROB} (a probability), {MOST_MEAN} deviations (a mean) or a factor "
        f"{MOST_STD} (a deviation)."
    )


def _why_checked(
    answer: Posterior, flat: Posterior, prob: NDArray[np.float64], mean: NDArray[np.float64]
) -> str:
    assert flat.draws is not None
    who = "Independent groups of particles"
    if flat.draws.weights is None:
        who = "Chains from different starts"
    agree = "agree" if answer is flat else f"agree with {answer.solution.method}"
    parts = [
        f"{np.nanmax(error):.2g}{unit}"
        for error, unit in ((prob, " in any probability"), (mean, " deviations in any mean"))
        if not np.isnan(error).all()
    ]
    if not parts:
        return "There is nothing hidden."
    return f"{who} {agree}: the error should be at most {listed(parts)}."
