"""All methods on one problem."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

import hylift as hl
from experiments import measure
from experiments.energies import curves
from experiments.energies.curves import Curve, rounding
from experiments.energies.problem import Problem
from experiments.measure import Run, seconds_until
from experiments.report import Printed, Row, Speed, Timing, summary
from experiments.report.show import number
from experiments.setting import Setting
from hylift.inference import Lift, Task
from hylift.progress import Progress

SINGLE = hl.BVI(1)
EARLIER = hl.BVI(1, measure.ADAM, restarts=1)
"""With the optimiser of the paper, from one start."""

TASKS: tuple[Task, ...] = ("map",)

SOURCE = "authors' runs"
"""Where energies beside ours are from: the paper draws curves, but prints no figures."""

NEARNESS = (
    "the energy of the mode, not polished, stays within a thousandth of the way from the highest "
    "start, above the end of whichever of the three ends highest."
)


@dataclass(frozen=True, slots=True, eq=False)
class Ends:
    """Energies at which a method ends, from several seeds."""

    method: str
    components: int | None
    energy: NDArray[np.float64]  # (seed,): of modes, or at which walks end
    polished: NDArray[np.float64] | None = None  # (seed,)

    @classmethod
    def of(cls, runs: Sequence[Run]) -> Ends:
        found = [run.posterior for run in runs]
        best = np.array([posterior.map().energy for posterior in found])
        name, components = curves.label(runs[0]), measure.components(runs[0].method)
        if components is None:
            return cls(name, None, best)
        modes = np.array([posterior.map(polish=False).energy for posterior in found])
        return cls(name, components, modes, best)


@dataclass(frozen=True, slots=True, eq=False)
class Study:
    """What was measured on one problem."""

    problem: Problem
    optimum: float
    """Proven to be the least energy."""
    walks: Ends
    variational: tuple[Ends, ...]
    curves: tuple[Curve, ...]
    """The first is that of walks."""
    speed: Speed

    @property
    def rows(self) -> list[Row]:
        """Energies, beside those that the authors recorded."""
        name = self.problem.name
        rows = [Row(name, "exact", None, "energy", self.optimum)]
        for ends in (self.walks, *self.variational):
            text = self.problem.recorded.get(ends.method)
            row = Row(
                name, ends.method, ends.components, "energy", *summary(ends.energy),
                None if text is None else Printed.of(text, SOURCE),
            )  # fmt: skip
            missed = row.verdict == "not reached"
            rows.append(replace(row, why=self._reason(ends)) if missed else row)
            if ends.polished is not None:
                rows.append(
                    Row(name, ends.method, ends.components, "polished", *summary(ends.polished))
                )
        return rows

    def gaps(self, energy: NDArray[np.float64]) -> NDArray[np.float64]:
        """How far energies are above the optimum; 0 where only rounding is between."""
        return curves.gaps(energy, self.optimum)

    def to_dicts(self) -> list[dict[str, Any]]:
        """A row per point of a curve."""
        return [
            {"instance": self.problem.name} | point
            for curve in self.curves
            for point in curve.to_dicts(self.optimum)
        ]

    def _reason(self, ends: Ends) -> str:
        """Why the authors' energy is not reached."""
        above = number(float(ends.energy.mean()) - self.optimum)
        if ends.polished is None:
            return f"walks end {above} above the optimum."
        left = number(float(self.gaps(ends.polished).mean()))
        return f"the mode of the mixture is {above} above the optimum; polished, {left} above it."


def study(problem: Problem, setting: Setting, progress: Progress) -> Study:
    """All methods on a problem."""
    graph, num_timed = problem.graph, setting.num_timed
    exact = hl.infer(graph, hl.Exact(), tasks="map").map()
    if exact.kind != "exact":
        raise hl.HyliftError(f"the optimum of {problem.name} is not proven")

    progress(0.0, "HMWS")
    walks = [
        measure.run(graph, curves.walk(), "none", seed=seed, tasks=TASKS)
        for seed in range(setting.num_seeds)
    ]
    found = [curves.of_walk(walks[0], graph, num_timed)]

    progress(0.3, SINGLE.name)
    timed = measure.in_turn(graph, SINGLE, num_timed=num_timed, tasks=TASKS)
    earlier = measure.in_turn(graph, EARLIER, ("none",), num_timed=num_timed, tasks=TASKS)
    ends = []
    for place, whole in enumerate((*timed.values(), *earlier.values())):
        progress(0.4 + 0.15 * place, curves.label(whole))
        others = [
            measure.run(graph, whole.method, whole.lift, seed=seed, tasks=TASKS)
            for seed in range(1, setting.num_seeds)
        ]
        ends.append(Ends.of([whole, *others]))
        times = curves.DENSE if whole.method is SINGLE else 2.0
        found += curves.of_variational(whole, graph, times)
    return Study(
        problem, exact.energy, Ends.of(walks), tuple(ends), tuple(found),
        speed(problem.name, timed, found),
    )  # fmt: skip


def speed(name: str, timed: Mapping[Lift, Run], found: Sequence[Curve]) -> Speed:
    """What lifting does to the time until modes are near those at the end."""
    of_method = {curve.method: curve.history for curve in found if not curve.polished}
    modes = {lift: of_method[run.label] for lift, run in timed.items()}
    # Energies may rise while the objective falls, and may stay the same up to rounding.
    end = max(float(history.objective[-1]) for history in modes.values())
    level = measure.near_level(modes.values(), rounding(end))

    def timing(lift: Lift) -> Timing:
        history = modes[lift]
        near = seconds_until(history, level)
        return replace(timed[lift].timing(near), end=float(history.objective[-1]))

    ground, lifted, coarse = (timing(lift) for lift in measure.LIFTS)
    return Speed(name, timed["none"].method.name, ground, lifted, coarse, NEARNESS)
