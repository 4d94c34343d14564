"""What lifting does to times, on the wells of the paper and on all wells."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import hylift as hl
from experiments import measure
from experiments.instances import Variant, kalman
from experiments.kalman.trials import instance
from experiments.measure import Run
from experiments.report import Speed
from experiments.setting import Setting
from hylift.inference import Lift, Method
from hylift.progress import Progress

METHODS: tuple[Method, ...] = (hl.BVI(1), hl.NPVI(1), hl.BVI(3), hl.NPVI(3))
FOREST_METHODS: tuple[Method, ...] = (hl.BVI(1), hl.NPVI(3))
"""Of all wells: BVI(3) would take minutes on the ground graph."""


@dataclass(frozen=True, slots=True, eq=False)
class Timed:
    """A method on one instance, with each kind of lifting."""

    instance: str
    method: str
    runs: Mapping[Lift, Run]

    @property
    def speed(self) -> Speed:
        return measure.speed(self.instance, self.method, self.runs)

    def curves(self) -> list[dict[str, Any]]:
        """A row per step of each run."""
        return measure.curves(self.instance, self.method, self.runs)


def all_timed(
    setting: Setting, shape: kalman.Shape, variant: Variant, progress: Progress
) -> list[Timed]:
    """The first trial, ground, lifted, and from coarse to fine."""
    methods = FOREST_METHODS if shape == "forest" else METHODS
    label = f"{variant} variant" + (", all wells" if shape == "forest" else "")
    graph = instance(setting, shape, variant, 0).graph
    found = []
    for number, method in enumerate(methods):
        progress(number / len(methods), f"times of {method.name}")
        runs = measure.in_turn(graph, method, num_timed=setting.num_timed)
        found.append(Timed(label, method.name, runs))
    return found
