"""What energies are measured on."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import hylift as hl
from experiments.instances import Instance, Variant
from experiments.setting import Setting

NUM_GENERATED = 2
"""Settings of generated evidence in each variant."""


@dataclass(frozen=True, slots=True, eq=False)
class Problem:
    """A model with evidence."""

    graph: hl.FactorGraph
    name: str
    recorded: Mapping[str, str] = field(default_factory=dict)
    """The best energies that the authors recorded, by method."""
    note: str = ""
    """What there is to know of its evidence."""


def problems(
    setting: Setting,
    published: Callable[[Path, Variant], Sequence[Instance]],
    generated: Callable[[int, Variant], Instance],
    recorded: Mapping[str, str],
) -> list[Problem]:
    """A model with its published evidence, or with generated one, in each variant.

    What the authors recorded is of the first published evidence, in the variant `paper`.
    """
    found = []
    for variant in setting.variants:
        if setting.data is None:
            instances: Sequence[Instance] = [
                generated(seed, variant) for seed in range(NUM_GENERATED)
            ]
        else:
            instances = published(setting.data, variant)
        for number, one in enumerate(instances):
            known = variant == "paper" and setting.data is not None and number == 0
            name = f"{one.label}, {variant} variant"
            found.append(Problem(one.graph, name, recorded if known else {}, one.note))
    return found
