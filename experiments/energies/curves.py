"""Energies of the answers that one would have after less work."""

from __future__ import annotations

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

DENSE = 1.2
"""How many times as many steps each answer of a variational run takes as the one before, where the
time until it is near is told."""


@dataclass(frozen=True, slots=True, eq=False)
class Curve:
    """Energies of the answers of a method after so much work."""

    method: str
    polished: bool
    """Whether answers were improved on the model itself."""
    work: NDArray[np.int64]  # (point,): steps, or flips of a walk
    history: History  # a point in each row, instead of a step

    def gaps(self, optimum: float) -> NDArray[np.float64]:
        """(point,): how far energies are above the optimum."""
        return gaps(self.history.objective, optimum)

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


def rounding(optimum: float) -> float:
    """By how much energies of the same assignment may differ."""
    return 1e-9 * max(abs(optimum), 1.0)


def gaps(energy: NDArray[np.float64], optimum: float) -> NDArray[np.float64]:
    """How far energies are above the optimum; 0 where only rounding is between."""
    found = energy - optimum
    return np.where(found <= rounding(optimum), 0.0, found)


def of_variational(whole: Run, graph: hl.FactorGraph, times: float = DENSE) -> tuple[Curve, Curve]:
    """Energies of modes, and of polished answers, after 1, `times`, `times`², … steps of a run.

    The same seed makes the same steps, so these are the answers had one stopped there, and times
    are those of the whole run; polished answers take the median time of polishing longer.
    """
    num_steps = whole.posterior.solution.steps
    stopped = [
        measure.run(graph, whole.method, whole.lift, tasks=("map",), callback=_stop_after(steps))
        for steps in _steps(num_steps, times)
    ]
    # A run may take another step after it is told to stop.
    found = {run.posterior.solution.steps: run for run in (*stopped, whole)}
    work = np.array(sorted(found))
    runs = [found[steps] for steps in work.tolist()]
    assert whole.history is not None
    seconds = whole.history.seconds[work - 1]
    polishing = np.median([run.seconds - _solving(run) for run in runs])
    num_classes = whole.history.num_classes[work - 1]
    modes = np.array([run.posterior.map(polish=False).energy for run in runs])
    best = np.array([run.posterior.map().energy for run in runs])
    name = label(whole)
    return (
        Curve(name, False, work, _history(seconds, modes, num_classes)),
        Curve(name, True, work, _history(seconds + polishing, best, num_classes)),
    )


def _steps(most: int, times: float) -> list[int]:
    """Whole numbers below another, each about so many times the one before."""
    found = np.unique(np.floor(times ** np.arange(np.log(most) / np.log(times) + 1)))
    return [int(steps) for steps in found[found < most]]


def _solving(run: Run) -> float:
    """Seconds of all steps of a run."""
    assert run.history is not None
    return float(run.history.seconds[-1])


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


def of_walk(whole: Run, graph: hl.FactorGraph, num_timed: int) -> Curve:
    """Energies of walks of more and more flips, up to a whole one."""
    lengths = FLIPS // SHORTER ** np.arange(1, 20)
    runs = [
        measure.in_turn(graph, walk(flips), ("none",), num_timed=num_timed, tasks=("map",))["none"]
        for flips in lengths[lengths > 0][::-1].tolist()
    ]
    runs.append(whole)
    # A shorter walk does not take longer: where it seems so, the machine was busy.
    seconds = np.minimum.accumulate([run.seconds for run in runs][::-1])[::-1]
    energy = np.array([run.posterior.map().energy for run in runs])
    num_classes = np.array([run.num_classes for run in runs])
    work = np.array([run.posterior.solution.steps for run in runs])
    return Curve(label(whole), False, work, _history(seconds, energy, num_classes))


def _history(
    seconds: NDArray[np.float64], energy: NDArray[np.float64], num_classes: NDArray[np.int64]
) -> History:
    level = np.zeros(len(seconds), dtype=np.int32)
    return History(np.ascontiguousarray(seconds), energy, num_classes, level, "energy")
