"""What lifting does to times, on the wells of the paper and on all wells."""

from __future__ import annotations

import hylift as hl
from experiments.instances import Variant, kalman
from experiments.kalman.trials import instance
from experiments.measure import in_turn, speed
from experiments.report import Speed
from experiments.setting import Setting
from hylift.inference import Method
from hylift.progress import Progress

METHODS: tuple[Method, ...] = (hl.BVI(1), hl.NPVI(1), hl.BVI(3), hl.NPVI(3))
FOREST_METHODS: tuple[Method, ...] = (hl.BVI(1), hl.NPVI(3))
"""Of all wells: BVI(3) would take minutes on the ground graph."""


def speeds(
    setting: Setting, shape: kalman.Shape, variant: Variant, progress: Progress
) -> list[Speed]:
    """Of the first trial, ground, lifted, and from coarse to fine."""
    methods = FOREST_METHODS if shape == "forest" else METHODS
    label = f"{variant} variant" + (", all wells" if shape == "forest" else "")
    graph = instance(setting, shape, variant, 0).graph
    found = []
    for number, method in enumerate(methods):
        progress(number / len(methods), f"times of {method.name}")
        runs = in_turn(graph, method, num_timed=setting.num_timed)
        found.append(speed(label, method.name, runs))
    return found
