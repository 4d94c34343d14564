"""Particles of both kinds, each for the parts of a graph that it suits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numba import get_num_threads
from numpy.typing import NDArray

from hylift.archive import Arrays
from hylift.errors import IntractableError
from hylift.graph import FactorGraph, Variables
from hylift.inference.control import Control
from hylift.inference.held import State, part_of, prefixed
from hylift.inference.local.terms import LocalTerms
from hylift.inference.loop import StepInfo
from hylift.inference.sampling.state import GaussianSums
from hylift.inference.smc.answers import GroupAnswers, joined
from hylift.inference.smc.base import flat_base, flat_probs, started_base
from hylift.inference.smc.cliques import cliques_of
from hylift.inference.smc.kernels.temper import FINAL
from hylift.inference.smc.population import PILOT, SECONDS_PER_WORK, Cells, Population
from hylift.inference.smc.tempered import Tempered
from hylift.rewrite.kinds import Kinds
from hylift.rewrite.parts import parts_of, some_parts
from hylift.words import counted

Ids = NDArray[np.int64]

MOST_STORED = 1 << 26
"""Numbers of eight bytes that are stored of all draws."""

MOST_NUMBERS, LEAST_NUMBERS = 1 << 29, 1 << 12
"""Numbers that all particles may take, and those that a group takes at least."""

ROOM = 1 << 25
"""Numbers that all mixtures may take."""

LEAST_SWEEPS = 2
"""One on the way, and the one that is recorded."""

PER_VALUE, PER_SLOT = 2e-6, 2e-7
"""Seconds for a variable of a particle that has values of reals; and for a slot of a function."""

MOST_COMPONENTS = 32
"""Of the mixture of a real."""


class Size(NamedTuple):
    """The numbers of a run."""

    groups: int
    particles: int
    sweeps: int
    num_hidden: int
    """Variables whose values are stored in the end, before rewrites."""

    def check(self, num_variables: int) -> None:
        """Raise if particles would not fit into memory."""
        numbers = self.groups * (LEAST_NUMBERS + self.particles * num_variables)
        if numbers > MOST_NUMBERS:
            raise IntractableError(
                f"{self.groups:,} groups of {self.particles:,} particles with "
                f"{counted(num_variables, 'variable')} each need about {numbers:,} numbers in "
                f"memory, more than {MOST_NUMBERS:,}: use fewer groups or particles"
            )

    def stored(self) -> tuple[int, int]:
        """Particles of a group, and sweeps, that are stored."""
        room = MOST_STORED // max(self.groups * self.num_hidden, 1)
        num_kept = int(np.clip(room, 4, self.particles))
        return num_kept, int(np.clip(room // num_kept, 1, self.sweeps))


@dataclass(slots=True, eq=False)
class Run:
    """The stepper: every population that has not ended makes a step."""

    variables: Variables
    log_constant: float
    populations: list[tuple[Ids, Population | Tempered]]  # with their variables

    @classmethod
    def of(cls, graph: FactorGraph, size: Size, control: Control) -> Run:
        size.check(graph.num_variables)
        is_tempered, populations = needs_values(graph), list[tuple[Ids, Population | Tempered]]()
        log_constant = graph.log_constant
        for own in (False, True):
            is_own = is_tempered == own
            if not is_own.any() and (own or len(is_own)):
                continue
            some = graph if is_own.all() else some_parts(graph, is_own)
            kinds = Kinds.of(some)
            log_constant += kinds.log_constant - some.log_constant
            make = _tempered if own else _collapsed
            populations.append((np.flatnonzero(is_own), make(kinds, size, control)))
        return cls(graph.variables, log_constant, populations)

    @property
    def steps(self) -> int:
        return max(one.steps for _, one in self.populations)

    def step(self) -> StepInfo:
        found = [one.step() for _, one in self.populations if not one.is_done]
        objective = sum(info.objective or 0.0 for info in found)
        is_last = all(one.is_done for _, one in self.populations)
        what = "tempering" if "tempering" in {info.what for info in found} else "sampling"
        share = min((info.share for info in found), default=1.0)
        return StepInfo(objective, what, share, "max_steps" if is_last else None)

    def finish(self, control: Control) -> bool:
        """Go to the end at once, where it was not reached; True if that was by weights alone."""
        is_cut = not all(one.is_at_end for _, one in self.populations)
        for _, one in self.populations:
            one.hurry(control.keep_on)
        return is_cut

    def answers(self) -> GroupAnswers:
        return joined(self.variables, [(ids, one.answers()) for ids, one in self.populations])

    def notes(self) -> list[str]:
        notes = []
        for ids, one in self.populations:
            if isinstance(one, Population) and one.num_wide:
                wide = counted(one.num_wide, "variable")
                notes.append(f"{wide} with reals in many places made sweeps slow.")
            if isinstance(one, Tempered):
                reals = counted(int((self.variables.num_states[ids] == 0).sum()), "real")
                notes.append(
                    f"Particles have values of {reals}, in parts with bounds or functions of reals."
                )
        return notes

    def arrays(self) -> State:
        return {
            name: array
            for number, (_, one) in enumerate(self.populations)
            for name, array in prefixed(str(number), one.arrays()).items()
        }

    def restore(self, arrays: Arrays) -> None:
        for number, (_, one) in enumerate(self.populations):
            one.restore(part_of(str(number), arrays))


def needs_values(graph: FactorGraph) -> NDArray[np.bool_]:
    """(variable,): whether bounds or functions are in its part, so that its reals are not Gaussian
    given the states."""
    variables, (part, num_parts) = graph.variables, parts_of(graph)
    is_open = np.isneginf(variables.lower) & np.isposinf(variables.upper)
    needs = np.bincount(part, (variables.num_states == 0) & ~is_open, num_parts) > 0
    for group in graph.groups:
        if group.potential.quadratic() is None and group.arity:
            needs[part[group.scope[:, 0]]] = True
    return np.asarray(needs[part])


def sweep_of_values(kinds: Kinds, size: Size) -> float:
    """Predicted seconds of a sweep of particles that have values of reals."""
    slots = sum(group.scope.size for group in kinds.functions)
    each = PER_VALUE * kinds.graph.num_variables + PER_SLOT * slots
    return size.groups * size.particles * each


def _collapsed(kinds: Kinds, size: Size, control: Control) -> Population:
    """Particles of states alone: reals are integrated out."""
    graph, start = kinds.graph, control.request.start
    terms = LocalTerms.of(kinds)
    part, num_parts = parts_of(graph)
    cliques = cliques_of(terms, part, num_parts, size.particles)
    num_reals = int((terms.variable["num_states"] == 0).sum())
    room = 2 * int(np.clip(ROOM // (6 * (size.groups + 1) * max(num_reals, 1)), 1, MOST_COMPONENTS))
    if start is None:
        base = np.log(flat_probs(graph.variables))
    else:
        base = started_base(graph.variables, start).log_probs
    seed, sweeps = control.request.seed, size.sweeps
    work = size.groups * size.particles * float(cliques.work().sum()) / get_num_threads()
    control.check_fits(LEAST_SWEEPS * work * SECONDS_PER_WORK, "SMC")
    pilot = Cells.of(cliques, 1, min(size.particles, PILOT), sweeps, [seed, 1])
    pilot.phase[:, cliques.part["num_joint"] > 0] = FINAL  # enumerated
    return Population(
        graph,
        terms,
        part,
        cliques,
        base,
        Cells.of(cliques, size.groups, size.particles, sweeps, seed),
        pilot,
        np.zeros((num_parts, 0)),
        np.zeros((size.groups, terms.num_scores)),
        [GaussianSums.empty(num_reals, room) for _ in range(size.groups)],
        np.zeros((size.groups, *size.stored(), graph.num_variables)),
    )


def _tempered(kinds: Kinds, size: Size, control: Control) -> Tempered:
    """Particles of states and reals."""
    graph, start = kinds.graph, control.request.start
    control.check_fits(LEAST_SWEEPS * sweep_of_values(kinds, size), "SMC")
    first, second = np.random.SeedSequence(control.request.seed).spawn(2)
    base = None if start is None else started_base(graph.variables, start)
    if base is None or not base.is_proper:
        base = flat_base(kinds, control, first).overlaid(base)
    part, _ = parts_of(graph)
    stored = size.stored()
    return Tempered.of(kinds, base, part, size[:3], stored, second)
