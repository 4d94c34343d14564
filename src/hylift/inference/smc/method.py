"""Sequential Monte Carlo: settings, and the way from a graph to a posterior."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hylift.errors import UnsupportedError
from hylift.graph import FactorGraph
from hylift.inference.control import Control
from hylift.inference.finish import Answer, finish
from hylift.inference.local.terms import LocalTerms
from hylift.inference.loop import run_steps
from hylift.inference.method import Request
from hylift.inference.prepared import Prepared
from hylift.inference.sampling.state import GaussianSums
from hylift.inference.search import polish
from hylift.inference.settings import check_whole
from hylift.inference.smc.cliques import cliques_of
from hylift.inference.smc.findings import Findings
from hylift.inference.smc.population import Cells, Population
from hylift.numerics.segments import offsets
from hylift.posterior import Assignment, Categorical, Mixture, Posterior
from hylift.posterior.draws import Draws
from hylift.rewrite.kinds import Kinds
from hylift.rewrite.parts import parts_of
from hylift.words import counted, doubt, method_call, worded

FloatArray = NDArray[np.float64]

MOST_STORED = 1 << 26
"""Numbers of eight bytes that are stored of all draws."""

ROOM = 1 << 25
"""Numbers that all mixtures may take."""

MOST_COMPONENTS = 32
"""Of the mixture of a real."""

LEAST_SHARE = 0.02
"""Of a start that is uniform, so that nothing that it has missed is out of reach."""


@dataclass(frozen=True, slots=True)
class SMC:
    """Tempered sequential Monte Carlo over the discrete states, with all reals integrated out.

    Particles begin where all states are equally probable, and follow the distribution as it is
    raised to powers from 0 to 1: they are weighted, resampled and moved by a sweep of draws at
    each. So modes are found that no chain from a given start would reach. Each connected part of
    the graph has its own powers; one with few joint states is enumerated. Groups of particles are
    independent: log Z and the marginals are averages over them, their errors the spread between
    them. With a start (`infer(start=)`), particles begin there instead.
    """

    groups: int = 8
    """Independent groups of particles."""
    particles: int = 64
    """Of each group."""
    sweeps: int = 10
    """At the end, over which marginals are averaged."""

    def __post_init__(self) -> None:
        check_whole("groups", self.groups, 2)
        check_whole("particles", self.particles, 2)
        check_whole("sweeps", self.sweeps)

    @property
    def name(self) -> str:
        return "SMC"

    def solve(self, prepared: Prepared, request: Request) -> Posterior:
        control = Control(request)
        graph = prepared.ground
        _check_taken(graph)
        prepared.check_proper()
        control.enter_level(graph.num_variables)
        population, log_constant, part = self._population(graph, prepared, request)
        run_steps(population, control)
        population.hurry()
        found = Findings.of(population, log_constant, part)
        draws = Draws(
            prepared.source.variables,
            prepared.hidden,
            found.draws(),
            found.weights[:, part],
            *found.errors(),
        )

        def find(
            mixture: Mixture | None = None,
            seconds: float | None = None,
            go_on: Callable[[], bool] | None = None,
        ) -> Assignment:
            """From the best particle of each group."""
            best = polish(
                graph, found.best(), seconds=seconds, go_on=go_on, progress=request.progress
            )
            return prepared.assignment(best.values, -best.log_density)

        doubts = found.doubts()
        log_partition = found.log_partition()
        answer = Answer(
            control.ended or ("max_steps" if doubts else "converged"),
            -log_partition.value,
            (*found.notes(), *doubts, *_out_of_time(control)),
            find,
            log_partition,
            marginals=found.batches(),
            draws=draws,
            steps=population.steps,
        )
        return finish(self.name, prepared, request, control, answer)

    def _population(
        self, graph: FactorGraph, prepared: Prepared, request: Request
    ) -> tuple[Population, float, NDArray[np.int32]]:
        kinds = Kinds.of(graph)
        terms = LocalTerms.of(kinds)
        part, num_parts = parts_of(graph)
        cliques = cliques_of(terms, part, num_parts, self.particles)
        num_reals = int((terms.variable["num_states"] == 0).sum())
        room = ROOM // (6 * (self.groups + 1) * max(num_reals, 1))
        room = 2 * int(np.clip(room, 1, MOST_COMPONENTS))
        stored = MOST_STORED // max(self.groups * graph.num_variables, 1)
        num_kept = int(np.clip(stored, 4, self.particles))
        num_sweeps = int(np.clip(stored // num_kept, 1, self.sweeps))
        population = Population(
            graph,
            terms,
            cliques,
            _base(graph, terms, request.start),
            Cells.of(cliques, self.groups, self.particles, self.sweeps, request.seed),
            np.zeros((self.groups, terms.num_scores)),
            [GaussianSums.empty(num_reals, room) for _ in range(self.groups)],
            np.zeros((self.groups, num_kept, num_sweeps, graph.num_variables)),
        )
        return population, kinds.log_constant, part


def _base(graph: FactorGraph, terms: LocalTerms, start: Posterior | None) -> FloatArray:
    """(variable and state,): log-probabilities with which particles begin."""
    num_states = terms.variable["num_states"].astype(np.int64)
    first = offsets(num_states)
    flat = np.repeat(1.0 / np.maximum(num_states, 1), num_states)
    if start is None:
        return np.log(flat)
    marginals, probs = start.all_marginals, flat.copy()
    at = graph.variables.places_in(start.variables)
    if marginals is None and isinstance(start.mixture, Mixture):  # of a rewritten graph
        marginals = start.mixture.marginals(start.variables)
        place = np.full(len(start.variables) + 1, -1)
        place[start.mixture.hidden] = np.arange(len(start.mixture.hidden))
        at = place[at]
    marginals = marginals or start.known_marginals()
    for number, batch in enumerate(marginals.batches):
        if isinstance(batch, Categorical):
            known = np.flatnonzero((at >= 0) & (num_states > 0))
            known = known[marginals.batch[at[known]] == number]
            where = first[known][:, None] + np.arange(batch.num_states)
            probs[where] = batch.probs[marginals.row[at[known]]]
    return np.log((1.0 - LEAST_SHARE) * probs + LEAST_SHARE * flat)


def _check_taken(graph: FactorGraph) -> None:
    """Raise unless the graph is ground, and its reals are Gaussian given the states."""
    variables = graph.variables
    if (variables.multiplicity != 1).any():
        raise UnsupportedError(
            "SMC needs a ground graph: this one is lifted, and the joint distribution of the "
            "members of a class is not in it"
        )
    remedy = worded("use ", method_call("Gibbs"))
    for group in graph.groups:
        if group.potential.quadratic() is None and len(group):
            raise UnsupportedError(
                "SMC integrates the reals out, which needs tables and conditional quadratics: it "
                f"cannot take the functions of reals, or of many states, of {group.named()}",
                remedy,
            )
    has_bound = np.isfinite(variables.lower) | np.isfinite(variables.upper)
    has_bound &= variables.num_states == 0
    if has_bound.any():
        name = variables.names[int(np.argmax(has_bound))]
        raise UnsupportedError(
            f"SMC integrates the reals out, and '{name}' has bounds, which it cannot", remedy
        )


def _out_of_time(control: Control) -> list[str]:
    if control.ended is None:
        return []
    return [
        doubt(
            f"The run ended after {counted(len(control.steps), 'step')}: what was left of the way "
            "was made by weights alone, and the answer may be off."
        )
    ]
