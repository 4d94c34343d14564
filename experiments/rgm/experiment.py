"""The relational Gaussian model of a recession, its markets and banks."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from experiments import measure
from experiments.instances import rgm
from experiments.instances.instance import Instance
from experiments.report import Outcome
from experiments.rgm.accuracy import (
    FURTHER,
    TABLE,
    Entry,
    accuracy_of,
    notes_on_accuracy,
    rows_of,
)
from experiments.rgm.figures import FIGURES, draw
from experiments.rgm.times import CASES, Case, Runs, curves, notes_on_times, runs_of, timed
from experiments.setting import Setting

SHARES = (0.05, 0.0875, 0.125, 0.1625, 0.2)
"""Observed in the settings of Table 2, where their evidence is generated."""


def run(
    setting: Setting, cases: Sequence[Case] = CASES, further: Sequence[Entry] = FURTHER
) -> Outcome:
    """Table 2, with further entries, and Figure 3, with larger graphs."""
    entries, instances = (*TABLE, *further), _instances(setting)
    total = len(instances) + len(cases)
    accuracy = []
    for number, instance in enumerate(instances):
        setting.part(instance.label, number, total)(0.0, "")
        accuracy.append(accuracy_of(instance.graph, entries))
    rows = rows_of(entries, accuracy, _source(setting, len(instances)))
    found: dict[Case, Runs] = {}
    for number, case in enumerate(cases, len(instances)):
        setting.part(f"{case.size}, {case.name}", number, total)(0.0, "")
        found[case] = timed(case, setting.num_timed)
    speeds = {case: measure.speed(str(case.size), case.name, runs) for case, runs in found.items()}
    return Outcome(
        title="Relational Gaussian model (Table 2, Figure 3)",
        source=setting.source,
        rows=tuple(rows),
        speeds=tuple(speeds.values()),
        notes=(*notes_on_accuracy(accuracy), *notes_on_times(speeds)),
        figures={
            name: partial(draw, panels, found)
            for name, panels in FIGURES.items()
            if all(runs_of(found, panel.size, panel.method) for panel in panels)
        },
        tables={"curves": curves(found)},
    )


def _source(setting: Setting, count: int) -> str:
    settings = "files of evidence" if setting.data is not None else "settings of evidence"
    return f"{count} {setting.source} {settings}"


def _instances(setting: Setting) -> list[Instance]:
    if setting.data is not None:
        return [rgm.published(setting.data, number) for number in range(rgm.NUM_PUBLISHED)]
    return [rgm.generated(seed, share) for seed, share in enumerate(SHARES)]
