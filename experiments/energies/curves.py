"""Energies of the answers that one would have after less work."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import hylift as hl
from experiments import measure
from experiments.measure import Run
from hylift.inference.method import Callback
from hylift.posterior import History

FLIPS = 4**8
"""Of a whole walk."""

SHORTER = 4
"""How many times as long each walk is as the one before."""


@dataclass(frozen=True, slots=True, eq=False)
class Curve:
    """Energies of the answers of a method after so much work, each of a run of its own."""

    method: str
    polished: bool
    """Whether answers were improved on the model itself."""
    work: NDArray[np.int64]  # (point,): steps, or flips of a walk
    history: History  # a point in each row, instead of a step

    def gaps(self, optimum: float) -> NDArray[np.float64]:
        """(point,): how far energies are above the optimum; 0 where only rounding is between."""
        gap = self.history.objective - optimum
        return np.where(gap <= rounding(optimum), 0.0, gap)

    def to_dicts(self, optimum: float) -> list[dict[str, Any]]:
        """A row per point."""
        history = self.history
        return [
            {
                "method": self.method,
                "polished": self.polished,
                "steps": int(self.work[point]),
                "seconds": float(history.seconds[point]),
                "classes": int(history.num_classes[point]),
                "energy": float(history.objective[point]),
                "above_optimum": float(gap),
            }
            for point, gap in enumerate(self.gaps(optimum))
        ]


@dataclass(frozen=True, slots=True)
class _Point:
    work: int
    seconds: float
    energy: float
    num_classes: int


def rounding(optimum: float) -> float:
    """By how much energies of the same assignment may differ."""
    return 1e-9 * max(abs(optimum), 1.0)


def of_variational(
    last: Run, graph: hl.FactorGraph, *, times: int = 2, num_timed: int = 1
) -> tuple[Curve, Curve]:
    """Energies of modes, and of polished answers, after 1, `times`, `times`², … steps of a run.

    The same seed makes the same steps, so these are the answers had one stopped there. A mode is
    there with the last step, a polished answer when inference returns. `num_timed`: runs to the
    first step, of which the median time is taken.
    """
    steps = times ** np.arange(64, dtype=object)
    runs = [
        measure.run(
            graph, last.method, last.lift, tasks=("map",), callback=_stop_after(most),
            num_timed=num_timed if most == 1 else 1,
        )
        for most in steps[steps < last.posterior.solution.steps]
    ]  # fmt: skip
    # A run may take another step after it is told to stop.
    found = {last.posterior.solution.steps: last}
    for run in runs:
        found.setdefault(run.posterior.solution.steps, run)
    modes, polished = [], []
    for _, run in sorted(found.items()):
        solution, history = run.posterior.solution, run.history
        assert history is not None
        mode, best = run.posterior.map(polish=False).energy, run.posterior.map().energy
        modes.append(_Point(solution.steps, float(history.seconds[-1]), mode, run.num_classes))
        polished.append(_Point(solution.steps, run.seconds, best, run.num_classes))
    name = label(last)
    return _curve(name, modes, polished=False), _curve(name, polished, polished=True)


def _stop_after(steps: int) -> Callback:
    return lambda step: step.step >= steps


def label(run: Run) -> str:
    """What a method is called in tables and pictures."""
    if isinstance(run.method, hl.MaxWalkSAT):
        return "HMWS"
    has_adam = isinstance(run.method, hl.BVI) and isinstance(run.method.optimiser, hl.Adam)
    return f"{run.label} with Adam" if has_adam else run.label


def walk(flips: int = FLIPS) -> hl.MaxWalkSAT:
    """Hybrid MaxWalkSAT as in the paper: 0.7 of its moves are greedy, with no second start."""
    return hl.MaxWalkSAT(flips=flips, restarts=1, random=0.3, noise=0.3)


def of_walk(last: Run, graph: hl.FactorGraph) -> Curve:
    """Energies of walks of more and more flips, up to a whole one."""
    lengths = FLIPS // SHORTER ** np.arange(1, 20)
    runs = [
        measure.run(graph, walk(flips), tasks=("map",))
        for flips in lengths[lengths > 0][::-1].tolist()
    ]
    points = [
        _Point(
            run.posterior.solution.steps, run.seconds, run.posterior.map().energy, run.num_classes
        )
        for run in (*runs, last)
    ]
    return _curve(label(last), points, polished=False)


def _curve(name: str, points: Sequence[_Point], *, polished: bool) -> Curve:
    # Less work is not done later than more: where it seems so, the machine was busy.
    seconds = np.array([point.seconds for point in points])
    seconds = np.minimum.accumulate(seconds[::-1])[::-1]
    history = History(
        np.ascontiguousarray(seconds),
        np.array([point.energy for point in points]),
        np.array([point.num_classes for point in points]),
        np.zeros(len(points), dtype=np.int32),
        "energy",
    )
    return Curve(name, polished, np.array([point.work for point in points]), history)
