"""A robot's map: Figure 2b."""

from __future__ import annotations

from experiments import energies
from experiments.instances import robot
from experiments.report import Outcome
from experiments.setting import Setting

TITLE = "Robot mapping (Figure 2b)"

RECORDED = {"HMWS": "-4896.9", "BVI": "-5005.0", "L-BVI": "-5006.6", "C2F-BVI": "-5012.6"}
"""The best energies that the authors recorded, without the types of segments."""

NUM_GENERATED = 2


def run(setting: Setting) -> Outcome:
    """Energies of MAP assignments against time, beside the exact optimum."""
    return energies.experiment(TITLE, setting, problems(setting))


def problems(setting: Setting) -> list[energies.Problem]:
    """The published map, or generated ones, in each variant."""
    found = []
    for variant in setting.variants:
        if setting.data is None:
            instances = [robot.generated(seed, variant) for seed in range(NUM_GENERATED)]
        else:
            instances = [robot.published(setting.data, variant)]
        known = variant == "paper" and setting.data is not None
        found += [
            energies.Problem(
                one.graph, f"{one.label}, {variant} variant", RECORDED if known else {}
            )
            for one in instances
        ]
    return found
