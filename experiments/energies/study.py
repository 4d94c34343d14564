"""All methods on one problem."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

import hylift as hl
from experiments import measure
from experiments.energies import curves
from experiments.energies.curves import Curve
from experiments.measure import Run, seconds_until
from experiments.report import Printed, Row, Speed, summary
from experiments.report.show import number
from experiments.setting import Setting
from hylift.inference import Lift
from hylift.progress import Progress

LIFTS: tuple[Lift, ...] = ("none", "exact", "coarse-to-fine")

SINGLE = hl.BVI(1)
EARLIER = hl.BVI(1, hl.Adam(learning_rate=0.2), restarts=1)
"""With the optimiser of the paper, from one start."""

MIXED = hl.BVI(3, restarts=1, max_steps=50)
"""With several components, of which the time is told; to the end it would take much longer."""

NEAR = 1e-3
"""Relative to the optimum."""

NEARNESS = f"the energy of the polished answer stays within {NEAR:g} of the exact optimum."


@dataclass(frozen=True, slots=True, eq=False)
class Problem:
    """A model with evidence."""

    graph: hl.FactorGraph
    name: str
    recorded: Mapping[str, str] = field(default_factory=dict)
    """The best energies that the authors recorded, by method."""


@dataclass(frozen=True, slots=True, eq=False)
class Ends:
    """Energies at which a method ends, from several seeds."""

    method: str
    components: int | None
    energy: NDArray[np.float64]  # (seed,): of modes, or at which walks end
    polished: NDArray[np.float64] | None = None  # (seed,)

    def num_best(self, optimum: float) -> int:
        """How many seeds end at the optimum."""
        best = self.energy if self.polished is None else self.polished
        return int(np.count_nonzero(best <= optimum + curves.rounding(optimum)))


@dataclass(frozen=True, slots=True, eq=False)
class Study:
    """What was measured on one problem."""

    problem: Problem
    optimum: float
    """Proven to be the least energy."""
    ends: tuple[Ends, ...]
    curves: tuple[Curve, ...]
    speeds: tuple[Speed, ...]
    notes: tuple[str, ...]

    @property
    def rows(self) -> list[Row]:
        """Energies, beside those that the authors recorded."""
        name = self.problem.name
        rows = [Row(name, "exact", None, "energy", self.optimum)]
        for ends in self.ends:
            text = self.problem.recorded.get(ends.method)
            row = Row(
                name, ends.method, ends.components, "energy", *summary(ends.energy),
                None if text is None else Printed.of(text), self._reason(ends),
            )  # fmt: skip
            rows.append(row)
            if ends.polished is not None:
                rows.append(
                    Row(name, ends.method, ends.components, "polished", *summary(ends.polished))
                )
        return rows

    def to_dicts(self) -> list[dict[str, Any]]:
        """A row per point of a curve."""
        return [
            {"instance": self.problem.name} | point
            for curve in self.curves
            for point in curve.to_dicts(self.optimum)
        ]

    def _reason(self, ends: Ends) -> str:
        """Why the authors' energy is not reached; empty where it is."""
        text = self.problem.recorded.get(ends.method)
        mean = float(ends.energy.mean())
        if text is None or Printed.of(text).is_matched_by(mean):
            return ""
        above = number(mean - self.optimum)
        if ends.polished is None:
            return f"walks end {above} above the optimum."
        left = number(float(ends.polished.mean()) - self.optimum)
        return f"the mode of the mixture is {above} above the optimum; polished, {left} above it."


