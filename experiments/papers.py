"""The popularity of papers: Figure 2a."""

from __future__ import annotations

from experiments import energies
from experiments.instances import papers
from experiments.report import Outcome
from experiments.setting import Setting

TITLE = "Paper popularity (Figure 2a)"

RECORDED = {"HMWS": "20484.3", "BVI": "8118.4", "L-BVI": "8024.7", "C2F-BVI": "7447.17"}
"""The best energies that the authors recorded, with the first of the published files."""

NUM_GENERATED = 2


def run(setting: Setting) -> Outcome:
    """Energies of MAP assignments against time, beside the exact optimum."""
    return energies.experiment(TITLE, setting, problems(setting))


def problems(setting: Setting) -> list[energies.Problem]:
    """Both files, or as many settings of generated evidence, in each variant."""
    found = []
    for variant in setting.variants:
        if setting.data is None:
            instances = [papers.generated(seed, variant) for seed in range(NUM_GENERATED)]
        else:
            numbers = range(papers.NUM_PUBLISHED)
            instances = [papers.published(setting.data, number, variant) for number in numbers]
        for number, one in enumerate(instances):
            known = variant == "paper" and setting.data is not None and number == 0
            name = f"{one.label}, {variant} variant"
            found.append(energies.Problem(one.graph, name, RECORDED if known else {}))
    return found
