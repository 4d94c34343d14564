"""A robot's map: Figure 2b."""

from __future__ import annotations

from experiments import energies
from experiments.instances import robot
from experiments.report import Outcome
from experiments.setting import Setting

RECORDED = {"HMWS": "-4896.9", "BVI": "-5005.0", "L-BVI": "-5006.6", "C2F-BVI": "-5012.6"}
"""The best energies that the authors recorded, without the types of segments."""


def run(setting: Setting) -> Outcome:
    """Energies of MAP assignments against time, beside the exact optimum."""
    return energies.experiment("Robot mapping (Figure 2b)", setting, problems(setting))


def problems(setting: Setting) -> list[energies.Problem]:
    """The published map, or generated ones, in each variant."""
    return energies.problems(
        setting,
        lambda data, variant: [robot.published(data, variant)],
        robot.generated,
        RECORDED,
    )
