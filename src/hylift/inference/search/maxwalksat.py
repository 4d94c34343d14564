"""Hybrid MaxWalkSAT: settings, starts, and the way from a graph to an assignment."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hylift.errors import UnsupportedError
from hylift.graph import Variables
from hylift.inference.control import Control
from hylift.inference.finish import Answer, finish
from hylift.inference.method import Request
from hylift.inference.prepared import Prepared
from hylift.inference.search.kernels.moves import UNBROKEN
from hylift.inference.search.state import BEST
from hylift.inference.search.walker import Walker, scattered
from hylift.inference.settings import check_whole, is_number
from hylift.posterior import Posterior
from hylift.proper.improper import ImproperDirection
from hylift.words import counted, doubt


@dataclass(frozen=True, slots=True)
class MaxWalkSAT:
    """A stochastic local search for the most probable assignment, and nothing else.

    Hybrid MaxWalkSAT (Wang & Domingos 2008): pick a factor that is not at its best, a broken hard
    one first, and move one of its variables: at random, or where the density is best given all
    others. Reals move to optima in closed form, along with the states they depend on, and are
    solved for jointly from time to time. It walks on the ground graph, whatever `lift` says; there
    are no marginals and no log Z.
    """

    flips: int = 1_000_000
    """Factors to pick from each start; some are picked in vain, if no move is worth while."""
    restarts: int = 3
    """Starts, of which all but the first are random; the best assignment of all is kept."""
    random: float = 0.1
    """Probability of a random move."""
    noise: float = 1.0
    """Of a random move of a real: standard deviations (of it given all others) from its optimum."""

    def __post_init__(self) -> None:
        check_whole("flips", self.flips)
        check_whole("restarts", self.restarts)
        if not is_number(self.random) or not 0 <= self.random <= 1:
            raise UnsupportedError(
                f"random is the probability of a random move, from 0 to 1, not {self.random!r}"
            )
        if not is_number(self.noise) or not 0 <= self.noise < np.inf:
            raise UnsupportedError(
                f"noise is a number of standard deviations, 0 or more, not {self.noise!r}"
            )

    @property
    def name(self) -> str:
        return "MaxWalkSAT"

    def solve(self, prepared: Prepared, request: Request) -> Posterior:
        control, graph = Control(request, "energy"), prepared.ground
        control.enter_level(graph.num_variables)
        rng = np.random.default_rng(request.seed)
        starts = assignments(graph.variables, request.start, rng)
        walker = Walker.of(
            graph, control, rng,
            flips=int(self.flips), random=float(self.random), noise=float(self.noise),
        )  # fmt: skip
        is_proved = walker.run(starts, int(self.restarts))
        energy = -graph.log_density(walker.walk.best)
        assignment = prepared.assignment(walker.walk.best, energy)
        answer = Answer(
            control.ended or ("converged" if is_proved else "max_steps"),
            energy,
            _notes(walker),
            lambda *_: assignment,
            assignment=assignment,
            steps=walker.picks,
        )
        return finish(self.name, prepared, request, control, answer)


def _notes(walker: Walker) -> list[str]:
    """Notes for the user."""
    seconds = max(walker.control.elapsed, 1e-9)
    notes = [
        f"Tried {counted(walker.picks, 'flip')}, {walker.picks / seconds:,.0f} a second; "
        f"{walker.moves:,} moved a variable, {walker.moves / seconds:,.0f} a second."
    ]
    broken = float(walker.walk.worth[BEST, 0])
    if broken > UNBROKEN:
        notes.append(
            doubt(
                "No assignment was found that satisfies all hard factors: the best one breaks "
                f"{broken:g} of them. More flips or restarts may help, unless they contradict each "
                "other."
            )
        )
    if walker.loose is not None:
        found = ImproperDirection.of(
            walker.written.graph.variables, {walker.loose: 1.0}, curvature=-1.0
        )
        notes.append(f"There is no best assignment, because {found}: {found.remedy}.")
    return notes


FloatArray = NDArray[np.float64]


def assignments(
    variables: Variables, earlier: Posterior | None, rng: np.random.Generator
) -> Iterator[FloatArray]:
    """First what is known or plain, then random assignments without end.

    variables: those that are hidden.
    """
    first = _plain(variables)
    yield first if earlier is None else _of_posterior(variables, earlier, first)
    while True:
        yield scattered(variables, rng)


def _plain(variables: Variables) -> FloatArray:
    """The first state of each discrete variable, and reals as near 0 as their bounds allow."""
    real = np.clip(0.0, variables.lower, variables.upper)
    return np.where(variables.num_states > 0, 0.0, real)


def _of_posterior(variables: Variables, posterior: Posterior, otherwise: FloatArray) -> FloatArray:
    """The best assignment of an earlier run, for the variables of the same names."""
    known = posterior.variables
    if posterior.assignment is not None:
        values = posterior.assignment.values
    elif posterior.all_marginals is not None:
        values = posterior.all_marginals.modes(np.arange(len(known)))
        if posterior.mixture is not None:
            values[posterior.mixture.hidden] = posterior.mixture.mode()[0]
    else:
        raise UnsupportedError(
            "a walk starts from a posterior with marginals or a MAP assignment, and this one has "
            "neither: infer it with 'marginals' or 'map' among the tasks"
        )
    at = variables.places_in(known)
    found = np.append(values, np.nan)[at]
    is_real = variables.num_states == 0
    clipped = np.clip(found, variables.lower, variables.upper)
    return np.where(at >= 0, np.where(is_real, clipped, found), otherwise)
