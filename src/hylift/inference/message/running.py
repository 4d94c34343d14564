"""Settings, steps and posterior of all message passing."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hylift.archive import Arrays
from hylift.errors import UnsupportedError
from hylift.inference.control import LEAST_SECONDS, Control
from hylift.inference.finish import Answer, finish
from hylift.inference.held import State, count, fill, generator_state, restore_generator
from hylift.inference.loop import StepInfo
from hylift.inference.message.layout import CutShortError, FloatArray
from hylift.inference.method import Request
from hylift.inference.prepared import Prepared, View
from hylift.inference.search import polish
from hylift.inference.settings import check_whole, is_number, refuse_start
from hylift.inference.terms import has_repeats
from hylift.posterior import Assignment, LogPartition, Marginals, Mixture, Posterior, Result
from hylift.posterior.marginals import Batches
from hylift.posterior.target import Draw
from hylift.words import doubt, method_call, option, worded

SETTLED = 1e-9
"""Largest last change of a message at which an answer on a forest is exact."""
EQUAL = 1e-11
"""Relative difference of energies that is due to rounding."""

ENDLESS, LOOK = 1e30, 16
"""Size of a log-message that only divergence reaches, and steps from one look at it to the next:
before numbers overflow, which would look like a contradiction."""

DIVERGED = doubt(
    "Messages grew without end: the marginals are not to be trusted, and there is no log Z. Hard "
    "constraints in short loops do that."
)


def check_settings(damping: Any, max_steps: Any, tolerance: Any, merge_factors: Any) -> None:
    """Raise unless the settings that all message passing has make sense."""
    if damping is not None and (not is_number(damping) or not 0 <= float(damping) < 1):
        raise UnsupportedError(
            worded(
                option("damping"),
                " must be the share of its old value that a message keeps, at least 0 and below 1, "
                f"not {damping!r}",
            )
        )
    check_whole("max_steps", max_steps)
    if not is_number(tolerance) or not 0 < float(tolerance) < 1:
        raise UnsupportedError(f"tolerance must be a number between 0 and 1, not {tolerance!r}")
    if not isinstance(merge_factors, bool):
        raise UnsupportedError(
            worded(option("merge_factors"), f" must be True or False, not {merge_factors!r}")
        )


def view_of(name: str, prepared: Prepared, request: Request, *, merge: bool = False) -> View:
    """The graph to pass messages in: lifted, and with nested factors merged, where asked for."""
    if request.lift == "coarse-to-fine":
        raise UnsupportedError(
            f"{name} passes messages between classes whose members are alike, which those of "
            "coarse-to-fine lifting are not",
            worded("use ", option("lift", "exact"), " or ", option("lift", "none")),
        )
    refuse_start(name, request.start)
    if merge:
        prepared = prepared.with_merged_factors()
    return prepared.view(is_lifted=request.lift == "exact")


@dataclass(slots=True, eq=False)
class Exchange:
    """The steps of message passing."""

    advance: Callable[[int], tuple[float | None, Result | None]]
    """Take the step of this number, from 0; returns the largest change (None where no
    message was sent), and why it is the last, if it is. It may raise `CutShortError`."""
    state: Callable[[], State]
    """All that the next step depends on."""
    max_steps: int
    rng: np.random.Generator | None = None
    """The generator that `advance` draws from, if it does."""
    taken: int = 0

    def step(self) -> StepInfo:
        rng = None if self.rng is None else generator_state(self.rng)
        try:
            change, result = self.advance(self.taken)
        except CutShortError:
            if self.rng is not None and rng is not None:
                restore_generator(self.rng, rng)
            return StepInfo(None, "passing messages", self.taken / self.max_steps)
        self.taken += 1
        if result is None and self.taken >= self.max_steps:
            result = "max_steps"
        share = self.taken / self.max_steps
        return StepInfo(change, "passing messages", share, result)

    def arrays(self) -> State:
        rng = {} if self.rng is None else {"rng": generator_state(self.rng)}
        return {**self.state(), **rng, "taken": count(self.taken, self.max_steps)}

    def restore(self, arrays: Arrays) -> None:
        fill(self.arrays(), arrays)
        self.taken = int(arrays["taken"])
        if self.rng is not None:
            restore_generator(self.rng, arrays["rng"])


@dataclass(frozen=True, slots=True, eq=False)
class Decoded:
    """Assignments to start the search for the best one from."""

    values: FloatArray  # (start, variable of the view's graph)
    least_energy: float | None = None
    """A lower bound on the energy of any assignment, where one is known."""


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """The result of message passing in a view."""

    result: Result
    log_partition: LogPartition | None
    beliefs: Batches
    """Of variables of the view's graph; empty where they were not asked for."""
    decode: Callable[[float | None], Decoded]
    """Look for good assignments, in so many seconds."""
    notes: Sequence[str] = ()
    draw_reals: Draw | None = None
    """Draws whose reals depend on each other as in the answer; of a view that is not lifted."""


def grows_without_end(message: FloatArray, step: int) -> bool:
    """Return True if log-messages (entry,) have diverged, as far as it is looked at."""
    return step % LOOK == LOOK - 1 and bool((np.isfinite(message) & (message < -ENDLESS)).any())


def notes_on_loops(name: str, view: View, *, is_settled: bool) -> list[str]:
    """Notes for a graph that is not known to be a forest."""
    if not view.ground.is_ground:
        return [
            "Whether the ground graph has loops cannot be seen in a lifted one: log Z is called an "
            "estimate."
        ]
    notes = []
    if is_settled:
        notes.append("The graph has loops: the answers are those of Bethe's approximation.")
    if has_repeats(view.ground):
        notes.append(
            worded(
                "Several factors have the same variables, which is a loop between them: ",
                method_call(name, merge_factors=True),
                " makes them one.",
            )
        )
    return notes


def posterior_of(
    name: str, view: View, outcome: Outcome, control: Control, request: Request
) -> Posterior:
    """The posterior of all variables of the user's graph."""
    prepared, marginals = view.prepared, None
    if "marginals" in request.tasks:
        classes = Marginals.assemble(view.graph.num_variables, outcome.beliefs)
        marginals = classes.spread(view.variable_to_class)

    def find(
        mixture: Mixture | None = None,
        seconds: float | None = None,
        go_on: Callable[[], bool] | None = None,
    ) -> Assignment:
        began = time.perf_counter()
        decoded = outcome.decode(seconds)
        if seconds is not None:
            seconds = max(seconds - (time.perf_counter() - began), LEAST_SECONDS)
        starts = decoded.values[:, view.variable_to_class]
        best = polish(view.ground, starts, seconds=seconds, go_on=go_on, progress=request.progress)
        energy, least = -best.log_density, decoded.least_energy
        is_least = least is not None and energy - least <= EQUAL * (1 + abs(energy))
        return prepared.assignment(best.values, energy, "exact" if is_least else "estimate")

    log_z = outcome.log_partition
    objective = None if log_z is None else -log_z.value
    answer = Answer(
        outcome.result, objective, outcome.notes, find, log_z, marginals,
        draw=outcome.draw_reals, draws_states=False,
    )  # fmt: skip
    return finish(name, prepared, request, control, answer)
