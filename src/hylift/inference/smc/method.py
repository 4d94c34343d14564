"""Sequential Monte Carlo: settings, and the way from a graph to a posterior."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from hylift.errors import UnsupportedError
from hylift.inference.control import Control
from hylift.inference.finish import Answer, finish
from hylift.inference.loop import run_steps
from hylift.inference.method import Request
from hylift.inference.prepared import Prepared
from hylift.inference.sampling.marginals import check_bounds
from hylift.inference.search import polish
from hylift.inference.settings import check_ground, check_whole
from hylift.inference.smc.findings import Findings
from hylift.inference.smc.run import Run, Size
from hylift.posterior import Assignment, Mixture, Posterior
from hylift.words import counted, doubt, method_call, option, worded


@dataclass(frozen=True, slots=True)
class SMC:
    """Tempered sequential Monte Carlo: particles from a flat start to the posterior.

    Particles begin where all states are equally probable, and follow the distribution as it is
    raised to powers from 0 to 1: they are weighted, resampled and moved by a sweep of draws at
    each. So modes are found that no chain from a given start would reach. Each connected part of
    the graph has its own powers; one with few joint states is enumerated. Reals that are Gaussian
    given the states are integrated out; in parts with bounds or functions of reals, particles have
    values of reals, too, which begin uniform between two bounds, or far more spread than they are.
    Groups of particles are independent: log Z and the marginals are averages over them, their
    errors the spread between them. With a start (`infer(start=)`), particles begin there instead.
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
        _check_taken(prepared, request)
        check_bounds(graph.variables)
        prepared.check_proper()
        control.enter_level(graph.num_variables)
        num_hidden = len((prepared.whole or prepared).hidden)
        run = Run.of(graph, Size(self.groups, self.particles, self.sweeps, num_hidden), control)
        run_steps(run, control)
        is_cut = run.finish(control)
        found = Findings(run.answers(), run.log_constant)

        def find(
            mixture: Mixture | None = None,
            seconds: float | None = None,
            go_on: Callable[[], bool] | None = None,
        ) -> Assignment:
            """From the best particle of each group."""
            best = polish(
                graph, found.answers.best, seconds=seconds, go_on=go_on, progress=request.progress
            )
            return prepared.assignment(best.values, -best.log_density)

        doubts = found.doubts()
        log_partition = found.log_partition()
        ended = control.ended if is_cut or control.ended != "out_of_time" else None
        answer = Answer(
            ended or ("max_steps" if doubts else "converged"),
            -log_partition.value,
            (*found.notes(), *run.notes(), *doubts, *_ended(control, is_cut=is_cut)),
            find,
            log_partition,
            marginals=found.batches(),
            draws=found.draws(prepared.source.variables, prepared.hidden),
            steps=run.steps,
        )
        return finish(self.name, prepared, request, control, answer)


def _check_taken(prepared: Prepared, request: Request) -> None:
    """Raise unless the graph is ground, and a start is about it."""
    check_ground("SMC needs a ground graph", prepared.ground)
    if request.lift == "coarse-to-fine":
        raise UnsupportedError(
            "SMC has no lifting, so that coarse-to-fine lifting would change nothing",
            worded("leave ", option("lift"), " out, or use ", method_call("BVI")),
        )
    start = request.start
    if start is None:
        return
    known = [one.source.variables for one in (prepared, prepared.whole) if one is not None]
    if not any((one.places_in(start.variables) >= 0).any() for one in known):
        raise UnsupportedError(
            "the posterior to start from is about other variables: none of its atoms, such as "
            f"'{start.variables.names[0]}', is in this model"
        )


def _ended(control: Control, *, is_cut: bool) -> list[str]:
    """A note about a run that did not take all its steps."""
    if control.ended is None:
        return []
    if not is_cut:
        return ["The run ended before the last sweep: marginals are averages over fewer."]
    return [
        doubt(
            f"The run ended after {counted(len(control.steps), 'step')}: what was left of the way "
            "was made by weights alone, and the answer may be off."
        )
    ]