def study(problem: Problem, setting: Setting, progress: Progress, *, mixed: bool) -> Study:
    """All methods on a problem; `mixed`: with the time of several components too."""
    graph = problem.graph
    exact = hl.infer(graph, hl.Exact(), tasks="map").map()
    if exact.kind != "exact":
        raise hl.HyliftError(f"the optimum of {problem.name} is not proven")
    optimum, total = exact.energy, 2 + len(LIFTS) * (1 + mixed)
    seeds = range(setting.num_seeds)
    num_timed = -(-setting.num_timed // len(seeds))

    progress(0.0, "HMWS")
    walks = [measure.run(graph, curves.walk(), seed=seed, tasks=("map",)) for seed in seeds]
    ends, found = [_ends(walks)], [curves.of_walk(walks[0], graph)]

    timed: dict[Lift, Run] = {}
    methods = [*((SINGLE, lift) for lift in LIFTS), (EARLIER, LIFTS[0])]
    for done, (method, lift) in enumerate(methods, start=1):
        progress(done / total, measure.LABELS[lift].format(method.name))
        runs = [
            measure.run(graph, method, lift, seed=seed, tasks=("map",), num_timed=num_timed)
            for seed in seeds
        ]
        first = replace(runs[0], seconds=float(np.median([run.seconds for run in runs])))
        timed.setdefault(lift, first)
        ends.append(_ends(runs))
        found += curves.of_variational(first, graph, num_timed=setting.num_timed)

    speeds = [_speed(problem.name, timed, found, optimum)]
    notes = [_unpolished(problem.name, found, optimum)]
    if mixed:
        share = (1 + len(methods)) / total
        speed, note = _mixed(
            problem, optimum, setting.num_timed,
            lambda part, what: progress(share + part * (1 - share), what),
        )  # fmt: skip
        speeds.append(speed)
        notes.append(note)
    return Study(problem, optimum, tuple(ends), tuple(found), tuple(speeds), tuple(notes))


def _ends(runs: Sequence[Run]) -> Ends:
    found = [run.posterior for run in runs]
    best = np.array([posterior.map().energy for posterior in found])
    method = runs[0].method
    if not isinstance(method, hl.BVI):
        return Ends(curves.label(runs[0]), None, best)
    modes = np.array([posterior.map(polish=False).energy for posterior in found])
    return Ends(curves.label(runs[0]), method.components, modes, best)


def _mixed(
    problem: Problem, optimum: float, num_timed: int, progress: Progress
) -> tuple[Speed, str]:
    """How long several components take, and what there is to know of it."""
    timed: dict[Lift, Run] = {}
    found: list[Curve] = []
    for done, lift in enumerate(LIFTS):
        progress(done / len(LIFTS), measure.LABELS[lift].format(MIXED.name))
        timed[lift] = measure.run(problem.graph, MIXED, lift, tasks=("map",))
        found += curves.of_variational(timed[lift], problem.graph, times=16, num_timed=num_timed)
    ends = [(c.method, c.gaps(optimum)[-1]) for c in found if not c.polished]
    modes = ", ".join(f"{method} {number(gap)}" for method, gap in ends)
    note = (
        f"{MIXED.name} is one run of at most {MIXED.max_steps} steps a level, from one start, on "
        f"{problem.name}. Its modes end above the optimum: {modes}."
    )
    return _speed(problem.name, timed, found, optimum), note


def _speed(name: str, timed: Mapping[Lift, Run], found: Sequence[Curve], optimum: float) -> Speed:
    near = _near([curve for curve in found if curve.polished], optimum)
    ground, lifted, coarse = (timed[lift].timing(near[timed[lift].label]) for lift in LIFTS)
    return Speed(name, timed["none"].method.name, ground, lifted, coarse, NEARNESS)


def _near(found: Sequence[Curve], optimum: float) -> dict[str, float]:
    """Seconds until each is near the optimum, by method."""
    level = optimum + NEAR * abs(optimum)
    return {curve.method: seconds_until(curve.history, level) for curve in found}


def _unpolished(name: str, found: Sequence[Curve], optimum: float) -> str:
    """How long it takes until modes are near the optimum."""
    near = _near([c for c in found if "BVI" in c.method and not c.polished], optimum)
    told = ", ".join(
        f"{method} {f'after {1e3 * seconds:.0f} ms' if np.isfinite(seconds) else 'never'}"
        for method, seconds in near.items()
    )
    return f"Not polished, {name}: within {NEAR:g} of the optimum {told}."
